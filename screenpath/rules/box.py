"""Sample-screening rules of the box models: reference and new parameter in, region out. No pass over rows here.

Each region contains the optimum for *any* primal point and *any* feasible dual point of the reference, and is the
paper's where the reference is exact.
"""

from __future__ import annotations

import numpy as np

from screenpath.geometry import GAP_ROUNDING, Ball


def pair_ball(reference, C: float) -> Ball:
    r"""Ball around the optimum at ``C`` from the reference's pair (w, theta).

    ``||w* - (w + C G'theta)/2||^2 <= gap_C - ||w - C G'theta||^2 / 4``: strong convexity on both sides. For an exact
    reference at ``C0`` it is DVI_s / BT1: centre ``(C + C0)/(2 C0) w0``, radius ``|C - C0|/(2 C0) ||w0||`` (Wang 2014,
    Corollaries 8, 11, 14; Ogawa 2014, Theorem 6).

    The centre is given as a multiple of ``w``, whose products with all rows the certificate knows; the radius
    grows by the distance moved, which is 0 for a reference whose primal point is that of its dual.

    Parameters
    ----------
    reference : models.box.Certificate
    C : float

    Returns
    -------
    Ball
    """
    w_sq, dual_sq = reference.point.sqnorm, C * C * reference.total_sq
    slope = C * (reference.xi - reference.ell)
    center_sq = 0.25 * (w_sq + 2.0 * C * reference.inner + dual_sq)
    error = C * reference.error + GAP_ROUNDING * (w_sq + dual_sq)
    radius = np.sqrt(max(center_sq + slope, 0.0) + error)
    ratio = C / reference.C
    # ||C G'theta - (C/C0) w||, rounding error included
    mismatch_sq = dual_sq - 2.0 * C * ratio * reference.inner + ratio * ratio * w_sq
    mismatch = np.sqrt(max(mismatch_sq, 0.0) + GAP_ROUNDING * (dual_sq + ratio * ratio * w_sq))
    return Ball(reference.point.scaled(0.5 * (1.0 + ratio)), float(radius + 0.5 * mismatch))


class DVI:
    """DVI_s of Wang 2014, which is BT1 of Ogawa 2014, safe with inexact references."""

    name = "dvi"

    def region(self, model, reference, C: float) -> Ball:
        """Return the ball of the reference's own pair at the new parameter."""
        return pair_ball(reference, C)
