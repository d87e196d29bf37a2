"""The rules of box models with a free intercept: the pair's ball, and what levers decide by it (``models.lever``)."""

from __future__ import annotations

import numpy as np

from screenpath.errors import UsageError
from screenpath.models.geometry import Ball
from screenpath.models.lever import LeverBall
from screenpath.rules import Screening
from screenpath.rules.base import StaticRule
from screenpath.rules.box import pair_ball

FREE = ("dvi", "bt1")  # the static rules that there are


def lever_ball(reference, C: float) -> LeverBall:
    """Return the ball around the optimal ``w`` at ``C`` from the reference's pair, and the dual point for its levers.

    The ball is that of :func:`screenpath.rules.box.pair_ball`, whose derivation takes no notice of a free intercept;
    what rounding has left of the dual point's sum moves its centre, and makes it larger.
    """
    ball = pair_ball(reference, C)
    return LeverBall(Ball(ball.center, ball.radius + C * reference.shift), C, reference.theta, reference.residue)


class FreeDVI(StaticRule):
    """DVI_s of Wang 2014 with a free intercept: the ball of the reference's pair, decided by levers."""

    name = "dvi"

    def region(self, model, reference, C: float) -> LeverBall:
        """Return the ball of the reference's own pair at the new parameter."""
        return lever_ball(reference, C)


class FreeScreening(Screening):
    """What is screened when, with a free intercept."""

    __slots__ = ()

    def again(self, model, certificate, parameter):
        """Screen with the ball of a certified pair at the same parameter (dynamic rule, all rows)."""
        return model.screen(lever_ball(certificate, parameter))


def parse_free_rule(text: str) -> FreeScreening:
    """Turn ``none``, ``gap``, ``dvi``, ``bt1`` or one of these two with ``+gap`` into a screening.

    Raises
    ------
    UsageError
        For any other rule, naming those that work.
    """
    parts = [part.strip().lower() for part in text.split("+")]
    static = [part for part in parts if part in FREE]
    others = [part for part in parts if part not in FREE and part != "gap"]
    if len(static) > 1 or (others and parts != ["none"]) or len(set(parts)) < len(parts):
        raise UsageError(
            f"with `intercept=free` there is no rule '{text}'",
            f"use none, gap, {', '.join(FREE)}, {', '.join(f'{name}+gap' for name in FREE)}",
        )
    return FreeScreening(FreeDVI() if static else None, "gap" in parts, text)


def contradicted(model, accurate, parameter, decided) -> int:
    """Return how many decided rows the ball around a solution proves to be on the other side (for ``--audit``)."""
    proven = model.screen(lever_ball(accurate, parameter)).status
    return int(np.count_nonzero((proven * decided < 0) & (model.lo < model.hi)))
