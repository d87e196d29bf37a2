"""The messages for every fault of a LIBSVM file, for the reader and for ``inspect``; text labels of such files.

All labels of a file are words, or none is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from screenpath.data.words.labels import label_text
from screenpath.data.words.numerals import is_number, is_numberlike
from screenpath.errors import DataError, shown
from screenpath.kernels.rows import parse

_FORMAT = "a line is 'label index:value index:value ...', indices from 1, increasing"
_WORDS = {
    parse.LABEL: (
        "the label is not a number",
        _FORMAT + "; labels may be texts where all are, and begin with a letter; predict takes lines without one "
        "with `no_labels`",
    ),
    parse.INDEX: ("the index is not a whole number", _FORMAT),
    parse.INDEX_ZERO: ("index 0 in a file counted from 1", "if its indices start at 0, add `zero_based`"),
    parse.INDEX_NEGATIVE: ("a negative index", _FORMAT),
    parse.UNSORTED: ("the indices are not in increasing order", "sort the features of the line by index"),
    parse.DUPLICATE: ("the index appears twice in the line", "keep one value for each feature"),
    parse.NO_VALUE: ("the value is missing", "write index:value, or leave the feature out if it is 0"),
    parse.VALUE: ("the value is not a number", _FORMAT),
    parse.NO_COLON: ("a feature without ':'", _FORMAT),
    parse.INDEX_HUGE: ("the index is too large", f"indices must stay below 10**{parse.INDEX_DIGITS}"),
    parse.CONTROL: ("a control byte: this is not text", "give LIBSVM text, plain or compressed (.gz, .bz2, .xz)"),
}
_MULTILABEL = ("a list of labels", "every sample needs exactly one label; split multilabel data into one file a label")
_CSV = (
    "this looks like CSV, not LIBSVM text",
    "CSV is read where its first line has the names of its columns; in LIBSVM text " + _FORMAT,
)
MANY = 20  # columns up to which a first line is made up
_QUOTED = (
    "this looks like CSV with a line break in a quoted cell",
    "write each row and the names of the columns on one line",
)
_ENCODED = ("this looks like CSV that is not UTF-8", "name its encoding, such as `encoding=latin-1`")
_RETURNS = ("this looks like CSV whose lines end in lone carriage returns", "convert them: tr '\\r' '\\n' < OLD > NEW")
_BELOW = ("this looks like CSV below other lines", "remove the {} above the names of the columns, comments too")
_WEIGHTED = (
    "a label:weight, or a line without its label",
    "write the label alone, and the weights of all samples to a file that `weights` names; predict takes lines "
    "without a label with `no_labels`",
)
_BARS = (
    "this looks like a table with | between cells, not LIBSVM text",
    "write CSV with a comma, a semicolon or a tab between cells; in LIBSVM text " + _FORMAT,
)
_BLANKS = _FORMAT + "; a table with blanks between cells, below the names of its columns, is read with `delimiter=' '`"
_NOT_FINITE = ("nan or infinity", "remove the sample or impute the value")
_NOT_ASCII = ("bytes that are no plain text", "save the file as UTF-8 or ASCII text without UTF-16 or binary parts")
_LONE_RETURNS = "its lines end in lone carriage returns; convert them: tr '\\r' '\\n' < OLD > NEW"
_WEIGHT = re.compile(rb"\s*[^:,\s]+:[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?(?:\s|$)")
SHOWN = 40  # characters of a token that a message shows


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in a file."""

    source: str
    line: int  # from 1
    token: str
    message: str
    hint: str
    column: str | None = None  # of a table
    unit: str = "line"  # what ``line`` counts: lines, or rows if the file has no lines
    more: int = 0  # further faults of this kind in the column, which are not listed

    def __str__(self) -> str:
        token = shown(self.token[: SHOWN + 1])
        token = token if len(token) <= SHOWN else token[: SHOWN - 3] + "..."
        column = "" if self.column is None else f", column '{shown(self.column)}'"
        what = f"{self.source}, {self.unit} {self.line}{column}: {self.message}" + (f": '{token}'" if token else "")
        return what + (f" (and {self.more:,} more such {self.unit}s)" if self.more else "")

    def error(self) -> DataError:
        return DataError(str(self), self.hint)


class Faults:
    """Faults in a table: the first of each kind per column is listed, the others are counted."""

    def __init__(self) -> None:
        self.listed: list[Fault] = []
        self._alike: Counter = Counter()

    def add(self, faults: list[Fault]) -> None:
        """Add faults, in order."""
        for fault in faults:
            kind = fault.column, fault.message
            self._alike[kind] += 1
            if self._alike[kind] == 1:
                self.listed.append(fault)

    def counted(self, most: int | None = None) -> list[Fault]:
        """Return the first ``most`` listed faults, each with the number of those like it."""
        return [replace(one, more=self._alike[one.column, one.message] - 1) for one in self.listed[:most]]


