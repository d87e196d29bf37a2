"""Both checkers, ``screenpath verify`` and ``examples/certificate/check.py``, say the same of the whole corpus."""

import contextlib
import json
import math
import re
import shutil
import subprocess
import sys
from fractions import Fraction as F

import numpy as np
import pytest

from screenpath import verify_certificate
from screenpath.errors import ScreenpathError
from tests.certificates import make_invalid, make_valid
from tests.certificates.compare import FILE, by_fractions, by_verify, exact
from tests.certificates.mutants import MAGIC, Frames, packed
from tests.conftest import ROOT
from tests.width import wide

HERE = ROOT / "tests" / "certificates"
PAGE = (ROOT / "examples" / "guide" / "certificate.md").read_text()
VALID, INVALID = (sorted((HERE / part).iterdir()) for part in ("valid", "invalid"))


def data_of(folder):
    (found,) = folder.glob("data*")
    return found


def said(capsys, folder):
    """Return exit code and words of the second checker."""
    code = exact.main([str(folder), str(data_of(folder))])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("folder", VALID, ids=[folder.name for folder in VALID])
def test_what_is_valid_holds(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    found = verify_certificate(folder, data_of(folder))
    assert found.faults == []
    nothing = len(found.unclaimed)
    assert found.proven == found.steps - nothing
    text = f"holds, {nothing} steps claim nothing\n" if nothing else "holds\n"
    assert said(capsys, folder) == (3 if nothing else 0, text)


@pytest.mark.parametrize("folder", INVALID, ids=[folder.name for folder in INVALID])
def test_what_is_invalid_does_not(folder, capsys, monkeypatch):
    """Steps and claims are said with their numbers; what is wrong with the whole, without one."""
    monkeypatch.chdir(folder)
    with contextlib.suppress(ScreenpathError):  # the whole is refused
        assert verify_certificate(folder, data_of(folder)).faults
    code, text = said(capsys, folder)
    assert (code, text.startswith("does not hold")) == (1, True)
    part = folder.name.split("-")[0]
    if part in ("bytes", "problem", "data"):
        assert text.startswith("does not hold: ")
    if part == "claim":
        assert re.match(r"does not hold at step \d+, row \d+: ", text)


@pytest.mark.parametrize("name", ["claims-before", "claims-after", "claims-next", "claims-l2"])
def test_the_corpus_tells_the_step_before_from_the_step_after(name, monkeypatch):
    """A checker that takes one for the other refuses what is valid."""
    (folder,) = (folder for folder in VALID if folder.name == name)
    content, data = (folder / "certificate.bin").read_bytes(), data_of(folder)
    assert by_fractions(content, data)[0] == {}
    monkeypatch.setattr(exact, "PAIRS", {1: 0, 2: 1, 3: -1})
    assert by_fractions(content, data)[0] != {}


def test_the_page_names_every_file_of_the_invalid_half_and_has_no_other():
    names = {folder.name for folder in INVALID}
    assert (
        set(re.findall(r"`((?:bytes|problem|data|step|claim|folder)-[\w-]+)`", PAGE))
        == names
        == set(make_invalid.CASES)
    )
    assert {folder.name for folder in VALID} == set(make_valid.RUNS)
    assert len(PAGE.splitlines()) <= 300


def test_the_second_checker_is_small_and_needs_python_alone():
    text = FILE.read_text()
    imported = set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE))
    assert len(text.splitlines()) <= 500 and imported <= sys.stdlib_module_names


