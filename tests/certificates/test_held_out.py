"""``screenpath verify`` on the corpus of cross-validations and leave-one-outs, and what ``check.py`` says of them."""

import contextlib
import re

import pytest

from screenpath import verify_certificate
from screenpath.errors import ScreenpathError
from tests.certificates import make_held_out as maker
from tests.certificates.compare import exact
from tests.conftest import ROOT
from tests.width import wide

HERE = ROOT / "tests" / "certificates" / "held-out"
PAGE = (ROOT / "examples" / "guide" / "held-out.md").read_text()


def checked(folder):
    return verify_certificate(folder / "loo.bin" if (folder / "loo.bin").exists() else folder, folder / "data.libsvm")


@pytest.mark.parametrize("name", maker.VALID)
def test_what_is_valid_holds(name, monkeypatch, capsys):
    monkeypatch.chdir(HERE / "valid" / name)
    found = checked(HERE / "valid" / name)
    assert found.faults == [] and found.unclaimed == []
    if name.startswith("loo"):
        assert found.removed.proven == (3 if "three" in name else 8)
        assert exact.main([str(HERE / "valid" / name / "loo.bin"), "data.libsvm"]) == 2
        assert "files of `loo` are not read" in capsys.readouterr().err
    else:
        assert {"folds.bin: gaps of the steps", "cv.json: best, one_se"} <= set(found.covered)
        assert exact.main([str(HERE / "valid" / name), "data.libsvm"]) == 0
        assert capsys.readouterr().out == "holds; folds.bin is not read\n"


@pytest.mark.parametrize("name", maker.INVALID)
def test_what_is_invalid_does_not(name, monkeypatch):
    monkeypatch.chdir(HERE / "invalid" / name)
    with contextlib.suppress(ScreenpathError):  # the whole is refused
        assert checked(HERE / "invalid" / name).faults


def test_the_page_names_every_file_of_the_invalid_half_and_has_no_other():
    assert set(re.findall(r"`((?:folds|loo)-[\w-]+)`", PAGE)) == set(maker.INVALID)
    assert {folder.name for folder in (HERE / "valid").iterdir()} == set(maker.VALID)
    assert {folder.name for folder in (HERE / "invalid").iterdir()} == set(maker.INVALID)


@pytest.mark.parametrize("name", list(maker.INVALID)[:: wide(6, 1)])
def test_the_invalid_half_can_be_made_again(name, tmp_path):
    found = maker.broken(name, HERE / "valid", tmp_path)
    for file in (HERE / "invalid" / name).iterdir():
        assert (found / file.name).read_bytes() == file.read_bytes(), file.name


@pytest.mark.parametrize("name", list(maker.VALID)[:: wide(6, 1)])
def test_the_valid_half_can_be_made_again(name, tmp_path):
    assert checked(maker.make(name, tmp_path)).holds
