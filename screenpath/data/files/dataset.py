"""What readers return, the form of a table, and the arrays that grow while they read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from screenpath.data.files.cells import USUAL, Cells, is_cells
from screenpath.data.safe.values import are_words, has, is_mapping, is_text
from screenpath.errors import DataError
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import Csr, occurring, on_columns

if TYPE_CHECKING:
    from screenpath.data.words.faults import Fault
    from screenpath.data.words.numerals import Spelled

FileLike: TypeAlias = str | os.PathLike[str]
RowsLike: TypeAlias = "ArrayLike | sp.sparray | sp.spmatrix"  # what the Python functions take for rows
CHUNK = 1 << 17  # values hashed at a time: bounds the extra memory
GROWTH = 1.2  # arrays grow by this factor: at most a fifth is unused at the end
LARGER_THAN_MEMORY = "convert it first, screenpath convert DATA SHARDS, and name the folder instead of the file"


@dataclass(frozen=True)
class Dataset:
    """A data set as in its file, before any choice of storage, scaling or model."""

    # shape (n, d); stored zeros are kept, here and in ``X``; an ndarray has given kernel values
    stored: Csr | sp.csr_array | np.ndarray
    y: np.ndarray  # float64 of shape (n,): labels or targets
    source: str  # where it came from, for messages
    notices: tuple[str, ...] = ()  # what a user should know, one sentence each
    columns: np.ndarray | None = None  # int64 of shape (d,): features of the file, from 0, if not all have a column
    width: int | None = None  # features of the file; d by default
    names: tuple[str, ...] | None = None  # of all features, if the data was a table
    label_names: tuple[str, ...] | None = None  # of the labels 0, 1, ..., if they are texts
    form: Form | None = None  # the columns of a table file
    spelled: Spelled | None = None  # the texts of numeric labels that the file writes in an unusual way
    text_label: Fault | None = None  # the first label of a table that is no number although others are
    ids: tuple[str, ...] | None = None  # texts that name the rows, of shape (n,), if they were asked for
    # bool of shape (n,): rows to be predicted that lack a value which nothing takes the place of; it is 0 in ``X``
    lacking: np.ndarray | None = None
    weights: np.ndarray | None = None  # weights, groups: shape (n,): of training rows, if columns of a table have them
    groups: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"<Dataset: {self.n:,} rows, {self.width:,} features, from {self.source}>"

    def __post_init__(self):
        if self.width is None:
            object.__setattr__(self, "width", self.stored.shape[1])

    @cached_property
    def X(self) -> sp.csr_array | Any:
        """Return the rows as scipy has them, shape (n, d), or as an ndarray; they share the arrays of ``stored``."""
        return self.stored.array() if isinstance(self.stored, Csr) else self.stored

    def narrowed(self) -> Dataset:
        """Return the data without the columns of features that never occur, if it is wide and mostly empty."""
        columns = occurring(self.stored)
        return self if columns is None else replace(self, stored=on_columns(self.X, columns), columns=columns)

    def without_numbers(self, width: int | None = None) -> Dataset:
        """Return a precomputed kernel of LIBSVM without its first column: the numbers of the rows, 1 to n in training.

        New rows have values with ``width`` training rows. Those of 0 may be left out, where the number of a row tells
        that its values are not features.
        """
        numbers, d = self.X[:, [0]].toarray().ravel(), self.stored.shape[1] - 1
        wrong = np.flatnonzero(numbers != np.arange(1, self.n + 1))
        if width is not None and (d > width or (d < width and not numbers.any())):
            what = f"{self.source} has {d:,} values in a row, and the run {width:,} training rows"
            raise DataError(what, "write 0:i 1:K(x, x_1) 2:K(x, x_2) ...; behind a number 0:i, zeros may be left out")
        if wrong.size and width is None:
            what = f"{self.source}: row {wrong[0] + 1} of the precomputed kernel has the number {numbers[wrong[0]]:g}"
            raise DataError(what, "number the rows in their order: 0:1, 0:2 ...")
        return replace(self, stored=self.X[:, 1:], width=d)

    @property
    def n(self) -> int:
        return self.stored.shape[0]

    @property
    def d(self) -> int:
        """Return the number of features that have a column."""
        return self.stored.shape[1]

    @property
    def nnz(self) -> int:
        """Return the number of stored values, including stored zeros."""
        return self.stored.size if isinstance(self.stored, np.ndarray) else self.stored.nnz

    @property
    def density(self) -> float:
        return self.nnz / max(self.n * self.d, 1)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the values, which a resumed run compares.

        It does not depend on compression, index width or narrowing; any other data has another one.
        """
        digest = hashlib.sha256(repr((self.n, self.width)).encode())
        X = self.stored
        parts: list[tuple] = [(X, np.float64)]
        if not isinstance(X, np.ndarray):
            indices = X.indices if self.columns is None else self.columns[X.indices]
            parts = [(indices, np.int64), (X.indptr, np.int64), (X.data, np.float64)]
        for array, dtype in (*parts, (self.y, np.float64)):
            rows = max(1, CHUNK * len(array) // max(array.size, 1))
            for k in range(0, len(array), rows):
                digest.update(np.ascontiguousarray(array[k : k + rows], dtype=dtype).data)
        return digest.hexdigest()


class Growing:
    """A one-dimensional array that grows in place."""

    def __init__(self, dtype):
        self.array = np.empty(1024, dtype=dtype)
        self.size = 0

    def extend(self, values) -> None:
        if self.size + values.size > self.array.size:
            self.array.resize(int(GROWTH * self.array.size) + values.size, refcheck=False)
        self.array[self.size : self.size + values.size] = values
        self.size += values.size

    def finish(self) -> np.ndarray:
        self.array.resize(self.size, refcheck=False)
        return self.array


@dataclass(frozen=True)
class Form:
    """Columns of a table; training data fixes them, new data follows them."""

    target: str | None  # column of labels or targets; None if there is none
    columns: tuple[str, ...]  # columns of features, in their order
    # sorted values of each one-hot encoded column
    one_hot: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    id: str | None = None  # column that names the rows
    cells: Cells = USUAL
    # of one-hot encoded columns of two values: the one without a feature
    base: Mapping[str, str] = field(default_factory=dict)
    indicated: tuple[str, ...] | None = None  # columns with a feature that tells where they lack a value, once known

    @property
    def names(self) -> tuple[str, ...]:
        found: list[str] = []
        for name in self.columns:
            found += [f"{name}={value}" for value in self.one_hot[name]] if name in self.one_hot else [name]
            found += [f"{name} is missing"] if name in (self.indicated or ()) else []
        return tuple(found)

    @property
    def plain(self) -> bool:
        """Tell whether the features are the columns themselves."""
        return self.names == self.columns

    def stripped(self) -> Form:
        """Return the form with blanks around names removed; older runs stored them."""
        hot = {name.strip(): values for name, values in self.one_hot.items()}
        columns = tuple(name.strip() for name in self.columns)
        target, own = self.target and self.target.strip(), self.id and self.id.strip()
        return replace(self, target=target, columns=columns, one_hot=hot, id=own)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return the columns that are not one-hot encoded."""
        return tuple(name for name in self.columns if name not in self.one_hot)

    def record(self) -> dict:
        one_hot = {name: list(values) for name, values in self.one_hot.items()}
        more: dict[str, Any] = {"id": self.id, "cells": self.cells.record(), "base": dict(self.base)}
        more["indicated"] = list(self.indicated or ())
        known = {"target": self.target, "columns": list(self.columns), "one_hot": one_hot}
        return known | {name: value for name, value in more.items() if value}

    @classmethod
    def of_record(cls, record: dict) -> Form:
        one_hot = {name: tuple(values) for name, values in record["one_hot"].items()}
        more = Cells.of(record.get("cells", {})), record.get("base", {}), tuple(record.get("indicated", ()))
        return cls(record["target"], tuple(record["columns"]), one_hot, record.get("id"), *more)


# Tests of what the record of a form has, and of what it may have.
NEEDED = {"target": lambda value: value is None or is_text(value), "columns": are_words, "one_hot": is_mapping}
POSSIBLE = {"id": is_text, "cells": is_cells, "base": is_mapping, "indicated": are_words}


def is_form(value) -> bool:
    tests = {**NEEDED, **POSSIBLE}
    if not has(NEEDED)(value) or not all(name in tests and tests[name](one) for name, one in value.items()):
        return False
    columns = value["columns"]
    encoded = all(name in columns and are_words(values) for name, values in value["one_hot"].items())
    return encoded and are_words([*value.get("base", {}).values()]) and value.get("id") not in columns
