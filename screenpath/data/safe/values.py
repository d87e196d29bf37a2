"""What a value of a JSON file may be: everything read back is checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from screenpath.data.safe.plugins import is_named
from screenpath.numbers.csr import WIDEST


def is_text(value) -> bool:
    return isinstance(value, str)


def is_flag(value) -> bool:
    return isinstance(value, bool)


def is_mapping(value) -> bool:
    return isinstance(value, dict)


def is_number(value) -> bool:
    """Tell whether a value is a finite number that does not overflow in arithmetic."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e308


def is_positive(value) -> bool:
    return is_number(value) and value > 0.0


def is_at_least_0(value) -> bool:
    return is_number(value) and value >= 0.0


def is_label(value) -> bool:
    return is_number(value) or is_text(value)


def is_rule(value) -> bool:
    """Tell whether a value is the name of a rule or a solver: words joined by ``+`` and ``-``, or a plug-in."""
    return is_text(value) and (value.replace("+", "").replace("-", "").isalnum() or is_named(value))


def one_of(names):
    """Return a test for one of some strings."""
    return lambda value: is_text(value) and value in names


def is_whole(low: int, high: int = WIDEST):
    """Return a test for a whole number between two, ends included."""
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def list_of(good):
    """Return a test for a list of values that pass ``good``."""
    return lambda value: isinstance(value, list) and all(map(good, value))


def has(entries: dict, alone: bool = False):
    """Return a test for a mapping with these entries, each of which passes its own; ``alone``: it has no others."""
    return lambda value: (
        is_mapping(value)
        and value.keys() >= entries.keys()
        and (not alone or len(value) == len(entries))
        and all(good(value[name]) for name, good in entries.items())
    )


are_words = list_of(is_text)
are_numbers = list_of(is_number)


def are_names(value) -> bool:
    """Tell whether a value is a non-empty list of distinct column names."""
    good = are_words(value) and all(name.isidentifier() for name in value)
    return good and 0 < len(value) == len(set(value))


def wrong_entries(record: dict, needed: dict, possible: dict) -> Iterator[tuple[str, bool]]:
    """Yield the invalid entries of a record, and whether they are present.

    Entries are named by their path, ``data.sha256``; ``possible`` ones may be missing or None.
    """
    for name, good in {**needed, **possible}.items():
        value: Any = record
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if (value is None and name in needed) or (value is not None and not good(value)):
            yield name, value is not None
