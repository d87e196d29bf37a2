"""Sums of kernel rows in float32, their bounds, and certificates of paths that use them, against longer arithmetic."""

import numpy as np
import pytest

import screenpath
from screenpath.numbers.rounding import UNIT, meets
from screenpath.rows import gram
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelBlocks, KernelFunction
from screenpath.screen import parse_kernel_rule
from screenpath.solve import smo
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk.loop import PathOptions, restore_walk, solve_point, walk, walk_state
from tests.kernel_problems import kernel_svm_model

# Name, features, a row's spread, offset, and gamma times the squares of typical distances.
CASES = (
    ("plain", 22, 1.0, 0.0, 2.0), ("one feature", 1, 1.0, 0.0, 2.0), ("wide", 700, 1.0, 0.0, 2.0),
    ("far from the origin", 8, 1.0, 12.0, 0.5), ("nearly equal rows", 8, 1e-6, 30.0, 1e-9),
    ("narrow", 5, 1.0, 0.0, 90.0), ("very narrow", 5, 1.0, 0.0, 900.0), ("flat", 9, 1e3, 0.0, 1e-9),
    ("tiny numbers", 6, 1e-150, 0.0, 1.0), ("large numbers", 6, 1e120, 0.0, 1.0),
)  # fmt: skip
WEIGHTS = ("signs", "one sign", "wild", "tiny", "one")


def exact_kernel(X, Z, gamma):
    """Return the RBF kernel of rows, from differences in long doubles."""
    apart = X.astype(np.longdouble)[:, None, :] - Z.astype(np.longdouble)
    return np.exp(-np.longdouble(gamma) * np.square(apart).sum(axis=2))


def weights_of(kind, rng, size):
    if kind == "one sign":
        return np.ones(size)
    if kind == "wild":
        return rng.choice([-1.0, 1.0], size) * 10.0 ** rng.uniform(-300.0, 10.0, size)
    if kind == "one":
        return np.where(np.arange(size) == size // 2, 1.0, 0.0)
    return rng.normal(size=size) * (1e-200 if kind == "tiny" else 1.0)


@pytest.mark.covering(5)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_rough_sums_are_within_their_bounds(case):
    _, d, spread, offset, scale = case
    rng, worst = np.random.default_rng(d), 0.0
    X = spread * (offset + rng.normal(size=(150, d)))
    X[:, 0] += spread * 3.0 * (np.arange(150) % 2)
    X[:20] = X[20:40]  # twins
    X[40:50] *= 5.0 if case[0] == "plain" else 1.0
    gamma = scale / (2.0 * d) / spread**2
    blocks = KernelBlocks(X, KernelFunction("rbf", gamma))
    blocks.X, blocks.shift, blocks.squares = X, None, np.square(X).sum(axis=1)  # as far from the origin as it is
    assert blocks.roughens
    index, target = rng.permutation(150)[:100], rng.permutation(150)
    K = exact_kernel(X[index], X[target], gamma)
    for kind in WEIGHTS:
        weights = weights_of(kind, rng, index.size)
        found, bound = blocks.rough_sums(index, weights, target)
        error = np.abs(found - weights.astype(np.longdouble) @ K).astype(np.float64)
        assert np.all(error <= bound), (kind, float((error / bound).max()))
        assert np.all(bound <= 1e-2 * np.abs(weights).sum())
        worst = max(worst, float((error / bound).max()))
    assert worst > 1e-3  # a thousandth of a bound would not do


def test_what_float32_cannot_hold_is_left_to_float64():
    X = np.random.default_rng(0).normal(size=(30, 4))
    plain = KernelFunction("rbf", 0.25)
    assert KernelBlocks(X, plain).roughens
    for function in (
        KernelFunction("rbf", 0.25, constant=1.0), KernelFunction("rbf", 1e5), KernelFunction("poly", 1.0),
        KernelFunction("laplacian", 1.0), KernelFunction("rbf", 1e308),
    ):  # fmt: skip
        with np.errstate(over="ignore"):
            assert not KernelBlocks(X, function).roughens, function
    X[3] = 1e3
    assert not KernelBlocks(X, plain).roughens


def test_threads_do_not_change_rough_sums(monkeypatch):
    monkeypatch.setattr(gram, "ROUGH_WIDTH", 16)
    rng = np.random.default_rng(1)
    X, signs, weights = rng.normal(size=(200, 3)), rng.choice([-1.0, 1.0], 200), rng.normal(size=70)
    some = [GramRows(X, KernelFunction("rbf", 0.3), signs, 1 << 24, threads=t) for t in (1, 2)]
    index, target = np.arange(70), np.arange(30, 200)
    one, two = (rows.rough_sum_at(index, weights, target) for rows in some)
    assert one.tobytes() == two.tobytes() and some[0].touched == 70 * 170 / 200
    np.testing.assert_allclose(one[0], some[0].sum_at(index, weights, target), rtol=0.0, atol=one[1].max())
    assert not some[0].rough_sum_at(index[:0], weights[:0], target).any()


# -- certificates of paths whose rows are rough where nothing depends on more ----------------------------------------


@pytest.fixture
def small(monkeypatch):
    """Let rows be rough in small problems, too."""
    monkeypatch.setattr(gram, "ROUGH_ROWS", 0)
    monkeypatch.setattr(gram, "WHOLE", 0)
    monkeypatch.setattr(smo, "LEAST", 60)


def problem(seed=0, n=300, weights=False):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 4 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, 3)) + 0.9 * y[:, None]
    rows = GramRows(X, KernelFunction("rbf", 0.3), y, 1 << 24)
    return kernel_svm_model(rows, rng.uniform(0.5, 2.0, n) if weights else None, "free"), X, y


