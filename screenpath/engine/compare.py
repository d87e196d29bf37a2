"""Measured comparisons of rules on one path, and attacks on rules by random hostile problems.

The speed-up tables of the papers: the same path walked in several ways, in turns, checked for agreement. A decision is
unsafe where an accurate solution, whatever its gap, proves the row or feature to be on the other side.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from screenpath.catalogue.losses import LOSSES
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.words.tables import aligned
from screenpath.engine.path import Path, limits_of
from screenpath.errors import ScreenpathError, shown
from screenpath.kernels.compilation import clock, processor_clock
from screenpath.numbers import sparse as sp
from screenpath.problem.ends import CLOSED, CONSTANT
from screenpath.problem.grid import explicit_grid
from screenpath.problem.l1svm import L1SVM
from screenpath.rows.memory import MemoryRows
from screenpath.walk.loop import Audit, PathOptions, added
from screenpath.walk.step import CERTIFIED

ROUNDING = 1e-12  # relative; the intervals [dual, primal] of two variants may be this far apart
# Columns of a table for a terminal, the most wanted first.
FIRST = ("unsafe", "speedup", "cpu_s", "certified", "points", "mean_rejection", "passes_per_step", "epochs")
POINTS = 5  # grid points of a random problem
ACCURATE = PathOptions(tol=1e-10, max_epochs=3000)  # limits of the solutions that judge decisions
LOG = {"grid": POINTS, "log": True, "lambda_min_ratio": 0.02, "lambda_list": None}
PAIRS: dict[str, Any] = {"betas": 2, "beta_min_ratio": 0.2, "alphas": POINTS, "alpha_min_ratio": 0.02, "beta": None,
                         "alpha": None, "references": 0}  # fmt: skip


class DisagreementError(ScreenpathError):
    """Two variants certified different optimal values: one of them is wrong."""


@dataclass(eq=False)
class Variant:
    """One way to walk the path, and its measurements."""

    cells: dict[str, Any]  # what distinguishes it in the table: rule or configuration, shrinking, start
    make: Callable  # ``make() -> (screening, solver)``
    marks: tuple[str, ...] = ()  # of its name, after the rule
    base: Variant | None = None  # its speed-up refers to this variant; None: itself
    runs: list[dict] = field(default_factory=list)  # measurements, one a repeat
    steps: list = field(default_factory=list)  # of the last run, those that were reached

    @property
    def name(self) -> str:
        return "+".join((*list(self.cells.values())[:1], *self.marks))

    @property
    def finished(self) -> bool:
        return all(run["certified"] == run["points"] for run in self.runs)

    def row(self, measured) -> dict:
        """Return the medians of measurements, and how many points every run has certified."""
        medians = {name: statistics.median(run[name] for run in self.runs) for name in measured}
        return medians | {"certified": min(run["certified"] for run in self.runs)}

    @property
    def speedup(self) -> float:
        """Return the speed-up, see :data:`screenpath.engine.studies.SPEEDUP`."""
        turns = zip((self.base or self).runs, self.runs, strict=True)
        return statistics.median(a["cpu_s"] / max(b["cpu_s"], 1e-12) for a, b in turns)

    def path(self, model, grid, limits) -> Path:
        screening, solver = self.make()
        return Path(model, grid, screening, solver, limits)

    def walk(self, path: Path) -> list:
        """Walk the path, measure it (``total_s`` and ``cpu_s`` from the same beginning to the same end), return the
        grid; see :data:`screenpath.engine.studies.COLUMNS`.
        """
        solves, began, since = _watched(path.solver), clock(), processor_clock()
        found = []
        for step, _ in path.walk():
            step.coefficients = None  # over many grid points they would take many times the memory of the data
            found.append(step)
        cpu_s, total_s, many = processor_clock() - since, clock() - began, max(len(found), 1)
        rule_s, solve_s, certify_s = (sum(getattr(s, n) for s in found) for n in ("screen_s", "solve_s", "certify_s"))
        self.steps = found
        solved = [s for s in found if s.solver not in (CLOSED, CONSTANT)]
        self.runs.append(
            {
                "points": len(path.grid), "certified": sum(s.status == CERTIFIED for s in found), "cpu_s": cpu_s,
                "total_s": total_s, "rule_s": rule_s, "solve_s": solve_s, "certify_s": certify_s,
                # "Init." of the papers: the first grid point, solved unscreened.
                "init_s": sum(s.seconds for s in found[:1]), "epochs": sum(s.epochs for s in found),
                "passes_per_step": sum(s.passes for s in found) / many,
                "mean_rejection": sum(s.rejection_ratio for s in found) / many, "solved": len(solved),
                "solved_rejection": sum(s.rejection_ratio for s in solved) / max(len(solved), 1),
                "solved_rate": sum(s.screening_rate for s in solved) / max(len(solved), 1),
                "mean_scaling": sum(s.cells.get("scaling_ratio", s.rejection_ratio) for s in found) / many,
                "search_s": getattr(path.screening, "search_s", 0.0),  # of ``rule_s``, in line searches
                "wasted_s": sum(sum(seconds[:-1]) for seconds in solves.values()),  # in solves that were repeated
                "over_hits": sum(over_hits(path.model, s) for s in found) if isinstance(path.model, L1SVM) else 0,
            }
        )  # fmt: skip
        return [path.grid[k] for k in range(len(path.grid))]


def over_hits(model, step) -> int:
    """Return the inactive features that screening kept at a step (Zhao 2014, Fig. 2)."""
    return model.size - step.n_features_screened - step.nnz_w


def compare(variants: list[Variant], build, grid, options: dict, progress=None, contradicted=None) -> list[dict]:
    """Walk the same grid by every variant, in turn (A B C A B C ...), and store the measurements in the variants.

    ``build() -> model`` is called for each run, so that no run profits from another's data structures; ``grid(model)``
    once: an eps-path grows with the solutions of the first run, and the others walk its points. ``options`` are
    ``repeats``, ``tol``, ``max_epochs`` and, for each run, ``time_limit``. ``progress`` gets a line of text before each
    run.

    With ``contradicted`` (see :class:`screenpath.walk.loop.Audit`) each variant walks once more to count its unsafe
    decisions: the result has further cells for each. A :class:`DisagreementError` tells that certified values
    contradict each other.
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
    known: dict = {}
    return [{"unsafe": audited(variant.path(build(), values, limits), contradicted, known)} for variant in variants]


