"""The time of day, for people: it stands in lines of a log and in run.json, and nothing is decided by it."""

from __future__ import annotations

from datetime import datetime


def now() -> str:
    """Return the time of day with its offset from UTC: ``2026-03-01T12:00:00.123+01:00``."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def clock() -> str:
    """Return hours, minutes and seconds: ``12:00:00``."""
    return datetime.now().strftime("%H:%M:%S")
