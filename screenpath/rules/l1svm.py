r"""Feature screening for the L1-regularised squared-hinge SVM: reference and new lambda in, region of theta out.

All regions live in the slice ``y.theta = 0``, where every column is replaced by its centred version. Each contains the
optimum for *any* feasible dual point of the reference, and is the paper's where the reference is exact. The products
with all columns come from the certificate, so a rule costs O(n + m).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from screenpath.errors import UsageError
from screenpath.geometry import Ball, Dome, Point
from screenpath.kernels import l1svm as kernels


class VariationalInequality:
    r"""Dome of Zhao 2014: one formula in place of the paper's three cases (Theorems 3.5, 3.7, 3.9).

    From a feasible ``theta_1`` at ``lambda_1 > lambda_2``: the ball with centre ``c = (1/lambda_2 + theta_1) / 2`` and
    radius ``||1/lambda_2 - theta_1|| / 2`` (eq. 12, for any feasible ``theta_1``), and the half-space
    ``a.(theta - theta_1) <= slack`` with ``a = 1/lambda_1 - theta_1`` (eq. 11). For an exact reference the slack is 0;
    with gap ``G`` and ``e = sqrt(2 G) / lambda_1 >= ||theta_1 - theta_1*||`` it is
    ``G / lambda_1^2 + e ||1/lambda_2 - theta_1||``. Everything is projected on the complement of ``y``, this norm too.
    """

    name = "vi"

    def region(self, model, reference, lam: float) -> Dome | Ball:
        """Return the dome (the ball where the half-space has no direction, as at ``lambda_max``)."""
        here, there = 1.0 / reference.lam, 1.0 / lam
        middle, middle_sq, normal, normal_sq, toward_sq, product = kernels.dome_parts(
            reference.theta, model.signs, model.null_bias, here, there
        )
        radius, length = 0.5 * math.sqrt(toward_sq), math.sqrt(normal_sq)
        center, across = kernels.dome_products(
            model.null_products, reference.products, here, there, max(length, 1e-300)
        )
        # Below this the direction is rounding error; without it the region is only larger.
        if length <= 1e-10 * math.sqrt(model.samples) * here:
            return Ball(Point(middle, center, middle_sq), radius)
        gap = (reference.gap + reference.error) * here * here
        slack = gap + math.sqrt(2.0 * gap) * 2.0 * radius
        return Dome(
            Point(middle, center, middle_sq),
            radius,
            Point(normal / length, across, 1.0),
            (slack - 0.5 * product) / length,
        )


def gap_ball(reference) -> Ball:
    """Ball of a certified pair at its own parameter: ``||theta - theta_1||^2 <= 2 gap / lambda^2``."""
    theta = reference.theta
    center = Point(theta, reference.products, kernels.inner(theta, theta))
    return Ball(center, math.sqrt(2.0 * (reference.gap + reference.error)) / reference.lam)


def contradicted(model, accurate, lam: float, decided) -> int:
    """Return how many features were screened though their weight in an unscreened solution cannot be chance.

    A weight that is 0 at the optimum may still be left over in a solution with a small gap; one whose penalty
    ``lam |w_j|`` exceeds that gap is counted.
    """
    return int(((decided != 0) & (lam * abs(accurate.w) > accurate.gap + accurate.error)).sum())


@dataclass(frozen=True, slots=True)
class FeatureScreening:
    """What is screened when.

    Parameters
    ----------
    static : rule or None
        Applied once before each solve, from the previous grid point.
    dynamic : bool
        Apply the gap ball of the current iterate while solving.
    name : str
        As the user wrote it.
    """

    static: VariationalInequality | None
    dynamic: bool
    name: str

    def before(self, model, reference, lam: float):
        """Screen from the previous grid point, before the solve; from ``lambda_max`` up the closed form decides all."""
        if self.static is None:
            return model.nothing_screened()
        if model.exact_until(reference, lam):
            return model.all_screened()
        return model.screen(self.static.region(model, reference, lam))

    def again(self, model, certificate, lam: float):
        """Screen with the ball of a certified pair at the same parameter."""
        return model.screen(gap_ball(certificate))


def parse_feature_rule(text: str) -> FeatureScreening:
    """Turn ``none``, ``gap``, ``vi`` or ``vi+gap`` into a :class:`FeatureScreening`.

    Raises
    ------
    UsageError
        For any other rule.
    """
    parts = sorted(part.strip().lower() for part in text.split("+"))
    if parts not in (["none"], ["gap"], ["vi"], ["gap", "vi"]):
        raise UsageError(f"unknown rule '{text}' for l1svm", "use none, gap, vi or vi+gap")
    return FeatureScreening(VariationalInequality() if "vi" in parts else None, "gap" in parts, text)
