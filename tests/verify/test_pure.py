"""Certificates of sparse SVMs at ``alpha = 0``: dual points whose every sum is within beta, or the part that is."""

from fractions import Fraction

import numpy as np

from screenpath.verify import check
from screenpath.verify.file import BETWEEN, HIGH, LOW, NAME, pack, read_certificate, unpack
from tests.cli.conftest import call, clouds, libsvm_text  # noqa: F401

GRID = ("--betas", 3, "--alpha", "0", "--beta-min-ratio", 0.02, "--certificate", "--quiet", "-o", "r")


def test_a_dual_point_that_is_scaled_too_little_is_noticed(call, tmp_path):  # noqa: F811
    """Its gap, as if it were a dual point, is less than that of the largest part of it that is one."""
    (tmp_path / "two").write_text(libsvm_text(*clouds(n=60)))
    assert call("sparse-svm", "two", "--smoothing", 0, "--intercept", "none", *GRID).code == 0
    header, steps = read_certificate(tmp_path / "r" / NAME)
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
        faults = check(header, [*steps[:-1], wrong], tmp_path / "two").faults
        assert len(faults) == (more > 0.0) and all("the gap is claimed" in fault for _, fault in faults)
