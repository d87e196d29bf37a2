"""Sample-screening rules of the box models: reference and new parameter in, region out. No pass over rows here.

Each region contains the optimum for *any* primal point and *any* feasible dual point of the reference, and is the
paper's if the reference is exact. A derivation that uses no more of the losses than that their sum is convex in ``w``
holds word for word with a free intercept, the best one for each ``w``: then a region that comes with a dual point is
decided by levers (``regions.lever``), the others by the interval that the best intercepts of their points cover.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from screenpath.kernels.problem import box as kernels
from screenpath.kernels.walk.compiled_types import PAIR_BALL
from screenpath.numbers.rounding import OUTWARD
from screenpath.regions.geometry import ROUNDING, Ball, Dome, KernelPoint, Lens
from screenpath.regions.lever import LeverBall, LeverPencil
from screenpath.screen.base import StaticRule


def pair_ball(reference, C: float) -> Ball:
    """Return a ball around the optimum at ``C`` from the reference's pair (w, theta).

    ``||w* - (w + C G'theta)/2||^2 <= gap_C - ||w - C G'theta||^2 / 4``: strong convexity on both sides. The right side
    is ``||w - C G'theta||^2 / 4 + C sum (phi_i(t_i) - theta_i t_i)``, where rounding counts least. For an exact
    reference at ``C0`` it is DVI_s / BT1: centre ``(C + C0)/(2 C0) w0``, radius ``|C - C0|/(2 C0) ||w0||`` (Wang 2014,
    Corollaries 8, 11, 14; Ogawa 2014, Theorem 6).

    The centre is given as a multiple of ``w``, whose products with all rows the certificate knows; the radius
    grows by the distance moved, which is 0 for a reference whose primal point is that of its dual.
    """
    ratio, point = C / reference.C, reference.point
    mismatch = kernels.pair_mismatch(
        C, reference.C, point.sqnorm, reference.total_sq, reference.inner, reference.total_error, reference.relative
    )
    return Ball(point.scaled(0.5 * (1.0 + ratio)), pair_radius(reference, C) + 0.5 * mismatch + C * reference.shift)


def pair_region(reference, C: float, one: bool = False) -> Ball | LeverBall:
    """Return the ball of :func:`pair_ball`, with a free intercept with the dual point for its levers (see there).

    The rounding error of the dual point's sum moves the centre, and makes the ball larger. ``one``: see ``LeverBall``.
    """
    ball = pair_ball(reference, C)
    return ball if reference.intercept is None else LeverBall(ball, C, reference.theta, reference.residue, one)


def pair_radius(reference, C: float) -> float:
    """Return the radius of the pair's ball around its computed centre ``(w + C G'theta)/2``, rounding included."""
    return kernels.pair_radius(
        C, reference.C, reference.point.sqnorm, reference.total_sq, reference.inner, reference.slack,
        reference.sum_error, reference.total_error, reference.relative,
    )  # fmt: skip


def disproved(model, region, decided: np.ndarray) -> int:
    """Return how many decided rows of weight a region with the optimum proves to be on the other side."""
    proven = model.screen(region).status
    return int(np.count_nonzero((proven * decided < 0) & (model.lo < model.hi)))


class DVI(StaticRule):
    """DVI_s of Wang 2014, which is BT1 of Ogawa 2014, safe with inexact references."""

    name = "dvi"
    compiled = PAIR_BALL

    def region(self, model, reference, C: float) -> Ball | LeverBall:
        return pair_region(reference, C, one=True)


class BT2(StaticRule):
    """Ball test 2 of Ogawa 2014 (Theorem 7): the ball of the reference's w and a guess of the dual point."""

    name = "bt2"

    def region(self, model, reference, C: float) -> Ball | LeverBall:
        """Return the ball of (w, s); :meth:`problem.box.BoxModel.screen` takes one data pass for its centre."""
        return guess_ball(model, reference, C)


class IT(StaticRule):
    """Intersection test of Ogawa 2014 (Theorem 8): both balls at once, never weaker than either."""

    name = "it"

    def region(self, model, reference, C: float) -> Lens | LeverPencil:
        """Return both balls, with a free intercept those between them too."""
        pair, guess = pair_region(reference, C), guess_ball(model, reference, C)
        if isinstance(pair, LeverBall) and isinstance(guess, LeverBall):
            return LeverPencil(pair, guess)
        assert isinstance(pair, Ball) and isinstance(guess, Ball)
        return Lens(pair, guess)


