"""Data that come as arrays, or as tables of pandas, polars and pyarrow, which narwhals reads."""

from __future__ import annotations

import os
import warnings
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from screenpath.data.files.cells import Cells
from screenpath.data.files.columns import features, listed
from screenpath.data.files.dataset import Dataset, Form
from screenpath.data.files.frame import encoded, encoded_like
from screenpath.data.words.labels import label_number
from screenpath.errors import DataError, UsageError, needed
from screenpath.numbers import sparse as sp

FARTHEST = 1e100  # largest weight, and 1 over the least: products of others leave the range of floating point
LEAVE = "leave out {}"
FILL = f"{LEAVE}, or fill in nan: of training data, `missing=median` does"


def canonical(X):
    """Return sparse rows without duplicate entries, copied if needed: row norms are computed from the stored values."""
    if getattr(X, "has_canonical_format", True):
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def texts_of(y) -> tuple[str, ...] | None:
    """Return the distinct labels, sorted, if labels are texts; None if they are numbers."""
    y = np.asarray(y)
    if y.dtype.kind not in "USOT":
        return None
    if not all(isinstance(label, str) for label in y.ravel().tolist()):
        return None
    return tuple(sorted(set(map(str, y.ravel().tolist()))))


def numbered(y, names: tuple[str, ...] | None):
    """Return text labels as their places among ``names``; numbers unchanged."""
    if names is None:
        return y
    places = {name: float(k) for k, name in enumerate(names)}
    return np.array([places[label] for label in np.asarray(y).ravel().tolist()])


def stored_type(dtype) -> np.dtype:
    """Return float64 or float32 as a dtype; integers would lose fractions: any other is a :class:`UsageError`."""
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError):
        found = None
    if found not in (np.float64, np.float32):
        raise UsageError(f"`dtype` must be float64 or float32, not {dtype!r}")
    return found


def stored_as(X, dtype: np.dtype, name: str):
    """Return values or rows in the type that is stored; a number that float32 cannot hold is an error."""
    if dtype == np.float64:
        return X
    with np.errstate(over="ignore"):
        found = X.astype(dtype)
    finite = np.isfinite(found.data if sp.issparse(found) else found)
    if not finite.all():
        value = float((X.data if sp.issparse(X) else X)[~finite][0])
        raise DataError(f"{name}: the value {value!r} is too large for {dtype.name}", "keep it as `dtype=float64`")
    return found


def filled(missing) -> bool:
    """Tell whether missing values of arrays are filled in."""
    if missing == "drop":
        raise UsageError("`missing=drop` leaves out rows of a file, these are arrays", "leave out the rows")
    return Cells.of({"missing": missing}).fills


def checked_rows(X, what: str = "the data", gaps: bool = False):
    """Return rows as an array that every model accepts: dense, CSR or CSC; tables are read column by column. With
    ``gaps``, values may be missing (nan).

    DataError: not two dimensions, values that are masked, not finite or not numbers, an invalid sparse matrix.
    """
    hint = "screenpath.read_data reads a file" if isinstance(X, (str, os.PathLike)) else None
    hint = "pass what its collect() returns" if hasattr(X, "collect") else hint  # a lazy table of polars
    if not sp.issparse(X):
        X = rows_of(X, gaps=gaps) if is_table(X) else unmasked(X, what)
    if X.ndim != 2:
        raise DataError(f"{what} must have two dimensions (samples, features), not {X.ndim}", hint)
    if sp.issparse(X):
        X = _whole(X if X.format in ("csr", "csc") else sp.csr_array(X), what)
    if X.dtype.kind not in "biufO":  # numpy would drop a part of complex numbers, and count days
        kinds = {"c": "complex numbers", "U": "texts, not numbers", "T": "texts, not numbers"}
        kind = kinds.get(X.dtype.kind, f"{X.dtype}, not numbers")
        hint = "give their real and imaginary parts as features" if X.dtype.kind == "c" else "encode them as numbers"
        raise DataError(f"{what} are {kind}", hint)
    if X.dtype not in (np.float64, np.float32):
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise DataError(f"{what} are not all numbers", "encode them as numbers") from None
    values = X.data if sp.issparse(X) else X
    if _wrong(values, gaps).any():
        coo = X.tocoo() if sp.issparse(X) else None
        places = np.argwhere(_wrong(X, gaps)) if coo is None else np.c_[coo.row, coo.col][_wrong(coo.data, gaps)]
        i, j = places[0].tolist()
        kind, hint = ("infinite", LEAVE) if gaps else ("nan or infinite", FILL)
        where = f"first X[{i}, {j}] = {X[i, j]}"
        raise DataError(f"{what} hold {kind} values, {where}", hint.format(f"X[{i}] and its like"))
    return X


