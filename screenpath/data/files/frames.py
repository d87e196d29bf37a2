"""Tables of pandas, polars and pyarrow as rows and feature names; narwhals reads them."""

from __future__ import annotations

import warnings

import numpy as np

from screenpath.errors import DataError, UsageError

SHOWN = 5  # names in a message


def is_table(X) -> bool:
    """Tell whether data is a table: it has named columns and an exchange protocol."""
    exchanged = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__dataframe__")
    return exchanged and (hasattr(X, "columns") or hasattr(X, "column_names"))


def names_of(X) -> tuple[str, ...] | None:
    """Return the column names of a table, each of which must be unique; None for data without names."""
    if not is_table(X):
        return None
    names = tuple(str(name).strip() for name in getattr(X, "column_names", None) or X.columns)  # blanks: as in CSV
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise DataError(f"two columns of the table have the name '{twice}'", "rename one of them")
    return names


def rows_of(X, places: list[int] | None = None) -> np.ndarray:
    """Return the rows of a table as float64, or its columns at ``places`` in that order; they must hold numbers."""
    names = names_of(X)
    try:
        import narwhals
    except ImportError:
        raise UsageError(
            "tables need narwhals, which is not installed", "pip install 'screenpath[frames]', or pass an array"
        ) from None
    if hasattr(X, "set_axis"):  # pandas numbers columns where nobody names them, narwhals wants texts
        X = X.set_axis(list(names or ()), axis=1)
    try:
        table = narwhals.from_native(X, eager_only=True)
    except TypeError:
        raise DataError(
            f"a {type(X).__name__} cannot be read", "pass a DataFrame of pandas or polars, or a Table of pyarrow"
        ) from None
    columns = table.columns if places is None else [table.columns[k] for k in places]
    rows = np.empty((table.shape[0], len(columns)))
    for k, name in enumerate(columns):
        column = table[name]
        if not (column.dtype.is_numeric() or column.dtype == narwhals.Boolean):
            raise DataError(
                f"the column '{name}' holds {column.dtype}, not numbers", "encode it as numbers, or leave it out"
            )
        rows[:, k] = column.cast(narwhals.Float64).to_numpy()
        if not np.isfinite(rows[:, k]).all():
            raise DataError(f"the column '{name}' has missing, nan or infinite values", "remove or impute them first")
    return rows


def found_in(given: tuple[str, ...] | None, names: tuple[str, ...] | None) -> list[int] | None:
    """Return where new rows have the columns of the training data, by name; None if they match already or have no
    names.

    Columns unknown to the training data are ignored, with a warning; a missing one raises a :class:`DataError`.
    """
    if given is None or names is None or given == names:
        return None
    names = tuple(name.strip() for name in names)  # older runs stored blanks around names
    places = {name: k for k, name in enumerate(given)}
    missing = [name for name in names if name not in places]
    if missing:
        raise DataError(
            f"the columns are not those of the training data: {_listed(missing)} are missing",
            "columns are found by their names, in any order",
        )
    known = set(names)
    more = [name for name in given if name not in known]
    if more:
        warnings.warn(f"columns that the training data does not have are ignored: {_listed(more)}", stacklevel=2)
    return [places[name] for name in names]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
