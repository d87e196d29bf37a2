"""What the papers' pages share: commands run within this process, tables in Markdown, and the commands beside them.

A page states what made it (version, commit, machine), where its sets come from and, below each table, the command of
each of its lines: whoever runs one again gets the same rejection. ``DATA/`` stands for the folder of data sets,
``OUT/`` for that of the results. Its record, a JSON file of the same name, has its claims (:mod:`verdicts`).
"""

from __future__ import annotations

import argparse
import csv
import datetime
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import sets
import verdicts

import screenpath
from screenpath.cli.app import run
from screenpath.cli.options import DONE, UNCERTIFIED
from screenpath.engine.studies import SPEEDUP

ROOT = Path(__file__).resolve().parents[2]
PRINTED = str(Path(__file__).with_name("printed.py"))
REJECTED, RATE = "rejected (Wang)", "rate (Ogawa)"  # of all samples; of those outside the kink
SPEEDS = (
    "data", "variant", "steps certified", "steps solved", REJECTED, RATE, "passes", "passes saved", "CPU s", "rule s",
    "Init. s", "speed-up", "published", "verdict",
)  # fmt: skip
UNSURE = "not finished"  # of a ratio whose runs did not certify every step


class Page(NamedTuple):
    """A page: what it needs, and how each of its tables and figures is made."""

    name: str
    title: str
    family: str  # of ``verdicts.FAMILIES``, "box" or "all"
    settings: dict  # by name: (value of a full page, value of a quick one, help)
    sets: dict  # by label: (place in the data folder, "made:NAME" or what returns it, *options)
    sections: dict  # by title of the paper's table or figure: function of the study
    notes: Callable  # ``notes(study) -> str``, of what was found
    thin: dict = {}  # by label: every so-many-th row is taken (full, quick)


