"""The loop: for each parameter one grid point (:mod:`screenpath.walk.point`), or a compiled stretch of them.

It is the contract of every walk over one grid: it asks of model, screening and solver only what ``problem.base``,
``screen.base`` and ``solve.base`` say. If all of them support it,
:mod:`screenpath.walk.compiled` takes several steps at once, with the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from screenpath.errors import UsageError
from screenpath.numbers import rounding
from screenpath.problem.base import PathModel
from screenpath.problem.box_types import Unread
from screenpath.problem.grid import EpsilonGrid
from screenpath.screen import Screening
from screenpath.screen.base import PathScreening
from screenpath.screen.box import disproved, pair_region
from screenpath.solve.base import Pulse, Solver
from screenpath.walk import step as steps
from screenpath.walk.compiled import CompiledWalk, FixedGrid, can_compile
from screenpath.walk.point import CLOSER, MARGIN, MAX_ROUNDS, solve_point

RULE = "rule_"  # marks a rule's own state among the arrays of a checkpoint
FAR = 1e-2  # the far end serves every point: it is solved to this part of the tolerance, and far less is left undecided
SHARPER = 0.01  # an audit's unscreened solve aims at this fraction of the path's tolerance
OBJECTIVE_ROUNDING = 1e-12  # relative; by this much two intervals [dual, primal] may miss each other by rounding
AUDITED = ("unsafe", "audit_rel_gap")  # columns of an audit


def as_grid(points) -> FixedGrid | EpsilonGrid:
    """Return parameters as a walk takes them: with ``grows`` and ``high``; rows of an array stay arrays."""
    if getattr(points, "grows", False):
        return points
    return FixedGrid(points.tolist() if isinstance(points, np.ndarray) and points.ndim == 1 else points)


@dataclass(frozen=True, slots=True)
class PathOptions:
    """How a path is walked."""

    tol: float = 1e-6  # relative gap of every grid point
    max_epochs: int = 100_000  # sweeps or Newton iterations of one grid point
    # ``time.monotonic()`` value at which the walk ends; the point under way is kept if it is certified
    deadline: float = float("inf")
    # ``audit(model, parameter, rank, reference, certificate, decided) -> dict`` of further columns, called after the
    # clock has stopped; ``decided`` holds what the static and the dynamic rule fixed (:class:`Audit`)
    audit: Callable | None = None
    # whether each step comes with its certificate. Without, it is None for most points of a stretch, and behind a
    # kernel products may be rough that nothing depends on.
    certificates: bool = True
    pulse: Pulse | None = None  # hears of the point under way, and may end it as the deadline would

    @property
    def late(self) -> bool:
        return time.monotonic() > self.deadline or (self.pulse is not None and self.pulse.stopped)


def walk(*arguments, **more):
    """Yield one Step and its certificate, the next one's reference, at a time; arguments as of :func:`batches`."""
    for found, certificates in batches(*arguments, **more):
        yield from zip(found, certificates, strict=True)


def batches(
    model: PathModel, grid, screening: PathScreening, solver: Solver, options: PathOptions, reference=None,
    first: int = 0, begun=None,
):  # fmt: skip
    """Walk a grid and yield the steps and certificates of one or more parameters at once.

    The parameters of ``grid`` are in the order of the walk; an :class:`EpsilonGrid` grows with it. Steps before
    ``first`` are done: ``reference`` is the certificate of the last, with which a resumed path continues with the same
    numbers. ``begun``: a certificate at ``grid[first]``, of a pair that an earlier walk had reached, to continue from.

    Yields a list of Step, or a Stretch, and a list of the certificates of the pairs that these report, or None; the
    last is the next step's reference.
    """
    grid, before = as_grid(grid), steps.bytes_of(model.rows)
    model.rows.spares = not (options.certificates or screening.counts_all)
    if reference is None:
        if grid.grows:
            grid.restart()  # it may know the points of another path
        reference = model.start(grid[first])
    elif grid.grows and first > 0:
        grid.extend(first - 1, reference)
    init = None
    if screening.needs_far_end:
        if not isinstance(model, PathModel):  # a Family
            raise UsageError(f"the rule '{screening.name}' is for a path over C", "leave it out")
        if screening.needs_known_grid and grid.grows:
            raise UsageError("a chunk needs grid points that are known beforehand", "use `eps_path` without `chunk`")
        init, far = far_end(model, grid, solver, options)
        screening.begin(grid, far, resumed=first > 0)
    rank = first
    stretches = None
    if can_compile(model, screening, solver):
        aim, again = MARGIN * options.tol, (MAX_ROUNDS, CLOSER)
        stretches = compiled_walk(model, grid, screening, solver, options, aim, again)
    while rank < len(grid):
        if options.late:
            return
        found, certificates = stretches.points(reference, rank) if stretches and begun is None else ([], [])
        if not found:
            step, reference = solve_point(model, grid[rank], rank, reference, screening, solver, options, begun)
            begun = None
            found, certificates = [step], [reference]
            if stretches is not None and stretches.spent > 0.0:
                step.cells["passes"] += stretches.spent / model.rows.n
        if init is not None and rank == 0:
            found[0].cells.update(init_s=init.seconds, passes=found[0].passes + init.passes)
        rank, reference = rank + len(found), certificates[-1]
        # A solve that the deadline cut short may be too rough for any stride: it is the last, and says so itself.
        if grid.grows and (not options.late or grid.ahead(reference)):
            grid.extend(rank - 1, reference)
        if before:  # such a walk takes one step at a time
            counts = steps.bytes_of(model.rows)
            found[0].cells.update({name: counts[name] - before[name] for name in counts})
        yield found, certificates
        reference = unasked(reference)
        before = steps.bytes_of(model.rows)


