"""From read data to model rows: storage, scaling and bias, and back to coefficients in the file's units."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from screenpath.data.files.arrays import check_size, one_each, stored_type
from screenpath.data.files.cells import completed, fill_of
from screenpath.data.files.centring import FAR, SINGLE, far_centres, far_ranges
from screenpath.errors import DataError, UsageError
from screenpath.kernels.rows.rows import dense_sum
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import Csr, is_sparse, on_columns, spread, with_constant
from screenpath.numbers.rounding import UNIT, gamma

SCALES = ("none", "maxabs", "standard", "l2")
BESIDE = 16  # rows that are compared at a time
CHUNK_CELLS = 1 << 17  # cells of dense rows processed at a time: they fit in the processor's cache
DENSE_FROM = 0.3  # density from which dense rows are smaller or clearly faster than CSR (12 bytes a stored value)
VALUES = 1 << 18  # sparse values processed at a time
CLOSE = 1e-6  # range of a column over its largest value, up to which its mean is computed from differences
ROUNDED = 1e-12  # ... up to which it may be rounding: some thousand units in the last place
ROUNDED_AWAY = "far from 0, so float32 rounds differences between rows"
SHOWN = 10  # columns that a message lists
LEAST = 2.0**-960  # squared norm of a row, at least: smaller squares are rounded to few digits, or to 0


@dataclass(frozen=True, slots=True)
class Preparation:
    """The affine map between the data file and the rows of a model.

    Row ``i`` of the model is ``[(x_i - shift) / scale, bias]`` (for ``l2``: ``[x_i / ||x_i||, bias]``). ``standard``
    has a shift; with a free intercept, columns far from 0 do too (:mod:`screenpath.data.files.centring`).
    """

    kind: str  # none, maxabs, standard or l2
    scale: np.ndarray | None  # scale, shift: shape (d,): divisor and offset of each feature
    shift: np.ndarray | None
    bias: float  # value of the constant last feature; 0 for no bias
    n_features: int  # d, features of the data file that have a column
    columns: np.ndarray | None = None  # int64 of shape (d,): these features, from 0; None if they are all of them
    width: int | None = None  # features of the data file; d if all have a column
    # int64: columns, from 0, that ``standard`` divides by a spread at the rounding level of their values; with any
    # other scaling, those whose variation float32 rounds
    nearly: np.ndarray | None = None
    # shape (d,): what takes the place of a missing value (nan), before all else; None if none may be missing
    fill: np.ndarray | None = None

    @property
    def numbers(self) -> np.ndarray | None:
        """Return the numbers, from 1, of the features that have a column; None if all have one."""
        return None if self.columns is None else self.columns + 1

    def check_width(self, shape: tuple[int, ...], what: str) -> None:
        """Refuse rows of another width than the training data; where only some features have a column, none are."""
        width = self.width or self.n_features
        if shape[1] != width and self.columns is None:
            said = f"{what} are {' x '.join(map(str, shape))}; the path was computed with {width} features"
            raise DataError(said, "pass the same features in the same order")

    def narrowed(self, X):
        """Return new rows of all features with the columns of the model; other features are ignored."""
        return X if self.columns is None else on_columns(sp.csr_array(X), self.columns)

    def widened(self, coefficients: np.ndarray):
        """Return coefficients for all features of the data: unchanged, or as sparse arrays if few have a column.

        Coefficients of shape (m, d) become a csr_array of shape (m, width); of shape (m, classes, d), a list of m.
        """
        if self.columns is None:
            return coefficients
        if coefficients.ndim == 3:
            return [self.widened(some) for some in coefficients]
        return spread(coefficients, self.columns, self.width or self.n_features)

    @property
    def plain(self) -> bool:
        """Tell whether the rows of the model are those of the data."""
        moved = (self.scale, self.shift, self.fill)
        return self.kind == "none" and all(one is None for one in moved) and not self.bias

    @property
    def has_intercept(self) -> bool:
        """Tell whether the model has an intercept in the units of the data file."""
        return bool(self.bias) or self.shift is not None

    @property
    def inexact(self) -> float:
        """Return the largest relative rounding error of a row's values under this map."""
        if self.kind == "l2":
            return gamma(self.n_features + 8)
        return 0.0 if self.scale is None else 4.0 * UNIT

    def original(self, w: np.ndarray) -> tuple:
        """Return coefficients (of the features that have a column) and intercept in the units of the data file.

        ``w`` has shape (..., d) or (..., d + 1). For ``l2`` the coefficients apply to rows divided by their own norm.
        """
        coefficients = w[..., : self.n_features]
        intercept = w[..., self.n_features] * self.bias if self.bias else np.zeros(w.shape[:-1])
        if self.scale is not None:
            coefficients = coefficients / self.scale
        if self.shift is not None:
            intercept = intercept - np.sum(coefficients * self.shift, axis=-1)  # the same bits for one and for several
        return coefficients, float(intercept) if w.ndim == 1 else intercept

    def modelled(self, coefficients: np.ndarray, intercept: float) -> np.ndarray:
        """Undo :meth:`original`, of one vector, but for a free intercept."""
        constant = intercept if self.shift is None else intercept + coefficients @ self.shift
        w = coefficients if self.scale is None else coefficients * self.scale
        return np.append(w, constant / self.bias) if self.bias else w

    def apply(self, X, out=None):
        """Return model rows for data in the file's units; ``X`` is not changed.

        Sparse rows share arrays with ``X`` if these are equal. ``out`` may have room for dense ones without a bias.
        """
        X = completed(X, self.fill)
        if sp.issparse(X):
            if self.kind != "standard":
                return self._sparse(sp.csr_array(X))
            X = X.toarray()  # centred, it is full
        if self.kind == "l2":
            X = X / _norms(X)[:, None]
        if self.shift is not None:
            X = out = np.subtract(X, self.shift, out=out)
        if self.scale is not None:
            X = np.divide(X, self.scale, out=out)
        return np.hstack([X, np.full((X.shape[0], 1), self.bias)]) if self.bias else X

    def _sparse(self, X):
        if self.shift is not None:  # only of columns that are full, or nearly so in new data
            X = _stored_throughout(X, np.flatnonzero(self.shift))
        values = centred = X.data
        if self.shift is not None:  # in place: a second array of this size takes longer to get than to fill
            values = centred = self.shift[X.indices].astype(np.result_type(X.data, self.shift), copy=False)
            np.subtract(X.data, centred, out=centred)
        if self.kind == "l2":
            values = np.repeat(1.0 / _norms(X), np.diff(X.indptr))
        elif self.scale is not None:
            values = (1.0 / self.scale)[X.indices]
        if values is not centred:
            values *= centred
        if self.bias:
            n, width = X.shape
            kind = sp.index_type(max(values.size + n, width + 1))
            indices, indptr = (places.astype(kind, copy=False) for places in (X.indices, X.indptr))
            arrays = with_constant(values.astype(np.float64, copy=False), indices, indptr, width, self.bias)
            return sp.csr_array(arrays, shape=(n, width + 1))
        if values is X.data:
            return X
        # Users of the rows may sort indices in place, which must not change X.
        indices = X.indices if X.has_sorted_indices else X.indices.copy()
        return sp.csr_array((values, indices, X.indptr), shape=X.shape)