def certificates(model, grid, tol=1e-4, rule="auto", asked=False):
    options = PathOptions(tol=tol, certificates=asked)
    return [pair for _, pair in walk(model, grid, parse_kernel_rule(rule), make_kernel_solver("auto"), options)]


def faults(model, X, y, pair) -> list[str]:
    """Return what a certificate says wrongly."""
    exact = (y[:, None] * exact_kernel(X, X, model.rows.blocks.function.gamma) * y) @ pair.theta.astype(np.longdouble)
    C, found, rough = pair.C, [], np.zeros(y.size) if pair.rough is None else pair.rough
    error = np.abs(pair.total - exact)
    if np.any(error > pair.product_error * model.norms + rough):
        found.append("products")
    if np.any(np.abs(pair.point.products - C * exact) > pair.point.error * model.norms):
        found.append("products of the point")
    t = 1.0 - C * exact - y * pair.intercept
    if np.any(np.abs(model.c - pair.point.products - y * pair.intercept - t) > model.form_error(pair) + 1e-14):
        found.append("forms")
    losses, square = model.hi @ np.maximum(t, 0.0), C * C * (pair.theta @ exact)
    primal, dual = 0.5 * square + C * losses, C * pair.theta.sum() - 0.5 * square
    if abs(primal - pair.primal) > pair.primal_error + 1e-15 * primal:
        found.append("primal")
    if primal - dual > pair.gap + 1e-15 * primal:
        found.append("gap")
    low, high, _, _ = model.placed(np.asarray(C * exact, dtype=np.float64))
    if abs(low - pair.low) + abs(high - pair.high) > 1e-9:
        found.append("intercept")
    return found


@pytest.mark.parametrize("weights", [False, True])
def test_certificates_with_rough_rows_are_those_of_all_rows(small, weights):
    model, X, y = problem(weights=weights)
    grid, some = np.geomspace(0.01, 300.0, 14), 0
    ours, plain = certificates(model, grid), certificates(problem(weights=weights)[0], grid, asked=True)
    for pair, other in zip(ours, plain, strict=True):
        assert meets(pair, 1e-4) and other.rough is None and faults(model, X, y, pair) == []
        assert abs(pair.primal - other.primal) <= max(pair.gap, other.gap)
        assert pair.primal_error <= 4.0 * other.primal_error + 64.0 * UNIT * other.primal
        if pair.rough is not None:
            where = pair.rough > 0.0
            assert not pair.theta[where].any() and np.all(np.isfinite(pair.rough))
            some += np.count_nonzero(pair.rough > 1e-12)
    assert some > 300  # rows, over the steps
    for rule in ("none", "dvi+gap"):  # rules read the products of all rows
        assert all(pair.rough is None for pair in certificates(model, grid[:4], rule=rule))


@pytest.mark.parametrize("attack", ["within", "beyond"])
def test_rough_sums_may_be_as_wrong_as_they_say(small, monkeypatch, attack):
    """Within their bounds no error is seen; errors that their bounds hide are found by what is compared here."""
    sums, rng = KernelBlocks.rough_sums, np.random.default_rng(3)

    def attacked(self, *arguments):
        found, bound = sums(self, *arguments)
        much = 300.0 * bound
        found = found + rng.choice([-1.0, 1.0], found.size) * much
        return np.stack([found, bound + much if attack == "within" else 0.01 * bound])

    monkeypatch.setattr(KernelBlocks, "rough_sums", attacked)
    seen = []
    for seed in (0, 1):
        model, X, y = problem(seed)
        for pair in certificates(model, np.geomspace(0.03, 30.0, 8)):
            seen += faults(model, X, y, pair)
    assert seen == [] if attack == "within" else "products" in seen and "forms" in seen


def test_a_restored_certificate_goes_on_alike(small):
    grid, options = np.geomspace(0.03, 30.0, 8), PathOptions(tol=1e-4, certificates=False)
    model, screening = problem()[0], parse_kernel_rule("auto")
    known = certificates(model, grid)
    assert np.any(known[4].rough > 0.0)
    again = problem()[0]
    again.rows.spares = True
    reference = restore_walk(again, screening, walk_state(model, screening, known[4]), grid[4])
    assert reference.rough.tobytes() == known[4].rough.tobytes() and reference.gap == known[4].gap
    found = solve_point(again, grid[5], 5, reference, screening, make_kernel_solver("auto"), options)[1]
    for name in ("theta", "total", "rough"):
        assert getattr(found, name).tobytes() == getattr(known[5], name).tobytes(), name
    state = walk_state(model, screening, known[4])
    for wrong in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="rough"):
            restore_walk(again, screening, {**state, "rough": np.full(300, wrong)}, grid[4])


def test_a_saved_run_with_rough_rows_is_proven(small, monkeypatch, tmp_path):
    _, X, y = problem()
    lines = (
        " ".join([f"{sign:+.0f}", *(f"{j + 1}:{v!r}" for j, v in enumerate(x))])
        for x, sign in zip(X.tolist(), y, strict=True)
    )
    (tmp_path / "data").write_text("\n".join(lines) + "\n")
    sums, calls = KernelBlocks.rough_sums, []
    monkeypatch.setattr(KernelBlocks, "rough_sums", lambda self, *args: calls.append(1) or sums(self, *args))
    options = dict(kernel="rbf", gamma=0.3, scale="none", intercept="free", c_list=[0.1, 1.0, 10.0], certificate=True)
    run = screenpath.run("svm", tmp_path / "data", **options, tol=1e-4, out=tmp_path / "run", quiet=True)
    assert calls and [step.status for step in run.steps] == 3 * ["certified"]
    found = screenpath.verify_certificate(tmp_path / "run")
    assert found.proven == 3 and found.holds
