"""What the data themselves say of labels, weights and scaling, formed while the checker reads them."""

from __future__ import annotations

import math

import numpy as np

from screenpath.verify.data import filled, scaled
from screenpath.verify.exact import ColumnSums, gamma

CONSTANT = 1.01e-12  # spread over mean up to which a column may be called constant: it is divided by 1
TWICE = 2.0  # the run's own rounding, and the checker's


class DataFacts:
    """Watches the blocks of a source: the first pass takes counts and sums, the second one what needs the means.

    ``sample_weights``, shape (n,), are those of the run's file: they count in the scaling, those of classes do not.
    Known are then ``labels`` as numbers, shape (n,), ``nnz`` values, and ``used``, the features, from 0, that occur.
    """

    def __init__(self, header: dict, source, sample_weights=None):
        self.header, self.sample_weights, self.passes = header, sample_weights, 0
        self.columns, d, self.width = source.columns, source.d, header["data"]["n_features"]
        self.parts: list[np.ndarray] = []
        self.nnz, self.used = 0, np.zeros(0, dtype=np.int64)
        self.sums, self.sizes = ColumnSums(d), np.zeros(d)
        self.there, self.heavy, self.squares, self.peaks = np.zeros((4, d))
        self.values = [0.0, 0.0, math.inf, -math.inf, 0.0]  # of all values: sum, of squares, ends; of squares apart
        blocks = source._blocks

        def watched():
            self.passes += 1
            for block in blocks():
                if self.passes <= 2:
                    self._add(block)
                yield block

        source._blocks = watched

    def _add(self, block) -> None:
        places = block.columns
        if self.columns is not None and places.size:
            places = np.minimum(np.searchsorted(self.columns, places), self.columns.size - 1)
        if places.size and not 0 <= places.min() <= places.max() < self.peaks.size:
            return  # not the data of the certificate, as whoever reads them says
        given, count, values = self.sample_weights, block.labels.size, filled(block.values, self.header, places)
        v = np.ones(count) if given is None else given[block.first : block.first + count]
        if self.passes == 1:
            self.parts.append(block.labels)
            self.nnz += block.columns.size
            self.used = np.union1d(self.used, block.columns)
        if "gamma" in self.header.get("kernel", {}):
            self._spread(type(block)(0, block.labels, block.indptr, places, block.values))
        if self.header["scaling"] not in ("standard", "maxabs"):
            return
        d, weights = self.peaks.size, v[block.rows]
        with np.errstate(all="ignore"):
            if self.passes == 1:
                self.sums.add(type(block)(0, v, block.indptr, places, values), v)
                self.sizes += np.bincount(places, weights * np.abs(values), d)
                self.there += np.bincount(places, minlength=d)
                self.heavy += np.bincount(places, weights, d)
                np.maximum.at(self.peaks, places, np.where(weights > 0.0, np.abs(values), 0.0))
            else:
                self.squares += np.bincount(places, weights * (values - self.means[places]) ** 2, d)

    def _spread(self, block) -> None:
        """Add the values of rows, as the kernel has them, to their sums, or to those of their squared distances."""
        x = scaled(block, {**self.header, "bias": 0.0}, self.peaks.size).values
        total, squares, low, high, _ = self.values
        cells = block.labels.size * self.width
        ends = np.append(x, 0.0) if x.size < cells else x
        if self.passes == 1 and cells:
            self.values = [total + x.sum(), squares + x @ x, min(low, ends.min()), max(high, ends.max()), 0.0]
        elif cells:
            mean = total / (self.labels.size * self.width)
            self.values[-1] += np.square(x - mean).sum() + (cells - x.size) * mean * mean

    def is_spread(self, rate: float) -> bool:
        """Tell whether ``rate`` is 1 over the variance of all values, and over the number of features; 1 of none."""
        _, squares, low, high, apart = self.values
        cells = self.labels.size * self.width
        off = TWICE * gamma(cells + 16) * (1.0 + math.sqrt(squares / apart)) if apart > 0.0 else math.inf
        if low == high or not off < 1.0:
            return rate == 1.0
        return abs(rate * self.width * apart / cells - 1.0) <= off

    @property
    def labels(self) -> np.ndarray:
        return np.concatenate([*self.parts, np.zeros(0)])

    @property
    def total(self) -> float:
        """Return the sum of the weights of the samples."""
        return self.labels.size if self.sample_weights is None else math.fsum(self.sample_weights)

    @property
    def means(self) -> np.ndarray:
        return (self.sums.total + self.sums.rest) / self.total

    def scaling(self, penalties=None) -> dict:
        """Return what ``scale`` and ``shift`` have to be, as predicates; empty if the scaling has neither.

        ``penalties``, if there are any, are further divisors of the columns.
        """
        kind, n = self.header["scaling"], self.labels.size
        p = 1.0 if penalties is None else penalties
        if kind == "standard":
            growth = TWICE * gamma(n + 16)
            means = self.means
            off = growth * self.sizes / self.total
            rest = np.where(self.there == n, 0.0, np.maximum(self.total - self.heavy, 0.0))
            spread = np.sqrt((self.squares + rest * means**2) / self.total)
            far = growth * spread + TWICE * off
            constant = spread <= np.maximum(far, CONSTANT * np.abs(means))

            def is_scale(scale):
                return np.all((np.abs(scale / p - spread) <= far) & (spread > 0.0) | constant & (scale == p))

            return {"scale": is_scale, "shift": lambda shift: np.all(np.abs(shift - means) <= off)}
        if kind == "maxabs":
            peaks = np.where(self.peaks > 0.0, self.peaks, 1.0)
            return {"scale": lambda scale: np.array_equal(scale, peaks * p)}
        return {} if penalties is None else {"scale": lambda scale: np.array_equal(scale, penalties)}

    def mappings(self, positive: float | None, several: str) -> list:
        """Return the maps of the labels (numbers) that fit: ``positive`` against others, two of them, or classes; of
        one-vs-one in the order in which they appear.

        The rest may have its name if it is a single label.
        """
        found = np.unique(self.labels).tolist()
        if positive is not None:
            others = [label for label in found if label != positive]
            return [{"+1": positive, "-1": other} for other in ("rest", *(others if len(others) == 1 else ()))]
        if several == "one_vs_one":
            found = list(dict.fromkeys(self.labels.tolist()))
        return [{"classes": found} if several and len(found) > 2 else {"+1": found[-1], "-1": found[0]}]

    def row_weights(self, classes) -> np.ndarray | None:
        """Return the weights of the rows: of the samples times those of the classes; None where there are none.

        ``classes`` is ``"balanced"``, or a dict from labels, as numbers, to weights.
        """
        if not classes:
            return self.sample_weights
        labels, codes = np.unique(self.labels, return_inverse=True)
        if classes == "balanced":
            given = np.ones(codes.size) if self.sample_weights is None else self.sample_weights
            counts = np.array([math.fsum(given[codes == k]) for k in range(labels.size)])
            there = counts > 0.0
            factor = np.where(there, math.fsum(counts) / (np.count_nonzero(there) * np.where(there, counts, 1.0)), 1.0)
        else:
            factor = np.array([classes.get(label, 1.0) for label in labels.tolist()])
        return factor[codes] * (1.0 if self.sample_weights is None else self.sample_weights)
