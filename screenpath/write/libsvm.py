"""LIBSVM text from arrays; what is written reads back to the same bits."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from screenpath.read.labels import label_text


def write_libsvm(file, X, y) -> None:
    """Write samples as LIBSVM text, indices from 1, stored values only.

    Parameters
    ----------
    file : str, Path or text file object
    X : ndarray or scipy.sparse of shape (n, d)
        A dense array's zeros are left out.
    y : ndarray of shape (n,)
    """
    if not hasattr(file, "write"):
        with open(file, "w", encoding="ascii") as opened:
            write_libsvm(opened, X, y)
        return
    X = sp.csr_array(X)
    for i, label in enumerate(np.asarray(y, dtype=np.float64)):
        span = slice(X.indptr[i], X.indptr[i + 1])
        pairs = zip(X.indices[span].tolist(), X.data[span].tolist(), strict=True)
        file.write(" ".join([label_text(label), *(f"{j + 1}:{_text(v)}" for j, v in pairs)]) + "\n")


def _text(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() and 0 < abs(value) < 1e15 else repr(value)