@pytest.mark.parametrize("arguments, code, out", [((), 2, ""), (("a", "b"), 1, "does not hold: ")])
def test_the_second_checker_by_itself(arguments, code, out, tmp_path):
    done = subprocess.run([sys.executable, str(FILE), *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout[: len(out)]) == (code, out) and "Traceback" not in done.stderr


@pytest.mark.parametrize("name", list(make_invalid.CASES)[:: wide(4, 1)])
def test_the_invalid_half_can_be_made_again(name, tmp_path):
    found = make_invalid.make(name, HERE / "valid", tmp_path)
    for file in (HERE / "invalid" / name).iterdir():
        assert (found / file.name).read_bytes() == file.read_bytes(), file.name


@pytest.mark.parametrize("name", list(make_valid.RUNS)[:: wide(8, 1)])
def test_the_valid_half_can_be_made_again(name, tmp_path):
    """Another machine rounds otherwise: the problem is the same, and what is made holds."""
    found = make_valid.make(name, tmp_path)
    shutil.copytree(found, again := tmp_path / "again")
    (kept,), (made,) = ([Frames((f / name / "certificate.bin").read_bytes())] for f in (HERE / "valid", tmp_path))
    assert kept.header[1]["data"] == made.header[1]["data"] and kept.header[1]["model"] == made.header[1]["model"]
    assert exact.main([str(again), str(data_of(again))]) in (0, 3)


def test_the_corpus_says_nothing_of_the_machine_that_made_it():
    for folder in (*VALID, *INVALID):
        if folder.name != "folder-run-json-changed":
            record = json.loads((folder / "run.json").read_text())
            assert not record["machine"] and not record["working_directory"] and len(record["versions"]) == 1


def test_the_example_of_the_page(tmp_path):
    """Its numbers are those of the second checker, and both accept it."""
    data = tmp_path / "data"
    data.write_text("1 1:2\n-1 1:-1\n1 1:0.5\n")
    about = {"sha256": make_invalid.digest(data.read_text(), {"n_samples": 3, "n_features": 1})}
    about |= {"n_samples": 3, "n_features": 1, "zero_based": False}
    problem = {"model": "svm", "tol": 0.05, "labels": {"+1": 1.0, "-1": -1.0}, "scaling": "none", "bias": 0.0}
    claimed = {"step": 0, "status": "certified", "C": 1.0, "primal": 529 / 512, "primal_error": 0.0, "gap": 9 / 256}
    arrays = {
        "states": np.uint8([24]), "claims": np.uint8([17]), "between": np.array([7 / 16]), "w": np.array([15 / 16]),
    }  # fmt: skip
    parts = ((b"H", {**problem, "data": about}, {}), (b"S", claimed, arrays), (b"E", {"steps": 1}, {}))
    content = MAGIC + b"".join(packed(*part) for part in parts)
    (tmp_path / "certificate").write_bytes(content)
    assert by_verify(tmp_path / "certificate", data) == ({}, [], "")
    faults, _, refused, steps = by_fractions(content, data)
    assert (faults, refused) == ({}, "")
    (gap,) = map(steps[0].gap, steps[0].completed())
    assert (steps[0].P, gap, steps[0].t) == (F(529, 512), F(9, 256), [F(-7, 8), F(1, 16), F(17, 32)])
    shown = re.search(r'\{"model": "svm".*?\}\}', PAGE, re.DOTALL).group()
    assert json.loads(shown) == {**problem, "data": about, "arrays": []}
    assert steps[0].ball(F(1)) == (1, F(9, 256), 0) and "529/512" in PAGE and "9/256" in PAGE


ONES = 16  # features of the row that cancels


def cancelling(norm, folder):
    """Return certificate and data of a row whose loss is 0 if this is its norm.

    If it is not, the primal value is far above the claimed one, because C is large. Each feature takes up what the
    features before it leave of the norm.
    """
    row, C, w = [2.0**27, *[1.0] * ONES], 2.0**600, []
    left, d = norm, ONES + 1
    for value in row:
        w.append(float(left / F(value)))
        left -= F(w[-1]) * F(value)
    assert left == 0
    data = folder / "data"
    data.write_text("1 " + " ".join(f"{j}:{value!r}" for j, value in enumerate(row, 1)) + "\n")
    about = {"n_samples": 1, "n_features": d, "zero_based": False}
    about["sha256"] = make_invalid.digest(data.read_text(), about)
    problem = {"model": "lad", "tol": 1e-3, "labels": None, "scaling": "l2", "bias": 0.0, "data": about}
    primal = 0.5 * sum(value * value for value in w)
    claimed = {"step": 0, "status": "certified", "C": C, "primal": primal, "primal_error": 0.0, "gap": 1e-4}
    arrays = {"states": np.uint8([2]), "claims": np.uint8([0]), "between": np.array([1 / C]), "w": np.array(w)}
    parts = ((b"H", problem, {}), (b"S", claimed, arrays), (b"E", {"steps": 1}, {}))
    return MAGIC + b"".join(packed(*part) for part in parts), data


@pytest.mark.parametrize("bits", [321, 330, 352, 400])
@pytest.mark.parametrize("end", range(3))
def test_no_rational_number_in_the_place_of_a_norm_proves_what_is_false(bits, end, tmp_path):
    """Neither the ends between which the checker puts it, nor a number between these, nor the norm to some bits."""
    square = F(2**54 + ONES)
    least, most = exact.norm_inverse(square)
    norm = F(math.isqrt(int(square) << 2 * bits) + (end == 2), 1 << bits)
    norm = 1 / (least, most, (least + most) / 2)[end] if bits == 321 else norm
    content, data = cancelling(F(round(norm * 2**400), 2**400), tmp_path)  # so that some double takes up all
    (tmp_path / "certificate").write_bytes(content)
    assert by_verify(tmp_path / "certificate", data)[0]
    assert list(by_fractions(content, data)[0]) == [0]
