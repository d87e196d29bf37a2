"""The loop: for each parameter screen, solve, certify, yield a Step.

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
from screenpath.kernels.compilation import clock
from screenpath.numbers import rounding
from screenpath.problem.base import PathModel
from screenpath.problem.ends import CLOSED, CONSTANT
from screenpath.problem.grid import EpsilonGrid
from screenpath.screen import Screening
from screenpath.screen.base import PathScreening
from screenpath.screen.box import disproved, pair_region
from screenpath.solve.base import Budget, Pulse, Solver
from screenpath.walk import step as steps
from screenpath.walk.compiled import CompiledWalk, can_compile

MARGIN = 0.8  # the solver aims below the tolerance, so that the full data seldom disagrees with the reduced problem
RULE = "rule_"  # marks a rule's own state among the arrays of a checkpoint
FAR = 1e-2  # the far end serves every point: it is solved to this part of the tolerance, and far less is left undecided
HELD = 0.1  # part of the target of a solve that, with no dual variable at an end, serves larger parameters too
CLOSER = 0.1  # times its target, that of a point's next solve
MAX_ROUNDS = 6  # solve-and-certify rounds at one grid point before it is given up
SHARPER = 0.01  # an audit's unscreened solve aims at this fraction of the path's tolerance
OBJECTIVE_ROUNDING = 1e-12  # relative; by this much two intervals [dual, primal] may miss each other by rounding
AUDITED = ("unsafe", "audit_rel_gap")  # columns of an audit


class FixedGrid(list):
    """Parameters that are known before the walk, as Python's own floats, whose arithmetic is faster than an array's."""

    grows = False

    @property
    def high(self):
        return max(self)


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
    # whether each step comes with its certificate. Without, it is None for most points of a stretch.
    certificates: bool = True
    pulse: Pulse | None = None  # hears of the point under way, and may end it as the deadline would

    @property
    def late(self) -> bool:
        return time.monotonic() > self.deadline or (self.pulse is not None and self.pulse.stopped)


class _Clock:
    """Seconds by phase, those of compiling left out, and the rows touched since it was made."""

    __slots__ = ("rows", "seconds", "_phase", "_since", "_before")

    def __init__(self, rows):
        self.rows = rows
        self.seconds = {"screen": 0.0, "solve": 0.0, "certify": 0.0}
        self._phase, self._since = "screen", clock()
        # Counted from 0: fractions of rows add up alike whatever came before.
        self._before, rows.touched = rows.touched, 0

    def enter(self, phase: str) -> None:
        """Add the time since the last call to the phase that ends, and begin a new one."""
        now = clock()
        self.seconds[self._phase] += now - self._since
        self._phase, self._since = phase, now

    @property
    def touched(self) -> int:
        """Return the rows touched since the clock was made."""
        return self.rows.touched

    def stop(self) -> float:
        """Return the rows touched since the clock was made, and give the rows their old count back."""
        touched = self.rows.touched
        self.rows.touched += self._before
        return touched


def walk(*arguments, **more):
    """Walk a grid and yield one Step and its certificate at a time; arguments as those of :func:`batches`.

    The certificate, or None, is that of the pair the step reports: the next step's reference.
    """
    for found, certificates in batches(*arguments, **more):
        yield from zip(found, certificates, strict=True)


def batches(
    model: PathModel, grid, screening: PathScreening, solver: Solver, options: PathOptions, reference=None,
    first: int = 0, begun=None,
):  # fmt: skip
    """Walk a grid and yield the steps and certificates of one or more parameters at once.

    Parameters
    ----------
    grid : sequence or EpsilonGrid
        Parameters in the order of the walk; an :class:`screenpath.problem.grid.EpsilonGrid` grows with it.
    reference : Certificate, optional
        Certificate of the step before ``grid[first]``: a resumed path continues with the same numbers.
    first : int, default 0
        Steps before it are done already.
    begun : Certificate, optional
        At ``grid[first]``: of the pair that an earlier walk had reached there, from which its solver continues.

    Yields
    ------
    found : list of Step, or Stretch
    certificates : list of Certificate or None
        Of the pairs that the steps report, the last of which is the next step's reference.
    """
    grid, before = as_grid(grid), steps.bytes_of(model.rows)
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
        before = steps.bytes_of(model.rows)


def walk_state(model, screening, certificate) -> dict:
    """Return the arrays that the next step of a walk depends on: the reference, and the rule of a chunk."""
    rule = {RULE + name: value for name, value in screening.state().items()}
    return {**model.state(certificate), **rule}


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


@np.errstate(over="ignore", invalid="ignore")  # what overflows is said by the status of the step that it spoils
def solve_point(
    model: PathModel, parameter, rank: int, reference, screening: PathScreening, solver: Solver, options: PathOptions,
    begun=None,
):  # fmt: skip
    """Screen, solve and certify one grid point; return its Step and its Certificate.

    The static rule is applied once. Should the full data disagree with the reduced problem's gap (a screened row that
    the *approximate* solution leaves on the wrong side of its kink), the point is solved again from the new certificate
    to a tighter target; with a dynamic rule it is screened again first. Decisions that were guessed are corrected
    instead. With ``begun``, a certificate at this point, the solver goes on from its pair.
    """
    clock = _Clock(model.rows)
    model, reference, parameter = model.bound(reference, parameter)
    if options.pulse is not None:
        options.pulse.begin(model.parameters(parameter), model.rows.n)
    screened = screening.before(model, reference, parameter)
    first_screened = screened
    decided = screened.status.copy() if options.audit else None
    epochs, rounds, touched, name, settled, faces = 0, 0, 0.0, CLOSED, False, None
    target, certificate = MARGIN * max(options.tol, screening.loose), reference if begun is None else begun
    clock.enter("solve")
    held = _held(model, parameter, certificate, options.tol)
    if held is None and model.rests(certificate):
        held = _polished(model, parameter, certificate, options.tol)
        target *= HELD
    while True:
        clock.enter("solve")
        if rounds == 0 and (held is not None or model.exact_until(reference, parameter)):
            w, theta = None, reference.theta
        else:
            budget = Budget(options.max_epochs - epochs, options.deadline, options.pulse, touched + clock.touched)
            reduced = model.reduce(parameter, screened, certificate)
            solution = solver.solve(reduced, tol=target, budget=budget, dynamic=screening.dynamic, rank=rank)
            epochs, touched, name = epochs + solution.epochs, touched + solution.touched, solution.solver
            settled, faces = solution.converged, solution.faces
            w, theta = model.lift(parameter, reduced, solution)
            if decided is not None and solution.decided is not None:
                status = solution.decided()
                decided[reduced.index[status != 0]] = status[status != 0]
            del reduced, solution  # the copy of the survivors
        rounds += 1
        clock.enter("certify")
        if rounds == 1 and held is not None:
            certificate, name = held
        else:
            certificate = _sharp(model, model.certify(parameter, w, theta, certificate), options.tol)
        done = rounding.meets(certificate, options.tol)
        spent = epochs >= options.max_epochs or options.late
        if rounds == 1 and held is not None:
            break
        further = done and model.refines and model.goes_on(parameter, certificate, reference)
        if (done and not further) or spent or rounds >= MAX_ROUNDS:
            break
        clock.enter("screen")
        corrected = screening.corrected(model, certificate, screened, rounds)
        if corrected is not screened:
            screened = first_screened = corrected
            decided = screened.status.copy() if options.audit else None
            if rounds == MAX_ROUNDS - 1:  # the last one is for the answer
                target = min(target, MARGIN * options.tol)
            continue
        target = min(CLOSER * target, MARGIN * options.tol)
        if faces is not None:
            certificate.faces = faces
        if screening.dynamic:
            screened = screening.again(model, certificate, parameter)
            if decided is not None:
                decided = np.where(screened.status != 0, screened.status, decided)
    clock.enter("certify")
    broken = steps.broken_by(certificate)
    if done:
        known = _sharp(model, model.no_worse(parameter, certificate, reference), options.tol)
        certificate = known if rounding.meets(known, options.tol) else certificate
    else:
        certificate = best_known(model, parameter, certificate, reference, options.tol)
        done = rounding.meets(certificate, options.tol)
    # The gap may be met before a guess of the rule has been looked at.
    first_screened, decided = screening.proven(model, certificate, first_screened, decided)
    touched, extras = touched + clock.stop(), {}
    if options.audit:
        extras = options.audit(model, parameter, rank, reference, certificate, decided)
    if solver.looks_ahead(model.rows):
        certificate = model.after(certificate, reference, faces)
    judged = steps.verdict(certificate, options.tol, broken, spent, settled)
    work = {"solver": name, "epochs": epochs, "rounds": rounds}
    step = steps.at_point(
        model, parameter, rank, certificate, first_screened, options.tol, judged, work, touched, clock.seconds, extras
    )
    if options.pulse is not None:
        options.pulse.end()
    return step, certificate


def _held(model, parameter, reference, tol: float):
    """Return the certificate that is known without a solve, and its name, if it meets ``tol``; else None."""
    held = model.held(reference, parameter)
    if held is None:
        return None
    found = _sharp(model, held[0], tol)
    return (found, held[1]) if rounding.meets(found, tol) else None


def _polished(model, parameter, reference, tol: float):
    """Return the solution known except for its accuracy, polished, and its name; None unless it meets ``tol``, or no
    solver comes nearer: only rounding is missing, and the model is one whose pairs are refined down to it.
    """
    gap = HELD * tol * abs(reference.primal)
    found = model.polished(reference, parameter, gap) if parameter > reference.at[0] else None
    found = None if found is None else _sharp(model, found, tol)
    good = rounding.meets_but_for_rounding if model.refines else rounding.meets
    return None if found is None or not good(found, tol) else (found, CONSTANT)


def _sharp(model, certificate, tol: float):
    """Return the certificate; with a narrower bound on rounding if it does not meet ``tol``, but may, or may lead to
    one that does; or if its primal value is less certain than that.
    """
    if rounding.meets(certificate, tol):
        if not rounding.blurred(certificate, tol):
            return certificate
        found = model.sharpened(certificate, tol)
        return found if rounding.meets(found, tol) and found.primal_error < certificate.primal_error else certificate
    close = rounding.meets_but_for_rounding(certificate, tol)
    refined = model.refines and isfinite(certificate.gap) and rounding.is_most(certificate)
    return model.sharpened(certificate, tol) if close or refined else certificate


def best_known(model, parameter, certificate, reference, tol: float):
    """Return the certificate of the best primal and the best dual point: those solved for, or known before.

    A solver's result may be worse than its start, or not finite. Nothing is reported that is worse than zero,
    the start of the path, or the reference taken to the new parameter; possible rounding errors count.
    """
    zero, *others = model.fallbacks(parameter, reference)
    if isfinite(certificate.gap) and (certificate.highest > zero.highest or rounding.is_most(certificate)):
        certificate = model.sharpened(certificate, tol)
    if certificate.highest <= zero.highest and certificate.gap <= min(one.gap for one in (zero, *others)):
        return certificate  # as ever but for numbers at the end of their range
    known = [one for one in (certificate, zero, *others) if isfinite(one.primal) and isfinite(one.gap)] or [zero]
    return model.combined(parameter, min(known, key=lambda one: one.highest), max(known, key=lambda one: one.dual))


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

    Parameters
    ----------
    solver : solver
        Any solver; it is run with the dynamic rule off.
    options : PathOptions
        Tolerance and limits of the path that is audited.
    contradicted : callable, optional
        ``contradicted(model, accurate, parameter, decided) -> int`` for models other than the box models.
    known : dict, optional
        Solutions by parameter, used and added to: audits of several rules on the same grid solve a point once.
    """

    def __init__(self, solver, options: PathOptions, contradicted=contradicted, known: dict | None = None):
        self.solver, self.contradicted, self.tol, self.known = solver, contradicted, options.tol, known
        self.options = PathOptions(SHARPER * options.tol, options.max_epochs, options.deadline, pulse=options.pulse)

    def __call__(self, model, parameter, rank, reference, certificate, decided) -> dict:
        """Return the columns ``unsafe`` (count, or None) and ``audit_rel_gap`` (relative gap of the audit's solve)."""
        accurate = None if self.known is None else self.known.get(parameter)
        if accurate is None:
            alone = Screening(None, False, "none")
            accurate = solve_point(model, parameter, rank, reference, alone, self.solver, self.options)[1]
        solved = rounding.meets(accurate, self.tol)
        if solved and self.known is not None:
            self.known[parameter] = accurate
        unsafe = self.contradicted(model, accurate, parameter, decided)
        slack = OBJECTIVE_ROUNDING * max(abs(accurate.primal), abs(certificate.primal))
        apart = certificate.dual > accurate.highest + slack or accurate.dual > certificate.highest + slack
        unsafe = max(unsafe, int(apart))
        return {"unsafe": unsafe if solved or unsafe else None, "audit_rel_gap": accurate.rel_gap}


def added(counts: list) -> int | None:
    """Return the sum of counts of unsafe decisions; None if one is unknown and no other is above 0."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) or any(known) else None
