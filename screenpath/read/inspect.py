"""A look at a data file: shape, labels, ranges, and every fault in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from screenpath.read.dataset import Dataset
from screenpath.read.faults import Fault
from screenpath.read.libsvm import Parser, parse_stream
from screenpath.read.source import open_source

DENSE_COLUMNS = 1_000_000  # with this many columns more than stored values, only those that occur are looked at
CLASSES = 100  # with more labels, or labels that are not whole numbers, the file is taken for regression


@dataclass(frozen=True)
class Inspection:
    """What a data file holds.

    Parameters
    ----------
    data : Dataset or None
        The lines without fault; None where there is none.
    faults : list of Fault
        In the order of the file, at most as many as asked for.
    complete : bool
        Whether the whole file was looked at.
    zero_based : bool
        How its indices were read.
    """

    data: Dataset | None
    faults: list[Fault]
    complete: bool
    zero_based: bool

    @property
    def label_counts(self) -> dict[float, int] | None:
        """Return samples per label, or None for a regression target."""
        labels, counts = np.unique(self.data.y, return_counts=True)
        if labels.size > CLASSES or np.any(labels != np.round(labels)):
            return None
        return {float(a): int(c) for a, c in zip(labels, counts, strict=True)}

    def column_ranges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the columns that store a value, and the smallest and largest value of each.

        Returns
        -------
        columns : ndarray of shape (k,)
            Increasing, from 0; the other d - k columns are empty. No array has d entries where d is far above
            the number of stored values.
        low, high : ndarray of shape (k,)
            A row that stores no value in a column counts as 0 there.
        """
        X = self.data.X
        if X.shape[1] <= DENSE_COLUMNS + X.nnz:
            found, place = np.arange(X.shape[1]), X.indices
            counts = np.bincount(place, minlength=found.size)
        else:
            found, place, counts = np.unique(X.indices, return_inverse=True, return_counts=True)
        # a column with a value in every row has no 0 of its own
        low = np.where(counts == X.shape[0], np.inf, 0.0)
        high = np.where(counts == X.shape[0], -np.inf, 0.0)
        np.minimum.at(low, place, X.data)
        np.maximum.at(high, place, X.data)
        stored = counts > 0
        return found[stored], low[stored], high[stored]

    def row_norms(self) -> np.ndarray:
        """Return the Euclidean norm of every row, scaled by its largest value so that squares stay in range."""
        X = self.data.X
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        largest = np.zeros(X.shape[0])
        np.maximum.at(largest, rows, np.abs(X.data))
        scale = np.where(largest > 0, largest, 1.0)
        return largest * np.sqrt(np.bincount(rows, weights=(X.data / scale[rows]) ** 2, minlength=X.shape[0]))


def inspect_libsvm(source, *, max_faults: int = 20, zero_based: bool = False) -> Inspection:
    """Read a file to its end, whatever is wrong with single lines.

    Parameters
    ----------
    source : str, Path or binary file object
    max_faults : int, default 20
        Reading ends at this many.
    zero_based : bool, default False

    Returns
    -------
    Inspection

    Raises
    ------
    DataError
        If the file cannot be opened or is a damaged archive.
    """
    with open_source(source) as (stream, name):
        parser = Parser(name, zero_based, max_faults=max_faults)
        parse_stream(stream, parser)
        data = parser.dataset(None) if parser.labels.size else None
        return Inspection(data, parser.faults, not parser.full, zero_based)
