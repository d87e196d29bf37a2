r"""Leave-one-out: what the solution without each row says of this row, proven again from the solution of all rows.

The file (``screenpath loo RUN --certificate FILE``) has the problem, one step, and for each row left out a frame ``L``:
the dual variables that are others without it, and the intercept b'. Rows are without signs here, as in
:mod:`screenpath.verify.levers`: ``t_k = a_k c_k - x_k.w - b``, theta times a_k, in its box.

Without row i the primal point is ``w' = w + C sum_k (theta'_k - theta_k) x_k``, theta'_i = 0. Gamma, the rows' part of
its gap, is formed of those that may not be at the end that their t' asks for: t moves by no more than ``||x_k|| ||w' -
w|| + |b' - b|``, and a row that stays beyond its kink adds nothing. With ``r^2 = ||w' - u'||^2 / 4 + Gamma``, for every
optimum without the row

    |x_i.w* - x_i.w'|  <=  ||x_i|| (r + ||w' - u'|| / 2)

and with a free intercept, by any row e that has room for delta, D = ||x_i - x_e||,

    x_i.w* + b*  >=  x_i.w' + b' + t'_e - D ||w' - u'|| / 2 - r^2 / (C delta) - C delta D^2 / 4

from below, and from above, with room on the other side, the same with the last three terms added.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from screenpath.verify.certificate import product_of
from screenpath.verify.data import Block, signs_of, taken
from screenpath.verify.exact import TINY, UNIT, UP, fsum, gamma, norm_above, squared
from screenpath.verify.file import BETWEEN, HIGH, unpack
from screenpath.verify.products import norms_of, products_of

FURTHER = 64  # rows nearest to their kinks that are tried for the intercept on either side, beyond those that may move

MOST = 1 << 20  # numbers of the system that puts rows on their kinks

SPARE = 2.0**-20  # part of an intercept by which the checker may choose another one


class Duals(NamedTuple):
    """Dual variables without signs; arrays of shape (N,)."""

    row: np.ndarray  # number of the row
    side: np.ndarray  # a_k
    t: np.ndarray
    error: np.ndarray  # of t
    theta: np.ndarray
    low: np.ndarray
    high: np.ndarray
    kink: np.ndarray  # a_k c_k, in two parts
    tail: np.ndarray


class Near(NamedTuple):
    """Dual variables that may move without a row, as they are then; arrays of shape (m,)."""

    rows: Block
    t: np.ndarray
    error: np.ndarray
    up: np.ndarray  # by how much theta' can rise and fall
    down: np.ndarray


def whole(source) -> Block:
    """Return all rows in one block."""
    blocks = list(source.passed(indices=True))
    ends = np.cumsum(np.concatenate([[0], *(np.diff(block.indptr) for block in blocks)]))
    labels, columns, values = (
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("labels", "columns", "values")
    )
    tails = None if blocks[0].tails is None else np.concatenate([block.tails for block in blocks])
    return Block(0, labels, ends, columns, values, tails, blocks[0].bias)


class Removals:
    """The solutions without a row, one after another; ``pair`` is that of all rows, whose every claim holds."""

    def __init__(self, pair, source):
        self.pair, self.model, self.C, self.w = pair, pair.model, pair.entry["C"], pair.w[0]
        self.block, self.lost = whole(source), UP * pair.model.inexact
        self.n = self.block.labels.size
        self.norms = norms_of(self.block, self.model.penalised)
        self.duals = duals = self._duals()
        right = (duals.theta == duals.high) & (duals.t > 0.0) | (duals.theta == duals.low) & (duals.t < 0.0)
        # How far t may move until the dual variable has a share in the gap; without weight it never has.
        far = np.where(right, np.abs(duals.t) - duals.error, -1.0)
        self.far, self.lengths = np.where(duals.low == duals.high, math.inf, far), self.norms[duals.row]
        order = np.argsort(np.maximum(self.far, 0.0) / (self.lengths + 1.0), kind="stable")
        able = [order[room[order] > 0.0][:FURTHER] for room in (duals.high - duals.theta, duals.theta - duals.low)]
        self.first = np.concatenate(able) if self.model.free else order[:0]
        # Weights that are rounded move those at an end with it: the sum of theta and u by no more than their share.
        sizes = np.abs(duals.theta)
        self.apart = UP * (pair.away(1.0) + self.lost * self.C * fsum(sizes * self.lengths))
        self.coarse = UNIT * self.C * fsum(sizes * self.lengths)  # by how much rounding of theta may move w
        self.residue = pair.residue[0][0], UP * (pair.residue[1][0] + self.lost * fsum(sizes))

    def _duals(self) -> Duals:
        model, entry, found = self.model, self.pair.entry, []
        states = unpack(entry["states"], 0, self.n * model.parts_each)
        for part in model.parts(self.block):
            side, code = part.signs, states[part.first : part.first + self.n]
            ends = [side * end for end in part.cells[:2]]
            low, high = np.minimum(*ends), np.maximum(*ends)
            theta, inner = np.where(code == HIGH, ends[1], ends[0]), np.flatnonzero(code == BETWEEN)
            theta[inner] = side[inner] * entry["between"][np.searchsorted(self.pair.between, part.first + inner)]
            kinks = side * part.c, side * part.tail
            exact = [product_of(self.block, i, kink, -self.w) for i, kink in enumerate(np.stack(kinks, axis=1))]
            found.append((np.arange(self.n), side, *np.array(exact).T, theta, low, high, *kinks))
        return Duals(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def without(self, fields: dict, arrays: dict, nearer: int = 0) -> tuple[float, float, float]:
        """Return between which ends every optimum without a row has the row's form, and a bound of the gap over C.

        ``nearer`` chooses a primal point with rows on their kinks, from which rounding of theta keeps that of the file
        where features are large: those between the ends of their boxes (1), or with a share in the gap (2).
        """
        i, duals = fields["row"], self.duals
        theta, moved = self._moved(i, arrays["index"], arrays["theta"])
        change = theta[moved] - duals.theta[moved]
        b, size, left = self._intercept(fields, change)
        size = size if theta.any() else 0.0  # of one class, all are 0, and nothing has to make up for their sum
        step, apart = self._step(moved, change, left)
        others = np.append(arrays["index"], self.first)
        others, begun = others[duals.row[others] != i], step
        near, at, b = self._near(i, others, theta, step, b)
        if nearer:
            step, b = self._on_kinks(at, step, b, nearer == 1)
            apart = UP * (apart + norm_above(UP * np.abs(step - begun)))
            near, at, b = self._near(i, others, theta, step, b)
        inner, lengths = (at.up > 0.0) & (at.down > 0.0), self.lengths[near]
        ends = 2.0 * self.lost * np.maximum(np.abs(duals.low[near]), np.abs(duals.high[near]))
        shares = np.maximum(np.maximum(at.up * (at.t + at.error), at.down * (at.error - at.t)), 0.0)
        shares += np.where(inner, ends * (np.abs(at.t) + at.error), 0.0)
        cost, shift = self._costs(at, lengths, size)
        loss, apart = UP * UP * (fsum(shares) + cost), UP * (self.apart + apart + self.C * shift)
        square, own = UP * (0.25 * squared(apart) + self.C * loss + TINY), taken(self.block, np.array([i]))
        value, wrong = product_of(own, 0, (b,), self.w, step)
        if self.model.free:
            low, high = self._levers(i, own, at, lengths, (size, square, apart))
        else:
            high = UP * float(self.norms[i]) * (UP * math.sqrt(square) + 0.5 * apart)
            low = -high
        wrong += 8.0 * UNIT * (abs(value) + abs(b) + wrong)
        return value + low - wrong - 4.0 * UNIT * abs(low), value + high + wrong + 4.0 * UNIT * abs(high), loss

    def _step(self, moved: np.ndarray, change: np.ndarray, left: float) -> tuple[np.ndarray, float]:
        """Return by how much w moves, and how far that is at most from what the changes of the dual variables make.

        Where these have the sum ``left`` instead of 0, rounding has moved w along what the rows have in common: the
        point is better without it.
        """
        some, width = taken(self.block, self.duals.row[moved]), self.model.penalised
        parts = self.C * change[some.rows] * some.values
        step, size, middle = (
            np.bincount(some.columns, one, width + 1)[:width] for one in (parts, np.abs(parts), some.values)
        )
        lean = self.C * left / moved.size * middle
        step = step - lean
        off = (gamma(moved.size + 12) + self.lost) * size + 4.0 * UNIT * np.abs(step) + TINY * moved.size
        return np.append(step, np.zeros(self.model.width - width)), UP * norm_above(off + UP * np.abs(lean))

    def _near(self, i: int, others: np.ndarray, theta, step, b: float) -> tuple[np.ndarray, Near, float]:
        """Return which dual variables may move, ``others`` with them, as they are after a move of w and the intercept;
        and that of the intercept: the checker may choose another one.
        """
        duals, spare = self.duals, SPARE * (1.0 + abs(b)) if self.model.free else 0.0
        reached = self.far <= UP * (self.lengths * UP * (norm_above(np.abs(step)) + TINY) + abs(b) + spare)
        near = np.union1d(np.flatnonzero(reached & (duals.row != i)), others)
        theta = theta[near]
        rows, t, error = taken(self.block, duals.row[near]), duals.t[near], duals.error[near]
        p, e = products_of(rows, step)
        error = UP * (error + e + 4.0 * UNIT * (np.abs(t) + np.abs(p) + abs(b)))
        t, up, down = t - p - b, duals.high[near] - theta, theta - duals.low[near]
        for k in np.flatnonzero((up * (t + error) > 0.0) | (down * (error - t) > 0.0)).tolist():
            kink = duals.kink[near[k]], duals.tail[near[k]], -b
            t[k], error[k] = product_of(rows, k, kink, -self.w, -step)
        inner = (up > 0.0) & (down > 0.0)
        more = float(np.median(t[inner])) if self.model.free and inner.any() else 0.0
        if 0.0 < abs(more) < spare:
            t, b = t - more, b + more
            error = UP * (error + UNIT * np.abs(t))
        return near, Near(rows, t, error, up, down), b

    def _on_kinks(self, at: Near, step: np.ndarray, b: float, between: bool) -> tuple[np.ndarray, float]:
        """Return nearby moves of w and the intercept that put rows on their kinks: those ``between`` the ends of their
        boxes, or those with a share in the gap.
        """
        shared = (at.up * (at.t + at.error) > 0.0) | (at.down * (at.error - at.t) > 0.0)
        some = np.flatnonzero((at.up > 0.0) & (at.down > 0.0) if between else shared)
        rows, width = taken(at.rows, some), self.model.penalised
        columns, places = np.unique(rows.columns[rows.columns < width], return_inverse=True)
        longest = float(np.max(self.lengths, initial=1.0))
        rounding = SPARE * (1.0 + abs(b)) + self.coarse * longest
        if some.size * columns.size > MOST or not np.max(np.abs(at.t[some]), initial=0.0) <= rounding:
            return step, b
        X, lift = np.zeros((some.size, columns.size + 1)), longest * self.model.free
        inner = rows.columns < width
        X[rows.rows[inner], places], X[:, -1] = rows.values[inner], lift
        more, step = np.linalg.lstsq(X, at.t[some], rcond=None)[0], step.copy()
        step[columns] += more[:-1]
        return step, b + lift * float(more[-1])

    def _moved(self, i, index: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the dual variables without row ``i``, and which are others; a ValueError where they are none."""
        duals = self.duals
        if type(i) is not int or not 0 <= i < self.n or (index.dtype, values.dtype) != (np.int64, np.float64):
            raise ValueError("a row that is none, or arrays of another type")
        inside = index.size == 0 or 0 <= index.min() <= index.max() < duals.t.size
        if not inside or index.size != values.size or np.any(np.diff(index) <= 0) or np.any(duals.row[index] == i):
            raise ValueError("numbers of dual variables that are none of other rows, or do not rise")
        theta, gone = duals.theta.copy(), np.flatnonzero(duals.row == i)
        theta[index], theta[gone] = duals.side[index] * values, 0.0
        if not np.all((duals.low[index] <= theta[index]) & (theta[index] <= duals.high[index])):
            raise ValueError("a dual variable is outside its box")
        return theta, np.append(index, gone)

    def _intercept(self, fields: dict, change: np.ndarray) -> tuple[float, float, float]:
        """Return by how much the intercept moves, what the sum of theta is off by at most, and the sum of changes."""
        if not self.model.free:
            return 0.0, 0.0, 0.0
        b = fields["b"] - float(self.w[-1])
        if not math.isfinite(b):
            raise ValueError("an intercept that is none")
        value, off = self.residue
        total = fsum([value, *change.tolist()])
        return b, UP * (abs(total) + off + 4.0 * UNIT * (abs(value) + fsum(np.abs(change)))), fsum(change)

    def _costs(self, at: Near, lengths: np.ndarray, size: float) -> tuple[float, float]:
        """Return what it costs that the sum of the dual variables is 0, and how far u moves, both over C."""
        if size == 0.0:
            return 0.0, 0.0
        found = []
        for room in (at.up, at.down):
            slopes = np.where(room * (1.0 - 4.0 * UNIT) >= size, np.abs(at.t) + at.error, math.inf)
            best = int(np.argmin(slopes)) if slopes.size else -1
            found.append((size * slopes[best], size * lengths[best]) if best >= 0 else (math.inf, 0.0))
        return UP * max(cost for cost, _ in found), UP * max(shift for _, shift in found)

    def _levers(self, i: int, own: Block, at: Near, lengths: np.ndarray, known: tuple) -> tuple[float, float]:
        """Return how far below and above the form of the point that was found those of the optima may be."""
        size, square, apart = known
        z = np.bincount(own.columns, own.values, self.model.width)
        z[self.model.penalised :] = 0.0
        p, e = products_of(at.rows, z)
        squares = self.norms[i] ** 2 + lengths**2
        D = UP * np.sqrt(np.maximum(squares - 2.0 * (p - e), 0.0) + 16.0 * UNIT * (squares + 2.0 * np.abs(p)) + TINY)
        ends, rooms = [], [self.C * (room * (1.0 - 4.0 * UNIT) - size) for room in (at.up, at.down)]
        for room, sign in zip(rooms, (-1.0, 1.0), strict=True):
            with np.errstate(all="ignore"):
                delta = np.minimum(room, 2.0 * math.sqrt(square) / D)
                width = at.error + 0.5 * D * apart + square / delta + 0.25 * delta * D * D
                found = sign * at.t + UP * (width + 8.0 * UNIT * np.abs(at.t))
            ends.append(float(np.min(found[room > 0.0], initial=math.inf)))
        return -ends[0], ends[1]


