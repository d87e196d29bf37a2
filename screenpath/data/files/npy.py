"""Kernel values in a ``.npy`` file, mapped and never copied, with the labels of the rows in a file beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from screenpath.data.files.arrays import numbered, texts_of
from screenpath.data.files.dataset import Dataset
from screenpath.data.files.libsvm import ABSENT, GIVEN
from screenpath.data.files.read import read_like
from screenpath.data.files.source import NUMPY, begins_with
from screenpath.errors import DataError

BESIDE = ".labels"  # the end of the name of the file of labels


def is_npy(path) -> bool:
    return begins_with(path, NUMPY)


def read_npy(path: str, target: str | None, labels: str = GIVEN, width: int | None = None) -> Dataset:
    """Return kernel values, shape (n, n), or (m, ``width``) of new rows, and the labels in the file ``target``.

    By default this is the file beside with the ending ``.labels``: text, one a line, or ``.npy``. Unless ``labels`` are
    :data:`GIVEN`, they may be missing (nan), as in LIBSVM text.
    """
    X = _mapped(path)
    if X.dtype not in (np.float64, np.float32):
        raise DataError(f"{path} holds {X.dtype} values", "save float64 or float32: numpy.save(FILE, K.astype(float))")
    n, d = X.shape if X.ndim == 2 else (0, 0)
    if width is None and (n != d or not n):
        what = f"{path} has the shape {X.shape}: the kernel of the training rows is square"
        raise DataError(what, "save K(x_i, x_j) of all pairs of training rows")
    if width is not None and d != width:
        what = f"{path} has the shape {X.shape}, and the run {width:,} training rows"
        raise DataError(what, "save K(x, x_j) with a column for each training row; those without a part may be nan")
    where = Path(path).with_suffix(BESIDE) if target is None else Path(target)
    if labels == ABSENT or (labels != GIVEN and target is None and not where.exists()):
        return Dataset(X, np.full(n, np.nan), path)
    if target is None and not where.exists():
        other = ", or add `target=FILE`" if width is None else ""  # which is of the training data
        raise DataError(f"{path} has no labels", f"write them to {where}, one a line{other}")
    if is_npy(where):
        y = _mapped(str(where))
        names = texts_of(y)
        if y.ndim != 1 or (names is None and y.dtype.kind not in "biuf"):
            raise DataError(f"{where} holds {y.dtype} values of the shape {y.shape}", "save one label for each row")
        data = Dataset(X, np.asarray(numbered(y, names), dtype=np.float64), path, label_names=names)
    else:
        data = replace(read_like(str(where), labels=labels), stored=X, width=d, source=path)
    if data.y.size != n:
        raise DataError(f"{where} has {data.y.size:,} labels, {path} {n:,} rows", "give one a row, in order")
    if labels == GIVEN and not np.isfinite(data.y).all():
        raise DataError(f"{where}: label {int(np.flatnonzero(~np.isfinite(data.y))[0]) + 1} is no number")
    return data


def _mapped(path: str) -> np.ndarray:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}", "save float64 or float32 values with numpy.save") from None
    return np.asarray(found)
