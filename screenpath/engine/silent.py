"""A run that nobody listens to."""

from __future__ import annotations

import contextlib
from typing import Any


class Silent:
    """In place of a console (:class:`screenpath.report.console.Console`): nobody hears anything."""

    quiet, progress = True, False

    def __getattr__(self, name: str) -> Any:
        return _nothing


def _nothing(*arguments, **more):
    """Say nothing, or return a context in which nothing is said."""
    return contextlib.nullcontext()
