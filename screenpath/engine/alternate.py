"""What all comparisons share: variants that take turns, what a speed-up is, and the check that they agree."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

import numpy as np

from screenpath.errors import ScreenpathError
from screenpath.walk.step import CERTIFIED

ROUNDING = 1e-12  # relative; two intervals [dual, primal] may miss each other by this much


class DisagreementError(ScreenpathError):
    """Two variants certified different optimal values: one of them is wrong."""


@dataclass(eq=False)
class Variant:
    """One way to walk the path, and what it took."""

    rule: str  # rule or configuration
    marks: tuple[str, ...] = ()  # what else distinguishes it
    runs: list[dict] = field(default_factory=list)  # measurements, one a repeat; ``cpu_s`` is among them
    # shape (n_steps, 2): dual and primal value of every step that was reached
    intervals: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))

    @property
    def name(self) -> str:
        """Return the rule and the marks."""
        return "+".join((self.rule, *self.marks))

    def median(self, column: str) -> float:
        """Return the median of a measurement over the repeats."""
        return statistics.median(run[column] for run in self.runs)

    def note(self, reached: list, cpu_s: float, **more) -> None:
        """Keep what a walk took that reached these steps, and what else was measured of it."""
        rule_s, solve_s, certify_s = (sum(getattr(s, n) for s in reached) for n in ("screen_s", "solve_s", "certify_s"))
        self.runs.append(
            {
                "points": len(reached), "certified": sum(s.status == CERTIFIED for s in reached), "cpu_s": cpu_s,
                "total_s": sum(s.seconds for s in reached), "rule_s": rule_s, "solve_s": solve_s,
                "certify_s": certify_s, "epochs": sum(s.epochs for s in reached), **more,
            }
        )  # fmt: skip
        self.intervals = np.array([[s.dual, s.primal] for s in reached])

    def row(self, columns) -> dict:
        """Return the medians of measurements, and the points that every run has certified."""
        return {name: self.median(name) for name in columns} | {"certified": min(run["certified"] for run in self.runs)}

    def speedup(self, base: Variant) -> float:
        """Return the speed-up against another variant that took the same turns, see
        :data:`screenpath.engine.studies.SPEEDUP`."""
        turns = zip(base.runs, self.runs, strict=True)
        return statistics.median(a["cpu_s"] / max(b["cpu_s"], 1e-12) for a, b in turns)


def alternate(variants, repeats: int, run, progress=None) -> None:
    """Run the variants in turn, so many times each, and check that all certified the same values.

    ``run(variant)`` appends to the variant's ``runs`` and sets its ``intervals``.
    """
    for repeat in range(repeats):
        for variant in variants:
            if progress is not None:
                progress(f"run {repeat + 1}/{repeats}: {variant.name}")
            run(variant)
    check_agreement(variants)


def check_agreement(variants) -> None:
    """Raise :class:`DisagreementError` where one variant's dual value is above another's primal value."""
    reached = min(len(v.intervals) for v in variants)
    low = np.max([v.intervals[:reached, 0] for v in variants], axis=0)
    high = np.min([v.intervals[:reached, 1] for v in variants], axis=0)
    apart = np.flatnonzero(low > high + ROUNDING * np.abs(high))
    if apart.size:
        k = int(apart[0])
        duals, primals = ([v.intervals[k, j] for v in variants] for j in (0, 1))
        a, b = variants[int(np.argmax(duals))].name, variants[int(np.argmin(primals))].name
        raise DisagreementError(
            f"step {k}: '{a}' proves an optimum of at least {max(duals):.17g}, '{b}' reached {min(primals):.17g}",
            "one of the rules screened a row that it must not; please report the data and the command",
        )