def walk_state(model, screening, certificate) -> dict:
    """Return the arrays that the next step of a walk depends on: the reference, and the rule of a chunk."""
    rule = {RULE + name: value for name, value in screening.state().items()}
    return {**model.state(certificate), **rule}


def unasked(certificate):
    """Return a certificate without products that others than the walk asked it for, which a restored one lacks."""
    point = getattr(certificate, "point", None)
    if not isinstance(point, Unread) or point.known is None:
        return certificate
    return replace(certificate, point=Unread(point.vector, point.sqnorm, point.model))


def restore_walk(model, screening, state: dict, parameter):
    """Return the reference of :func:`walk_state`, byte for byte, and restore the rule's state.

    ``parameter`` is that of the reference; None if unknown. A ValueError if the state is not one
    that a walk of this model can have left.
    """
    screening.restore({name.removeprefix(RULE): v for name, v in state.items() if name.startswith(RULE)}, model)
    reference = model.restore(state)
    for certificate in reference if model.parts else [reference]:
        if not isfinite(certificate.primal):
            raise ValueError("its numbers are beyond all measure")
        if parameter is not None and list(certificate.at) != np.atleast_1d(parameter).tolist():
            raise ValueError("it is that of another grid point")
    return reference


def far_end(model, grid, solver, options: PathOptions):
    """Solve the largest parameter of a grid without screening, for rules that need it (the papers' "Init.")."""
    last = as_grid(grid).high
    plain = replace(options, audit=None, tol=FAR * options.tol)
    return solve_point(model, last, len(grid), model.start(last), Screening(None, False, "none"), solver, plain)


def compiled_walk(model, grid, screening, solver: Solver, options, aim: float, again: tuple) -> CompiledWalk:
    """Return the compiled walk of a grid, if :func:`can_compile` allows it."""
    kernel: Any = solver.compiled(model.rows)
    if model.rows.staged:
        from screenpath.walk.staged import StagedWalk

        return StagedWalk(model, grid, screening, options, aim)
    if not kernel.on_faces:
        return CompiledWalk(model, grid, screening, options, aim)
    from screenpath.walk.compiled_faces import FaceWalk  # other paths start up without it

    return FaceWalk(model, grid, screening, options, aim, kernel, again)


# -- audit: each step is solved again without screening, and the decisions are compared ------------------------------


def contradicted(model, accurate, parameter, decided) -> int:
    """Return how many decided rows of a box model the ball around a solution proves to be on the other side."""
    return disproved(model, pair_region(accurate, parameter), decided)


class Audit:
    """Solve a step from the same start without any screening and count the decisions that it disproves.

    A decision is unsafe when the ball around the unscreened solution (radius from its own gap, so the solve need not be
    exact) proves the row to be on the other side of its kink. Should the two solutions' intervals ``[dual, primal]``
    not overlap, one of them is wrong and the step counts as unsafe as well. If the audit's solve does not reach the
    tolerance of the path, finding nothing proves nothing: the count is None.

    Any ``solver`` is run, with the dynamic rule off; ``options`` are those of the path that is audited. Models other
    than the box models bring ``contradicted(model, accurate, parameter, decided) -> int``. ``known`` are solutions of
    other audits, used and added to: those of several rules on the same grid solve a point once. By the number of the
    call and its parameters: classes, and problems of several betas, share values of one.
    """

    def __init__(self, solver, options: PathOptions, contradicted=contradicted, known: dict | None = None):
        self.solver, self.contradicted, self.tol, self.known = solver, contradicted, options.tol, known
        self.calls = 0
        self.options = PathOptions(SHARPER * options.tol, options.max_epochs, options.deadline, pulse=options.pulse)

    def __call__(self, model, parameter, rank, reference, certificate, decided) -> dict:
        """Return the columns ``unsafe`` (count, or None) and ``audit_rel_gap`` (relative gap of the audit's solve)."""
        accurate, key, self.calls = None, None, self.calls + 1
        if self.known is not None:
            key = self.calls, *certificate.at
            accurate = self.known.get(key)
        if accurate is None:
            alone = Screening(None, False, "none")
            accurate = solve_point(model, parameter, rank, reference, alone, self.solver, self.options)[1]
        solved = rounding.meets(accurate, self.tol)
        if solved and self.known is not None:
            self.known[key] = accurate
        unsafe = self.contradicted(model, accurate, parameter, decided)
        slack = OBJECTIVE_ROUNDING * max(abs(accurate.primal), abs(certificate.primal))
        apart = certificate.dual > accurate.highest + slack or accurate.dual > certificate.highest + slack
        unsafe = max(unsafe, int(apart))
        return {"unsafe": unsafe if solved or unsafe else None, "audit_rel_gap": accurate.rel_gap}


def added(counts: list) -> int | None:
    """Return the sum of counts of unsafe decisions; None if one is unknown and no other is above 0."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) or any(known) else None
