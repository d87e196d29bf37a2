"""The papers' speed-up tables: the same path under several rules, in alternation, checked against each other."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict

from screenpath.engine.alternate import Variant, alternate
from screenpath.engine.attack import audited
from screenpath.errors import UsageError
from screenpath.screen import parse_rule, takes_chunks
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve import make_solver
from screenpath.solve.sparse import make_sparse_solver
from screenpath.walk.loop import PathOptions, walk

MEASURED = (
    "points", "certified", "total_s", "cpu_s", "rule_s", "init_s", "solve_s", "certify_s", "passes", "epochs",
    "mean_rejection",
)  # fmt: skip
BOX_MEASURED = (*MEASURED, "search_s", "wasted_s")
COLUMNS = ("rule", "shrinking", "start", *BOX_MEASURED, "speedup")
SPARSE_MEASURED = (*MEASURED, "mean_scaling")
SPARSE_COLUMNS = ("rule", "start", *SPARSE_MEASURED, "speedup")
STARTS = ("warm", "cold")


def compare(make_model, grid, rules, *, shrinking=(True,), starts=("warm",), solver="cd", tol=1e-6, max_epochs=100_000,
            seed=0, repeats=3, chunk=None, chunk_form="C", parse=parse_rule, make=make_solver,
            progress=None, contradicted=None):  # fmt: skip
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
    starts : sequence of {"warm", "cold"}
        Where the solver begins at each grid point, screened or not: at the previous one, or (``cd``) at the dual
        point nearest to zero.
    solver : str
    tol, max_epochs, seed
        As for a path.
    repeats : int
        Runs of each variant: A B C A B C ...
    chunk : int, optional
        Grid points that one region serves, for those of the rules that can (``ssnsv``, ``essnsv``).
    chunk_form : {"C", "s"}
    parse, make : callable
        ``parse(rule, chunk=M, form=F) -> screening`` and ``make(solver, seed, shrinking, warm) -> solver`` of the
        model.
    progress : callable, optional
        Called with a line of text before each run.
    contradicted : callable, optional
        See :class:`screenpath.walk.audit.Audit`: each variant walks once more, and its unsafe decisions are counted in
        a column ``unsafe``.

    Returns
    -------
    list of dict
        One row a variant with the columns ``COLUMNS``; seconds are medians over the repeats (``cpu_s`` of the
        process, all others by the clock; of ``rule_s``, ``search_s`` went into line searches, and of ``solve_s``,
        ``wasted_s`` into solves that had to be repeated), ``speedup`` is :data:`screenpath.engine.studies.SPEEDUP`.

    Raises
    ------
    DisagreementError
        If two variants' certified values contradict each other.
    """
    if chunk is not None and not any(takes_chunks(rule) for rule in rules):
        raise UsageError(f"none of the rules {', '.join(rules)} can serve a chunk", "add ssnsv or essnsv")
    settings = {
        Variant(rule, (*(("shrinking",) if on else ()), *(("cold",) if start == "cold" else ()))): (on, start)
        for start in starts
        for on in shrinking
        for rule in rules
    }

    def prepared(variant):
        on, start = settings[variant]
        served = chunk is not None and takes_chunks(variant.rule)
        screening = parse(variant.rule, chunk=chunk, form=chunk_form) if served else parse(variant.rule)
        return screening, make(solver, seed, on, start == "warm")

    limits = PathOptions(tol, max_epochs)
    unsafe = _walks(list(settings), make_model, grid, prepared, limits, repeats, progress, contradicted)
    base = next(iter(settings))
    return [
        {"rule": v.rule, "shrinking": on, "start": start, **v.row(BOX_MEASURED), "speedup": v.speedup(base), **found}
        for (v, (on, start)), found in zip(settings.items(), unsafe, strict=True)
    ]


def compare_sparse(make_model, grid, rules, *, starts=("warm",), solver="auto", first="features", tol=1e-6,
                   max_epochs=100_000, seed=0, repeats=3, progress=None, make=make_sparse_solver,
                   contradicted=None):  # fmt: skip
    """Walk the same grid of sparse SVMs under every rule (Hong 2019, Tables 1, 3 and 6).

    Parameters
    ----------
    make_model, grid, rules, solver, tol, max_epochs, seed, repeats, progress, contradicted
        As of :func:`compare`; the parameters are pairs.
    starts : sequence of {"warm", "cold"}
        Where the solver begins at each grid point: at the previous one, or at ``theta = 0``, screened or not.
    first : {"features", "samples"}
        What SIFS screens first.
    make : callable
        ``make(solver, seed, warm)`` returns the solver.

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
    variants = [Variant(rule, (start,)) for start in starts for rule in rules]

    def prepared(variant):
        return parse_sparse_rule(variant.rule, first), make(solver, seed, variant.marks == ("warm",))

    limits = PathOptions(tol, max_epochs)
    unsafe = _walks(variants, make_model, grid, prepared, limits, repeats, progress, contradicted)
    bases = {v.marks: v for v in reversed(variants)}
    return [
        {"rule": v.rule, "start": v.marks[0], **v.row(SPARSE_MEASURED), "speedup": v.speedup(bases[v.marks]), **found}
        for v, found in zip(variants, unsafe, strict=True)
    ]


def _walks(
    variants, make_model, grid, prepared, options: PathOptions, repeats: int, progress, contradicted
) -> list[dict]:
    """Walk the grid with each variant in turn; return the further cells of each, those of the audit."""
    for variant in variants:
        prepared(variant)  # a wrong name is found before the first walk

    def run(variant):
        # An eps-path grows with the solutions of the first run; the others walk the points that it found.
        nonlocal grid
        screening, solver = prepared(variant)
        grid = _run(variant, make_model(), grid, screening, solver, options)

    alternate(variants, repeats, run, progress)
    if contradicted is None:
        return [{} for _ in variants]
    return [{"unsafe": audited(make_model(), grid, prepared(variant), options, contradicted)} for variant in variants]


def _run(variant: Variant, model, grid, screening, solver, options: PathOptions) -> list:
    values = grid(model) if callable(grid) else grid
    solves = _watched(solver)
    since = time.process_time()
    found = []
    for step, _ in walk(model, values, screening, solver, options):
        step.coefficients = None  # of many grid points they would be many times the data
        found.append(step)
    cpu_s = time.process_time() - since
    variant.note(
        found,
        cpu_s,
        # The papers' "Init.": the first grid point, solved unscreened, and what the rule needs besides (a far end).
        init_s=found[0].seconds,
        passes=sum(s.passes for s in found) / len(found),
        mean_rejection=statistics.fmean(s.rejection_ratio for s in found),
        mean_scaling=statistics.fmean(s.cells.get("scaling_ratio", s.rejection_ratio) for s in found),
        search_s=getattr(screening, "search_s", 0.0),
        wasted_s=sum(sum(seconds[:-1]) for seconds in solves.values()),
    )
    return [values[k] for k in range(len(values))]


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


def to_markdown(rows) -> str:
    """Return the table in Markdown: seconds and passes with three significant digits."""
    columns = list(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = [f"{row[c]:.3g}" if isinstance(row[c], float) else str(row[c]) for c in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
