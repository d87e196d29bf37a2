"""Numbers in texts, and how a file writes numeric labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")  # as the parser of LIBSVM text accepts
NUMBERLIKE = {"nan", "inf", "infinity"}
WHOLE = 2**53  # float64 represents every whole number below
MOST = 4096  # labels with an unusual spelling; targets of a regression may be more
FEW = 64  # values searched one by one


def number_of(text: str) -> float:
    """Return the number that a text writes, without surrounding blanks; ValueError if LIBSVM text does not allow it.

    Python's ``float`` accepts more: ``1_0``, digits of other scripts, ``nan``, ``infinity``.
    """
    text = text.strip()
    if NUMBER.fullmatch(text) is None:
        raise ValueError(f"no number: '{text}'")
    return float(text)


def is_number(text: str) -> bool:
    return NUMBER.fullmatch(text.strip()) is not None


def usual_text(value: float) -> str:
    """Return the text of a number: ``3`` rather than ``3.0``."""
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < WHOLE else repr(float(value))


def same_number(one: str, other: str) -> bool:
    """Tell whether two texts of numbers denote exactly the same number."""
    if one == other:
        return True
    from fractions import Fraction

    exponents = [abs(int(text.lower().partition("e")[2] or 0)) for text in (one, other)]
    return max(exponents) < 400 and Fraction(one) == Fraction(other)


def is_plain(text: str) -> bool:
    """Tell whether a number says all that the text of a label says: a sign + and zeros behind the point aside."""
    if not is_number(text):
        return False
    value = float(text)
    plain = text.removeprefix("+")
    return plain in (usual_text(value), repr(value)) and same_number(text, repr(value))


def is_numberlike(text: str) -> bool:
    """Tell whether a text is nan or infinity as programs write it."""
    return text.lstrip("+-").lower() in NUMBERLIKE


def one_number(one: str, other: str) -> str:
    """Return the fault of two labels that float64 cannot distinguish."""
    return f"the labels {one} and {other} are one number in float64"


@dataclass(frozen=True)
class Spelled:
    """The texts of numeric labels that a file does not write as :func:`usual_text` does."""

    texts: Mapping[float, str] = field(default_factory=dict)  # from numbers to their first text in the file
    fault: str = ""  # why labels cannot be distinguished by their numbers; empty if they can

    def text(self, value: float) -> str:
        return self.texts.get(value) or usual_text(value)

    def record(self) -> dict:
        return {"texts": list(self.texts.values()), "fault": self.fault}

    @classmethod
    def of_record(cls, record: dict | None) -> Spelled | None:
        return None if record is None else cls({float(text): text for text in record["texts"]}, record["fault"])

    def __bool__(self) -> bool:
        return bool(self.texts or self.fault)


def is_spelled(value) -> bool:
    good = isinstance(value, dict) and set(value) == {"texts", "fault"} and isinstance(value["fault"], str)
    texts = value["texts"] if good else None
    return isinstance(texts, list) and all(isinstance(text, str) and is_number(text) for text in texts)


class Spellings:
    """The texts of labels, collected row by row."""

    def __init__(self):
        self._first: dict[float, tuple[int, str]] = {}
        self.fault, self.full = "", False

    def note(self, row: int, value: float, text: str) -> None:
        known = self._first.get(value)
        if known is not None:
            self._compare(known[1], text)
        elif text != usual_text(value) and not self.full:
            self._first[value] = row, text
            self.full = len(self._first) >= MOST

    def _compare(self, one: str, other: str) -> None:
        if not self.fault and not same_number(one, other):
            self.fault = one_number(one, other)

    def settled(self, y: np.ndarray) -> Spelled | None:
        """Return the first spelling of each of the labels ``y``, of all rows; None if all are usual."""
        import numpy as np

        if self.full:
            return Spelled({}, f"at least {MOST:,} labels are not written as numbers usually are")
        places = None
        if len(self._first) > FEW:
            places = dict(zip(*(part.tolist() for part in np.unique(y, return_index=True)), strict=True))
        texts = {}
        for value, (row, text) in self._first.items():
            earlier = np.any(y[:row] == value) if places is None else places.get(value, row) < row
            if earlier:  # as usual
                self._compare(usual_text(value), text)
            else:
                texts[value] = text
        found = Spelled(texts, self.fault)
        return found or None


class FirstTexts:
    """The first text of each label, over the parts of a file."""

    def __init__(self):
        self.texts: dict[float, str] = {}
        self.fault = ""

    def add(self, labels, spelled: Spelled | None) -> None:
        """Add the distinct labels of a part, and how it writes them."""
        here = spelled or Spelled()
        self.fault = self.fault or here.fault
        for value in labels:
            text = here.text(value)
            known = self.texts.setdefault(value, text)
            if not self.fault and not same_number(known, text):
                self.fault = one_number(known, text)

    @property
    def spelled(self) -> Spelled | None:
        """Return the spellings so far; None if all are usual."""
        return Spelled({v: text for v, text in self.texts.items() if text != usual_text(v)}, self.fault) or None