def unmasked(values, what: str) -> np.ndarray:
    """Return values as an array; numpy alone would use values behind a mask like all others."""
    if np.ma.is_masked(values):
        raise DataError(f"{what} have masked values", "remove or impute them first")
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(f"the rows of {what} are not all of one length") from None


def one_each(values, what: str, count: int, unit: str) -> np.ndarray:
    """Return numbers of which there is one for each of ``count`` units, as an array."""
    hint = f"give one a {unit}, in order"
    try:
        found = np.asarray(unmasked(values, f"the {what}"), dtype=np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"the {what} are not all numbers", hint) from None
    if found.size != count:
        raise UsageError(f"{found.size} {what} for {count} {unit}s", hint)
    return found


def _whole(X, what: str):
    """Return sparse rows whose indices are in range: compiled code does not check."""
    try:
        X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)  # scipy's check would drop entries after the last row
        X.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"{what} are not a valid sparse matrix: {error}") from None
    return canonical(X)


def check_data(X, y, what: str = "labels", gaps: bool = False):
    """Return data and labels as arrays that every model accepts; ``what`` the values of ``y`` are appears in
    messages. ``gaps`` as of :func:`checked_rows`.
    """
    X = checked_rows(X, gaps=gaps)
    if y is None:
        raise DataError(f"there are no {what}: y is None", "pass one for each row")
    if sp.issparse(y):
        raise DataError(f"the {what} are a sparse matrix", "pass y.toarray().ravel()")
    y = unmasked(y, f"the {what}")
    if y.dtype.kind in "cmM":  # numpy would drop a part of complex numbers, and count days
        raise DataError(f"the {what} are {y.dtype}, neither numbers nor texts", "encode them as numbers")
    try:
        y = np.asarray(y, dtype=np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        why = f"the {what} are neither all numbers nor all texts"
        hint = "leave out rows whose label is not known"
        raise DataError(why, "bytes become texts by y.astype(str)" if y.dtype.kind == "S" else hint) from None
    if y.size != X.shape[0]:
        raise DataError(f"{X.shape[0]} rows but {y.size} {what}", "pass one for each row")
    if y.size == 0:
        raise DataError("the data has no rows")
    if not np.isfinite(y).all():
        raise DataError(f"the {what} hold nan or infinite values", "remove or impute them first")
    return X, y


@dataclass(frozen=True)
class Given:
    """Arguments of a Python function: checked arrays, and the names and texts that their numbers stand for."""

    X: Any  # ndarray or csr_array of shape (n, d)
    y: np.ndarray  # shape (n,); for text labels their places among ``texts``
    names: tuple[str, ...] | None  # of the columns
    texts: tuple[str, ...] | None  # the distinct labels, sorted, if they are texts
    written: Any  # array_like; ``y`` as a run folder stores it: texts if labels are texts
    truths: bool = False  # whether labels are True and False
    form: Form | None = None  # of a table whose columns are encoded

    @classmethod
    def of(
        cls, X, y, what: str = "labels", columns=None, drop=None, like: tuple[str, ...] | None = None,
        missing: str | None = None, one_hot=None,
    ) -> Given:  # fmt: skip
        """Check arguments; of a table those columns that ``columns`` and ``drop`` leave, or those that are ``like``.

        ``one_hot`` are columns of a table that are encoded. Values may be missing (nan) if ``missing`` fills them in,
        see :class:`screenpath.data.files.cells.Cells`.
        """
        gaps = filled(missing)
        names, texts, form = names_of(X), texts_of(y), None
        if names is None and (columns or drop or one_hot):
            option = "columns" if columns else "drop" if drop else "one_hot"
            raise UsageError(f"`{option}` names columns of a table, the data has no names", "pass a data frame")
        if one_hot:
            X, form = encoded(X, one_hot, columns, drop, missing)
            names = form.names
        elif names is not None and (columns or drop):
            like = features(names, None, columns, drop)
        places = None if one_hot else found_in(names, like, warn=not (columns or drop))
        if places is not None:
            X, names = rows_of(X, places, gaps), like
        X, numbers = check_data(X, numbered(y, texts), what, gaps)
        own = np.asarray(y).ravel()  # whether labels are True and False
        truths = own.dtype.kind == "b" or own.dtype.kind == "O" and all(isinstance(v, bool | np.bool_) for v in own)
        return cls(X, numbers, names, texts, numbers if texts is None else y, truths, form)

    def mark(self) -> int:
        """Return a checksum of all values: arrays are not copied, and their owner may change them."""
        X = self.X
        parts = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X.T if X.flags.f_contiguous else X]
        found = 1
        for part in (*parts, self.y):
            found = zlib.crc32(np.ascontiguousarray(part).data, found)
        return found

    @property
    def two_labels(self) -> tuple:
        """Return the labels of a classifier of two classes, the negative class first."""
        low, high = float(self.y.min()), float(self.y.max())
        if self.truths:
            return bool(low), bool(high)
        return (low, high) if self.texts is None else (self.texts[int(low)], self.texts[int(high)])

    def class_weight(self, weights):
        """Return class weights with text labels replaced by their numbers."""
        if self.texts is None or not isinstance(weights, dict):
            return weights
        return {label_number(label, self.texts, "class_weight"): weight for label, weight in weights.items()}


