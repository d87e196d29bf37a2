"""What a value of a JSON file may be: nothing that is read back is believed."""

from __future__ import annotations

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


def is_whole(low: int, high: int = WIDEST):
    """Return a function that tells whether a value is a whole number between two, ends included."""
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def list_of(good):
    """Return a function that tells whether a value is a list of good ones."""
    return lambda value: isinstance(value, list) and all(map(good, value))


are_words = list_of(is_text)
