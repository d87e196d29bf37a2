"""Bounds on rounding: what a proof may conclude from numbers computed in floating point.

The ``gap`` of every certificate is an upper bound: the computed sum plus a bound on the rounding errors of its terms.
``rounding`` is the part of it that bounds errors; ``primal_error`` bounds that of the primal.
"""

from __future__ import annotations

import math

UNIT = 2.0**-53  # largest relative error of one rounded operation
TINY = 2.0**-1074  # largest absolute error of one product that underflows
ALIKE = 2.0**-40  # a smaller relative difference is rounding
DIGITS = 2.0**-30  # of the primal value, which no tolerance asks for more of: a gap is not a difference of objectives
# Largest relative errors of a sample's weight (its own times that of its class, which may be rounded itself), and of
# its share of the sum of all weights.
WEIGHTS_ERROR, SHARES_ERROR = 4.0 * UNIT, 8.0 * UNIT
OUTWARD = 1.0 + 8.0 * UNIT  # factor for bounds that were computed in a few operations


def gamma(depth: float) -> float:
    """Return ``k u / (1 - k u)``: the relative error of ``k`` consecutive operations (Higham 2002, Lemma 3.1).

    The error of a sum of ``k`` products, in any order, is at most this times the sum of their magnitudes.
    """
    return depth * UNIT / (1.0 - depth * UNIT) if depth * UNIT < 0.5 else math.inf


def gammas(*depths: float) -> list[float]:
    return [gamma(depth) for depth in depths]


def target(certificate, tol: float) -> float:
    """Return the largest gap that is certainly within ``tol`` of the exact primal value."""
    return tol * (certificate.primal - certificate.primal_error) / OUTWARD


def meets(certificate, tol: float) -> bool:
    """Tell whether the exact relative gap is at most ``tol``, for any rounding of the certificate's numbers.

    Overflow proves nothing: an infinite gap would be within a part of an infinite primal value.
    """
    return certificate.gap <= target(certificate, tol) < math.inf or certificate.gap == 0.0 == certificate.primal_error


def meets_but_for_rounding(certificate, tol: float) -> bool:
    """Tell whether the certificate would meet ``tol`` without its bound on rounding."""
    return certificate.gap - certificate.rounding <= tol * (certificate.primal + certificate.primal_error) < math.inf


def blurred(certificate, tol: float) -> bool:
    """Tell whether the relative error of the primal value may exceed ``tol`` and ``DIGITS``. The gap may be small.

    Losses of rows whose dual variable is at its bound contribute nothing to the gap, and everything to the primal
    value.
    """
    return certificate.primal_error > max(tol, DIGITS) * certificate.primal


def is_most(certificate) -> bool:
    """Tell whether most of the gap is a bound on rounding."""
    return certificate.rounding > 0.5 * certificate.gap


def reason(certificate, tol: float) -> str:
    """Return why a solution that meets its tolerance without rounding is not certified."""
    return (
        f"rounding is the limit: the gap is known to {certificate.rounding:.1e}, "
        f"{tol * certificate.primal:.1e} was asked for"
    )


class Proven:
    """The common part of all certificates; each also has ``at``, the parameters of its step."""

    __slots__ = ()

    # Defined by subclasses.
    primal: float  # objective of the primal point, as computed
    primal_error: float  # bound on the rounding error of ``primal``
    gap: float  # upper bound of the exact duality gap; inf after an overflow
    rounding: float  # the part of ``gap`` that bounds rounding errors

    @property
    def feasible(self) -> bool:
        """Tell whether an exact dual point certainly exists next to the computed one."""
        return True

    @property
    def dual(self) -> float:
        """Return a lower bound of the exact dual value, and so of the optimum."""
        return (self.primal - self.primal_error) - self.gap

    @property
    def highest(self) -> float:
        return self.primal + self.primal_error

    @property
    def rel_gap(self) -> float:
        """Return the gap relative to the primal objective (0 if both vanish)."""
        return self.gap / self.primal if self.primal > 0.0 else (0.0 if self.gap <= 0.0 else math.inf)