def _stored_throughout(X, columns: np.ndarray):
    """Return sparse rows that store the zeros of some columns; ``X`` itself if there are none."""
    if np.all(np.bincount(X.indices, minlength=X.shape[1])[columns] == X.shape[0]):
        return X
    place = np.full(X.shape[1], -1)
    place[columns] = np.arange(columns.size)
    places, rows = place[X.indices], np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    lacking = np.ones((X.shape[0], columns.size), dtype=bool)
    lacking[rows[places >= 0], places[places >= 0]] = False
    more, which = np.nonzero(lacking)
    values = np.append(X.data, np.zeros(more.size, dtype=X.dtype))
    where = np.append(rows, more), np.append(X.indices, columns[which])
    return sp.csr_array(sp.coo_array((values, where), shape=X.shape))


def fit_preparation(
    X, scale: str = "none", bias: float = 0.0, weights=None, dense: bool | None = None, peaks_of=None, blocks=None
) -> Preparation:
    """Measure what a scaling of ``X``, shape (n, d), needs.

    ``weights``, shape (n,), say how often each row counts in means and spreads. ``standard`` subtracts the mean, which
    would fill sparse rows: unless they will be stored ``dense``, by default as they are, it is a :class:`UsageError`.
    ``peaks_of`` stands for :func:`peaks`, and ``blocks`` yields blocks as of :func:`centring`, where the rows are not
    in memory.
    """
    if scale not in SCALES:
        raise UsageError(f"unknown scaling '{scale}'", f"use one of {', '.join(SCALES)}")
    if not np.isfinite(bias):
        raise UsageError(f"the bias must be a finite number, not {bias}")
    d = X.shape[1]
    if scale == "standard":
        if is_sparse(X) if dense is None else not dense:
            what = "`scale=standard` subtracts the mean, which would fill these sparse rows"
            raise UsageError(what, "use `scale=maxabs`, or `storage=dense` if the dense array fits in memory")
        shift, spread, nearly = centring(blocks or (lambda: _float_blocks(X)), X.shape, weights)
        return Preparation(scale, spread, shift, bias, d, nearly=nearly)
    if scale == "maxabs":
        peak = (peaks if peaks_of is None else peaks_of)(X, weights)
        return Preparation(scale, np.where(peak > 0.0, peak, 1.0), None, bias, d)
    return Preparation(scale, None, None, bias, d)


