r"""Screening of groups of features and of samples in turn, for the sparse SVM with groups (:mod:`.problem.groups`).

The balls are those of SIFS (:func:`screenpath.screen.sparse.regions_of`), which ask of the penalty only that it is
convex. A group has no weight where ``||S(u_g)||`` is 0 all over a dual ball of centre ``u`` and radius ``r``: where

    min(||soft(|u_g| + r ||x^j||, beta tau)||, ||soft(u_g, beta tau)|| + r ||X_g||) < beta (1 - tau) p_g,

``||X_g||`` the spectral norm (Ndiaye et al. 2016), and a feature of a group that is left where ``|u_j| + r ||x^j|| <
beta tau``. A sample is decided as in SIFS by the primal ball, in which the features found so far have no part. What the
samples found are at is known of the optimum: the ball shrinks, and the columns end where they do.

At ``alpha = 0`` there is the ball of the dual's gap alone, and no sample is decided.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from math import inf

import numpy as np

from screenpath.errors import UsageError
from screenpath.kernels.screen.sifs import decide_samples
from screenpath.numbers import sparse as sp
from screenpath.numbers.rounding import OUTWARD, TINY, UNIT
from screenpath.problem.sparse_types import SparseScreened
from screenpath.screen.sparse import FAR, SparseScreening, finite, parse_sparse_rule, regions_of

TURNS = 4  # triggerings of features and samples each
WORTH = 0.05  # part of the samples that must be new for a pass over the columns left


class GroupScreening(SparseScreening):
    """What is screened when; features come first."""

    def before(self, model, reference, parameter) -> SparseScreened:
        at, what = model.nothing_screened(), (self.samples, self.features)
        return screen_groups(model, at, reference, parameter, what) if any(what) else at

    def again(self, model, certificate, parameter) -> SparseScreened:
        return screen_groups(model, model.nothing_screened(), certificate, parameter, (True, True))


def parse_group_rule(text: str) -> GroupScreening:
    """Turn the name of a rule of :func:`screenpath.screen.sparse.parse_sparse_rule` into a screening."""
    found = parse_sparse_rule(text)
    if not isinstance(found, SparseScreening):
        raise UsageError(f"`groups` does not support a rule of your own, '{text}'", "use sifs+gap or none")
    return GroupScreening(**asdict(found))


def screen_groups(model, at: SparseScreened, point, alpha: float, what: tuple, paper: bool = True) -> SparseScreened:
    """Add decisions on samples and features (``what``) by a pair that agrees; without ``paper`` by gap balls alone."""
    at, record = at.copy(), []
    if alpha == 0.0:
        at.record = np.array([[-1, _at_zero(model, at, point)]] if what[1] else []).reshape(-1, 2)
        return at
    r = regions_of(model, point, alpha, paper)
    if not finite(r):
        return at
    first = np.sqrt(r.first_sq) if r.paper else inf
    balls = [(r.kink_part * model.u_kinks + r.theta_part * point.u, first), (point.u, np.sqrt(r.second_sq))]
    size, column, operator, new = r.theta_norm, model.col_norm, model.group_norm, 0
    for turn in range(TURNS):
        if what[1]:
            zeroed = sum(_features(model, at, u, radius, column, operator, size) for u, radius in balls if radius < inf)
            record.append([-1, zeroed])
            if turn and not zeroed:
                break
        new = _samples(model, at, point, r) if what[0] else 0
        if what[0]:
            record.append([new, -1])
        if not (all(what) and new > WORTH * model.n and turn < TURNS - 1):
            break
        found = _conditioned(model, at, point, r)
        if found is None:
            break
        balls, column, operator = found
    at.record = np.array(record, dtype=np.int64)
    return at


def _features(model, at: SparseScreened, u, radius: float, column, operator, size: float) -> int:
    """Zero the groups and features that a dual ball decides; return how many features are new."""
    g, beta, slack = model.groups, model.beta, model.rounding.slacks.columns
    radius = radius * OUTWARD
    centre = np.abs(u) + slack * (model.col_norm * size + beta * g.share) + 8.0 * TINY
    limit = beta * g.share
    most = np.minimum(
        g.norms(g.soft(centre + radius * column, limit)), g.norms(g.soft(centre, limit)) + radius * operator
    )
    off = most * (1.0 + 2.0 * g.depth) < beta * g.parts * (1.0 - 2.0 * g.depth)
    zero = off[g.of] | (centre + radius * column < limit * (1.0 - slack))
    new = int(np.count_nonzero(zero & (at.keep != 0)))
    at.keep[zero] = 0
    return new


def _samples(model, at: SparseScreened, point, r) -> int:
    """Decide samples by the primal ball without the features that have no weight; return how many are new."""
    scores, radius_sq, gone = point.scores, r.primal_sq * (1.0 + model.rounding.slacks.squares), at.keep == 0
    if np.any(point.w[gone]):
        radius_sq = max(radius_sq - r.scale * r.scale * float(point.w[gone] @ point.w[gone]), 0.0)
        scores = model.scores(np.where(gone, 0.0, point.w)) + point.intercept
    radius = math.sqrt(radius_sq) * OUTWARD
    ball = r.scale, radius, r.scale * float(np.linalg.norm(point.w)) + radius
    rows = model.row_part(at.keep), model.row_sizes, model.row_norm
    free = (0.25 * float(np.sum(np.square(model.twice[~gone]))), abs(point.intercept)) if model.intercept else None
    slacks, found = tuple(model.rounding.slacks), np.empty(model.n, dtype=np.int64)
    return decide_samples(scores, model.samples, ball, rows, slacks, free, at.duals, found)


def _conditioned(model, at: SparseScreened, point, r):
    """Return dual balls and norms of columns where samples are known, by a pass over these; None without any."""
    bounds, fixed = model.rounding, at.duals != 0
    ends = np.where(at.duals > 0, model.high, model.low)
    kept = np.flatnonzero(at.keep)
    if not kept.size:
        return None
    X, s, balls = model.columns_of(kept), model.weights, []
    squares = s[~fixed] @ (X[~fixed].multiply(X[~fixed]) if sp.issparse(X) else np.square(X[~fixed]))
    column = np.zeros(model.d)
    column[kept] = bounds.upper_norms(np.asarray(squares).ravel(), model.n) / model.n
    operator = np.minimum(model.group_norm, model.groups.norms(column) * (1.0 + model.groups.depth))
    centres = (r.kink_part, r.theta_part, r.first_sq), (0.0, 1.0, r.second_sq)
    for kink, part, square in centres if r.paper else centres[1:]:
        theta = kink * model.kinks + part * point.theta
        known = float(s @ np.square(np.where(fixed, ends - theta, 0.0)))
        lost = bounds.slacks.squares * (square + known) + 8.0 * UNIT * r.theta_norm * math.sqrt(square)
        square = max(square + lost - known, lost)
        u = np.zeros(model.d)
        u[kept] = X.T @ (s * model.labels * np.where(fixed, ends, theta)) / model.n
        balls.append((u, math.sqrt(square)))
    return balls, column, operator


def _at_zero(model, at: SparseScreened, point) -> int:
    """Zero what the ball of the dual's gap decides at ``alpha = 0``."""
    if point.alpha > 0.0:
        point = model.certify(0.0, point.w, point.theta)
    size = math.sqrt(point.theta_sq) * OUTWARD
    radius = math.sqrt(2.0 * model.n * point.gap / model.gamma) * model.rounding.grown if point.gap < inf else inf
    radius += point.off + (1.0 - point.part) * size
    if not radius < inf:
        return 0
    return _features(
        model, at, point.u, radius, model.col_norm, model.group_norm, size + radius + math.sqrt(model.mass)
    )


def contradicted(model, accurate, alpha: float, decided: np.ndarray) -> int:
    """Return how many decisions (``SparseScreened.status``) an unscreened solution disproves (``loop.Audit``)."""
    duals, zeroed = decided[: model.n], decided[model.n :] != 0
    proven = screen_groups(model, model.nothing_screened(), accurate, alpha, (True, False)).duals
    if alpha > 0.0:
        radius = math.sqrt(2.0 * model.gap_at(accurate, alpha) / alpha)
    else:  # a group's part of Omega(w), times beta less the dual norm, is within the gap: FAR is how near that may be
        radius = accurate.gap / (FAR * model.beta * float((model.groups.parts + model.groups.share).min()))
    return int(np.sum((proven * duals < 0) & (model.given > 0.0)) + np.sum(zeroed & (np.abs(accurate.w) > radius)))
