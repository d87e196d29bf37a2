"""Checked arrays of a checkpoint: what comes from a file is checked before any arithmetic.

Every function raises ValueError with the name of the wrong entry.
"""

from __future__ import annotations

import numpy as np


def vector(state: dict, name: str, size: int, low=-np.inf, high=np.inf) -> np.ndarray:
    """Return a vector of finite numbers within ``low`` and ``high`` (numbers, or one per entry)."""
    return matrix(state, name, (size,), low, high)


def matrix(state: dict, name: str, shape: tuple, low=-np.inf, high=np.inf) -> np.ndarray:
    """Return an array of that shape, see :func:`vector`."""
    value = _array(state, name, "f", shape)
    if not (np.isfinite(value).all() and np.all(value >= low) and np.all(value <= high)):
        raise ValueError(f"{name} holds numbers that it cannot hold")
    return value


def number(state: dict, name: str, low: float = -np.inf, high: float = np.inf) -> float:
    """Return a number between ``low`` and ``high``, ends included."""
    value = float(_array(state, name, "f", ()))
    if not low <= value <= high:
        raise ValueError(f"{name} is {value:g}")
    return value


def positive(state: dict, name: str) -> float:
    return number(state, name, np.finfo(np.float64).smallest_subnormal, np.finfo(np.float64).max)


def count(state: dict, name: str) -> int:
    value = int(_array(state, name, "iu", ()))
    if value < 0:
        raise ValueError(f"{name} is {value}")
    return value


def places(state: dict, name: str, size: int) -> np.ndarray:
    """Return increasing places in a vector of that size."""
    value = _array(state, name, "iu", None)
    if value.ndim != 1 or np.any(value < 0) or np.any(value >= size) or np.any(value[1:] <= value[:-1]):
        raise ValueError(f"{name} holds places that there are not")
    return value.astype(np.int64, copy=False)


def decisions(state: dict, name: str, size: int) -> np.ndarray:
    """Return the decision on each dual variable: -1, 0 or 1."""
    value = _array(state, name, "i", (size,))
    if np.any(np.abs(value) > 1):
        raise ValueError(f"{name} holds decisions that there are not")
    return value.astype(np.int8, copy=False)


def codes(state: dict, name: str, sizes: tuple, highest: int) -> np.ndarray:
    """Return a vector of bytes of one of these sizes, none above ``highest``."""
    value = _array(state, name, "u", None)
    if value.ndim != 1 or value.size not in sizes or np.any(value > highest):
        raise ValueError(f"{name} holds codes that there are not")
    return value.astype(np.uint8, copy=False)


def marks(state: dict, name: str, rows: int, size: int) -> np.ndarray:
    """Return packed bits, ``rows`` times ``size``, at least one of them set in each row."""
    value = _array(state, name, "u", (rows, (size + 7) // 8))
    if value.dtype != np.uint8 or not np.unpackbits(value, axis=1, count=size).any(axis=1).all():
        raise ValueError(f"{name} holds marks that there are not")
    return value


def _array(state: dict, name: str, kinds: str, shape: tuple | None) -> np.ndarray:
    if name not in state:
        raise ValueError(f"there is no {name}")
    value = np.asarray(state[name])
    if value.dtype.kind not in kinds or shape not in (None, value.shape):
        raise ValueError(f"{name} has another form: {value.dtype} of shape {value.shape}")
    return value