def centring(blocks, shape, weights) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the mean and the spread of every column, and which columns are nearly constant (or None), in two passes.

    A constant column has exactly its value as mean, and spread 1, so that centred it is 0. The mean of a column that
    varies little relative to its size is computed from differences to its smallest value, which hardly round.
    ``blocks()`` yields pairs of first row and C-contiguous float64 rows. A :class:`DataError` is raised if the squares
    of a column overflow, or underflow.
    """
    n, d = shape
    given = np.ones(n) if weights is None else weights
    low, high, total, squares, first = (np.full(d, start) for start in (np.inf, -np.inf, 0.0, 0.0, 0.0))
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is named below
        for start, rows in blocks():
            here = given[start : start + len(rows)]
            dense_sum(rows, here, total, 0, len(rows))
            counted = rows if here.all() else rows[here > 0.0]
            np.minimum(low, _by_column(np.min, counted, np.inf), out=low)
            np.maximum(high, _by_column(np.max, counted, -np.inf), out=high)
        count = given.sum()
        mean, constant = total / count, low == high
        close = ~constant & (high - low <= CLOSE * np.maximum(np.abs(low), np.abs(high)))
        centre = np.where(constant | close, low, mean)
        room = np.empty((0, d))  # for a block: to get it anew takes longer than to fill it
        for start, rows in blocks():
            room = room if len(rows) <= len(room) else np.empty(rows.shape)
            here, apart = given[start : start + len(rows)], np.subtract(rows, centre, out=room[: len(rows)])
            if close.any():
                dense_sum(apart, here, first, 0, len(rows))
            dense_sum(np.square(apart, out=apart), here, squares, 0, len(rows))
        first, squares = np.where(close, first / count, 0.0), squares / count
        spread = np.sqrt(np.maximum(squares - np.square(first), 0.0))
    bad = np.flatnonzero(~(np.isfinite(spread) & (spread > 0.0)) & ~constant)
    if bad.size:
        raise _out_of_range(f"the variance of feature {bad[0] + 1}", spread[bad[0]] == 0.0, "standard")
    nearly = np.flatnonzero(nearly_constant(low, high))
    return centre + first, np.where(constant, 1.0, spread), nearly if nearly.size else None


def _by_column(extreme, rows, start: float) -> np.ndarray:
    """Return the extreme value of each column: of many rows side by side, which takes a third of the time."""
    d, whole = rows.shape[1], len(rows) // BESIDE * BESIDE
    most = extreme(rows[:whole].reshape(whole // BESIDE, BESIDE * d), axis=0, initial=start).reshape(BESIDE, d)
    return extreme(np.vstack([most, rows[whole:]]), axis=0, initial=start)


def nearly_constant(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Tell which columns, given smallest and largest values, vary only at the rounding level of their values."""
    with np.errstate(over="ignore"):
        return (low != high) & (high - low <= ROUNDED * np.maximum(np.abs(low), np.abs(high)))


def say_nearly_constant(preparation: Preparation, names, source: str, tell) -> None:
    """Warn about columns whose scaling enlarges what may be rounding, and about those whose variation is rounded."""
    if preparation.nearly is None or tell is None:
        return
    found = preparation.nearly if preparation.columns is None else preparation.columns[preparation.nearly]
    what = f"{ROUNDED_AWAY}: use `dtype=float64`"
    if preparation.kind == "standard":
        what = "nearly constant: `scale=standard` enlarges what may be rounding"
    tell(f"{source}: warning: {column_names(found, names)} {what}")


