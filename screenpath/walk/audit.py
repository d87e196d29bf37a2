"""Audit of screening decisions: each grid point is solved again without screening and the decisions are compared."""

from __future__ import annotations

from screenpath.rules import Screening
from screenpath.rules.box import disproved, pair_ball
from screenpath.walk.loop import PathOptions, solve_point

SHARPER = 0.01  # the unscreened solve aims at this fraction of the path's tolerance
OBJECTIVE_ROUNDING = 1e-12  # relative; by this much two intervals [dual, primal] may miss each other by rounding
COLUMNS = ("unsafe", "audit_rel_gap")


def contradicted(model, accurate, parameter, decided) -> int:
    """Return how many decided rows of a box model the ball around a solution proves to be on the other side."""
    return disproved(model, pair_ball(accurate, parameter), decided)


class Audit:
    """Solve a grid point from the same start without any screening and count the decisions that it disproves.

    A decision is unsafe when the ball around the unscreened solution (radius from its own gap, so the solve need not be
    exact) proves the row to be on the other side of its kink. Should the two solutions' intervals ``[dual, primal]``
    not overlap, one of them is wrong and the point counts as unsafe as well.

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
        self.solver, self.contradicted = solver, contradicted
        self.options = PathOptions(SHARPER * options.tol, options.max_epochs, options.deadline, pulse=options.pulse)

    def __call__(self, model, parameter, rank, reference, certificate, decided) -> dict:
        """Return the columns ``unsafe`` (count) and ``audit_rel_gap`` (relative gap that the audit's solve reached)."""
        _, accurate = solve_point(
            model, parameter, rank, reference, Screening(None, False, "none"), self.solver, self.options
        )
        unsafe = self.contradicted(model, accurate, parameter, decided)
        slack = OBJECTIVE_ROUNDING * max(abs(accurate.primal), abs(certificate.primal))
        apart = certificate.dual > accurate.highest + slack or accurate.dual > certificate.highest + slack
        return {"unsafe": max(unsafe, int(apart)), "audit_rel_gap": accurate.rel_gap}
