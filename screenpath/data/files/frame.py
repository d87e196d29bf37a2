"""Data frames whose text columns are encoded: read as a table file is, through pyarrow."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from screenpath.data.files.advice import columns_of
from screenpath.data.files.cells import Cells
from screenpath.data.files.columns import as_texts
from screenpath.data.files.dataset import Form
from screenpath.data.files.parquet_file import ParquetBatch
from screenpath.data.files.reader import read_table
from screenpath.data.files.table import MISSING, form_like, form_of
from screenpath.errors import DataError, UsageError, needed


class Frame:
    """A data frame of pandas, polars or pyarrow, see :class:`screenpath.data.files.table.TableFile`."""

    name: str = "the data frame"
    notices: tuple[str, ...] = ()

    def __init__(self, X: Any, cells: Cells):
        hint = "pip install 'screenpath[parquet]', or encode the texts"
        with needed("`one_hot` of a data frame needs pyarrow", hint, UsageError):
            import pyarrow
        try:
            pandas = hasattr(X, "set_axis")  # its index is no column
            self._table = pyarrow.Table.from_pandas(X, preserve_index=False) if pandas else pyarrow.table(X)
        except (pyarrow.ArrowException, TypeError, ValueError) as error:
            what = f"{self.name} has a column of several types: {str(error).splitlines()[0]}"
            raise DataError(what, "give it one type") from None
        self.cells, self.columns = cells, tuple(str(name).strip() for name in self._table.column_names)
        self._table = self._table.rename_columns(list(self.columns))
        for k, field in enumerate(self._table.schema):
            if "string_view" in str(field.type):  # polars' own, which pyarrow cannot take apart
                texts = pyarrow.array(self._table[k].to_pylist(), pyarrow.large_string())
                self._table = self._table.set_column(k, field.name, texts)

    def batches(self, rows: int, wanted: Sequence[str]) -> Iterator[ParquetBatch]:
        first = 0
        for batch in self._table.select(list(wanted)).combine_chunks().to_batches(max_chunksize=rows):
            yield ParquetBatch(self.name, first, batch, self.cells)
            first += batch.num_rows


def encoded(X, one_hot, columns, drop, missing: str | None) -> tuple[np.ndarray, Form]:
    """Return the features of a data frame, shape (n, d), and the form of its columns, for :func:`encoded_like`.

    Options as of the commands; a missing value is nan.
    """
    frame = Frame(X, Cells.of({"missing": missing}))
    auto = "auto" in as_texts(one_hot) and "auto" not in frame.columns
    found = [column.name for column in columns_of(frame) if column.option == "one_hot"] if auto else []
    form = form_of(frame, None, one_hot, columns or (), drop or (), auto=found, labelled=False)
    return _rows(frame, form)


def encoded_like(X, form: Form) -> np.ndarray:
    """Return the features of a further data frame, its columns found by name; a new text is none of the values."""
    frame = Frame(X, form.cells)
    own, notices = form_like(frame, form)
    for notice in notices:
        warnings.warn(notice, stacklevel=2)
    return _rows(frame, replace(own, target=None, id=None), new=True)[0]


def _rows(frame: Frame, form: Form, new: bool = False) -> tuple[np.ndarray, Form]:
    data, faults = read_table(frame, form, given=False, new=new)
    if faults:
        fill = "fill it in: `missing=median`; or leave out the row"
        hint = fill if faults[0].message == MISSING[0] else faults[0].hint
        raise DataError(f"{frame.name}, row {faults[0].line}, column '{faults[0].column}': {faults[0].message}", hint)
    if data is None or data.form is None:
        raise DataError("the data has no rows")
    if data.lacking is not None and data.lacking.any():
        where = f"{frame.name}, row {int(data.lacking.argmax()) + 1}"
        raise DataError(f"{where}: a value is missing, and the model fills in none", "leave out the row")
    for notice in data.notices:
        warnings.warn(notice, stacklevel=2)
    return data.X.toarray(), data.form
