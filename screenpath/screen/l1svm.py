"""Feature screening for the L1-regularised squared-hinge SVM: reference and new lambda in, region of theta out.

All regions live in the slice ``y.theta = 0``, where every column is replaced by its centred version. Each contains the
optimum for *any* feasible dual point of the reference, and is the paper's if the reference is exact. The products
with all columns come from the certificate, so a rule costs O(n + m).
"""

from __future__ import annotations

import math

from screenpath.errors import UsageError
from screenpath.kernels.rows.newton_system import inner
from screenpath.problem.l1svm import halfway
from screenpath.regions.geometry import Ball, Dome, Point
from screenpath.screen.base import Composed, StaticRule
from screenpath.screen.plugins import plugged_rule

# Smallest length of the half-space's normal, relative to the vectors it is the difference of, at which it is not yet
# rounding error.
DIRECTION = 1e-10


class VariationalInequality(StaticRule):
    r"""Dome of Zhao 2014: one formula in place of the paper's three cases (Theorems 3.5, 3.7, 3.9).

    From a feasible ``theta_1`` at ``lambda_1 > lambda_2``: the ball with centre ``c = (1/lambda_2 + theta_1) / 2`` and
    radius ``||1/lambda_2 - theta_1|| / 2`` (eq. 12, for any feasible ``theta_1``), and the half-space
    ``a.(theta - theta_1) <= slack`` with ``a = 1/lambda_1 - theta_1`` (eq. 11). For an exact reference the slack is 0;
    with gap ``G`` and ``e = sqrt(2 G) / lambda_1 >= ||theta_1 - theta_1*||`` it is
    ``G / lambda_1^2 + e ||1/lambda_2 - theta_1||``. Everything is projected on the complement of ``y``, this norm too.
    """

    name = "vi"

    def region(self, model, reference, C: float) -> Dome | Ball:
        """Return the dome at ``lambda_2 = C``.

        It is made in units of ``alpha = lambda_1 theta``, as squares of ``1 / lambda`` could overflow. There
        ``u = |y| - null_bias y``, the projection of ``|y|`` on the complement of ``y``, takes the place of 1.
        """
        unit, gap, rounding = reference.lam, reference.theta_gap, model.slack_of(reference)
        ratio, alpha, u = unit / float(C), unit * reference.theta, model.null_slack
        middle, toward, normal = 0.5 * (ratio * u + alpha), ratio * u - alpha, u - alpha
        size, radius, length = (math.sqrt(inner(v, v)) for v in (middle, 0.5 * toward, normal))
        products = (0.5 / unit) * (ratio * model.null_products) + 0.5 * reference.products
        center = Point(middle / unit, products, size / unit * (size / unit))
        if not length > DIRECTION * math.sqrt(model.total):  # without the half-space the region is only larger
            return Ball(center, radius / unit)
        across = Point(normal / length, (model.null_products - unit * reference.products) / length, 1.0)
        axis = rounding * (1.0 + math.sqrt(model.total) / length)
        offset = (gap + 2.0 * math.sqrt(2.0 * gap) * radius - 0.5 * inner(toward, normal)) / length
        offset += 2.0 * (axis * radius + rounding * size)
        return Dome(center, radius / unit, across, offset / unit, axis)


def gap_ball(reference) -> Ball:
    """Return a pair's ball at its parameter: around ``theta``, ``r^2 = 2 gap / lambda^2``, or halfway if smaller."""
    theta, products, lam, scale = reference.theta, reference.products, reference.lam, reference.scale
    square, radius = inner(theta, theta), math.sqrt(2.0 * reference.theta_gap) / lam
    if scale > 0.0:
        norm = math.sqrt(square) * lam
        part, other = halfway(reference.theta_gap, scale, norm / scale, max(reference.off, reference.slip * norm))
        if other < radius * lam:
            factor = part / scale
            return Ball(Point(factor * theta, factor * products, factor * factor * square), other / lam)
    return Ball(Point(theta, products, square), radius)


def contradicted(model, accurate, lam: float, decided) -> int:
    """Return how many features were screened although their weight in an unscreened solution cannot be chance.

    A weight that is 0 at the optimum may remain in a solution with a small gap; one whose penalty
    ``lam |w_j|`` exceeds that gap is counted.
    """
    return int(((decided != 0) & (lam * abs(accurate.w) > accurate.gap)).sum())


class FeatureScreening(Composed):
    """What is screened when, of the L1 model."""

    def before(self, model, reference, parameter):
        """Screen from the previous step, before the solve; from ``lambda_max`` up the closed form decides all."""
        if self.static is None:
            return model.nothing_screened()
        if model.exact_until(reference, parameter):
            return model.all_screened()
        return model.screen(self.static.region(model, reference, parameter), model.slack_of(reference))

    def again(self, model, certificate, parameter):
        return model.screen(gap_ball(certificate), model.slack_of(certificate))


def parse_feature_rule(text: str) -> FeatureScreening:
    """Turn ``none``, ``gap``, ``vi`` or ``vi+gap`` into a :class:`FeatureScreening`; another rule is a UsageError."""
    if (own := plugged_rule(text, FeatureScreening)) is not None:
        return own
    parts = sorted(part.strip().lower() for part in text.split("+"))
    if parts not in (["none"], ["gap"], ["vi"], ["gap", "vi"]):
        raise UsageError(f"unknown rule '{text}' for l1svm", "use none, gap, vi or vi+gap")
    return FeatureScreening(VariationalInequality() if "vi" in parts else None, "gap" in parts, text)
