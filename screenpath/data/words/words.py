"""Text labels of LIBSVM files: all labels of a file are words, or none is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from screenpath.data.words.faults import label_fault, mixed_labels
from screenpath.data.words.labels import label_text
from screenpath.data.words.numerals import is_numberlike

# Begin of a line whose label may be a word; the parser decides.
WORD = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t\r\v\f]*([A-Za-z\x80-\xff][^\s:,#]*)(?=[ \t\r\v\f\n]|$)", re.MULTILINE)
BLANK = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\v\f]*(?:#.*|\?.*)?$")
OTHER = -1  # code of a token that is no label


class Words:
    """The labels of a file, which the first one decides to be words or numbers.

    Parameters
    ----------
    names : sequence of str, optional
        All labels if they are known to be words; empty if they are known to be numbers.

    Attributes
    ----------
    texts : bool or None
        Whether labels are words; None before the first one.
    """

    def __init__(self, names: Sequence[str] | None = None):
        self.texts = None if names is None else bool(names)
        self.closed, self.first = bool(names), names[0] if names else ""
        self.names = list(names or ())
        self._codes = {name.encode(): k for k, name in enumerate(self.names)}

    def take(self, words: list, labels: np.ndarray, known: np.ndarray) -> list:
        """Write the codes of words to ``labels``, in the order of first occurrence; return faults.

        Parameters
        ----------
        words : list of (int, int, bytes)
            Row, place in the text and token of each label of a block that is not a number.
        labels : ndarray of shape (rows,)
        known : ndarray of bool of shape (rows,)
            Rows that have a label and no other fault.

        Returns
        -------
        list of (int, int or None, callable)
            For each wrong label its row, place in the text (None for a number) and a function of source and line that
            makes the fault.
        """
        words = [word for word in words if known[word[0]]]
        numbers = known.copy()
        numbers[[row for row, _, _ in words]] = False
        if self.texts is None:
            self._settle(words, labels, numbers)
        if not self.texts:
            return [(row, start, partial(label_fault, token=token)) for row, start, token in words]
        found = []
        for row, start, token in words:
            code = self._codes.get(token)
            if code is None:
                code = self._codes[token] = self._enter(token)
            labels[row] = code
            if code == OTHER:
                found.append((row, start, partial(label_fault, token=token)))
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

    def _enter(self, token: bytes) -> int:
        name = None if self.closed else label_of(token)
        if name is None:
            return OTHER
        self.names.append(name)
        return len(self.names) - 1


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
