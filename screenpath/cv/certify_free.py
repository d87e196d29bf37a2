"""What a certified pair with a free intercept says about held-out samples, over a range of C."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from screenpath.numbers import sparse as sp
from screenpath.regions.geometry import ROUNDING, KernelPoint
from screenpath.regions.lever_range import Distances, RangeLevers, pair_levers

AHEAD = 1.1  # the next C of a common grid, over the pair's
PIECES = 4  # into which the range between two grid points is divided


@dataclass(frozen=True)
class FreeLine(RangeLevers):
    """What a pair says about ``m`` held-out samples with the help of ``k`` levers; see :class:`RangeLevers`."""

    apart: np.ndarray  # shape (k, m): at least the distance of each sample from a lever's centre
    errors: int  # weight of the samples that ``w`` and its intercept get wrong; a linear form of 0 counts as negative

    def certain(self, fold, low: float, high: float, side: np.ndarray) -> np.ndarray:
        """Tell of each sample whether ``x.w* + b*`` has the sign ``side`` for all C from ``low`` to ``high``."""
        found = np.zeros(side.size, dtype=bool)
        for k in range(self.levers.shape[1]):
            rows = np.flatnonzero((side == self.sign(k)) & ~found)
            if self.levers[2, k] > 0.0 and rows.size:
                found[rows] = self.shows(k, rows, self.apart[k, rows], fold.norms[rows], low, high)
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
    ready = pair_levers(certificate, model, AHEAD * C)
    if isinstance(point, KernelPoint):
        forms = np.stack([products - certificate.intercept, (products - certificate.intercept) / C])
        distances = Distances(model, np.square(X.norms), lambda center: X @ center, 2.0 * X.blocks.error + ROUNDING)
    else:
        X = X[:, :-1]
        forms = np.stack([X @ point.vector, X @ certificate.total])
        squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.square(X).sum(axis=1)
        squares = np.asarray(squares, dtype=np.float64).ravel()
        distances = Distances(model, squares, lambda center: X @ center, model.rounding)
    apart = [
        distances.of(*rows) if carried > 0.0 else np.zeros(products.size)
        for rows, carried in zip(ready.rows, ready.levers[2], strict=True)
    ]
    return FreeLine(C, ready.pair, forms, ready.levers, np.array(apart), wrong)