def dataset_of(data, source: str, **columns) -> Dataset:
    """Return arrays ``(X, y)`` as reading a file returns them; ``columns`` as of :meth:`Given.of`."""
    try:
        X, y = data
    except (TypeError, ValueError):
        raise DataError("data are the name of a file, or a pair of arrays: (X, y)") from None
    given = Given.of(X, y, **columns)
    if not given.X.shape[1]:
        raise DataError("the data has no columns", "give it a feature")
    X = sp.csr_array(given.X, dtype=np.float64)
    X.sum_duplicates()
    return Dataset(X, given.y, source, names=given.names, label_names=given.texts, form=given.form)


def dataset_like(data, source: str, names: tuple[str, ...] | None, form: Form | None, missing: str | None) -> Dataset:
    """Return arrays ``(X, y)`` with the features ``names`` of the training data; a table is encoded as its ``form``."""
    if form is not None and not form.plain and is_table(data[0]):
        data = encoded_like(data[0], form), data[1]
    return dataset_of(data, source, like=names, missing=missing)


def new_rows(X, preparation, names: tuple[str, ...] | None, form: Form | None):
    """Return new rows that a user gives, as wide as the training data, with the columns of the model.

    Where only some features have a column (``preparation`` knows), the others are ignored. Of a table, columns are
    found by ``names``.
    """
    given = set(names_of(X) or ())
    encoded = form is not None and (form.plain or given >= set(names or ()))  # it may be so already
    if form is not None and given and (given >= set(form.columns) or not encoded):
        X = encoded_like(X, form)
    places = found_in(names_of(X), names)
    gaps = preparation.fill is not None
    X = X if places is None else rows_of(X, places, gaps)
    X = checked_rows(X, "the new rows", gaps).astype(np.float64, copy=False)
    preparation.check_width(X.shape, "the new rows")
    return preparation.narrowed(X)


def _wrong(values: np.ndarray, gaps: bool) -> np.ndarray:
    """Tell which values cannot be used: with ``gaps``, nan can."""
    return np.isinf(values) if gaps else ~np.isfinite(values)


