"""Rows and labels from table files (CSV, Parquet): which columns are features and which one is the target."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from screenpath.data.files.columns import as_texts, features, listed, no_column, selected
from screenpath.data.files.dataset import Form, Growing
from screenpath.data.words.labels import label_text, sorted_labels
from screenpath.data.words.numerals import Spelled, Spellings, is_number, is_numberlike, same_number, usual_text
from screenpath.errors import DataError, UsageError

if TYPE_CHECKING:  # faults know the parser, whose kernels nobody needs who only looks at what is stored
    from screenpath.data.files.cells import Cells
    from screenpath.data.words.faults import Fault

TARGETS = ("target", "label", "class", "y")  # default names of the target column
CLASSES = 100  # a text after more distinct numbers in the target column is a fault, not a label
UNKNOWN = "?"  # stands for what cannot be a label among texts of labels
MISSING = ("the value is missing", "leave the row out: `missing=drop`, or fill it in: `missing=median`")
FILL_IN = "fill it in, or leave the row out"  # the hint where `missing` cannot be given
UNLABELLED = "write the label, or leave the row out: `missing=drop`"
NUMBERS = "write a number, or leave the row out"
NAMED = "name a column of numbers: `target=COLUMN`, or write these as numbers"
# hint for a text feature, if columns can be chosen
ENCODE = "leave the column out: `drop={0}`, or encode its texts: `one_hot={0}`"
NOT_FINITE = ("nan or infinity", "fill in a number, or leave the row out")


@dataclass(frozen=True)
class Texts:
    """The text cells of a column."""

    codes: np.ndarray  # int of shape (rows,): places in ``values``; -1 for a missing cell
    values: list[str]


class Batch(Protocol):
    """Some rows of a table file."""

    size: int

    def block(self, names: Sequence[str]) -> np.ndarray | None:
        """Return columns of numbers, shape (rows, names); None if there is a fault, or one by one is as fast."""

    def numbers(self, name: str, truth: bool = True, gaps: bool = False) -> tuple[np.ndarray, list[Fault]]:
        """Return a column as float64, nan for cells that are missing or not numbers, and a fault for each of these.

        Without ``truth``, the texts true and false are not numbers; with ``gaps``, a missing cell is no fault. A fault
        of the whole column has no token.
        """

    def label_texts(self, name: str) -> list[str] | None:
        """Return the cells of a numeric column as written; None if the numbers tell everything."""

    def texts(self, name: str) -> Texts: ...

    def written(self, name: str) -> list[str]:
        """Return the cells of a column as the file has them."""

    def is_text(self, name: str) -> bool:
        """Tell whether the file declares a column as texts (or truth values); CSV never does."""

    def fault(self, row: int, name: str, token: str, message: str, hint: str) -> Fault:
        """Return a fault of a cell, rows counted from 0."""

    def row_of(self, fault: Fault) -> int: ...


class TableFile(Protocol):
    """A file with named columns."""

    name: str
    columns: tuple[str, ...]
    notices: tuple[str, ...]
    cells: Cells

    def batches(self, rows: int, wanted: Sequence[str]) -> Iterator[Batch]:
        """Yield the rows in order, at most ``rows`` at once, with at least the ``wanted`` columns."""


def form_of(
    table: TableFile, target: str | None = None, one_hot: str | Sequence[str] = (), columns: str | Sequence[str] = (),
    drop: str | Sequence[str] = (), id: str | None = None, auto: Sequence[str] = (), labelled: bool = True,
) -> Form:  # fmt: skip
    """Return the form of a training table; the values of ``one_hot`` columns are still to be found. Of the columns
    ``auto``, features are encoded, too, and those of two values get one feature.

    A single text names one column. The target is by default the column named target, label, class or y, unless the
    table is not ``labelled``; features are what :func:`screenpath.data.files.columns.features` returns.
    """
    dropped = selected(table.columns, as_texts(drop), "drop", table.name)
    check_columns(table, dropped, {*table.columns} - {target, *TARGETS})
    asked = [text for text in as_texts(one_hot) if text != "auto" or text in table.columns]
    encoded = selected(table.columns, asked, "one_hot", table.name)
    hot = tuple(name for name in table.columns if name in encoded)
    there = listed(table.columns)
    if target is None and labelled:
        found = [name for name in table.columns if name.lower() in TARGETS]
        if len(found) != 1:
            what = f"{' and '.join(found)} may be" if found else "none is called target, label, class or y"
            why = f"{table.name}: which column is the target? {what}"
            raise UsageError(why, f"name it: `target=COLUMN`; there are {there}")
        target = found[0]
    how = table.cells
    more = {"weight_column": how.weight_column or None, "group_column": how.group_column or None}
    for what, name in {"target": target, "id": id, **more}.items():
        if name is not None and name not in table.columns:
            raise no_column(table.name, name, table.columns, f"`{what}={name}`")
    if target in hot:
        raise UsageError(f"the column '{target}' is the target, not a feature", "leave it out of `one_hot`")
    if id is not None and id in (target, *hot):
        what = "the target" if id == target else "a feature (`one_hot`)"
        raise UsageError(f"the column '{id}' is {what}, it cannot name the rows too", "name another column as `id`")
    apart = (id, *how.role_columns)
    kept = tuple(name for name in features(table.columns, target, columns, drop, table.name) if name not in apart)
    if not kept and (columns or drop):
        raise UsageError(f"{table.name}: `columns` and `drop` leave no column of features", f"there are {there}")
    if not kept:
        raise DataError(f"{table.name} has no column of features besides the target '{target}'", "check the file")
    for name in hot:
        if name not in kept:
            raise UsageError(f"the column '{name}' is left out by `columns` or `drop`", "leave it out of `one_hot`")
    values: dict[str, tuple[str, ...]] = {name: () for name in kept if name in hot or name in auto}
    return Form(target, kept, values, id, table.cells, {name: "" for name in values if name not in hot})


def form_like(table: TableFile, known: Form, target: str | None = None) -> tuple[Form, tuple[str, ...]]:
    """Return the form of a new table that has the training data's columns, and notices.

    Columns are found by name, in any order. A table without the target has no labels.
    """
    known = known.stripped()
    if target is not None and target not in table.columns:
        raise no_column(table.name, target, table.columns, f"`target={target}`")
    usual = [name for name in table.columns if name not in known.columns and name.lower() in TARGETS]
    if target is not None or known.target in table.columns:
        found = target or known.target
    else:  # arrays have no target column, and one that is called as usual is it
        found = usual[0] if known.target is None and len(usual) == 1 else None
    there = {*table.columns}
    missing = [name for name in known.columns if name not in there]
    if missing:
        what = f"{table.name} lacks columns of the training data: {listed(missing)}"
        raise DataError(what, f"it has {listed(table.columns)}")
    used = {*known.columns, found, known.target, known.id, *known.cells.role_columns}
    more = [name for name in table.columns if name not in used]
    check_columns(table, {*more})
    notices = (f"columns that the model does not use are ignored: {listed(more)}",) if more else ()
    return replace(known, target=found, id=known.id if known.id in table.columns else None), notices


def form_by_place(table: TableFile, width: int, target: str | None = None) -> Form:
    """Return the form of a new table for unnamed training data: columns in order, without the target. A table with as
    many columns as features has no target, unless one is named.
    """
    if target is None and len(table.columns) == width:
        check_columns(table)
        return Form(None, table.columns)
    return form_of(table, target)


def check_columns(table: TableFile, unused: Container[str] = (), choosable: Container[str] = ()) -> None:
    """Refuse columns, but ``unused`` ones, without a name of their own; a hint is `drop` for those it can leave out."""
    places: dict[str, list[str]] = {}
    for k, name in enumerate(table.columns, 1):
        places.setdefault(name, []).append(str(k))
    for name, found in places.items():
        if name in unused or name and len(found) == 1:
            continue
        what = f"columns {' and '.join(found)} have the name '{name}'" if name else f"column {found[0]} has no name"
        hint = "rename one of them" if name else "give it a name"
        way = f", or leave out all of this name: `drop={name}`" if name else "; row numbers are left out by `drop=''`"
        raise DataError(f"{table.name}: {what}", hint + way * (name in choosable))


class Vocabulary:
    """The distinct texts of a column and their numbers.

    If ``values`` are given, no other text gets a number; those in ``without`` never do, nor does ``base``, which counts
    as known.
    """

    def __init__(self, values: Sequence[str] = (), without: Sequence[str] = (), base: str | None = None):
        self.closed, self.without, self.base = bool(values), without, base
        self.places = {value: k for k, value in enumerate(values)}
        self.unknown, self.gaps = 0, False

    def numbers(self, texts: Texts) -> np.ndarray:
        """Return the number of each cell, -1 for missing cells and -2 for texts without a number."""
        if not self.closed:
            for value in texts.values:
                if value not in self.without:
                    self.places.setdefault(value, len(self.places))
        table = np.array([*(self.places.get(value, -1) for value in texts.values), -1], dtype=np.int64)
        numbers = np.where((texts.codes >= 0) & (table[texts.codes] < 0), -2, table[texts.codes])
        strange = np.array([*(value not in self.places and value != self.base for value in texts.values), False])
        self.unknown += int(np.count_nonzero(strange[texts.codes]))
        self.gaps = self.gaps or bool(np.any(texts.codes < 0))
        return numbers

    def order(self) -> tuple[tuple[str, ...], np.ndarray]:
        """Return the texts, sorted, and the place of each number among them."""
        if self.closed:
            return tuple(self.places), np.arange(len(self.places))
        names = sorted(self.places)
        rank = np.empty(len(names), dtype=np.int64)
        rank[[self.places[name] for name in names]] = np.arange(len(names))
        return tuple(names), rank


class Target:
    """The target column: numbers as long as all cells are, otherwise text labels.

    A ``name`` of None means that no label is known. ``given``: every row must have a label; ``names`` are the labels if
    they are known to be texts.
    """

    def __init__(self, name: str | None, given: bool = True, names: Sequence[str] | None = None):
        self.name, self.given = name, given
        self.numbers = Growing(np.float64)
        self.spellings = Spellings()
        self.vocabulary = None if names is None else Vocabulary(names, (UNKNOWN,))
        self.text: Fault | None = None  # the first cell that is not a number, if labels are texts

    def take(self, batch: Batch) -> list[Fault]:
        """Append the cells of a batch; return faults of cells that hold no label."""
        if self.name is None:
            self.numbers.extend(np.full(batch.size, np.nan))
            return []
        if self.vocabulary is None and not batch.is_text(self.name):
            values, faults = batch.numbers(self.name, truth=False)
            unknown = [fault for fault in faults if fault.message == MISSING[0]]
            others = [fault for fault in faults if fault.message != MISSING[0]]
            if any(not fault.token for fault in others):  # of the whole column
                return [replace(fault, hint=NAMED) for fault in faults]
            texts = any(fault.message != NOT_FINITE[0] for fault in others)
            if not texts:
                self._spell(batch, values)
                self.numbers.extend(values)
            if not texts or not self._become_texts(values):
                missing = [replace(fault, hint=UNLABELLED) for fault in unknown] if self.given else []
                return [*missing, *(replace(fault, hint=NUMBERS) for fault in others)]
        elif self.vocabulary is None:
            self._become_texts()
        assert self.vocabulary is not None
        found = batch.texts(self.name)
        nan = [k for k, value in enumerate(found.values) if is_numberlike(value)]  # not labels, as in LIBSVM text
        known = self._known if not batch.is_text(self.name) else str
        codes = self.vocabulary.numbers(
            Texts(found.codes, [UNKNOWN if is_numberlike(value) else known(value) for value in found.values])
        )
        if self.text is None:
            self.text = self._first_text(batch, found)
        self.numbers.extend(np.where(codes >= 0, codes, np.nan))
        lost = np.isin(found.codes, nan)
        where = np.flatnonzero(lost).tolist()
        faults = [batch.fault(k, self.name, found.values[found.codes[k]], *NOT_FINITE) for k in where]
        if self.given:
            where = np.flatnonzero((codes < 0) & ~lost).tolist()
            faults += [batch.fault(k, self.name, "", MISSING[0], UNLABELLED) for k in where]
        return faults

    def _spell(self, batch: Batch, values: np.ndarray) -> None:
        cells = None if self.spellings.full or self.name is None else batch.label_texts(self.name)
        if cells is None:
            return
        rows = range(len(cells) - 1, -1, -1)
        first = dict(zip(reversed(cells), rows, strict=True))  # the first row of each
        for row in sorted(first.values()):
            if np.isfinite(values[row]):
                self.spellings.note(self.numbers.size + row, float(values[row]), cells[row])
            if self.spellings.full:
                return

    def _known(self, text: str) -> str:
        """Return the known label that equals a text, which may write the same number in another way."""
        names = self.vocabulary.places if self.vocabulary is not None and self.vocabulary.closed else {}
        if text in names or not is_number(text):
            return text
        return next((name for name in names if is_number(name) and same_number(name, text)), text)

    @property
    def spelled(self) -> Spelled | None:
        """Return how numeric labels are written, if in an unusual way."""
        return None if self.vocabulary is not None else self.spellings.settled(self.numbers.array[: self.numbers.size])

    def _first_text(self, batch: Batch, found: Texts) -> Fault | None:
        """Return the first text label of a batch as the fault that it is for a regression."""
        texts = [value != UNKNOWN and not is_number(value) for value in found.values]
        rows = np.flatnonzero(np.array([*texts, False])[found.codes])
        if not rows.size or self.name is None:
            return None
        token = found.values[found.codes[rows[0]]]
        return batch.fault(int(rows[0]), self.name, token, "this is not a number", NUMBERS)

    def _become_texts(self, coming=()) -> bool:
        """Turn the numeric labels so far into texts; return False if they are so many that they must be targets."""
        so_far = self.numbers.array[: self.numbers.size]
        known = np.isfinite(so_far)
        values, codes = np.unique(so_far[known], return_inverse=True)
        if values.size + np.unique(coming).size > CLASSES:
            return False
        spelled = self.spellings.settled(so_far)
        if spelled is not None and spelled.fault:
            raise DataError(f"column '{self.name}': {spelled.fault}", "write labels that begin with a letter")
        self.vocabulary = Vocabulary(without=(UNKNOWN,))
        numbers = self.vocabulary.numbers(Texts(codes.ravel(), [label_text(value, spelled) for value in values]))
        so_far[known] = numbers
        return True

    def finish(self) -> tuple[np.ndarray, tuple[str, ...] | None]:
        """Return the labels as numbers, and their names if they are texts."""
        y = self.numbers.finish()
        if self.vocabulary is None:
            return y, None
        names = list(self.vocabulary.places)
        return sorted_labels(y, names) if self.vocabulary.closed else sorted_labels(*_merged(y, names))


def _merged(y: np.ndarray, names: list[str]) -> tuple[np.ndarray, list[str]]:
    """Merge names that write the same number, by its usual text if it is there; return new places and names."""
    groups: list[list[str]] = []
    near: dict[float, list[int]] = {}
    place = np.empty(len(names))
    for k, name in enumerate(names):
        found = near.setdefault(float(name), []) if is_number(name) else []
        same = next((j for j in found if same_number(groups[j][0], name)), None)
        if same is None:
            same = len(groups)
            groups.append([])
            found.append(same)
        groups[same].append(name)
        place[k] = same
    known = np.isfinite(y)
    y[known] = place[y[known].astype(np.int64)]
    return y, [_usual(group) for group in groups]


def _usual(texts: list[str]) -> str:
    usual = usual_text(float(texts[0])) if is_number(texts[0]) else texts[0]
    return usual if usual in texts else texts[0]
