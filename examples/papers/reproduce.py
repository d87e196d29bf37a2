"""Make a page of a paper: its tables and figures, each published number with a verdict.

    python examples/papers/reproduce.py wang2014 [DATA_FOLDER] [OUTPUT_FOLDER] [--quick] [--table 2] [--page FOLDER]
    python examples/papers/reproduce.py index

Pages: wang2014, ogawa2013, ogawa2014_linear, ogawa2014_kernel, zhao2014, hong2019, and new, which has what no paper
said. A page whose sets are not all there is not made (exit code 1); ``--sets a,b``, ``--table N`` and ``--figure N``
make a part of it, with the runs.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from pathlib import Path

import sets
import verdicts
from study import ROOT, Study

PAGES = ("wang2014", "ogawa2013", "ogawa2014_linear", "ogawa2014_kernel", "zhao2014", "hong2019", "new")


def main(words=None) -> int:
    """Make what the command line asks for; return the exit code."""
    words = sys.argv[1:] if words is None else words
    first = argparse.ArgumentParser(add_help=False)
    first.add_argument("what", nargs="?", choices=(*PAGES, "index"))
    what = first.parse_known_args(words[:1])[0].what if words and words[0] in (*PAGES, "index") else None
    page = importlib.import_module(what).PAGE if what in PAGES else None
    given = parser(page).parse_args(words)
    if page is None:
        target = (given.page or verdicts.RESULTS) / "README.md"
        target.write_text(verdicts.index(target.parent), encoding="utf-8")
        return 0
    for name, (full, quick, _) in page.settings.items():
        if getattr(given, name) is None:
            setattr(given, name, quick if given.quick else full)
    given.repeats = given.repeats or (1 if given.quick else 3)
    given.sets = [one for one in given.sets.split(",") if one]
    given.parts = chosen(page, given)
    places = [page.sets[one][0] for one in given.sets or page.sets]
    absent = sets.missing([place for place in dict.fromkeys(places) if isinstance(place, str)], given.data)
    if absent:
        print("\n".join(absent), file=sys.stderr)
        print(f"{what}: not made, the page stays as it was; --sets makes a part of it", file=sys.stderr)
        return 1
    print(f"{what}: {Study(page, given).made() / what}.md")
    return 0


def parser(page) -> argparse.ArgumentParser:
    """Return the parser of a page's command line: what all have, and its settings."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = os.environ.get("SCREENPATH_DATA", ROOT.parent / "shared" / "data")
    made.add_argument("what", choices=(*PAGES, "index"), metavar="PAGE")
    made.add_argument("data", nargs="?", type=Path, default=Path(folder), help="folder with binary/, multiclass/ ...")
    made.add_argument("out", nargs="?", type=Path, default=Path("runs/papers"), help="of runs and figures' data")
    made.add_argument("--page", type=Path, help="folder of the page and its pictures; by default that of the runs")
    made.add_argument("--quick", action="store_true", help="shorter grids, fewer rows, one run of each variant")
    made.add_argument("--sets", default="", help="only these sets, comma-separated")
    made.add_argument("--table", action="append", default=[], help="only this table (again for others)")
    made.add_argument("--figure", action="append", default=[], help="only this figure (again for others)")
    made.add_argument("--repeats", type=int, help="of each variant, in alternation  [3; quick: 1]")
    for name, (full, quick, text) in (page.settings if page else {}).items():
        made.add_argument(f"--{name}", type=type(full), help=f"{text}  [{full}; quick: {quick}]")
    return made


def chosen(page, given) -> list[str]:
    """Return the titles of the page's sections that were asked for; none is all."""
    wanted = [("table", one) for one in given.table] + [("figure", one) for one in given.figure]
    found = []
    for kind, number in wanted:
        titles = [title for title in page.sections if is_of(title, kind, number)]
        if not titles:
            raise SystemExit(f"{page.name} has no {kind} {number}; it has: {', '.join(page.sections)}")
        found += titles
    return found


def is_of(title: str, kind: str, number: str) -> bool:
    """Tell whether a title such as ``Tables 3 and 6`` or ``Figures 5-8`` is of a table's or figure's number."""
    match = re.match(rf"{kind}s? ([^:]*)", title, re.IGNORECASE)
    if match is None:
        return False
    for first, last in re.findall(r"(\w+)(?:-(\w+))?", match[1].replace(" and ", " ")):
        if number == first or (last and number.isdigit() and int(first) <= int(number) <= int(last)):
            return True
    return False


if __name__ == "__main__":
    sys.exit(main())
