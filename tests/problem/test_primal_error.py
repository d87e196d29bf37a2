"""The primal value of a certified step is known as well as its gap: judged in fractions."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from screenpath import kernel_svr_path
from screenpath.numbers import rounding
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.screen import parse_kernel_rule
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk.loop import PathOptions, walk
from tests.kernel_problems import kernel_svm_model

TOL = 1e-9


def clusters(seed):
    """Return rows around a few points, many of them of both labels: dual variables are large, and the weights small."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(4, 30)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    X = rng.normal(size=(k, d))[rng.integers(0, k, n)] + 10.0 ** rng.uniform(-12, -6) * rng.normal(size=(n, d))
    y = rng.choice([-1.0, 1.0], n)
    y[:2] = 1.0, -1.0
    return X, y


def primal_of(X, y, C, theta):
    """Return the primal value of a dual point's weights."""
    rows = [[Fraction(float(v)) * int(sign) for v in row] for row, sign in zip(X, y, strict=True)]
    weights = [sum(Fraction(C) * Fraction(t) * row[j] for t, row in zip(theta.tolist(), rows, strict=True))
               for j in range(X.shape[1])]  # fmt: skip
    losses = [max(Fraction(0), 1 - sum(a * b for a, b in zip(row, weights, strict=True))) for row in rows]
    return sum(v * v for v in weights) / 2 + Fraction(C) * sum(losses)


@pytest.mark.parametrize("seed", [6, 20, 22, 26, 35])
def test_a_kernel_path_of_rows_that_hardly_differ_has_the_right_primal_values(seed):
    X, y = clusters(seed)
    model = kernel_svm_model(GramRows(X, KernelFunction("linear"), y, 1 << 24))
    options = PathOptions(tol=TOL, max_epochs=300)
    solver, certified = make_kernel_solver("auto"), 0
    for step, found in walk(model, [1.0, 1e4, 6e7], parse_kernel_rule("dvi"), solver, options):
        if step.status != "certified":
            continue
        certified += 1
        exact = primal_of(X, y, found.C, found.theta)
        off = abs(Fraction(step.primal) - exact)
        assert off <= Fraction(TOL) * exact, (step.parameters, float(off / exact))
        assert off <= Fraction(found.primal_error) and Fraction(step.dual) <= exact
    assert certified >= 2


def test_errors_of_losses_at_their_bound_blur_the_primal_value_alone():
    X, y = clusters(22)
    model = kernel_svm_model(GramRows(X, KernelFunction("linear"), y, 1 << 24))
    options = PathOptions(tol=TOL, max_epochs=300)
    *_, (step, found) = walk(model, [1.0, 1e4, 6e7], parse_kernel_rule("dvi"), make_kernel_solver("auto"), options)
    plain = model.certify(found.C, None, found.theta)
    assert step.status == "certified" and rounding.meets(plain, TOL) and rounding.blurred(plain, TOL)
    sharp = model.sharpened(plain, TOL)
    exact = primal_of(X, y, found.C, found.theta)
    assert rounding.meets(sharp, TOL) and sharp.primal_error < 1e-2 * plain.primal_error
    assert abs(Fraction(sharp.primal) - exact) <= Fraction(sharp.primal_error)
    assert not rounding.blurred(replace(sharp, primal_error=0.5 * TOL * sharp.primal), TOL)


def test_smoothed_losses_of_targets_far_from_0_beside_their_spread_are_known_behind_a_kernel():
    """What rounds a target and an intercept of 1e4 off is 1e-6 of the distance from the kink, which is left of them."""
    rng = np.random.default_rng(0)
    X, y, tube, smoothing = rng.normal(size=(20, 2)), 1e4 + 1e-6 * rng.normal(size=20), 3e-7, 1e3
    about = {"epsilon": tube, "smoothing": smoothing, "kernel": "linear", "intercept": "free", "tol": TOL}
    path = kernel_svr_path(X, y, grid=[0.01, 1.0, 20.0], **about)
    rows = [[Fraction(v) for v in row] for row in X.tolist()]
    for k, step in enumerate(path.steps):
        alpha, b, C = [Fraction(v) for v in path.dual_coefficients[k].tolist()], Fraction(path.intercept(k)), step.C
        w = [sum(a * row[j] for a, row in zip(alpha, rows, strict=True)) for j in range(2)]
        exact = sum(v * v for v in w) / 2
        for row, target in zip(rows, y.tolist(), strict=True):
            t = max(abs(Fraction(target) - b - sum(p * q for p, q in zip(row, w, strict=True))) - Fraction(tube), 0)
            best = min(t / Fraction(smoothing), 1)
            exact += Fraction(C) * best * (t - Fraction(smoothing) * best / 2)
        assert step.status == "certified" and abs(Fraction(step.primal) - exact) <= Fraction(TOL) * exact, k
