"""A certified pair of a box model with its members on their kinks, as near as rounding allows: for removals."""

from __future__ import annotations

import numpy as np

from screenpath.kernels.solve import removal as kernels
from screenpath.problem.box_types import one_sided
from screenpath.solve.removal import Near, Solution

ROUNDS = 30
FINE = 8.0  # times its error bound may be the distance from its kink of a row that is on it


def polished(model, certificate):
    """Return a certificate of a pair at the same ``C`` with its members on their kinks, as near as rounding allows.

    The members' system is solved and gone to as far as their boxes allow; who reaches an end stays there, rows on the
    wrong side of their kink become members. Each step lowers the dual's distance from its best value.
    """
    now = best = model.certify(certificate.C, None, one_sided(model, certificate.theta))
    for _ in range(ROUNDS):
        of = Solution(model, now)
        near = Near(of, int(np.count_nonzero(of.inside | of.wrong)))
        alpha = _solved(near, of)
        theta = now.theta.copy()
        for end, other in ((model.lo, of.low), (model.hi, of.high)):
            at = near.index[alpha == other[near.index]]
            theta[at] = np.where(of.signs[at] > 0, end[at], (model.lo + model.hi - end)[at])
        free = near.index[(of.low[near.index] < alpha) & (alpha < of.high[near.index])]
        theta[free] = of.signs[free] * alpha[near.place[free]] / now.C
        now = model.certify(now.C, None, theta)
        best = now if now.gap < best.gap else best
        after = Solution(model, now)
        exact = FINE * after.errors + after.rounding.distance * after.lengths  # and as far as the sum over rows is
        if not (after.wrong | (after.inside & (np.abs(after.t) > exact))).any():
            break
    several = [Solution(model, one) for one in (best, certificate)]  # the one that is known has its own ``w``
    if not several[0].coarse:
        return best
    for _ in range(2):
        several += [_on_kinks(of) for of in several[-2:]]
    return min(several, key=lambda one: one.gap + 0.5 * one.rounding.distance**2).certificate


def _on_kinks(of: Solution) -> Solution:
    """Return the solution with ``w`` moved to where members are on their kinks: of long rows, the rounding of dual
    variables keeps it away.
    """
    near = Near(of, int(np.count_nonzero(of.inside | of.wrong)))
    face, border, w = near.inside_face, int(of.free), of.certificate.point.vector.copy()
    rows = face.members[border:]
    share = kernels.solved(near.work, face.members.size, np.append([0.0] * border, near.band.t[rows]))[border:]
    w[slice(None) if near.columns is None else near.columns] += share @ near.band.X[rows]
    return Solution(of.model, of.model.moved(of.certificate, w))


def _solved(near: Near, of: Solution) -> np.ndarray:
    """Return the dual variables of a band when those of its rows that can be are on their kinks."""
    border, alpha, t = int(of.free), near.band.alpha.copy(), near.band.t.copy()
    low, high, excess = near.band.low, near.band.high, [-float(of.alpha.sum())] * of.free
    left = np.arange(alpha.size)
    while left.size:
        rows = near.face(left).members[border:]
        for row in np.setdiff1d(left, rows):  # a combination of the others: in their place, it moves nobody
            products = near.band.X[rows] @ near.band.X[row]
            share = kernels.solved(near.work, border + rows.size, np.append([1.0] * border, products))[border:]
            gain = t[row] - float(share @ t[rows])
            if abs(gain) > near.band.errors[row] + float(np.abs(share) @ near.band.errors[rows]):
                rows, step, most = np.append(rows, row), np.sign(gain) * np.append(-share, 1.0), np.inf
                break
        else:
            right, most = np.append(excess, t[rows]), 1.0
            step = kernels.solved(near.work, right.size, right)[border:]
        room = np.where(step > 0.0, high[rows] - alpha[rows], low[rows] - alpha[rows])
        with np.errstate(divide="ignore", invalid="ignore"):
            length = np.where(step == 0.0, np.inf, room / step)
        part = min(float(length.min(initial=np.inf)), most)
        alpha[rows] += part * step
        if most < np.inf:
            t[left] *= 1.0 - part
            excess = [(1.0 - part) * one for one in excess]
        ends = rows[length == part]
        alpha[ends] = np.where(step[length == part] > 0.0, high[ends], low[ends])
        if part == most:
            break
        left = np.setdiff1d(left, ends)
    return np.clip(alpha, low, high)
