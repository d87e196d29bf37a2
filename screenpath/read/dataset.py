"""What reading returns."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

CHUNK = 1 << 20  # values converted at a time: bounds the extra memory


@dataclass(frozen=True)
class Dataset:
    """A data set as its file says, before any choice of storage, scaling or model.

    Parameters
    ----------
    X : scipy.sparse.csr_array of shape (n, d)
        Stored zeros are kept.
    y : ndarray of float64 of shape (n,)
        Labels or targets.
    source : str
        Where it came from, for messages.
    notices : tuple of str
        Things a user should know, one sentence each.
    """

    X: sp.csr_array
    y: np.ndarray
    source: str
    notices: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Return the number of samples."""
        return self.X.shape[0]

    @property
    def d(self) -> int:
        """Return the number of features."""
        return self.X.shape[1]

    @property
    def nnz(self) -> int:
        """Return the number of stored values, stored zeros among them."""
        return self.X.nnz

    @property
    def density(self) -> float:
        """Return stored values over cells."""
        return self.X.nnz / max(self.n * self.d, 1)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the values that were read: what a resumed run compares.

        The same for a compressed copy and for every width of index; another for any other data.
        """
        digest = hashlib.sha256(repr(self.X.shape).encode())
        parts = ((self.X.indices, np.int64), (self.X.indptr, np.int64), (self.X.data, np.float64), (self.y, np.float64))
        for array, dtype in parts:
            for k in range(0, array.size, CHUNK):
                digest.update(np.ascontiguousarray(array[k : k + CHUNK], dtype=dtype).data)
        return digest.hexdigest()
