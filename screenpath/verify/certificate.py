r"""The certificate of a step: the gap as a sum of shares, all rounding counted, in two passes over the data.

Gap         P - D = W sum_i s_i share(theta_i, t_i) + sum_j share(w_j, u_j)    (:func:`screenpath.verify.exact.share`)
Rounding    of ``t_i`` and ``u_j``: the larger one of the shares at both ends of what is known of them
alpha = 0   asks for ``|u_j| <= beta``, which ``x theta`` meets for ``x = beta / max |u_j|``. Nothing is scaled:
            ``P - D(x theta) = x (P - D(theta)) + (1 - x) [P - x W sum_i s_i curve/2 theta_i^2]``, of which the square
            is left out but for points of the checker's own, which may have ``x > 1`` as well
Intercept   asks for sums that are 0 (:class:`Flow`)
Weights     of ``r_i`` times the exact ones, ``|1 - r_i| <= e``: ``(1 - e) theta_i / r_i`` is a dual point of the exact
            problem; the losses differ by ``e`` of them, the products with theta by as much, ``u`` by ``e u``
Ball        of the pair of C0 at C, x = C / C0, where Gamma is the rows' part of the gap at C0:
            ``||w* - (w + x u)/2||^2 <= ||w - x u||^2 / 4 + x Gamma``

Pass 1 forms u; pass 2 the products ``g_i.w``, of losses without curve again and exactly for the few rows whose share
may not be 0. A claim about a row needs the ball's radius, which is known only after the last row:
of each pair and C the smallest radius is kept at which some claim would fail.
"""

from __future__ import annotations

import math
from copy import copy
from functools import cached_property
from itertools import product

import numpy as np

from screenpath.errors import DataError
from screenpath.verify.data import Block
from screenpath.verify.exact import (
    GROW,
    TINY,
    UNIT,
    UP,
    Cells,
    ColumnSums,
    bound,
    divided,
    fsum,
    norm_above,
    share,
    squared,
    two_product,
)  # fmt: skip
from screenpath.verify.file import AFTER, BEFORE, BETWEEN, HIGH, LOW, NOTHING, OWN, unpack
from screenpath.verify.model import Model, Part

UNSURE = 2.0**-34  # part of the primal value that the error of a loss may be worth, over the number of rows
NORMAL = 2.0**-960  # products that are not smaller have an exact rest
PAIRS = {OWN: 0, BEFORE: -1, AFTER: 1}


class Flow:
    """What a free intercept asks of a dual point: sums that are 0, and of what rounding has left of them, a way.

    A dual variable adds to the sum of one node (``own``) and takes from that of another (``other``): classes, or the
    one sum and a ground. Sums that are not 0 become so where some of theta flows on from node to node, a variable on
    each step of the way that has room for it: of each step the one at which the gap grows least is kept, by slopes,
    norms, and ``curve / v``. Nothing is moved: at most ``size`` flows through any variable, so that the gap grows by no
    more than ``size`` times the slopes along the worst way, ``|t - curve theta| + curve size / v`` each, and u moves by
    no more than ``size`` times the norms of its rows (and the root of 2, if a row moves the sums of two classes).
    """

    def __init__(self, nodes: int):
        self.found = np.full((3, nodes, nodes), math.inf)
        self.value = np.full((nodes, nodes), math.inf)  # by which variables are compared

    @staticmethod
    def size(value: np.ndarray, off: np.ndarray) -> float:
        """Return the most that has to flow where the sums have these values, each off by so much."""
        found = UP * fsum(np.abs(value) + off)
        return found if value.size == 1 else 0.5 * found

    def look(self, part: Part, theta, growth: tuple, size: float, pull: tuple[float, float]) -> None:
        """Look for variables of a block, rows' slopes and norms as ``growth``, at which the gap grows less.

        ``size`` is infinite where it is not known yet: then variables that have room for anything will do.
        """
        (slopes, norms), (lo, hi, curve, _) = growth, part.cells
        with np.errstate(divide="ignore", invalid="ignore"):
            value = slopes + norms * (pull[0] + pull[1] * norms) + (curve * size / part.v if size < math.inf else 0.0)
            for away, into, room in ((part.other, part.own, hi - theta), (part.own, part.other, theta - lo)):
                room = np.where(part.v > 0.0, part.v * room * (1.0 - 4.0 * UNIT), 0.0)
                able, steps = (room >= size) & (room > 0.0), away * len(self.value) + into
                for step in np.unique(steps[able]).tolist():
                    (a, b), rows = divmod(step, len(self.value)), np.flatnonzero(able & (steps == step))
                    best = rows[np.argmin(value[rows])]
                    if value[best] < self.value[a, b]:
                        self.value[a, b] = value[best]
                        curved = np.broadcast_to(curve, theta.shape)[best] / part.v[best]
                        self.found[:, a, b] = slopes[best], norms[best], curved

    def costs(self, value: np.ndarray, off: np.ndarray) -> tuple[float, float, float]:
        """Return bounds of what the gap grows by, of how far u moves, and of the square of theta's move; before W.

        That square is weighted: ``sum_i v_i curve/2 d_i^2``.
        """
        size, single = self.size(value, off), value.size == 1
        if size == 0.0:
            return 0.0, 0.0, 0.0
        if single:
            value, off = np.array([value[0], -value[0]]), np.append(off, off)
        slopes, norms, curves = self.found
        curved = size * curves
        ways = worst_ways(np.stack([slopes + curved, norms, curved]))
        ends = np.ix_(value + off > 0.0, value - off < 0.0)  # from where there is too much to where there is too little
        cost, norm, square = (UP * size * float(np.max(part[ends], initial=0.0)) for part in ways)
        return cost, (1.0 if single else 1.5) * norm, 0.5 * square


