"""What a column of a table holds, and what to do with it: for faults, for ``inspect`` and its command line."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from screenpath.data.files.dataset import Form
from screenpath.data.files.table import TableFile

COMMAS = re.compile(r"[-+]?[0-9.]*,[0-9.,]*[0-9](?:[eE][-+]?[0-9]+)?")  # decimal, or between thousands
THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?")
AUTO = 20  # most values of a text column that is worth a feature for each
MOST = 1000  # different values that are counted
ODD = 0.1  # share of texts up to which a column is one of numbers with gaps
FEW = 10  # most different numbers that are labels
FOLDS = 5  # a label must occur so often to be in each
CELLS = 1 << 18  # of a batch
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ].*)?|\d\d?[./-]\d\d?[./-](\d{4}|\d\d)")
HINTS = {
    "number": "write a number",
    "drop": "leave the column out: `drop={0}`",
    "date": "leave the column out: `drop={0}`, or write numbers, such as days since a day",
    "id": "leave the column out: `drop={0}`, or let it name the rows: `id={0}`",
    "one_hot": "write a number, leave the column out: `drop={0}`, or encode its texts: `one_hot={0}`",
    "comma": "say what the comma is: `decimal=,` or `thousands=,`",
    "na": "write a number, or say that it is a missing value: `na={1}` with `missing=median`",
}


@dataclass
class Column:
    """What a column of a table holds."""

    name: str
    rows: int = 0
    missing: int = 0  # cells without a value
    texts: int = 0  # cells that are neither numbers nor missing
    values: Counter = field(default_factory=Counter)  # how often each occurs, of some more than MOST at most
    low: float = np.inf  # low, high: of the numbers
    high: float = -np.inf
    rising: bool = True  # whether each number is by 1 above that of the row before

    @property
    def different(self) -> int:
        return len(self.values)

    @property
    def tokens(self) -> list[str]:
        """Return the different texts, sorted."""
        return sorted(value for value in self.values if isinstance(value, str))

    @property
    def kind(self) -> str:
        tokens = self.tokens
        if not tokens:
            return "numbers" if self.values else "dates" if self.texts else "empty"
        if all(map(DATE.fullmatch, tokens)):
            return "dates"
        if all(map(COMMAS.fullmatch, tokens)):
            return "commas"
        return "text" if self.texts > ODD * (self.rows - self.missing) else "numbers, texts"

    @property
    def option(self) -> str | None:
        """Return the option that a column needs to be read, a key of ``HINTS``; None for a column of numbers."""
        kind = self.kind
        if kind == "numbers":
            counts = self.rising and not self.missing and self.rows > AUTO
            return "drop" if counts else None
        if kind == "numbers, texts":
            return "na" if len(self.tokens) == 1 else "number"
        if kind == "text" and self.different <= min(AUTO, max(2, self.texts / 2)):  # else nearly all are different
            return "one_hot"
        text = "id" if self.different == self.rows else "drop"
        return {"dates": "date", "empty": "drop", "commas": "comma"}.get(kind, text)

    @property
    def hint(self) -> str:
        return HINTS[self.option or "number"].format(self.name, (*self.tokens, "")[0])

    @property
    def todo(self) -> str:
        """Return the options that a column needs, one way of several."""
        grouped = all(map(THOUSANDS.fullmatch, self.tokens))
        ways = {
            "drop": "`drop`", "date": "`drop`", "id": "`id` or `drop`", "one_hot": "`one_hot`", "na": "`na={1}`",
            "number": "write numbers", "comma": "`thousands`" if grouped else "`decimal`",
            None: "`missing`" if self.missing else "",
        }  # fmt: skip
        return ways[self.option].format(self.name, (*self.tokens, "")[0])

    @property
    def words(self) -> tuple[str, ...]:
        """Return name, kind, different and missing values, and range."""
        different = f"{self.different:,}" if self.different <= MOST else f"over {MOST:,}"
        return self.name or "''", self.kind, different, f"{self.missing:,}", self._range

    @property
    def _range(self) -> str:
        if self.kind.startswith("numbers"):
            return f"{self.low:g} to {self.high:g}" + "".join(f", '{token}'" for token in self.tokens[:3])
        values = [f"{value:g}" if isinstance(value, float) else value for value in self.values]
        return ", ".join(sorted(values)[:3]) + (", ..." if self.different > 3 else "")

    def add(self, values: np.ndarray, texts: Counter, count: int) -> None:
        """Add numbers (nan where there is none) and the texts of ``count`` cells among them."""
        found = values[np.isfinite(values)]
        follows = self.rows == 0 or (values.size > 0 and values[0] == self.high + 1.0)
        self.rising = self.rising and found.size == values.size and follows and bool(np.all(np.diff(values) == 1.0))
        if found.size:
            self.low, self.high = min(self.low, float(found.min())), max(self.high, float(found.max()))
        self.rows, self.texts = self.rows + values.size, self.texts + count
        self.missing += values.size - found.size - count
        if self.different <= MOST:
            numbers, counts = np.unique(found, return_counts=True)
            self.values.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
            self.values.update(texts)


def columns_of(table: TableFile) -> list[Column]:
    """Return what each column of a table holds; one pass."""
    found = {name: Column(name) for name in table.columns}
    for batch in table.batches(max(1, CELLS // len(found)), table.columns):
        plain = [name for name, column in found.items() if not (column.texts or column.missing)]
        whole, places = batch.block(plain) if plain else None, {name: j for j, name in enumerate(plain)}
        for name, column in found.items():
            if whole is not None and name in places:
                column.add(whole[:, places[name]], Counter(), 0)
            elif batch.is_text(name):
                texts = batch.texts(name)
                counts = np.bincount(texts.codes[texts.codes >= 0], minlength=len(texts.values)).tolist()
                cells = Counter(dict(zip(texts.values, counts, strict=True)))
                column.add(np.full(batch.size, np.nan), cells, sum(counts))
            else:
                values, faults = batch.numbers(name, gaps=True)
                whole_column = any(not fault.token for fault in faults)
                values = np.full(batch.size, np.nan) if whole_column else values
                cells = Counter(fault.token for fault in faults if fault.token)
                column.add(values, cells, batch.size if whole_column else len(faults))
    return list(found.values())


def target_of(columns: Sequence[Column]) -> Column:
    """Return the column that is most likely the target: the last one of two values, else of few, else of any."""
    some = [column for column in reversed(columns) if column.different > 1 and column.kind in ("text", "numbers")]
    two = [column for column in some if column.different == 2]
    few = [column for column in some if column.different <= AUTO]
    return (*two, *few, *some, columns[-1])[0]


def command_of(source: str, columns: Sequence[Column], form: Form) -> str | None:
    """Return a command line that learns a table's target, cross-validated if labels occur often; or None."""
    how, commas = form.cells, []
    target = next(column for column in columns if column.name == form.target)
    named: dict[str, list[str]] = {"id": [], "drop": [], "one_hot": [], "na": list(how.na)}
    named["id"] += [] if form.id is None else [form.id]
    for column in columns:
        option = column.option
        if column is target or column.name == form.id:
            option = None
        elif column.name not in form.columns:
            option = "drop"
        elif column.name in form.one_hot and option != "one_hot":  # as the user wishes
            named["one_hot"].append(column.name)
            option = None
        if option == "na":
            named["na"] += column.tokens
        elif option == "comma":
            commas += column.tokens
        elif option == "one_hot":
            named["one_hot"] = ["auto", *(name for name in named["one_hot"] if name != "auto")]
        elif option is not None:
            named["id" if option == "id" and not named["id"] else "drop"].append(column.name)
    left = [column for column in columns if column.name not in (*named["id"], *named["drop"])]
    if target.different < 2 or len(left) < 2:
        return None
    gaps = any(column.missing or column.option == "na" for column in left if column is not target)
    missing = how.missing if how.missing != "error" else "median" if gaps else "drop" if target.missing else None
    labels = target.different if target.kind != "numbers" or target.different <= FEW else 0
    model = "svm" if labels == 2 else "sparse-svm" if labels else "lad"
    words = ["cv"] if not labels or min(target.values.values()) >= FOLDS else []
    words = ["screenpath", *words, model, source, "--target", target.name]
    for option, names in named.items():
        plain = [name for name in names if name and not re.search(r"[,:/!]", name) and option != "na"]
        lists = [",".join(plain)] * bool(plain) + [name for name in names if name not in plain]
        words += [word for text in lists for word in (f"--{option.replace('_', '-')}", text)]
    if commas:
        grouped = all(map(THOUSANDS.fullmatch, commas))
        points = any("." in text for text in commas)
        how = replace(how, thousands=",") if grouped else replace(how, decimal=",", thousands="." if points else "")
    words += [*how.flags(), *(["--missing", missing] if missing else [])]
    words += ["--missing-indicator"] if how.missing_indicator else []
    return shlex.join([*words, "--scale", "standard"])
