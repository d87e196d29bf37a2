r"""The check of the certificate of a sparse SVM of several classes, in two passes over the data.

Objective   P(W) = 1/n sum_i v_i sum_(c != y_i) l(t_ic) + alpha/2 ||W||^2 + beta ||W||_1,
            t_ic = 1 - x_i.(w_{y_i} - w_c)
Gap         as of :mod:`verify.sparse`, with a dual variable theta_ic for every t_ic, and for each class
            u_c = sum_i v_i (sum_k theta_ik [c = y_i] - theta_ic [c != y_i]) x_i / n

A dual variable is a flow from its sample's class to another one. With free intercepts, the last entries of the classes'
weights in the file, the dual has one condition more for each class: as much flows into it as out of it. What rounding
has left of that flows on: along the way from class to class, of a dual variable each that has room for it, whose terms
change least; what the worst of these ways changes in the terms and in ``u`` is added.
"""

from __future__ import annotations

import math

import numpy as np

from screenpath.errors import DataError
from screenpath.verify.box import norms_of, products_of
from screenpath.verify.data import weights_error, weights_of
from screenpath.verify.exact import TINY, UNIT, UP, ColumnSums, fsum, two_product
from screenpath.verify.sparse import DIGITS, Hinge, SparsePair, read_pair


class ClassesPair(SparsePair):
    """What the passes find out about one step; class after class in ``solution`` and in ``theta``."""

    by_class: list[ColumnSums]
    free = False

    def begin(self, classes: int, width: int, free: bool) -> None:
        """Bring the numbers into the shapes of the classes."""
        self.solution, self.theta = self.solution.reshape(classes, width), self.theta.reshape(classes, -1)
        self.by_class, self.free = [ColumnSums(width) for _ in range(classes)], free
        self.digits = DIGITS if free else 0.0
        self.slopes, self.norms = np.full((2, classes, classes), math.inf)

    @property
    def weights(self) -> np.ndarray:
        """Return what is penalised."""
        return (self.solution[:, :-1] if self.free else self.solution).ravel()

    @property
    def u(self) -> tuple[np.ndarray, np.ndarray]:
        """Return ``u``, and bounds of its errors."""
        kept = slice(-1) if self.free else slice(None)
        found = [self.divided(sums) for sums in self.by_class]
        return np.concatenate([u[kept] for u, _ in found]), np.concatenate([off[kept] for _, off in found])

    @property
    def residue(self) -> float:
        """Return a bound of what is left of the flows, over all classes."""
        ends = [(float(sums.total[-1] + sums.rest[-1]), float(sums.error[-1])) for sums in self.by_class]
        return UP * fsum([abs(value) * (1.0 + 2.0 * UNIT) + off for value, off in ends])

    def add(self, block, y, v) -> None:
        """Add the rows of a block to the sums of the classes."""
        theta, classes = self.theta[:, block.first : block.first + y.size], len(self.by_class)
        own = theta[y, np.arange(y.size)] != 0.0
        if np.any(own):
            self.faults.append(f"row {block.first + np.argmax(own) + 1}: its own class has a dual variable")
        parts = two_product(v, theta)
        for c, sums in enumerate(self.by_class):
            out = y == c
            others = [k for k in range(classes) if k != c]
            for part in parts:
                for k in others:  # what flows out goes to all of them, what flows in is one
                    into = -part[c] if k == others[0] else 0.0
                    sums.add(block, np.where(out, part[k], into))

    def look_between(self, y, c: int, v, theta, t, error, norms, loss: Hinge) -> None:
        """Look for rows of a block that can let more flow to or from the class ``c`` at a smaller change."""
        size = self.residue
        with np.errstate(divide="ignore"):
            slope = UP * (loss.slopes(t, theta) + error + loss.gamma * size / v)
        for ahead in (True, False):
            room = loss.room(v, theta, ahead)
            able = (room >= size) & (room > 0.0) & (y != c)
            for p in np.unique(y[able]).tolist():
                rows = np.flatnonzero(able & (y == p))
                best = rows[np.argmin(slope[rows])]
                ends = (p, c) if ahead else (c, p)
                if slope[best] < self.slopes[ends]:
                    self.slopes[ends], self.norms[ends] = slope[best], norms[best]

    @property
    def gap(self) -> float:
        """Return an upper bound of the gap."""
        size = self.residue if self.free else 0.0
        if size == 0.0:
            return super().gap
        cost, shift = worst_ways(self.slopes, self.norms)
        return self.gap_with(UP * size * cost / self.samples + TINY, UP * 1.5 * size * shift / self.samples + TINY)


