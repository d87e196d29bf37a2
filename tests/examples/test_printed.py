"""The printed rules equal re-implementations that know nothing of the package, on 200 random problems a paper.

Each re-implementation takes arrays alone: rows, signs, and what the reference is. Decisions are compared where the
bound is not within ``NEAR`` of its threshold; a formula that is wrong by a hundredth must be noticed.
"""

import importlib.util
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from screenpath.catalogue.losses import LAD, SVM
from screenpath.cli.app import run
from screenpath.problem.grid import log_grid
from screenpath.regions.geometry import Ball
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.screen.l1svm import parse_feature_rule
from screenpath.solve import make_solver
from screenpath.solve.l1cd import FeatureDescent
from screenpath.walk.loop import PathOptions, walk
from tests.conftest import ROOT, two_classes
from tests.l1_problems import l1_svm_model
from tests.sparse_problems import dual_rows, problem

FILE = ROOT / "examples" / "papers" / "printed.py"
spec = importlib.util.spec_from_file_location("printed_rules", FILE)
printed = importlib.util.module_from_spec(spec)
spec.loader.exec_module(printed)
PROBLEMS, NEAR = 200, 1e-7


def box_problem(seed: int):
    """Return a model, its rows and kinks as the papers write them, and certificates along a short path."""
    rng = np.random.default_rng(seed)
    X, y = two_classes(int(rng.integers(8, 16)), int(rng.integers(2, 4)), seed=seed, noise=rng.uniform(0.3, 1.5))
    regression = seed % 3 == 0
    targets = X @ rng.normal(size=X.shape[1]) + rng.normal(size=y.size) if regression else y
    model = (LAD if regression else SVM).model(MemoryRows(X), targets)
    rows, kinks = (X, targets) if regression else (y[:, None] * X, np.ones(y.size))
    grid, options = log_grid(0.02, 20.0 * rng.uniform(0.1, 1.0), 5), PathOptions(tol=1e-9)
    pairs = [pair for _, pair in walk(model, grid, parse_rule("none"), make_solver("newton"), options)]
    return model, rows, kinks, grid, pairs


def sides(lower, upper, kinks):
    """Return -1 where the lower bound is above the kink, 1 where the upper one is below it, and what is too near."""
    sure = (np.abs(lower - kinks) > NEAR) & (np.abs(upper - kinks) > NEAR)
    return np.where(lower > kinks, -1, np.where(upper < kinks, 1, 0)), sure


def agree(status, expected, sure) -> int:
    """Check that decisions are those expected; return how many there are."""
    assert np.array_equal(np.asarray(status)[sure], np.asarray(expected)[sure])
    return int(np.count_nonzero(np.asarray(status)[sure]))


def box_decisions(rule, model, *arguments):
    return model.screen(rule.region(model, *arguments)).status


# -- Wang 2014 -------------------------------------------------------------------------------------------------------


def corollary_8(rows, kinks, w, C0, C):
    """Decide in fractions, without a root: a number is compared with a product of two norms by squares."""
    w, ratio, found = [Fraction(v) for v in w], Fraction(C) / Fraction(C0), []
    size = sum(v * v for v in w)
    for row, kink in zip(rows, kinks, strict=True):
        x = [Fraction(v) for v in row]
        middle = (ratio + 1) / 2 * sum(a * b for a, b in zip(w, x, strict=True)) - Fraction(kink)
        beyond = middle * middle > ((ratio - 1) / 2) ** 2 * size * sum(v * v for v in x)
        found.append((-1 if middle > 0 else 1) if beyond else 0)
    return np.array(found)


def wang(rule=printed.DVI, problems=PROBLEMS):
    decided = 0
    for seed in range(problems):
        model, rows, kinks, grid, pairs = box_problem(seed)
        for C, near in zip(grid[1:], pairs, strict=False):
            w = near.point.vector
            expected = corollary_8(rows, kinks, w, near.C, C)
            reach = 0.5 * (C / near.C - 1) * np.linalg.norm(w) * np.linalg.norm(rows, axis=1)
            off = np.abs(np.abs(0.5 * (C / near.C + 1) * (rows @ w) - kinks) - reach)
            decided += agree(box_decisions(rule(), model, near, C), expected, off > NEAR)
    return decided


