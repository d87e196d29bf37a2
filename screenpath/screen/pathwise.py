"""Screening that knows the path: rules with a solution at the far end, one rule for several steps, and guesses.

``Pathwise`` is the algorithm of Ogawa 2013: the solution at the largest C is computed first; one dome then serves a
chunk of M steps. ``Heuristic`` is that paper's baseline, which guesses and checks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np

from screenpath.errors import UsageError
from screenpath.numbers import states
from screenpath.numbers.rounding import UNIT, gamma
from screenpath.problem.box_types import Screened
from screenpath.regions.geometry import Ball, Point
from screenpath.regions.lever import LeverRange
from screenpath.screen.base import PathScreening
from screenpath.screen.box import feasible_dome, pair_ball, pair_radius, pair_region

BISECTIONS = 30  # halvings of the segment in the line search for a feasible point
GUESSES = 3  # rounds at one grid point after which the heuristic leaves all rows to the solver
SIEVED, LOOSE = 5, 1e-3  # the same of the sieve; and the relative gap at which it looks at what it has left out
SEARCHES = 2  # of each of two directions, in turn, for the best point of a plane
GOLDEN = 0.5 * (sqrt(5.0) - 1.0)
SHARES = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875)  # of the way from one dual point to another
NARROWINGS = 18  # of a line search: to a six thousandth of the segment


def loss_floor(reference, C: float, primal: float) -> float:
    """Return a proven lower bound of ``xi(w*(C))``, the loss at the optimum.

    The optimal value V is concave in C and ``V' = xi(w*)``, so ``xi(w*(C)) >= (D_C''(theta) - P_C(w)) / (C'' - C)`` for
    every ``C'' > C`` and every feasible pair. The best ``C''`` gives ``ell - C T^2 - T sqrt(2 (P_C(w) - D_C(theta)))``
    with ``T = ||G'theta||``.

    The reference, of any parameter, supplies theta; ``primal`` is at least ``P_C(w)`` of any w, see
    :func:`primal_value`.
    """
    # Each term at the end of what rounding may have made of it; the last slack is that of this function itself.
    ell, total = reference.ell - reference.error, np.sqrt(reference.total_sq)
    total_sq = reference.total_sq * (1.0 + reference.relative) + reference.total_error
    sum_error = reference.sum_error + reference.shift
    total_sq += sum_error * (2.0 * total + sum_error)
    slack = reference.relative * (abs(reference.ell) + C * total_sq)
    gap = max(primal - C * ell + 0.5 * C * C * total_sq, 0.0) + C * slack + reference.relative * abs(primal)
    return float(ell - C * total_sq - np.sqrt(2.0 * total_sq * gap) * (1.0 + reference.relative) - slack)


def primal_value(reference, C: float) -> float:
    """Return an upper bound of ``P_C(w)`` of the reference's w at another parameter."""
    value = 0.5 * reference.point.sqnorm + C * (reference.xi + reference.error)
    return value * (1.0 + reference.relative)


# -- the floor of a ball -----------------------------------------------------------------------------------------------
# For any dual point ``theta``, ``xi(w*) >= ell(theta) - G'theta . w*``; and the optimum lies in the ball of any pair.
# The pair is made for a parameter that is not solved yet, from the reference and the far end of the path; its gap there
# is a small part of theirs.


@dataclass(frozen=True, slots=True)
class Dual:
    """A dual point as a bound of the loss: ``xi(w) >= ell - total . w`` for every w."""

    ell: float  # a lower bound of ``c . theta``, rounding included
    total: np.ndarray  # shape (d,): ``G'theta`` as computed
    error: float  # bound on the norm of its rounding error

    @classmethod
    def of(cls, certificate) -> Dual:
        lost = certificate.error + certificate.relative * abs(certificate.ell)
        return cls(certificate.ell - lost, certificate.total, certificate.sum_error + certificate.shift)

    def mixed(self, other: Dual, share: float) -> Dual:
        """Return the convex combination ``(1 - share) * self + share * other``."""
        total = self.total + share * (other.total - self.total)
        size = float(np.linalg.norm(self.total) + np.linalg.norm(other.total))
        ell = (1.0 - share) * self.ell + share * other.ell - 4.0 * UNIT * (abs(self.ell) + abs(other.ell))
        return Dual(ell, total, max(self.error, other.error) + 4.0 * UNIT * size)

    def floor(self, center, radius: float) -> float:
        """Return its lower bound of the loss over all w of a ball."""
        reach, length = float(np.linalg.norm(center)), float(np.linalg.norm(self.total))
        lost = self.error * (reach + radius) + gamma(2 * center.size + 16) * length * (reach + radius)
        value = self.ell - float(self.total @ center) - radius * length
        return value - lost - 8.0 * UNIT * (abs(self.ell) + abs(value))


