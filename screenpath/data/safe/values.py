"""What a value of a JSON file may be: nothing that is read back is believed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from screenpath.data.safe.plugins import is_named
from screenpath.data.safe.wide import WIDEST


def is_text(value) -> bool:
    """Tell whether a value is a string."""
    return isinstance(value, str)


def is_flag(value) -> bool:
    """Tell whether a value is true or false."""
    return isinstance(value, bool)


def is_mapping(value) -> bool:
    """Tell whether a value is an object."""
    return isinstance(value, dict)


def is_number(value) -> bool:
    """Tell whether a value is a number that arithmetic can live with."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e308


def is_positive(value) -> bool:
    """Tell whether a value is a number above 0."""
    return is_number(value) and value > 0.0


def is_at_least_0(value) -> bool:
    """Tell whether a value is a number from 0 on."""
    return is_number(value) and value >= 0.0


def is_label(value) -> bool:
    """Tell whether a value is a number or a string."""
    return is_number(value) or is_text(value)


def is_rule(value) -> bool:
    """Tell whether a value is the name of a rule or a solver: words joined by ``+`` and ``-``, or a plug-in."""
    return is_text(value) and (value.replace("+", "").replace("-", "").isalnum() or is_named(value))


def one_of(names):
    """Return a function that tells whether a value is one of some strings."""
    return lambda value: is_text(value) and value in names


def is_whole(low: int, high: int = WIDEST):
    """Return a function that tells whether a value is a whole number between two, ends included."""
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def list_of(good):
    """Return a function that tells whether a value is a list of good ones."""
    return lambda value: isinstance(value, list) and all(map(good, value))


are_words = list_of(is_text)
are_numbers = list_of(is_number)


def are_names(value) -> bool:
    """Tell whether a value is a list of column names, each once."""
    good = are_words(value) and all(name.isidentifier() for name in value)
    return good and 0 < len(value) == len(set(value))


def wrong_entries(record: dict, needed: dict, possible: dict) -> Iterator[tuple[str, bool]]:
    """Yield the entries of a record that are not what they may be, and whether they are there.

    Entries are named by their path, ``data.sha256``; those that are ``possible`` may be missing or None.
    """
    for name, good in {**needed, **possible}.items():
        value: Any = record
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if (value is None and name in needed) or (value is not None and not good(value)):
            yield name, value is not None