class Study:
    """A page under way: a draft in the folder of the runs, published once it is whole.

    Parameters
    ----------
    page : Page
    given : argparse.Namespace
        ``data``, ``out``, ``page``, ``sets``, ``parts``, ``quick``, ``repeats`` and the page's settings.
    """

    def __init__(self, page: Page, given: argparse.Namespace):
        self.spec, self.given, self.name = page, given, page.name
        self.data, self.out, self.repeats = given.data, given.out / page.name, given.repeats
        self.commands: list[str] = []
        self.claims: list[dict] = []
        self.found: dict[str, Any] = {}  # what sections keep for the notes
        self.files: dict[str, tuple] = {}  # prepared sets by label, and the files that they were made of
        self.originals: dict[str, Path] = {}
        self.origins: dict[str, tuple] = {}
        self.part, self.began, self.before = "", time.process_time(), 0.0  # CPU seconds of what was found before
        self.draft = self.out / "draft"
        shutil.rmtree(self.draft, ignore_errors=True)
        self.draft.mkdir(parents=True)
        self.page, self.build = self.draft / f"{page.name}.md", build()
        self.page.write_text(f"# {page.title}\n\n{stamp(self)}\n", encoding="utf-8")

    def made(self) -> Path:
        """Make the page, or those of its parts that were asked for; return the folder where it is published.

        A part of a page stays with the runs.
        """
        parts, labels = self.given.parts, self.given.sets
        for title, section in self.spec.sections.items():
            if not parts or title in parts:
                self.part = title
                self.section(title)
                section(self)
        self._finish()
        home = self.out if parts or labels or self.given.page is None else self.given.page
        home.mkdir(parents=True, exist_ok=True)
        for one in self.draft.iterdir():
            shutil.copyfile(one, home / one.name)
        return home

    # -- words -------------------------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Write a paragraph, or a line of a table, to the page; show it as well."""
        print(text, flush=True)
        with open(self.page, "a", encoding="utf-8") as stream:
            stream.write(text + "\n")

    def section(self, title: str, text: str = "") -> None:
        """Begin a section, behind the commands of the one before."""
        self._close()
        self.say(f"\n## {title}" + (f"\n\n{text.rstrip()}" if text else ""))

    def table(self, text: str, *columns: str) -> None:
        """Begin a table behind a paragraph, and behind the commands of the one before."""
        self._close()
        self.say(f"\n{text}\n\n{line(columns)}\n|{'---|' * len(columns)}")

    def row(self, *cells) -> None:
        """Write a line of a table."""
        self.say(line(cells))

    def claim(self, what: str, published, ours, verdict: str, figure: str = "") -> str:
        """Keep a published number or statement and what came of it; return its verdict.

        ``figure`` names a figure that has a cell of its own in the index, as "Figure 8"; by default the section has.
        """
        one = {"section": self.part, "claim": what, "published": published, "ours": ours, "verdict": verdict}
        self.claims.append(one | ({"figure": figure} if figure else {}))
        return verdict

    def picture(self, draw, about: str) -> None:
        """Put a picture into the page: ``draw(folder) -> name of its file``, or None where it cannot be drawn."""
        made = draw(self.draft)
        self.say(f"\n![{about}]({made})" if made else f"\n({about}: no picture without matplotlib)")

    def _close(self) -> None:
        """Write the commands of a section below it."""
        if self.commands:
            count = f"{len(self.commands)} command" + ("s" if len(self.commands) > 1 else "")
            text = "\n".join(self.commands)
            self.say(f"\n<details><summary>{count}</summary>\n\n```\n{text}\n```\n\n</details>")
            self.commands = []

    def _finish(self) -> None:
        """End the page with its claims, its notes and its sets; write its record."""
        self.section("Claims")
        self.say("\n" + line(("of", "claim", "published", "ours", "verdict")) + "\n|---|---|---|---|---|")
        for one in self.claims:
            ours = shown(one["ours"]) if one["ours"] is not None else ""
            self.row(one["section"], one["claim"], shown(one["published"]), ours, mark(one["verdict"]))
        notes = self.spec.notes(self)
        if notes:
            self.section("Notes, computed from the tables", notes)
        if self.origins:
            self.section("Data sets", "The sha256, its first half, is that of the LIBSVM text.")
            self.say("\n" + line(("set", "sha256", "from", "licence")) + "\n|---|---|---|---|")
        for label, told in self.origins.items():
            self.row(label, *told)
        if build() != self.build:
            self.say("\nThe program was changed while this page was made: make it again.\n")
        minutes = (self.before + time.process_time() - self.began) / 60
        self.say(f"\nThis page took {minutes:.1f} minutes of a processor.")
        record = {
            "name": self.name, "title": self.spec.title, "family": self.spec.family, "quick": self.given.quick,
            "claims": self.claims, "digests": verdicts.digests(self.spec.family),
        }  # fmt: skip
        text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        (self.draft / f"{self.name}.json").write_text(text, encoding="utf-8")

    # -- data --------------------------------------------------------------------------------------------------------

    def some(self, *labels: str, whole: bool = False) -> dict:
        """Return file and options by label, of the sets that are wanted; with ``whole`` of all their rows."""
        wanted = [label for label in labels if not self.given.sets or label in self.given.sets]
        found = {label: self.set(label) for label in wanted}
        return {label: (self.originals[label], *more) for label, (_, *more) in found.items()} if whole else found

    def set(self, label: str) -> tuple:
        """Return the file of a set and its options; a generated or thinned one is made, once."""
        if label in self.files:
            return self.files[label]
        place, *options = self.spec.sets[label]
        place = place(self.given) if callable(place) else place
        how = ""
        if place.startswith("made:"):
            file, how = self._generated(place.removeprefix("made:").split())
        else:
            file = self.data / place
        every = self.spec.thin.get(label, (1, 1))[self.given.quick]
        self.origins[label] = sets.origin(place, file, how + (f"; every {every}th row" if every > 1 else ""))
        self.originals[label] = file
        self.files[label] = (thinned(file, every, self.out), *options)
        return self.files[label]

    def thin(self, file: Path, every: int) -> Path:
        """Return a copy of a file with every so-many-th row."""
        return thinned(file, every, self.out)

    def _generated(self, words: list[str]) -> tuple[Path, str]:
        """Return the file of a generated set, and the words of its command; one of an earlier build is not taken."""
        target = self.out / f"{words[0]}.libsvm"
        self.run(words[0], "generate", *words, "--seed", "0", "-o", target)
        return target, shlex.join([*words, "--seed", "0"])

    # -- commands ----------------------------------------------------------------------------------------------------

    def run(self, label: str, *words) -> None:
        """Run a command of the tool and note it; a grid point that is not certified is no reason to stop."""
        self.note(label, words)
        print(f"-- {label}: {' '.join(map(str, words))}", file=sys.stderr, flush=True)
        quiet = ["--quiet"] if words[0] != "generate" else []
        if run([*map(str, words), *quiet, "--force"]) not in (DONE, UNCERTIFIED):
            raise SystemExit(f"the command of {label} failed: {shlex.join(map(str, words))}")

    def note(self, label: str, words) -> None:
        """Keep a command for the list below its section."""
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
        words = ("compare-rules", model, file, *rules, *options, *again, "--format", "json", "-o", target)
        return self.once(name, words, lambda: json.loads(target.read_text(encoding="utf-8")))

    def path(self, name: str, model: str, file: Path, rule: str, *options) -> list[dict]:
        """Return the step table of one path, numbers as such."""
        target = self.out / name / rule.rpartition(":")[2]

        def steps():
            with open(target / "steps.csv", encoding="utf-8", newline="") as stream:
                return [{key: number(value) for key, value in row.items()} for row in csv.DictReader(stream)]

        words = (model, file, *plain(model), "--rule", rule, *options, "--coefficients", "none", "--out", target)
        return self.once(name, words, steps)

    def once(self, label: str, words: tuple, found: Callable):
        """Run a command and return what was ``found``; a page that was stopped takes what this build had found before.

        A build with changes that are not committed keeps nothing: they might be others the next time.
        """
        key = hashlib.sha256("\0".join([self.build, *map(str, words)]).encode()).hexdigest()[:16]
        kept = self.out / "found" / f"{key}.json"
        if kept.is_file():
            self.note(label, words)
            seconds, rows = json.loads(kept.read_text(encoding="utf-8"))
            self.before += seconds
            return rows
        began = time.process_time()
        self.run(label, *words)
        rows = found()
        if " " not in self.build:
            kept.parent.mkdir(exist_ok=True)
            draft = kept.with_suffix(".draft")
            draft.write_text(json.dumps([time.process_time() - began, rows]), encoding="utf-8")
            draft.replace(kept)
        return rows

    # -- tables ------------------------------------------------------------------------------------------------------

    def speeds(self, name: str, rows: list[dict], published: dict | None = None) -> dict[str, float | None]:
        """Write a line for each variant, as ``SPEEDS``; return the speed-ups, None where a run did not finish.

        Ratios are to ``none`` with the same shrinking and start. ``published`` has by variant a speed-up, or a text.
        """
        many, speedups = len({row.get("shrinking") for row in rows}) > 1, {}
        for row in rows:
            base = next(one for one in rows if alike(one, row) and one["rule"] == rows[0]["rule"])
            variant = row["rule"].rpartition(":")[2] + ("+shrinking" if many and row["shrinking"] else "")
            variant += " (cold)" if row.get("start") == "cold" else ""
            ratio = speedups[variant] = relative(base, row)
            said, verdict = (published or {}).get(variant, ""), ""
            if isinstance(said, (int, float)):
                verdict = mark(self.claim(f"speed-up, {name}, {variant}", said, ratio, verdicts.of_ratio(said, ratio)))
            self.row(
                name, variant, f"{row['certified']:.0f} of {row['points']:.0f}", f"{row['solved']:.0f}", *shares(row),
                f"{row['passes_per_step']:.1f}", saving(base, row), f"{row['cpu_s']:.3g}", f"{cpu(row, 'rule_s'):.2g}",
                f"{cpu(row, 'init_s'):.2g}", UNSURE if ratio is None else f"{ratio:.2f}", said, verdict,
            )  # fmt: skip
        return speedups

    def printed(self, cases: dict, rules: dict[str, str], column: str = "solved_rejection") -> None:
        """Write what safety costs and what ours gains: the rules as printed beside the package's, audited.

        ``cases`` has by label model, file and options, ``rules`` by the package's name the class of ``printed.py``.
        """
        what = "scaling ratio" if column == "mean_scaling" else REJECTED
        self.table(AS_PRINTED, "data", "rule", f"{what}: printed", "ours", "ours - printed", "unsafe: printed", "ours")
        for label, (model, file, *options) in cases.items():
            names = ",".join(f"{ours},{PRINTED}:{name}" for ours, name in rules.items())
            rows = self.compare(label, model, file, names, *options, "--audit", "--repeats", 1)
            for ours, theirs in zip(rows[::2], rows[1::2], strict=True):
                if not ours["solved"]:
                    continue
                rule, gain = ours["rule"], ours[column] - theirs[column]
                self.found.setdefault("printed", []).append((label, rule, theirs, ours, gain))
                both = f"{theirs[column]:.3f}", f"{ours[column]:.3f}", f"{gain:+.3f}"
                self.row(
                    label, rule, *both, *("-" if one["unsafe"] is None else one["unsafe"] for one in (theirs, ours))
                )

    def printed_notes(self) -> str:
        """Return what the comparison with the printed rules shows."""
        found = self.found.get("printed", [])
        if not found:
            return ""
        unsafe, ours = sum(one[2]["unsafe"] or 0 for one in found), sum(one[3]["unsafe"] or 0 for one in found)
        most, least = max(found, key=lambda one: one[4]), min(found, key=lambda one: one[4])
        return (
            f"- **Printed and ours**, {len(found)} comparisons: from {least[4]:+.3f} ({least[1]} on {least[0]}: what "
            f"safety costs) to {most[4]:+.3f} ({most[1]} on {most[0]}). Unsafe decisions: {unsafe} of the printed "
            f"rules, {ours} of ours.\n"
        )