def ball_floor(pair, *others: Dual) -> float:
    """Bound ``xi(w*(C))`` from below on a pair's ball: the best of its dual point, the ``others``, and some between."""
    center, radius = 0.5 * (pair.point.vector + pair.C * pair.total), pair_radius(pair, pair.C) + pair.C * pair.shift
    duals = [Dual.of(pair), *others]
    between = [a.mixed(b, share) for a, b in combinations(duals, 2) for share in SHARES]
    return max(one.floor(center, radius) for one in (*duals, *between))


def nearer_pair(model, reference, far, C: float) -> tuple:
    """Return a pair made for ``C``, between ``reference`` and ``far``, and a second dual point; three data passes.

    Its w is nearly the best of the plane of the two references' w; its theta is the best between the reference's and
    that of w's own margins, which is the second dual point.
    """
    own, other = _best_in_plane(model.losses(reference), reference.point, far.point, C, C / reference.C)
    margins = own * reference.point.products + other * far.point.products
    guess, off, moved = model.corner(margins)
    total, _, error = model.updated_sum(guess, reference)
    terms = model.c * guess
    ell, step = float(terms.sum()), total - reference.total
    curve = C * float(step @ step)
    rise = ell - reference.ell - C * float(reference.total @ step)
    share = min(max(rise / curve, 0.0), 1.0) if curve > 0.0 else 0.0
    theta = np.clip(reference.theta + share * (guess - reference.theta), model.lo, model.hi)
    w = own * reference.point.vector + other * far.point.vector
    lost = gamma(model.size) * float(np.abs(terms).sum()) + off
    return model.certify(C, w, theta, reference), Dual(ell - lost, total, error + moved)


def _best_in_plane(losses, a, b, C: float, ratio: float) -> tuple[float, float]:
    """Return ``s, v`` that nearly minimise the objective at ``s a + v b``, one after the other; no data pass."""
    inner = float(a.vector @ b.vector)

    def primal(s, v):
        square = s * s * a.sqnorm + v * v * b.sqnorm + 2.0 * s * v * inner
        return 0.5 * square + C * losses(s * a.products + v * b.products)[0]

    s, v = 1.0, 0.0
    for _ in range(SEARCHES):
        v = _least(lambda x, s=s: primal(s, x), 0.0, 1.0)
        s = _least(lambda x, v=v: primal(x, v), 0.0, ratio)
    return s, v


