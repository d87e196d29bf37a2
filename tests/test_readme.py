"""The Python of the README and the guide runs, and what they say about options, columns and files is true."""

import doctest
import re
import subprocess
from pathlib import Path

import click
import pytest

from screenpath.api import paths as api
from screenpath.cli.app import COMMANDS, cli
from screenpath.data.files import libsvm, read
from screenpath.screen import STATIC, parse_rule
from screenpath.solve import NAMES
from screenpath.walk.step import COLUMNS
from tests.conftest import ROOT

GALLERY = ROOT / "examples" / "gallery"
PAGES = [ROOT / "README.md", *sorted((ROOT / "examples" / "guide").glob("*.md")), *sorted(GALLERY.glob("*.md"))]
SLURM = ("--parsable", "--array", "--dependency", "--wrap")  # of sbatch
DASK = ("--nworkers", "--nthreads", "--memory-limit", "--port", "--no-dashboard", "--host")  # of dask
TEXT = "\n".join(page.read_text() for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_python_of_a_page(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert doctest.testfile(str(page), module_relative=False).failed == 0


def test_some_pages_have_python():
    assert sum(">>> " in page.read_text() for page in PAGES) >= 3


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
    if page.name == "README.md":
        assert links


def test_every_page_is_reached_from_the_front_page():
    front = PAGES[0].read_text()
    index = (GALLERY / "README.md").read_text()
    missing = [page for page in PAGES[1:] if page.stem != "README" and f"{page.parent.name}/{page.name}" not in front]
    assert [page for page in missing if page.parent != GALLERY or f"({page.name})" not in index] == []
    assert "(examples/gallery/README.md)" in front
    assert len(front.split()) <= 900


def test_python_examples():
    assert doctest.testmod(api).failed == 0
    assert doctest.testmod(libsvm).failed == 0
    assert doctest.testmod(read).failed == 0


def test_commands_rules_solvers_and_columns_are_documented():
    for name in COMMANDS:
        assert f"screenpath {name}" in TEXT
    for name in (*STATIC, *NAMES, *COLUMNS):
        assert f"`{name}`" in TEXT, name
    for rule in ("none", "gap", *STATIC, *(f"{name}+gap" for name in STATIC)):
        parse_rule(rule)


def test_commands_can_be_pasted_with_the_words_beside_them():
    """What stands beside a command, two blanks or more away, is a comment of the shell."""
    lines = re.findall(r"^(?:screenpath|python) .*\S {2,}.*$", TEXT, re.MULTILINE)
    assert len(lines) > 40 and [line for line in lines if not re.search(r" {2,}# ", line)] == []


def test_options_that_are_named_exist():
    known = {"--version", "--help", "--help-all", "--out", *SLURM, *DASK}
    with click.Context(cli) as context:
        commands = [cli.get_command(context, name) for name in COMMANDS]
        commands += [
            c.get_command(context, n) for c in commands if isinstance(c, click.Group) for n in c.list_commands(context)
        ]
        for command in commands:
            known |= {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", TEXT))
    assert used <= known, used - known


def test_who_inherits_the_repository_finds_its_parts():
    """Folders, rooms, commands of make and folders of tests are named where somebody looks for them."""
    guide, tests = ((ROOT / name).read_text() for name in ("CONTRIBUTING.md", "tests/README.md"))
    named = guide + PAGES[0].read_text()
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    if not listed:
        pytest.skip("not a checkout of git")
    folders = {path.parts[:k] for path in map(Path, listed) for k in (1, 2) if len(path.parts) > k}
    tops = {one[0] for one in folders} | {"/".join(one) for one in folders if one[0] == "examples" and len(one) == 2}
    assert {one for one in tops - {"examples"} if f"`{one}`" not in guide and f"`{one}/" not in guide} == set()
    assert {one[1] for one in folders if one[0] == "tests" and len(one) == 2 and f"`{one[1]}`" not in tests} == set()
    targets = re.search(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    assert {one for one in targets if f"make {one}" not in named} - {"clean"} == set()
    links = re.findall(r"\]\(([^)#:]+)\)", guide)
    assert links and [link for link in links if not (ROOT / link).exists()] == []


def test_the_first_screen_has_the_passes_of_its_table():
    front = PAGES[0].read_text()
    samples, passes = re.search(r"reading ([\d,]+) raw, badly\s+scaled\s+samples (\d+) times", front).groups()
    (row,) = [line.split("|") for line in front.splitlines() if line.startswith("| ijcnn1")]
    assert row[2].split()[0] == samples and row[3].strip() == passes