AS_PRINTED = """\
The rules **as printed** (`examples/papers/printed.py`) beside ours, on the same references. The printed rules take
these for exact; ours hold for any reference. Means over the solved steps; `unsafe` counts decisions that an audit
disproves."""


def mark(verdict: str) -> str:
    """Return a verdict with its colour."""
    return f"{verdicts.SIGNS[verdict]} {verdict}"


def shown(value) -> str:
    """Return a number with three digits, and a text as it is."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def shares(row: dict) -> tuple[str, str]:
    """Return both shares of a row of a comparison, means over the solved steps; dashes where none was solved."""
    if not row["solved"]:
        return "-", "-"
    return f"{row['solved_rejection']:.3f}", f"{row['solved_rate']:.3f}"


def cpu(row: dict, *parts: str) -> float:
    """Return CPU seconds of parts of a path: by the clock, others would count who use the machine."""
    return row["cpu_s"] * sum(row[part] for part in parts) / row["total_s"]


def saving(base: dict, row: dict) -> str:
    """Return the ratio of passes over the data."""
    return f"{base['passes_per_step'] / row['passes_per_step']:.1f}" if row["passes_per_step"] else "-"


def plain(model: str) -> tuple[str, ...]:
    """Return the words by which a command has no intercept, as in the papers."""
    return () if model == "l1svm" else ("--intercept", "none")


def alike(a: dict, b: dict) -> bool:
    """Tell whether two variants differ in the rule alone."""
    return a.get("shrinking") == b.get("shrinking") and a.get("start") == b.get("start")


def whole(*rows: dict) -> bool:
    """Tell whether every step of every variant is certified."""
    return all(row["certified"] == row["points"] for row in rows)


def relative(base: dict, row: dict) -> float | None:
    """Return a speed-up against another variant than the first, the two speed-ups' ratio; None if one is unfinished."""
    if not whole(base, row):
        return None
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