def _watched(solver) -> dict[int, list[float]]:
    """Make a solver measure its solves; return their seconds by the number of the grid point."""
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
        what = f"step {k}: '{a}' proves an optimum of at least {low[k]:.17g}, '{b}' reached {high[k]:.17g}"
        hint = "one of the rules screened a row that it must not; please report the data and the command"
        raise DisagreementError(what, hint)


def to_markdown(rows) -> str:
    """Return the table in Markdown: seconds and passes with three significant digits."""
    head, *lines = ("| " + " | ".join(cells) + " |" for cells in _texts(rows, list(rows[0])))
    return "\n".join([head, "|" + "---|" * len(rows[0]), *lines]) + "\n"


def to_table(rows, width: int = 80) -> str:
    """Return the table for a terminal: what tells rows apart, then those of ``FIRST`` (or all) that fit the width."""
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


def audited(path: Path, contradicted: Callable, known: dict) -> int | None:
    """Return the number of unsafe decisions of a path; None if the audit failed at a step and found none elsewhere.

    ``known`` has solutions by parameter, of the audits before; this one's are added.
    """
    limits = replace(path.limits, audit=Audit(path.solver, path.limits, contradicted, known))
    return added([step.extras["unsafe"] for step, _ in replace(path, limits=limits).walk()])


