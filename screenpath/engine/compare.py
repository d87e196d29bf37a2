"""The papers' speed-up tables: the same path walked in several ways, which take turns and are checked for agreement."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from screenpath.data.words.tables import aligned
from screenpath.engine.attack import audited
from screenpath.engine.path import Path, limits_of
from screenpath.errors import ScreenpathError, shown
from screenpath.problem.l1svm import L1SVM
from screenpath.walk.step import CERTIFIED

ROUNDING = 1e-12  # relative; two intervals [dual, primal] may miss each other by this much
# Columns of a table for a terminal, the most wanted first.
FIRST = ("unsafe", "speedup", "cpu_s", "certified", "points", "mean_rejection", "passes", "epochs")


class DisagreementError(ScreenpathError):
    """Two variants certified different optimal values: one of them is wrong."""


@dataclass(eq=False)
class Variant:
    """One way to walk the path, and what it took."""

    cells: dict[str, Any]  # what distinguishes it in the table: rule or configuration, shrinking, start
    make: Callable  # ``make() -> (screening, solver)``
    marks: tuple[str, ...] = ()  # what its name has behind the first cell
    base: Variant | None = None  # what its speed-up refers to; None: itself
    runs: list[dict] = field(default_factory=list)  # measurements, one a repeat
    steps: list = field(default_factory=list)  # of the last run, those that were reached

    @property
    def name(self) -> str:
        """Return the rule and the marks."""
        return "+".join((*list(self.cells.values())[:1], *self.marks))

    @property
    def finished(self) -> bool:
        """Tell whether every run certified every grid point."""
        return all(run["certified"] == run["points"] for run in self.runs)

    def row(self, measured) -> dict:
        """Return the medians of measurements, and the points that every run has certified."""
        medians = {name: statistics.median(run[name] for run in self.runs) for name in measured}
        return medians | {"certified": min(run["certified"] for run in self.runs)}

    @property
    def speedup(self) -> float:
        """Return the speed-up, see :data:`screenpath.engine.studies.SPEEDUP`."""
        turns = zip((self.base or self).runs, self.runs, strict=True)
        return statistics.median(a["cpu_s"] / max(b["cpu_s"], 1e-12) for a, b in turns)

    def path(self, model, grid, limits) -> Path:
        """Return the path that this variant walks."""
        screening, solver = self.make()
        return Path(model, grid, screening, solver, limits)

    def walk(self, path: Path) -> list:
        """Walk the path, note what that took (``cpu_s`` by the process, all others by the clock); return the grid."""
        solves, since = _watched(path.solver), time.process_time()
        found = []
        for step, _ in path.walk():
            step.coefficients = None  # of many grid points they would be many times the data
            found.append(step)
        cpu_s, many = time.process_time() - since, max(len(found), 1)
        rule_s, solve_s, certify_s = (sum(getattr(s, n) for s in found) for n in ("screen_s", "solve_s", "certify_s"))
        self.steps = found
        self.runs.append(
            {
                "points": len(path.grid), "certified": sum(s.status == CERTIFIED for s in found), "cpu_s": cpu_s,
                "total_s": sum(s.seconds for s in found), "rule_s": rule_s, "solve_s": solve_s, "certify_s": certify_s,
                # The papers' "Init.": the first grid point, solved unscreened, and what the rule needs besides.
                "init_s": sum(s.seconds for s in found[:1]), "epochs": sum(s.epochs for s in found),
                "passes": sum(s.passes for s in found) / many,
                "mean_rejection": sum(s.rejection_ratio for s in found) / many,
                "mean_scaling": sum(s.cells.get("scaling_ratio", s.rejection_ratio) for s in found) / many,
                "search_s": getattr(path.screening, "search_s", 0.0),  # of ``rule_s``, in line searches
                "wasted_s": sum(sum(seconds[:-1]) for seconds in solves.values()),  # solves that had to be repeated
                "over_hits": sum(over_hits(path.model, s) for s in found) if isinstance(path.model, L1SVM) else 0,
            }
        )  # fmt: skip
        return [path.grid[k] for k in range(len(path.grid))]


def over_hits(model, step) -> int:
    """Return the inactive features that screening kept at a step (Zhao 2014, Fig. 2)."""
    return model.size - step.n_features_screened - step.nnz_w


def compare(variants: list[Variant], build, grid, options: dict, progress=None, contradicted=None) -> list[dict]:
    """Walk the same grid by every variant, in turn: A B C A B C ...

    Parameters
    ----------
    variants : list of Variant
        They get what was measured.
    build : callable
        ``build() -> model``, called for each run, so that no run profits from another's data structures.
    grid : callable
        ``grid(model) -> sequence``. An eps-path grows with the solutions of the first run; the others walk the points
        that it found.
    options : dict
        ``repeats``, ``tol``, ``max_epochs`` and, for each run, ``time_limit``.
    progress : callable, optional
        Called with a line of text before each run.
    contradicted : callable, optional
        See :class:`screenpath.walk.audit.Audit`: each variant walks once more, for its unsafe decisions.

    Returns
    -------
    list of dict
        Further cells of each variant: ``unsafe`` where that was asked for.

    Raises
    ------
    DisagreementError
        If two variants' certified values contradict each other.
    """
    values: Any = None
    for repeat in range(options["repeats"]):
        for variant in variants:
            if progress is not None:
                progress(f"run {repeat + 1}/{options['repeats']}: {variant.name}")
            model = build()
            values = variant.walk(variant.path(model, grid(model) if values is None else values, limits_of(options)))
    check_agreement(variants)
    if contradicted is None:
        return [{} for _ in variants]
    limits = limits_of({**options, "time_limit": None})
    return [{"unsafe": audited(variant.path(build(), values, limits), contradicted)} for variant in variants]


def _watched(solver) -> dict[int, list[float]]:
    """Return where the solver will note the seconds of its solves, by the number of the grid point."""
    solve, seconds = solver.solve, defaultdict(list)

    def timed(reduced, *, rank=0, **more):
        since = time.perf_counter()
        found = solve(reduced, rank=rank, **more)
        seconds[rank].append(time.perf_counter() - since)
        return found

    solver.solve = timed
    return seconds


def check_agreement(variants: list[Variant]) -> None:
    """Raise :class:`DisagreementError` where one variant's dual value is above another's primal value."""
    reached = min(len(v.steps) for v in variants)
    duals = np.array([[step.dual for step in v.steps[:reached]] for v in variants])
    primals = np.array([[step.primal for step in v.steps[:reached]] for v in variants])
    low, high = duals.max(axis=0), primals.min(axis=0)
    apart = np.flatnonzero(low > high + ROUNDING * np.abs(high))
    if apart.size:
        k = int(apart[0])
        a, b = variants[int(np.argmax(duals[:, k]))].name, variants[int(np.argmin(primals[:, k]))].name
        raise DisagreementError(
            f"step {k}: '{a}' proves an optimum of at least {low[k]:.17g}, '{b}' reached {high[k]:.17g}",
            "one of the rules screened a row that it must not; please report the data and the command",
        )


def to_markdown(rows) -> str:
    """Return the table in Markdown: seconds and passes with three significant digits."""
    head, *lines = ("| " + " | ".join(cells) + " |" for cells in _texts(rows, list(rows[0])))
    return "\n".join([head, "|" + "---|" * len(rows[0]), *lines]) + "\n"


def to_table(rows, width: int = 80) -> str:
    """Return the table for a terminal: what tells the rows apart, then of the columns ``FIRST`` (or of all, if there
    are no times) those that fit the width.
    """
    columns = list(rows[0])
    apart = columns[: columns.index("points")] if "cpu_s" in columns else columns[:1]
    chosen = [name for name in apart if name == columns[0] or len({str(row[name]) for row in rows}) > 1]
    lines: list[str] = []
    for name in (one for one in (FIRST if "cpu_s" in columns else columns[1:]) if one in columns):
        wider = aligned(_texts(rows, [one for one in columns if one in (*chosen, name)]), 1)
        if max(map(len, wider)) <= width or not lines:
            chosen, lines = [*chosen, name], wider
    return "".join(f"{shown(line)}\n" for line in lines)


def _texts(rows, columns: list) -> list:
    cells = [[f"{row[c]:.3g}" if isinstance(row[c], float) else str(row[c]) for c in columns] for row in rows]
    return [columns, *cells]
