"""Ends of a path of a box model, where the solution is known in closed form, without cost.

Up to some C every dual variable stays at the end of its box and ``w`` grows with C (Ogawa 2014, Lemma 9). From some C
on no dual variable is at an end other than 0: then ``(w, theta C0/C)`` is optimal for every larger C, since neither
``w`` nor ``alpha = C theta`` changes and the gap grows by ``(C - C0) sum phi_i(t_i)`` only, 0 for an optimal pair.
Both are certified like any other pair, without a pass over the data. The gap of a pair that is not optimal finally
exceeds any tolerance: then its dual variables are moved to the solution of ``t_i = 0`` on their rows
(:func:`polished`).
"""

from __future__ import annotations

import numpy as np

from screenpath.kernels.problem import box as kernels
from screenpath.kernels.problem import partition
from screenpath.kernels.rows.matrix import matrix_of, products, weighted_sum
from screenpath.numbers.rounding import UNIT
from screenpath.problem.sharp import difference

ROUNDS, STEPS = 3, 1000  # of a polish: residuals formed anew, and steps of conjugate gradients for each
REFINED = 2  # steps of a refinement: the first leaves little more than rounding
CONSTANT, CLOSED = "constant", "closed-form"  # what a step says in the place of a solver


def rests(model, certificate) -> bool:
    """Tell whether no dual variable is at an end of its box other than 0, of losses with kinks."""
    return model.bend is None and bool(partition.box_rests(certificate.theta, model.lo, model.hi))


def known(model, reference, C: float) -> str | None:
    """Return the name of the solution at ``C`` if it follows from the reference without a solve, else None."""
    if not C > reference.C:
        return None
    if rests(model, reference):
        return CONSTANT
    if reference.n_R + reference.n_L < model.size or not model.closed_until >= C:
        return None
    return CLOSED if np.array_equal(reference.theta, partition.box_closed_form(model.c, model.lo, model.hi)) else None


def constant(model, reference, C: float) -> tuple:
    """Return ``w``, ``theta``, total, updates, margins and sum error of the reference's pair at a larger ``C``.

    ``theta`` and its sum over rows are multiplied by ``C0/C``: each entry is rounded once more, which counts as an
    update of the sum by all rows.
    """
    ratio, point = reference.C / C, reference.point
    theta = ratio * reference.theta
    if reference.updates >= model.fresh_every:
        total, updates, error = model.updated_sum(theta, None)
    else:
        total, updates = ratio * reference.total, reference.updates + 1
        error = kernels.sum_drift(ratio * reference.sum_error, float(model.size), model.bounds)
    return point.vector, theta, total, updates, point.products, error


def has_losses(reference) -> bool:
    """Tell whether the pair of a reference proves that the solution at its ``C`` is not without loss.

    If the solution ``w*`` had none, ``P* = |w*|^2 / 2`` and ``|w - w*|^2 <= 2 gap`` would bound the losses of ``w``,
    ``P - |w|^2 / 2``, by ``gap + 2 sqrt(P* gap)``.
    """
    highest, gap = reference.highest, max(reference.gap, 0.0)
    return bool(reference.primal - 0.5 * reference.point.sqnorm > gap + 2.0 * np.sqrt(highest * gap))


def polished(model, reference, C: float, gap: float):
    """Return a certificate at a larger ``C`` of the reference's pair with its rows on their kinks; None if unknown.

    The rows between the ends of their boxes must satisfy ``w = G'alpha`` and ``c - G w - s b = 0``, with a free
    intercept ``s.alpha = 0`` too: conjugate gradients in the space of such changes, from the current ``alpha``. No
    other row is touched, and no more often than brings the sum of losses, ``C sum |residual|``, to ``gap``. None if a
    dual variable would leave its box, or if some row is proven to be off its kink: no step is taken then.
    """
    index = np.flatnonzero((model.lo < reference.theta) & (reference.theta < model.hi))
    if not index.size or has_losses(reference):
        return None
    rows, alpha = matrix_of(model.take(index)), reference.C * reference.theta[index]
    signs = model.signs[index] if reference.intercept is not None else np.zeros(index.size)
    w, out = np.zeros(model.rows.d), np.empty(index.size)

    def summed(weights):
        w[:] = 0.0
        weighted_sum(rows, weights, w, 0, index.size)
        products(rows, w, out, 0, index.size)
        model.rows.touched += 2 * index.size
        return out

    def along(values):
        return values - signs * (float(signs @ values) / index.size)

    least = max((gap / C) ** 2 / index.size, UNIT * UNIT * float(model.c[index] @ model.c[index]))
    for _ in range(ROUNDS):
        residual = along(model.c[index] - summed(alpha))
        change, direction, square = np.zeros(index.size), residual, float(residual @ residual)
        for _ in range(STEPS):
            if not square > least:
                break
            image = along(summed(direction))
            norm_sq = float(w @ w)  # 0 of tiny numbers too
            length = square / norm_sq if norm_sq > 0.0 else 0.0
            change = change + length * direction
            residual = along(residual - length * image)
            square, before = float(residual @ residual), square
            direction = residual + square / before * direction
            if length == 0.0:
                break
        alpha = alpha + along(change)
    theta = np.zeros(model.size)
    theta[index] = alpha / C
    inside = (model.lo[index] < theta[index]) & (theta[index] < model.hi[index])
    return model.certify(C, None, theta) if inside.all() else None


def refined(model, reference, C: float, gap: float):
    """Return what :func:`polished` does for a model behind a kernel.

    Its rows are few, so that the system has a factor; each step corrects what sums in twice the precision leave, in the
    manner of iterative refinement. Where only one side of a kink costs, rows are put on the other, by twice what their
    forms may be off by: then no C multiplies rounding, and the pair is good from here on. This costs ``alpha_i`` times
    the distance of each, and is left out where that is more than ``gap``.
    """
    from scipy.linalg.lapack import dpotrf, dpotrs  # here: other models start up without them

    index, rows = np.flatnonzero((model.lo < reference.theta) & (reference.theta < model.hi)), model.rows
    if not 0 < index.size <= rows.plan.free or has_losses(reference):
        return None
    place, signs = rows.place(index), rows.signs[index]
    K = rows.blocks.block(place, place)
    K *= signs
    K *= signs[:, None]
    factor, failed = dpotrf(K.T, lower=1, overwrite_a=1)
    rows.touched += index.size**2 / rows.n
    if failed:
        return None
    free = dpotrs(factor, signs, lower=1)[0] if reference.intercept is not None else np.zeros(index.size)
    alpha = reference.C * reference.theta
    side = np.where(model.lo[index] == 0.0, 1.0, np.where(model.hi[index] == 0.0, -1.0, 0.0))
    aside = 2.0 * model.form_error(reference)[index] * side
    aside *= float(np.abs(alpha[index] * aside).sum()) < gap
    for _ in range(REFINED):
        (sums,), _ = rows.precise_sums(index, alpha[None])
        change = dpotrs(factor, difference(model.c[index] + aside, *sums), lower=1)[0]
        if free.any():
            change -= free * (float(signs @ (alpha[index] + change)) / float(signs @ free))
        alpha[index] += change
    theta = alpha / C
    inside = (model.lo[index] < theta[index]) & (theta[index] < model.hi[index])
    return model.certify(C, None, theta) if inside.all() else None
