"""DVI_s*, SSNSV and ESSNSV behind kernels, as the papers print them, from optima of another solver."""

from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from screenpath.catalogue.losses import LOSSES
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.screen import STATIC, Screening
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk.loop import PathOptions, solve_point

PLACES, AHEAD, FURTHER = (0.02, 0.3, 2.0), (1.02, 1.1, 1.5), 2.0
FOUND = 1e-6  # of the sizes of rows and targets: the other solver's accuracy
FAR_ENDS = ("ssnsv", "essnsv")


class Problem(NamedTuple):
    """A model, and what the papers' formulas are made of."""

    model: object
    Q: np.ndarray
    c: np.ndarray
    low: np.ndarray
    high: np.ndarray


def problem(loss: str, kernel: str, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 3)) + 1.0
    y = X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=50)
    if kernel == "poly":
        K, function = polynomial_kernel(X, degree=2, gamma=0.2, coef0=0.1), KernelFunction("poly", 0.2, 2, 0.1)
    else:
        K, function = rbf_kernel(X, gamma=0.05), KernelFunction("rbf", 0.05)
    one = np.ones(50)
    signs, c, low, high = {
        "svm": lambda: (np.where(y > 0.0, 1.0, -1.0), one, 0.0 * one, one), "lad": lambda: (one, y, -one, one),
        "quantile": lambda: (one, y, -0.7 * one, 0.3 * one),
        "svr": lambda: (np.repeat([1.0, -1.0], 50), np.append(y, -y) - 0.1, np.zeros(100), np.ones(100)),
    }[loss]()  # fmt: skip
    rows = GramRows(X, function, signs, 1 << 28, "float64")
    model = LOSSES[loss].model(rows, signs if loss == "svm" else y, None, None, epsilon=0.1, tau=0.3)
    whole = np.tile(K, (2, 2)) if loss == "svr" else K
    return Problem(model, np.outer(signs, signs) * whole, c, low, high)


def optimum(given: Problem, C: float) -> np.ndarray:
    """Return the dual variables, times C, by an interior-point method."""
    ridge = 1e-12 * np.trace(given.Q) * np.eye(given.c.size)
    alpha, root = cp.Variable(given.c.size), np.linalg.cholesky(given.Q + ridge)
    value = given.c @ alpha - 0.5 * cp.sum_squares(root.T @ alpha)
    cp.Problem(cp.Maximize(value), [alpha >= C * given.low, alpha <= C * given.high]).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    return alpha.value


def printed(given: Problem, rule: str, start: np.ndarray, C0: float, C: float, far: np.ndarray) -> np.ndarray:
    """Return the decisions of a rule as its paper has it, for references that are exact."""
    Q, norms = given.Q, np.sqrt(np.diag(given.Q))
    products, length = Q @ start, np.sqrt(start @ Q @ start)
    if rule == "dvi":  # Wang 2014, Corollaries 11 and 14
        center, reach = 0.5 * (C + C0) / C0 * products, 0.5 * (C - C0) / C0 * length * norms
        low, high = center - reach, center + reach
    else:  # Ogawa 2013, Theorem 2; Wang 2014, Theorem 18
        part = 0.5 if rule == "essnsv" else 0.0
        center, radius = part * (Q @ far), (1.0 - part) * np.sqrt(far @ Q @ far)
        height = (length * length - part * (far @ Q @ start)) / length  # of the plane above the ball's centre
        along = products / length
        across = np.sqrt(np.maximum(norms**2 - along**2, 0.0) * max(radius**2 - height**2, 0.0))
        low = center + np.where(-along * radius >= height * norms, -radius * norms, height * along - across)
        high = center + np.where(along * radius >= height * norms, radius * norms, height * along + across)
    return np.where(low > given.c, -1, np.where(high < given.c, 1, 0))


def certified(model, C: float):
    """Return a pair whose gap is near rounding."""
    unscreened, solver = Screening(None, False, "none"), make_kernel_solver("auto")
    return solve_point(model, C, 0, model.start(C), unscreened, solver, PathOptions(tol=1e-13))[1]


def cases(loss: str, kernel: str):
    """Yield rule, problem, far end, both parameters and the optima there."""
    given = problem(loss, kernel, 3)
    ends = [optimum(given, FURTHER * C) for C in PLACES]
    for C0, end in zip(PLACES, ends, strict=True):
        start = optimum(given, C0)
        for ahead in AHEAD:
            best = given.Q @ optimum(given, ahead * C0)
            for rule in ("dvi", *FAR_ENDS):
                yield rule, given, end, C0, ahead * C0, start, best


def decided(rule: str, model, near, C: float, far) -> np.ndarray:
    region = STATIC[rule]().region(model, near, C, *([far] if rule in FAR_ENDS else []))
    return model.screen(region).status


def wrong(given: Problem, status: np.ndarray, best: np.ndarray) -> int:
    """Return how many decisions an optimum's products contradict."""
    beyond, size = best - given.c, FOUND * (1.0 + np.abs(given.c) + np.abs(best))
    return int(np.count_nonzero(((status < 0) & (beyond < -size)) | ((status > 0) & (beyond > size))))


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("loss", ["svm", "lad", "quantile", "svr"])
def test_exact_references_decide_what_the_papers_print(loss, kernel):
    counts = dict.fromkeys(("dvi", *FAR_ENDS), 0)
    for rule, given, end, C0, C, start, best in cases(loss, kernel):
        near, far = certified(given.model, C0), certified(given.model, FURTHER * C0)
        found = decided(rule, given.model, near, C, far)
        np.testing.assert_array_equal(found, printed(given, rule, start, C0, C, end), f"{rule} at {C0}, {C}")
        assert wrong(given, found, best) == 0
        counts[rule] += np.count_nonzero(found)
    assert min(counts[rule] for rule in counts) > 0 or kernel == "rbf", counts
    assert counts["dvi"] > 100 and counts["essnsv"] >= counts["ssnsv"]


@pytest.mark.parametrize("rule", ["dvi", *FAR_ENDS])
def test_rough_references_decide_nothing_wrong_where_the_printed_rules_do(rule):
    rng, made, ours, theirs = np.random.default_rng(0), 0, 0, 0
    for loss in ("svm", "lad", "svr"):
        for name, given, end, C0, C, start, best in cases(loss, "poly"):
            for share in (0.3, 0.1, 0.01, 0.001) if name == rule else ():
                near, far = (rough(rng, given.model, at, known, share) for at, known in
                             ((C0, start), (FURTHER * C0, end)))  # fmt: skip
                found = decided(rule, given.model, near, C, far)
                as_exact = printed(given, rule, near.point.vector, C0, C, far.point.vector)
                made, ours = made + np.count_nonzero(found), ours + wrong(given, found, best)
                theirs += wrong(given, as_exact, best)
    assert made > 0 == ours and theirs > 0


def rough(rng, model, C: float, alpha: np.ndarray, share: float):
    """Return a pair on the way from the optimum to some dual point."""
    theta = (1.0 - share) * alpha / C + share * rng.uniform(model.lo, model.hi)
    return model.certify(C, None, np.clip(theta, model.lo, model.hi))
