"""Audit of screening decisions: each step is solved again without screening and the decisions are compared."""

from __future__ import annotations

from screenpath.numbers import rounding
from screenpath.screen import Screening
from screenpath.screen.box import disproved, pair_ball
from screenpath.walk.loop import PathOptions, solve_point

SHARPER = 0.01  # the unscreened solve aims at this fraction of the path's tolerance
OBJECTIVE_ROUNDING = 1e-12  # relative; by this much two intervals [dual, primal] may miss each other by rounding
COLUMNS = ("unsafe", "audit_rel_gap")


def contradicted(model, accurate, parameter, decided) -> int:
    """Return how many decided rows of a box model the ball around a solution proves to be on the other side."""
    return disproved(model, pair_ball(accurate, parameter), decided)


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
    """

    def __init__(self, solver, options: PathOptions, contradicted=contradicted):
        self.solver, self.contradicted, self.tol = solver, contradicted, options.tol
        self.options = PathOptions(SHARPER * options.tol, options.max_epochs, options.deadline, pulse=options.pulse)

    def __call__(self, model, parameter, rank, reference, certificate, decided) -> dict:
        """Return the columns ``unsafe`` (count, or None) and ``audit_rel_gap`` (relative gap of the audit's solve)."""
        _, accurate = solve_point(
            model, parameter, rank, reference, Screening(None, False, "none"), self.solver, self.options
        )
        solved = rounding.meets(accurate, self.tol)
        unsafe = self.contradicted(model, accurate, parameter, decided)
        slack = OBJECTIVE_ROUNDING * max(abs(accurate.primal), abs(certificate.primal))
        apart = certificate.dual > accurate.highest + slack or accurate.dual > certificate.highest + slack
        unsafe = max(unsafe, int(apart))
        return {"unsafe": unsafe if solved or unsafe else None, "audit_rel_gap": accurate.rel_gap}


def added(counts: list) -> int | None:
    """Return the sum of counts of unsafe decisions; None if one is unknown and no other is above 0."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) or any(known) else None
