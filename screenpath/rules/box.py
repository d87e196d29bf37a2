"""Sample-screening rules of the box models: reference and new parameter in, region out. No pass over rows here.

Each region contains the optimum for *any* primal point and *any* feasible dual point of the reference, and is the
paper's where the reference is exact.
"""

from __future__ import annotations

import numpy as np

from screenpath.errors import UsageError
from screenpath.geometry import GAP_ROUNDING, Ball, Dome, Lens, Point


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


def sign_ball(model, reference, C: float) -> Ball:
    r"""Ball around the optimum at ``C`` from ``w0`` and the dual point that its margins suggest (BT2).

    The dual point is ``s_i = hi_i`` where ``c_i - (C + C0)/(2 C0) g_i.w0 > 0``, else ``lo_i`` (Ogawa 2014, Theorem 7);
    the ball is that of the pair (w0, s), safe for any w0. Costs the change of the sum over rows and one data pass.
    """
    guess = (C + reference.C) / (2.0 * reference.C) * reference.point.products
    s = np.where(model.c > guess, model.hi, model.lo)
    total, _ = model.updated_sum(s, reference)
    products = model.margins(total)
    w = reference.point
    center = Point(0.5 * (w.vector + C * total), 0.5 * (w.products + C * products), 0.0)
    square = float(center.vector @ center.vector)
    terms = model.c * s
    error = C * (reference.error + GAP_ROUNDING * float(np.abs(terms).sum())) + GAP_ROUNDING * square
    radius = np.sqrt(max(square + C * (reference.xi - float(terms.sum())), 0.0) + error)
    return Ball(Point(center.vector, center.products, square), float(radius))


def error_norm(certificate) -> float:
    """Return a bound on ``||w - w*||`` for a certified pair: ``sqrt(2 gap)``, rounding included."""
    return float(np.sqrt(2.0 * (certificate.gap + certificate.C * certificate.error)))


def past_half_space(reference, reach: float) -> tuple[Point | None, float]:
    r"""Half-space ``a.w <= b`` that holds every optimum at a larger C of norm at most ``reach``.

    ``w0.(w - w0) >= 0`` for an exact reference (Ogawa 2013, eq. 9); with ``e = sqrt(2 gap)`` it becomes
    ``w0.(w - w0) >= -(e (reach + 2 ||w0|| + 2 e) + e^2)``.

    Returns
    -------
    normal : Point or None
        ``a = -w0 / ||w0||``; None where ``w0 = 0`` says nothing.
    bound : float
    """
    norm = float(np.sqrt(reference.point.sqnorm))
    if norm == 0.0:
        return None, np.inf
    e = error_norm(reference)
    slack = e * (reach + 2.0 * norm + 2.0 * e) + e * e
    return reference.point.scaled(-1.0 / norm), (slack - norm * norm) / norm


class DVI:
    """DVI_s of Wang 2014, which is BT1 of Ogawa 2014, safe with inexact references."""

    name = "dvi"
    needs_far_end = False

    def region(self, model, reference, C: float) -> Ball:
        """Return the ball of the reference's own pair at the new parameter."""
        return pair_ball(reference, C)


class BT2:
    """Ball Test 2 of Ogawa 2014."""

    name = "bt2"
    needs_far_end = False

    def region(self, model, reference, C: float) -> Ball:
        """Return the ball of the reference's primal point and the dual point that its margins suggest."""
        return sign_ball(model, reference, C)


class IT:
    """Intersection Test of Ogawa 2014 (Theorem 8): never weaker than BT1 and BT2."""

    name = "it"
    needs_far_end = False

    def region(self, model, reference, C: float) -> Lens:
        """Return the intersection of the two balls."""
        return Lens(pair_ball(reference, C), sign_ball(model, reference, C))


class _FarEnd:
    """What SSNSV and ESSNSV share: a certificate at the largest C of the path."""

    needs_far_end = True

    def __init__(self, far=None):
        self.far = far

    def bound_to(self, far):
        """Return the same rule with the certificate of the far end."""
        return type(self)(far)

    def region(self, model, reference, C: float):
        """Return the dome of the far end's ball and the reference's half-space."""
        if not reference.C <= C <= self.far.C:
            raise UsageError(
                f"the rule {self.name} needs a reference below C = {C:g} and a far end above it",
                "walk towards larger C, or use dvi, bt2 or it",
            )
        ball, reach = self.ball()
        normal, bound = past_half_space(reference, reach)
        if normal is None:
            return ball
        return Dome(ball.center, ball.radius, normal, bound - float(normal.vector @ ball.center.vector))


class SSNSV(_FarEnd):
    """Dome test of Ogawa 2013 (Theorem 2): norms grow with C, so ``||w*|| <= ||w_b||``."""

    name = "ssnsv"

    def ball(self) -> tuple[Ball, float]:
        """Return the ball around 0 and the largest norm in it."""
        point = self.far.point
        reach = float(np.sqrt(point.sqnorm)) + error_norm(self.far)
        return Ball(Point(np.zeros_like(point.vector), np.zeros_like(point.products), 0.0), reach), reach


class ESSNSV(_FarEnd):
    """ESSNSV of Wang 2014 (Theorem 18): ``w*.(w_b - w*) >= 0``, the ball with the segment from 0 to w_b as diameter."""

    name = "essnsv"

    def ball(self) -> tuple[Ball, float]:
        """Return the ball around half the far solution and the largest norm in it."""
        point = self.far.point
        half, e = 0.5 * float(np.sqrt(point.sqnorm)), error_norm(self.far)
        return Ball(point.scaled(0.5), half + e), 2.0 * half + e
