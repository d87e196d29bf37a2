"""What reading returns."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from screenpath.data.safe.wide import occurring, on_columns
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import Csr

if TYPE_CHECKING:
    from screenpath.data.files.form import Form
    from screenpath.data.words.faults import Fault
    from screenpath.data.words.numerals import Spelled

FileLike: TypeAlias = str | os.PathLike[str]
RowsLike: TypeAlias = "ArrayLike | sp.sparray | sp.spmatrix"  # what the Python functions take for rows
CHUNK = 1 << 17  # values converted at a time: bounds the extra memory


@dataclass(frozen=True)
class Dataset:
    """A data set as its file says, before any choice of storage, scaling or model.

    Parameters
    ----------
    stored : Csr or csr_array of shape (n, d)
        Stored zeros are kept; ``X`` has them as scipy does.
    y : ndarray of float64 of shape (n,)
        Labels or targets.
    source : str
        Where it came from, for messages.
    notices : tuple of str
        Things a user should know, one sentence each.
    columns : ndarray of int64 of shape (d,), optional
        Features of the file, from 0, that ``X`` has columns for, where these are not all of ``width``.
    width : int, optional
        Features of the file; ``d`` by default.
    names : tuple of str, optional
        Of all features, where the data was a table.
    label_names : tuple of str, optional
        Of the labels 0, 1, ..., where they are texts.
    form : table.Form, optional
        What the columns of a file with named columns are.
    spelled : numerals.Spelled, optional
        The texts of labels that are numbers, where the file does not write them as usual.
    text_label : faults.Fault, optional
        The first label of a table that is no number where others are, for who wants numbers.
    """

    stored: Csr | sp.csr_array
    y: np.ndarray
    source: str
    notices: tuple[str, ...] = ()
    columns: np.ndarray | None = None
    width: int | None = None
    names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    form: Form | None = None
    spelled: Spelled | None = None
    text_label: Fault | None = None

    def __post_init__(self):
        if self.width is None:
            object.__setattr__(self, "width", self.stored.shape[1])

    @cached_property
    def X(self) -> sp.csr_array:
        """Return the rows as scipy has them, shape (n, d); they share the arrays of ``stored``."""
        return self.stored.array() if isinstance(self.stored, Csr) else self.stored

    def narrowed(self) -> Dataset:
        """Return the data with columns for the features that occur alone, if it is wide and mostly empty."""
        columns = occurring(self.stored)
        return self if columns is None else replace(self, stored=on_columns(self.X, columns), columns=columns)

    @property
    def n(self) -> int:
        """Return the number of samples."""
        return self.stored.shape[0]

    @property
    def d(self) -> int:
        """Return the number of features that have a column."""
        return self.stored.shape[1]

    @property
    def nnz(self) -> int:
        """Return the number of stored values, stored zeros among them."""
        return self.stored.nnz

    @property
    def density(self) -> float:
        """Return stored values over cells."""
        return self.stored.nnz / max(self.n * self.d, 1)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the values that were read: what a resumed run compares.

        The same for a compressed copy, for every width of index, and for narrowed data; another for any other data.
        """
        digest = hashlib.sha256(repr((self.n, self.width)).encode())
        X = self.stored
        indices = X.indices if self.columns is None else self.columns[X.indices]
        parts = ((indices, np.int64), (X.indptr, np.int64), (X.data, np.float64), (self.y, np.float64))
        for array, dtype in parts:
            for k in range(0, array.size, CHUNK):
                digest.update(np.ascontiguousarray(array[k : k + CHUNK], dtype=dtype).data)
        return digest.hexdigest()
