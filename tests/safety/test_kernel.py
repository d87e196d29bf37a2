"""No rule of the kernel model decides a row that an accurate optimum contradicts, whatever the reference."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.catalogue.losses import LOSSES
from screenpath.problem.grid import log_grid
from screenpath.regions.geometry import Dome, KernelPoint, Lens
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.screen import STATIC, Screening, parse_kernel_rule
from screenpath.screen import box as rules
from screenpath.screen.box import pair_ball
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk.loop import PathOptions, solve_point, walk
from tests.width import wide

ACCURACIES = ("start", "arbitrary", "1 epoch", "1e-3", "1e-6", "1e-13", "path")
STATICS = ("dvi", "bt2", "it", "ssnsv", "essnsv")
RULES = (*STATICS, "gap")
SHAPES = ("plain", "far from the origin", "repeated rows", "one huge row")
UNSCREENED = Screening(None, False, "none")
FUNCTIONS = (
    KernelFunction("rbf", 0.5), KernelFunction("rbf", 5.0, constant=1.0), KernelFunction("rbf", 1e-3),
    KernelFunction("linear"), KernelFunction("poly", 0.5, 2, 1.0), KernelFunction("poly", 1.0, 3),
    KernelFunction("laplacian", 0.7),
)  # fmt: skip


def random_problem(rng, loss="svm", intercept=None):
    """Return a kernel model and the words that describe it; with ``loss`` None that of a regression."""
    loss = loss or str(rng.choice(["lad", "quantile", "svr"]))
    n, d = int(rng.integers(6, 40)), int(rng.integers(1, 6))
    function, shape, dtype = (
        rng.choice(len(FUNCTIONS)), str(rng.choice(SHAPES)), str(rng.choice(["float64", "float32"])),
    )  # fmt: skip
    X = rng.normal(size=(n, d))
    signs = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    X += signs[:, None] * rng.uniform(0.0, 1.5)
    if shape == "far from the origin":
        X += 10.0 ** rng.uniform(1.0, 4.0)
    if shape == "repeated rows":
        X[n // 2 :] = X[: n - n // 2]
        X[0] = 0.0
    if shape == "one huge row":
        X[0] *= 1e4
    weights = rng.integers(0, 3, n).astype(float) if rng.random() < 0.3 else None
    y, options = signs, {}
    if loss != "svm":
        y, signs = signs + X[:, 0] + rng.normal(size=n).round(1), np.repeat([1.0, -1.0][: 1 + (loss == "svr")], n)
        options = {"epsilon": float(rng.choice([0.0, 0.1, 1.0])), "tau": float(rng.choice([0.3, 0.5]))}
    rows = GramRows(X, FUNCTIONS[function], signs, 1 << 28, dtype)
    return LOSSES[loss].model(
        rows, y, weights, intercept, **options
    ), f"{loss}, {FUNCTIONS[function]}, {shape}, {dtype}"


def reference(rng, model, C, accuracy):
    if accuracy == "start":
        return model.start(C)
    if accuracy == "arbitrary":
        theta = model.lo + (model.hi - model.lo) * rng.choice([0.0, 1.0, rng.random()], size=model.size)
        return model.certify(C, None, theta)
    if accuracy == "path":  # sums updated from point to point, and starts on the way to the guess
        options, grid = PathOptions(tol=10.0 ** rng.uniform(-9.0, -2.0), max_epochs=200), C * np.geomspace(0.2, 1.0, 8)
        return [c for _, c in walk(model, grid, parse_kernel_rule("it"), make_kernel_solver("newton"), options)][-1]
    if accuracy == "1 epoch":
        options, name = PathOptions(tol=1e-14, max_epochs=1), "smo"
    else:
        options, name = PathOptions(tol=float(accuracy), max_epochs=200), "newton"
    return solve_point(model, C, 0, model.start(C), UNSCREENED, make_kernel_solver(name), options)[1]


@dataclass(frozen=True)
class Optimum:
    """Smallest and largest ``z_i.w`` over a ball around the optimum, and the ball, in extended precision."""

    Q: np.ndarray
    alpha: np.ndarray
    radius: float
    low: np.ndarray
    high: np.ndarray


def optimum(model, Q, C) -> Optimum:
    """Solve without screening; bound what is left by the gap, computed here in extended precision."""
    theta = reference(None, model, C, "1e-13").theta.astype(np.longdouble)
    alpha = C * theta
    products = Q @ alpha
    w_sq = alpha @ products
    t = model.c - products
    primal = w_sq / 2 + C * np.maximum(model.lo * t, model.hi * t).sum()
    gap = primal - (model.c @ alpha - w_sq / 2)
    radius = np.sqrt(max(gap, 0.0))  # primal and dual are both strongly convex: |w* - w|^2 <= gap
    reach = radius * np.sqrt(np.diag(Q))
    return Optimum(Q, alpha, float(radius), products - reach, products + reach)


def faults(model, region, truth) -> tuple[int, int]:
    """Return how many rows a region decides, and how many faults the optimum proves."""
    screened = model.screen(region)
    wrong = np.count_nonzero((screened.status < 0) & (truth.high < model.c))
    wrong += np.count_nonzero((screened.status > 0) & (truth.low > model.c))
    for ball in (region.first, region.second) if isinstance(region, Lens) else (region,):
        step = ball.center.vector - truth.alpha
        wrong += np.sqrt(max(step @ truth.Q @ step, 0.0)) > ball.radius + truth.radius
    if isinstance(region, Dome):
        wrong += -(region.normal.vector @ truth.Q @ step) > region.offset + truth.radius
    return screened.n_R + screened.n_L, int(wrong)


def check(seed, loss="svm"):
    """Yield rule, accuracy, decided rows, faults and words for one random problem."""
    rng = np.random.default_rng(seed)
    model, words = random_problem(rng, loss)
    Q = np.array([model.rows.weighted_sum(e) for e in np.eye(model.size)]).astype(np.longdouble)
    _, _, limit = model.closed_form()
    C0 = float((limit if 0.0 < limit < np.inf else 1.0) * 10.0 ** rng.uniform(0.0, 3.0))
    parameters = C0 * np.array([0.6, 1.0, 1.0 + 1e-6, 1.07, 3.0])
    exact = [optimum(model, Q, C) for C in parameters]
    distant = [reference(rng, model, 3.0 * C0 * rng.uniform(1.0, 3.0), a) for a in ("arbitrary", "1 epoch", "1e-6")]
    for accuracy in ACCURACIES:
        near = reference(rng, model, C0, accuracy)
        for C, truth in zip(parameters, exact, strict=True):
            for name in STATICS:
                rule, far = STATIC[name](), distant[rng.integers(3)]
                region = rule.region(model, near, C, *([far] if rule.needs_far_end else []))
                yield (name, accuracy, *faults(model, region, truth), words)
        truth = optimum(model, Q, near.C)
        yield ("gap", accuracy, *faults(model, pair_ball(near, near.C), truth), words)


@settings(max_examples=wide(12, 30), deadline=None)
@given(seed=st.integers(0, 10**6), loss=st.sampled_from(["svm", None]))
def test_no_rule_is_unsafe(seed, loss):
    for rule, accuracy, _, wrong, words in check(seed, loss):
        assert wrong == 0, f"{rule} from a reference of accuracy '{accuracy}' ({words}, seed {seed})"


def test_every_rule_decides_something():
    decided = dict.fromkeys(RULES, 0)
    for seed in range(8):
        for rule, _, count, wrong, words in check(seed, "svm" if seed % 2 else None):
            assert wrong == 0, f"{rule} ({words}, seed {seed})"
            decided[rule] += count
    assert min(decided.values()) > 0


def test_the_search_finds_a_radius_that_is_too_small(monkeypatch):
    right = rules.pair_radius
    monkeypatch.setattr(rules, "pair_radius", lambda *a: 0.9 * right(*a))
    assert any(wrong for seed in range(10) for rule, _, _, wrong, _ in check(seed) if rule == "dvi")


def test_the_search_finds_a_wrong_distance_between_the_centres(monkeypatch):
    right = KernelPoint.distance
    monkeypatch.setattr(KernelPoint, "distance", lambda a, b: 1.3 * right(a, b))
    assert any(wrong for seed in range(40) for rule, _, _, wrong, _ in check(seed) if rule == "it")


def test_the_search_finds_a_half_space_that_is_too_near(monkeypatch):
    monkeypatch.setattr(rules, "Dome", lambda c, r, a, offset, axis: Dome(c, r, a, offset - 0.05 * r, axis))
    assert any(wrong for seed in range(20) for rule, _, _, wrong, _ in check(seed) if rule == "ssnsv")


@pytest.mark.parametrize("rule", ["dvi", "bt2", "it", "gap", "it+gap", "ssnsv", "essnsv+gap"])
@pytest.mark.parametrize("solver", ["newton", "smo"])
def test_paths_agree_with_and_without_the_rule(rule, solver):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=150) > 0.0, 1.0, -1.0)
    model = LOSSES["svm"].model(GramRows(X, FUNCTIONS[0], y), y)
    grid, options = log_grid(1e-2, 1e3, 25), PathOptions(tol=1e-8)
    found = [s for s, _ in walk(model, grid, parse_kernel_rule(rule), make_kernel_solver(solver), options)]
    plain = [s for s, _ in walk(model, grid, UNSCREENED, make_kernel_solver("smo", False), options)]
    assert all(step.status == "certified" for step in (*found, *plain))
    for a, b in zip(found, plain, strict=True):
        assert a.dual <= b.primal * (1 + 1e-12) and b.dual <= a.primal * (1 + 1e-12)