def is_table(X) -> bool:
    """Tell whether data is a table: it has named columns and an exchange protocol."""
    exchanged = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__dataframe__")
    return exchanged and (hasattr(X, "columns") or hasattr(X, "column_names"))


def names_of(X) -> tuple[str, ...] | None:
    """Return the column names of a table, each of which must be unique; None for data without names."""
    if not is_table(X):
        return None
    names = tuple(str(name).strip() for name in getattr(X, "column_names", None) or X.columns)  # blanks: as in CSV
    if len({*names}) < len(names):
        twice = max(names, key=names.count)
        places = " and ".join(str(k) for k, name in enumerate(names, 1) if name == twice)
        raise DataError(f"columns {places} of the table have the name '{twice}'", "rename one of them")
    return names


def rows_of(X, places: list[int] | None = None, gaps: bool = False) -> np.ndarray:
    """Return the rows of a table, or its columns at ``places``, as float64; with ``gaps``, a missing value is nan."""
    names = names_of(X)
    hint = "pip install 'screenpath[frames]', or pass an array"
    with needed("tables need narwhals, which is not installed", hint, UsageError):
        import narwhals
    if hasattr(X, "set_axis"):  # pandas numbers columns where nobody names them, narwhals wants texts
        X = X.set_axis(list(names or ()), axis=1)
    try:
        table = narwhals.from_native(X, eager_only=True)
    except TypeError:
        what = f"a {type(X).__name__} cannot be read"
        raise DataError(what, "pass a DataFrame of pandas or polars, or a Table of pyarrow") from None
    columns = table.columns  # made anew whenever asked for
    columns = columns if places is None else [columns[k] for k in places]
    rows = np.empty((table.shape[0], len(columns)))
    for k, name in enumerate(columns):
        column = table[name]
        if hasattr(column.to_native(), "sparse"):  # a sparse column of pandas
            column = narwhals.from_native(column.to_native().sparse.to_dense(), series_only=True)
        if not (column.dtype.is_numeric() or column.dtype == narwhals.Boolean):
            what = f"the column '{name}' holds {column.dtype}, not numbers"
            texts = column.dtype in (narwhals.String, narwhals.Categorical, narwhals.Enum)
            more = f"; of training data, `one_hot={name}` encodes its texts" * texts
            raise DataError(what, f"encode it as numbers, or leave it out{more}")
        rows[:, k] = column.cast(narwhals.Float64).to_numpy()
        if _wrong(rows[:, k], gaps).any():
            kind, hint = ("infinite", LEAVE) if gaps else ("missing, nan or infinite", FILL)
            raise DataError(f"the column '{name}' has {kind} values", hint.format("their rows"))
    return rows


def found_in(given: tuple[str, ...] | None, names: tuple[str, ...] | None, warn: bool = True) -> list[int] | None:
    """Return where new rows have the training data's columns, by name; None if they match or have no names.

    Columns that the model does not use are ignored, with a warning if ``warn``; a missing one raises a
    :class:`DataError`.
    """
    if given is None or names is None or given == names:
        return None
    names = tuple(name.strip() for name in names)  # older runs stored blanks around names
    places = {name: k for k, name in enumerate(given)}
    missing = [name for name in names if name not in places]
    if missing:
        what = f"columns of the training data are missing: {listed(missing)}"
        raise DataError(what, "columns are found by their names, in any order")
    known = set(names)
    more = [name for name in given if name not in known]
    if more and warn:
        warnings.warn(f"columns that the model does not use are ignored: {listed(more)}", stacklevel=2)
    return [places[name] for name in names]


def check_size(what: str, size: float, which: str) -> None:
    """Refuse weights by which products leave the range of floating point."""
    if not 1.0 / FARTHEST <= size <= FARTHEST:
        hint = f"{'divide' if size > 1.0 else 'multiply'} {which} by a power of ten"
        raise UsageError(f"{what} is {size:g}, and must lie between {1.0 / FARTHEST:g} and {FARTHEST:g}", hint)
