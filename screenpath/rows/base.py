"""The contracts of rows: what models, solvers and the walk may ask of the data, wherever it is kept.

Nothing above this room knows whether rows are dense, sparse, mapped from disk, on other machines or seen through a
kernel. What not all of them can do is a capability that each declares (``stored``, ``compiled``, ``moved``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Counted(Protocol):
    """Data of which every operation counts what it touches: all that the walk asks of it."""

    n: int  # rows, or other units of one pass over the data
    touched: float  # int or float: units touched so far by any operation; ``touched / n`` is the number of passes
    on_disk: bool = False  # whether passes read files, which somebody has to close
    moved: int | None = None  # bytes sent to other machines and back so far; None where the data is here

    def check(self) -> None:
        """Raise where files that passes read have changed since the last pass; what is in memory does not change."""
        return None


@runtime_checkable
class Rows(Counted, Protocol):
    """Sample rows ``x_i``, ``n`` of them, prepared; those of a linear model."""

    d: int  # columns
    sparse: bool  # form of the rows that :meth:`take` gives
    norms: np.ndarray  # shape (n,): Euclidean norms
    inexact: float  # largest relative error of a value, as the preparation left it

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the number of values that the rows store, or would store."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Return the bytes of the rows where they are kept."""

    @property
    @abstractmethod
    def kinds(self) -> tuple:
        """Return the types of values and of indices (None for dense rows)."""

    @property
    @abstractmethod
    def stored(self) -> np.ndarray | tuple | None:
        """Return the arrays where compiled code can read the rows in place: float64, in memory; else None."""

    @property
    def compiled(self) -> bool:
        """Tell whether a compiled walk may read the rows where they are; such rows are :class:`WalkedRows`."""
        return False

    @abstractmethod
    def margins(self, w: np.ndarray) -> np.ndarray:
        """Return ``x_i.w`` of every row, shape (n,); one data pass."""

    @abstractmethod
    def weighted_sum(self, theta: np.ndarray) -> np.ndarray:
        """Return ``sum_i theta_i x_i``, shape (d,); rows with a zero weight are not touched.

        Partial sums are formed in the blocks of ``rows.memory.sum_blocks``: the same bytes wherever the rows are.
        """

    @abstractmethod
    def take(self, index: np.ndarray, signs: np.ndarray) -> np.ndarray | tuple:
        """Return a contiguous float64 copy of the rows ``signs[k] * x_index[k]``: an array, or (data, indices, indptr)
        for sparse rows.
        """

    @abstractmethod
    def whole(self) -> np.ndarray | tuple:
        """Return all rows as :meth:`take` would."""


@runtime_checkable
class WalkedRows(Rows, Protocol):
    """Rows that a compiled walk may read where they are."""

    threads: int  # threads that may share the work
    pool: Any  # ThreadPoolExecutor or None: of all threads but the caller's

    @property
    @abstractmethod
    def sum_edges(self) -> np.ndarray:
        """Return where the blocks of a sum over rows begin, and where the last one ends."""

    @abstractmethod
    def lent(self, key, make: Callable[[], Any]):
        """Return room that is used within single calls, made by ``make()``: one for all paths on these rows."""


