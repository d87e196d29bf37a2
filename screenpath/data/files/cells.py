"""How the cells of a table are read, and what takes the place of those that are missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from screenpath.data.safe.values import are_words
from screenpath.data.words.numerals import is_number, is_numberlike, number_of
from screenpath.errors import UsageError
from screenpath.numbers import sparse as sp

NA = frozenset(("", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL"))  # stand for a missing value
LEARNED = ("mean", "median")
MARKS = ("decimal", "thousands", "delimiter", "encoding")
POLICIES = ("error", "drop", *LEARNED)


@dataclass(frozen=True)
class Cells:
    """How the cells of a table are read; new data are read as the training data."""

    missing: str = "error"  # or drop, mean, median, or the number that is filled in
    missing_indicator: bool = False  # whether a column with gaps gets a feature that is 1 there
    na: tuple[str, ...] = ()  # further texts that stand for a missing value; a number means all its spellings
    decimal: str = "."  # decimal, thousands, delimiter, encoding: of CSV; delimiter "": as in the header
    thousands: str = ""
    delimiter: str = ""
    encoding: str = "utf-8"
    weight_column: str = ""  # no features: the weights of the rows, and what keeps rows together in folds
    group_column: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Cells:
        """Return the checked options among ``given``; None, or nothing, is the default."""
        known = {one.name: given.get(one.name) for one in fields(cls)}
        if strange := sorted(set(given) - set(known)):
            raise TypeError(f"there is no option '{strange[0]}' of a table's cells: {', '.join(known)}")
        known["missing"] = checked_policy(known["missing"] or "error" if known["missing"] != 0 else "0")
        known["na"] = (known["na"],) if isinstance(known["na"], str) else tuple(known["na"] or ())
        known["delimiter"] = "\t" if known["delimiter"] == "tab" else known["delimiter"]
        found = cls(**{name: value for name, value in known.items() if value is not None})
        found._check_marks()
        if found.missing_indicator and not found.fills:
            hint = "add `missing=median`, or leave out `missing_indicator`"
            raise UsageError("`missing_indicator` goes with filled in values", hint)
        return found

    def _check_marks(self) -> None:
        for name in ("decimal", "thousands", "delimiter"):
            mark = getattr(self, name)
            if len(mark) > 1 or mark.isalnum() or mark in '"\r\n+-' and mark or (name == "decimal" and not mark):
                raise UsageError(f"`{name}={mark}` is no mark", "use one character, such as , . ; | or tab")
        if self.decimal == self.thousands:
            raise UsageError(f"`decimal` and `thousands` are both '{self.decimal}'", "leave one of them out")
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError):
            what = f"`encoding={self.encoding}` is not known"
            raise UsageError(what, "use utf-8, latin-1, cp1252, utf-16 or another of Python's") from None

    @cached_property
    def _number(self) -> re.Pattern | None:
        """Return the pattern of a number; None if numbers are written as usual."""
        if self.decimal == "." and not self.thousands:
            return None
        mark, between = re.escape(self.decimal), re.escape(self.thousands)
        whole = f"[0-9]{{1,3}}(?:{between}[0-9]{{3}})+|[0-9]+" if between else "[0-9]+"
        return re.compile(f"[+-]?(?:{whole})?(?:{mark}[0-9]*)?(?:[eE][+-]?[0-9]+)?")

    @property
    def usual(self) -> bool:
        """Tell whether numbers are written as usual."""
        return self._number is None

    def number(self, cell: str) -> str:
        """Return a number as it is usually written; any other text as it is, or in quotes if it is a usual number."""
        if self._number is None:
            return cell
        cell = cell.strip()
        if self._number.fullmatch(cell):
            return (cell.replace(self.thousands, "") if self.thousands else cell).replace(self.decimal, ".")
        return f"'{cell}'" if is_number(cell) else cell

    @property
    def role_columns(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.weight_column, self.group_column)))

    @property
    def fills(self) -> bool:
        return self.missing not in ("error", "drop")

    @cached_property
    def codes(self) -> np.ndarray:
        """Return the numbers that stand for a missing value."""
        known = (text for text in self.na if is_number(text) or is_numberlike(text) and text[1:].isalpha())
        return np.array([float(text) for text in known])

    def is_missing(self, text: str) -> bool:
        """Tell whether a cell, without the blanks around it, is missing."""
        if text in NA or text in self.na:
            return True
        return self.codes.size > 0 and is_number(self.number(text)) and float(self.number(text)) in self.codes

    def blanked(self, values: np.ndarray) -> np.ndarray:
        """Return numbers with nan for those that stand for a missing value."""
        return np.where(np.isin(values, self.codes), np.nan, values) if self.codes.size else values

    def flags(self) -> list[str]:
        """Return the words of a command line for what is about texts."""
        told = {name: value for name, value in self.record().items() if name in MARKS}
        return [word for name, value in told.items() for word in (f"--{name}", value)]

    def record(self) -> dict:
        """Return what differs from the defaults."""
        usual = asdict(USUAL)
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


USUAL = Cells()


def checked_policy(how) -> str:
    """Return a treatment of missing values as a word, or as a number in its usual form."""
    text = str(how)
    if text in POLICIES:
        return text
    try:
        value = 0.0 if text == "zero" else number_of(text)
        if not np.isfinite(value):
            raise ValueError
    except ValueError:
        what = f"`missing={text}` is no treatment of missing values"
        raise UsageError(what, f"use {', '.join(POLICIES)}, zero or a number") from None
    return repr(value)


def fill_of(X, missing: str | None, weights=None) -> np.ndarray | None:
    """Return the value that takes the place of a missing one (nan) in each column of ``X``, shape (n, d); None if none
    does, as ``missing`` of :class:`Cells` has it.

    The values have the shape (d,), 0 for a column without a known one. ``weights``, shape (n,), say how often each row
    counts.
    """
    missing = checked_policy(missing or "error")
    if missing in ("error", "drop"):
        return None
    if missing not in LEARNED:
        return np.full(X.shape[1], float(missing))
    columns = sp.csc_array(X) if sp.issparse(X) else X
    given = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    found = np.zeros(X.shape[1])
    for j in range(X.shape[1]):
        if sp.issparse(X):
            part = slice(columns.indptr[j], columns.indptr[j + 1])
            values, counts = columns.data[part].astype(np.float64), given[columns.indices[part]]
            values = np.append(values, 0.0)  # of the rows that store none
            counts = np.append(counts, max(given.sum() - counts.sum(), 0.0))
        else:
            values, counts = np.asarray(columns[:, j], dtype=np.float64), given
        known = ~np.isnan(values) & (counts > 0.0)
        if known.any():
            found[j] = (_mean if missing == "mean" else _median)(values[known], counts[known])
    return found


def _mean(values: np.ndarray, counts: np.ndarray) -> float:
    power = int(np.frexp(np.abs(values).max())[1])  # sums stay in range
    return float(np.ldexp(np.average(np.ldexp(values, -power), weights=counts), power))


def _median(values: np.ndarray, counts: np.ndarray) -> float:
    """Return the middle of values that occur ``counts`` times: between two of them if both are the middle."""
    order = np.argsort(values, kind="stable")
    values, below = values[order], np.cumsum(counts[order])
    low = values[np.searchsorted(below, below[-1] / 2.0)]
    high = values[min(np.searchsorted(below, below[-1] / 2.0, side="right"), values.size - 1)]
    return float(low / 2.0 + high / 2.0)


def completed(X, fill: np.ndarray | None):
    """Return rows with ``fill`` in the place of nan; ``X`` itself if nothing is missing."""
    if fill is None:
        return X
    values = X.data if sp.issparse(X) else X
    gaps = np.isnan(values)
    if not gaps.any():
        return X
    columns = X.indices if sp.issparse(X) else np.broadcast_to(np.arange(X.shape[1]), X.shape)
    values = values.copy()
    values[gaps] = fill[columns[gaps]]
    return sp.csr_array((values, X.indices, X.indptr), shape=X.shape) if sp.issparse(X) else values


def is_cells(value) -> bool:
    usual = asdict(USUAL)
    try:
        right = all(
            are_words(one) if isinstance(usual[name], tuple) else type(one) is type(usual[name])
            for name, one in value.items()
        )
        return right and bool(Cells.of(value))
    except (AttributeError, KeyError, UsageError):
        return False
