r"""The exact hinge of a sparse SVM by continuation: smoothed problems of falling width, each from the one before.

The smoothed problem of width ``g`` has an optimum ``(w_g, theta_g)`` that is a pair of the exact one too, its gap there
``g/n sum_i s_i theta_i (1 - theta_i)`` over its quadratic zone. While the signs of the weights and the zone stay what
they are, ``w_g`` and ``theta_g`` are linear in ``g``: the line through two widths meets the exact optimum at ``g = 0``,
however wide the last one is, and with a zone of any size. Both pairs are certified on the full data with the exact
hinge; the better one is what counts. The balls of the dynamic rule are those of the smoothed problem under way: they
decide nothing beyond it.

A free intercept is the best one of each problem, and linear in ``g`` too: all their dual points have the signed sum 0,
and so has the line, but for entries that are clipped.
"""

from __future__ import annotations

import time

import numpy as np

from screenpath.kernels import sparse_levels as levels
from screenpath.kernels import sparse_samples as losses
from screenpath.models.sparse_types import SparseCertificate, SparseReduced
from screenpath.solvers.base import Budget, Solution

FIRST, FALL = 0.01, 0.3  # the margin is 1: the first width, and what each is of the one before
LAST = 1e-12
WORTH = 100_000  # values of data from which the dynamic rule saves more than it costs: the solves are short
INNER = 0.1  # part of the tolerance to which a smoothed problem is solved


def continued(solver, reduced: SparseReduced, *, tol: float, budget: Budget, dynamic: bool) -> Solution:
    """Solve a reduced problem with the exact hinge, see :class:`screenpath.solvers.base.Solver`.

    Parameters
    ----------
    solver : screenpath.solvers.base.Solver
        Of smoothed problems; it returns weights.

    Returns
    -------
    Solution
        ``alpha`` holds all dual variables.
    """
    model, alpha, start = reduced.model, reduced.alpha, reduced.start
    best, before, width = None, None, FIRST
    epochs, touched, screened = 0, 0.0, 0
    dynamic = dynamic and model.views.size >= WORTH
    while True:
        left = Budget(budget.epochs - epochs, budget.until, budget.pulse, budget.touched + touched)
        smooth = SparseReduced(model.smoothed(width), alpha, reduced.screened, start)
        found = solver.solve(smooth, tol=INNER * tol, budget=left, dynamic=dynamic)
        epochs, touched, screened = epochs + found.epochs, touched + found.touched, screened + found.screened
        counted = model.rows.touched
        scores, theta = _answer(smooth, found.w, start)
        model.balance(scores, theta)
        pair = model.certify(alpha, found.w, theta, start)
        ahead: list[SparseCertificate] = [] if before is None else [_at_zero(model, alpha, before, (pair, width))]
        touched, model.rows.touched = touched + (model.rows.touched - counted), counted
        known = [pair, *ahead] if best is None else [pair, *ahead, best]
        best, before = min(known, key=lambda one: one.gap), (pair, width)
        start = min(pair, *ahead, key=lambda one: one.gap) if ahead else pair
        budget.note(best.gap, best.primal, budget.touched + touched)
        converged = best.gap <= tol * abs(best.primal)
        width *= FALL
        if converged or width < LAST or epochs >= budget.epochs or time.monotonic() > budget.deadline:
            return Solution(best.w, best.theta, epochs, touched, converged, screened, f"{solver.name}+continuation")


def _answer(smooth: SparseReduced, w: np.ndarray, near: SparseCertificate) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of weights in a smoothed problem, and their dual point; what is screened keeps its value.

    A free intercept is the best one of that problem, and may be near that of a known pair.
    """
    m, theta, scores = smooth.model, np.empty(smooth.model.ones.size), smooth.model.scores(w)
    if m.intercept:
        levels.place(scores, m.samples, smooth.screened.duals, m.levels_of(near))
    losses.respond(scores, m.samples, smooth.screened.duals, theta, np.empty(theta.size))
    return scores, theta


def _at_zero(model, alpha: float, before: tuple, now: tuple) -> SparseCertificate:
    """Return the certificate of the pair that the line through the pairs of two widths has at width 0."""
    (old, wide), (new, narrow) = before, now
    step = narrow / (wide - narrow)
    w = new.w + step * (new.w - old.w)
    w[np.sign(w) != np.sign(new.w)] = 0.0
    theta = np.clip(new.theta + step * (new.theta - old.theta), 0.0, 1.0)
    model.balance(new.scores, theta)
    return model.certify(alpha, w, theta, new)
