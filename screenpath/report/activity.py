"""Progress of what is under way: how much is done, and how long the rest may take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

MEGABYTE = 1e6


@dataclass
class Activity:
    """One activity that takes time."""

    title: str
    unit: str = ""  # what is counted; empty if nothing is
    total: float = 0.0  # of these units; 0 if unknown
    done: float = 0.0
    # whether ``total`` is only a bound: then the time left is unknown
    bound: bool = False
    # ``covered() -> float``, the share of the work that is done, if it is not ``done / total``
    covered: Callable | None = None
    look: Callable | None = None  # ``look() -> (file, done, total)`` in bytes, or None: called if nothing counts
    pulse: Any = None  # ``solve.base.Pulse`` of the step under way
    step: Any = None  # ``walk.step.Step``: the last finished one
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self):
        self._first = self._share()

    def refresh(self) -> None:
        """Update the progress by ``look``, if nothing counts."""
        found = self.look() if self.look is not None else None
        if found is not None:
            title = f"reading {os.path.basename(found[0])}"
            if title != self.title and self.unit:  # the next file
                self.began = time.monotonic()
            self.title, self.unit, self.done, self.total = title, "MB", found[1] / MEGABYTE, found[2] / MEGABYTE

    def turn(self, title: str, covered: Callable | None = None) -> None:
        """Continue with something that is not counted; without ``covered`` its time left is unknown."""
        if self.unit in ("", "MB"):
            self.title, self.unit, self.done, self.total = title, "", 0.0, 0.0
            self.look, self.covered, self.began = None, covered, time.monotonic()
            self._first = self._share()

    def _share(self) -> float:
        if self.covered is not None:
            return self.covered()
        return 0.0 if self.bound or not self.total else self.done / self.total

    @property
    def gone(self) -> float:
        return time.monotonic() - self.began

    @property
    def left(self) -> float | None:
        """Return the seconds left at the present rate; None if unknown."""
        share = self._share()
        if not share > self._first:
            return None
        left = self.gone * (1.0 - share) / (share - self._first)
        return left if isfinite(left) and left > 0.0 else None

    # -- for people ----------------------------------------------------------------------------------------------

    def count(self) -> str:
        """Return ``12 of 100 done``."""
        if not self.unit:
            return ""
        if self.unit == "MB":
            return f"{self.done:.0f} of {self.total:.0f} MB"
        most = "at most " if self.bound else ""
        unit = "" if self.unit == "steps" else f"{self.unit} "
        return f"{self.done:.0f} of {most}{self.total:.0f} {unit}done"

    def times(self) -> str:
        """Return the time gone and the time left in words; nothing within the first second."""
        if self.gone < 1.0:
            return ""
        gone, left = f"{duration(self.gone)} gone", self.left
        return gone if left is None else f"{gone}, about {duration(left)} left"

    def progress(self) -> str:
        parts = [self.count(), self.times()]
        if self.step is not None:
            s = self.step
            parts[:0] = [f"step {s.step} ({values(s.parameters)})"]
            parts[2:2] = [f"relative gap {s.rel_gap:.1e}", f"{100.0 * s.rejection_ratio:.1f} % screened"]
        return f"{self.title}: {', '.join(part for part in parts if part)}"

    def heartbeat(self) -> str:
        """Return the line for what is still under way."""
        where = self.under_way()
        if where is None:
            return f"{self.title}: {', '.join(part for part in (self.count(), self.times()) if part)}"
        parameters, seconds, gap, passes = where
        known = "gap not known yet" if gap is None else f"relative gap {gap:.1e} so far, {passes:.1f} passes"
        point = f"{values(parameters)} under way for {duration(seconds)}, {known}"
        return f"{self.title}: {point}; {', '.join(part for part in (self.count(), self.times()) if part)}"

    def under_way(self) -> tuple | None:
        """Return parameters, seconds, relative gap (None: unknown) and passes of the step under way."""
        pulse = self.pulse
        parameters = pulse.parameters if pulse is not None else None
        if parameters is None:
            return None
        gap = pulse.rel_gap if isfinite(pulse.rel_gap) else None
        return parameters, time.monotonic() - pulse.since, gap, pulse.passes

    # -- for machines --------------------------------------------------------------------------------------------

    def fields(self) -> dict:
        left = self.left
        found = {"title": self.title, "unit": self.unit or None, "done": self.done, "total": self.total or None}
        found |= {"total_is_bound": self.bound, "elapsed_s": round(self.gone, 3)}
        return {**found, "left_s": None if left is None else round(left, 3)}

    def step_fields(self) -> dict:
        """Return the last finished step by name."""
        s = self.step
        if s is None:
            return {}
        known = {"step": s.step, "parameters": dict(s.parameters), "status": s.status, "rel_gap": s.rel_gap}
        return {**known, "rejection_ratio": s.rejection_ratio, "passes": s.passes}

    def beat_fields(self) -> dict:
        """Return the step under way by name."""
        where = self.under_way()
        names = ("parameters", "under_way_s", "rel_gap", "passes")
        return {} if where is None else dict(zip(names, where, strict=True))


def values(parameters: dict) -> str:
    """Return ``C = 0.1``."""
    return ", ".join(f"{name} = {value:.4g}" for name, value in parameters.items())


def duration(seconds: float) -> str:
    """Return ``5 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds == inf:
        return "for ever"
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