def column_names(columns: np.ndarray, names) -> str:
    """Return columns, numbered from 0, as the subject of a sentence with its verb."""
    shown = ", ".join(str(j + 1) if names is None else f"'{names[j]}'" for j in columns[:SHOWN].tolist())
    more = f" and {columns.size - SHOWN:,} more" if columns.size > SHOWN else ""
    return f"feature {shown} is" if columns.size == 1 else f"features {shown}{more} are"


def checked_penalties(penalties, width: int, columns=None) -> np.ndarray | None:
    """Return the checked penalty weights of the features that have a column; None if there are none."""
    if penalties is None:
        return None
    found = one_each(penalties, "penalty weights", width, "feature")
    bad = np.flatnonzero(~(np.isfinite(found) & (found > 0.0)))
    if bad.size:
        what = f"penalty weight {bad[0] + 1} is {found[bad[0]]}"
        raise UsageError(what, "penalty weights must be above 0 and finite")
    check_size("the least penalty weight", found.min(), "all penalty weights")
    return found if columns is None else found[columns]


def checked_signs(signs, width: int, columns=None) -> np.ndarray | None:
    """Return the checked signs of the weights of the features that have a column, int8; None if there are none."""
    if signs is None:
        return None
    found = one_each(signs, "signs", width, "feature")
    bad = np.flatnonzero(~np.isin(found, (-1.0, 0.0, 1.0)))
    if bad.size:
        raise UsageError(f"sign {bad[0] + 1} is {found[bad[0]]:g}", "signs are 1, -1 or 0")
    return (found if columns is None else found[columns]).astype(np.int8)


def prepare(
    X, scale: str = "none", bias: float = 0.0, storage: str = "auto", dtype=np.float64, weights=None, penalties=None,
    free=False, missing: str | None = None, spent: bool = False,
):  # fmt: skip
    """Choose the storage, measure the scaling (see :func:`fit_preparation`) and apply both.

    What takes the place of missing values (nan) is measured before, as ``missing`` has it
    (:func:`screenpath.data.files.cells.fill_of`).

    With a ``free`` intercept, columns far from 0 are centred, which does not change the model; if float64 values are to
    be stored as float32, all columns that can be, so that only their variation is rounded. A penalty weight of a
    feature divides its column: its coefficient is that many times as large. Dense rows are made a few at a time, so
    that memory holds only ``X`` and the result, of shape (n, d) or (n, d + 1); dense values that are ``spent`` may be
    overwritten with it: getting memory takes longer than filling it.
    """
    dtype, dense = stored_type(dtype), stored_dense(X, storage, scale)
    if isinstance(X, Csr):
        X = X if dense else X.array()
    elif sp.issparse(X) or not dense:
        X = X if isinstance(X, sp.csr_array) else sp.csr_array(X)
    fill = fill_of(X, missing, weights)
    X = completed(X, fill)
    preparation = replace(fit_preparation(X, scale, bias, weights, dense), width=X.shape[1])
    rounded = X.dtype == np.float64 != dtype
    if free and preparation.kind in ("none", "maxabs"):
        preparation = replace(preparation, shift=far_centres(X, weights, 1.0 if rounded else FAR))
    elif rounded and preparation.kind != "standard":
        index, low, high = far_ranges(X, weights, SINGLE)
        index = index[low != high]
        preparation = replace(preparation, nearly=index if index.size else None)
    if penalties is not None:
        scaled = penalties if preparation.scale is None else preparation.scale * penalties
        preparation = replace(preparation, scale=scaled)
    preparation = replace(preparation, fill=fill)
    if not dense:
        prepared = preparation.apply(X)
        with np.errstate(over="ignore"):  # row norms report what float32 cannot hold
            prepared.data = prepared.data.astype(dtype, copy=False)
        return prepared, preparation
    if preparation.plain:
        if not is_sparse(X):
            with np.errstate(over="ignore"):  # as above
                return np.ascontiguousarray(X, dtype=dtype), preparation
        if X.dtype == dtype and not isinstance(X, Csr):
            return X.toarray(order="C"), preparation
    spent = spent and isinstance(X, np.ndarray) and X.dtype == dtype and X.flags.c_contiguous and not bias
    prepared = X if spent else np.empty((X.shape[0], X.shape[1] + bool(bias)), dtype=dtype)
    with np.errstate(over="ignore"):  # as above
        prepared[:, X.shape[1] :] = bias
        for start, block in _dense_blocks(X):
            place = prepared[start : start + len(block), : X.shape[1]]
            made = replace(preparation, bias=0.0).apply(block, place if dtype == np.float64 else None)
            if made is not place:
                place[:] = made
    return prepared, preparation


