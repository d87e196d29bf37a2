"""Certificates of sparse SVMs at ``alpha = 0``: dual points whose every sum is within beta, or the part that is."""

from fractions import Fraction

import numpy as np
import pytest

from screenpath.verify import check
from screenpath.verify.file import BETWEEN, HIGH, LOW, NAME, pack, read_certificate, unpack
from tests.cli.conftest import call as call
from tests.cli.conftest import clouds, libsvm_text

GRID = ("--betas", 3, "--alpha", "0", "--beta-min-ratio", 0.02, "--certificate", "--force", "--quiet", "-o", "r")
KINDS = (
    ("two", "--smoothing", 0, "--intercept", "none"),
    ("two", "--smoothing", 0, "--intercept", "free"),
    ("two", "--intercept", "free", "--weights", "weights"),
    ("two", "--loss", "squared-hinge", "--bias", 0.5, "--scale", "maxabs"),
    ("three",),
    ("three", "--smoothing", 0, "--weights", "weights"),
)


@pytest.fixture
def data(tmp_path):
    X, y = clouds(n=60)
    (tmp_path / "two").write_text(libsvm_text(X, y))
    (tmp_path / "three").write_text(libsvm_text(X + np.arange(60)[:, None] % 3, np.arange(60) % 3 + 1.0))
    weights = 10.0 ** np.random.default_rng(0).uniform(-2.0, 1.0, size=60)
    (tmp_path / "weights").write_text("\n".join(f"{value!r}" for value in weights.tolist()) + "\n")
    return tmp_path


@pytest.mark.parametrize("what", KINDS, ids=str)
def test_what_a_run_claims_holds_and_what_it_does_not_is_noticed(call, data, what):
    assert call("sparse-svm", *what, *GRID).code == 0
    found = call("verify", "r")
    assert (found.code, found.err) == (0, "") and "3 of 3 steps proven" in found.out
    header, steps = read_certificate(data / "r" / NAME)
    last = steps[-1]
    assert last["alpha"] == 0.0 and last["between"].size
    for name, factor in (("between", 0.9), ("values", 1.01), ("gap", 0.5), ("beta", 0.999), ("alpha", 1e-3)):
        wrong = [*steps[:-1], {**last, name: last[name] * factor if name != "alpha" else factor}]
        assert {step for step, _ in check(header, wrong, data / what[0]).faults} == {last["step"]}, name


def test_a_dual_point_that_is_scaled_too_little_is_noticed(call, data):
    """Its gap, as if it were a dual point, is less than that of the largest part of it that is one."""
    assert call("sparse-svm", "two", "--smoothing", 0, "--intercept", "none", *GRID).code == 0
    header, steps = read_certificate(data / "r" / NAME)
    last, (X, y) = steps[-1], clouds(n=60)
    rows = [[Fraction(value) for value in row] for row in (np.where(y == y.max(), 1, -1)[:, None] * X).tolist()]
    w = dict(zip(last["index"].tolist(), map(Fraction, last["values"].tolist()), strict=True))
    losses = [max(1 - sum(row[j] * value for j, value in w.items()), Fraction(0)) for row in rows]
    primal = sum(losses) / 60 + Fraction(last["beta"]) * sum(map(abs, w.values()))
    states = unpack(last["states"], 0, 60)
    theta = np.where(states == HIGH, 1.0, 0.0)
    theta[states == BETWEEN] = last["between"]
    for more in (0.0, 1e-11, 1e-9, 1e-7):
        point = np.minimum(theta * (1.0 + more), 1.0)
        gap = float(primal - sum(map(Fraction, point.tolist())) / 60) * (1.0 + 1e-6) + 1e-15
        states = np.where(point == 1.0, HIGH, np.where(point == 0.0, LOW, BETWEEN)).astype(np.uint8)
        wrong = {**last, "states": pack(states), "between": point[states == BETWEEN], "gap": gap}
        faults = check(header, [*steps[:-1], wrong], data / "two").faults
        assert len(faults) == (more > 0.0) and all("the gap is claimed" in fault for _, fault in faults)