class LeftOut:
    """What the frames of rows left out claim, and which of it holds."""

    def __init__(self, pair, source):
        self.removals = Removals(pair, source)
        self.faults: list[str] = []
        self.seen: set[int] = set()
        self.open: list[int] = []  # rows of which nothing is claimed
        self.proven, self.gap, self.error = 0, 0.0, 0.0
        labels, mapping = self.removals.block.labels, pair.model.header.get("labels")
        self.signs = None if mapping is None else signs_of(labels, mapping)
        self.wrong = 0  # rows that are certainly on the wrong side
        self.undecided = 0  # rows whose side is not proven

    def look(self, fields: dict, arrays: dict) -> None:
        row = fields["row"]
        if row in self.seen:
            raise ValueError(f"row {row} is left out twice")
        self.seen.add(row)
        if fields.get("open"):
            self.open.append(row)
            return
        low, high, loss = self.removals.without(fields, arrays)
        said = [fields[name] for name in ("low", "value", "high")]
        if not all(type(value) is float for value in said) or not said[0] <= said[1] <= said[2]:
            self.faults.append(f"row {row + 1}: its value is not between its bounds")
            return
        for nearer in (1, 2):
            if not (said[0] <= low and high <= said[2]):
                low, high, loss = self.removals.without(fields, arrays, nearer)
        if not (said[0] <= low and high <= said[2]):
            proven = f"proven is only {low:.9g} to {high:.9g}"
            self.faults.append(f"row {row + 1}: claimed is a value from {said[0]:.9g} to {said[2]:.9g}, {proven}")
            return
        self.proven, self.gap = self.proven + 1, max(self.gap, self.removals.C * loss)
        self.error = max(self.error, *(abs(end - said[1]) for end in (low, high) if abs(end) < math.inf), 0.0)
        if self.signs is not None:
            self.wrong += said[2] < 0.0 if self.signs[row] > 0.0 else said[0] > 0.0
            self.undecided += not (said[0] > 0.0 or said[2] < 0.0)

    def end(self, fields: dict) -> bool:
        """Look at the frame at the end; tell whether it is that of these rows."""
        wanted = {"left_out": len(self.seen)} | ({} if self.signs is None else {"errors": self.wrong})
        if not self.faults and any(fields.get(name) != value for name, value in wanted.items()):
            self.faults.append(f"the end of the file says {fields}, the rows {wanted}")
        return fields.get("left_out") == len(self.seen)

    def __str__(self) -> str:
        n, wrong = self.removals.n, "" if self.signs is None else f", {self.wrong} errors"
        left = len(self.open) + self.undecided
        still = f", {left} left open" if left else ""
        width = f"values proven to {self.error:.1e}, largest gap {self.gap:.1e}"
        at = f"{self.removals.model.name} at C = {self.removals.C:.6g}"
        return f"{at}: {self.proven} of {len(self.seen)} rows left out of {n} proven{wrong}{still}; {width}"

    def record(self) -> dict:
        """Return the numbers for JSON."""
        return {
            "model": self.removals.model.name, "C": self.removals.C, "rows": self.removals.n,
            "left_out": len(self.seen), "proven": self.proven, "open": len(self.open) + self.undecided,
            "errors": None if self.signs is None else self.wrong, "largest_gap": self.gap, "largest_error": self.error,
        }  # fmt: skip
