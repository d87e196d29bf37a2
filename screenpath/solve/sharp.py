r"""Sparse SVMs that a solver cannot take as they are, by continuation: easier problems, each from the one before.

The exact hinge is led to by smoothed problems of falling width ``g``, the L1 penalty alone (``alpha = 0``) by elastic
nets of falling ``alpha``, and both at once, a linear program, by both falling together. A problem on the way has an
optimum that is a pair of the one asked for too: with the exact hinge its gap there is ``g/n sum_i s_i theta_i (1 -
theta_i)`` over its quadratic zone, and without the L2 term that of its dual point as far as the ``|u_j|``, above
``beta`` by ``alpha |w_j|``, let it stand (``problem.sparse``). While the signs of the weights and the zone stay
what they are, ``w`` and ``theta`` are linear in ``g``, and nearly so in ``alpha``: the line through two problems meets
the optimum at 0, however far the last one is from it, and with a zone of any size. Both pairs are certified on the full
data as pairs of the problem that was asked for; the better one is what counts. The balls of the dynamic rule are those
of the problem under way: they decide nothing beyond it. What a move of the best pair says of features holds to the end.

A free intercept is the best one of each problem, and linear too: all their dual points have the signed sum 0, and so
has the line, but for entries that are clipped.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from screenpath.kernels.problem import sparse as sums
from screenpath.kernels.problem import sparse_intercept as intercepts
from screenpath.problem.sparse_types import SparseCertificate, SparseReduced
from screenpath.screen.sparse import by_a_move
from screenpath.solve.base import Budget, Progress, Solution

FIRST, FALL = 0.01, 0.3  # the first width, see size_of, and what each is of the one before
LAST = 1e-12
WORTH = 100_000  # values of data from which the dynamic rule saves more than it costs: the solves are short
INNER = 0.1  # part of the tolerance to which a smoothed problem is solved
WIDE = 0.5  # the first width where alpha falls too
BEGIN, DROP = 0.1, 0.1  # the first alpha over that of the start; what each is of the one before, with a smoothed hinge
NEAR = 1e-3  # or what the largest violation alpha |w_j| of the start would be of beta, where that is less
STALLS = 2  # problems in a row that are not solved and do not halve the gap, after which rounding is to blame
INSIDE = 0.01  # part of the tolerance to which an elastic net with a smoothed hinge is solved


class _Smoothed:
    """Smoothed hinges on the way to the exact one, which ``reduced`` has."""

    first, fall, last, inner = FIRST, FALL, LAST, INNER

    def __init__(self, reduced: SparseReduced):
        self.reduced, self.size = reduced, size_of(reduced.model)

    def at(self, width: float, start: SparseCertificate) -> SparseReduced:
        """Return the problem of a width, to be solved from ``start``."""
        one = self.reduced
        return SparseReduced(one.model.smoothed(width * self.size), one.alpha, one.screened, start)


class _Netted:
    """Elastic nets on the way to ``alpha = 0``, their hinges smoothed if the exact one is asked for."""

    first, last = 1.0, LAST

    def __init__(self, reduced: SparseReduced):
        self.reduced, start = reduced, reduced.start
        self.sharp = reduced.model.sharp
        self.fall, self.inner = (FALL, INNER) if self.sharp else (DROP, INSIDE)
        largest = float(np.max(np.abs(start.w), initial=0.0))
        known = [BEGIN * start.alpha] if start.alpha > 0.0 else []
        known += [NEAR * reduced.model.beta / largest] if largest > 0.0 else []
        self.alpha = min(known, default=1.0)

    def at(self, width: float, start: SparseCertificate) -> SparseReduced:
        """Return the problem with this part of the first ``alpha``, to be solved from ``start``."""
        model = self.reduced.model
        model = model.smoothed(WIDE * width * size_of(model)) if self.sharp else model
        return SparseReduced(model, self.alpha * width, self.reduced.screened, start)


def size_of(model) -> float:
    """Return what widths are measured by: the margin, which is 1, or the mean loss of a regression without weights."""
    return (model.null_loss or 1.0) if model.regression else 1.0


def continued(solver, reduced: SparseReduced, *, tol: float, budget: Budget, dynamic: bool) -> Solution:
    """Solve with the exact hinge or at ``alpha = 0``, by a ``solver`` of easier problems, for all dual variables."""
    model, alpha, start = reduced.model, reduced.alpha, reduced.start
    dynamic = dynamic and model.views.size >= WORTH
    if dynamic:
        reduced = replace(reduced, screened=reduced.screened.copy())
    way = _Smoothed(reduced) if alpha > 0.0 else _Netted(reduced)
    best, before, width = None, None, way.first
    epochs, touched, screened, progress = 0, 0.0, 0, Progress(STALLS)
    while True:
        if dynamic and best is not None:
            screened += by_a_move(model, reduced.screened, best, alpha)
        easier, left = way.at(width, start), budget.after(epochs, touched)
        found = solver.solve(easier, tol=way.inner * tol, budget=left, dynamic=dynamic)
        epochs, touched, screened = epochs + found.epochs, touched + found.touched, screened + found.screened
        counted = model.rows.touched
        w, theta = found.w, _answer(model, easier, found.w, start)
        known = [model.certify(alpha, w, theta, start)]
        if before is not None:
            known.append(_at_zero(model, alpha, before, (w, theta, width), known[0]))
        touched, model.rows.touched = touched + (model.rows.touched - counted), counted
        start = min(known, key=lambda one: one.gap)
        best = start if best is None or start.gap <= best.gap else best
        before = w, theta, width
        budget.note(best.gap, best.primal, touched)
        converged = best.gap <= tol * abs(best.primal)
        width *= way.fall
        stalled = not found.converged and progress.stalls(best.gap)
        if converged or stalled or width < way.last or budget.spent(epochs):
            return Solution(best.w, best.theta, epochs, touched, converged, screened, f"{solver.name}+continuation")


def _answer(model, easier: SparseReduced, w: np.ndarray, near: SparseCertificate) -> np.ndarray:
    """Return the dual point of weights that solve a problem on the way; its best intercept may be ``near``'s."""
    m, theta, scores = easier.model, np.empty(model.ones.size), model.scores(w)
    if m.intercept:
        intercepts.settle(scores, m.samples, easier.screened.duals, near.intercept)
    sums.respond(scores, m.samples, easier.screened.duals, theta, np.empty(theta.size))
    model.balance(scores, theta)
    return theta


def _at_zero(model, alpha: float, before: tuple, now: tuple, near: SparseCertificate) -> SparseCertificate:
    """Return the certificate of the pair at width 0 on the line of two problems; ``near`` is of the narrower one."""
    (w_before, theta_before, wide), (w_now, theta_now, narrow) = before, now
    step = narrow / (wide - narrow)
    w = w_now + step * (w_now - w_before)
    w[np.sign(w) != np.sign(w_now)] = 0.0
    theta = np.clip(theta_now + step * (theta_now - theta_before), model.low, model.high)
    model.balance(near.scores, theta)
    return model.certify(alpha, w, theta, near)
