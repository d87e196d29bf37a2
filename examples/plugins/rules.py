"""Two rules as plug-ins: one that is safe, and one that is not where the reference is inexact.

screenpath compare-rules svm --attack 50 --rules dvi,examples/plugins/rules.py:GapBall
"""

from __future__ import annotations

from math import sqrt

from screenpath.regions.geometry import Ball


class GapBall:
    """Ball around the reference's w, by the duality gap of its pair at the new C.

    The primal objective is 1-strongly convex, so ``||w* - w||^2 <= 2 (P_C(w) - D_C(theta))`` for any w and any feasible
    theta. Rounding can make the computed gap too small; the bounds that the certificate carries are added.
    """

    def region(self, model, reference, C):
        """Return the ball."""
        r = reference
        w_sq = r.point.sqnorm
        dual_sq = C * C * ((sqrt(r.total_sq) + r.sum_error + r.shift) ** 2 + r.total_error)
        gap = 0.5 * (w_sq + dual_sq) + C * (r.xi - r.ell + r.error + r.cost)
        gap += r.relative * (w_sq + dual_sq)
        return Ball(r.point, sqrt(2.0 * max(gap, 0.0)))


class PrintedDVI:
    """DVI as the paper prints it (Wang 2014, Corollary 8): it takes the reference for the exact optimum."""

    def region(self, model, reference, C):
        """Return the ball of Corollary 8."""
        ratio, length = C / reference.C, sqrt(reference.point.sqnorm)
        return Ball(reference.point.scaled(0.5 * (1.0 + ratio)), 0.5 * abs(ratio - 1.0) * length)
