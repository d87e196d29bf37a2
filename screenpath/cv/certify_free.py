r"""What a certified pair with a free intercept says about held-out samples, over a range of C.

A lever (``models.lever``) bounds ``x.w* + b*`` for any ``x``. For one pair, one lever and a fixed part ``delta`` of
what its rows can carry (of the dual at C = 1), the bound from below

    low(C) = x.c(C) + tau(C) - r(C)^2 / (C delta) - C delta/4 ||x - mu||^2,   c(C) = (w + C G'theta)/2

is concave in C: the first two terms are linear, and so is ``r(C)^2/C`` but for a term in ``1/C``, which is convex. What
is above 0 at both ends of a range of C is so within it. From above it is the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
import scipy.sparse as sp

from screenpath.kernels import box as kernels
from screenpath.models.free_kernel import FreeKernelModel
from screenpath.models.geometry import GAP_ROUNDING, ROUNDING, KernelPoint
from screenpath.models.lever import LEAST, Seen, chosen
from screenpath.rules.box import pair_radius

SIZES = (1 / 16, 0.25, 1.0, 4.0, 16.0)  # of the levers, for the ball at the next C of a common grid
AHEAD = 1.1  # that C, over the pair's
PIECES = 4  # into which the range between two grid points is divided


@dataclass(frozen=True)
class FreeLine:
    """What a pair says about ``m`` held-out samples with ``k`` levers, the first half of which bound below."""

    C: float
    errors: int  # weight of the samples that ``w`` and its intercept get wrong; a linear form of 0 counts as negative
    pair: np.ndarray  # shape (9,): numbers of the pair, from which its ball at any C follows
    forms: np.ndarray  # shape (2, m): products of the samples with ``w`` and with ``G'theta``
    # shape (3, k): ``tau(C)`` of each lever as ``levers[0] + C levers[1]``, rounding included, and what it carries
    # at C = 1
    levers: np.ndarray
    apart: np.ndarray  # shape (k, m): at least the distance of each sample from a lever's centre

    def radius(self, C: float) -> float:
        """Return the radius of the pair's ball at ``C``."""
        w_sq, total_sq, inner, slack, sum_error, total_error, relative, shift, _ = self.pair.tolist()
        own = kernels.pair_radius(C, self.C, w_sq, total_sq, inner, slack, sum_error, total_error, relative)
        return (own + C * shift) * (1.0 + ROUNDING)

    def certain(self, fold, low: float, high: float, side: np.ndarray) -> np.ndarray:
        """Tell of each sample whether ``x.w* + b*`` has the sign ``side`` for all C from ``low`` to ``high``."""
        found = np.zeros(side.size, dtype=bool)
        half = self.levers.shape[1] // 2
        middle = math.sqrt(low * high)
        ends = [(C, self.radius(C)) for C in {low, high}]
        for k in range(2 * half):
            sign, carried = 1.0 if k < half else -1.0, self.levers[2, k]
            rows = np.flatnonzero((side == sign) & ~found)
            if carried <= 0.0 or not rows.size:
                continue
            D = self.apart[k, rows]
            with np.errstate(divide="ignore"):
                delta = np.minimum(carried, 2.0 * self.radius(middle) / (middle * D))
            sure = np.ones(rows.size, dtype=bool)
            for C, r in ends:
                form = 0.5 * (self.forms[0, rows] + C * self.forms[1, rows]) + self.levers[0, k] + C * self.levers[1, k]
                width = r * r / (C * delta) + 0.25 * C * delta * D * D
                rounding = self.pair[8] * (1.0 + C / self.C) * fold.norms[rows] + ROUNDING * (np.abs(form) + width)
                sure &= sign * form > width + rounding
            found[rows] = sure
        return found

    def certain_errors(self, fold) -> int:
        """Return how many samples, by weight, the optimum at this C certainly gets wrong."""
        return fold.weight(self.certain(fold, self.C, self.C, -fold.signs))

    def undecided(self, fold, second: FreeLine, side: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return, for the way to the next line, what :func:`screenpath.cv.certify.undecided` does."""
        step = second.C - self.C
        cuts = self.C * (second.C / self.C) ** np.linspace(0.0, 1.0, PIECES + 1)
        cuts[-1] = second.C
        start, end = np.ones(side.size), np.zeros(side.size)
        for low, high in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            left = ~(self.certain(fold, low, high, side) | second.certain(fold, low, high, side))
            start[left] = np.minimum(start[left], max((low - self.C) / step, 0.0))
            end[left] = np.maximum(end[left], min((high - self.C) / step, 1.0))
        return start, end

    def arrays(self) -> dict:
        """Return the arrays of the line by their names."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("C", "errors")}


def free_line(certificate, model, X, products: np.ndarray, fold) -> FreeLine:
    """Return the line of a certificate with a free intercept, of ``model`` on the training part.

    ``X`` are the prepared held-out rows, shape (m, d + 1), or HeldOutRows; behind those of a linear model stands the
    constant of the intercept. ``products``, shape (m,), are their linear forms, intercept included.
    """
    C, point = certificate.C, certificate.point
    wrong = fold.weight((products > 0.0) != (fold.signs > 0.0))
    own, signs = model.signless, model.signs
    behind = isinstance(model, FreeKernelModel)
    duals = certificate.total if behind else model.margins(certificate.total)  # products of the rows with G'theta
    value, off = C * (signs * certificate.theta), C * certificate.residue
    tau = own.kinks - 0.5 * signs * (point.products + C * duals)
    extent = 0.5 * (math.sqrt(point.sqnorm) + C * math.sqrt(certificate.total_sq))
    slack = model.rounding * (model.norms * extent + np.abs(own.kinks))
    seen = Seen(tau, value - C * own.lo - off, C * own.hi - value - off, slack, model.typical)
    ahead = pair_radius(certificate, AHEAD * C) + C * certificate.shift
    sizes = math.sqrt(point.sqnorm), math.sqrt(certificate.total_sq)
    levers, apart = [], []
    distances = _Distances(model, X)
    for side, lever in zip((1.0, -1.0), chosen(seen, max(ahead, LEAST), SIZES), strict=True):
        rows = lever.rows
        at = own.kinks[rows] - 0.5 * signs[rows] * point.products[rows], -0.5 * signs[rows] * duals[rows]
        error = model.norms[rows] * 0.5 * sizes[0] + np.abs(own.kinks[rows]), model.norms[rows] * 0.5 * sizes[1]
        beside = ROUNDING * abs(certificate.intercept)  # the forms behind a kernel are freed of it
        for (_, carried), weights in zip(lever.offsets, lever.weights, strict=True):
            a, b = (float(weights @ (v - side * model.rounding * e)) for v, e in zip(at, error, strict=True))
            levers.append([a - side * beside, b, carried / C])
            apart.append(distances.of(rows, weights) if carried > 0.0 else np.zeros(products.size))
    if isinstance(point, KernelPoint):
        forms = np.stack([products - certificate.intercept, (products - certificate.intercept) / C])
        extent += C * math.sqrt(certificate.total_error / GAP_ROUNDING)
    else:
        forms = np.stack([X[:, :-1] @ point.vector, X[:, :-1] @ certificate.total])
    numbers = [
        point.sqnorm, certificate.total_sq, certificate.inner, certificate.slack, certificate.sum_error,
        certificate.total_error, certificate.relative, certificate.shift, model.rounding * extent,
    ]  # fmt: skip
    return FreeLine(C, wrong, np.array(numbers), forms, np.array(levers).T, np.array(apart))


class _Distances:
    """Distances of held-out samples, ``X`` of shape (m, d + 1) or HeldOutRows, from combinations of training rows."""

    def __init__(self, model, X):
        self.model, self.behind = model, isinstance(model, FreeKernelModel)
        self.X = X if self.behind else X[:, :-1]
        if self.behind:
            self.squares, self.off = np.square(X.norms), 2.0 * X.blocks.error + ROUNDING
        else:
            squares = self.X.multiply(self.X).sum(axis=1) if sp.issparse(self.X) else np.square(self.X).sum(axis=1)
            self.squares, self.off = np.asarray(squares, dtype=np.float64).ravel(), model.rounding
        self.norms = np.sqrt(self.squares)

    def of(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return upper bounds of the distances from ``sum_k weights_k x_rows[k]``."""
        model, used = self.model, weights > 0.0
        index, share = rows[used], weights[used]
        if self.behind:
            center = np.zeros(model.size)
            center[index] = share
            inner, error = model.products_of(index, share)
            spread = float(share @ model.norms[index])
            square = float(share @ inner[index]) + error * spread
        else:
            taken = model.signless_rows(index)
            whole = sp.csr_array(taken, shape=(index.size, model.rows.d)) if isinstance(taken, tuple) else taken
            center = np.asarray(share @ whole).ravel()
            square, spread = float(center @ center), float(share @ model.norms[index])
        apart = self.squares - 2.0 * (self.X @ center) + square
        return np.sqrt(np.maximum(apart, 0.0) + 4.0 * self.off * np.square(self.norms + spread)) * (1.0 + ROUNDING)
