"""Sparse models with a free intercept, with targets, with signs of weights: no decision is wrong, paths agree."""

from functools import partial

import numpy as np
import pytest

from screenpath.kernels.problem import sparse as kernels
from screenpath.kernels.screen import sifs
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_free import FreeSparseModel
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.rows.views import Views
from screenpath.screen import sparse as rules
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.sparse_newton import SparseNewton
from screenpath.walk.loop import Audit, PathOptions, walk
from tests.safety.sparse_attack import (
    SURE,
    attack,
    exact_hinge,
    huber_model,
    labelled,
    pinned,
    regression,
    shrink,
    signed,
    solved,
    squared_hinge,
    wrong_decisions,
)
from tests.width import wide

HUBER = {f"huber, intercept {intercept}": partial(regression, intercept=intercept) for intercept in (None, "free")}
PINNED = {f"{classes} classes": partial(pinned, classes=classes) for classes in (2, 3)}
FREE = {"hinge": labelled, "exact hinge": exact_hinge, "squared hinge": squared_hinge}
PROBLEMS = {**FREE, **PINNED, **HUBER, "signs": signed}
# Problems of a narrow and a wide run, and how many decisions each must have at the least.
COUNTS = {"hinge": (20, 60, 160), "exact hinge": (12, 24, 40), "squared hinge": (14, 40, 25), "signs": (24, 90, 100)}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_no_decision_is_wrong(kind):
    narrow, most, least = COUNTS.get(kind, (12, 60, 100))
    count = wide(narrow, most)
    made, wrong = attack(range(count), PROBLEMS[kind])
    assert made > least * count and wrong == 0


# -- negative controls -------------------------------------------------------------------------------------------------

SHRUNK = 0.95**2  # of a squared radius


def tight_feature() -> tuple[int, int]:
    """Return decisions and wrong ones where the optimal dual point is at the end of its ball, along a column.

    Every row is at its kink; with a large ``alpha`` the dual point hardly depends on the column, and the gap of its
    multiple is all curvature.
    """
    y = 2 * (np.arange(20) % 2) - 1
    base = FreeSparseModel(Views(np.column_stack([y, np.cos(np.arange(20))])), y, 1, 0.0, 1.0 - 1e-6)
    model = base.at(0.99)
    best = solved(model, 1e3)
    reference = model.certify(1e3, best.w, 0.6 * best.theta)
    at = rules.screen(model, reference, 1e3, False, True, True)
    return int(np.sum(at.keep == 0)), int(np.sum((at.keep == 0) & (np.abs(best.u) > model.beta * (1.0 + SURE))))


def tight_samples(gamma: float | None) -> tuple[int, int]:
    """Return decisions and wrong ones where the optimal ``w`` is at the end of its ball, and the intercept is known.

    Heavy rows at the origin, which is the mean of all, hold the intercept where it is. One row pulls the only weight;
    rows that hardly count tell where it is. Without a ``gamma`` it is a Huber regression.
    """
    low, high, heavy = (1.0, 1.5, [1e4, 1e4, 1.0]) if gamma is None else (3.0, 6.0, [1e4, 1e6, 1.0, 2.0])
    probes = np.linspace(low, high, 301)
    x = np.concatenate([[0.0, 0.0, 2.0, -1.0][: len(heavy)], probes, -probes])
    weights = np.concatenate([heavy, np.full(2 * probes.size, 1e-7)])
    if gamma is None:
        base = huber_model(x[:, None], np.concatenate([[9.0, -9.0, 9.0], np.ones(2 * probes.size)]), 0.5, weights)
    else:
        y = np.concatenate([[1, -1, 1, -1], np.ones(probes.size), -np.ones(probes.size)]).astype(np.int64)
        base = FreeSparseModel(Views(x[:, None]), y, 1, 0.0, gamma, weights)
    pull = 2.0 * base.weights[2] / x.size
    model, alpha = base.at(0.1 * pull), 0.9 * pull / 0.4
    best = solved(model, alpha)
    at = rules.screen(model, model.certify(alpha, np.array([0.1]), best.theta), alpha, True, False, True)
    return wrong_decisions(model, at, best)