def worst_ways(slopes: np.ndarray, norms: np.ndarray) -> tuple[float, float]:
    """Return the largest sums of slopes and of norms along a way between two classes, each a way of small slopes."""
    slopes, norms, size = slopes.copy(), norms.copy(), len(slopes)
    for k in range(size):
        for p in range(size):
            for q in range(size):
                if p != q and p != k and q != k and slopes[p, k] + slopes[k, q] < slopes[p, q]:
                    slopes[p, q], norms[p, q] = UP * (slopes[p, k] + slopes[k, q]), UP * (norms[p, k] + norms[k, q])
    apart = ~np.eye(size, dtype=bool)
    return float(slopes[apart].max()), float(norms[apart].max())


def check(header: dict, steps: list, source) -> list[ClassesPair]:
    """Return what is known about every step that claims anything; both passes over ``source``."""
    labels, loss, free = np.array(header["labels"]["classes"], float), Hinge.of(header), False
    if header.get("intercept") == "free":
        free = True
        if header["bias"] != 1.0 or loss.gamma == 0.0:
            raise DataError("the certificate's bias is not the free one of this model")
    classes, width, n = labels.size, source.d + (header["bias"] != 0.0), source.n
    if classes < 3 or np.any(np.diff(labels) <= 0.0):
        raise DataError("the certificate's options are not those of a sparse SVM of several classes")
    samples = fsum(header["weights"]) if "weights" in header else n
    if not 0.0 < samples < math.inf:
        raise DataError("the certificate's weights have no sum")
    pairs = [read_pair(entry, classes * n, samples, classes * width, ClassesPair, loss.end) for entry in steps]
    for pair in pairs:
        pair.units += 2.0 * ("weights" in header)
        pair.inexact = 2.0 * UP * weights_error(header)
        pair.begin(classes, width, free)
    for block in source.passed(indices=True):
        y, v = classes_of(block.labels, labels), weights_of(header, block)
        for pair in pairs:
            pair.add(block, y, v)
    for block in source.passed(indices=False):
        y, v, norms = classes_of(block.labels, labels), weights_of(header, block), norms_of(block, source.d)
        for pair in pairs:
            _look(pair, block, y, v, norms, loss)
    return pairs


def _look(pair: ClassesPair, block, y, v, norms, loss: Hinge) -> None:
    """Add the shares of a block's rows to the gap and to the losses of a pair."""
    products, errors = (np.stack(part) for part in zip(*(products_of(block, w) for w in pair.solution), strict=True))
    every = np.arange(y.size)
    for c in range(len(products)):
        others = y != c
        theta = pair.theta[c, block.first : block.first + y.size]
        t = (1.0 - products[y, every]) + products[c]
        error = UP * (errors[y, every] + errors[c] + 4.0 * UNIT * (np.abs(t) + np.abs(products[c])))
        ends = [loss.terms(end, theta) for end in (t - error, t + error)]
        most = np.where(others, v * np.maximum(np.maximum(*ends), 0.0), 0.0)
        pair.terms.append(UP * fsum(most) + (TINY * most.size if np.any(most > 0.0) else 0.0))
        if pair.free:
            pair.look_between(y, c, v, theta, t, error, norms, loss)
        pair.losses.append(fsum(np.where(others, v * loss.values(t), 0.0)))
        pair.spread.append(UP * fsum(np.where(others, v * loss.spread(t, error), 0.0)))


def classes_of(labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the numbers of the rows' classes."""
    found = np.minimum(np.searchsorted(known, labels), known.size - 1)
    if not np.array_equal(known[found], labels):
        raise DataError("a label is not among those of the certificate")
    return found