# -- Ogawa 2013 (and the supplement of Wang 2014) --------------------------------------------------------------------


def theorem_2(rows, w_a, w_b):
    """Return the bounds of the dome in the paper's closed form, ``gamma`` half a squared norm."""
    a, b, norms, products = 0.5 * w_a @ w_a, 0.5 * w_b @ w_b, np.linalg.norm(rows, axis=1), rows @ w_a
    turn = a * sqrt(2.0 / b)
    rim = np.sqrt(np.maximum((b - a) / a, 0.0) * np.maximum(2.0 * a * norms**2 - products**2, 0.0))
    lower = np.where(-products / norms >= turn, -sqrt(2.0 * b) * norms, products - rim)
    return lower, np.where(products / norms >= turn, sqrt(2.0 * b) * norms, products + rim)


def theorem_18(rows, w_a, w_b):
    """Return the bounds over the smaller ball and the half-space by the dual in one variable, ``mu`` of the latter."""
    center, radius = 0.5 * w_b, 0.5 * np.linalg.norm(w_b)

    def least(rows):
        def dual(mu):
            rest = rows - mu[:, None] * w_a
            return rest @ center - radius * np.linalg.norm(rest, axis=1) + mu * (w_a @ w_a)

        low, high = np.zeros(len(rows)), 1e4 * np.linalg.norm(rows, axis=1) / np.linalg.norm(w_a)
        for _ in range(90):  # concave: thirds
            one, two = low + (high - low) / 3, high - (high - low) / 3
            up = dual(one) < dual(two)
            low, high = np.where(up, one, low), np.where(up, high, two)
        return dual(low)

    return least(rows), -least(-rows)


def ogawa2013(rule=printed.SSNSV, bounds=theorem_2, problems=PROBLEMS):
    decided = 0
    for seed in range(problems):
        model, rows, kinks, grid, pairs = box_problem(seed)
        far = pairs[-1]
        for C, near in list(zip(grid[1:], pairs, strict=False))[-2:]:
            if near.point.sqnorm == 0.0 or far.point.sqnorm < near.point.sqnorm * (1 + 1e-6):
                continue  # a point that is feasible has the longer w
            found, sure = sides(*bounds(rows, near.point.vector, far.point.vector), kinks)
            decided += agree(box_decisions(rule(), model, near, C, far), found, sure)
    return decided


# -- Ogawa 2014 ------------------------------------------------------------------------------------------------------


def balls(rows, kinks, lo, hi, w, C0, C):
    """Return centre and radius of BT1 and BT2; in the SVM's notation, with dual variables between ``lo`` and ``hi``."""
    m1, r1 = (C + C0) / (2 * C0) * w, (C - C0) / (2 * C0) * np.linalg.norm(w)
    t = kinks - rows @ w
    xi = np.maximum(lo * t, hi * t).sum()
    s = np.where(kinks - (C + C0) / (2 * C0) * (rows @ w) > 0, hi, lo)
    m2 = 0.5 * (w + C * rows.T @ s)
    return m1, r1, m2, sqrt(max(m2 @ m2 + C * (xi - s @ kinks), 0.0))


def theorem_8(rows, m1, r1, m2, r2):
    """Return the bounds of the intersection test: equations (20) and (24)."""
    phi = m1 - m2
    length, norms = np.linalg.norm(phi), np.linalg.norm(rows, axis=1)
    zeta = (length**2 + r2**2 - r1**2) / (2 * length)
    psi, kappa = m2 + zeta * phi / length, sqrt(max(r2**2 - zeta**2, 0.0))
    rim = kappa * np.sqrt(np.maximum(norms**2 - (rows @ phi) ** 2 / length**2, 0.0))

    def pick(sign):
        turn = sign * (rows @ phi) / (norms * length)
        one, two = rows @ m1 + sign * r1 * norms, rows @ m2 + sign * r2 * norms
        return np.where(turn < (zeta - length) / r1, one, np.where(zeta / r2 < turn, two, rows @ psi + sign * rim))

    return pick(-1), pick(1)


