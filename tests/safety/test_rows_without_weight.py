"""A row without weight takes part in nothing, however far away it and its target are; judged in fractions."""

import functools
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.catalogue.losses import LOSSES
from screenpath.kernels.problem import box
from screenpath.problem.sparse import SparseModel
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.rows.memory import MemoryRows
from screenpath.rows.views import Views
from tests.free_problems import VALUES, free_walk
from tests.kernel_problems import kernel_svm_model
from tests.safety.rational import Exact, ExactFree, dot
from tests.safety.rational_penalised import fractions

FAR, TOL = (1e8, 1e12), 1e-8
LAST = -1  # the row without weight


def box_data(name: str, far: float, seed: int = 0) -> tuple:
    """Return few rows, targets and weights; the last row has none and is far away."""
    rng = np.random.default_rng(seed)
    n = 4 if name == "svr" else 5
    X, y, weights = rng.normal(size=(n, 2)), np.round(rng.normal(size=n), 2), np.array([2.0, *[1.0] * (n - 2), 0.0])
    if name == "svm":
        y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    else:
        y[LAST] = far / 3.0
    X[LAST] *= far
    return X, y, weights


def box_model(name, X, y, weights, sparse=False):
    return LOSSES[name].model(MemoryRows(sp.csr_array(X) if sparse else X), y, weights, "free", **VALUES.get(name, {}))


@functools.cache
def optimum(name: str, C: float) -> Fraction:
    """Return the optimum of the rows that count: the last one tells nothing of them."""
    X, y, weights = box_data(name, 1.0)
    return ExactFree(box_model(name, X[:LAST], y[:LAST], weights[:LAST]), C).optimum()


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", list(LOSSES))
def test_steps_are_certified_at_the_optimum_of_the_rows_that_count(name, sparse, far):
    X, y, weights = box_data(name, far)
    model = box_model(name, X, y, weights, sparse)
    for rule in ("none", "dvi+gap"):
        for step, _ in free_walk(model, [0.02, 0.7, 30.0], rule, TOL):
            assert step.status == "certified"
            low, found = optimum(name, step.parameters["C"]), Fraction(step.primal)
            slack = Fraction(1, 2**40) * found
            assert found - Fraction(step.gap) - slack <= low <= found + slack


@pytest.mark.parametrize("name", list(LOSSES))
def test_sizes_that_bounds_use_are_those_of_the_rows_that_count(name):
    X, y, weights = box_data(name, 1e12)
    model, alone = box_model(name, X, y, weights), box_model(name, X[:LAST], y[:LAST], weights[:LAST])
    for size in ("largest", "largest_kink", "largest_norm", "typical"):
        assert getattr(model, size) == pytest.approx(getattr(alone, size), rel=1e-12)
    assert model.bounds[box.KINK] == alone.bounds[box.KINK]
    assert model.around[0] == pytest.approx(X[:LAST].mean(axis=0), rel=1e-12)


@pytest.mark.parametrize("name", list(LOSSES))
def test_the_closed_form_holds_until_a_row_that_counts_reaches_its_kink(name):
    X, y, weights = box_data(name, 1e12)
    y[LAST] = 1.0 if name == "svm" else 0.0  # a target of 0 would be at its kink at once
    rows = MemoryRows(X)
    model = LOSSES[name].model(rows, y, weights, **VALUES.get(name, {}))
    exact = Exact(model, 1.0)
    theta = [hi if c > 0 else lo for c, lo, hi in zip(exact.c, exact.lo, exact.hi, strict=True)]
    w = [sum(t * g[j] for t, g in zip(theta, exact.G, strict=True)) for j in range(2)]
    drift = [dot(g, w) for g in exact.G]
    limits = [c / v for c, v, hi in zip(exact.c, drift, exact.hi, strict=True) if hi > 0 and c * v > 0]
    assert model.closed_until == pytest.approx(float(min(limits)), rel=1e-12)


def test_a_typical_distance_behind_a_kernel_is_that_of_the_rows_that_count():
    X, y, weights = box_data("svm", 1e12)

    def model(count):
        rows = GramRows(X[:count], KernelFunction("linear"), y[:count], 1 << 24)
        return kernel_svm_model(rows, weights[:count], "free")

    assert model(len(y)).typical == pytest.approx(model(LAST).typical, rel=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("far", FAR)
def test_the_largest_alpha_of_a_sparse_svm_is_that_of_the_samples_that_count(far, classes):
    rng = np.random.default_rng(1)
    n, d = 9, 3
    X, y, weights = rng.normal(size=(n, d)), np.arange(n) % classes, np.array([1.0, 2.0, 1.0] * 3)
    weights[LAST], X[LAST] = 0.0, far
    codes = 2 * y - 1 if classes == 2 else y
    model = SparseModel(Views(X), codes.astype(np.int64), 1 if classes == 2 else classes, 0.0, 0.5, weights)
    beta = 0.3 * model.beta_max
    rows, counted = [fractions(row) for row in X], range(n - 1)
    share = [Fraction(s) / sum(map(Fraction, weights)) for s in weights]

    def shrunk(psi):
        """Return ``S_beta`` of the sums of the rows with these weights."""
        u = [sum(share[i] * psi(i) * rows[i][j] for i in counted) for j in range(d)]
        return [max(abs(v) - Fraction(beta), 0) * (1 if v > 0 else -1) for v in u]

    def product(i, w):
        return sum(a * b for a, b in zip(rows[i], w, strict=True))

    if classes == 2:
        w = shrunk(lambda i: int(codes[i]))
        top = max(int(codes[i]) * product(i, w) for i in counted)
    else:
        ws = [shrunk(lambda i, c=c: (classes - 1) if y[i] == c else -1) for c in range(classes)]
        top = max(product(i, ws[y[i]]) - min(product(i, w) for w in ws) for i in counted)
    assert model.at(beta).alpha_max() == pytest.approx(float(top / Fraction(1, 2)), rel=1e-11)
