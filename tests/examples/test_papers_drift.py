"""The papers' pages still hold: commands that they name are run again, and reject what the page says.

Rejection depends neither on the machine nor on its load; a page whose figures a rerun does not give was made by another
program, and ``make papers`` makes it anew.
"""

import csv
import json
import re
import shlex

import pytest

from screenpath.cli.app import run
from screenpath.cli.options import DONE, UNCERTIFIED
from tests.conftest import ROOT

PAGES = ROOT / "examples" / "papers" / "results"
NEAR = 0.003  # a page has three digits, and a solver's last digits are those of the processor

# page, section, first cells of the line, cell of the figure, label and words of its command, how the figure is got
CHECKS = [
    ("wang2014", "Table 1:", ("toy1", "dvi"), 4, "toy1", (), "dvi"),
    ("wang2014", "Table 2:", ("wine", "essnsv"), 4, "wine", (), "essnsv"),
    ("wang2014", "Table 3:", ("cpusmall", "dvi"), 4, "cpusmall", (), "dvi"),
    ("wang2014", "Figure 2:", ("wine", "dvi"), 2, "wine", ("--rule dvi",), "rejection_ratio"),
    ("ogawa2013", "Table 1:", ("toy", "essnsv", "warm"), 4, "toy", (), "essnsv"),
    ("ogawa2013", "Figures 5-8", ("bcd", "essnsv", "C"), 3, "bcd", ("--rule essnsv", "-form C"), "rejection_ratio"),
    ("ogawa2013", "Figures 5-8", ("magic04", "ssnsv", "s"), 3, "magic04", ("--rule ssnsv", "-form s"),
     "rejection_ratio"),
    ("ogawa2014_linear", "Figure 4:", ("bcd", "0.9"), 4, "bcd", ("--rule it", "--reference 9 "),
     "screening_rate of the last"),
    ("ogawa2014_linear", "Figure 5:", ("mushrooms",), 3, "mushrooms", ("--rule bt1",), "screening_rate"),
    ("ogawa2014_kernel", "Figure 4:", ("bcd, 1/d", "0.9"), 4, "bcd, 1/d", ("--rule it", "--reference 9 "),
     "screening_rate of the last"),
    ("hong2019", "Figures 1-1", ("syn1",), 3, "syn1", ("--rule sifs",), "scaling_ratio of all"),
    ("zhao2014", "Tables 2-4", ("pcmac", "real-sim", "scr"), 15, "pcmac", (), "scr"),
    ("zhao2014", "Tables 2-4", ("pcmac", "real-sim", "default"), 15, "pcmac", (), "default"),
]  # fmt: skip
SAMPLES = {"DATA/binary/breast_cancer.libsvm.gz": ROOT / "data_samples" / "breast_cancer.libsvm.gz"}


def section_of(page: str, title: str) -> list[str]:
    """Return the lines of a section of a page."""
    parts = page.split("\n## ")
    return next(part for part in parts if part.startswith(title)).splitlines()


def command_of(lines, label: str, words) -> list[str]:
    """Return the command that a section names for a line, without ``screenpath``."""
    start = f"{label}: screenpath "
    found = [line for line in lines if line.startswith(start) and all(word in line for word in words)]
    return shlex.split(found[0].removeprefix(start))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: "-".join((check[0], *check[2])))
def test_a_figure_of_the_page_is_that_of_a_rerun(check, tmp_path, request):
    page, title, start, cell, label, words, kind = check
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    lines = section_of(text, title)
    row = next(line for line in lines if line.startswith("| " + " | ".join(start) + " |"))
    said = float(row.strip("|").split("|")[cell])
    command = command_of(lines, label, words)
    for k, word in enumerate(command):
        if word.startswith("OUT/"):  # a generated set, by the command that the page has for it
            command[k] = str(tmp_path / "set")
            made = command_of(text.splitlines(), word.removeprefix("OUT/").removesuffix(".libsvm"), ("generate",))
            assert run([*made[: made.index("-o")], "-o", command[k]]) == DONE
        elif word.startswith("DATA/"):
            known = SAMPLES.get(word)
            command[k] = str(known or request.getfixturevalue("shared_data") / word.removeprefix("DATA/"))
    found = rerun(command, kind, tmp_path)
    assert found == pytest.approx(said, abs=NEAR * max(1.0, said)), f"{' '.join(command)}: make papers"


def rerun(command, kind: str, tmp_path) -> float:
    """Return the figure of a command: of a variant of a comparison, or of a column of a path's steps."""
    if command[0] != "compare-rules":
        out = tmp_path / "run"
        assert run([*command, "--coefficients", "none", "--quiet", "--out", str(out)]) in (DONE, UNCERTIFIED)
        with open(out / "steps.csv", newline="") as stream:
            steps = list(csv.DictReader(stream))
        needed = [step for step in steps if step["solver"] not in ("closed-form", "constant")]
        values = [float(step[kind.split()[0]]) for step in (steps if " of " in kind else needed)]
        return values[-1] if kind.endswith("of the last") else sum(values) / len(values)
    option = "--configurations" if "--configurations" in command else "--rules"
    command[command.index(option) + 1] = kind  # what the others do is not in the figure
    command[command.index("--repeats") + 1] = "1"
    if "--start" in command:
        command[command.index("--start") + 1] = "warm"
    assert run([*command, "--format", "json", "-o", str(tmp_path / "table"), "--quiet"]) in (DONE, UNCERTIFIED)
    row = json.loads((tmp_path / "table").read_text())[0]
    return row["over_hits" if option == "--configurations" else "solved_rejection"]


def test_every_page_names_its_build():
    for record in sorted(PAGES.glob("*.json")):
        page = record.with_suffix(".md").read_text(encoding="utf-8")
        assert page.splitlines()[2].startswith("screenpath ") and ", commit " in page, record


def test_every_picture_is_on_its_page():
    linked = {
        name for page in PAGES.glob("*.md") for name in re.findall(r"\]\(([^)/]+\.(?:svg|png))\)", page.read_text())
    }
    assert linked == {file.name for file in PAGES.iterdir() if file.suffix not in (".md", ".json")}
