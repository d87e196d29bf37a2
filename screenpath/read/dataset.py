"""What reading returns."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


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
    def density(self) -> float:
        """Return stored values over cells."""
        return self.X.nnz / max(self.n * self.d, 1)

    def fingerprint(self) -> str:
        """Return the SHA-256 of labels, indices and values: what a resumed run compares."""
        digest = hashlib.sha256(repr((self.X.shape, self.X.data.dtype.str)).encode())
        for part in (self.X.indptr, self.X.indices, self.X.data, self.y):
            digest.update(np.ascontiguousarray(part).view(np.uint8).data)
        return digest.hexdigest()
