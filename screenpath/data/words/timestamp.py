"""The time of day, for logs and run.json; nothing depends on it."""

from __future__ import annotations

from datetime import datetime


def now() -> str:
    """Return the time of day with its offset from UTC: ``2026-03-01T12:00:00.123+01:00``."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def clock() -> str:
    """Return ``12:00:00``."""
    return datetime.now().strftime("%H:%M:%S")