def ogawa2014(names=("BT1", "BT2", "IT"), problems=PROBLEMS):
    decided = 0
    for seed in range(problems):
        model, rows, kinks, grid, pairs = box_problem(seed)
        norms = np.linalg.norm(rows, axis=1)
        for C, near in zip(grid[1:], pairs, strict=False):
            m1, r1, m2, r2 = balls(rows, kinks, model.lo, model.hi, near.point.vector, near.C, C)
            apart = np.linalg.norm(m1 - m2)
            bounds = {
                "BT1": (rows @ m1 - r1 * norms, rows @ m1 + r1 * norms),
                "BT2": (rows @ m2 - r2 * norms, rows @ m2 + r2 * norms),
                "IT": theorem_8(rows, m1, r1, m2, r2) if abs(r1 - r2) < apart - 1e-6 < r1 + r2 - 2e-6 else None,
            }
            for name in names:
                if bounds[name] is not None:  # else one ball holds the other, or they touch
                    found, sure = sides(*bounds[name], kinks)
                    decided += agree(box_decisions(getattr(printed, name)(), model, near, C), found, sure)
    return decided


# -- Zhao 2014 -------------------------------------------------------------------------------------------------------


def algorithm_1(features, y, theta, lam1, lam2):
    """Return ``max |f.theta|`` of every signed feature: neg_min by the cases of Corollaries 3.6, 3.8 and 3.10."""

    def project(u, v):
        return v - (v @ u) / (u @ u) * u

    one = np.ones(y.size)
    a = (one / lam1 - theta) / np.linalg.norm(one / lam1 - theta)
    b = 0.5 * (one / lam2 - theta)
    ya, yb, ay, a1 = project(y, a), project(y, b), project(a, y), project(a, one)
    within = project(ay, a1)

    def neg_min(f):
        yf = project(y, f)
        size = np.linalg.norm(yf)
        if ya @ (yb / np.linalg.norm(yb) - yf / size) <= 0:
            return np.linalg.norm(yb) * size - yb @ yf - theta @ f
        last = project(ay, project(a, f))
        gained = np.linalg.norm(within) * np.linalg.norm(last) - within @ last
        return 0.5 * (1 / lam2 - 1 / lam1) * gained - theta @ f

    return np.array([max(neg_min(f), neg_min(-f)) for f in features])


def zhao(rule=printed.VI, problems=PROBLEMS):
    decided = 0
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        X, y = two_classes(int(rng.integers(10, 20)), int(rng.integers(5, 12)), seed=seed)
        model, _ = l1_svm_model(X, y)
        grid = model.lam_max * np.array([0.8, 0.6, 0.45, 0.4])
        found = walk(model, grid, parse_feature_rule("none"), FeatureDescent(), PathOptions(tol=1e-10))
        for lam, (_, near) in zip(grid[1:], found, strict=False):
            most = algorithm_1((y[:, None] * X).T, y, near.theta, near.lam, lam)
            status = model.screen(rule().region(model, near, lam)).status
            decided += agree(status != 0, most < 1.0, np.abs(most - 1.0) > NEAR)
    return decided


# -- Hong 2019 -------------------------------------------------------------------------------------------------------


def sifs(rows, n, w, theta, alpha0, alpha, beta, gamma, samples, features):
    """Return the sets R, L and F of Algorithm 1 and how near a bound was, by loops over pairs and weights."""
    R, L, F = set(), set(), set()
    nearest = np.inf
    while True:
        before = len(R) + len(L) + len(F)
        live = [j for j in range(w.size) if j not in F]
        if samples:
            c = (alpha0 + alpha) / (2 * alpha) * w[live]
            r2 = ((alpha0 - alpha) / (2 * alpha)) ** 2 * w @ w
            r2 -= ((alpha0 + alpha) / (2 * alpha)) ** 2 * sum(w[j] ** 2 for j in F)
            for i in set(range(len(rows))) - R - L:
                reach = np.linalg.norm(rows[i, live]) * sqrt(max(r2, 0.0))
                u, low = 1 - rows[i, live] @ c + reach, 1 - rows[i, live] @ c - reach
                nearest = min(nearest, abs(u), abs(low - gamma))
                R |= {i} if u < 0 else set()
                L |= {i} if low > gamma else set()
        if features:
            c = (alpha - alpha0) / (2 * gamma * alpha) + (alpha0 + alpha) / (2 * alpha) * theta
            r2 = ((alpha - alpha0) / (2 * alpha)) ** 2 * np.sum((theta - 1 / gamma) ** 2)
            r2 -= sum((1 - c[i]) ** 2 for i in L) + sum(c[i] ** 2 for i in R)
            rest = [i for i in range(len(rows)) if i not in R and i not in L]
            for j in live:
                column = rows[:, j]
                s = abs(column[rest] @ c[rest] + column[list(L)].sum()) + np.linalg.norm(column[rest]) * sqrt(
                    max(r2, 0)
                )
                nearest = min(nearest, abs(s / n - beta))
                F |= {j} if s / n <= beta else set()
        if len(R) + len(L) + len(F) == before:
            return R, L, F, nearest