def worst_ways(parts: np.ndarray) -> np.ndarray:
    """Return the sums of parts along a way from each node to each other one, each a way of small first parts."""
    parts, every = parts.copy(), range(parts.shape[1])
    parts[:, every, every] = 0.0
    for k, p, q in product(every, every, every):
        if p != q and p != k and q != k and parts[0, p, k] + parts[0, k, q] < parts[0, p, q]:
            parts[:, p, q] = UP * (parts[:, p, k] + parts[:, k, q])
    return parts


class Pair:
    """What the passes find out about one step."""

    def __init__(self, model: Model, entry: dict):
        self.model, self.entry = model, entry
        self.w = model.solution(entry)
        # What the run reports as coefficients, before they are scaled back; a row for each class if there are several.
        self.solution = self.w if self.w.ndim > 1 and model.nodes > 1 else self.w.ravel()
        self.num, self.alpha, self.beta = model.penalty(entry)
        self.sums = [ColumnSums(model.width) for _ in range(model.nodes)]
        self.flow, self.lost = Flow(max(model.nodes, 2)), 0.0  # what t is off by in addition to its products
        # By block, before W:
        self.terms: list[float] = []  # upper bounds of the rows' shares
        self.losses: list[float] = []  # their losses,
        self.spread: list[float] = []  # and what these may be off by
        self.squares: list[float] = []  # ``curve/2 theta^2``
        # For each kind of claim the radius at which the first row would fail, and that row.
        self.allowed: dict[int, tuple[float, int]] = {}
        # Fewest and most dual variables at 0 or their lower end (R), at their upper end (L), between (E).
        self.counts = {name: [0, 0] for name in ("n_R", "n_L", "n_E")}
        self.faults: list[str] = []
        self.claims, self.digits = 0, model.digits
        if not model.own:
            self.between = np.flatnonzero(unpack(entry["states"], 0, model.n * model.parts_each) == BETWEEN)
            if entry["between"].size != self.between.size:
                raise DataError(f"step {entry['step']}: the certificate's numbers do not fit the data")

    # -- rows ----------------------------------------------------------------------------------------------------------

    def codes(self, name: str, part: Part) -> np.ndarray:
        return unpack(self.entry[name], part.first, part.first + part.c.size)

    def theta(self, part: Part) -> np.ndarray:
        """Return the dual variables of a block, and note a state or a value that is none."""
        (lo, hi, _, _), states = part.cells, self.codes("states", part)
        a, b = np.searchsorted(self.between, [part.first, part.first + part.c.size])
        theta = np.where(states == HIGH, min(hi, 1.0) if np.ndim(hi) == 0 else hi, lo)
        theta[self.between[a:b] - part.first] = self.entry["between"][a:b]
        inside = (lo <= theta) & (theta <= hi) & (theta < math.inf) & (part.there | (theta == 0.0))
        bad = np.flatnonzero((states > BETWEEN) | ~inside)
        if bad.size:
            self.faults.append(f"row {part.first + bad[0] + 1}: the dual variable is outside its box")
            theta[bad] = math.nan
        return theta

    def add(self, block: Block, part: Part, theta: np.ndarray) -> None:
        for mass in [theta] if self.model.box else two_product(part.v, theta):
            for node, sums in enumerate(self.sums):
                sums.add(block, np.where(part.own == node, mass, np.where(part.other == node, -mass, 0.0)))

    def kinks(self, part: Part) -> tuple[np.ndarray, np.ndarray]:
        """Return the kinks of a block's linear forms in two parts; the second may be rounded."""
        return part.c, part.tail

    def look(self, block: Block, part: Part, forms: tuple, norms) -> None:
        """Add a block's rows to the gap and to the losses; ``forms`` are products of the nodes, bounds of errors."""
        model, v, every = self.model, part.v, np.arange(part.c.size)
        (p, q), (e, f) = ((values[part.own, every], values[part.other, every]) for values in forms)
        form = p - q
        c, tail = self.kinks(part)
        t = c - form
        error = e + f + UNIT * np.abs(t) + (UNIT * np.abs(form) if model.nodes > 1 else 0.0) + self.lost
        if tail.any():
            t = t + tail
            error = error + UNIT * (np.abs(t) + np.abs(tail))
        theta = np.maximum(t, 0.0) if model.own else self.theta(part)
        cells = part.cells
        if not (model.kernel or model.own):
            self._exactly(block, part, theta, t, error)
        if model.curve:  # of both ends of t, of the product that is subtracted, and of a curve over a weight
            error += UP * UNIT * (np.abs(t) + error + 2.0 * cells.curve * np.abs(theta))
        ends = (t - error, 0.0), (t + error, 0.0)
        most, steep = v * bound(cells, theta, *ends)[0], bound(cells, 0.0, *ends)[1]
        losses = fsum(v * share(cells, 0.0, t)[0])
        self.losses.append(losses)
        self.terms.append(UP * (fsum(most) + model.inexact * (2.0 * losses + fsum(most))))
        self.spread.append(UP * fsum(v * steep * (error + 2.0 * UNIT * np.abs(t))))
        if model.own:
            self.add(block, part, theta)
        self._count(part, t, error)
        if model.curve:
            self.squares.append(0.5 * fsum(cells.curve * v * theta * theta))
        if model.free:
            size = math.inf if model.own else self.flow_size
            self.flow.look(part, theta, (np.abs(t - cells.curve * theta) + error, norms), size, self.pull)

    def _exactly(self, block: Block, part: Part, theta, t, error) -> None:
        """Form those products again, in place, whose shares may not be 0, or whose losses are too unsure."""
        (lo, hi, curve, _), high, low = part.cells, t + error, t - error
        again, steep = ((hi - theta) * high > 0.0) | ((theta - lo) * low < 0.0), np.maximum(-lo, hi)
        if self.model.curve:  # the shares of the gap are squares of errors
            again, steep = np.zeros(t.size, dtype=bool), np.minimum(steep, (np.abs(t) + error) / curve)
        worth = self.ratio * part.v * steep * error * (self.model.n * self.model.parts_each)
        unsure = worth > UNSURE * abs(self.entry.get("primal", math.inf))
        again |= unsure & ((hi * high > 0.0) | (lo * low > 0.0))
        for i in np.flatnonzero(again & (part.v > 0.0)).tolist():
            nodes = ((-1.0, part.own[i]), (1.0, part.other[i]))  # the ground has no weights
            weights = [sign * self.w[node] for sign, node in nodes if node < self.model.nodes]
            t[i], error[i] = product_of(block, i, (part.c[i], part.tail[i]), *weights)

    def _count(self, part: Part, t, error) -> None:
        if self.model.own:
            none = part.v == 0.0
            low, high = np.count_nonzero(none | (t + error <= 0.0)), np.count_nonzero(none | (t <= error))
            found = {"n_R": (low, high), "n_E": (t.size - high, t.size - low)}
        else:  # HIGH is the value 1 where there is no upper end
            codes, endless = self.codes("states", part)[part.there], math.isinf(self.model.hi)
            counts = [int(np.count_nonzero(codes == code)) for code in (LOW, HIGH, BETWEEN)]
            counts = [counts[0], 0, counts[1] + counts[2]] if endless else counts
            found = {name: (count, count) for name, count in zip(("n_R", "n_L", "n_E"), counts, strict=True)}
        for name, ends in found.items():
            self.counts[name] = [int(a + b) for a, b in zip(self.counts[name], ends, strict=True)]

    # -- features ------------------------------------------------------------------------------------------------------

    def total(self, sums: ColumnSums) -> tuple:
        """Return W times sums in two parts, and bounds of their errors."""
        model, num = self.model, self.num
        p, e = two_product(num, sums.total)
        more = num * sums.rest
        off = num * sums.error + 4.0 * UNIT * (np.abs(e) + np.abs(more)) + np.where(sums.total == 0.0, 0.0, TINY * num)
        rest = e + more
        if model.samples != 1.0:
            p, rest = divided(p, rest, model.samples, model.samples_tail)
            off = off / model.samples + 32.0 * UNIT * UNIT * np.abs(p) + np.where(sums.total == 0.0, 0.0, TINY)
        return p, rest, UP * off

    @cached_property
    def u(self) -> tuple:
        """Return ``u`` of what is penalised in two parts, and bounds of the errors, after the sums are complete."""
        found = [[values[: self.model.penalised] for values in self.total(sums)] for sums in self.sums]
        return tuple(np.concatenate(values) for values in zip(*found, strict=True))

    @property
    def weights(self) -> np.ndarray:
        """Return what is penalised."""
        return self.w[:, : self.model.penalised].ravel()

    @property
    def nnz(self) -> int:
        """Return how many coefficients are not 0: of features (a penalised bias is one), or of samples."""
        return int(np.count_nonzero(self.weights))

    @cached_property
    def columns(self) -> tuple[float, float, np.ndarray, np.ndarray]:
        """Return the features' part of the gap, how it grows with a move of u; ``w - u`` and bounds of its errors."""
        w, alpha, (u, rest, off) = self.weights, self.alpha, self.u
        off = off + UP * self.model.inexact * (np.abs(u) + np.abs(rest))
        if self.model.groups is not None:
            slack = UP * (off + 4.0 * UNIT * (np.abs(u) + np.abs(rest)))
            return *self.model.groups.columns(w, u + rest, slack, alpha, self.beta), u + rest, slack
        cells, signs = Cells(-math.inf, math.inf, alpha, self.beta), self.model.signs
        if alpha and signs.any():
            cells = cells._replace(lo=np.where(signs > 0.0, 0.0, -math.inf), hi=np.where(signs < 0.0, 0.0, math.inf))
        if self.beta or not self.model.box:
            u = u + rest
            slack = UP * (off + 4.0 * UNIT * (np.abs(u) + alpha * np.abs(w)))
            ends, apart = ((u - slack, 0.0), (u + slack, 0.0)), u
        else:  # alpha is 1
            apart = (w - u) - rest
            slack = UP * (off + 4.0 * UNIT * (np.abs(w - u) + np.abs(rest)))
            ends = (u, rest - slack), (u, rest + slack)
        terms, step = bound(cells, w, *ends)
        return fsum(terms) + GROW * fsum(np.abs(terms)), norm_above(np.abs(w) if cells.barrier else step), apart, slack

    # -- the whole -----------------------------------------------------------------------------------------------------

    @property
    def ratio(self) -> float:
        """Return W: what a number that was summed over the rows is multiplied by."""
        return self.num / self.model.samples

    @cached_property
    def residue(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what the sums of the nodes are that should be 0, before W, and bounds of the errors."""
        value = np.array([float(sums.total[-1] + sums.rest[-1]) for sums in self.sums])
        return value, UP * (np.array([float(sums.error[-1]) for sums in self.sums]) + UNIT * np.abs(value))

    @cached_property
    def flow_size(self) -> float:
        """Return how much has to flow, at most."""
        return Flow.size(*self.residue)

    @cached_property
    def pull(self) -> tuple[float, float]:
        """Return what a unit of a row's norm is worth when a row is chosen: the choice needs no proof."""
        guess = abs(self.entry.get("primal", 0.0)) / self.beta if self.beta and not self.alpha else 0.0
        if guess or self.model.own:
            return (guess if guess < math.inf else 0.0), 0.0
        return self.columns[1], 0.5 * self.ratio * self.flow_size / (self.alpha or math.inf)

    @property
    def costs(self) -> tuple[float, ...]:
        """Return bounds of :meth:`Flow.costs`, times W: what it takes that the sums that should be 0 are."""
        found = self.flow.costs(*self.residue) if self.model.free else (0.0, 0.0, 0.0)
        return tuple(UP * self.ratio * part + (TINY if part else 0.0) for part in found)

    @property
    def term(self) -> float:
        """Return an upper bound of the rows' part of the gap."""
        terms = fsum(self.terms)
        return UP * UP * self.ratio * terms + (TINY if terms else 0.0)

    @property
    def gap(self) -> float:
        (own, slope, _, _), (cost, shift, square), alpha = self.columns, self.costs, self.alpha
        if not (cost < math.inf and shift < math.inf):
            return math.inf
        moved = cost + slope * shift + (0.5 * squared(shift) / alpha if alpha else 0.0)
        if alpha:
            return UP * UP * (own + self.term + moved)
        plain = own + self.term + UP * moved + 8.0 * UNIT * (abs(own) + self.term)
        return max(self._within(plain, shift, square), 0.0)

    def _within(self, plain: float, shift: float, square: float) -> float:
        """Return the gap of the multiple of the dual point whose ``|u|`` is at most beta; ``plain`` without it."""
        (u, rest, off), (value, error), own = self.u, self.primal, self.model.own
        least = 1.0 if self.model.groups is None else min(self.model.groups.least, 1.0)
        most = UP * UP * (self.model.dual_norm(u + rest, off) + shift / least)
        if not own and most <= self.beta:
            return plain
        part = self.ratio * fsum(self.squares) if own else 0.0  # of a point in the file it is not less than 0
        best = (value - plain + part) / (2.0 * part) if part > 0.0 else 1.0
        x = min(self.beta / most if most > 0.0 else math.inf, best) * (1.0 - 4.0 * UNIT)
        if not 0.0 < x < math.inf or not plain < math.inf:
            return math.inf
        root, lost = math.sqrt(part), GROW * (abs(value) + (1.0 + x) * part) + error
        moved = root + math.copysign(math.sqrt(square), x - 1.0)  # a move of theta changes its square
        left = value - x * max(moved, 0.0) ** 2 + math.copysign(lost, 1.0 - x)
        return x * plain + (1.0 - x) * left + GROW * (abs(x * plain) + abs(1.0 - x) * abs(left))

    @property
    def penalty(self) -> tuple[float, float]:
        """Return the penalty, and a bound of its error in addition to a few units of it."""
        w = self.weights
        value = 0.5 * self.alpha * fsum(w * w) + (self.beta * fsum(np.abs(w)) if self.beta else 0.0)
        if self.model.groups is not None:
            value = 0.5 * self.alpha * fsum(w * w) + fsum(np.concatenate(self.model.groups.terms(w, self.beta)))
        return value, TINY * w.size if np.any(w) else 0.0

    @property
    def primal(self) -> tuple[float, float]:
        """Return the primal value, and a bound of its error."""
        penalty, error = self.penalty
        value = self.ratio * fsum(self.losses) + penalty
        spread = self.ratio * fsum(self.spread) + (16.0 * UNIT + self.model.inexact) * (abs(value) + abs(penalty))
        return value, UP * spread + error

    def moved(self, alpha: float, beta: float) -> Pair:
        """Return the same points at other parameters of the penalty."""
        other = copy(self)
        vars(other).pop("columns", None)
        other.alpha, other.beta = alpha, beta
        return other

    def within(self, epsilon: float) -> bool:
        """Tell whether the gap is at most ``epsilon`` times the primal value."""
        value, error = self.primal
        return bool(self.gap <= epsilon * (value - error))

    # -- balls ---------------------------------------------------------------------------------------------------------

    def away(self, x: float) -> float:
        """Return an upper bound of ``||w - x u||``, where u is that of the step's C and x may be rounded."""
        _, _, apart, slack = self.columns
        ahead = (1.0 - x) * self.weights
        far = np.abs(ahead + x * apart) + x * slack
        return norm_above(far + 4.0 * UNIT * (np.abs(ahead) + x * (np.abs(self.weights) + np.abs(apart))))

    def radius(self, C: float) -> float:
        """Return an upper bound of the distance of the optimum at ``C`` from ``(1 + x)/2 w``."""
        x = C / self.entry["C"]
        inner = 0.25 * squared(self.away(x)) + x * (self.term + TINY)
        return UP * (math.sqrt(UP * inner + TINY) + 0.5 * x * self.columns[1])

    def serves(self, C: float, epsilon: float) -> bool:
        """Tell whether up to ``C`` the gap is at most ``epsilon`` times the dual value: in between, if at both ends.

        The gap at C, ``1/2 ||w - x u||^2 + x Gamma``, is convex in it, and the dual value of the pair is concave. What
        a free intercept asks moves u by ``x shift``, and costs x times what it does at the step.
        """
        x, (penalty, error), (cost, shift, _) = C / self.entry["C"], self.penalty, self.costs
        gap = UP * (0.5 * UP * squared(self.away(x) + UP * x * shift) + UP * x * (self.term + cost))
        least = penalty * (1.0 - 16.0 * UNIT) - error + C * (fsum(self.losses) - fsum(self.spread))
        return bool((1.0 + epsilon) * gap <= epsilon * least * (1.0 - 16.0 * UNIT))

    def keep(self, pairs: dict, k: int, part: Part, products: dict, norms) -> None:
        """Keep, for each kind of claim, the smallest radius at which a claimed row of the block would fail.

        ``products`` are those of each pair, by step, with bounds of their errors.
        """
        states, claims = self.codes("states", part), self.codes("claims", part)
        if self.entry.get("after") is not None:
            claims = np.where(claims == NOTHING, self.codes("after", part), claims)
        for code, offset in PAIRS.items():
            rows = np.flatnonzero(claims == code)
            self.claims += rows.size
            if not rows.size:
                continue
            if k + offset not in pairs or self.model.free or self.model.curve or np.any(states[rows] > HIGH):
                self.faults.append(f"row {part.first + rows[0] + 1}: it is claimed to be fixed, and nothing proves it")
                continue
            half, (p, error) = 0.5 * (1.0 + self.entry["C"] / pairs[k + offset].entry["C"]), products[k + offset]
            p, c = half * part.signs[rows] * p[0][rows], part.c[rows]
            margin = np.where(states[rows] == LOW, p - c, c - p)
            radii = (margin - UP * (half * error[0][rows] + 8.0 * UNIT * (np.abs(p) + np.abs(c)))) / norms[rows]
            radii = np.where(radii > 0.0, radii * (1.0 - 8.0 * UNIT), -1.0)
            worst = int(np.argmin(radii))
            found = float(radii[worst]), int(part.first + rows[worst])
            self.allowed[code] = min(self.allowed.get(code, (math.inf, 0)), found)


def product_of(block: Block, i: int, c, *points: np.ndarray) -> tuple[float, float]:
    """Return the sum of ``c``, some numbers, and of ``x_i.w`` of points; and a bound of its error.

    It is rounded once where the row is known exactly.
    """
    here = slice(block.indptr[i], block.indptr[i + 1])
    values, columns = block.values[here], block.columns[here]
    error, parts = 0.0, [np.array(c)]
    for weights in (w[columns] for w in points):
        p, e = two_product(values, weights)
        parts += [p, e]
        error += TINY * np.count_nonzero((np.abs(p) < NORMAL) & (values != 0.0) & (weights != 0.0))
        if block.tails is not None and np.any(weights):
            parts.append(block.tails[here] * weights)
            rounded = columns != block.bias
            error += 32.0 * UNIT * UNIT * fsum(np.abs(p[rounded])) + TINY * fsum(np.abs(weights[rounded]))
    t = fsum(np.concatenate(parts))
    return t, UP * (UNIT * abs(t) + error)
