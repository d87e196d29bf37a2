"""Random problems of the sparse models, pairs of every quality, and the decisions that an optimum contradicts."""

from functools import partial

import numpy as np
import scipy.sparse as sp

from screenpath.problem.sparse_free import FreeSparseModel
from screenpath.problem.sparse_grid import sparse_model
from screenpath.rows.views import Views
from screenpath.screen import sparse as rules
from screenpath.solve.base import Budget
from screenpath.solve.sparse_newton import SparseNewton
from tests.sparse_problems import problem as classified

WHAT = ((True, True), (True, False), (False, True))
SURE = 1e-5  # an optimum is known to less than that
ENDS = -1.0, 1.0  # of the dual variables of Huber's loss


def labelled(rng, gamma=None) -> FreeSparseModel:
    """Return a small model at ``beta = 0``: labels out of balance, a mean far from 0, now and then weights."""
    n, d = int(rng.integers(12, 50)), int(rng.integers(2, 20))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-0.5, 0.5, size=d) + 3.0 * rng.normal(size=d)
    X[rng.random((n, d)) < rng.choice([0.0, 0.6])] = 0.0
    forms = X @ rng.normal(size=d)
    y = np.where(forms + 0.3 * forms.std() * rng.normal(size=n) > np.quantile(forms, rng.uniform(0.1, 0.9)), 1, -1)
    y[:2] = 1, -1
    if rng.random() < 0.3:  # as many of one class as of the other
        y = 2 * (np.arange(n) % 2) - 1
    weights = counts(rng, n)
    views = Views(sp.csr_array(X) if rng.random() < 0.5 else X)
    gamma = float(rng.choice([0.5, 0.1, 0.9])) if gamma is None else gamma
    return FreeSparseModel(views, y.astype(np.int64), 1, 0.0, gamma, weights)


def counts(rng, n: int):
    weights = rng.integers(0, 4, size=n).astype(float) if rng.random() < 0.4 else None
    if weights is not None:
        weights[:2] = 1.0
    return weights


def pinned(rng, classes: int):
    """Return a small model without an intercept, of two classes or more."""
    gamma, dense = float(rng.choice([0.5, 0.1, 0.9, 0.3])), rng.random() < 0.5
    return classified(classes, n=45, d=30, seed=int(rng.integers(10**6)), dense=dense, gamma=gamma)[2]


exact_hinge, squared_hinge = partial(labelled, gamma=0.0), partial(labelled, gamma=np.inf)


def huber_model(X, y, gamma, weights=None, intercept=None):
    return sparse_model(Views(X), np.ones(len(y), dtype=np.int64), 1, gamma, weights, intercept, y, ENDS)


def regression(rng, intercept=None):
    """Return a small Huber regression: outliers, targets with a mean far from 0 or without, now and then weights."""
    n, d = int(rng.integers(12, 50)), int(rng.integers(2, 20))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-0.5, 0.5, size=d) + rng.choice([0.0, 3.0]) * rng.normal(size=d)
    X[rng.random((n, d)) < rng.choice([0.0, 0.6])] = 0.0
    forms = X @ (rng.normal(size=d) * (rng.random(d) < 0.5))
    y = forms + 0.3 * (forms.std() + 1.0) * rng.standard_t(1.5, size=n) + rng.choice([0.0, 5.0])
    y *= 10.0 ** rng.choice([-3.0, 0.0, 3.0])
    weights = counts(rng, n)
    gamma = float(np.std(y) * 10.0 ** rng.uniform(-2.0, 1.0))
    return huber_model(sp.csr_array(X) if rng.random() < 0.5 else X, y, gamma, weights, intercept)


def signed(rng, kind=None):
    """Return a model with signs of its weights: of two labels, of three, or of targets, a free intercept or none."""
    kind, intercept = int(rng.integers(3)) if kind is None else kind, ("free", None)[int(rng.integers(2))]
    if kind == 2:
        model, intercept = classified(classes=3, n=30, d=8, seed=int(rng.integers(1000)), weights=np.ones(30))[2], None
    else:
        model = labelled(rng) if kind == 0 else regression(rng, intercept)
    return sparse_model(
        model.views, model.labels, model.classes, model.width, model.given, intercept,
        model.kinks if model.regression else None, (model.low, model.high),
        rng.choice([-1, 0, 1, 1], size=model.d).astype(np.int8),
    )  # fmt: skip


def solved(model, alpha: float, steps: int = 300):
    """Return a certificate at ``alpha`` after some steps of Newton's method."""
    reduced = model.reduce(alpha, model.nothing_screened(), model.start(alpha))
    tol = 1e-12 if model.sharp else 1e-14  # beyond it widths only fall
    found = SparseNewton().solve(reduced, tol=tol, budget=Budget(steps, np.inf), dynamic=False)
    return model.certify(alpha, found.w, found.alpha)


def references(model, alpha: float, rng):
    """Yield pairs at ``alpha``: accurate, after a step, rough, and of points that have little to do with each other."""
    best, rough = solved(model, alpha), solved(model, alpha, 1)
    noise = 0.1 * rng.normal(size=best.w.size) * np.abs(best.w).max()
    far = model.certify(alpha, best.w + noise, None)
    yield from (best, rough, far)
    zero = np.zeros_like(best.w)
    for w, theta in ((best.w, far.theta), (far.w, rough.theta), (zero, best.theta), (best.w, model.top)):
        yield model.certify(alpha, w, theta)


def wrong_decisions(model, at, best) -> tuple[int, int]:
    """Return decisions made, and those that the optimum contradicts."""
    real = (np.tile(model.weights, model.classes) > 0.0) & (model.free == 0)
    wrong = np.sum((at.duals < 0) & (best.theta > model.low + SURE) & real)
    wrong += np.sum((at.duals > 0) & (best.theta < model.high - SURE) & real)
    wrong += np.sum((at.keep == 0) & (model.outward(best.u) > model.beta * (1.0 + SURE)) & (np.abs(best.w) > SURE))
    return int(np.count_nonzero(at.duals[model.free == 0]) + np.sum(at.keep == 0)), int(wrong)


def attack(seeds, make=labelled) -> tuple[int, int]:
    """Return decisions made and wrong ones over random problems and references, before a solve and within one."""
    made = wrong = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        base = make(rng)
        model = base.at(base.beta_max * float(10.0 ** rng.uniform(-1.5, -0.05)))
        alpha = model.alpha_max() * float(10.0 ** rng.uniform(-2.0, 0.0))
        for ratio in (1.0, 0.97, 0.7, 1.1):
            best = solved(model, ratio * alpha)
            if best.rel_gap > 1e-11:
                continue
            for reference in references(model, alpha, rng):
                at = rules.screen(model, reference, ratio * alpha, *WHAT[seed % 3], seed % 2 == 0)
                pairs = [wrong_decisions(model, at, best)]
                if ratio == 1.0 and not model.sharp:  # decisions on top of decisions, from a pair that agrees with them
                    inside = model.certify(alpha, np.where(at.keep != 0, best.w, 0.0), None)
                    pairs += [wrong_decisions(model, at, best)] if rules.tighten(model, at, inside, alpha) else []
                made, wrong = made + sum(p[0] for p in pairs), wrong + sum(p[1] for p in pairs)
    return made, wrong


def shrink(monkeypatch, factor: float, *names: str, **fixed) -> None:
    """Make these parts of every region smaller by a factor, and others what they are given as."""
    whole = rules.regions_of

    def less(*given, **more):
        found = whole(*given, **more)
        return found._replace(**{name: factor * getattr(found, name) for name in names}, **fixed)

    monkeypatch.setattr(rules, "regions_of", less)