def guess_ball(model, reference, C: float) -> Ball | LeverBall:
    """Return the ball of the pair (w, s) with ``s_i = hi_i`` where ``c_i > (C + C0)/(2 C0) g_i.w``, else ``lo_i``.

    Any dual point of the box would do, as in :func:`pair_ball`; this one is where the centre of BT1 puts each row
    (Ogawa 2014, Section IV-C). ``G's`` is the reference's sum plus the rows whose dual variable differs. With a free
    intercept it maximises ``sum s_i q_i`` over the dual points whose signed sum is 0, ``q = c - (C + C0)/(2 C0) g.w``.
    """
    guess, ell, residue = model.guess(reference.point.products, 0.5 * (1.0 + C / reference.C))
    center, dual_sq, rounding, shift = model.middle(reference, guess, C)
    slope = C * (reference.xi - ell)
    error = 2.0 * C * reference.error + rounding  # the error of `ell` has the bound of that of the reference's
    error += reference.relative * (reference.point.sqnorm + dual_sq)
    hidden = (1.0 + C + C / reference.C) * kernels.LEAST
    if residue is None:
        return Ball(center, sqrt(max(center.sqnorm + slope, 0.0) + error) + shift + hidden)
    error += C * residue * model.largest_kink
    shift += 0.5 * C * residue * model.largest_norm + hidden
    ball = Ball(center, (sqrt(max(center.sqnorm + slope, 0.0) + error) + shift) * OUTWARD)
    return LeverBall(ball, C, guess, residue)


def feasible_dome(reference, far: Ball, parameters, enhanced: bool) -> Dome | Ball:
    """Region of SSNSV (Ogawa 2013, Theorem 2) and ESSNSV (Wang 2014, Theorem 18) for one or several parameters.

    ``far`` holds a point that is feasible for each of the ``parameters``, and has the radius 0 if that point itself is
    known: a ``w_b`` with ``xi(w_b) <= xi(w*(C))``. Then ``||w*|| <= ||w_b||`` and ``w*.(w_b - w*) >= 0``. The
    half-space ``w0.(w - w0) >= 0`` of the papers holds for an exact ``w0``. For any pair (w0, theta0), the ball of
    :func:`pair_ball` bounds ``w0.w*`` from below at every C; the bound is ``||w0||^2`` for an exact pair.

    ``enhanced`` is ESSNSV, the smaller ball. If the reference is the origin there is no half-space, and the region is
    a Ball. Behind a kernel (Ogawa 2013, Section 3) all of it is sums of kernel values, which cancel: ``lost`` is what
    rounding may have made of ``||w0||^2``, and of ``C0 w0.G'theta0``, which is the same number there.
    """
    size = sqrt(far.center.sqnorm + far.center.inner(far.center)[1]) * (1.0 + reference.relative)
    if enhanced:
        center, radius = far.center.scaled(0.5), 0.5 * size + far.radius
    else:
        center, radius = far.center.scaled(0.0), size + far.radius
    length, lost = sqrt(reference.point.sqnorm), reference.point.inner(reference.point)[1]
    if not reference.point.sqnorm > lost:
        return Ball(center, float(radius))
    normal = reference.point.scaled(-1.0 / length)
    least = np.inf
    for C in parameters:
        radius_at = pair_radius(reference, C) + C * reference.shift
        least = min(least, 0.5 * (length + C * reference.inner / length) - radius_at)
    across, off = normal.inner(center)
    slack = ROUNDING * radius + reference.relative * max(parameters) * sqrt(reference.total_sq)
    if not isinstance(normal, KernelPoint):
        return Dome(center, float(radius), normal, float(-least - across + slack))
    apart = lost / (length * length)  # relative error of the length, by which the normal is off
    slack += (off + 2.0 * apart * (length * (1.0 + max(parameters) / reference.C) + size)) * OUTWARD
    return Dome(center, float(radius), normal, float(-least - across + slack), ROUNDING + normal.error + apart)


class SSNSV(StaticRule):
    """Dome test of Ogawa 2013, between the previous solution and that at the largest C."""

    name = "ssnsv"
    needs_far_end = True
    enhanced = False

    def region(self, model, reference, C: float, far) -> Dome | Ball:
        """Return the dome for one parameter; ``far`` belongs to a parameter of at least C, and need not be exact."""
        return feasible_dome(reference, pair_ball(far, far.C), (C,), self.enhanced)


class ESSNSV(SSNSV):
    """The dome test with the smaller ball that the variational inequality gives (Wang 2014, Theorem 18)."""

    name = "essnsv"
    enhanced = True