def solved(steps: list[dict]) -> list[dict]:
    """Return the steps that needed a solve: the others, in closed form or constant, tell nothing of a rule."""
    return [step for step in steps if step["solver"] not in ("closed-form", "constant")]


def mean(steps: list[dict], column: str) -> float:
    """Return the mean of a column over the steps that needed a solve; 0 if none did."""
    left = solved(steps)
    return sum(step[column] for step in left) / max(len(left), 1)


def thinned(file: Path, every: int, folder: Path) -> Path:
    """Return a copy of a LIBSVM file with every so-many-th row, or the file itself for 1."""
    if every == 1:
        return file
    target = folder / f"{file.name.split('.')[0]}-every-{every}.libsvm"
    target.write_bytes(b"".join(sets.content(file).splitlines(keepends=True)[::every]))
    return target


def build() -> str:
    """Return the commit of the program and of the pages' scripts, and whether they are as committed."""

    def git(*words):
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    of_program = ("screenpath", "examples/papers", ":!examples/papers/results")  # pages made before are no change
    changed = git("status", "--porcelain", "--", *of_program)
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (" with changes" if changed else "")


def stamp(study: Study) -> str:
    """Return what made a page: build, machine, and the definitions of its columns."""
    given, load = study.given, f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    smaller = {name: full for name, (full, quick, _) in study.spec.settings.items() if full != quick}
    changed = ", ".join(f"{name} {getattr(given, name)} (full page: {full})" for name, full in smaller.items())
    thin = ", ".join(f"{label} {quick} (full page: {full})" for label, (full, quick) in study.spec.thin.items())
    rows = f"; every so-many-th row of: {thin}" if thin else ""
    runs = f"repeats {given.repeats}, unless a command has another number"
    quick = f"**Made with `--quick`**: {changed}{rows}; {runs}.\n\n" if given.quick else ""
    return (
        f"screenpath {screenpath.__version__}, commit {study.build}, {datetime.date.today()}; made by "
        f"`examples/papers/reproduce.py {study.name}` (`make papers`). One thread of {os.cpu_count()} processors, "
        f"whose load was {load} when it began: above 1 others used the machine; times are worth less than ratios.\n\n"
        f"{quick}{SPEEDUP} A ratio of a run that did not certify every step is none: *{UNSURE}*.\n\n"
        f"`{REJECTED}` is the share of all samples that the rule fixes before the solve, the rejection ratio of Wang "
        f"2014; `{RATE}` is their share of the samples outside the kink, the screening rate of Ogawa 2014. Both are "
        "means over the steps that needed a solve: steps in closed form, or constant, tell nothing of a rule. `passes` "
        "are rows touched over rows in the data, a step; `rule s` is the rule's part of the CPU seconds, `Init. s` "
        "that of the first step and of what a rule needs beforehand. Verdicts: see the [index](README.md)."
    )
