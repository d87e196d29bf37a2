r"""The check of an L1-regularised squared-hinge SVM's certificate; the last column is the bias, which is free.

Objective   P(w, b) = 1/2 sum_i v_i max(0, s_i)^2 + lambda ||w||_1,  s_i = 1 - y_i (x_i.w + b),  v_i the weights
Dual        sum_i v_i (a_i - a_i^2 / 2),  a >= 0,  y.g = 0,  |f_j.g| <= lambda,  f_j = y x^j,  g_i = v_i a_i
Gap         sum_i v_i [(max(0, s_i) - a_i)^2 / 2 + a_i max(0, -s_i)] + sum_j [lambda |w_j| - w_j f_j.g]

The file holds w and b only: the dual point is the checker's own. It begins with ``g_i = v_i max(0, s_i)`` as computed,
whose ``y.g`` is 0 but for rounding: the rows of the class with more of it are multiplied by ``1 - e``, and then all by
the ``r`` that makes the point feasible. Neither is carried out; what they change is counted in the bounds, and so is
the rounding of the products ``v_i a_i``. The weights may be products that were rounded, too: with the exact ones and
the same ``g`` the squares of both objectives change by that part of them.

As ``b`` is free and ``y.g = 0``, a number may be subtracted from a column: ``x - m`` with the bias ``b + m.w``. It is
done where all rows have a value in the column, all of them within a factor of two of each other: such differences are
doubles (Sterbenz). The bias of the checker's point is ``b + b_off`` as the file has it, 0 by default: that ``b`` is
rounded to one double moves every ``s_i``, which costs the gap its square only where the dual point is not moved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from screenpath.errors import DataError
from screenpath.verify.box import products_of
from screenpath.verify.data import signs_of, weights_error, weights_of
from screenpath.verify.exact import TINY, UNIT, UP, ColumnSums, fsum, gamma, two_product, two_sum


@dataclass
class L1Pair:
    """What the passes find out about one step."""

    entry: dict
    sums: ColumnSums  # ``f_j.g``, and ``y.g`` for the last column
    solution: np.ndarray
    sizes: np.ndarray  # shape (d + 1,): upper bounds of ``|f_j|.g``
    # alpha, error, weights: ``a`` of each block, bounds of the errors of ``s``, and ``v``
    alpha: list[np.ndarray] = field(default_factory=list)
    error: list[np.ndarray] = field(default_factory=list)
    weights: list[np.ndarray] = field(default_factory=list)
    # upper bounds of the blocks' shares in ``v_i a_i max(0, -s_i)``
    misplaced: list[float] = field(default_factory=list)
    shares: list = field(default_factory=list)  # list of (float, float): sums of ``g`` over the rows of each class
    faults: list = field(default_factory=list)
    claims: int = 0
    inexact: float = 0.0  # largest relative error of the weights
    digits = 2.0**-40  # the dual point is the checker's own

    @property
    def gap(self) -> float:
        """Return an upper bound of the gap."""
        w, lam = self.solution[:-1], self.entry["lambda"]
        a, error, v = self._arrays()
        total, parts = self.sums.total + self.sums.rest, np.abs(self.sums.total) + np.abs(self.sums.rest)
        off = UP * (self.sums.error + UNIT * parts) + np.where(parts == 0.0, 0.0, TINY)
        uneven, lighter = abs(total[-1]) + off[-1], min(map(fsum, zip(*self.shares, strict=True)))
        e = UP * uneven / (lighter * (1.0 - 8.0 * UNIT)) if lighter > 0.0 else 0.0 if uneven == 0.0 else math.inf
        if not e < 0.5:
            return math.inf
        off = UP * (off + e * self.sizes)[:-1]
        most = float(np.max(np.abs(total[:-1]) + off, initial=0.0))
        mass, squares = fsum(v * a), fsum(v * a * a)
        best = mass / squares if squares > 0.0 else 1.0
        r = min(lam / most if most > 0.0 else best, best) * (1.0 - 16.0 * UNIT)
        change = abs(1.0 - r) + UP * r * e + 4.0 * UNIT * (1.0 + r)
        distance = fsum(UP * v * (change * a + error) ** 2 + TINY * (a > 0.0))
        distance += 2.0 * self.inexact * (1.0 + r * r) * fsum(v * (a + error) ** 2)
        products = np.abs(w) * (np.maximum(lam - r * np.sign(w) * total[:-1], 0.0) + r * off + 4.0 * UNIT * lam)
        return UP * (0.5 * distance + UP * r * fsum(self.misplaced) + UP * fsum(products)) + TINY * np.count_nonzero(w)

    @property
    def primal(self) -> tuple[float, float]:
        """Return the primal value, and a bound of its error."""
        a, error, v = self._arrays()
        value = 0.5 * fsum(v * a * a) + self.entry["lambda"] * fsum(np.abs(self.solution[:-1]))
        return value, UP * (fsum(v * error * (a + error)) + (8.0 * UNIT + 2.0 * self.inexact) * value) + TINY * a.size

    @property
    def outside(self) -> tuple[int, int]:
        """Return the least and the largest number of rows with a dual variable of 0: no weight, or outside."""
        a, error, v = self._arrays()
        surely, possibly = (np.count_nonzero(rows | (v == 0.0)) for rows in ((a == 0.0) & (error == 0.0), a <= error))
        return int(surely), int(possibly)

    def _arrays(self):
        return (np.concatenate([*parts, np.zeros(0)]) for parts in (self.alpha, self.error, self.weights))


def check(header: dict, steps: list, source) -> list[L1Pair]:
    """Return what is known about every step that claims anything; the second pass over ``source`` does it all."""
    if header["bias"] != 1.0:
        raise DataError("the certificate's bias is not the free one of this model")
    pairs = [_read(entry, source.d) for entry in steps]
    for pair in pairs:
        pair.inexact = weights_error(header)
    m = _centres(source)  # and the first half of the fingerprint
    moved = [_moved(pair, m) for pair in pairs]
    for block in source.passed(indices=False):
        signs, v = signs_of(block.labels, header["labels"]), weights_of(header, block)
        values, unknown = block.values - m[block.columns], np.zeros(source.d + 1)
        if block.tails is not None:
            values, block.tails = two_sum(values, block.tails)
            unknown = 64.0 * UNIT * UNIT * np.abs(m)  # of an entry, beside what is relative to it
        block.values = values
        for pair, (solution, off) in zip(pairs, moved, strict=True):
            p, error = products_of(block, solution)
            s = 1.0 - signs * p
            a, error = np.maximum(s, 0.0), UP * (error + UNIT * np.abs(s) + off + unknown @ np.abs(solution))
            pair.alpha.append(a)
            pair.error.append(np.where(s + error > 0.0, error, 0.0))
            pair.weights.append(v)
            g = v * a
            pair.misplaced.append(UP * fsum(g * np.maximum(error - a, 0.0)))
            pair.shares.append((fsum(g[signs > 0.0]), fsum(g[signs < 0.0])))
            pair.sums.add(block, signs * g)
            pair.sums.error += UP * unknown * fsum(g)
            sizes = np.bincount(block.columns, np.abs(g[block.rows] * block.values), source.d + 1)
            pair.sizes = UP * (pair.sizes + unknown * fsum(g) + (1.0 + gamma(signs.size + 4)) * sizes) + TINY * np.sign(
                sizes
            )
    return pairs


def _centres(source) -> np.ndarray:
    """Return what may be subtracted from each column without rounding, about its mean; 0 for others and the bias."""
    counts, sums, low, high = np.zeros(source.d + 1), np.zeros(source.d + 1), *np.zeros((2, source.d + 1))
    low[:], high[:] = math.inf, -math.inf
    for block in source.passed(indices=True):
        counts += np.bincount(block.columns, minlength=counts.size)
        sums += np.bincount(block.columns, block.values, counts.size)
        np.minimum.at(low, block.columns, block.values)
        np.maximum.at(high, block.columns, block.values)
    full = (counts == source.n) & (((low > 0.0) & (high / 2.0 <= low)) | ((high < 0.0) & (low / 2.0 >= high)))
    full[-1] = False
    return np.where(full, np.clip(sums / source.n, low, high), 0.0)


def _moved(pair: L1Pair, m: np.ndarray) -> tuple[np.ndarray, float]:
    """Return ``w`` and the bias of the checker's point beside centred columns; how far that may be off ``b + m.w``."""
    b, extra = pair.entry["b"], pair.entry.get("b_off", 0.0)
    products, rests = two_product(m[:-1], pair.solution[:-1])
    bias = fsum([b, extra, *products, *rests])
    lost = UNIT * abs(bias) + TINY * np.count_nonzero(products)
    return np.append(pair.solution[:-1], bias), UP * (abs(extra) + lost)


def _read(entry: dict, d: int) -> L1Pair:
    """Return the pair of a step; its numbers have the lengths and ranges that they must have."""
    index, values, lam = entry["index"], entry["values"], entry["lambda"]
    if (
        index.size != values.size
        or np.any((index < 0) | (index >= d) | (np.diff(index, prepend=-1) <= 0))
        or not np.all(np.isfinite(values))
        or not (isinstance(lam, float) and 0.0 < lam < math.inf and math.isfinite(entry["b"]))
        or not math.isfinite(entry.get("b_off", 0.0))
    ):
        raise DataError(f"step {entry['step']}: the certificate's numbers do not fit the data")
    solution = np.zeros(d + 1)
    solution[index], solution[-1] = values, entry["b"]
    return L1Pair(entry, ColumnSums(d + 1), solution, np.zeros(d + 1))
