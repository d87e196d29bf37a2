r"""Screening of groups of features and of samples in turn, for the sparse SVM with groups (:mod:`.problem.groups`).

The balls are those of SIFS (:func:`screenpath.screen.sparse.regions_of`), which ask of the penalty only that it is
convex. A group has no weight where ``||S(u_g)||`` is 0 all over a dual ball of centre ``u`` and radius ``r``: where

    min(||soft(|u_g| + r ||x^j||, beta tau)||, ||soft(u_g, beta tau)|| + r ||X_g||) < beta (1 - tau) p_g,

``||X_g||`` the spectral norm (Ndiaye et al. 2016), and a feature of a group that is left where ``|u_j| + r ||x^j|| <
beta tau``. A sample is decided by the primal ball, in which the features found so far have no part; with a free
intercept that lies between the best ones for the lowest and the highest scores of all samples in the ball. What the
samples found are at is known of the optimum: the ball shrinks, and the columns end where they do.

At ``alpha = 0`` there is the ball of the dual's gap alone, and no sample is decided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import inf

import numpy as np

from screenpath.errors import UsageError
from screenpath.numbers import sparse as sp
from screenpath.numbers.rounding import OUTWARD, TINY, UNIT, gamma
from screenpath.problem.penalised_rounding import EXTRA
from screenpath.problem.sparse_types import SparseScreened
from screenpath.screen.base import PathScreening
from screenpath.screen.sparse import FAR, RULES, finite, regions_of

TURNS = 4  # triggerings of features and samples each
WORTH = 0.05  # part of the samples that must be new for a pass over the columns left
WIDER = (1e-12, 1e-9, 1e-6, 1e-3)  # of the scores: how far from a best intercept its side is proven


@dataclass(frozen=True, slots=True)
class GroupScreening(PathScreening):
    """What is screened when; see :class:`screenpath.screen.sparse.SparseScreening`."""

    what: tuple[bool, bool]  # samples, features: whether the static rule screens them
    dynamic: bool
    name: str

    def before(self, model, reference, parameter) -> SparseScreened:
        at = model.nothing_screened()
        return screen_groups(model, at, reference, parameter, self.what) if any(self.what) else at

    def again(self, model, certificate, parameter) -> SparseScreened:
        return screen_groups(model, model.nothing_screened(), certificate, parameter, (True, True))


def parse_group_rule(text: str) -> GroupScreening:
    """Turn ``none``, ``gap``, ``sifs``, ``iss``, ``ifs`` or one of the last three with ``+gap`` into a screening."""
    static, _, rest = str(text).strip().lower().partition("+")
    if static in RULES and rest in ("", "gap"):
        return GroupScreening(RULES[static], rest == "gap", text)
    if static in ("none", "gap") and not rest:
        return GroupScreening((False, False), static == "gap", text)
    raise UsageError(
        f"with `groups` there is no rule '{text}'", "use sifs+gap, sifs, iss, ifs, iss+gap, ifs+gap, gap or none"
    )


def screen_groups(model, at: SparseScreened, point, alpha: float, what: tuple, paper: bool = True) -> SparseScreened:
    """Add decisions at ``alpha`` from a certified pair to others, with which the pair agrees.

    ``what``: whether samples and features are decided; without ``paper`` only by the balls of the gap.
    """
    at, record = at.copy(), []
    if alpha == 0.0:
        if what[1]:
            record.append([-1, _at_zero(model, at, point)])
        return SparseScreened(at.duals, at.keep, at.row_part, at.col_part, np.array(record).reshape(-1, 2))
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
        new = _samples(model, at, point, r, alpha) if what[0] else 0
        if what[0]:
            record.append([new, -1])
        if not (all(what) and new > WORTH * model.n and turn < TURNS - 1):
            break
        found = _conditioned(model, at, point, r)
        if found is None:
            break
        balls, column, operator = found
    return SparseScreened(at.duals, at.keep, at.row_part, at.col_part, np.array(record, dtype=np.int64))


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


def _samples(model, at: SparseScreened, point, r, alpha: float) -> int:
    """Decide samples by the primal ball without the features that have no weight; return how many are new."""
    scores, w, slack = point.scores - point.intercept, point.w, model.rounding.slacks.rows
    gone, radius_sq, squares = at.keep == 0, r.primal_sq, model.row_squares(at.keep)
    if np.any(w[gone] != 0.0):
        w, lost = np.where(gone, 0.0, w), r.scale * r.scale * float(w[gone] @ w[gone])
        scores, radius_sq = model.scores(w), max(radius_sq * (1.0 + model.rounding.slacks.squares) - lost, 0.0)
    centre, radius = r.scale * scores, math.sqrt(radius_sq) * OUTWARD
    norms = np.sqrt(squares) * (1.0 + gamma(model.d + EXTRA))
    extent = r.scale * float(np.linalg.norm(point.w)) + radius
    lost = model.row_norm[: model.n] * extent * (1.0 + EXTRA) + 1.0 + r.scale * abs(point.intercept)
    reach = norms * radius + slack * lost
    low, high = 0.0, 0.0
    if model.intercept:
        low, high = -_most(model, -(centre + reach), -1), _most(model, centre - reach, 1)
    least = np.where(model.labels > 0, centre - reach + low, -(centre + reach + high))
    most = np.where(model.labels > 0, centre + reach + high, -(centre - reach + low))
    margin = slack * (2.0 + abs(low) + abs(high)) if max(abs(low), abs(high)) < inf else inf
    out, inside = least > 1.0 + margin, most < 1.0 - model.gamma - margin
    free = at.duals == 0
    at.duals[free & out], at.duals[free & inside & (not model.squared)] = -1, 1
    return int(np.count_nonzero(free & (out | (inside & (not model.squared)))))


def _most(model, scores: np.ndarray, side: int) -> float:
    """Return a bound above the best intercepts for scores, of labels times ``side``: the signed sum is surely below 0
    there, as it falls with the intercept.
    """
    y, size = side * model.labels, 1.0 + float(np.max(np.abs(scores)))
    b = side * model.placed((side * scores).copy()).high if side > 0 else -model.placed((-scores).copy()).low
    for wider in WIDER:
        at = b + wider * size
        theta = np.clip((1.0 - y * (scores + at)) / model.gamma, model.low, model.high)
        mass = model.weights * theta
        off = gamma(model.n + EXTRA) * float(mass.sum()) + gamma(EXTRA) * model.mass * size / model.gamma
        if float(y @ mass) < -off:
            return at
    return inf


def _conditioned(model, at: SparseScreened, point, r):
    """Return the dual balls, and norms of the columns, where samples are known; None if no column is left.

    One pass over the columns that are left.
    """
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