@pytest.mark.parametrize(
    ("tight", "which"),
    [
        (tight_feature, "first_sq"), (tight_feature, "second_sq"),
        *((partial(tight_samples, gamma), "primal_sq") for gamma in (0.5, 0.0, None)),
    ],
)  # fmt: skip
def test_a_ball_that_is_too_small_is_noticed(tight, which, monkeypatch):
    made, wrong = tight()
    assert made > 0 or tight is tight_feature
    assert wrong == 0
    shrink(monkeypatch, SHRUNK, which)
    assert tight()[1] > 0


def test_the_attack_finds_columns_that_are_centred_too_much(monkeypatch):
    def too_much(model):
        found = SparseModel.nothing_screened(model)
        found.col_total *= 1.5
        return found

    monkeypatch.setattr(FreeSparseModel, "nothing_screened", too_much)
    assert any(attack([seed])[1] for seed in range(60))


def test_the_attack_finds_dual_balls_that_are_too_small(monkeypatch):
    shrink(monkeypatch, 0.25, "first_sq", "second_sq")
    assert any(attack([seed], regression)[1] for seed in range(60))


def test_the_attack_finds_a_distance_to_the_targets_that_leaves_them_out(monkeypatch):
    monkeypatch.setattr(SparseModel, "kinks_sq", property(lambda model: 0.0, lambda model, value: None), raising=False)
    assert any(attack([seed], regression)[1] for seed in range(60))


def test_the_attack_finds_signs_that_are_turned_round(monkeypatch):
    whole = rules.kernels.Constants

    def turned(columns, rows, signs, *rest):
        return whole(columns, rows, -signs, *rest)

    monkeypatch.setattr(rules.kernels, "Constants", turned)
    assert rules.kernels is sifs and any(attack([seed], signed)[1] for seed in range(30))


# -- paths -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "seed"),
    [
        *((labelled, seed) for seed in range(6)), (exact_hinge, 0), (exact_hinge, 2), (squared_hinge, 1),
        *((make, seed) for make in HUBER.values() for seed in range(4)),
        *((partial(signed, kind=seed % 3), seed) for seed in range(6)),
    ],
)  # fmt: skip
def test_screened_and_unscreened_paths_agree(make, seed):
    base = make(np.random.default_rng(100 + seed))
    betas = 0.5 * base.beta_max, 0.05 * base.beta_max
    shares = (1.0, 0.3, 0.05) if base.intercept and not base.regression else (1.0, 0.3, 0.05, 0.0)
    pairs = [(base.at(beta).alpha_max() * share, beta) for beta in betas for share in shares]
    options = PathOptions(tol=1e-9, audit=Audit(SparseNewton(), PathOptions(tol=1e-9), rules.contradicted))
    paths = [
        list(walk(SparseGrid(base), pairs, parse_sparse_rule(rule), SparseNewton(), options))
        for rule in ("none", "sifs", "sifs+gap", "gap", "ifs", "iss")
    ]
    for steps in zip(*paths, strict=True):
        for step, found in steps:
            assert step.status == "certified" and step.extras["unsafe"] == 0
            assert found.dual <= steps[0][1].highest * (1 + 1e-12)
            assert np.all(found.w * base.signs >= 0.0)
            if base.intercept:
                each = found.theta * base.labels * base.given
                assert found.low <= found.intercept <= found.high
                assert abs(each.sum()) <= 1e-12 * np.abs(each).sum()
    assert sum(step.screened_R + step.screened_L + step.n_features_screened for step, _ in paths[1]) > 0


def test_the_threshold_of_a_weight_with_a_sign_has_one_side():
    w, u, signs = np.array([0.0, 0.0, 0.3, -0.2, 0.3]), np.array([2.0, -2.0, -2.0, -2.0, 0.5]), [-1, 1, 1, -1, 0]
    terms = kernels.feature_terms(w, u, np.array(signs, dtype=np.int8), np.arange(5), np.ones(5), 2.0, 0.4)
    shrunk = np.array([0.0, 0.0, 0.0, -1.6, 0.1])
    expected = np.sum(w**2) + np.sum(0.4 * np.abs(w)) + np.sum(shrunk**2) / 4.0 - w @ u
    assert terms[2] + 0.5 * terms[3] == pytest.approx(expected) and terms[6:] == (3, 3)