def name_fault(source: str, line: int, code: int, token: bytes, whole: bytes) -> Fault:
    """Return the :class:`Fault` of a code of ``kernels.rows.parse``, with its token and the ``whole`` line."""
    text = token.decode("utf-8", "replace")
    message, hint = _WORDS[code]
    if code in (parse.LABEL, parse.VALUE) and is_numberlike(text.rsplit(":", 1)[-1]):
        message, hint = _NOT_FINITE
    elif code == parse.LABEL and (b"," in token or (token[:1] == b'"' and whole.count(b'"') % 2)):
        message, hint = _MULTILABEL if b":" in whole else _csv_fault(line, whole or token)
    elif code == parse.NO_COLON and whole and b":" not in whole:
        message, hint = _csv_fault(line, whole) if b"," in whole else (message, _BLANKS)
    elif code == parse.LABEL and _WEIGHT.match(whole):
        message, hint = _WEIGHTED
    elif code == parse.LABEL and b"|" in token:
        message, hint = _BARS
    elif code == parse.LABEL and not (text.isprintable() and "\ufffd" not in text):
        message, hint = _NOT_ASCII
    elif code != parse.CONTROL and b"\r" in whole.rstrip() and b"\0" not in whole:  # binary files have them anywhere
        hint = _LONE_RETURNS
    return Fault(source, line, text, message, hint)


def _csv_fault(line: int, whole: bytes) -> tuple[str, str]:
    """Return why a line with commas was not read as the header of a CSV file."""
    if b"\r" in whole.rstrip():
        return _RETURNS
    try:
        text = whole.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _ENCODED
    if text.count('"') % 2:
        return _QUOTED
    cells = text.split(",")
    named = not any(map(is_number, cells))
    if line > 1 and named:
        return _BELOW[0], _BELOW[1].format("line" if line == 2 else f"{line - 1} lines")
    if line == 1 and not named:
        names = ",".join(f"x{j}" for j in range(1, len(cells))) if len(cells) <= MANY else "x1,x2,..."
        where, mark, rest = _CSV[1].partition(";")
        return _CSV[0], f"{where}, y for the labels: (echo {names},y; cat OLD) > NEW{mark}{rest}"
    return _CSV


def mixed_labels(source: str, line: int, number: str, word: str) -> Fault:
    return Fault(
        source, line, number, "a number where labels are texts",
        f"all labels are numbers, or all are texts that begin with a letter; the first one is {shown(word)}",
    )  # fmt: skip


def not_finite(source: str, line: int, token: bytes) -> Fault:
    return Fault(source, line, token.decode("utf-8", "replace"), "the number is too large for float64", _NOT_FINITE[1])


# Begin of a line whose label may be a word; the parser decides.
WORD = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t\r\v\f]*([A-Za-z\x80-\xff][^\s:,#]*)(?=[ \t\r\v\f\n]|$)", re.MULTILINE)
BLANK = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\v\f]*(?:#.*|\?.*)?$")
OTHER = -1  # code of a token that is no label


class Words:
    """The labels of a file, which the first one decides to be words or numbers.

    ``names`` are all labels if they are known to be words; empty if they are known to be numbers.
    """

    def __init__(self, names: Sequence[str] | None = None):
        self.texts = None if names is None else bool(names)  # whether labels are words; None before the first one
        self.closed, self.first = bool(names), names[0] if names else ""
        self.names = list(names or ())
        self._codes = {name.encode(): k for k, name in enumerate(self.names)}

    def take(self, words: list, labels: np.ndarray, known: np.ndarray) -> list:
        """Write the codes of words to ``labels``, shape (rows,), in the order of first occurrence.

        ``words`` has row, place in the text and token of each label of a block that is not a number; ``known``, shape
        (rows,), marks rows that have a label and no other fault. Returned is for each wrong label its row, place in the
        text (None for a number) and a function of source and line that makes the fault.
        """
        words = [word for word in words if known[word[0]]]
        numbers = known.copy()
        numbers[[row for row, _, _ in words]] = False
        if self.texts is None:
            self._settle(words, labels, numbers)
        wrong = partial(name_fault, code=parse.LABEL, whole=b"")
        if not self.texts:
            return [(row, start, partial(wrong, token=token)) for row, start, token in words]
        found = []
        for row, start, token in words:
            code = self._codes.get(token)
            if code is None:
                name = None if self.closed else label_of(token)
                code = self._codes[token] = OTHER if name is None else len(self.names)
                self.names += [] if name is None else [name]
            labels[row] = code
            if code == OTHER:
                found.append((row, start, partial(wrong, token=token)))
        return found + [
            (int(row), None, partial(mixed_labels, number=label_text(labels[row]), word=self.first))
            for row in np.flatnonzero(numbers)
        ]

    def _settle(self, words, labels, numbers) -> None:
        """Let the first known label decide for all."""
        word = next(((row, token) for row, _, token in words if label_of(token) is not None), (labels.size, b""))
        number = int(numbers.argmax()) if numbers.any() else labels.size
        if min(word[0], number) < labels.size:
            self.texts = word[0] < number
            self.first = word[1].decode() if self.texts else ""


def label_of(token: bytes) -> str | None:
    """Return the label that a token of the parser is; None if it cannot be one."""
    try:
        name = token.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return name if name and name[0].isalpha() and name.isprintable() and not is_numberlike(name) else None


def is_word(text: str) -> bool:
    """Tell whether a reader accepts a text as a label."""
    token = text.encode("utf-8", "surrogatepass")
    found = WORD.match(token)
    return found is not None and found[1] == token and label_of(token) == text


def first_is_word(lines: Iterable[bytes]) -> bool | None:
    """Tell whether the first label of some lines is a word; None if no line has a label."""
    for line in lines:
        if not BLANK.match(line.rstrip(b"\n")):
            found = WORD.match(line)
            return found is not None and label_of(found[1]) is not None
    return None


def words_of(block: bytes) -> set[str]:
    """Return the words in whole lines of text that may be labels."""
    return {name for token in set(WORD.findall(block)) if (name := label_of(token)) is not None}
