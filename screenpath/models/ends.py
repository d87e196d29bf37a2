"""Ends of a path of a box model, which cost nothing: there the solution is known in closed form.

Up to some C every dual variable stays at the end of its box and ``w`` grows with C (Ogawa 2014, Lemma 9). From some C
on no dual variable is at an end other than 0: then ``(w, theta C0/C)`` is optimal for every larger C, since neither
``w`` nor ``alpha = C theta`` changes and the gap grows by ``(C - C0) sum phi_i(t_i)`` only, 0 for an optimal pair.
Both are certified like any other pair, without a pass over the data.
"""

from __future__ import annotations

import numpy as np

from screenpath.kernels import box as kernels
from screenpath.kernels import partition

CONSTANT, CLOSED = "constant", "closed-form"  # what a step says in the place of a solver


def rests(model, certificate) -> bool:
    """Tell whether no dual variable is at an end of its box other than 0."""
    return bool(partition.box_rests(certificate.theta, model.lo, model.hi))


def known(model, reference, C: float) -> str | None:
    """Return what the solution at ``C`` is called if it follows from the reference without a solve, else None."""
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
