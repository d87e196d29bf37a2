"""LIBSVM text."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from screenpath.write.atomic import replacing


def libsvm_lines(X, y):
    """Yield one line of LIBSVM text a row: 1-based indices, every stored value with all its digits.

    The zeros of a dense array are left out, stored zeros of a sparse one are kept.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n, d)
    y : ndarray of shape (n,)
    """
    X = sp.csr_array(X)
    for i, label in enumerate(np.asarray(y).tolist()):
        part = slice(X.indptr[i], X.indptr[i + 1])
        cells = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
        yield " ".join([_short(float(label)), *(f"{j + 1}:{_short(v)}" for j, v in cells)]) + "\n"


def _short(value: float) -> str:
    if value.is_integer() and abs(value) < 1e15 and (value != 0.0 or str(value) == "0.0"):  # -0.0 keeps its sign
        return str(int(value))
    return repr(value)


def write_libsvm(path, X, y) -> None:
    """Write a LIBSVM file, compressed if its name ends in .gz, .bz2 or .xz; an existing file is replaced when done.

    Parameters
    ----------
    path : path-like
    X : ndarray or scipy.sparse of shape (n, d)
    y : ndarray of shape (n,)
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file, contextlib.closing(_compressor(file, path.suffix)) as out:
        for line in libsvm_lines(X, y):
            out.write(line.encode())


def _compressor(file, suffix: str):
    if suffix == ".gz":
        return gzip.GzipFile("", "wb", fileobj=file, mtime=0)  # no time stamp: the same data gives the same bytes
    if suffix == ".bz2":
        return bz2.BZ2File(file, "wb")
    if suffix == ".xz":
        return lzma.LZMAFile(file, "wb")
    return _Plain(file)


class _Plain:
    """The file itself; closing it is left to :func:`replacing`."""

    def __init__(self, file):
        self.write = file.write

    def close(self):
        """Leave the file open: it has yet to be synced."""
