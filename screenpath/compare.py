"""The papers' speed-up tables: the same path under several rules, in alternation, checked against each other."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

import numpy as np

from screenpath.errors import ScreenpathError, UsageError
from screenpath.grid import EpsilonGrid
from screenpath.path import PathOptions, walk
from screenpath.rules import parse_rule, takes_chunks
from screenpath.solvers import make_solver
from screenpath.steps import CERTIFIED

COLUMNS = (
    "rule", "shrinking", "points", "certified", "total_s", "rule_s", "init_s", "solve_s", "certify_s", "passes",
    "epochs", "mean_rejection", "speedup",
)  # fmt: skip
ROUNDING = 1e-12  # relative; two intervals [dual, primal] may miss each other by this much


class DisagreementError(ScreenpathError):
    """Two variants certified different optimal values: one of them is wrong."""


@dataclass
class Variant:
    """One way to walk the path, and what it took.

    Parameters
    ----------
    rule : str
    shrinking : bool
    runs : list of dict
        Measurements, one a repeat.
    intervals : ndarray of shape (n_steps, 2)
        Dual and primal value of every step.
    """

    rule: str
    shrinking: bool
    runs: list = field(default_factory=list)
    intervals: np.ndarray | None = None

    @property
    def name(self) -> str:
        """Return the rule, and whether the solver shrinks."""
        return self.rule + ("+shrinking" if self.shrinking else "")


def compare(make_model, grid, rules, *, shrinking=(True,), solver="cd", tol=1e-6, max_epochs=100_000, seed=0, repeats=3,
            chunk=None, chunk_form="C", parse=parse_rule, make=make_solver, progress=None):  # fmt: skip
    """Walk the same path under every rule, alternating, and return the table.

    Parameters
    ----------
    make_model : callable
        ``make_model() -> model``; called for each run, so that no run profits from another's data structures.
    grid : sequence or callable
        Parameters, or ``grid(model) -> sequence``.
    rules : sequence of str
        The first is the one the others are compared with.
    shrinking : sequence of bool
        Settings of the solver's shrinking (``cd``, ``smo``) to combine with the rules.
    solver : str
    tol, max_epochs, seed
        As for a path.
    repeats : int
        Runs of each variant: A B C A B C ...
    chunk : int, optional
        Grid points that one region serves, for those of the rules that can (``ssnsv``, ``essnsv``).
    chunk_form : {"C", "s"}
    parse, make : callable
        ``parse(rule, chunk, chunk_form) -> screening`` and ``make(solver, seed, shrinking) -> solver`` of the model.
    progress : callable, optional
        Called with a line of text before each run.

    Returns
    -------
    list of dict
        One row a variant with the columns ``COLUMNS``; seconds are medians over the repeats, ``speedup`` is the
        median of the ratios to the first variant's run of the same repeat.

    Raises
    ------
    DisagreementError
        If two variants' certified values contradict each other.
    """
    if chunk is not None and not any(takes_chunks(rule) for rule in rules):
        raise UsageError(f"none of the rules {', '.join(rules)} can serve a chunk", "add ssnsv or essnsv")
    variants = [Variant(rule, shrinks) for shrinks in shrinking for rule in rules]
    options = PathOptions(tol, max_epochs)
    grid = _common_grid(make_model(), grid, make(solver, seed, variants[0].shrinking), options)
    for repeat in range(repeats):
        for variant in variants:
            if progress is not None:
                progress(f"run {repeat + 1}/{repeats}: {variant.name}")
            screening = parse(variant.rule, chunk if takes_chunks(variant.rule) else None, chunk_form)
            _run(variant, make_model(), grid, screening, make(solver, seed, variant.shrinking), options)
    _check_agreement(variants, tol)
    return [_row(variant, variants[0]) for variant in variants]


def _common_grid(model, grid, solver, options: PathOptions):
    """Return the parameters that every variant walks; those of an epsilon-path are found first, outside all clocks."""
    values = grid(model) if callable(grid) else grid
    if isinstance(values, EpsilonGrid):
        values = [step.parameters["C"] for step, _ in walk(model, values, parse_rule("dvi"), solver, options)]
    return values


def _run(variant: Variant, model, grid, screening, solver, options: PathOptions) -> None:
    found = [step for step, _ in walk(model, grid, screening, solver, options)]
    rule_s, solve_s, certify_s = (sum(getattr(s, n) for s in found) for n in ("screen_s", "solve_s", "certify_s"))
    # The papers' "Init.": the first grid point, solved unscreened, and what the rule needs besides (a far end).
    init_s = found[0].seconds
    variant.runs.append(
        {
            "points": len(found),
            "certified": sum(s.status == CERTIFIED for s in found),
            "total_s": sum(s.seconds for s in found),
            "rule_s": rule_s,
            "init_s": init_s,
            "solve_s": solve_s,
            "certify_s": certify_s,
            "passes": sum(s.passes for s in found) / len(found),
            "epochs": sum(s.epochs for s in found),
            "mean_rejection": statistics.fmean(s.rejection_ratio for s in found),
        }
    )
    variant.intervals = np.array([[s.dual, s.primal] for s in found])


def _check_agreement(variants, tol: float) -> None:
    low = np.max([v.intervals[:, 0] for v in variants], axis=0)
    high = np.min([v.intervals[:, 1] for v in variants], axis=0)
    apart = np.flatnonzero(low > high + ROUNDING * np.abs(high))
    if apart.size:
        k = int(apart[0])
        duals, primals = ([v.intervals[k, j] for v in variants] for j in (0, 1))
        a, b = variants[int(np.argmax(duals))].name, variants[int(np.argmin(primals))].name
        raise DisagreementError(
            f"step {k}: '{a}' proves an optimum of at least {max(duals):.17g}, '{b}' reached {min(primals):.17g}",
            "one of the rules screened a row that it must not; please report the data and the command",
        )


def _row(variant: Variant, base: Variant) -> dict:
    row = {"rule": variant.rule, "shrinking": variant.shrinking}
    for name in COLUMNS[2:-1]:
        row[name] = statistics.median(run[name] for run in variant.runs)
    pairs = zip(base.runs, variant.runs, strict=True)
    row["speedup"] = statistics.median(a["total_s"] / max(b["total_s"], 1e-12) for a, b in pairs)
    return row


def to_markdown(rows) -> str:
    """Return the table in Markdown: seconds and passes with three significant digits."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for row in rows:
        cells = [f"{row[c]:.3g}" if isinstance(row[c], float) else str(row[c]) for c in COLUMNS]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
