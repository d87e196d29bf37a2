"""SIFS and its parts: the screening of features and samples of the sparse SVM (Hong 2019; Shibagaki 2016).

The regions contain the optimum for *any* primal point and *any* feasible dual point of the reference, and are the
paper's where the reference is exact: a primal ball around a multiple of ``w0``, and for the dual the paper's ball
(its radius enlarged by what the reference's gap allows) and the ball of the gap at the new parameter, or their lens.

At ``alpha = 0`` the primal has no ball, and no sample is screened before the solve: the problems that lead there, each
with an ``alpha`` above 0, have the dynamic rule (``solve.sharp``). Without curvature of the loss the dual has no ball,
and at ``alpha = 0`` the L2 part of its value none: features are then zeroed by a move (``kernels.screen.move``), before
a solve and within it. Without a dynamic rule they are everywhere: a ball of the dual is a bound of the same gap, and as
large as the box where ``gamma`` is small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from screenpath.errors import UsageError
from screenpath.kernels.problem import sparse as sums
from screenpath.kernels.problem.sparse_intercept import centred, excess, plane_sums
from screenpath.kernels.screen import move
from screenpath.kernels.screen import sifs as kernels
from screenpath.numbers.rounding import TINY
from screenpath.problem.sparse_types import SparseScreened
from screenpath.screen.base import PathScreening
from screenpath.screen.plugins import plugged_rule

MAX_TRIGGERS = 40  # the fixed point came within 8 triggerings on every data set tried
MANY = 2.0  # times the features with a weight: where no more are left, a solve costs no more than the pass to go on
FURTHER = 0.1  # share of the features left that a move must zero for samples to be looked at again
RULES = {"sifs": (True, True), "iss": (True, False), "ifs": (False, True)}  # samples, features
FIRST = ("features", "samples")
FAR = 1e-3  # of beta: how near to it the |u_j| of a wrong decision at alpha = 0 has to be, to be noticed
# Of columns that are looked at ahead of SIFS:
LOOSE = 1e-6  # of the sizes of what is compared
CANCELLED = 1e-13  # of the terms of a sum, which may be much smaller


@dataclass(frozen=True, slots=True)
class SparseScreening(PathScreening):
    """What is screened when."""

    # samples, features: whether the static rule screens them, before each solve and from the previous step
    samples: bool
    features: bool
    dynamic: bool  # apply the gap balls of the current iterate, both sides, while solving (Shibagaki 2016)
    features_first: bool  # which triggering comes first; the result is the same (Theorem 12), the work is not
    name: str  # as the user wrote it

    def before(self, model, reference, parameter) -> SparseScreened:
        if not (self.samples or self.features):
            return model.nothing_screened()
        if model.exact_until(reference, parameter):
            return settled(model, self.samples, self.features, self.features_first)
        return screen(model, reference, parameter, self.samples, self.features, self.features_first, not self.dynamic)

    def again(self, model, certificate, parameter) -> SparseScreened:
        return screen(model, certificate, parameter, True, True, self.features_first, False)


def parse_sparse_rule(text: str, first: str = "features") -> SparseScreening:
    """Turn ``none``, ``gap``, ``sifs``, ``iss``, ``ifs`` or ``RULE+gap`` into a screening; another is a UsageError."""
    if first not in FIRST:
        raise UsageError(f"unknown order '{first}'", f"use {' or '.join(f'`first={name}`' for name in FIRST)}")
    if (own := plugged_rule(text)) is not None:
        return own
    static, _, rest = text.strip().lower().partition("+")
    if static in RULES and rest in ("", "gap"):
        samples, features = RULES[static]
        return SparseScreening(samples, features, rest == "gap", first == "features", text)
    if static in ("none", "gap") and not rest:
        return SparseScreening(False, False, static == "gap", first == "features", text)
    raise UsageError(f"unknown rule '{text}'", "use sifs+gap, sifs, iss, ifs, iss+gap, ifs+gap, gap or none")


def screen(
    model, reference, alpha: float, samples: bool, features: bool, features_first: bool, alone: bool = True
) -> SparseScreened:
    """Screen at ``alpha`` from a certified pair (w0, theta0) at ``alpha0``.

    Primal: ``||w* - (w0 + w_theta)/2||^2 <= G/alpha - ||w0 - w_theta||^2/4`` with the gap G at ``alpha``. Its centre
    is given as ``(alpha0 + alpha)/(2 alpha) w0``, whose products with all samples are known, and the radius grows by
    the distance moved. Dual: the paper's centre ``(alpha - alpha0)/(2 gamma alpha) 1 + (alpha0 + alpha)/(2 alpha)
    theta0``, with the targets of a regression for 1, and ``||theta* - (theta0 + theta(w0))/2||^2 <= n G/gamma -
    ||theta0 - theta(w0)||^2/4``.

    Features are also zeroed by a move (:func:`by_a_move`) where they have no ball, without curvature of the loss and at
    ``alpha = 0``, and if ``alone``: no dynamic rule follows, which would see better pairs than the reference at no
    cost. If much is left then, both rules continue from a better multiple of the reference's weights.
    """
    at, balls = model.nothing_screened(), not (model.sharp or alpha == 0.0)
    what = samples, features and balls, features_first
    model.reach = 0.0
    if (samples or what[1]) and alpha > 0.0:
        regions = regions_of(model, reference, alpha)
        if not finite(regions):
            return at
        if what[1] and regions.second_sq <= regions.first_sq:
            model.reach = math.sqrt(regions.second_sq)
        at.record = _run(model, reference, at, regions, what)
    if not features or (balls and not alone):
        return at
    left, known, tried = int(np.count_nonzero(at.keep)), reference.nonzero, False
    worth, could = 0.0 if alone else move.WORTH, False
    if balls:
        worth, could = 0.0, samples and not model.intercept and reference.alpha > alpha and known > 0
    stretches = could and left > MANY * known
    while stretches or not tried:
        point = reference
        if stretches:
            point = _stretched(model, at, reference, alpha)
            at.record = np.concatenate([at.record, _tightened(model, at, point, alpha)])
        tried |= not stretches
        found = by_a_move(model, at, point, alpha, worth)
        stretches, left = could and found > FURTHER * left, left - found
    return at


def by_a_move(model, at: SparseScreened, point, alpha: float, worth: float = move.WORTH) -> int:
    """Zero features by a move of their weight from a certified pair; return how many, as a triggering in ``at.record``.

    ``worth`` is that of ``kernels.screen.move.decide_moved``. Columns on disk are read: a solve needs them all.
    """
    if alpha == 0.0 < point.alpha:
        point = model.certify(alpha, point.w, point.theta, point)
    bounds, low, high, root, theta = model.rounding, model.low, model.high, math.sqrt(model.mass), point.theta
    most, more = point.gap, 0.0
    if alpha > 0.0:  # the gap of the pair bounds its distance from the optimum too, see `regions_of`
        rest, lag_sq, error = bounds.parts(point, alpha)
        most, more = rest + 0.25 * lag_sq + 2.0 * error, model.gamma
    # Margins that are off by T in all change the losses' terms by that at most, a dual point that is, the squares.
    budget = model.n * most + bounds.steep * point.t_error + 0.5 * more * point.off * (2.0 * bounds.steep + point.off)
    if not budget < math.inf:
        return 0
    known = np.where(theta == np.where(at.duals > 0, high, low), at.duals, np.int8(0))
    blur = bounds.total + 4.0 * bounds.inexact
    given = move.pair_to_move(point.scores, model.samples, theta, known, more, bounds.grown * budget + TINY, blur)
    means, sigma, off = np.zeros(theta.size // model.n * model.d), 0.0, 0.0
    if model.intercept and (model.sharp or alpha == 0.0):  # elsewhere it would not be worth the pass
        found, error = excess(theta, model.labels, model.weights)
        inside = np.where((theta > low) & (theta < high), model.weights, 0.0)
        means = -model.n * model.column_sums(inside) / max(float(inside.sum()), TINY)
        sigma, off = found / model.n, error / model.n
    sizes = model.col_norm + np.abs(means) * root / model.n
    limits = model.beta - (bounds.slacks.columns + 4.0 * bounds.column) * (sizes * 2.0 * root + model.beta)
    limits -= point.u_slack + np.abs(means) * off
    before = at.keep.copy() if model.intercept else None
    count, touched = move.decide_moved(
        model.views.columns(at.keep), point.u, limits, model.signs, given, means, sigma, worth, at.keep
    )
    if model.intercept:
        # The squared distances of the rows keep what these features add, `x^2 - 2 m x`, rather than read them again:
        # with the `m^2` that is counted for surviving features alone, it is not below 0.
        at.row_part += 0.25 * float(np.sum(np.square(model.twice[before != at.keep])))
    model.rows.touched += touched
    at.record = np.concatenate([at.record, [[-1, count]]])
    return count


def _stretched(model, at: SparseScreened, reference, alpha: float):
    """Return a pair on the reduced problem, of a multiple of the reference's weights that suits ``alpha`` better.

    It costs a pass over the features that are left, for the sums of its dual point. Weights grow as ``alpha``
    falls: the best multiple, between 1 and ``alpha0 / alpha``, has a much smaller gap.
    """
    n, view = model.n, model.views.columns(at.keep)
    theta, psi = np.empty(reference.theta.size), np.empty(reference.theta.size)
    w, features = np.where(at.keep != 0, reference.w, 0.0), np.flatnonzero(at.keep)
    scores, u = reference.scores, np.zeros(w.size)
    if np.any(w != reference.w):
        scores = np.zeros(theta.size)
        model.rows.touched += sums.products(view, n, w, scores)
    square, size = float(w @ w), float(np.abs(w).sum())
    kappa = move.stretch(scores, model.samples, at.duals, alpha * square, model.beta * size, reference.alpha / alpha)
    w, scores = kappa * w, kappa * scores
    loss = sums.respond(scores, model.samples, at.duals, theta, psi)
    model.rows.touched += sums.column_sums(view, n, features, psi, 1.0 / n, u)
    samples = loss / n, 0.0, 0.0, model.mass, 0.0, 0, 0
    return model.pair(alpha, w, scores, theta, (u, np.zeros(w.size)), samples, features, psi=psi)


def settled(model, samples: bool, features: bool, features_first: bool) -> SparseScreened:
    """Return all decisions of the closed form where ``theta = 1`` is optimal, in one triggering each."""
    at, record = model.nothing_screened(), []
    if features:
        zero = model.outward(model.u_top) + model.ones_error <= model.beta
        at.keep[zero] = 0
        record.append([-1, int(np.count_nonzero(zero))])
    if samples:
        decided = (at.duals == 0) & (model.top == 1.0) & (not model.regression)
        at.duals[decided] = 1
        record.insert(len(record) if features_first else 0, [int(np.count_nonzero(decided)), -1])
    at.record = np.array(record, dtype=np.int64)
    return at


def contradicted(model, accurate, alpha: float, decided: np.ndarray) -> int:
    """Return how many decisions (``SparseScreened.status``) an unscreened solution disproves (``loop.Audit``)."""
    proven = screen(model, accurate, alpha, True, False, True).duals
    duals, zeroed = decided[: proven.size], decided[proven.size :]
    if alpha > 0.0:
        radius = math.sqrt(2.0 * model.gap_at(accurate, alpha) / alpha)
    else:  # |w_j| (beta - |u*_j|) is within the gap, and |u*_j| within FAR of beta
        radius = accurate.gap / (FAR * model.beta)
    counts = np.tile(model.weights, model.classes) > 0.0  # else the closed form says what is easiest
    return int(np.sum(counts & (proven * duals < 0)) + np.sum((zeroed != 0) & (np.abs(accurate.w) > radius)))


def regions_of(model, ref, alpha: float, paper: bool = True) -> kernels.Regions:
    """Return the balls that :func:`screen` speaks of; without ``paper`` that of the gap alone for the dual."""
    n, gamma, bounds = model.n, model.gamma, model.rounding
    rest, lag_sq, error = bounds.parts(ref, alpha)
    # The gap is rest + lag_sq / 2, and ||w0 - w_theta||^2 = lag_sq / alpha. What rounding does to the latter is below
    # what it may do to the gap.
    moved = (math.sqrt(ref.alpha) * math.sqrt(ref.lag_sq) + ref.u_error) / alpha
    most = rest + 0.25 * lag_sq + 2.0 * error
    primal = math.sqrt(most / alpha) + 0.5 * moved
    ratio, inverse = 0.5 * (ref.alpha - alpha) / alpha, 1.0 / gamma
    if model.sharp:  # the dual is not strongly concave
        return kernels.Regions(1.0 + ratio, bounds.grown * primal**2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False)
    kink_part, theta_part = -ratio * inverse, 1.0 + ratio
    # ||theta0 - c/gamma||^2, c the kinks, which are 1 for the hinge
    to_kinks_sq = ref.theta_sq - 2.0 * inverse * ref.theta_sum + model.kinks_sq * inverse * inverse
    largest_sq = max(model.kinks_sq * inverse * inverse, ref.theta_sq)
    blur = 4.0 * bounds.total * largest_sq
    off = ref.off + math.sqrt(2.0 * n * inverse * model.gap_at(ref, ref.alpha))  # ||theta0 - theta0*|| at most
    first = abs(ratio) * math.sqrt(max(to_kinks_sq, 0.0) + blur) + (theta_part + abs(ratio)) * off
    width, root = model.high - model.low, math.sqrt(max(model.mass, model.kinks_sq))
    apart, unsure = math.sqrt(ref.apart_sq), min(ref.t_error * inverse, width * math.sqrt(model.mass))
    second_sq = n * most * inverse - 0.25 * ref.apart_sq + 0.5 * apart * unsure
    second = math.sqrt(max(second_sq, 0.0)) + 0.5 * (apart + unsure) + ref.off
    grown = bounds.grown
    between_sq = ratio * ratio * max(to_kinks_sq - blur, 0.0)
    most_theta = root * (abs(kink_part) + theta_part + 1.0)
    return kernels.Regions(
        1.0 + ratio, grown * primal * primal, kink_part, theta_part, grown * first * first, grown * second * second,
        between_sq, most_theta, paper,
    )  # fmt: skip


def finite(r: kernels.Regions) -> bool:
    """Tell whether every number is finite: if a square has overflowed, the regions decide nothing."""
    radii = r.primal_sq + r.first_sq + r.second_sq + r.between_sq
    return math.isfinite(radii + r.scale + r.kink_part)


def _run(model, ref, at: SparseScreened, regions: kernels.Regions, what: tuple) -> np.ndarray:
    views, record = model.views, np.empty((MAX_TRIGGERS, 2), dtype=np.int64)
    mark = None if views.whole else could_be_read(model, ref, at, regions, what)
    constants = kernels.Constants(
        views.columns(mark), views.rows(mark), model.signs, model.u_kinks, model.row_sizes, model.row_norm,
        model.col_sq, model.col_norm, model.twice, views.column_ends, views.row_ends,
    )  # fmt: skip
    reference = kernels.Reference(
        ref.scores, ref.w, ref.theta, model.psi_of(ref), ref.u, ref.u_slack, ref.formed, ref.room,
        abs(ref.intercept), math.sqrt(ref.w_sq / ref.alpha),
    )  # fmt: skip
    found = kernels.Found(at.duals, at.keep, at.row_part, at.col_part, at.col_total, *model.known_norms)
    touched, used = kernels.sifs(
        constants, model.samples, model.beta, reference, regions, what, tuple(model.rounding.slacks), found, record,
        np.empty(4) if model.intercept else None,
    )  # fmt: skip
    model.rows.touched += touched
    return record[:used]


def tighten(model, at: SparseScreened, point, alpha: float) -> int:
    """Screen further with the gap balls of a solver's pair on the reduced problem; return how many decisions are new.

    ``at`` has the decisions so far, with which ``point`` agrees, and is updated; ``u`` is read on surviving features
    only.
    """
    record = _tightened(model, at, point, alpha)
    return int(record[record > 0].sum())


def _tightened(model, at: SparseScreened, point, alpha: float) -> np.ndarray:
    """Screen as :func:`tighten`; return the triggerings."""
    regions = regions_of(model, point, alpha, paper=False)
    if not finite(regions):
        return np.empty((0, 2), dtype=np.int64)
    return _run(model, point, at, regions, (True, True, True))


# -- columns on disk: which of them SIFS may read is found before it runs, because those must be in memory. Every other
# feature is zeroed at its first look, by numbers that are known without the column. The bounds are those of
# ``kernels.screen.sifs.decide_features``, a little wider. ------------------------------------


def could_be_read(model, ref, at, regions: kernels.Regions, what: tuple) -> np.ndarray:
    """Mark features whose columns SIFS may read, bool of shape (classes * d,); ``what`` is that of SIFS."""
    samples, features, features_first = what
    kept = at.keep != 0
    if not features:
        return np.zeros(kept.size, dtype=np.bool_)
    if samples and not features_first:
        return kept
    wanted = kept & ((ref.w != 0.0) | _open(model, ref, at, regions))
    slack, second = model.rounding.slacks.columns, np.sqrt(regions.second_sq)
    if second * (1.0 + slack) + slack * regions.theta_norm <= ref.room * (1.0 + LOOSE):
        formed = np.zeros(kept.size, dtype=np.bool_)
        formed[ref.formed] = True
        wanted |= kept & formed
    # Where less goes than stays, it is subtracted from the norms of the rows: what goes is read.
    counts = np.tile(np.diff(model.views.column_ends), model.classes)
    costs = np.where(counts == model.n, 0.25 * counts, counts)
    return kept if 2.0 * (1.0 + LOOSE) * costs[wanted].sum() >= costs[kept].sum() else wanted


def _open(model, ref, at, r: kernels.Regions) -> np.ndarray:
    """Mark the features that neither dual ball zeroes by what is known without their columns."""
    size, slacks = at.keep.size, tuple(model.rounding.slacks)
    moves, extent, lost = (np.zeros(size), np.zeros(size)), r.theta_norm, slacks[3]
    if model.intercept:
        planes, nothing = np.empty(4), np.empty(0)
        plane_sums(ref.theta, model.samples, at.duals, r.kink_part, r.theta_part, planes)
        centred(at.col_part, at.col_total, False, nothing, nothing, planes, model.n, np.empty(size), *moves)
        answering, whole, first, second = planes.tolist()
        apart = 16.0 * kernels.UNIT * (model.n + 32) * whole * (abs(r.kink_part) + abs(r.theta_part) + 1.0)
        cut = kernels.in_plane(
            answering, whole, first, second, apart, r.first_sq, r.second_sq, r.between_sq, r.theta_norm, slacks
        )
        extent, lost = cut[3], cut[4][3]
    norms = model.col_norm * np.sqrt(1.0 + lost) + np.sqrt(slacks[4]) / model.n
    ones, theta = r.kink_part * model.u_kinks, r.theta_part * ref.u
    first = model.outward(ones + theta + moves[0]) + abs(r.theta_part) * ref.u_slack + np.sqrt(r.first_sq) * norms
    second = model.outward(ref.u + moves[1]) + ref.u_slack + np.sqrt(r.second_sq) * norms
    unsure = CANCELLED * (np.abs(ones) + np.abs(theta) + np.abs(moves[0]) + np.abs(moves[1]))
    least = np.minimum(first, second) if r.paper else second
    limit = model.beta - slacks[1] * (1.0 + LOOSE) * (norms * extent + model.beta)
    return least + unsure + LOOSE * (least + model.beta) > limit