def _least(function, low: float, high: float) -> float:
    """Return the approximate minimiser of a convex function of one number (golden section)."""
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a, at_b = function(a), function(b)
    for _ in range(NARROWINGS):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = function(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = function(b)
    return 0.5 * (low + high)


# -- the screenings ----------------------------------------------------------------------------------------------------


def feasible_point(model, near, far, floor: float) -> Ball | None:
    """Return the first point from ``near.w`` towards ``far.w`` whose loss is at most ``floor`` (bisection).

    The loss is convex along the segment, and its margins are those of the two ends in proportion: no data pass. It is
    a Ball of radius 0, or None if even ``far.w`` has a larger loss.
    """
    ends = near.point, far.point
    error, losses = near.error + far.error + _loss_error(model, *ends), model.losses(near)

    def loss(share):
        found, off = losses((1.0 - share) * ends[0].products + share * ends[1].products)
        return found * (1.0 + gamma(model.size)) + error + off

    if loss(1.0) > floor:
        return None
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if loss(middle) <= floor else (middle, high)
    vector = (1.0 - high) * ends[0].vector + high * ends[1].vector
    products = (1.0 - high) * ends[0].products + high * ends[1].products
    return Ball(Point(vector, products, float(vector @ vector)), 0.0)


def _loss_error(model, a: Point, b: Point) -> float:
    """Return by how much rounding of the margins can change the loss of a point between two.

    A margin has the error of its row's product with a vector, and that of combining two; none of it is relative to the
    loss itself, which cancels where targets are met.
    """
    product = gamma(2 * model.rows.d + 8) * (np.sqrt(a.sqnorm) + np.sqrt(b.sqnorm))
    terms = product * model.norms + gamma(8) * (np.abs(model.c) + np.abs(a.products) + np.abs(b.products))
    return float(np.maximum(np.abs(model.lo), np.abs(model.hi)) @ terms) * (1.0 + gamma(model.size))


class BoxScreening(PathScreening):
    """What the screenings of the box models share: their dynamic rule."""

    __slots__ = ()

    def again(self, model, certificate, parameter) -> Screened:
        return model.screen(pair_region(certificate, parameter))


class Pathwise(BoxScreening):
    """A static rule with the far end of the path, step by step or for chunks of steps (Ogawa 2013, Algorithm 2).

    ``static``, ``dynamic`` and ``name`` are those of :class:`Composed`.

    Parameters
    ----------
    chunk : int, optional
        Steps that one rule serves, found with a feasible point of the line search; without it each step has its
        own rule, with the far end as the feasible point (as in Wang 2014). So has the first step of the path: a chunk
        begins at one that has been solved (Algorithm 2).
    form : {"C", "s"}
        How to find the loss ``s_b`` that the feasible point must not exceed. ``C``: the best of :func:`loss_floor` and
        :func:`ball_floor` at the last C of the chunk, proven before the rule is used. ``s``: tried, by
        interpolation between the reference and the far end to one step beyond the chunk; the certificate of each step
        proves it, or the rule is given up.
    """

    def __init__(self, static, dynamic: bool, name: str, chunk: int | None = None, form: str = "C"):
        if chunk is not None and chunk < 1:
            raise UsageError(f"a chunk has at least 1 grid point, not {chunk}")
        if form not in ("C", "s"):
            raise UsageError(f"unknown form '{form}' of the chunks", "use C or s")
        self.static, self.dynamic, self.name = static, dynamic, name
        self.chunk, self.form = chunk, form
        self.far: Any = None
        self.grid = np.empty(0)
        self.search_s = 0.0  # of line searches, in all: a part of the rule's time
        self._restart()

    def _restart(self):
        self.left, self.floor, self.status = 0, -np.inf, np.zeros(0, dtype=np.int8)

    needs_far_end = True

    @property
    def needs_known_grid(self) -> bool:
        return self.chunk is not None

    @property
    def compiled(self) -> int | None:
        """Return that a compiled walk is given decisions; those of a chunk are counted: the loop asks for them."""
        return self.static.compiled if self.chunk is None else None

    def begin(self, grid, far, resumed: bool) -> None:
        self.grid, self.far = np.asarray(grid if self.chunk else (), dtype=np.float64), far
        if not resumed:
            self._restart()

    def before(self, model, reference, parameter) -> Screened:
        """Screen from the previous step and the far end, or continue with the chunk's decisions."""
        if self.chunk is None or parameter == self.grid[0]:
            return model.screen(self.static.region(model, reference, parameter, self.far))
        if self.left == 0:
            self.left, self.floor, self.status = self._new_rule(model, reference, parameter, self.chunk)
        self.left -= 1
        return Screened.of(self.status)

    def corrected(self, model, certificate, screened: Screened, rounds: int) -> Screened:
        """Return the decisions; if the certificate does not prove their ``s_b``, they are made anew, safely."""
        if self._proven(certificate):
            return screened
        self._restart()
        return self._safe(model, certificate)

    def proven(self, model, certificate, screened: Screened, decided) -> tuple:
        """Return the decisions that a finished step may claim, whatever its gap.

        These are the arguments, or, if ``s_b`` stays unproven, only those decisions that a safe rule makes too. What a
        dynamic rule found among the survivors of an unproven one is withdrawn with it.
        """
        if self._proven(certificate):
            return screened, decided
        safe = self.corrected(model, certificate, screened, 0)
        kept = Screened.of(np.where(safe.status == screened.status, screened.status, np.int8(0)))
        return kept, None if decided is None else kept.status.copy()

    def _proven(self, certificate) -> bool:
        """Tell whether the optimum at the certificate's parameter has at least the loss ``s_b`` (C-form: always)."""
        if self.floor == -np.inf:
            return True
        return loss_floor(certificate, certificate.C, primal_value(certificate, certificate.C)) >= self.floor

    def state(self) -> dict:
        return {} if self.chunk is None else {"left": self.left, "floor": self.floor, "status": self.status}

    def restore(self, state, model) -> None:
        if self.chunk is not None:
            self.left, self.floor = states.count(state, "left"), states.number(state, "floor")
            self.status = states.decisions(state, "status", model.size if self.left else np.size(state.get("status")))

    def _new_rule(self, model, reference, parameter, chunk: int):
        # The last of points that are alike: from the first, those served would reach beyond what was looked at.
        start = int(np.flatnonzero(self.grid == parameter)[-1])
        served, since = self.grid[start : start + chunk], time.perf_counter()
        if self.form == "C":
            # The loss is least at the largest C.
            target, floor = self.proven_floor(model, reference, float(served.max())), -np.inf
        else:
            target = floor = self._guessed_floor(reference, self.grid[min(start + chunk, self.grid.size - 1)])
        nearby = feasible_point(model, reference, self.far, target)
        self.search_s += time.perf_counter() - since
        far = pair_ball(self.far, self.far.C)  # serves every C up to the far end
        if nearby is None or nearby.extent > far.extent:
            nearby, floor = far, -np.inf
        region = feasible_dome(reference, nearby, served, self.static.enhanced)
        return served.size, floor, self._chunk(model, reference, region, served)

    def _chunk(self, model, reference, region, served) -> np.ndarray:
        """Return what is decided for all parameters of a chunk.

        With a free intercept its dome decides by the interval of the intercepts that it leaves, and levers of the
        reference's pair by what holds from the first parameter to the last: these ask neither for a far end nor for the
        loss of a feasible point.
        """
        by_region = model.screen(region).status
        if reference.intercept is None:
            return by_region
        by_levers = model.screen(LeverRange(reference, float(served.min()), float(served.max()))).status
        return np.where(by_levers != 0, by_levers, by_region)

    def _safe(self, model, certificate) -> Screened:
        """Return decisions at the parameter of a pair that rest only on what is proven."""
        if certificate.intercept is not None:
            return self.again(model, certificate, certificate.C)
        return model.screen(self.static.region(model, certificate, certificate.C, self.far))

    def proven_floor(self, model, reference, C: float) -> float:
        """Return a lower bound of the loss at the optimum at C, from the reference and the far end."""
        primal = min(primal_value(reference, C), primal_value(self.far, C))
        pair, further = nearer_pair(model, reference, self.far, C)
        near = ball_floor(pair, further, Dual.of(reference), Dual.of(self.far))
        return max(loss_floor(reference, C, primal), loss_floor(self.far, C, primal), near)

    def _guessed_floor(self, reference, C: float) -> float:
        a, b = reference, self.far
        if not (a.xi > 0.0 and b.xi > 0.0 and a.C < b.C):
            return b.xi
        share = np.log(C / a.C) / np.log(b.C / a.C)
        return float(a.xi ** (1.0 - share) * b.xi**share)


class Heuristic(BoxScreening):
    """Guess R and L from the previous solution, check on the full data, repeat (the baseline of Ogawa 2013).

    Not safe: wrong guesses are found and freed because every point is certified on the full data.
    """

    static, dynamic, name = None, False, "heuristic"

    def before(self, model, reference, parameter) -> Screened:
        """Decide the rows that the previous solution has outside the kink, with their dual variable at the end."""
        slack = _beyond_kinks(model, reference)
        lower, upper = (reference.theta == model.lo) & (slack < 0.0), (reference.theta == model.hi) & (slack > 0.0)
        return Screened.of(upper.astype(np.int8) - lower.astype(np.int8))

    def corrected(self, model, certificate, screened: Screened, rounds: int) -> Screened:
        """Return the decisions except those that the solution found with them contradicts."""
        if rounds == GUESSES:
            return model.nothing_screened()
        slack = _beyond_kinks(model, certificate)
        wrong = screened.status * slack < 0.0
        return Screened.of(np.where(wrong, 0, screened.status).astype(np.int8)) if wrong.any() else screened


class Sieve(Heuristic):
    """Guess R and L like ``heuristic``, solve roughly, free rows with (nearly) wrong residuals, repeat.

    Adaptive sieving (Yuan, Lin, Sun and Toh 2023, arXiv 2306.17369, Algorithm 1), of samples instead of features: it
    needs no radius, however far apart the steps are. Not safe by itself: every step is certified on the full data.
    """

    name, loose = "sieve", LOOSE

    def corrected(self, model, certificate, screened: Screened, rounds: int) -> Screened:
        """Return the decisions except those that the solution contradicts, or confirms by less than that."""
        if rounds >= SIEVED:
            return super().corrected(model, certificate, screened, GUESSES)
        right = screened.status * _beyond_kinks(model, certificate)
        wrong = right < 0.0
        if not wrong.any():
            return screened
        return Screened.of(np.where(right >= -right[wrong].mean(), screened.status, 0).astype(np.int8))


def _beyond_kinks(model, certificate) -> np.ndarray:
    """Return the distance of each row from its kink, above 0 if the dual variable belongs to the upper end."""
    return model.kinks_of(certificate)[0] - certificate.point.products


GUESSED = {rule.name: rule for rule in (Heuristic, Sieve)}  # rules that are right only where the certificate says so
