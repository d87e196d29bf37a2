"""The rules of box models with a free intercept, by levers (``regions.lever``) or by where the intercept can be.

Each derivation of a region that uses no more of the losses than that their sum is convex in ``w`` holds word for word,
the intercept being the best for each ``w``. A region that comes with a dual point is decided by levers, the others by
the interval that the best intercepts of its points cover (``FreeModel.screen``).
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from screenpath.errors import UsageError
from screenpath.kernels.problem.box import LEAST
from screenpath.kernels.walk.compiled_types import PAIR_BALL
from screenpath.numbers.rounding import OUTWARD
from screenpath.regions.geometry import Ball
from screenpath.regions.lever import LeverBall, LeverPencil, LeverRange
from screenpath.screen import Screening, no_chunk
from screenpath.screen.base import StaticRule
from screenpath.screen.box import ESSNSV, SSNSV, disproved, pair_ball
from screenpath.screen.pathwise import GUESSED, Heuristic, Pathwise
from screenpath.screen.plugins import plugged_rule


def lever_ball(reference, C: float) -> LeverBall:
    """Return the ball around the optimal ``w`` at ``C`` from the reference's pair, and the dual point for its levers.

    The ball is that of :func:`screenpath.screen.box.pair_ball`, whose derivation a free intercept does not change;
    the rounding error of the dual point's sum moves its centre, and makes it larger.
    """
    return LeverBall(pair_ball(reference, C), C, reference.theta, reference.residue)


def lever_guess(model, reference, C: float) -> LeverBall:
    """Return the ball of the reference's w and a guess of the dual point (Ogawa 2014, Section IV-C), for levers.

    The guess maximises ``sum theta_i q_i`` over the dual points whose signed sum is 0, ``q = c - (C + C0)/(2 C0) g.w``:
    rows are at the end that the best intercept for the scaled products asks for, and those nearest to it correct the
    sum.
    """
    t = model.placed(0.5 * (1.0 + C / reference.C) * reference.point.products)[-1]
    found = model.balanced(np.where(t > 0.0, model.hi, model.lo), t)
    center, dual_sq, rounding, shift = model.middle(reference, found.theta, C)
    slope = C * (reference.xi - float(np.einsum("i,i", model.c, found.theta)))
    error = 2.0 * C * reference.error + rounding + reference.relative * (reference.point.sqnorm + dual_sq)
    error += C * found.residue * model.largest_kink
    shift += 0.5 * C * found.residue * model.largest_norm + (1.0 + C + C / reference.C) * LEAST
    ball = Ball(center, (sqrt(max(center.sqnorm + slope, 0.0) + error) + shift) * OUTWARD)
    return LeverBall(ball, C, found.theta, found.residue)


class FreeDVI(StaticRule):
    """DVI_s of Wang 2014 with a free intercept: the ball of the reference's pair, decided by a lever on either side."""

    name = "dvi"
    compiled = PAIR_BALL

    def region(self, model, reference, C: float) -> LeverBall:
        return replace(lever_ball(reference, C), one=True)


class FreeBT2(StaticRule):
    """Ball test 2 of Ogawa 2014 with a free intercept: the reference's w and a guess of the dual point."""

    name = "bt2"

    def region(self, model, reference, C: float) -> LeverBall:
        return lever_guess(model, reference, C)


class FreeIT(StaticRule):
    """Intersection test of Ogawa 2014 with a free intercept: both balls, and those between them."""

    name = "it"

    def region(self, model, reference, C: float) -> LeverPencil:
        return LeverPencil(lever_ball(reference, C), lever_guess(model, reference, C))


STATIC: dict[str, type[StaticRule]] = {
    "dvi": FreeDVI, "bt1": FreeDVI, "bt2": FreeBT2, "it": FreeIT, "ssnsv": SSNSV, "essnsv": ESSNSV,
}  # fmt: skip
KERNEL = ("dvi", "bt1", "bt2", "it")


class FreeScreening(Screening):
    """What is screened when, with a free intercept."""

    __slots__ = ()

    def again(self, model, certificate, parameter):
        return model.screen(lever_ball(certificate, parameter))


class FreePathwise(Pathwise):
    """A rule with the far end of the path, with a free intercept.

    A chunk is decided by the interval of the intercepts that its dome leaves, and by levers of the reference's pair
    that hold from its first parameter to its last: they ask neither for a far end nor for the loss of a feasible point.
    """

    def _chunk(self, model, reference, region, served):
        """Return what the dome of a chunk decides, and what levers do."""
        by_interval = super()._chunk(model, reference, region, served)
        by_levers = model.screen(LeverRange(reference, float(served.min()), float(served.max()))).status
        return np.where(by_levers != 0, by_levers, by_interval)

    def _safe(self, model, certificate):
        """Return what levers of a pair decide at its own parameter."""
        return self.again(model, certificate, certificate.C)

    def again(self, model, certificate, parameter):
        return model.screen(lever_ball(certificate, parameter))


def parse_free_rule(text: str, chunk: int | None = None, form: str = "C") -> FreeScreening | FreePathwise | Heuristic:
    """Turn ``none``, ``gap``, ``heuristic``, ``sieve``, ``RULE`` or ``RULE+gap`` into a screening of a linear model.

    Parameters
    ----------
    text : str
        RULE is one of ``STATIC``.
    chunk, form
        See :class:`screenpath.screen.pathwise.Pathwise`; only for rules with a far end.

    Raises
    ------
    UsageError
        For any other rule, naming those that work, or a chunk with a rule that has no far end.
    """
    if (own := plugged_rule(text, FreeScreening, FreePathwise, chunk)) is not None:
        return own
    guess = GUESSED.get(text.strip().lower())
    if guess is not None:
        no_chunk(text, chunk)
        return guess()
    return _parsed(text, tuple(STATIC), f"{', '.join(GUESSED)}, ", chunk, form)


def parse_free_kernel_rule(text: str) -> FreeScreening | FreePathwise:
    """Turn such a text into a screening of a kernel model, RULE one of ``KERNEL``.

    Raises
    ------
    UsageError
        For any other rule, naming those that work.
    """
    return plugged_rule(text, FreeScreening) or _parsed(text, KERNEL)


def _parsed(
    text: str, names: tuple, more: str = "", chunk: int | None = None, form: str = "C"
) -> FreeScreening | FreePathwise:
    parts = [part.strip().lower() for part in text.split("+")]
    static = [part for part in parts if part in names]
    others = [part for part in parts if part not in names and part != "gap"]
    if len(static) > 1 or (others and parts != ["none"]) or len(set(parts)) < len(parts):
        raise UsageError(
            f"with `intercept=free` there is no rule '{text}'",
            f"use none, gap, {more}{', '.join(names)}; or one of these with +gap, such as dvi+gap",
        )
    rule = STATIC[static[0]]() if static else None
    if rule is not None and rule.needs_far_end:
        return FreePathwise(rule, "gap" in parts, text, chunk, form)
    no_chunk(text, chunk)
    return FreeScreening(rule, "gap" in parts, text)


def contradicted(model, accurate, parameter, decided) -> int:
    """Return how many decided rows the ball around a solution proves to be on the other side (for ``--audit``)."""
    return disproved(model, lever_ball(accurate, parameter), decided)
