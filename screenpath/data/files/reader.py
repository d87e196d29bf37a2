"""From the batches of a table to a data set: features, one-hot values, and what takes the place of gaps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from screenpath.data.files.advice import CELLS, MOST, Column
from screenpath.data.files.cells import USUAL, Cells
from screenpath.data.files.dataset import LARGER_THAN_MEMORY, Dataset, Form, Growing
from screenpath.data.files.source import to_come
from screenpath.data.files.table import ENCODE, FILL_IN, MISSING, NUMBERS, Batch, TableFile, Target, Vocabulary
from screenpath.data.words.numerals import is_number
from screenpath.errors import DataError
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import counted_csr

if TYPE_CHECKING:  # as in table.py
    from screenpath.data.words.faults import Fault

NONE_BELOW = "weights are at least 0, and 0 leaves the row out"
ON = 200_000  # rows after which the first fault ends reading


class Reader:
    """Turns batches of a table into dense blocks of numbers and numbers of one-hot values."""

    def __init__(self, form: Form, table: TableFile):
        self.form, self.table = form, table
        self.vocabularies = {name: Vocabulary(v, base=form.base.get(name)) for name, v in form.one_hot.items()}
        self.indicated = form.indicated if form.cells.missing_indicator else ()

    @property
    def wanted(self) -> tuple[str, ...]:
        return (*self.form.columns, *([] if self.form.target is None else [self.form.target]))

    def block(self, batch: Batch, dtype=np.float64) -> tuple[np.ndarray, list[Fault]]:
        """Return the numeric columns of a batch, shape (rows, numbers), and their faults."""
        names, faults = self.form.numbers, []
        whole = batch.block(names) if names and dtype == np.float64 else None
        if whole is not None:
            return whole, []
        out = np.empty((batch.size, len(names)), dtype=dtype)
        with np.errstate(over="ignore"):
            for j, name in enumerate(names):
                values, wrong = batch.numbers(name, gaps=self.form.cells.fills)
                out[:, j] = values
                faults += wrong
                if out.dtype != np.float64 and np.isinf(out[:, j]).any():
                    row = int(np.flatnonzero(np.isinf(out[:, j]))[0])
                    hint = "read it as float64"
                    faults.append(batch.fault(row, name, repr(float(values[row])), f"too large for {out.dtype}", hint))
        return out, faults

    def hot(self, batch: Batch) -> tuple[np.ndarray, list[Fault]]:
        """Return the numbers of one-hot values, shape (rows, one-hot columns), and faults of missing cells."""
        out, faults = np.empty((batch.size, len(self.vocabularies)), dtype=np.int64), []
        for j, (name, vocabulary) in enumerate(self.vocabularies.items()):
            texts = batch.texts(name)
            out[:, j] = vocabulary.numbers(texts)
            if not self.form.cells.fills:
                faults += [batch.fault(int(k), name, "", *MISSING) for k in np.flatnonzero(texts.codes < 0)]
        return out, faults

    def settled(self) -> Form:
        """Return the form with the one-hot values, and the columns with gaps, that were found."""
        self.take_bases()
        found = {name: vocabulary.order()[0] for name, vocabulary in self.vocabularies.items()}
        base = {name: one.base for name, one in self.vocabularies.items() if one.closed and one.base is not None}
        return replace(self.form, one_hot=found, base=base, indicated=self.indicated)

    def take_bases(self, hot: np.ndarray | None = None) -> None:
        """Leave the first of two values without a feature, once all rows are read; ``hot`` changes in place."""
        for j, (name, found) in enumerate(self.vocabularies.items()):
            whole = not (found.gaps and self.form.cells.fills)  # else a value and a gap would be one
            if name in self.form.base and not found.closed and len(found.places) == 2 and whole:
                base, other = found.order()[0]
                if hot is not None:
                    hot[:, j] = np.where(hot[:, j] == found.places[other], 0, -2)
                self.vocabularies[name] = Vocabulary((other,), base=base)

    def rows(self, numbers: sp.csr_array, hot: np.ndarray) -> sp.csr_array:
        """Return rows of all features, given those of the numeric columns and the numbers of one-hot values.

        The first rows of training data settle which columns have a feature that tells where they lack a value.
        """
        lacking = self._lacking(numbers, hot) if self.form.cells.missing_indicator else {}
        if self.indicated is None:
            self.indicated = tuple(name for name in self.form.columns if name in lacking)
        if not self.vocabularies and not self.indicated:
            return numbers
        places, starts, marks, at = [], {}, {}, 0
        for name in self.form.columns:
            if name in self.vocabularies:
                starts[name], at = at, at + len(self.vocabularies[name].places)
            else:
                places.append(at)
                at += 1
            if name in self.indicated:
                marks[name], at = at, at + 1
        n = numbers.shape[0]
        moved = np.array(places, dtype=np.int64)[numbers.indices]
        wide = sp.csr_array((numbers.data, moved, numbers.indptr), shape=(n, at))
        columns = np.column_stack(
            [
                np.where(hot[:, j] >= 0, starts[name] + np.append(self.vocabularies[name].order()[1], 0)[hot[:, j]], -1)
                for j, name in enumerate(self.vocabularies)
            ]
            + [np.where(lacking.get(name, np.zeros(n, dtype=bool)), place, -1) for name, place in marks.items()]
        )
        columns = np.sort(columns, axis=1)
        there = columns >= 0
        ones = counted_csr(np.ones(np.count_nonzero(there)), columns[there], there.sum(axis=1), at).array()
        return sp.csr_array(wide + ones)

    def _lacking(self, numbers: sp.csr_array, hot: np.ndarray) -> dict[str, np.ndarray]:
        """Return, for each column that lacks a value, in which rows it does."""
        gaps = np.isnan(numbers.data)
        rows, columns = np.repeat(np.arange(numbers.shape[0]), np.diff(numbers.indptr))[gaps], numbers.indices[gaps]
        found = {name: hot[:, j] == -1 for j, name in enumerate(self.vocabularies) if (hot[:, j] == -1).any()}
        for j in np.unique(columns).tolist():
            found[self.form.numbers[j]] = np.isin(np.arange(numbers.shape[0]), rows[columns == j])
        return found

    def notices(self) -> tuple[str, ...]:
        """Return a sentence for each one-hot column with values unknown to the training data."""
        return tuple(
            f"{v.unknown} row{' has' if v.unknown == 1 else 's have'} a value of '{name}' that the training data does "
            "not have: all its features are 0"
            for name, v in self.vocabularies.items()
            if v.unknown
        )


def _advised(faults: list[Fault], odd: dict[str, Column], rows: int) -> list[Fault]:
    """Return faults with hints by what the column holds: not every text is worth a feature."""
    for column in odd.values():
        column.rows = rows
    of_texts = [fault.column in odd and ENCODE.format(fault.column) in fault.hint for fault in faults]
    pairs = zip(faults, of_texts, strict=True)
    return [replace(fault, hint=odd[fault.column or ""].hint) if text else fault for fault, text in pairs]


class RowColumns:
    """What columns that are no features say about the rows: weights, and groups."""

    def __init__(self, cells: Cells):
        self.cells, self.weights = cells, Growing(np.float64)
        self.groups: list[np.ndarray] = [np.zeros(0, dtype=str)]

    def take(self, batch: Batch) -> list[Fault]:
        """Append the cells of a batch; return faults of those that are missing, no numbers, or below 0."""
        faults: list[Fault] = []
        if column := self.cells.weight_column:
            values, wrong = batch.numbers(column)
            self.weights.extend(values)
            lost = {MISSING[0]: "the row has no weight"}  # which `missing` is not about
            faults += [replace(one, message=lost.get(one.message, one.message), hint=NUMBERS) for one in wrong]
            below = np.flatnonzero(values < 0).tolist()
            faults += [batch.fault(k, column, f"{values[k]:g}", "a weight is negative", NONE_BELOW) for k in below]
        if self.cells.group_column:
            texts = batch.texts(self.cells.group_column)
            self.groups.append(np.array([*texts.values, ""])[texts.codes])
            gaps = np.flatnonzero(texts.codes < 0).tolist()
            faults += [batch.fault(k, self.cells.group_column, "", "the row has no group", FILL_IN) for k in gaps]
        return faults

    def finish(self, kept: np.ndarray) -> tuple:
        """Return weights and groups of the rows that are kept, each None if there are none."""
        weights, groups = self.weights.finish(), np.concatenate(self.groups)
        return weights[kept] if self.cells.weight_column else None, groups[kept] if self.cells.group_column else None


class Rows:
    """The rows read so far: their numbers, their one-hot values, and which are good or lack a value."""

    def __init__(self, dtype):
        kinds = (dtype, np.int32, np.int64, np.int64, bool, bool)
        self.values, self.columns, self.counts, self.hot, self.good, self.gaps = map(Growing, kinds)

    def add(self, block: np.ndarray, hot: np.ndarray, good: np.ndarray, gaps: np.ndarray, room) -> None:
        """Append a batch; ``room(known, needed)`` is asked for its bytes. A row that is not whole counts as zeros."""
        block[~good | gaps] = 0.0
        row, column = np.nonzero(block)
        room(12 * self.values.size + 8 * self.counts.size, 12 * row.size + 24 * good.size)
        self.values.extend(block[row, column])
        self.columns.extend(column)
        self.counts.extend(np.bincount(row, minlength=good.size))
        self.hot.extend(hot.ravel())
        self.good.extend(good)
        self.gaps.extend(gaps)

    def finish(self, width: int) -> tuple[sp.csr_array, np.ndarray]:
        """Return the numbers and the one-hot values of the good rows."""
        X = counted_csr(self.values.finish(), self.columns.finish(), self.counts.finish(), width).array()
        hot, good = self.hot.finish().reshape(X.shape[0], -1), self.good.finish()
        return (X, hot) if good.all() else (X[np.flatnonzero(good)], hot[good])


def read_table(
    table: TableFile, form: Form, *, given: bool = True, limit=None, dtype=np.float64, max_faults: int | None = None,
    notices: tuple[str, ...] = (), new: bool = False, apart: bool = False,
) -> tuple[Dataset | None, list[Fault]]:  # fmt: skip
    """Read a table into memory: the data (None if every row has a fault), and the faults.

    Unless labels are ``given``, an unknown one is nan. Rows with a fault are left out; reading ends at ``max_faults``
    kinds of faults in columns; by default, some rows after the first fault. ``new``: the rows are to be predicted.
    Then a row that lacks a value is kept, too. ``apart``: with the weights and groups of the rows. Either way with
    the texts of the column that names them.
    """
    named: list[str] | None = [] if (new or apart) and form.id is not None else None
    odd: dict[str, Column] = {}  # features of texts
    row_columns = RowColumns(form.cells if apart else USUAL)
    reader, target, rows, left_out = Reader(form, table), Target(form.target, given), Rows(dtype), 0
    from screenpath.data.words.faults import Faults

    def room(known: int, needed: int) -> None:
        if limit is not None:
            done = f"{table.name}: reading beyond row {rows.counts.size:,}"
            limit.check(needed, done, LARGER_THAN_MEMORY, known=to_come(known + needed))

    faults = Faults()
    more = [*row_columns.cells.role_columns, *([] if named is None or form.id is None else [form.id])]
    wanted = tuple(dict.fromkeys([*reader.wanted, *more]))  # one column may have several roles
    for batch in table.batches(max(1, CELLS // max(len(form.columns), 1)), wanted):
        block, wrong = reader.block(batch, dtype)
        places, missing = reader.hot(batch)
        good, gaps = np.ones(batch.size, dtype=bool), np.zeros(batch.size, dtype=bool)
        here = [*wrong, *missing, *target.take(batch), *row_columns.take(batch)]
        if here:
            here.sort(key=lambda fault: fault.line)
            if new or form.cells.missing != "error":
                gaps[[batch.row_of(fault) for fault in here if fault.message == MISSING[0]]] = True
                here = [fault for fault in here if fault.message != MISSING[0]]
            faults.add(here)
            for fault in wrong:  # texts of columns that should hold numbers
                if fault.column is not None and ENCODE.format(fault.column) in fault.hint:
                    column = odd.setdefault(fault.column, Column(fault.column))
                    texts = [fault.token] if fault.token else batch.texts(fault.column).values
                    column.values.update(texts if column.different <= MOST else ())
                    column.texts += 1 if fault.token else batch.size
            full = rows.good.size > ON if max_faults is None else len(faults.listed) >= max_faults
            if faults.listed and full:
                return None, _advised(faults.counted(max_faults), odd, rows.good.size + batch.size)
            good[[batch.row_of(fault) for fault in here]] = False
            left_out += 0 if new else int(np.count_nonzero(gaps & good))
            good &= new | ~gaps
        if named is not None and form.id is not None:
            cells = batch.texts(form.id)
            named += [cells.values[code] if code >= 0 else "" for code in cells.codes[good].tolist()]
        rows.add(block, places, good, gaps, room)
    found = _advised(faults.counted(), odd, rows.good.size)
    if not rows.good.size and not found:
        raise DataError(f"{table.name} holds no samples", "add a row for each sample")
    if target.numbers.size != rows.good.size or not rows.good.size:  # a target that is none, or no rows
        return None, found
    X, places = rows.finish(len(form.numbers))
    good, spelled, (y, names) = rows.good.array, target.spelled, target.finish()
    weights, groups = row_columns.finish(good)
    reader.take_bases(places)
    X = reader.rows(X, places)
    lacking = "1 row that lacks a value is" if left_out == 1 else f"{left_out:,} rows that lack a value are"
    notices = (*table.notices, *notices, *reader.notices(), *([f"{lacking} left out"] if left_out else []))
    if not X.shape[0]:
        return None, found
    text = target.text if any(map(is_number, names or ())) else None
    settled = reader.settled()
    return Dataset(
        X, y[good], table.name, notices, names=settled.names, label_names=names, form=settled, text_label=text,
        spelled=spelled if good.all() else None, ids=None if named is None else tuple(named),
        lacking=rows.gaps.finish() if new else None, weights=weights, groups=groups,
    ), found  # fmt: skip
