"""The contracts of rows: what models, solvers and the walk may ask of the data, wherever it is stored.

Nothing above this room knows whether rows are dense, sparse, mapped from disk, on other machines or behind a kernel.
What only some rows can do is a capability that each declares (``stored``, ``compiled``, ``moved``). Methods described
here have docstrings elsewhere only for what they add.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from screenpath.data.files.prepare import CHUNK_CELLS
from screenpath.data.safe.memory import F8, in_force
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.numbers.csr import shared_csr


@runtime_checkable
class Counted(Protocol):
    """Data whose operations count what they touch: all that the walk needs."""

    n: int  # rows, or other units of one pass over the data
    touched: float  # int or float: units touched so far by any operation; ``touched / n`` is the number of passes
    on_disk: bool = False  # whether passes read files, which the caller must close
    read: int | None = None  # bytes of files that passes have read so far; None if the data is in memory
    spares: bool = False  # whether float32 may do where nothing depends on more, and nobody asks for more later
    moved: int | None = None  # bytes exchanged with other machines so far; None if the data is here
    features: bool = True  # whether the data has features, which may be scaled

    def check(self) -> None:
        """Raise if files that passes read have changed since the last pass; data in memory does not change."""
        return None


@runtime_checkable
class Rows(Counted, Protocol):
    """Prepared sample rows ``x_i``, ``n`` of them, of a linear model."""

    d: int  # columns
    sparse: bool  # form of the rows that :meth:`take` gives
    norms: np.ndarray  # shape (n,): Euclidean norms
    inexact: float  # largest relative error of a value, as the preparation left it
    staged: bool = False  # whether a compiled walk may copy the rows that it needs for some steps; see `walk.staged`

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the number of values that the rows store, or would store."""

    @property
    @abstractmethod
    def nbytes(self) -> int: ...

    @property
    @abstractmethod
    def kinds(self) -> tuple:
        """Return the types of values and of indices (None for dense rows) that :meth:`take` gives."""

    @property
    @abstractmethod
    def stored(self) -> np.ndarray | tuple | None:
        """Return the arrays if compiled code can read the rows in place (float64, in memory); else None."""

    @property
    def compiled(self) -> bool:
        """Tell whether a compiled walk may read the rows in place; such rows are :class:`WalkedRows`."""
        return False

    @abstractmethod
    def margins(self, w: np.ndarray) -> np.ndarray:
        """Return ``x_i.w`` of every row, shape (n,); one data pass."""

    @abstractmethod
    def weighted_sum(self, theta: np.ndarray) -> np.ndarray:
        """Return ``sum_i theta_i x_i``, shape (d,); rows with a zero weight are not touched.

        Partial sums are computed in the blocks of ``rows.memory.sum_blocks``, so the result is the same wherever rows
        are.
        """

    def margins_and_sum(self, w: np.ndarray, weigh: Callable) -> tuple[np.ndarray, np.ndarray]:
        """Return :meth:`margins`, and :meth:`weighted_sum` of the weights ``weigh(margins, start, stop)`` of the rows
        from ``start`` to ``stop``; rows in memory are read once for both.
        """
        margins = self.margins(w)
        return margins, self.weighted_sum(weigh(margins, 0, self.n))

    @abstractmethod
    def take(self, index: np.ndarray, signs: np.ndarray) -> np.ndarray | tuple:
        """Return a contiguous float64 copy of the rows ``signs[k] * x_index[k]``: an array, or (data, indices, indptr)
        for sparse rows.
        """

    def dense(self, index: np.ndarray) -> np.ndarray:
        """Return a copy of some rows as an array, shape (k, d), whatever their form."""
        if self.sparse:
            in_force().check(F8 * index.size * self.d, f"{index.size:,} of {self.n:,} rows as dense ones")
        rows = self.take(index, np.ones(index.size))
        if isinstance(rows, np.ndarray):
            return rows
        data, indices, indptr = rows
        return shared_csr(data, indices, indptr, (index.size, self.d)).toarray()

    def blockwise(self, function: Callable, *arguments) -> list:
        """Return ``function(X, *arguments)`` for matrices ``X`` of some dense rows each, all rows in order."""
        if self.stored is not None and not self.sparse:
            return [function(matrix_of(self.stored), *arguments)]
        blocks = np.split(np.arange(self.n), range(step := max(1, CHUNK_CELLS // self.d), self.n, step))
        return [function(matrix_of(self.dense(block)), *arguments) for block in blocks]

    @abstractmethod
    def whole(self) -> np.ndarray | tuple:
        """Return all rows as :meth:`take` would; this counts as no pass."""


@runtime_checkable
class WalkedRows(Rows, Protocol):
    """Rows that a compiled walk may read in place."""

    threads: int  # threads that may share the work
    pool: Any  # ThreadPoolExecutor or None: of all threads but the caller's
    brief: bool  # whether a signal can wait for the end of a step that reads all rows

    @property
    @abstractmethod
    def sum_edges(self) -> np.ndarray:
        """Return where the blocks of a sum over rows begin, and where the last one ends."""

    @abstractmethod
    def lent(self, key, make: Callable[[], Any]):
        """Return work space for single calls, made by ``make()`` once for all paths on these rows."""


@runtime_checkable
class FeatureColumns(Counted, Protocol):
    """Signed feature columns ``f_j = y * x^j``, ``n`` of them, of ``d`` samples; ``touched`` counts columns."""

    d: int
    sparse: bool
    signs: np.ndarray  # shape (d,)
    norms: np.ndarray  # shape (n,)
    inexact: float  # largest relative error of a value

    @abstractmethod
    def products(self, v: np.ndarray) -> np.ndarray:
        """Return ``f_j . v`` for every feature."""

    @abstractmethod
    def combine(self, w: np.ndarray) -> np.ndarray:
        """Return ``sum_j w_j f_j``, one entry per sample; columns with a zero weight are not read."""

    @abstractmethod
    def column(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the stored values of a column, and their samples."""

    @abstractmethod
    def slices(self, index: np.ndarray) -> tuple:
        """Return columns for kernels, float64: values, samples, and where each column begins and ends."""

    @abstractmethod
    def some(self, index: np.ndarray) -> tuple:
        """Return columns for kernels as :meth:`slices`, each at its number; those not requested may be empty."""


@runtime_checkable
class TwoViews(Protocol):
    """The same data by rows and by columns, for models that screen samples and features at once."""

    n: int  # n, d: samples and features
    d: int
    dense: bool
    inexact: float  # largest relative error of a value
    whole: bool  # whether all of it is in memory; a view is a tuple ``(data, indices, indptr)``
    row_ends: np.ndarray  # row_ends, column_ends: shape (n + 1,), (d + 1,); running totals of the values of lines
    column_ends: np.ndarray
    row_sqnorms: np.ndarray  # row_sqnorms, column_sqnorms: shape (n,), (d,)
    column_sqnorms: np.ndarray
    meter: Counted

    @property
    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def columns(self, mark: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """Return the view by columns; columns in which ``mark``, shape (classes * d,), is 0 may be empty. ``mark`` may
        be None if the data is ``whole``.
        """

    @abstractmethod
    def rows(self, mark: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """Return the view by rows; ``mark`` as in :meth:`columns`."""

    @abstractmethod
    def blocks(self, mark: np.ndarray | None = None) -> Iterator[tuple]:
        """Yield all columns, or those of :meth:`columns`, in order: which they are (None: all), and their own view."""

    @abstractmethod
    def column(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the stored values of a column as float64, and their samples."""

    @abstractmethod
    def row(self, i: int, mark: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the stored values of a row, at least those of :meth:`columns`, as float64, and their features."""
