r"""What a free intercept adds to the check of a box model's certificate.

Objective   P(w, b) = 1/2 ||w||^2 + C sum_i phi_i(t_i),  t_i = c_i - g_i.w - s_i b,  s_i the sign of g_i = s_i x_i
Dual        as without b, and sum_i s_i theta_i = 0

The file's ``theta`` has a sum ``rho`` that is 0 but for rounding. The dual point that is meant differs from it by
``rho`` in one row, any whose box has room for it: ``w_theta`` moves by ``C |rho| ||x_i||``, and the sum in the gap by
at most ``|rho t_i|``. The row whose gap is the smallest is taken. Such a certificate claims nothing about rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from screenpath.errors import DataError
from screenpath.verify import box, kernel
from screenpath.verify.box import Losses, Pair
from screenpath.verify.exact import TINY, UNIT, UP, fsum
from screenpath.verify.file import NOTHING
from screenpath.verify.kernel import LAST, KernelPair

FALL, RISE = -1.0, 1.0
DIGITS = 2.0**-50  # part of the primal value: which row takes the rest of a sum is the checker's choice


@dataclass
class Residue:
    """What a dual point's signed sum is, and what is found to take it."""

    value: float  # value, error: the sum, and what it may be off by
    error: float
    C: float = 1.0
    apart: float = 0.0  # ``||w - v||`` before a row has taken it, at most
    # For each way that a sum can go: of the best row with room, bounds of the distance from its kink and of its norm
    found: dict = field(default_factory=dict)

    @property
    def size(self) -> float:
        """Return an upper bound of its size."""
        return UP * (abs(self.value) + self.error)

    def look(self, box: Losses, theta, t, error, norms) -> None:
        """Look for rows of a block with which the gap is smaller than with those that were found."""
        for way in (FALL, RISE):
            room = np.where(box.signs * way > 0.0, box.hi - theta, theta - box.lo)
            rows = np.flatnonzero(room * (1.0 - 2.0 * UNIT) >= self.size)
            if rows.size:
                far = (np.abs(t[rows]) + error[rows]).astype(np.float64) * UP
                best = int(np.argmin(self.change(far, norms[rows])))
                new, known = (float(far[best]), float(norms[rows[best]])), self.found.get(way)
                if known is None or self.change(*new) < self.change(*known):
                    self.found[way] = new

    def change(self, far, norm):
        """Return how much larger the gap is, over C and the sum's size, where a row takes it."""
        return far + norm * (self.apart + 0.5 * self.C * self.size * norm)

    def costs(self) -> tuple[float, float]:
        """Return bounds of what taking it changes in the sum over rows, and of how far it moves the sum over rows."""
        if self.value == 0.0 == self.error:
            return 0.0, 0.0
        if not self.size < math.inf:
            return math.inf, math.inf
        ways = [FALL] * (self.value + self.error > 0.0) + [RISE] * (self.value - self.error < 0.0)
        rows = [self.found.get(way, (math.inf, math.inf)) for way in ways]
        return tuple(UP * self.size * max(row[k] for row in rows) + TINY for k in (0, 1))


def check(header: dict, steps: list, source) -> list:
    """Return what is known about every step that claims anything; both passes over ``source``."""
    if header["bias"] != (0.0 if "kernel" in header else 1.0):
        raise DataError("the certificate's bias is not the free one of this model")
    if "kernel" in header:
        return kernel.check(header, steps, source, FreeKernelPair)
    return box.check(header, steps, source, FreePair)


class Summed(Pair):
    """A pair whose signed sum is not 0: rows take what is left of it.

    Attributes
    ----------
    residue : Residue
        Behind the first pass.
    """

    residue: Residue

    def look(self, box: Losses, t, error, norms) -> None:
        """Look for rows that can take what is left of the sum."""
        self.residue.look(box, self.theta(box), t, error, norms)
        without_claims(self, box)


class FreePair(Summed):
    """What the passes find out about one step; the last entry of its solution is the intercept."""

    digits = DIGITS

    def settle(self) -> None:
        """Form ``w - v``, and the sum of the dual variables, which the column of the intercept has."""
        sums = self.sums
        value = float(sums.total[-1] + sums.rest[-1])
        error = UP * (float(sums.error[-1]) + UNIT * abs(value))
        sums.total[-1] = sums.rest[-1] = sums.error[-1] = 0.0
        self.w = np.append(self.solution[:-1], 0.0)
        super().settle()
        self.residue = Residue(value, error, self.entry["C"], self.mismatch)

    @property
    def gap(self) -> float:
        """Return an upper bound of the gap."""
        cost, shift = self.residue.costs()
        return self.gap_with(UP * (self.mismatch + UP * self.entry["C"] * shift), cost)


class FreeKernelPair(Summed, KernelPair):
    """What the passes find out about one step behind a kernel; the last entry of its solution is the intercept."""

    def __init__(self, entry: dict, size: int, width: int):
        super().__init__(entry, size, width)
        self.b = entry["b"]
        if not (isinstance(self.b, float) and math.isfinite(self.b)):
            raise DataError(f"step {entry['step']}: the certificate's intercept is not a number")

    def settle(self) -> None:
        """Form the coefficients, and the sum of the dual variables."""
        super().settle()
        self.solution = np.append(self.solution, self.b)
        value = fsum(self.weights)
        self.residue = Residue(value, UP * UNIT * abs(value), self.entry["C"])

    def forms(self, products, error) -> tuple:
        """Return the linear forms of rows from their products with ``w``, and bounds of their errors."""
        found = products + self.b
        return found, error + 2.0 * LAST * np.abs(found)

    @property
    def gap(self) -> float:
        """Return an upper bound of the gap."""
        cost, shift = self.residue.costs()
        return self.gap_with(UP * (self.entry["C"] * shift + self.shortened), cost)


def without_claims(pair: Pair, box: Losses) -> None:
    """Note a claim about a row: there is nothing that could prove it."""
    for name in ("claims", "after"):
        if pair.entry.get(name) is not None and np.any(pair.codes(name, box) != NOTHING):
            pair.faults.append("rows are claimed to be fixed, which no certificate with a free intercept proves")
