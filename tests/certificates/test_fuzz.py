"""Certificates that were changed at random: both checkers say the same, or the reason is known (``compare.py``)."""

import numpy as np
import pytest

from tests.certificates.compare import difference, truth
from tests.certificates.mutants import mutant
from tests.conftest import ROOT
from tests.width import wide

VALID = sorted((ROOT / "tests" / "certificates" / "valid").iterdir())
UNCHANGED = (OverflowError, ValueError, TypeError, KeyError)  # what a second change may meet of the first


@pytest.mark.parametrize("seed", range(4))
def test_both_checkers_agree_on_mutants(seed, tmp_path):
    rng, tried, found = np.random.default_rng(seed), 0, []
    for _ in range(wide(100, 2500)):
        folder = VALID[rng.integers(len(VALID))]
        (data,) = folder.glob("data*")
        try:
            name, content = mutant((folder / "certificate.bin").read_bytes(), rng, truth(data))
        except UNCHANGED:
            continue
        tried += 1
        apart = difference(content, data, tmp_path / "certificate")
        found += [(folder.name, name, apart)] if apart else []
    assert found == [] and tried > 90


@pytest.mark.parametrize("factor, name", [(0.5, "gap"), (1.001, "primal")])
def test_a_difference_is_noticed(factor, name, tmp_path, monkeypatch):
    """A checker that accepts what is false, or refuses what is true, is found."""
    from tests.certificates import compare
    from tests.certificates.mutants import Frames

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