@runtime_checkable
class KernelRows(Counted, Protocol):
    """Rows ``z_i`` known through the matrix ``Q_ij = z_i.z_j``; ``touched`` counts its rows."""

    d: int  # columns of the data behind the kernel
    signs: np.ndarray  # shape (n,)
    norms: np.ndarray  # shape (n,): ``sqrt(Q_ii)``, rounded up
    # error, stored_error: ``Q_ij`` is off by at most this times ``norms_i norms_j`` in sums that certify or screen, and
    # in those of a solver
    error: float
    stored_error: float
    plan: Any  # rows.budget.GramPlan: how much of the matrix is kept

    @property
    @abstractmethod
    def whole(self) -> bool:
        """Tell whether :meth:`square` of all rows is the stored matrix itself."""

    @abstractmethod
    def weighted_sum(self, theta: np.ndarray) -> np.ndarray:
        """Return ``Q theta``, shape (n,); rows with a zero weight are not touched."""

    @abstractmethod
    def add_sum(self, index: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
        """Add ``sum_k weights[k] Q[index[k]]`` to ``out``."""

    @abstractmethod
    def depth(self, m: int) -> float:
        """Return how many operations in a row a sum over ``m`` rows is, at most."""

    @abstractmethod
    def precise_sums(self, target: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return some entries of products of Q as sums of two doubles, and a bound on their error."""

    @abstractmethod
    def sum_at(self, index: np.ndarray, weights: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return ``sum_k weights[k] Q[index[k], target]`` from the stored values, for a solver."""

    @abstractmethod
    def square(self, index: np.ndarray):
        """Return ``Q[index][:, index]`` as a :class:`rows.gram.SquarePart`."""


@runtime_checkable
class FeatureColumns(Counted, Protocol):
    """Signed feature columns ``f_j = y * (x^j - m_j)`` of a model that screens features; ``touched`` counts columns.

    There are ``n`` of them, of ``d`` samples.
    """

    d: int
    sparse: bool
    signs: np.ndarray  # shape (d,)
    norms: np.ndarray  # shape (n,)
    centres: np.ndarray  # shape (n,): ``m``, subtracted without rounding
    inexact: float  # largest relative error of a value before that

    @abstractmethod
    def products(self, v: np.ndarray) -> np.ndarray:
        """Return ``f_j . v`` for every feature."""

    @abstractmethod
    def combine(self, w: np.ndarray) -> np.ndarray:
        """Return ``sum_j w_j f_j``, one entry a sample."""

    @abstractmethod
    def spreads(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the norms of the columns centred at their mean, and that mean as computed."""

    @abstractmethod
    def column(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the stored values of a column, and the samples they belong to."""

    @abstractmethod
    def slices(self, index: np.ndarray | None = None) -> tuple:
        """Return some (or all) sparse columns as values, samples, and where each column begins and ends."""

    @abstractmethod
    def some(self, index: np.ndarray) -> tuple:
        """Return columns as kernels take them, float64, and where those asked for stand in them.

        Dense ones are the rows of an array, sparse ones come as values, samples, and where each begins and ends. Where
        all columns are at hand these are returned, with ``index`` itself.
        """

    @abstractmethod
    def inner_products(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``f_a . f_b`` and ``f_a . y`` for some sparse columns, over all samples."""

    @property
    @abstractmethod
    def known(self) -> np.ndarray:
        """Return the columns whose inner products are kept: to ask for these again touches nothing."""

    @abstractmethod
    def know(self, index: np.ndarray) -> None:
        """Keep the inner products of these columns, which counts as nothing."""


@runtime_checkable
class TwoViews(Protocol):
    """The same data by rows and by columns, for models that screen samples and features at once."""

    n: int  # n, d: samples and features
    d: int
    dense: bool
    whole: bool  # whether all of it is in memory, whatever is asked for; a view is a tuple ``(data, indices, indptr)``
    row_ends: np.ndarray  # row_ends, column_ends: shape (n + 1,), (d + 1,); how many values lines have, running totals
    column_ends: np.ndarray
    row_sqnorms: np.ndarray  # row_sqnorms, column_sqnorms: shape (n,), (d,)
    column_sqnorms: np.ndarray
    meter: Counted

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the number of stored values."""

    @abstractmethod
    def columns(self, mark: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """Return the view by columns with those in which ``mark``, shape (classes * d,), is not 0; others may be empty.

        ``mark`` may be None where the data is ``whole``.
        """

    @abstractmethod
    def rows(self, mark: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """Return the view by rows; of what is said of :meth:`columns`."""

    @abstractmethod
    def blocks(self, mark: np.ndarray | None = None) -> Iterator[tuple]:
        """Yield all columns, or those of :meth:`columns`, in order: which they are (None: all), and their own view."""

    @abstractmethod
    def column(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the stored values of a column as float64, and the samples they belong to."""

    @abstractmethod
    def row(self, i: int, mark: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the stored values of a row, at least those of :meth:`columns`, and the features they belong to."""
