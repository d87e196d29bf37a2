"""A sparse SVM without the L2 term, ``alpha = 0``: dual points that every feature allows, and the gap of a pair.

Objective   min_W  P(W) = 1/n sum_(i,c) s_i l(1 - m_ic) + beta ||W||_1
Dual        max    D(theta) = 1/n sum s theta - gamma/(2n) ||theta||^2,  0 <= theta <= 1,  |u_j| <= beta for every j
Gap         1/n sum s_i [l(t_i) - theta_i t_i + gamma/2 theta_i^2] + sum_j [beta |w_j| - w_j u_j],  no term negative

The box contains 0. So *any* point of it becomes a dual point when divided by the excess of its largest ``|u_j|`` over
``beta``, rounding of the sums included; a free intercept's equality keeps holding up to rounding. The largest
factor up to 1 is taken: ``theta <= 1`` makes the dual grow along it. So every pair has a gap here, whatever problem it
was solved for; ``P`` is not strongly convex, and no ball around a pair says where an optimum is.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from screenpath.kernels.problem import sparse as kernels
from screenpath.numbers.rounding import OUTWARD, TINY, UNIT

TRIES = 4  # of a factor: what rounding leaves of a free intercept's equality changes a little with it
# Of beta, what bounds of |u_j| have to stay within, and what a factor leads to: whoever looks again, with rounding of
# his own, finds a dual point.
WITHIN, INWARD = 1.0 - 32.0 * UNIT, 1.0 - 64.0 * UNIT


def allowed(model, w: np.ndarray, scores: np.ndarray, theta: np.ndarray, sums: tuple, level) -> tuple:
    """Return a dual point on the ray of a point of the box, and its sums; the same one if that is a dual point.

    ``sums`` are ``u`` of ``theta``, and bounds on its entries' errors before the rounding of a sum; ``level`` is the
    intercept included in the scores.
    """
    u, slack = sums
    most = _largest(model, theta, u, slack)
    extent = float(np.abs(w) @ np.tile(model.feature_norm, w.size // model.d)) * model.n + abs(level.intercept)
    for _ in range(TRIES):
        if not isfinite(most):
            break
        shift = model.residue(scores, theta, extent).get("shift", 0.0)
        if most + shift <= WITHIN * model.beta:
            return theta, (u, slack)
        factor = INWARD * model.beta / (most + 2.0 * shift)
        theta, u, slack, most = factor * theta, factor * u, factor * slack, OUTWARD * factor * most
    none = np.zeros(u.size)
    return np.zeros(theta.size), (none, none)


def _largest(model, theta: np.ndarray, u: np.ndarray, slack: np.ndarray) -> float:
    """Return a bound on the largest ``|u_j|``, and on its share that belongs to a multiple of the point."""
    lengths = np.linalg.norm(model.weigh(theta).reshape(model.classes, model.n), axis=1) + 1e-150
    errors = model.rounding.column * np.outer(lengths, model.feature_norm).ravel() + 8.0 * TINY
    return OUTWARD * float(np.max(np.abs(u) + slack + errors, initial=0.0))


def terms_of(w: np.ndarray, u: np.ndarray, features: np.ndarray, norms: np.ndarray, beta: float) -> tuple:
    """Return what the kernel ``feature_terms`` does, at ``alpha = 0`` and for a dual point, where ``S`` is 0."""
    _, w_l1, kink, _, _, reach, active, nonzero = kernels.feature_terms(w, u, features, norms, 1.0, beta)
    return 0.0, w_l1, kink, 0.0, 0.0, reach, active, nonzero
