"""Products of rows with a primal point, each with a bound of its error; columns beside centres."""

from __future__ import annotations

import math

import numpy as np

from screenpath.verify.data import Block
from screenpath.verify.exact import TINY, UNIT, UP, fsum, gamma, two_product, two_sum

NORMAL = 2.0**-960  # products that are not smaller have an exact rest


def products_of(block: Block, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``x_i.w`` of the rows, and bounds of the errors."""
    parts, n = block.values * w[block.columns], block.labels.size
    longest = int(np.diff(block.indptr).max(initial=0))
    tiny = TINY * (longest + float(np.abs(w).sum())) if np.any(w) else 0.0
    tiny += 0.0 if block.unknown is None else float(block.unknown @ np.abs(w))
    return np.bincount(block.rows, parts, n), gamma(longest + 4) * np.bincount(block.rows, np.abs(parts), n) + tiny


def norms_of(block: Block, width: float = math.inf) -> np.ndarray:
    """Return upper bounds of the norms of the rows in the first ``width`` columns, those that are penalised."""
    values, lengths = np.where(block.columns < width, block.values, 0.0), np.diff(block.indptr)
    if block.unknown is not None:
        values = np.abs(values) + block.unknown[block.columns]
    size = float(np.max(np.abs(values), initial=TINY))
    squares = np.bincount(block.rows, (values / size) ** 2, block.labels.size)
    return UP * size * np.sqrt(squares + TINY * lengths) * (1.0 + gamma(lengths.max(initial=0) + 8))


def product_of(block: Block, i: int, c: tuple[float, float], *points: np.ndarray) -> tuple[float, float]:
    """Return ``c[0] + c[1] + sum_w x_i.w`` and a bound of its error: rounded once where the row is known exactly."""
    here = slice(block.indptr[i], block.indptr[i + 1])
    values, columns = block.values[here], block.columns[here]
    error, parts = 0.0, [np.array(c)]
    for weights in (w[columns] for w in points):
        p, e = two_product(values, weights)
        parts += [p, e]
        error += TINY * np.count_nonzero((np.abs(p) < NORMAL) & (values != 0.0) & (weights != 0.0))
        if block.tails is not None and np.any(weights):
            parts.append(block.tails[here] * weights)
            rounded = columns != block.bias
            error += 32.0 * UNIT * UNIT * fsum(np.abs(p[rounded])) + TINY * fsum(np.abs(weights[rounded]))
    t = fsum(np.concatenate(parts))
    return t, UP * (UNIT * abs(t) + error)


class Centred:
    """Rows beside centres of their columns: as b is free, ``x - m`` with the bias ``b + m.w`` is the same problem.

    A column has a centre where all rows have a value in it, all of them within a factor of two of each other: such
    differences are doubles (Sterbenz). Centres are found while the first pass is read.
    """

    def __init__(self, source):
        self.source, self.n, self.d = source, source.n, source.d
        self.centres = np.zeros(source.d + 1)

    def passed(self, indices: bool):
        """Yield all blocks; those of the second pass beside the centres."""
        if indices:
            yield from self._first()
            return
        m = self.centres
        for block in self.source.passed(indices=False):
            block.values = block.values - m[block.columns]
            if block.tails is not None:
                block.values, block.tails = two_sum(block.values, block.tails)
                block.unknown = 64.0 * UNIT * UNIT * np.abs(m)  # of an entry, in addition to what is relative to it
            yield block

    def _first(self):
        counts, sums, low, high = *np.zeros((2, self.d + 1)), *np.full((2, self.d + 1), math.inf)
        high = -high
        for block in self.source.passed(indices=True):
            counts += np.bincount(block.columns, minlength=counts.size)
            sums += np.bincount(block.columns, block.values, counts.size)
            np.minimum.at(low, block.columns, block.values)
            np.maximum.at(high, block.columns, block.values)
            yield block
        full = (counts == self.n) & (((low > 0.0) & (high / 2.0 <= low)) | ((high < 0.0) & (low / 2.0 >= high)))
        full[-1] = False
        self.centres = np.where(full, np.clip(sums / self.n, low, high), 0.0)

    def moved(self, w: np.ndarray, extra: float) -> tuple[np.ndarray, float]:
        """Return the primal point beside the centres, its bias larger by ``extra``; how far that bias may be off."""
        products, rests = two_product(self.centres[:-1], w[:-1])
        bias = fsum([float(w[-1]), extra, *products, *rests])
        lost = UNIT * abs(bias) + TINY * np.count_nonzero(products)
        return np.append(w[:-1], bias), UP * (abs(extra) + lost)
