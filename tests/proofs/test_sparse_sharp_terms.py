"""Sharpened certificates of sparse models whose sums are off by much: bounds have to hold whatever the errors are."""

from dataclasses import replace
from fractions import Fraction as F
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.kernels.problem.sparse import feature_terms
from screenpath.problem import penalised_sharp
from screenpath.problem.penalised_sharp import _norm, _Sums, _total, sharpened
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_free import FreeSparseModel
from screenpath.rows.views import Views

GAMMA = 0.5
KINDS = {"two": (SparseModel, 1), "two free": (FreeSparseModel, 1), "three": (SparseModel, 3)}


class Problem:
    """A small model with a pair, and its objectives by their definitions."""

    def __init__(self, seed, kind, alpha, weighted=True, near=True):
        rng = np.random.default_rng(seed)
        make, classes = KINDS[kind]
        self.n, self.d = 8, 4
        X = rng.normal(size=(self.n, self.d))
        X[rng.random(X.shape) < 0.2] = 0.0
        labels = np.where(np.arange(self.n) % 3 == 0, 1, -1) if classes == 1 else np.arange(self.n) % 3
        s = rng.uniform(0.3, 3.0, self.n) if weighted else None
        base = make(Views(X), labels, classes, 0.0, GAMMA, s)
        self.model = model = base.at(float(rng.uniform(0.1, 0.8)) * base.beta_max)
        self.X, self.labels, self.classes, self.alpha = X, labels, classes, alpha
        w = 0.3 * rng.normal(size=classes * self.d) * (rng.random(classes * self.d) < 0.6)
        self.c = model.certify(alpha, w, None)
        if not near:  # the dual point of other weights, which is in balance as well
            other = model.certify(0.3, rng.normal(size=w.size), None)
            self.c = model.certify(alpha, w, other.theta)
        self.scores, self.u = self.c.scores.copy(), self.c.u.copy()

    def values(self):
        """Return the primal value and the gap, from scores and sums before they were disturbed."""
        m, c, n = self.model, self.c, self.n
        pairs = np.flatnonzero(m.free == 0)
        i = pairs % n
        own = (self.labels[i] * self.scores[i] if self.classes == 1
               else self.scores[self.labels[i] * n + i] - self.scores[pairs])  # fmt: skip
        t, theta, s = 1.0 - own, c.theta[pairs], m.weights[i]
        hinge = np.where(t <= 0.0, 0.0, np.where(t <= GAMMA, t * t / (2.0 * GAMMA), t - 0.5 * GAMMA))
        primal = s @ hinge / n + 0.5 * self.alpha * c.w @ c.w + m.beta * np.abs(c.w).sum()
        dual = s @ (theta - 0.5 * GAMMA * theta**2) / n
        beyond = np.maximum(np.abs(self.u) - m.beta, 0.0)
        if self.alpha > 0.0:
            dual -= beyond @ beyond / (2.0 * self.alpha)
        else:
            assert beyond.max() <= 1e-12
        return float(primal), float(primal - dual)


@pytest.fixture
def coarse(monkeypatch):
    """Let sums be off by a lot: what is said of rows and columns is 1e10 times as much."""

    def call(problem, rng, of_rows=3e-3, of_columns=3e-3, way=None):
        model, c = problem.model, problem.c
        bounds = model.rounding
        monkeypatch.setattr(bounds, "row", of_rows)
        monkeypatch.setattr(bounds, "column", of_columns)
        sums = _Sums(model, c)
        part = 1.0 if problem.classes == 1 else 0.5  # of two scores each is off by half
        ways = rng.choice([-1.0, 1.0], c.scores.size) if way is None else way
        most = np.zeros(c.scores.size)
        np.minimum.at(most, sums.pairs, 0.0)
        most[sums.pairs] = sums.t_error
        if problem.classes > 1:
            by_row = np.full(problem.n, np.inf)
            np.minimum.at(by_row, sums.pairs % problem.n, sums.t_error)
            most = np.tile(by_row, problem.classes)
        c.scores = problem.scores + part * most * ways
        c.u = problem.u.copy()
        c.u[sums.features] += sums.u_error * rng.choice([-1.0, 1.0], sums.features.size)
        return _Sums(model, c)

    return call


