"""Rounding, counted: what a proof may claim of numbers that were computed in floating point.

Every certificate names a ``gap`` that is an upper bound: the sum it was computed as plus a bound on every rounding
error of its terms. Of that bound, ``rounding`` says how much is rounding; ``primal_error`` bounds that of the primal.
"""

from __future__ import annotations

import math

UNIT = 2.0**-53  # largest relative error of one rounded operation
TINY = 2.0**-1074  # largest absolute error of one product that underflows
ALIKE = 2.0**-40  # values that differ by this part of theirs differ by rounding
# Largest relative error of a sample's weight: its own times that of its class, which may be rounded itself, and that of
# its part of the sum of all weights.
WEIGHTS_ERROR, SHARES_ERROR = 4.0 * UNIT, 8.0 * UNIT
OUTWARD = 1.0 + 8.0 * UNIT  # a bound that was itself computed in a few operations is multiplied by this


def gamma(depth: float) -> float:
    """Return ``k u / (1 - k u)``: the relative error of ``k`` operations in a row (Higham 2002, Lemma 3.1).

    A sum of ``k`` products, added in whatever order, is off by at most this times the sum of their magnitudes.
    """
    return depth * UNIT / (1.0 - depth * UNIT) if depth * UNIT < 0.5 else math.inf


def target(certificate, tol: float) -> float:
    """Return the largest gap that is certainly within ``tol`` of the exact primal value."""
    return tol * (certificate.primal - certificate.primal_error) / OUTWARD


def meets(certificate, tol: float) -> bool:
    """Tell whether the exact relative gap is at most ``tol``, whatever the rounding of the certificate's numbers.

    What overflows proves nothing: an infinite gap is within a part of an infinite primal value.
    """
    return certificate.gap <= target(certificate, tol) < math.inf or certificate.gap == 0.0 == certificate.primal_error


def meets_but_for_rounding(certificate, tol: float) -> bool:
    """Tell whether only the bound on rounding stands between the certificate and ``tol``."""
    return certificate.gap - certificate.rounding <= tol * (certificate.primal + certificate.primal_error) < math.inf


def blurred(certificate, tol: float) -> bool:
    """Tell whether the primal value may be off by more than ``tol`` of itself. The gap may be small all the same.

    Losses of rows whose dual variable is at its bound have no share of the gap, and all of the primal value.
    """
    return certificate.primal_error > tol * certificate.primal


def is_most(certificate) -> bool:
    """Tell whether most of the gap is a bound on rounding."""
    return certificate.rounding > 0.5 * certificate.gap


def reason(certificate, tol: float) -> str:
    """Return why a pair that meets its tolerance but for rounding is not certified, in words for a reader."""
    return (
        f"rounding is the limit: the gap is known to {certificate.rounding:.1e}, "
        f"{tol * certificate.primal:.1e} was asked for"
    )


class Proven:
    """What all certificates have in common; each has the fields ``primal``, ``primal_error``, ``gap``, ``rounding``."""

    __slots__ = ()

    # Declared, not defined: the classes that follow define them.
    primal: float  # objective of the primal point, as computed
    primal_error: float  # bound on the rounding error of ``primal``
    gap: float  # upper bound of the exact duality gap of the pair; inf where it could not be bounded (overflow)
    rounding: float  # the part of ``gap`` that bounds rounding errors

    @property
    def feasible(self) -> bool:
        """Tell whether there surely is an exact dual point next to the one computed."""
        return True

    @property
    def dual(self) -> float:
        """Return a lower bound of the exact dual value, and so of the optimum."""
        return (self.primal - self.primal_error) - self.gap

    @property
    def highest(self) -> float:
        """Return an upper bound of the exact primal value."""
        return self.primal + self.primal_error

    @property
    def rel_gap(self) -> float:
        """Return the gap relative to the primal objective (0 where both vanish)."""
        return self.gap / self.primal if self.primal > 0.0 else (0.0 if self.gap <= 0.0 else math.inf)
