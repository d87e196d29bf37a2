"""Write LIBSVM text."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from screenpath.data.files.arrays import is_table, rows_of
from screenpath.data.files.dataset import FileLike, RowsLike
from screenpath.data.safe.atomic import replacing
from screenpath.data.words.faults import is_word
from screenpath.errors import DataError, UsageError, file_name, shown
from screenpath.numbers import sparse as sp


def libsvm_lines(X, y):
    """Yield the lines of LIBSVM text, one per row of ``X``, (n, d), and ``y``, (n,), numbers or texts.

    Indices count from 1, every stored value has all its digits. Zeros of a dense array are left out, stored zeros of a
    sparse one are kept. nan and infinity, labels of another length, and texts that a reader would not accept as labels
    are a DataError.
    """
    if not sp.issparse(X):
        X = rows_of(X) if is_table(X) else np.asarray(X)
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise DataError(f"rows are numbers in two dimensions, not {X.dtype} in {X.ndim}", "one row a sample")
    X = sp.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()  # sorts too: a reader wants increasing indices
    X, y = X.astype(np.float64, copy=False), np.asarray(y)
    if y.shape != X.shape[:1]:
        raise DataError(f"{X.shape[0]} rows with labels of shape {y.shape}", "give one label for each row")
    texts = y.dtype.kind in "OUT" and y.size > 0 and all(isinstance(one, str) for one in y.tolist())
    y = y if texts else y.astype(np.float64)
    for one in dict.fromkeys(y.tolist()) if texts else ():
        if not is_word(one):
            what = f"the label '{shown(one)}' cannot be written as LIBSVM text"
            raise DataError(what, "labels begin with a letter and hold no white space, colon, comma or #")
    if not (np.isfinite(X.data).all() and (texts or np.isfinite(y).all())):
        raise DataError("nan or infinity cannot be written as LIBSVM text", "remove the samples or impute the values")
    return _lines(X, y)


def _lines(X, y):
    for i, label in enumerate(y.tolist()):
        part = slice(X.indptr[i], X.indptr[i + 1])
        cells = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
        head = label if isinstance(label, str) else _short(label)
        yield " ".join([head, *(f"{j + 1}:{_short(v)}" for j, v in cells)]) + "\n"


def _short(value: float) -> str:
    if value.is_integer() and abs(value) < 1e15 and (value != 0.0 or str(value) == "0.0"):  # -0.0 keeps its sign
        return str(int(value))
    return repr(value)


def write_libsvm(path: FileLike | BinaryIO, X: RowsLike, y: ArrayLike) -> None:
    """Write a LIBSVM file, compressed if its name ends in .gz, .bz2 or .xz; an existing file is replaced when done.

    Reading it back gives the same bits. A binary file object is written to as it is, and left open; faults of the data
    are those of :func:`libsvm_lines`.
    """
    if hasattr(path, "shape") or is_table(path):
        raise UsageError("the name of the file comes first", "write_libsvm(FILE, X, y)")
    lines = libsvm_lines(X, y)
    if hasattr(path, "writelines"):
        path.writelines(line.encode() for line in lines)
        return
    path = Path(file_name(path, "path"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file, compressed(file, path.suffix) as out:
        for line in lines:
            out.write(line.encode())


def compressed(file, suffix: str):
    """Return a context that yields a compressor chosen by ``suffix``, or the file itself; it leaves the file open."""
    if suffix == ".gz":
        return gzip.GzipFile("", "wb", fileobj=file, mtime=0)  # no time stamp: the same data gives the same bytes
    if suffix == ".bz2":
        return bz2.BZ2File(file, "wb")
    if suffix == ".xz":
        return lzma.LZMAFile(file, "wb")
    return contextlib.nullcontext(file)
