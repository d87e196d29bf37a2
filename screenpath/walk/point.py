"""One grid point: screen, solve, certify, and take the best pair that is known.

The static rule is applied once. Should the full data disagree with the reduced problem's gap (a screened row that the
*approximate* solution leaves on the wrong side of its kink), the point is solved again from the new certificate to a
tighter target; with a dynamic rule it is screened again first. Decisions that were guessed are corrected instead.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from screenpath.kernels.compilation import clock
from screenpath.numbers import rounding
from screenpath.problem.base import PathModel
from screenpath.problem.ends import CLOSED, CONSTANT
from screenpath.screen.base import PathScreening
from screenpath.solve.base import Budget, Solver
from screenpath.walk import step as steps

MARGIN = 0.8  # the solver aims below the tolerance, so that the full data seldom disagrees with the reduced problem
HELD = 0.1  # part of the target of a solve that, with no dual variable at an end, serves larger parameters too
CLOSER = 0.1  # times its target, that of a point's next solve
MAX_ROUNDS = 6  # solve-and-certify rounds at one grid point before it is given up


@np.errstate(over="ignore", invalid="ignore")  # what overflows is said by the status of the step that it spoils
def solve_point(
    model: PathModel, parameter, rank: int, reference, screening: PathScreening, solver: Solver, options, begun=None
):
    """Screen, solve and certify one grid point; return its Step and its Certificate.

    ``options`` are :class:`screenpath.walk.loop.PathOptions`. With ``begun``, a certificate at this point, the solver
    goes on from its pair.
    """
    point = _Point(model, parameter, rank, reference, screening, solver, options, begun)
    point.screen()
    if not point.is_held():
        point.certify(*point.solve())
        while not point.is_done():
            point.screen_again()
            point.certify(*point.solve())
    point.take_the_best()
    return point.step(), point.certificate


class _Point:
    """A grid point under way: what is screened, the certificate of its latest pair, and the work so far."""

    def __init__(self, model, parameter, rank, reference, screening, solver, options, begun):
        self.clock = _Clock(model.rows)
        self.model, self.reference, self.parameter = model.bound(reference, parameter)
        self.rank, self.screening, self.solver, self.options = rank, screening, solver, options
        self.certificate = self.reference if begun is None else begun
        self.target = MARGIN * max(options.tol, screening.loose)
        self.epochs, self.rounds, self.touched, self.name = 0, 0, 0.0, CLOSED
        self.met, self.spent, self.settled, self.broken, self.faces = False, False, False, "", None
        if options.pulse is not None:
            options.pulse.begin(self.model.parameters(self.parameter), self.model.rows.n)

    def screen(self) -> None:
        """Apply the static rule."""
        self._fix(self.screening.before(self.model, self.reference, self.parameter))

    def _fix(self, screened) -> None:
        """Take decisions that those before have no part in; an audit looks at a copy, to which solves add theirs."""
        self.screened = self.first_screened = screened
        self.decided = screened.status.copy() if self.options.audit else None

    def screen_again(self) -> None:
        """Correct what was guessed; else aim lower, and apply the dynamic rule at the latest pair."""
        self.clock.enter("screen")
        aim = MARGIN * self.options.tol
        corrected = self.screening.corrected(self.model, self.certificate, self.screened, self.rounds)
        if corrected is not self.screened:
            self._fix(corrected)
            if self.rounds == MAX_ROUNDS - 1:  # the last one is for the answer
                self.target = min(self.target, aim)
            return
        self.target = min(CLOSER * self.target, aim)
        if self.faces is not None:
            self.certificate.faces = self.faces
        if self.screening.dynamic:
            self.screened = self.screening.again(self.model, self.certificate, self.parameter)
            if self.decided is not None:
                self.decided = np.where(self.screened.status != 0, self.screened.status, self.decided)

    def is_held(self) -> bool:
        """Tell whether a certificate is known without a solve, and take it."""
        self.clock.enter("solve")
        model, parameter, tol = self.model, self.parameter, self.options.tol
        held = _held(model, parameter, self.certificate, tol)
        if held is None and model.rests(self.certificate):
            held = _polished(model, parameter, self.certificate, tol)
            self.target *= HELD
        if held is not None:
            self.clock.enter("certify")
            self._take(*held)
        return held is not None

    def solve(self) -> tuple:
        """Return the next primal and dual point: the closed form's at first, where there is one, else the solver's."""
        self.clock.enter("solve")
        model, parameter, o = self.model, self.parameter, self.options
        if self.rounds == 0 and model.exact_until(self.reference, parameter):
            return None, self.reference.theta
        budget = Budget(o.max_epochs - self.epochs, o.deadline, o.pulse, self.touched + self.clock.rows.touched)
        reduced = model.reduce(parameter, self.screened, self.certificate)
        solution = self.solver.solve(
            reduced, tol=self.target, budget=budget, dynamic=self.screening.dynamic, rank=self.rank
        )
        self.epochs, self.touched = self.epochs + solution.epochs, self.touched + solution.touched
        self.name, self.settled, self.faces = solution.solver, solution.converged, solution.faces
        if self.decided is not None and solution.decided is not None:
            status = solution.decided()
            self.decided[reduced.index[status != 0]] = status[status != 0]
        return model.lift(parameter, reduced, solution)

    def certify(self, w, theta) -> None:
        """Take a pair of points, by its gap on the full data."""
        self.clock.enter("certify")
        found = self.model.certify(self.parameter, w, theta, self.certificate)
        self._take(_sharp(self.model, found, self.options.tol), self.name)

    def _take(self, certificate, name: str) -> None:
        self.certificate, self.name, self.rounds = certificate, name, self.rounds + 1
        self.met = rounding.meets(certificate, self.options.tol)
        self.spent = self.epochs >= self.options.max_epochs or self.options.late

    def is_done(self) -> bool:
        """Tell whether the gap is met, and no pair nearer to the optimum is worth a solve; or the budget is spent."""
        model = self.model
        further = self.met and model.refines and model.goes_on(self.parameter, self.certificate, self.reference)
        return (self.met and not further) or self.spent or self.rounds >= MAX_ROUNDS

    def take_the_best(self) -> None:
        """Take the best pair of points that is known, and of the decisions what it proves."""
        self.clock.enter("certify")
        model, tol = self.model, self.options.tol
        self.broken = steps.broken_by(self.certificate)
        if self.met:
            known = _sharp(model, model.no_worse(self.parameter, self.certificate, self.reference), tol)
            self.certificate = known if rounding.meets(known, tol) else self.certificate
        else:
            self.certificate = best_known(model, self.parameter, self.certificate, self.reference, tol)
        # The gap may be met before a guess of the rule has been looked at.
        both = self.first_screened, self.decided
        self.first_screened, self.decided = self.screening.proven(model, self.certificate, *both)

    def step(self) -> steps.Step:
        """Return the record of the point, which is over; its certificate is ready for the next one."""
        model, parameter, o = self.model, self.parameter, self.options
        touched, extras = self.touched + self.clock.stop(), {}
        if o.audit:
            extras = o.audit(model, parameter, self.rank, self.reference, self.certificate, self.decided)
        before = self.reference if self.solver.looks_ahead(model.rows) else None
        self.certificate = model.after(self.certificate, before, self.faces)
        judged = steps.verdict(self.certificate, o.tol, self.broken, self.spent, self.settled, model.rows.features)
        work = {"solver": self.name, "epochs": self.epochs, "rounds": self.rounds}
        step = steps.at_point(
            model, parameter, self.rank, self.certificate, self.first_screened, o.tol, judged, work, touched,
            self.clock.seconds, extras,
        )  # fmt: skip
        if o.pulse is not None:
            o.pulse.end()
        return step


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

    def stop(self) -> float:
        """Return the rows touched since the clock was made, and give the rows their old count back."""
        touched = self.rows.touched
        self.rows.touched += self._before
        return touched


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
