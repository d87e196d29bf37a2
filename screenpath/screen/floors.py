"""A proven lower bound of the loss at the optimum of a parameter that is not solved yet (C-form of Ogawa 2013).

For any dual point ``theta``, ``xi(w*) >= ell(theta) - G'theta . w*``; and the optimum lies in the ball of any pair
(:func:`screenpath.screen.box.pair_radius`). The pair is made for this parameter, from the reference and the far end of
the path; its gap there is a small part of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np

from screenpath.numbers.rounding import UNIT, gamma
from screenpath.screen.box import pair_radius

SEARCHES = 2  # of each of two directions, in turn
GOLDEN = 0.5 * (sqrt(5.0) - 1.0)
SHARES = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875)  # of the way from one dual point to another
NARROWINGS = 18  # of a line search: to a six thousandth of the segment


@dataclass(frozen=True, slots=True)
class Dual:
    """A dual point as a bound of the loss: ``xi(w) >= ell - total . w`` for every w.

    Parameters
    ----------
    ell : float
        A lower bound of ``c . theta``, rounding included.
    total : ndarray of shape (d,)
        ``G'theta`` as computed.
    error : float
        Bound on the norm of its rounding error.
    """

    ell: float
    total: np.ndarray
    error: float

    @classmethod
    def of(cls, certificate) -> Dual:
        lost = certificate.error + certificate.relative * abs(certificate.ell)
        return cls(certificate.ell - lost, certificate.total, certificate.sum_error + certificate.shift)

    def mixed(self, other: Dual, share: float) -> Dual:
        """Return the convex combination ``(1 - share) * self + share * other``."""
        total = self.total + share * (other.total - self.total)
        size = float(np.linalg.norm(self.total) + np.linalg.norm(other.total))
        ell = (1.0 - share) * self.ell + share * other.ell - 4.0 * UNIT * (abs(self.ell) + abs(other.ell))
        return Dual(ell, total, max(self.error, other.error) + 4.0 * UNIT * size)

    def floor(self, center, radius: float) -> float:
        """Return its lower bound of the loss over all w of a ball."""
        reach, length = float(np.linalg.norm(center)), float(np.linalg.norm(self.total))
        lost = self.error * (reach + radius) + gamma(2 * center.size + 16) * length * (reach + radius)
        value = self.ell - float(self.total @ center) - radius * length
        return value - lost - 8.0 * UNIT * (abs(self.ell) + abs(value))


def ball_floor(pair, *others: Dual) -> float:
    """Return a lower bound of ``xi(w*(C))`` at the parameter of a pair, whose ball holds the optimum.

    It is the best of the ``others``, the pair's own dual point, and some between each two.
    """
    center, radius = 0.5 * (pair.point.vector + pair.C * pair.total), pair_radius(pair, pair.C) + pair.C * pair.shift
    duals = [Dual.of(pair), *others]
    between = [a.mixed(b, share) for a, b in combinations(duals, 2) for share in SHARES]
    return max(one.floor(center, radius) for one in (*duals, *between))


def nearer_pair(model, reference, far, C: float) -> tuple:
    """Return a pair made for ``C``, between ``reference`` and ``far``, and a second dual point; three data passes.

    Its w is nearly the best of the plane of the two references' w; its theta is the best between the reference's and
    that of w's own margins, which is the second dual point.
    """
    own, other = _best_in_plane(model.losses(reference), reference.point, far.point, C, C / reference.C)
    margins = own * reference.point.products + other * far.point.products
    guess, off, moved = model.corner(margins)
    total, _, error = model.updated_sum(guess, reference)
    terms = model.c * guess
    ell, step = float(terms.sum()), total - reference.total
    curve = C * float(step @ step)
    rise = ell - reference.ell - C * float(reference.total @ step)
    share = min(max(rise / curve, 0.0), 1.0) if curve > 0.0 else 0.0
    theta = np.clip(reference.theta + share * (guess - reference.theta), model.lo, model.hi)
    w = own * reference.point.vector + other * far.point.vector
    lost = gamma(model.size) * float(np.abs(terms).sum()) + off
    return model.certify(C, w, theta, reference), Dual(ell - lost, total, error + moved)


def _best_in_plane(losses, a, b, C: float, ratio: float) -> tuple[float, float]:
    """Return ``s, v`` that nearly minimise the objective at ``s a + v b``, one after the other; no data pass."""
    inner = float(a.vector @ b.vector)

    def primal(s, v):
        square = s * s * a.sqnorm + v * v * b.sqnorm + 2.0 * s * v * inner
        return 0.5 * square + C * losses(s * a.products + v * b.products)[0]

    s, v = 1.0, 0.0
    for _ in range(SEARCHES):
        v = _least(lambda x, s=s: primal(s, x), 0.0, 1.0)
        s = _least(lambda x, v=v: primal(x, v), 0.0, ratio)
    return s, v


def _least(function, low: float, high: float) -> float:
    """Return the approximate minimiser of a convex function of one number (golden section)."""
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a, at_b = function(a), function(b)
    for _ in range(NARROWINGS):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = function(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = function(b)
    return 0.5 * (low + high)
