"""What the page on stability promises is there, and is what the program does."""

import json
import re
from importlib.metadata import PackageNotFoundError, distribution

import click
import pytest

import screenpath
from screenpath import errors
from screenpath.cli.app import EPILOG
from tests.architecture.stubs import PREVIEW, names
from tests.conftest import ROOT

SCHEMAS = ROOT / "schemas"
PAGE = (ROOT / "examples" / "guide" / "stability.md").read_text()
EXTRAS = (ROOT / "examples" / "guide" / "tables.md").read_text().partition("## Extras")[2].partition("\n## ")[0]
PROJECT = (ROOT / "pyproject.toml").read_text()
FOR_DEVELOPERS = {"test", "docs", "bench"}


def test_promised_names_are_still_there():
    """A minor release adds names; where one has gone, the promise is broken (`stubs.py names` with a major release)."""
    promised, found = json.loads((SCHEMAS / "names.json").read_text()), names()
    assert len(promised) > 70
    gone = {name: set(words) - set(found.get(name, ())) for name, words in promised.items()}
    assert [name for name in promised if name not in found] == []
    assert {name: words for name, words in gone.items() if words} == {}


def test_names_are_found_out(monkeypatch):
    """The list of names notices what goes."""
    full = names()
    assert "--grid" in full["screenpath svm"] and "X" in full["screenpath.svm_path"]
    assert {"grid", "frame", "predict"} <= set(full["screenpath.PathResult"])
    monkeypatch.setattr(screenpath, "_HOMES", {k: v for k, v in screenpath._HOMES.items() if k != "svm_path"})
    assert set(full) - set(names()) == {"screenpath.svm_path"}


def test_exit_codes_are_those_of_the_help():
    told = re.findall(r"^  (\d+) +(\S)", EPILOG, re.MULTILINE)
    assert [code for code, _ in told] == re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)
    assert (errors.ScreenpathError.exit_code, errors.UsageError.exit_code) == (1, 2) and click.UsageError.exit_code == 2


def test_every_schema_is_on_the_page():
    files = {file.name for file in SCHEMAS.iterdir()}
    assert files == set(re.findall(r"`(\w+\.(?:schema\.json|table\.json)|names\.json)`", PAGE))


def test_previews_say_so():
    part = PAGE.partition("## Preview")[2].partition("\n## ")[0]
    pages = re.findall(r"\]\(([\w-]+\.md)", part)
    assert len(pages) == len(re.findall(r"^- ", part, re.MULTILINE)) > 0
    for page in pages:
        assert "(stability.md#preview)" in (ROOT / "examples" / "guide" / page).read_text(), page
    promised = json.loads((SCHEMAS / "names.json").read_text())
    for name in PREVIEW:
        assert f"`{name.removesuffix('_run')}`" in part.replace("predict ", ""), name
        assert not {f"screenpath {name}", f"screenpath.{name}"} & set(promised), name
        assert not any(name in words for words in promised.values()), name


def licence_of(package: str) -> str:
    """Return what an installed package says of its licence: its description, and the beginning of the file."""
    installed = distribution(package)
    about = installed.metadata
    kinds = [kind for kind in about.get_all("Classifier") or () if kind.startswith("License")]
    files = [file.read_text()[:200] for file in installed.files or () if file.name == "LICENSE"]
    return " ".join((about.get("License-Expression") or "", *kinds, about.get("License") or "", *files))


def test_the_licences_of_the_table_are_those_of_the_packages():
    found = {}
    for packages, cell in re.findall(r"^\| (?:\(none\)|`\w+`) \|[^|]*\| ([^|]*) \| ([^|]*) \|", EXTRAS, re.MULTILINE):
        names, licences = packages.split(", "), cell.split(", ")
        own = dict(re.findall(r"(\w+) ([\w-]+)", cell.partition(";")[2]))
        for k, name in enumerate(names):
            licence = own.get(name) or licences[k if len(licences) == len(names) else 0].partition(";")[0]
            family = {"PSF": "Python Software Foundation"}.get(licence.partition("-")[0], licence.partition("-")[0])
            try:
                found[name] = family in licence_of(name.partition("[")[0]) or licence
            except PackageNotFoundError:
                continue
    assert len(found) >= 5 and {name: wrong for name, wrong in found.items() if wrong is not True} == {}


def test_extras_stand_in_one_table():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no reader of TOML")
    project = tomllib.loads(PROJECT)["project"]
    extras = project["optional-dependencies"]
    needed = {"(none)": project["dependencies"], **{f"`{name}`": extras[name] for name in set(extras) - FOR_DEVELOPERS}}
    rows = dict(re.findall(r"^\| (\(none\)|`\w+`) \|[^|]*\| ([^|]*) \|", EXTRAS, re.MULTILINE))
    assert set(rows) == set(needed)
    for name, packages in rows.items():
        assert packages.split(", ") == [re.match(r"[\w\[\]-]+", one)[0] for one in needed[name]], name
