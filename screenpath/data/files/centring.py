r"""Feature columns whose mean is far above their spread, and numbers to subtract from them exactly, without filling
zeros.

With a free intercept, subtracting a number from a column does not change the model, but it reduces rounding, which is
relative to the values. Columns whose values all lie within a factor of two of each other can be centred at a number
``m`` between them: then ``x - m`` is exactly a double (Sterbenz 1974), so that the problem stays that of the data. No
such column has a zero among its values: sparse ones are full already.
"""

from __future__ import annotations

import numpy as np

from screenpath.data.safe.memory import VALUES_AT_ONCE
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import Csr, is_sparse

FEW = 8  # samples checked before all others
FAR = 1000.0  # ranges from 0 at which rows of samples are centred: nearer ones lose at most three digits
SINGLE = 100.0  # ... and at which float32 keeps at most five digits of a column's variation


def far_centres(X, weights: np.ndarray | None = None, far: float = FAR) -> np.ndarray | None:
    """Return the numbers to subtract from columns of samples that are far from 0 relative to their range, shape (m,),
    mostly 0; or None. Further arguments as of :func:`far_ranges`.
    """
    index, low, high = far_ranges(X, weights, far)
    return midpoints(X.shape[1], index, low, high)


def midpoints(width: int, index: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray | None:
    """Return the middle of the range of some columns, 0 for others; None if there are none."""
    centres = np.zeros(width, dtype=low.dtype)
    centres[index] = low + (high - low) / 2
    return centres if index.size else None


def far_ranges(X, weights: np.ndarray | None = None, far: float = SINGLE):
    """Return the columns, from 0, whose values are far from 0, with their smallest and largest values.

    ``X`` is dense, a Csr or a csr_array; a sparse column counts only if each sample with a weight stores a value in it.
    Nearest to 0 they are ``far`` times their range from it, or more.
    """
    rows = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights > 0.0)
    found = []
    if rows.size:
        head = rows[:FEW]
        index = np.unique(X[head[0] : head[0] + 1].indices) if is_sparse(X) else np.arange(X.shape[1])
        few = _columns(X[: head[-1] + 1], index)[head]
        index = index[is_far(few.min(axis=0), few.max(axis=0), far)]
        if is_sparse(X) and index.size:
            index = index[np.bincount(X.indices, minlength=X.shape[1])[index] >= rows.size]
        for part in blocks(index, X.shape[0]):
            there = _columns(X, part)
            there = there if weights is None else there[rows]
            low, high = there.min(axis=0), there.max(axis=0)
            kept = is_far(low, high, far)
            found.append((part[kept], low[kept], high[kept]))
    none = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=X.dtype), np.zeros(0, dtype=X.dtype))
    return tuple(np.concatenate(parts) for parts in zip(none, *found, strict=True))


def _columns(X, index: np.ndarray) -> np.ndarray:
    """Return some columns, increasing, as a dense array."""
    if isinstance(X, Csr):
        return X.columns(index)
    return X[:, index].toarray() if sp.issparse(X) else X[:, index]


def is_far(low, high, far: float = FAR):
    """Tell whether the numbers between two are far from 0; unstored values are 0, so such sparse columns are full."""
    return close(low, high) & (far * (high - low) <= np.minimum(np.abs(low), np.abs(high)))


def blocks(index: np.ndarray, samples: int):
    """Yield column numbers in blocks with a bounded number of values."""
    step = max(1, VALUES_AT_ONCE // max(samples, 1))
    for start in range(0, index.size, step):
        yield index[start : start + step]


def close(low, high):
    """Tell whether all numbers between two are within a factor of two of each other, and not 0."""
    return ((low > 0.0) & (0.5 * high <= low)) | ((high < 0.0) & (0.5 * low >= high))
