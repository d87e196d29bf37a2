"""Certificates that were changed at random: both checkers say the same, or the reason is known (``compare.py``)."""

import contextlib

import numpy as np
import pytest

from tests.certificates import compare
from tests.certificates.compare import difference, exact, truth
from tests.certificates.mutants import Frames, mutant
from tests.conftest import ROOT
from tests.width import wide

VALID = sorted((ROOT / "tests" / "certificates" / "valid").iterdir())
UNCHANGED = (OverflowError, ValueError, TypeError, KeyError)  # what a second change may meet of the first


@pytest.mark.parametrize("seed", range(4))
def test_both_checkers_agree_on_mutants(seed, tmp_path):
    rng, count, tried, found = np.random.default_rng(seed), wide(50, 2500), 0, []
    for _ in range(count):
        folder = VALID[rng.integers(len(VALID))]
        (data,) = folder.glob("data*")
        try:
            name, content = mutant((folder / "certificate.bin").read_bytes(), rng, truth(data))
        except UNCHANGED:
            continue
        tried += 1
        apart = difference(content, data, tmp_path / "certificate")
        found += [(folder.name, name, apart)] if apart else []
    assert found == [] and tried > 0.9 * count


@pytest.mark.parametrize("factor, name", [(0.5, "gap"), (1.001, "primal")])
def test_a_difference_is_noticed(factor, name, tmp_path, monkeypatch):
    """A checker that accepts what is false, or refuses what is true, is found."""
    (folder,) = (folder for folder in VALID if folder.name == "svm")
    frames = Frames((folder / "certificate.bin").read_bytes())
    frames.steps[2][1][name] *= factor
    for content in (frames.packed(), (folder / "certificate.bin").read_bytes()):
        assert difference(content, folder / "data.libsvm", tmp_path / "certificate") == ""
    monkeypatch.setattr(compare, "by_verify", lambda path, data: ({}, [], ""))
    assert difference(frames.packed(), folder / "data.libsvm", tmp_path / "certificate")
    monkeypatch.setattr(compare, "by_verify", lambda path, data: ({}, [], "no certificate"))
    content = (folder / "certificate.bin").read_bytes()
    assert difference(content, folder / "data.libsvm", tmp_path / "certificate")


def test_both_checkers_read_the_same_data(tmp_path):
    """Bytes of the data are changed, and the certificate has the hash of what they then are, if they are anything."""
    rng, kept, found = np.random.default_rng(0), 0, []
    for _ in range(wide(300, 3000)):
        folder = VALID[rng.integers(len(VALID))]
        (file,) = folder.glob("data*")
        if file.suffix not in (".libsvm", ".csv"):
            continue
        frames, text = Frames((folder / "certificate.bin").read_bytes()), bytearray(file.read_bytes())
        for _ in range(rng.integers(1, 3)):
            k, draw = int(rng.integers(len(text))), rng.random()
            byte = int(rng.choice(list(b"0123456789.:-+e #,;\n\r\tqxn\"'_\xff\x00\x0b")))
            text[k : k + (draw < 0.7)] = b"" if draw < 0.2 else bytes([byte])
        data = tmp_path / file.name
        data.write_bytes(text)
        with contextlib.suppress(Exception):  # it is no data: whatever hash is there, both refuse it
            frames.header[1]["data"]["sha256"] = exact.Data(data, frames.header[1]).sha256
            kept += 1
        apart = difference(frames.packed(), data, tmp_path / "certificate")
        found += [(folder.name, bytes(text), apart)] if apart else []
    assert found == [] and kept > 50


@pytest.mark.parametrize("name, place, key, value", [
    ("svm-csv", "data", "zero_based", None), ("sparse-squared", "", "smoothing", False),
    ("svm-rbf", "kernel", "gamma", True),
])  # fmt: skip
def test_both_refuse_what_is_no_number_or_is_not_there(name, place, key, value, tmp_path):
    """Mutants showed one checker to accept each of them."""
    (folder,) = (folder for folder in VALID if folder.name == name)
    (data,) = folder.glob("data*")
    frames = Frames((folder / "certificate.bin").read_bytes())
    fields = frames.header[1][place] if place else frames.header[1]
    del fields[key]
    fields |= {} if value is None else {key: value}
    (tmp_path / "certificate").write_bytes(frames.packed())
    assert compare.by_verify(tmp_path / "certificate", data)[2] and compare.by_fractions(frames.packed(), data)[2]
