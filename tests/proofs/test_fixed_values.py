"""Kernel values kept in 4 bytes each: their bounds, and certificates of paths with them, against longer arithmetic."""

from fractions import Fraction as F

import numpy as np
import pytest
import scipy.sparse as sp

import screenpath
from screenpath.catalogue.losses import LAD, SVM
from screenpath.numbers.rounding import UNIT, meets
from screenpath.problem import kernel
from screenpath.problem.kernel_products import spread_of, sum_error
from screenpath.rows import gram, kernel_functions
from screenpath.rows.gram import GramRows, plan_gram
from screenpath.rows.kernel_functions import LARGEST, FixedValues, KernelFunction
from screenpath.screen import parse_kernel_rule
from screenpath.solve import smo
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk.loop import PathOptions, restore_walk, solve_point, walk, walk_state

FUNCTIONS = {
    "rbf": KernelFunction("rbf", 0.3),
    "near": KernelFunction("rbf", 1e-7),  # values that are nearly 1
    "laplacian": KernelFunction("laplacian", 0.4),
    "bias": KernelFunction("rbf", 0.3, constant=6.25),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Let the values of few rows be kept in 4 bytes, as those of some thousands are."""
    monkeypatch.setattr(gram, "FEW", 0)
    monkeypatch.setattr(gram, "WHOLE", 0)
    monkeypatch.setattr(smo, "LEAST", 60)
    monkeypatch.setattr(kernel, "MANY", 64)


def exact_kernel(X, function):
    """Return a kernel of all pairs of rows, from differences in long doubles."""
    apart = X.astype(np.longdouble)[:, None, :] - X.astype(np.longdouble)
    far = np.abs(apart).sum(axis=2) if function.name == "laplacian" else np.square(apart).sum(axis=2)
    return np.exp(-np.longdouble(function.gamma) * far) + function.constant


def kept_rows(n=300, function=FUNCTIONS["rbf"], seed=0, **more):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 4 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, 3)) + 0.9 * y[:, None]
    X[:20] = X[20:40]  # twins: values that are 1
    return GramRows(X, function, y, 1 << 24, **more), X, y


# -- values and sums -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [1.0, 0.3], ids=["bound", "too small a bound"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sums_are_within_their_bounds(monkeypatch, name, share):
    """Weights that have the signs of the errors of one row bring its sum as near the bound as can be."""
    rows, X, y = kept_rows(function=FUNCTIONS[name])
    plain = rows.error
    rows.weighted_sum(np.ones(rows.n))
    assert rows.keeps and rows.error > plain
    # A value times its scale, the scale, the unit, and a weight times the unit are rounded as well.
    assert F(rows.fixed.error) >= F(1, 2 * LARGEST) + 4 * F(UNIT)
    exact, worst = y[:, None] * exact_kernel(X, FUNCTIONS[name]) * y, 0.0
    values = rows.fixed.unit * rows.kept_values()[0].astype(np.longdouble)
    off = y[:, None] * values * y - exact
    for i in range(0, rows.n, 7):
        for theta in (np.where(off[i] > 0.0, 1.0, -1.0), np.eye(rows.n)[i]):
            error = share * sum_error(rows, np.count_nonzero(theta), spread_of(theta, rows.norms))
            apart = np.abs(rows.weighted_sum(theta) - exact @ theta)
            worst = max(worst, float((apart / (error * rows.norms)).max()))
    assert worst <= 1.0 if share == 1.0 else worst > 1.0


@pytest.mark.covering(1)
@pytest.mark.parametrize("storage", ["dense", "sparse", "very sparse"])
@pytest.mark.parametrize("threads", [1, 2])
def test_values_are_the_same_for_each_sum(monkeypatch, storage, threads):
    monkeypatch.setattr(kernel_functions, "DENSE_BYTES", 0 if storage == "very sparse" else 1 << 28)
    monkeypatch.setattr(gram, "HEIGHT", 16)
    monkeypatch.setattr(gram, "WIDTH", 32)
    rows, X, y = kept_rows()
    X = X if storage == "dense" else sp.csr_array(X)
    one, two = (GramRows(X, FUNCTIONS["rbf"], y, 1 << 24, threads=t) for t in (1, threads))
    theta, some, target = np.linspace(0.1, 1.0, 300), np.arange(3, 60), np.array([5, 4, 250])
    whole = one.weighted_sum(theta)
    assert two.sum_at(some, theta[some]).tobytes() != one.sum_at(some, theta[some]).tobytes() and not two.keeps
    assert two.weighted_sum(theta).tobytes() == whole.tobytes() and two.keeps
    assert two.sum_at(some, theta[some]).tobytes() == one.sum_at(some, theta[some]).tobytes()
    np.testing.assert_allclose(two.sum_at(some, theta[some], target), two.sum_at(some, theta[some])[target], rtol=1e-13)
    values, unit = two.kept_values()
    assert values.dtype == np.int32 and np.array_equal(values, values.T) and unit == two.fixed.unit
    assert np.diag(values).min() == kernel_functions.LARGEST


def test_parts_of_the_square_are_those_of_the_values_that_are_kept():
    rows, X, _ = kept_rows()
    rows.weighted_sum(np.ones(300))
    index, K = np.array([7, 3, 200, 25]), exact_kernel(X, FUNCTIONS["rbf"]).astype(float)
    for close in (1e-7, 3e-10):
        part = rows.square.part(rows.square.slots(index))
        np.testing.assert_allclose(part, K[np.ix_(index, index)], rtol=0.0, atol=close)
        assert rows.sharpen() == (close == 1e-7)
    rows.forget()
    assert rows.square.dtype == np.float32 and rows.square.rows.keeps


def test_values_are_kept_or_never_again_and_a_checkpoint_knows():
    rows, other = kept_rows()[0], kept_rows()[0]
    theta, plain = np.ones(300), rows.error
    assert rows.keeping == 0
    few = rows.sum_at(np.arange(70), theta[:70])
    assert rows.keeping == 0
    kept = rows.weighted_sum(theta)
    other.keeping = rows.keeping
    assert rows.keeping == other.keeping == 1 and other.error == rows.error > plain
    assert other.sum_at(np.arange(70), theta[:70]).tobytes() == rows.sum_at(np.arange(70), theta[:70]).tobytes()
    rows.keep(False)
    other.keeping = rows.keeping
    assert rows.keeping == other.keeping == 2 and rows.error == other.error == plain
    assert rows.sum_at(np.arange(70), theta[:70]).tobytes() == few.tobytes()
    exact = rows.weighted_sum(theta)
    assert rows.keeping == 2 and 0.0 < np.abs(exact - kept).max() < 1e-7


def test_only_kernels_of_a_bounded_size_and_plans_with_room_keep_values():
    assert kept_rows()[0].fixed is not None and kept_rows(dtype=np.float32)[0].fixed is None
    for name in ("linear", "poly"):
        assert kept_rows(function=KernelFunction(name))[0].fixed is None
    for n in (300, 3000, 8192, 8193):
        for allowed in (40 << 20, 90 << 20, 1 << 30, 4 << 30):
            plan = plan_gram(n, 8, allowed, bounded=True)
            assert plan.most <= allowed and plan.square >= min(n, gram.SQUARE)
            assert plan.fixed == (n <= 8192 and 4 * n**2 <= 0.25 * (allowed - 8 * n * min(n, gram.HEIGHT)))


# -- certificates of paths -------------------------------------------------------------------------------------------


def model_of(loss=SVM, intercept="free", n=300, seed=0, **more):
    rows, X, y = kept_rows(n, seed=seed, **more)
    if loss is LAD:
        targets = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(seed).normal(size=n)
        return LAD.model(rows.signed(np.ones(n)), targets, None, intercept), X
    return SVM.model(rows, y, None, intercept), X


def pairs_of(model, grid, tol, rule="auto"):
    solver, options = make_kernel_solver("auto"), PathOptions(tol=tol)
    return [(pair, model.rows.keeping) for _, pair in walk(model, grid, parse_kernel_rule(rule), solver, options)]


def faults(model, X, pair) -> list[str]:
    """Return what a certificate says wrongly."""
    signs, C, found = model.rows.signs, pair.C, []
    exact = (signs[:, None] * exact_kernel(X, model.rows.blocks.function) * signs) @ pair.theta.astype(np.longdouble)
    rough = 0.0 if pair.rough is None else pair.rough
    if np.any(np.abs(pair.total - exact) > pair.product_error * model.norms + rough):
        found.append("products")
    b = 0.0 if pair.intercept is None else pair.intercept
    t = model.c - signs * b - C * exact
    losses = np.maximum(model.hi * t, model.lo * t).sum()
    primal = 0.5 * C * C * (pair.theta @ exact) + C * losses
    dual = C * (model.c @ pair.theta.astype(np.longdouble)) - 0.5 * C * C * (pair.theta @ exact)
    if abs(primal - pair.primal) > pair.primal_error + 1e-15 * primal:
        found.append("primal")
    if primal - dual > pair.gap + 1e-15 * primal:
        found.append("gap")
    return found


@pytest.mark.compiled_only
@pytest.mark.covering(2)
@pytest.mark.parametrize("intercept", [None, "free"])
@pytest.mark.parametrize("loss", [SVM, LAD], ids=["svm", "lad"])
@pytest.mark.parametrize("rule", ["auto", "none", "dvi+gap", "bt2", "it"])
def test_certificates_of_a_path_are_right(loss, intercept, rule):
    rule = "gap" if intercept == "free" and rule in ("bt2", "it") else rule  # which have no free intercept
    grid, states = np.geomspace(0.01, 300.0, 12), []
    for tol in (1e-3, 1e-7):
        model, X = model_of(loss, intercept)
        exactly = model_of(loss, intercept, dtype=np.float64)[0]
        exactly.rows.keep(False)
        pairs = zip(pairs_of(model, grid, tol, rule), pairs_of(exactly, grid, tol), strict=True)
        for (pair, state), (plain, never) in pairs:
            assert meets(pair, tol) and faults(model, X, pair) == [] and never == 2
            assert abs(pair.primal - plain.primal) <= max(pair.gap, plain.gap) + pair.primal_error
            states.append(state)
    assert {1, 2} <= set(states)


@pytest.mark.compiled_only
def test_errors_that_values_do_not_own_up_to_are_seen(monkeypatch):
    """The control of the test above: with values off by four times as much as they say."""
    values = FixedValues.values

    def spoiled(self, *how):
        if self._values is None:
            found = values(self, *how)
            found[::4] -= np.minimum(found[::4], 4)  # those of one label: signs make them add up
        return values(self, *how)

    monkeypatch.setattr(FixedValues, "values", spoiled)
    model, X = model_of()
    seen = [fault for pair, _ in pairs_of(model, np.geomspace(0.01, 3.0, 5), 1e-3) for fault in faults(model, X, pair)]
    assert "products" in seen


@pytest.mark.compiled_only
@pytest.mark.parametrize("how", [(1e-3, "auto", "free"), (1e-6, "auto", "free"), (1e-5, "bt2", None)], ids=str)
def test_a_restored_walk_goes_on_alike(how):
    """A step that is cut short after it has changed what is known of values leaves the checkpoint of the last one."""
    tol, name, intercept = how
    grid, rule, options = np.geomspace(0.03, 300.0, 9), parse_kernel_rule(name), PathOptions(tol=tol)
    model, states, known = model_of(intercept=intercept)[0], [], []
    for _, pair in walk(model, grid, rule, make_kernel_solver("auto"), options):
        known.append(pair)
        states.append({name: np.copy(value) for name, value in walk_state(model, rule, pair).items()})
    assert {int(state["fixed"]) for state in states} == ({1, 2} if tol < 1e-3 else {1})
    for k in range(8):
        for name_of, value in model.state(known[k]).items():
            assert np.asarray(value).tobytes() == states[k][name_of].tobytes(), name_of
        again, fresh = model_of(intercept=intercept)[0], parse_kernel_rule(name)
        reference = restore_walk(again, fresh, states[k], grid[k])
        found = solve_point(again, grid[k + 1], k + 1, reference, fresh, make_kernel_solver("auto"), options)[1]
        assert found.theta.tobytes() == known[k + 1].theta.tobytes() and found.gap == known[k + 1].gap
        assert found.total.tobytes() == known[k + 1].total.tobytes()


@pytest.mark.compiled_only
def test_labels_share_the_values_that_are_kept(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 3))
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, [-0.3, 0.6])
    how = {"kernel": "rbf", "gamma": 0.5, "c_list": [0.1, 1.0, 10.0], "tol": 1e-4, "one_vs_rest": True, "quiet": True}
    formed, values = [], FixedValues.values

    def counted(self, *tile):
        formed.append(self._values is None)
        return values(self, *tile)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FixedValues, "values", counted)
        run = screenpath.run("svm", (X, y), **how, out=tmp_path / "kept")
        patch.setattr(gram, "FEW", 10**6)
        plain = screenpath.run("svm", (X, y), **how, out=tmp_path / "formed")
    assert formed.count(True) == 1 and len(formed) > 10
    for one, other in zip(run.steps, plain.steps, strict=True):
        assert one.status == "certified"
        assert abs(one.primal - other.primal) <= one.gap + other.gap