def _dense_blocks(X):
    """Yield (first row, rows as a dense array), a few rows at a time."""
    step = max(1, CHUNK_CELLS // max(X.shape[1], 1))
    for start in range(0, X.shape[0], step):
        block = X if step >= X.shape[0] else X[start : start + step]
        yield start, block if isinstance(block, np.ndarray) else block.toarray()


def _float_blocks(X):
    for start, block in _dense_blocks(X):
        yield start, np.ascontiguousarray(block, dtype=np.float64)


def peaks(X, weights) -> np.ndarray:
    """Return the largest magnitude of every column, over rows whose weight is not 0."""
    peaks = np.zeros(X.shape[1])
    some = weights is not None and not weights.all()
    if not is_sparse(X):
        for start, block in _dense_blocks(X):
            counted = block[weights[start : start + len(block)] > 0.0] if some else block
            np.maximum(peaks, np.abs(counted).max(axis=0, initial=0.0), out=peaks)
        return peaks
    for start in range(0, X.data.size, VALUES):
        part = slice(start, start + VALUES)
        columns, values = X.indices[part], np.abs(X.data[part])
        if some:
            rows = np.searchsorted(X.indptr, np.arange(start, start + values.size), side="right") - 1
            values[weights[rows] == 0.0] = 0.0
        np.maximum.at(peaks, columns, values)
    return peaks


def _norms(X) -> np.ndarray:
    """Return row norms, 1 for rows of zeros.

    A :class:`DataError` if a square overflows, whose scaled row would be 0, or is so small that the norm is off by more
    than :attr:`Preparation.inexact`.
    """
    squares = np.empty(X.shape[0])
    if sp.issparse(X):
        step = max(1, VALUES * X.shape[0] // max(X.nnz, 1))
        for start in range(0, X.shape[0], step):
            squares[start : start + step] = sp.row_squares(X[start : start + step])
    else:
        for start, block in _dense_blocks(X):  # in one order, whatever that of X
            squares[start : start + len(block)] = sp.row_squares(np.ascontiguousarray(block))
    small = np.flatnonzero(squares < LEAST)
    underflows = small.size > 0 and bool(np.any((X[small] != 0.0).sum(axis=1)))
    if underflows or not np.isfinite(squares).all():
        raise _out_of_range("the squared norm of a row", underflows, "l2")
    return np.where(squares > 0.0, np.sqrt(squares), 1.0)


def _out_of_range(what: str, small: bool, scale: str) -> DataError:
    """Return the error of squares that under- or overflow."""
    end, leaves, how = ("underflow", "falls below", "multiply") if small else ("overflow", "exceeds", "divide")
    hint = f"use `scale=maxabs`, or {how} the values by a power of ten"
    return DataError(f"{end}: {what} {leaves} the range of floating point, which `scale={scale}` needs", hint)


def stored_dense(X, storage: str, scale: str = "none") -> bool:
    """Tell whether rows are stored dense, by ``storage`` (``auto``, ``dense``, ``sparse``).

    ``auto`` stores densely from density 0.3, where memory is similar and passes are faster. A dense array whose mean is
    subtracted stays dense; a sparse one is never filled.
    """
    sparse = is_sparse(X)
    if storage == "auto" and scale == "standard" and not sparse:
        return True
    return dense_form(storage, X.shape, lambda: X.nnz if sparse else np.count_nonzero(X))


def dense_form(storage: str, shape: tuple, stored) -> bool:
    """Tell whether lines of that shape are stored dense, as :func:`stored_dense`; ``stored()`` counts their values."""
    if storage not in ("auto", "dense", "sparse"):
        raise UsageError(f"unknown storage '{storage}'", "use auto, dense or sparse")
    return storage == "dense" or (storage == "auto" and bool(stored() >= DENSE_FROM * shape[0] * shape[1]))