@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("alpha", [0.3, 0.0])
@pytest.mark.parametrize("kind", KINDS)
def test_a_gap_of_sums_that_are_off_is_not_below_the_true_one(kind, alpha, near, coarse):
    nearest, known = np.inf, 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        problem = Problem(seed, kind, alpha, weighted=seed % 2 == 0, near=near)
        primal, gap = problem.values()
        if not np.isfinite(problem.c.gap):
            continue
        sums = coarse(problem, rng, *rng.choice([1e-4, 3e-3, 3e-2], 2))
        found = sums.certificate()
        assert found.gap >= gap - 1e-13, seed
        assert abs(found.primal - primal) <= found.primal_error + 1e-13, seed
        assert found.rounding <= found.gap
        known, nearest = known + 1, min(nearest, (found.gap - gap) / primal)
        # Once all of them are formed again nothing is left of that.
        while sums.form(0.0, 0.0):
            found = sums.certificate()
            assert found.gap >= gap - 1e-13
        found = sums.certificate()
        assert found.gap == pytest.approx(gap, abs=1e-10) and found.primal == pytest.approx(primal, rel=1e-10)
        assert found.primal_error < 1e-10
    assert known > 20 and nearest < 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_sums_formed_again_are_those_of_the_data(kind):
    for seed in range(10):
        problem = Problem(seed, kind, 0.3, weighted=seed % 2 == 0, near=False)
        m, c = problem.model, problem.c
        sums = _Sums(m, c)
        touched = m.rows.touched
        psi = m.weigh(c.theta).reshape(m.classes, problem.n)
        for k, pair in enumerate(sums.pairs.tolist()):
            value, error = sums._margin(pair)
            assert value == pytest.approx(sums.t[k], abs=1e-12) and error < 1e-14
        for f in range(m.classes * problem.d):
            value, error = sums._sum(f)
            column = problem.X[:, f % problem.d]
            assert value == pytest.approx(column @ psi[f // problem.d] / problem.n, abs=1e-12) and error < 1e-14
            assert abs(value - c.u[f]) < 1e-12
            # Weights are rounded, and products with them: seen by how many of them there are.
            if m.weighted and value != 0.0:
                size = np.abs(column) @ np.abs(psi[f // problem.d]) / problem.n
                assert error >= 2.0 * 2.0**-53 * size
        assert m.rows.touched - touched == problem.d * (problem.n * m.classes + sums.pairs.size)


def test_a_sum_that_does_not_balance_adds_what_the_dual_point_may_move(coarse):
    """A dual point is off by a known change: the gap of the one that is meant is not above what is said."""
    worse = 0
    for seed in range(20):
        problem = Problem(seed, "two free", 0.3, near=False)
        m, c = problem.model, problem.c
        rng = np.random.default_rng(seed)
        meant = c.theta.copy()
        i = int(rng.integers(0, problem.n))
        meant[i] += (0.05 if meant[i] < 0.5 else -0.05) * rng.uniform(0.5, 1.0)
        more = abs(meant[i] - c.theta[i])
        slope = abs(1.0 - problem.labels[i] * problem.scores[i] - GAMMA * c.theta[i]) + GAMMA * more
        c.off, c.cost = more * np.sqrt(m.weights[i]), m.weights[i] / problem.n * more * slope
        c.shift = m.weights[i] / problem.n * more * float(np.linalg.norm(problem.X[i]))
        plain = _Sums(m, c).certificate()  # nothing else is off
        _, before = problem.values()
        sums = coarse(problem, rng)
        found = sums.certificate()
        c.theta, kept = meant, c.theta
        problem.u = m.column_sums(m.weigh(meant))
        _, gap = problem.values()
        c.theta = kept
        assert min(found.gap, plain.gap) >= gap - 1e-13, seed
        worse += gap > before + 1e-6
        off = np.sqrt(sum(m.weights[p] * e * e for p, e in zip(sums.pairs % 8, sums.t_error, strict=True))) / 8
        errors, beyond = np.linalg.norm(sums.u_error), np.sign(sums.u) * np.maximum(np.abs(sums.u) - m.beta, 0.0)
        for w in (beyond / 0.3, beyond / 0.3 + np.eye(sums.w.size)[0] * 5.0):
            sums.w, apart = w, np.linalg.norm(beyond / 0.3 - w)
            most = c.cost + c.off * off + (apart + (errors + 0.5 * c.shift) / 0.3) * c.shift
            assert most <= sums._residue() * (1.0 + 1e-12) and sums._residue() == pytest.approx(most)
    assert worse > 5


def test_sums_are_formed_again_where_they_matter_and_there_alone():
    """A share of what is left of the tolerance for each: none is left that has more, and none is formed in vain."""
    problem = Problem(3, "three", 0.3, near=False)
    sums = _Sums(problem.model, problem.c)
    sums.certificate()
    sums.t_adds = np.zeros(sums.t.size)
    sums.loss_adds, sums.u_adds = sums.t_adds.copy(), np.zeros(sums.u.size)
    sums.t_adds[[1, 4]], sums.loss_adds[[2, 6]], sums.u_adds[[0, 3]] = (0.2, 0.1), (0.02, 0.001), (0.2, 0.1)
    assert sums.form(1.0, 1.0)  # 0.25 for two entries, and 0.01
    assert np.flatnonzero(sums.formed_t).tolist() == [1, 2] and np.flatnonzero(sums.formed_u).tolist() == [0]
    assert not sums.form(1.0, 1.0) and sums.form(0.1, 1.0)
    assert np.flatnonzero(sums.formed_t).tolist() == [1, 2, 4] and np.flatnonzero(sums.formed_u).tolist() == [0, 3]


def test_it_ends_where_the_tolerance_is_met_or_nothing_is_left_to_form(monkeypatch):
    problem, rounds = Problem(3, "two", 0.3), []
    own = _Sums.form
    monkeypatch.setattr(_Sums, "form", lambda self, *rooms: rounds.append(rooms) or own(self, *rooms))
    found = sharpened(problem.model, problem.c, 1.0)
    assert not rounds and found.gap <= found.primal
    found = sharpened(problem.model, problem.c, 1e-18)
    assert rounds[0] == (1e-18 * found.primal, pytest.approx(found.primal)) and len(rounds) <= penalised_sharp.ROUNDS
    problem.c.w = np.full(problem.d, 1e200)
    with np.errstate(all="ignore"):
        assert sharpened(problem.model, problem.c, 1e-9).gap == np.inf and len(rounds) <= penalised_sharp.ROUNDS


def test_sums_and_norms_are_not_below_the_true_ones():
    values = np.full(1000, 0.1)
    assert _norm(values) >= np.sqrt(1000) * 0.1 and _norm(values) <= np.sqrt(1000) * 0.1 * (1.0 + 1e-14)
    assert _total(np.array([1e16, 1.0, -1e16])) == 1.0
    assert _total(np.array([np.inf, -np.inf])) == np.inf and np.isnan(_total(np.array([np.nan, 1.0])))


# -- entry by entry ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_sum_is_off_by_is_not_below_that_of_its_terms(kind, weighted):
    """Each term of a sum may be off by that part of it; norms are not below the sums of the terms' sizes."""
    for seed in range(10):
        problem = Problem(seed, kind, 0.3, weighted, near=False)
        m, c, X, n, d = problem.model, problem.c, np.abs(problem.X), problem.n, problem.d
        m.rounding.row, m.rounding.column = 0.25, 0.125
        if m.intercept:
            c.intercept = 50.0 if m.classes == 1 else np.array([50.0, -30.0, -20.0])
        sums, w = _Sums(m, c), np.abs(c.w).reshape(m.classes, d)
        b = np.abs(np.broadcast_to(c.intercept, m.classes))
        longest = np.sqrt((w * w).sum()) * m.rounding.spread
        for pair, error in zip(sums.pairs.tolist(), sums.t_error.tolist(), strict=True):
            k, i = divmod(pair, n)
            used = [k] if m.classes == 1 else [k, problem.labels[i]]
            terms = sum(X[i] @ w[j] + b[j] for j in used) + 1.0
            most = np.linalg.norm(X[i]) * longest + float(b.sum()) + 4.0
            assert 0.25 * terms <= error <= 0.25 * most * (1.0 + 1e-9)
        psi = np.abs(m.weigh(c.theta)).reshape(m.classes, n)
        for f, error in zip(sums.features.tolist(), sums.u_error.tolist(), strict=True):
            column, of = X[:, f % d], psi[f // d]
            most = np.linalg.norm(column) * np.linalg.norm(of) / n
            assert 0.125 * (column @ of) / n <= error <= 0.125 * most * (1.0 + 1e-9) + 1e-140
        known = (c.u_slack == 0.0) | (c.w != 0.0)
        assert sums.features.tolist() == np.flatnonzero(known).tolist()


def test_a_feature_whose_sum_is_not_known_is_left_out_where_it_has_no_weight():
    problem = Problem(1, "three", 0.3)
    c = problem.c
    c.u_slack, c.w = np.array([0.0, 0.1] * 6), np.array([0.0, 0.0, 1.0] * 4)
    assert _Sums(problem.model, c).features.tolist() == [k for k in range(12) if k % 2 == 0 or k % 3 == 2]


def one_term(alpha=0.5, beta=0.3, gamma=GAMMA, t=0.0, theta=0.0, t_error=0.0, w=0.0, u=0.0, u_error=0.0, weight=1.0):
    """Return what is said of one sample and one feature."""
    sums = object.__new__(_Sums)
    sums.model = SimpleNamespace(
        n=1, gamma=gamma, low=0.0, high=1.0, signs=np.zeros(1, dtype=np.int8), rounding=SimpleNamespace(inexact=0.0),
        tail=np.zeros(1),  # of rounded kinks: a t of 0 may be off
    )  # fmt: skip
    sums.features = np.arange(1)
    sums.c = replace(BASE, alpha=alpha, beta=beta, floor=0.0, off=0.0)
    sums.t, sums.theta, sums.t_error, sums.weights = (np.array([v]) for v in (t, theta, t_error, weight))
    sums.w, sums.u, sums.u_error = (np.array([v]) for v in (w, u, u_error))
    return sums.certificate()


BASE = Problem(0, "two", 0.3).c


def sample(t: F, theta: F, gamma: F) -> tuple[F, F]:
    """Return the loss and the share of the gap."""
    loss = F(0) if t <= 0 else t * t / (2 * gamma) if t <= gamma else t - gamma / 2
    return loss, loss - theta * t + gamma / 2 * theta**2


def feature(w: F, u: F, alpha: F, beta: F) -> F:
    """Return the share of the gap."""
    beyond = max(abs(u) - beta, F(0))
    return alpha * w * w / 2 + beta * abs(w) - w * u + (beyond**2 / (2 * alpha) if alpha else 0)


def test_the_share_of_a_sample_holds_for_all_that_its_margin_may_be():
    """Margins around both kinks, and dual variables at the ends, at the best one, and next to it."""
    tight = 0
    for seed in range(1500):
        rng = np.random.default_rng(seed)
        gamma, e = float(rng.choice([0.5, 1e-3, 2.0**-30])), float(rng.choice([0.0, 1e-12, 0.01]))
        t = float(rng.choice([0.0, gamma])) + float(rng.choice([-1.0, 0.0, 1.0])) * float(rng.uniform(0.0, 3.0)) * (
            e or float(rng.choice([1e-16, 0.5 * gamma]))
        )
        best = min(max(t / gamma, 0.0), 1.0)
        near = min(max(best + float(rng.integers(-3, 4)) * 2.0**-53, 0.0), 1.0)
        theta, weight = float(rng.choice([0.0, 1.0, best, near, rng.uniform()])), float(rng.uniform(0.3, 3.0))
        found = one_term(t=t, theta=theta, t_error=e, gamma=gamma, weight=weight)
        gaps = []
        for way in (F(-1), F(-1, 2), F(0), F(1, 2), F(1)):
            true = F(t) + way * F(e)
            loss, gap = (F(weight) * v for v in sample(true, F(theta), F(gamma)))
            assert F(found.gap) >= gap and abs(F(found.primal) - loss) <= F(found.primal_error), seed
            gaps.append(float(gap))
        tight += found.gap <= 2.0 * max(gaps) + 1e-300
    assert tight > 700


def test_the_share_of_a_feature_holds_for_all_that_its_sum_may_be():
    tight = 0
    for seed in range(1500):
        rng = np.random.default_rng(seed)
        alpha, beta = float(rng.choice([0.0, 0.5, 1e-3])), float(rng.choice([0.3, 7.0]))
        e = float(rng.choice([0.0, 1e-12, 0.01]))
        u = float(rng.choice([-1.0, 1.0])) * (
            beta + float(rng.uniform(-3.0, 3.0)) * (e or float(rng.choice([1e-16, 1.0])))
        )
        beyond = np.sign(u) * max(abs(u) - beta, 0.0)
        w = float(rng.choice([0.0, beyond / (alpha or 1.0), rng.normal(), -u])) * float(
            rng.choice([1.0, 1.0 + 2.0**-51])
        )
        found, gaps = one_term(alpha, beta, w=w, u=u, u_error=e, t=-1.0), [0.0]
        penalty = F(alpha) * F(w) ** 2 / 2 + F(beta) * abs(F(w))
        assert abs(F(found.primal) - penalty) <= F(found.primal_error), seed
        for way in (F(-1), F(-1, 2), F(0), F(1, 2), F(1)):
            true = F(u) + way * F(e)
            if alpha == 0.0 and abs(true) > F(beta):
                continue  # of a dual point none is
            gap = feature(F(w), true, F(alpha), F(beta))
            assert F(found.gap) >= gap, seed
            gaps.append(float(gap))
        tight += found.gap <= 4.0 * max(gaps) + 1e-300
    assert tight > 600


# -- without the L2 term ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_ray_leads_to_a_dual_point_whatever_its_sums_are_off_by(kind, monkeypatch):
    tight = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        problem = Problem(seed, kind, 0.3, weighted=seed % 2 == 0, near=False)
        m, theta = problem.model, problem.c.theta
        monkeypatch.setattr(m.rounding, "column", 0.01)
        slack = rng.uniform(0.0, 0.05, problem.u.size) * rng.choice([0.0, 1.0])
        lengths = np.repeat(np.linalg.norm(m.weigh(theta).reshape(m.classes, problem.n), axis=1), problem.d)
        error = 0.01 * lengths * np.tile(m.feature_norm, m.classes)
        off = (slack + error) * rng.choice([-1.0, 1.0], slack.size)
        found, u, rest, largest = m.within_beta(theta, problem.u + off, slack)
        factor = found.max() / theta.max()
        assert 0.0 < factor <= 1.0 and np.allclose(found, factor * theta)
        assert factor * np.abs(problem.u).max() <= largest <= m.beta  # the true sums
        np.testing.assert_allclose((u, rest), (factor * (problem.u + off), factor * slack))
        if factor < 1.0:
            most = (np.abs(problem.u + off) + slack + error).max()
            assert factor >= (1.0 - 1e-10) * m.beta / most
            tight += 1
        else:
            assert found is theta
    assert tight > 5


def test_of_a_dual_point_out_of_balance_only_a_part_is_one_and_the_gap_is_that_of_this_part(monkeypatch):
    """Its sums alone are within beta, and are not with what it is moved by."""
    for seed in range(10):
        problem = Problem(seed, "two free", 0.3, near=False)
        m, theta, w, asked = problem.model, problem.c.theta, problem.c.w, []
        top = float(np.abs(problem.u).max())
        shift = 0.01 * top
        monkeypatch.setattr(m, "residue", lambda *args, of=shift, to=asked: to.append(args) or {"shift": of})
        for beta, left in ((1.005 * top, False), (1.0101 * top, True)):
            m.beta, problem.alpha = beta, 0.0
            c = m.certify(0.0, w, theta)
            assert (c.part == 1.0) == left and c.theta is theta and c.part * (top + shift) <= beta
            # Moved by so much that a sum is at beta, or beyond: the part of it that is within has the gap at most.
            problem.c = c
            primal, gap = problem.values()
            less = s_dual(m, c.part * theta)
            assert c.gap >= primal - less - 1e-13 and c.gap <= gap + shift * np.abs(w).sum() + 0.01 * primal
            for tol in (1e-3, 1e-15):
                found = sharpened(m, c, tol)
                assert found.gap >= primal - less - 1e-13 and found.part == c.part
        sizes = np.abs(problem.X) @ np.abs(w.reshape(m.classes, problem.d).T)
        most = np.abs(w) @ np.tile(np.linalg.norm(problem.X, axis=0), m.classes)
        extent, size = [args[2] for args in asked], abs(c.intercept)
        assert sizes.max() + size <= min(extent) and max(extent) <= most * (1.0 + 1e-12) + size


def s_dual(m, theta):
    """Return the dual value of a dual point at ``alpha = 0``."""
    return float(m.weights @ (theta - 0.5 * GAMMA * theta**2) / m.n)


def test_a_point_whose_sums_are_no_numbers_gives_way_to_that_of_zeros():
    problem = Problem(0, "two free", 0.3, near=False)
    size = problem.u.size
    for u in (np.full(size, np.inf), np.full(size, np.nan)):
        found, *sums = problem.model.within_beta(problem.c.theta, u, np.zeros(size))
        assert not found.any() and not np.any(sums[:2]) and sums[2] == 0.0


def test_the_penalty_of_a_dual_point_has_its_kinks_alone():
    w, u, norms = np.array([0.5, -0.25, 0.0, 2.0]), np.array([0.3, 0.1, 0.7, -0.2]), np.array([1.0, 2.0, 4.0, 8.0])
    terms = feature_terms(w, u, np.zeros(4, dtype=np.int8), np.arange(4), norms, 0.0, 0.8)
    w_sq, w_l1, kink, lag_sq, lag_w, reach, _, nonzero = terms
    assert (w_sq, lag_sq, lag_w, nonzero, w_l1) == (0.0, 0.0, 0.0, 3, 2.75)
    assert kink == pytest.approx(0.8 * 2.75 - w @ u) and reach == pytest.approx(np.abs(w) @ norms)
