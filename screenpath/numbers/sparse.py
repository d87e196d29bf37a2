"""scipy.sparse, loaded on first use: a path on dense rows needs only :func:`issparse`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def issparse(X) -> bool:
    """Tell whether this is an array or a matrix of scipy.sparse, without loading it."""
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and bool(loaded.issparse(X))


def __getattr__(name: str) -> Any:
    return getattr(import_module("scipy.sparse"), name)
