"""The papers' speed-up tables: the same path under several rules, in alternation, checked against each other."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field

import numpy as np

from screenpath.errors import ScreenpathError, UsageError
from screenpath.rules import parse_rule, takes_chunks
from screenpath.rules.sparse import parse_sparse_rule
from screenpath.solvers import make_solver
from screenpath.solvers.sparse import make_sparse_solver
from screenpath.walk.loop import PathOptions, walk
from screenpath.walk.step import CERTIFIED

MEASURED = (
    "points", "certified", "total_s", "cpu_s", "rule_s", "init_s", "solve_s", "certify_s", "passes", "epochs",
    "mean_rejection",
)  # fmt: skip
COLUMNS = ("rule", "shrinking", *MEASURED, "speedup")
SPARSE_MEASURED = (*MEASURED, "mean_scaling")
SPARSE_COLUMNS = ("rule", "start", *SPARSE_MEASURED, "speedup")
ROUNDING = 1e-12  # relative; two intervals [dual, primal] may miss each other by this much


class DisagreementError(ScreenpathError):
    """Two variants certified different optimal values: one of them is wrong."""


@dataclass(eq=False)
class Variant:
    """One way to walk the path, and what it took.

    Parameters
    ----------
    rule : str
    mark : str
        What else distinguishes it; "" for nothing.
    runs : list of dict
        Measurements, one a repeat.
    intervals : ndarray of shape (n_steps, 2)
        Dual and primal value of every step.
    """

    rule: str
    mark: str = ""
    runs: list = field(default_factory=list)
    intervals: np.ndarray | None = None

    @property
    def name(self) -> str:
        """Return the rule and the mark."""
        return self.rule + (f"+{self.mark}" if self.mark else "")


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
        One row a variant with the columns ``COLUMNS``; seconds are medians over the repeats (``total_s`` by the
        clock, ``cpu_s`` of the process), ``speedup`` is the median of the ratios to the
        first variant's run of the same repeat.

    Raises
    ------
    DisagreementError
        If two variants' certified values contradict each other.
    """
    if chunk is not None and not any(takes_chunks(rule) for rule in rules):
        raise UsageError(f"none of the rules {', '.join(rules)} can serve a chunk", "add ssnsv or essnsv")
    variants = {Variant(rule, "shrinking" if on else ""): on for on in shrinking for rule in rules}

    def prepared(variant):
        served = chunk is not None and takes_chunks(variant.rule)
        screening = parse(variant.rule, chunk, chunk_form) if served else parse(variant.rule)
        return screening, make(solver, seed, variants[variant])

    _alternate(list(variants), make_model, grid, prepared, PathOptions(tol, max_epochs), repeats, progress)
    base = next(iter(variants))
    return [{"rule": v.rule, "shrinking": on, **_row(v, base, MEASURED)} for v, on in variants.items()]


def compare_sparse(make_model, grid, rules, *, starts=("warm",), solver="sdca", first="features", tol=1e-6,
                   max_epochs=100_000, seed=0, repeats=3, progress=None):  # fmt: skip
    """Walk the same grid of sparse SVMs under every rule (Hong 2019, Tables 1, 3 and 6).

    Parameters
    ----------
    make_model, grid, rules, solver, tol, max_epochs, seed, repeats, progress
        As of :func:`compare`; the parameters are pairs.
    starts : sequence of {"warm", "cold"}
        Where the solver begins at each grid point: at the previous one, or at ``theta = 0``, screened or not.
    first : {"features", "samples"}
        What SIFS screens first.

    Returns
    -------
    list of dict
        One row a variant with the columns ``SPARSE_COLUMNS``. ``speedup`` compares with the first rule at the same
        start.

    Raises
    ------
    DisagreementError
    UsageError
    """
    variants = [Variant(rule, start) for start in starts for rule in rules]

    def prepared(variant):
        return parse_sparse_rule(variant.rule, first), make_sparse_solver(solver, seed, variant.mark == "warm")

    for variant in variants:
        prepared(variant)  # a wrong name is found before the first walk
    _alternate(variants, make_model, grid, prepared, PathOptions(tol, max_epochs), repeats, progress)
    bases = {v.mark: v for v in reversed(variants)}
    return [{"rule": v.rule, "start": v.mark, **_row(v, bases[v.mark], SPARSE_MEASURED)} for v in variants]


def _alternate(variants, make_model, grid, prepared, options: PathOptions, repeats: int, progress) -> None:
    """Run A B C A B C ... and check that all certified the same values."""
    for repeat in range(repeats):
        for variant in variants:
            if progress is not None:
                progress(f"run {repeat + 1}/{repeats}: {variant.name}")
            # An eps-path grows with the solutions of the first run; the others walk the points that it found.
            screening, solver = prepared(variant)
            grid = _run(variant, make_model(), grid, screening, solver, options)
    _check_agreement(variants, options.tol)


def _run(variant: Variant, model, grid, screening, solver, options: PathOptions) -> list:
    values = grid(model) if callable(grid) else grid
    since = time.process_time()
    found = []
    for step, _ in walk(model, values, screening, solver, options):
        step.coefficients = None  # of many grid points they would be many times the data
        found.append(step)
    cpu_s = time.process_time() - since
    rule_s, solve_s, certify_s = (sum(getattr(s, n) for s in found) for n in ("screen_s", "solve_s", "certify_s"))
    # The papers' "Init.": the first grid point, solved unscreened, and what the rule needs besides (a far end).
    init_s = found[0].seconds
    variant.runs.append(
        {
            "points": len(found),
            "certified": sum(s.status == CERTIFIED for s in found),
            "total_s": sum(s.seconds for s in found),
            "cpu_s": cpu_s,
            "rule_s": rule_s,
            "init_s": init_s,
            "solve_s": solve_s,
            "certify_s": certify_s,
            "passes": sum(s.passes for s in found) / len(found),
            "epochs": sum(s.epochs for s in found),
            "mean_rejection": statistics.fmean(s.rejection_ratio for s in found),
            "mean_scaling": statistics.fmean(s.extras.get("scaling_ratio", s.rejection_ratio) for s in found),
        }
    )
    variant.intervals = np.array([[s.dual, s.primal] for s in found])
    return [values[k] for k in range(len(values))]


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


def _row(variant: Variant, base: Variant, columns) -> dict:
    row = {name: statistics.median(run[name] for run in variant.runs) for name in columns}
    row["certified"] = min(run["certified"] for run in variant.runs)
    pairs = zip(base.runs, variant.runs, strict=True)
    row["speedup"] = statistics.median(a["total_s"] / max(b["total_s"], 1e-12) for a, b in pairs)
    return row


def to_markdown(rows) -> str:
    """Return the table in Markdown: seconds and passes with three significant digits."""
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = [f"{row[c]:.3g}" if isinstance(row[c], float) else str(row[c]) for c in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