def hong(name="SIFS", problems=PROBLEMS):
    decided = compared = 0
    for seed in range(problems):
        rng, classes = np.random.default_rng(seed), 2 + seed % 2
        gamma = float(rng.uniform(0.05, 0.9))
        X, y, model = problem(classes, n=int(rng.integers(9, 18)), d=int(rng.integers(4, 9)), seed=seed, gamma=gamma)
        rows, places = dual_rows(X, y, classes)
        model = model.at(rng.uniform(0.1, 0.7) * model.beta_max)
        alpha0 = rng.uniform(0.1, 0.9) * model.alpha_max()
        near, alpha = model.start(alpha0), alpha0 * rng.uniform(0.5, 0.98)
        rule = getattr(printed, name)()
        found = rule.before(model, near, alpha)
        what = rule.samples, rule.features
        R, L, F, off = sifs(rows, model.n, near.w, near.theta[places], near.alpha, alpha, model.beta, gamma, *what)
        if off > NEAR:
            compared += 1
            duals, keep = found.duals[places], found.keep
            assert (set(np.flatnonzero(duals < 0)), set(np.flatnonzero(duals > 0))) == (R, L)
            assert set(np.flatnonzero(keep == 0)) == F
            decided += len(R) + len(L) + len(F)
    assert compared > 0.9 * problems
    return decided


def test_wang_2014():
    assert wang() > 1000


def test_ogawa_2013():
    assert ogawa2013() > 300


def test_wang_2014_supplement():
    assert ogawa2013(printed.ESSNSV, theorem_18) > 300


def test_ogawa_2014():
    assert ogawa2014() > 3000


def test_zhao_2014():
    assert zhao() > 300


@pytest.mark.parametrize("name", ["SIFS", "ISS", "IFS"])
def test_hong_2019(name):
    assert hong(name) > 200


class Smaller(printed.DVI):
    """DVI with a radius that is a hundredth too small."""

    def region(self, model, reference, C):
        ball = super().region(model, reference, C)
        return Ball(ball.center, 0.99 * ball.radius)


def test_a_wrong_radius_is_noticed():
    with pytest.raises(AssertionError):
        wang(Smaller)


# -- the mark that the engine honours --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ["svm", "--intercept", "none", "--rule", f"{FILE}:DVI", "--out", "-"],
        ["compare-rules", "svm", "--intercept", "none", "--rules", f"none,{FILE}:DVI"],
        ["compare-rules", "l1svm", "--configurations", f"scr,{FILE}:VI"],
        ["compare-rules", "sparse-svm", "--intercept", "none", "--rules", f"none,{FILE}:SIFS"],
    ],
    ids=lambda command: command[0] + " " + command[1],
)
def test_a_printed_rule_needs_an_audit(command, capsys):
    where = 2 if command[0] == "compare-rules" else 1
    command = [*command[:where], str(ROOT / "data_samples" / "wang_toy2.libsvm"), *command[where:]]
    assert run([*command, "--quiet"]) == 2
    told = capsys.readouterr().err
    assert "assumes exact references" in told and "--audit" in told
    few = ("--grid", "3") if "sparse-svm" not in command else ("--betas", "2", "--alphas", "3")
    assert run([*command, "--audit", *few, "--quiet"]) == 0


def test_an_attack_shows_why(capsys):
    rules = f"dvi,{FILE}:DVI"
    assert (
        run(["compare-rules", "svm", "--intercept", "none", "--rules", rules, "--attack", "30", "--format", "csv"]) == 3
    )
    ours, theirs = (line.split(",") for line in capsys.readouterr().out.splitlines()[1:3])
    assert int(ours[4]) == 0 < int(theirs[4])
