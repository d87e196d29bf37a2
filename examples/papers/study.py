"""What the papers' pages share: commands run within this process, tables in Markdown, and the commands beside them.

A page states what made it (version, commit, machine) and, below each table, the command of each of its lines: whoever
runs one again gets the same rejection. ``DATA/`` stands for the folder of data sets, ``OUT/`` for that of the results.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import screenpath
from screenpath.cli.app import run
from screenpath.cli.options import DONE, UNCERTIFIED
from screenpath.engine.studies import SPEEDUP

ROOT = Path(__file__).resolve().parents[2]
SPEEDS = (
    "data",
    "variant",
    "points certified",
    "rejection",
    "passes",
    "passes saved",
    "CPU s",
    "rule s",
    "Init. s",
    "speed-up",
    "published",
)


def arguments(about: str, **settings) -> argparse.Namespace:
    """Return what the command line of a page's script says.

    Parameters
    ----------
    about : str
        Documentation of the script.
    **settings
        Further options, ``name=(default, help)``.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = os.environ.get("SCREENPATH_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("data", nargs="?", type=Path, default=Path(folder), help="folder with binary/, multiclass/ ...")
    parser.add_argument("out", nargs="?", type=Path, default=Path("runs/papers"), help="of runs and figures' data")
    parser.add_argument("--page", type=Path, help="folder of the page and its pictures; by default that of the runs")
    parser.add_argument("--sets", default="", help="only these sets, comma-separated")
    parser.add_argument("--repeats", type=int, default=3, help="of each variant, in alternation")
    for name, (default, text) in settings.items():
        kind = str if default is None else type(default)
        parser.add_argument(f"--{name}", type=kind, default=default, help=f"{text}  [{default}]")
    return parser.parse_args()


class Study:
    """A page under way: a draft in the folder of the runs, published once it is whole.

    Parameters
    ----------
    name, title : str
        Of the page.
    given : argparse.Namespace
        See :func:`arguments`.
    """

    def __init__(self, name: str, title: str, given: argparse.Namespace):
        self.name, self.data, self.out, self.repeats = name, given.data, given.out / name, given.repeats
        self.only = [one for one in given.sets.split(",") if one]
        self.commands: list[str] = []
        self.missing: list[str] = []
        self.draft, self.home = self.out / "draft", given.page or self.out
        shutil.rmtree(self.draft, ignore_errors=True)
        self.draft.mkdir(parents=True)
        self.page, self.build = self.draft / f"{name}.md", build()
        self.page.write_text(f"# {title}\n\n{stamp(name, self.build)}\n", encoding="utf-8")

    def say(self, text: str) -> None:
        """Write a paragraph, or a line of a table, to the page; show it as well."""
        print(text, flush=True)
        with open(self.page, "a", encoding="utf-8") as stream:
            stream.write(text + "\n")

    def section(self, title: str, text: str = "") -> None:
        """Begin a section, behind the commands of the one before."""
        self.close()
        self.say(f"\n## {title}\n" + (f"\n{text}\n" if text else ""))

    def close(self) -> None:
        """Write the commands of a section below it."""
        if self.commands:
            count = f"{len(self.commands)} command" + ("s" if len(self.commands) > 1 else "")
            text = "\n".join(self.commands)
            self.say(f"\n<details><summary>{count}</summary>\n\n```\n{text}\n```\n\n</details>")
            self.commands = []

    def finish(self, notes: str) -> None:
        """End the page with its notes, and publish it with its pictures; one that was not finished stays a draft."""
        self.section("What does not reproduce, and why", notes.rstrip("\n"))
        self.close()
        if self.missing:
            self.say(f"Left out, since the data are not at hand: {', '.join(self.missing)}.\n")
        if build() != self.build:
            self.say("The program was changed while this page was made: make it again.\n")
        self.say(f"This page took {time.process_time() / 60:.1f} minutes of a processor.")
        self.home.mkdir(parents=True, exist_ok=True)
        for made in self.draft.iterdir():
            shutil.copyfile(made, self.home / made.name)

    def header(self, *columns: str) -> None:
        """Begin a table."""
        self.say(line(columns) + "\n" + "|" + "---|" * len(columns))

    def picture(self, draw, about: str) -> None:
        """Put a picture into the page: ``draw(folder) -> name of its file``, or None where it cannot be drawn."""
        made = draw(self.draft)
        self.say(f"\n![{about}]({made})\n" if made else f"\n({about}: no picture without matplotlib)\n")

    # -- data --------------------------------------------------------------------------------------------------------

    def there(self, name: str, file: Path) -> bool:
        """Tell whether a set is wanted and there; say so where it is not there."""
        if self.only and name not in self.only:
            return False
        if not file.is_file() and name not in self.missing:
            print(f"{name}: left out, {file} is not there", flush=True)
            self.missing.append(name)
        return file.is_file()

    def made(self, name: str, *options) -> Path:
        """Return the file of a generated set; one of an earlier build is not taken."""
        target = self.out / f"{name}.libsvm"
        self.run(name, "generate", name, "--seed", "0", *options, "-o", target)
        return target

    def thinned(self, file: Path, every: int) -> Path:
        """Return a copy of a LIBSVM file with every so-many-th row, or the file itself for 1."""
        if every == 1 or not file.is_file():
            return file
        import gzip

        target = self.out / f"{file.name.split('.')[0]}-every-{every}.libsvm"
        with gzip.open(file, "rt") as rows:
            target.write_text("".join(row for k, row in enumerate(rows) if k % every == 0))
        return target

    # -- commands ----------------------------------------------------------------------------------------------------

    def run(self, label: str, *words) -> None:
        """Run a command of the tool and note it; a grid point that is not certified is no reason to stop."""
        self._note(label, words)
        print(f"-- {label}: {' '.join(map(str, words))}", file=sys.stderr, flush=True)
        quiet = ["--quiet"] if words[0] != "generate" else []
        if run([*map(str, words), *quiet, "--force"]) not in (DONE, UNCERTIFIED):
            raise SystemExit(f"the command of {label} failed: {shlex.join(map(str, words))}")

    def _note(self, label: str, words) -> None:
        words = [str(word) for word in words]
        for of_script in ("--format", "--coefficients"):  # where its files go is of no use to a reader
            words = words[: words.index(of_script)] if of_script in words else words
        text = shlex.join(words)
        text = text.replace(f"{self.out}/", "OUT/").replace(f"{self.data}/", "DATA/").replace(f"{ROOT}/", "")
        said = f"{label}: screenpath {text}"
        if said not in self.commands:
            self.commands.append(said)

    def compare(self, name: str, model: str, file: Path, rules: str, *options) -> list[dict]:
        """Return the table of ``compare-rules``; rules are configurations of the L1-regularised model."""
        target = self.out / "comparison.json"
        rules = (*plain(model), "--configurations" if model == "l1svm" else "--rules", rules)
        again = ("--repeats", self.repeats) if "--repeats" not in options else ()
        self.run(name, "compare-rules", model, file, *rules, *options, *again, "--format", "json", "-o", target)
        return json.loads(target.read_text(encoding="utf-8"))

    def path(self, name: str, model: str, file: Path, rule: str, *options) -> list[dict]:
        """Return the step table of one path, numbers as such."""
        target = self.out / name / rule
        self.run(name, model, file, *plain(model), "--rule", rule, *options, "--coefficients", "none", "--out", target)
        with open(target / "steps.csv", encoding="utf-8", newline="") as stream:
            return [{key: number(value) for key, value in row.items()} for row in csv.DictReader(stream)]

    # -- tables ------------------------------------------------------------------------------------------------------

    def speeds(self, name: str, rows: list[dict], published: dict | None = None) -> None:
        """Write a line for each variant, as ``SPEEDS``; ratios are to ``none`` with the same shrinking and start."""
        many = len({row.get("shrinking") for row in rows}) > 1
        for row in rows:
            base = next(one for one in rows if alike(one, row) and one["rule"] == rows[0]["rule"])
            variant = row["rule"] + ("+shrinking" if many and row["shrinking"] else "")
            variant += " (cold)" if row.get("start") == "cold" else ""
            self.say(
                line(
                    (
                        name,
                        variant,
                        f"{row['certified']:.0f} of {row['points']:.0f}",
                        f"{row['mean_rejection']:.3f}",
                        f"{row['passes_per_step']:.1f}",
                        f"{base['passes_per_step'] / row['passes_per_step']:.1f}",
                        f"{row['cpu_s']:.3g}",
                        f"{row['rule_s']:.2g}",
                        f"{row['init_s']:.2g}",
                        f"{relative(base, row, rows):.2f}",
                        (published or {}).get(variant, ""),
                    )
                )
            )


def plain(model: str) -> tuple[str, ...]:
    """Return the words by which a command has no intercept, as in the papers."""
    return () if model == "l1svm" else ("--intercept", "none")


def alike(a: dict, b: dict) -> bool:
    """Tell whether two variants differ in the rule alone."""
    return a.get("shrinking") == b.get("shrinking") and a.get("start") == b.get("start")


def relative(base: dict, row: dict, rows: list[dict]) -> float:
    """Return a speed-up against another variant than the first: the two speed-ups' ratio."""
    return 1.0 if row is base else row["speedup"] / base["speedup"]


def line(cells) -> str:
    """Return a line of a Markdown table."""
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def number(text: str):
    """Return a cell of a step table as a number, where it is one."""
    try:
        return float(text)
    except ValueError:
        return text


def mean(steps: list[dict], column: str) -> float:
    """Return the mean of a column of a step table."""
    return sum(step[column] for step in steps) / len(steps)


def build() -> str:
    """Return the commit of the program and of the pages' scripts, and whether they are as committed."""

    def git(*words):
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    of_program = ("screenpath", "examples/papers", ":!examples/papers/results")  # pages made before are no change
    changed = git("status", "--porcelain", "--", *of_program)
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (" with changes" if changed else "")


def stamp(name: str, commit: str) -> str:
    """Return what made a page: build, machine, and the one definition of a speed-up."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return (
        f"screenpath {screenpath.__version__}, commit {commit}, {datetime.date.today()}; made by "
        f"`examples/papers/{name}.py` (`make papers`). One thread of {os.cpu_count()} processors, whose load was "
        f"{load} when it began: where that is above 1 others used the machine, and times are worth less than ratios."
        f"\n\n{SPEEDUP} "
        "`passes` are rows touched over rows in the data, a grid point; `rule s` is the rule's part of the time and "
        "`Init. s` that of the first point and of what a rule needs beforehand. Rejection is the share of the "
        "samples outside the kink that the rule fixes before the solve, mean over the path; it does not depend on the "
        "machine."
    )
