"""Read any data file into memory; its content tells whether it is LIBSVM text, CSV with a header, or Parquet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import replace
from shlex import quote
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from screenpath.data.files.advice import columns_of
from screenpath.data.files.arrays import stored_type
from screenpath.data.files.cells import USUAL, Cells
from screenpath.data.files.columns import as_texts
from screenpath.data.files.csv_file import CsvFile, first_line, header_of
from screenpath.data.files.dataset import Dataset, FileLike, Form
from screenpath.data.files.libsvm import BLOCK, GIVEN, read_stream
from screenpath.data.files.parquet_file import ParquetFile
from screenpath.data.files.reader import read_table
from screenpath.data.files.source import NUMPY, PARQUET, begins_with, is_stream, open_source, recoded
from screenpath.data.files.table import FILL_IN, MISSING, TableFile, check_columns, form_by_place, form_like, form_of
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.words.faults import Fault
from screenpath.data.words.numerals import is_number
from screenpath.errors import OPTION, DataError, UsageError

ROWS = 1 << 13  # of a table that are repeated at a time


@contextmanager
def opened(source, cells: Cells = USUAL):
    """Open a data file; yield a TableFile or None, a stream of LIBSVM text or None, and a name for messages."""
    if begins_with(source, PARQUET):
        yield ParquetFile(source, cells), None, str(source)
        return
    with open_source(source, cells.encoding != "utf-8") as (raw, name):
        if cells.encoding != "utf-8":
            raw = recoded(raw, cells.encoding)
        try:
            line, stream = first_line(raw)
            found = header_of(line, cells.delimiter)
            yield (None, stream, name) if found is None else (CsvFile(stream, name, found[0], cells), None, name)
        except UnicodeError:  # of encodings in which a wrong byte cannot stay as it is, such as UTF-16
            hint = "leave out `encoding`, or name that of the file, such as `encoding=latin-1`"
            raise DataError(f"{name} is not {cells.encoding.upper()} text", hint) from None


def is_table_file(source, cells: Cells = USUAL) -> bool:
    """Tell whether a file is a table; sources that can be read only once (pipes, streams) are not examined."""
    if is_stream(source):
        return False
    with opened(source, cells) as (table, _, _):
        return table is not None


def read_data(
    source: FileLike | BinaryIO, *, target: str | None = None, one_hot: str | Sequence[str] = (),
    columns: str | Sequence[str] = (), drop: str | Sequence[str] = (), id: str | None = None, zero_based: bool = False,
    n_features: int | None = None, dtype: DTypeLike = np.float64, block: int = BLOCK, limit: MemoryLimit | None = None,
    **cells: Any,
) -> Dataset:  # fmt: skip
    """Read a data file for training: LIBSVM text or CSV (plain, gzip, bzip2, xz), or Parquet.

    Parameters
    ----------
    source : str, Path or binary file object
        ``-`` is standard input. The content decides the format.
    target : str, optional
        Column of labels or targets in a table; by default the one named target, label, class or y.
    one_hot : str or sequence of str
        Columns of a table that become one 0/1 feature per value.
    columns, drop : str or sequence of str
        Columns of a table that are features (by default all), and those that are not: names, ``a,b``, ranges ``a:c``
        by position, ``/regex/``; ``!`` takes out again.
    id : str, optional
        Column of a table that names the rows and is not a feature.
    zero_based, n_features : bool, int
        For LIBSVM text, see :func:`screenpath.read_libsvm`.
    dtype : float64 or float32
    block : int
        Bytes of LIBSVM text parsed at once.
    limit : MemoryLimit, optional
        Of the private memory of this process.
    **cells
        How the cells of a table are read, as of the commands: ``missing`` (what fills in a value leaves nan in ``X``,
        for :func:`screenpath.data.files.prepare.prepare`), ``missing_indicator``, ``na``, ``decimal``, ``thousands``,
        ``delimiter``, ``encoding``, ``weight_column``, ``group_column``.

    Returns
    -------
    Dataset
        ``names`` has the feature names of a table; ``label_names`` has text labels, sorted, which ``y`` numbers from 0.

    Raises
    ------
    DataError, UsageError
        With file, line (or row), column, token and remedy.

    Examples
    --------
    >>> import io
    >>> from screenpath import read_data
    >>> data = read_data(io.BytesIO(b"age,colour,class\\n3,red,yes\\n0,blue,no\\n"), one_hot=["colour"])
    >>> data.names, data.X.toarray().tolist(), data.label_names, data.y.tolist()
    (('age', 'colour=blue', 'colour=red'), [[3.0, 0.0, 1.0], [0.0, 1.0, 0.0]], ('no', 'yes'), [1.0, 0.0])
    """
    how = Cells.of(cells)
    with opened(source, how) as (table, stream, name):
        if table is None:
            refuse_columns(name, target, one_hot, stream, columns, drop, id, how)
            return read_stream(
                stream, name, zero_based=zero_based, n_features=n_features, dtype=dtype, block=block, limit=limit
            )
        refuse_indices(name, zero_based, n_features)
        form = form_of(table, target, one_hot, columns, drop, id, auto_columns(source, table, one_hot))
        return _whole(table, form, limit=limit, dtype=stored_type(dtype), apart=True)


def auto_columns(source, table: TableFile, one_hot) -> list[str]:
    """Return the columns that ``one_hot=auto`` encodes; it reads the file once more."""
    if "auto" not in as_texts(one_hot) or "auto" in table.columns:
        return []
    if is_stream(source):
        hint = "name the columns: `one_hot=a,b`, or a file"
        raise UsageError("`one_hot=auto` reads the data twice, and this is a stream", hint)
    with opened(source, table.cells) as (again, _, _):
        assert again is not None
        return [column.name for column in columns_of(again) if column.option == "one_hot"]


def columns_written(source, cells: Cells) -> dict[str, list[str]]:
    """Return the cells of each column of a table as the file has them."""
    if str(source) == "-":
        raise UsageError("`append` reads the data twice, and this is a stream", "name a file")
    none = UsageError(f"`append` repeats the columns of a table, {source} is none", "leave it out")
    if begins_with(source, NUMPY):
        raise none
    with opened(source, cells) as (table, _, _):
        if table is None:
            raise none
        check_columns(table, {""} if table.columns.count("") == 1 else ())
        found: dict[str, list[str]] = {name: [] for name in table.columns}
        for batch in table.batches(ROWS, table.columns):
            for column, texts in found.items():
                texts += batch.written(column)
    return found


def read_like(
    source, *, form: Form | None = None, width: int | None = None, target: str | None = None, zero_based: bool = False,
    n_features: int | None = None, labels: str = GIVEN, limit: MemoryLimit | None = None, new: bool = False,
) -> Dataset:  # fmt: skip
    """Read data like data read before, whose table had the ``form``: its columns are found by name.

    Without one, ``width`` features are taken in order. ``target`` is the column of labels if its name differs here.
    ``zero_based``, ``n_features`` and ``labels`` are as in :func:`screenpath.read_libsvm`; unless ``labels`` are
    ``given``, a label of a table may be unknown. ``new``: as of :func:`screenpath.data.files.table.read_table`.
    """
    with opened(source, USUAL if form is None else form.cells) as (table, stream, name):
        if table is None:
            refuse_columns(name, target, stream=stream)
            return read_stream(stream, name, zero_based=zero_based, n_features=n_features, labels=labels, limit=limit)
        notices: tuple[str, ...] = ()
        if form is not None:
            found, notices = form_like(table, form, target)
        else:
            found = form_of(table, target) if width is None else form_by_place(table, width, target)
        if labels == GIVEN and found.target is None:
            known = None if form is None else form.target
            what = "no column of labels" if known is None else f"no column '{known}' of labels"
            why = f"{name} has {what}"
            raise DataError(why, "test data have labels; to predict rows that have none, use screenpath predict")
        return _whole(table, found, True, given=labels == GIVEN, notices=notices, limit=limit, new=new)


def _whole(table: TableFile, form: Form, settled: bool = False, **how) -> Dataset:
    """Read a whole table; ``settled``: the training data has fixed which columns are encoded."""
    data, faults = read_table(table, form, **how)
    if settled:
        faults = [replace(fault, hint=_like_training(fault, form)) for fault in faults]
    several = {fault.column: str(replace(fault, source="")).removeprefix(", ") for fault in reversed(faults)}
    if len(several) > 1:
        named = "" if form.target is None else f" --target {quote(form.target)}"
        marks = "".join(f" {quote(word)}" for word in form.cells.flags())
        reads = f"screenpath inspect {quote(table.name)}{named}{marks} ends with a command line that reads the table"
        hint = faults[0].hint if settled else reads
        lines = tuple(several[name] for name in table.columns if name in several)
        raise DataError(f"{table.name}: {len(several)} columns cannot be read as they are", hint, lines)
    if faults:
        raise faults[0].error()
    if data is None:
        hint = f"leave out columns with gaps: screenpath inspect {quote(table.name)} counts them"
        raise DataError(f"{table.name}: every row lacks a value, or its label", hint)
    return data


def _like_training(fault: Fault, form: Form) -> str:
    """Return the hint of a fault where the training data has settled how cells are read."""
    if fault.message == MISSING[0]:
        return FILL_IN
    if fault.column not in form.columns or not OPTION.search(fault.hint):
        return fault.hint
    cells = form.cells
    if not cells.usual and is_number(fault.token):
        return (
            f"the run reads numbers with a decimal '{cells.decimal}': write {fault.token.replace('.', cells.decimal)}"
        )
    return "write a number, as in the training data, or leave the row out"


def refuse_columns(
    name: str, target: str | None, one_hot=(), stream=None, columns=(), drop=(), id=None, cells: Cells = USUAL
) -> None:
    """Refuse column options for LIBSVM text; ``stream`` lets the message recognise a table with another delimiter."""
    first = "" if stream is None else stream.peek(1).lstrip().split(b"\n", 1)[0].decode("utf-8", "replace")
    asked = {name for name in (target, id, *as_texts(one_hot), *as_texts(columns), *as_texts(drop)) if name}
    cells_there = {cell.strip(" '\"\ufeff\r") for cell in re.split(r"[,;|:^~\s]", first)}
    if asked & cells_there and not re.match(r"\S+\s+[0-9]+:", first):  # no line of LIBSVM text
        if cells.delimiter:
            what = f"{name}: the first line has column names, but no '{cells.delimiter}' between them"
            raise DataError(what, "leave out `delimiter`, or name the character between them")
        what = f"{name}: the first line has column names, but no known delimiter between them"
        raise DataError(what, "write it with a comma, a semicolon or a tab between cells, or name it: `delimiter=|`")
    named = {"target": target, "one_hot": one_hot, "columns": columns, "drop": drop, "id": id}
    for option, given in named.items():
        if given:
            what = f"`{option}` names a column of CSV or Parquet, {name} is neither"
            raise UsageError(what, "leave it out; CSV needs a first line with the names of its columns")
    for option in cells.record():
        what = "`group_column` or `fold_column`" if option == "group_column" else f"`{option}`"
        raise UsageError(f"{what} is about cells of CSV or Parquet, {name} is neither", "leave it out")


def refuse_indices(name: str, zero_based: bool, n_features: int | None) -> None:
    for option, given in (("zero_based", zero_based), ("n_features", n_features is not None)):
        if given:
            raise UsageError(f"`{option}` is about LIBSVM text, {name} is a table", "leave it out")
