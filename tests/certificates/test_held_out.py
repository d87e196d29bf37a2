"""``screenpath verify`` on the corpus of cross-validations and leave-one-outs, and what ``check.py`` says of them."""

import contextlib
import re

import numpy as np
import pytest

from screenpath import verify_certificate
from screenpath.errors import ScreenpathError
from tests.certificates import make_held_out as maker
from tests.certificates.compare import exact
from tests.certificates.mutants import Frames, mutant, near
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


def disturbed(content: bytes, rng) -> bytes:
    """Return a certificate of a leave-one-out with something else in the frames of one or two rows."""
    frames = Frames(content)
    rows = [frame for frame in frames.found if frame[0] == b"L"]
    for _ in range(1 + int(rng.random() < 0.3)):
        _, entries, arrays = rows[rng.integers(len(rows))]
        names = [name for name in ("value", "low", "high", "b") if name in entries]
        theta, draw = arrays["theta"], rng.random()
        if draw < 0.3:
            name = str(rng.choice(names))
            entries[name] = near(rng, entries[name])
        elif draw < 0.6 and theta.size:
            place = rng.integers(theta.size)
            theta[place] = near(rng, float(theta[place]))
        elif draw < 0.8:
            by = float(rng.normal()) * 10.0 ** rng.uniform(-9.0, 0.0)
            entries.update({name: entries[name] + by for name in names if name != "b"})
        else:
            wider = 10.0 ** rng.uniform(-3.0, 3.0)
            ends = {name: entries["value"] + wider * (entries[name] - entries["value"]) for name in ("low", "high")}
            entries.update(ends)
            theta *= 1.0 - 10.0 ** rng.uniform(-12.0, 0.0) * (rng.random() < 0.5)
    return frames.packed()


@pytest.mark.parametrize("seed", range(3))
def test_what_holds_of_a_changed_leave_one_out_is_true(seed, tmp_path):
    """The honest files claim four times what is proven: the middle quarter of each has every solution."""
    rng, names = np.random.default_rng(seed), [name for name in maker.VALID if name.startswith("loo")]
    count, held = wide(60, 3000), 0
    for _ in range(count):
        folder = HERE / "valid" / str(rng.choice(names))
        honest, data = (folder / "loo.bin").read_bytes(), folder / "data.libsvm"
        try:
            content = disturbed(honest, rng) if rng.random() < 0.7 else mutant(honest, rng)[1]
        except (OverflowError, ValueError, TypeError, KeyError):  # what a second change may meet of the first
            continue
        (tmp_path / "loo.bin").write_bytes(content)
        with contextlib.suppress(ScreenpathError):
            found = verify_certificate(tmp_path / "loo.bin", data)
            if found.faults or found.unclaimed:
                continue
            one, other = Frames(honest), Frames(content)
            problems = [
                [f.header[1], f.steps[0][1]["C"], sorted((name, array.tolist()) for name, array in f.header[2].items())]
                for f in (one, other)
            ]
            if problems[0] != problems[1]:
                continue
            held += 1
            known = {frame[1]["row"]: frame[1] for frame in one.found if frame[0] == b"L"}
            for entries in (frame[1] for frame in other.found if frame[0] == b"L" and not frame[1].get("open")):
                row = known[entries["row"]]
                low, high = (row["value"] + 0.25 * (row[name] - row["value"]) for name in ("low", "high"))
                rounded = 1e-12 * (1.0 + abs(row["value"]))
                assert entries["low"] <= high + rounded and low - rounded <= entries["high"], (folder.name, entries)
    assert held > 0.1 * count