def attack(spec, options: dict, rules: dict[str, Callable], count: int) -> list[dict]:
    """Attack each rule (``make() -> screening``) on ``count`` random problems of a model, drawn by the ``seed``.

    Returns a row for each rule: its checks (one reference, one parameter each), its decisions, how many are unsafe, on
    how many problems, and the number of the first such problem (None: no decision is unsafe).
    """
    names = "checks", "decisions", "unsafe", "unsafe_problems"
    rows: list[dict[str, Any]] = [
        {"rule": rule, "problems": count, **dict.fromkeys(names, 0), "first_unsafe": None} for rule in rules
    ]
    for number in range(count):
        rng = np.random.default_rng([options["seed"], number])
        with np.errstate(over="ignore", invalid="ignore"), MemoryLimit().in_force():
            model = _hostile(rng, spec, options)
            points, pairs = _solved(spec, options, model, rng)
            cases = list(_cases(model, points, pairs, rng))
            for row, make in zip(rows, rules.values(), strict=True):
                found = [_decisions(model, make(), points, pairs, *case) for case in cases]
                unsafe = sum(
                    spec.contradicted(*model.bound(pairs[k], points[k]), status)
                    for (k, _), several in zip(cases, found, strict=True) for status in several
                )  # fmt: skip
                row["checks"] += len(found)
                row["decisions"] += sum(int(np.count_nonzero(status)) for several in found for status in several)
                row["unsafe"] += unsafe
                row["unsafe_problems"] += unsafe > 0
                if unsafe and row["first_unsafe"] is None:
                    row["first_unsafe"] = number
    return rows


def _hostile(rng, spec, options: dict):
    """Return a model of few rows, with duplicates, a zero row and, often, columns of very different scales."""
    n, d = int(rng.integers(8, 40)), int(rng.integers(2, 9))
    signs = rng.permutation(np.where(np.arange(n) % 3, 1.0, -1.0))
    X = rng.normal(size=(n, d)) + rng.uniform(0.0, 2.0) * signs[:, None] * (rng.random(d) < 0.5)
    if rng.random() < 0.5:
        X *= 10.0 ** rng.uniform(-3.0, 3.0, d)
    if rng.random() < 0.3:
        X += 10.0 ** rng.uniform(-1.0, 3.0)  # all rows nearly parallel
    copies = rng.integers(0, n, n // 4)
    X[: copies.size] = X[copies]
    X[n - 1] = 0.0
    loss = LOSSES.get(spec.name)
    y = signs if loss is None or loss.signed else X @ (rng.normal(size=d) / np.abs(X).max(axis=0)) + rng.normal(size=n)
    weights = [None, rng.uniform(0.1, 3.0, n), rng.integers(0, 3, n) + (np.arange(n) % 3 == 0.0)][rng.integers(3)]
    if spec.rows is not None:
        return spec.build(spec.rows(X, y, options, None, 0.0), y, weights, options)
    return spec.build(MemoryRows(sp.csr_array(X) if rng.random() < 0.5 else X), y, weights, options)


def _solved(spec, options: dict, model, rng) -> tuple:
    """Return grid points where the solution changes, and accurate unscreened solutions there."""
    if spec.parameter == "C":
        limit = model.closed_form()[2]
        low = limit if 0.0 < limit < np.inf else 1e-3
        points = explicit_grid(low * 10.0 ** np.sort(rng.uniform(-0.3, 3.5, POINTS)))
    else:
        points = spec.grid(model, {**options, **(LOG if spec.parameter == "lambda" else PAIRS)})
    path = Path(model, points, spec.rule("none"), spec.solver("auto", int(rng.integers(100))), ACCURATE)
    return points, [pair for _, pair in path.walk()]


def _cases(model, points, pairs: list, rng):
    """Yield a grid point's number and a reference at an earlier one: accurate, rough on one side, or on both."""
    for k in range(1, len(pairs)):
        near = k - 1
        yield k, pairs[near]
        far = int(rng.integers(0, near + 1)) if near else k
        one, start, at = model.bound(pairs[far], points[near])
        rough = one.fallbacks(at, start)[-1]
        for reference in (rough, one.combined(at, pairs[near], rough), one.combined(at, rough, pairs[near])):
            if np.isfinite(reference.primal) and np.isfinite(reference.gap):
                yield k, reference


def _decisions(model, screening, points, pairs: list, k: int, reference) -> list[np.ndarray]:
    """Return the decisions of a rule at a grid point: before the solve, and dynamically from a rough iterate."""
    if screening.needs_far_end:
        screening.begin(points, pairs[-1], False)
    model, reference, at = model.bound(reference, points[k])
    found = [screening.before(model, reference, at).status]
    if screening.dynamic:
        found.append(screening.again(model, model.fallbacks(at, reference)[-1], at).status)
    return found
