"""Rows of the papers' tables, in Markdown, from what ``screenpath`` wrote.

``tables.py title PAPER``: what the numbers are and which version made them.
``tables.py head [--single]``: the header of the table of speed-ups.
``tables.py speedups FILE.json --set NAME --solver S --published dvi=5.64``: its rows, from ``screenpath compare``.
``--single``: of one problem screened from one reference (``--c``, ``--reference``).
``tables.py curves FOLDER --rules "dvi it" --column rejection_ratio --csv FILE``: a column of the step tables
``FOLDER/RULE/steps.csv`` against C; all points to FILE, nine of them in Markdown.

Every time is divided by the one without screening, of the same solver with the same shrinking, in the same process:
ratios are all that can be set beside a paper's.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

from screenpath import __version__

COLUMNS = (
    "set", "solver", "rule", "speed-up", "published", "data passes, none / rule", "mean rejection", "rule / total",
    "Init. / total", "certified",
)  # fmt: skip
SINGLE = ("set", "solver", "rule", "speed-up", "published", "certified")
SHOWN = 9  # points of a curve in Markdown


def line(cells) -> str:
    """Return one line of a Markdown table."""
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def head(columns=COLUMNS, text: int = 3) -> str:
    """Return a table's header; all but the first ``text`` columns are numbers."""
    return line(columns) + "\n|" + "---|" * text + "---:|" * (len(columns) - text)


def title(paper: str) -> str:
    """Return the first lines of a page of results."""
    return (
        f"# {paper}\n\n"
        f"screenpath {__version__}. Speed-up: time of the whole path without screening over the time with the rule, "
        "same solver, same\nshrinking, same tolerance, in one process on a busy machine. Only ratios are kept, good to "
        "perhaps half, worse where\nthe path is short; the ratio of the data passes does not depend on the machine. "
        "The published ratios are of\nother solvers and machines.\n"
    )


def solver_name(solver: str, shrinking: bool) -> str:
    """Return how the rows name a solver; only coordinate descent shrinks."""
    if solver != "cd":
        return f"{solver} (default)" if solver == "auto" else solver
    return "cd, shrinking" if shrinking else "cd"


def published_for(row: dict, published: dict) -> str:
    """Return the paper's ratio for a row: ``RULE+shrinking`` where it has one for that, else ``RULE``."""
    either = published.get(row["rule"], "–")
    return published.get(f"{row['rule']}+shrinking", either) if row["shrinking"] else either


def singles(table, name: str, solver: str, published: dict) -> list[str]:
    """Return the rows of a single problem screened from one reference, whose own solution ("Init.") does not count."""
    seconds = {(row["rule"], row["shrinking"]): row["total_s"] - row["init_s"] for row in table}
    return [
        line(
            [
                name,
                solver_name(solver, row["shrinking"]),
                row["rule"],
                f"{seconds['none', row['shrinking']] / seconds[row['rule'], row['shrinking']]:.1f}",
                published_for(row, published),
                f"{row['certified']} of {row['points']}",
            ]
        )
        for row in table
        if row["rule"] != "none"
    ]


def speedups(table, name: str, solver: str, label: str, published: dict) -> list[str]:
    """Return the rows of one comparison; each rule against ``none`` with the same shrinking."""
    plain = {row["shrinking"]: row for row in table if row["rule"] == "none"}
    lines = []
    for row in table:
        if row["rule"] == "none":
            if row["certified"] != row["points"]:
                cells = [name, solver_name(solver, row["shrinking"]), "none", 1, "–", 1, 0, "–", "–"]
                lines.append(line([*cells, f"{row['certified']} of {row['points']}"]))
            continue
        base = plain[row["shrinking"]]
        cells = [
            name,
            solver_name(solver, row["shrinking"]),
            row["rule"] + (f", {label}" if label else ""),
            f"{base['total_s'] / row['total_s']:.1f}",
            published_for(row, published),
            f"{base['passes'] / row['passes']:.1f}",
            f"{row['mean_rejection']:.3f}",
            f"{row['rule_s'] / row['total_s']:.3f}",
            f"{row['init_s'] / row['total_s']:.3f}",
            f"{row['certified']} of {row['points']}",
        ]
        lines.append(line(cells))
    return lines


def curves(folder: Path, name: str, rules: list[str], column: str, target: Path) -> list[str]:
    """Write a column of each rule's step table against C, and return some of its points as a table."""
    found = {}
    for rule in rules:
        with open(folder / rule / "steps.csv", newline="") as file:
            found[rule] = [(row["C"], float(row[column])) for row in csv.DictReader(file)]
    grid = [C for C, _ in found[rules[0]]]
    if any([C for C, _ in points] != grid for points in found.values()):
        raise SystemExit(f"{folder}: the rules' grids differ")
    with open(target, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["C", *rules])
        writer.writerows([C, *(found[rule][k][1] for rule in rules)] for k, C in enumerate(grid))
    ranks = sorted({round(k * (len(grid) - 1) / (SHOWN - 1)) for k in range(SHOWN)})
    lines = [head([f"{name}: {column}, C =", *(f"{float(grid[k]):.3g}" for k in ranks)], text=1)]
    lines += [line([rule, *(f"{found[rule][k][1]:.3f}" for k in ranks)]) for rule in rules]
    return [*lines, ""]


def pairs(text: str) -> dict:
    """Return ``{"dvi": "5.64"}`` of ``dvi=5.64``."""
    return dict(part.split("=") for part in text.split(",") if part)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    parts.add_parser("title").add_argument("paper")
    parts.add_parser("head").add_argument("--single", action="store_true")
    rows = parts.add_parser("speedups")
    rows.add_argument("file", type=Path)
    rows.add_argument("--solver", required=True)
    rows.add_argument("--label", default="", help="appended to the rule's name")
    rows.add_argument("--published", type=pairs, default={}, help="speed-ups of the paper: RULE=NUMBER,...")
    rows.add_argument("--single", action="store_true", help="only the second of two points")
    lines = parts.add_parser("curves")
    lines.add_argument("folder", type=Path)
    lines.add_argument("--column", default="rejection_ratio")
    lines.add_argument("--rules", required=True, type=str.split)
    lines.add_argument("--csv", required=True, type=Path)
    for part in (rows, lines):
        part.add_argument("--set", required=True)
    given = parser.parse_args()
    if given.part == "title":
        print(title(given.paper))
    elif given.part == "head":
        print(head(SINGLE if given.single else COLUMNS))
    elif given.part == "speedups":
        table = json.loads(given.file.read_text())
        if given.single:
            print(*singles(table, given.set, given.solver, given.published), sep="\n")
        else:
            print(*speedups(table, given.set, given.solver, given.label, given.published), sep="\n")
    else:
        print(*curves(given.folder, given.set, given.rules, given.column, given.csv), sep="\n")


if __name__ == "__main__":
    main()
