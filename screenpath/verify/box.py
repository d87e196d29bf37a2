r"""The check of a linear box model's certificate, in two passes over the data.

Objective   P(w) = 1/2 ||w||^2 + C sum_i phi_i(t_i),  t_i = c_i - g_i.w,  phi_i(t) = max(lo_i t, hi_i t),  v = C G'theta
Gap         P - D = 1/2 ||w - v||^2 + sum_i C [(hi_i - theta_i) max(t_i, 0) + (theta_i - lo_i) max(-t_i, 0)]
Ball        of the pair of C0 at C, x = C / C0, where Gamma is the sum over i in the gap at C0:
            ||w* - (w + x v)/2||^2 <= ||w - x v||^2 / 4 + x Gamma.

No term of the gap is negative, so rounding enters multiplied by small residuals. Pass 1 forms v; pass 2 the products
``g_i.w``, again and exactly for the few rows whose term may not be 0. A claim needs the ball's radius, which is known
only after the last row: of each pair and C the smallest radius is kept at which some claim would fail.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from screenpath.errors import DataError
from screenpath.verify.data import Block, signs_of, weights_error, weights_of
from screenpath.verify.exact import (
    TINY,
    UNIT,
    UP,
    ColumnSums,
    fsum,
    gamma,
    norm_above,
    squared,
    two_product,
    two_sum,
)
from screenpath.verify.file import AFTER, BEFORE, BETWEEN, HIGH, LOW, NOTHING, OWN, unpack

NORMAL = 2.0**-960  # products that are not smaller have an exact rest
UNSURE = 2.0**-34  # part of the primal value that the error of a loss may be worth, over the number of rows
PAIRS = {OWN: 0, BEFORE: -1, AFTER: 1}


class Losses(NamedTuple):
    """Dual variables over the rows of a block, from number ``first``: ``g = signs x``, kinks ``c + tail``, boxes."""

    first: int
    signs: np.ndarray
    c: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    tail: np.ndarray


def losses(header: dict, block: Block) -> list[Losses]:
    """Return the dual variables of a block; a data row of ``svr`` has two."""
    y, model, first, ones = block.labels, header["model"], block.first, np.ones(block.labels.size)
    s, exact = weights_of(header, block), np.zeros(block.labels.size)
    if model == "svm":
        return [Losses(first, signs_of(y, header["labels"]), ones, 0.0 * s, s, exact)]
    if model == "lad":
        return [Losses(first, ones, y, -s, s, exact)]
    if model == "quantile":
        return [Losses(first, ones, y, (header["tau"] - 1.0) * s, header["tau"] * s, exact)]
    if model == "svr":
        n, epsilon = header["data"]["n_samples"], header["epsilon"]
        kinks = [two_sum(sign * y, -epsilon) for sign in (ones, -ones)]
        boxes = 0.0 * s, s
        return [Losses(first + k * n, ones - 2.0 * k, c, *boxes, tail) for k, (c, tail) in enumerate(kinks)]
    raise DataError(f"certificates of the model '{model}' cannot be checked yet")


def slope_error(header: dict) -> float:
    """Return the largest relative error of the ends of a box: a class's weight times a sample's, and times a level."""
    weighted, error = "weights" in header, weights_error(header)
    if header["model"] == "quantile":
        error += UNIT * (weighted + (two_sum(header["tau"], -1.0)[1] != 0.0))
    return error


class Pair:
    """What the passes find out about one step.

    Parameters
    ----------
    entry : dict
        The step of the file; its arrays must have the lengths that follow from the problem.
    size : int
        Dual variables.
    width : int
        Length of the primal point; 0 where the file has none.

    Attributes
    ----------
    solution : ndarray of shape (width,)
        What the run reports as coefficients, before they are scaled back.
    between : ndarray of int
        Numbers of the dual variables whose values the file holds.
    sums : ColumnSums
        ``G'theta``.
    terms, losses, spread : list of float
        Upper bounds of the sum in the gap; the summed losses, and what these may be off by.
    allowed : dict of int to (float, int)
        For each kind of claim the radius at which the first row would fail, and that row.
    """

    inexact = 0.0  # largest relative error of the ends of the boxes
    digits = 0.0  # part of the primal value to which a claimed gap is read: an upper bound as well

    def __init__(self, entry: dict, size: int, width: int):
        self.entry, self.sums, self.size, C = entry, ColumnSums(width), size, entry["C"]
        self.solution: Any = entry.get("w")  # an array wherever the model has one
        self.w: Any = self.solution  # what of it is penalised
        self.terms: list[float] = []
        self.losses: list[float] = []
        self.spread: list[float] = []
        self.allowed: dict[int, tuple[float, int]] = {}
        self.faults: list[str] = []
        self.claims = 0
        codes = [entry[name] for name in ("states", "claims", "after") if entry.get(name) is not None]
        self.between = np.flatnonzero(unpack(entry["states"], 0, size) == BETWEEN)
        if (
            any(part.dtype != np.uint8 or part.size != -(-size // 4) for part in codes)
            or entry["between"].size != self.between.size
            or ("w" in entry) != (width > 0)
            or (width and (entry["w"].size != width or not np.all(np.isfinite(entry["w"]))))
            or not (isinstance(C, float) and 0.0 < C < math.inf)
        ):
            raise DataError(f"step {entry['step']}: the certificate's numbers do not fit the data")

    def look(self, box: Losses, t, error, norms) -> None:
        """Look at the rows of a block for what else a certificate needs: here nothing."""

    def codes(self, name: str, box: Losses) -> np.ndarray:
        """Return the codes of the dual variables of a block."""
        return unpack(self.entry[name], box.first, box.first + box.c.size)

    def theta(self, box: Losses) -> np.ndarray:
        """Return the dual variables of a block, and note a state or a value that is none."""
        states, (a, b) = self.codes("states", box), np.searchsorted(self.between, [box.first, box.first + box.c.size])
        theta = np.where(states == HIGH, box.hi, box.lo)
        theta[self.between[a:b] - box.first] = self.entry["between"][a:b]
        bad = np.flatnonzero((states > BETWEEN) | ~((box.lo <= theta) & (theta <= box.hi)))
        if bad.size:
            self.faults.append(f"row {box.first + bad[0] + 1}: the dual variable is outside its box")
            theta[bad] = math.nan
        return theta

    def settle(self) -> None:
        """Form ``w - v`` behind the first pass."""
        C, sums = self.entry["C"], self.sums
        error = UP * C * sums.error + np.where(sums.total == 0.0, 0.0, TINY * C)
        p, e = two_product(C, sums.total)
        rough, tail = self.w - p, C * sums.rest
        self.apart = (rough - e) - tail
        error = error + UP * self.inexact * C * (np.abs(sums.total) + np.abs(sums.rest))
        self.slack = UP * (error + 4.0 * UNIT * (np.abs(rough) + np.abs(e) + np.abs(tail)))
        self.mismatch = norm_above(np.abs(self.apart) + self.slack)  # at least ||w - v||

    def radius(self, C: float) -> float:
        """Return an upper bound of the distance of the optimum at ``C`` from ``(1 + x)/2 w``."""
        x = C / self.entry["C"]
        ahead = (1.0 - x) * self.w
        away = np.abs(ahead + x * self.apart) + x * self.slack
        away += 4.0 * UNIT * (np.abs(ahead) + x * (np.abs(self.w) + np.abs(self.apart)))
        inner = 0.25 * squared(norm_above(away)) + x * self.term
        return UP * (math.sqrt(UP * inner + TINY) + 0.5 * x * self.mismatch)

    @property
    def term(self) -> float:
        """Return an upper bound of Gamma."""
        return UP * self.entry["C"] * fsum(self.terms) + TINY

    @property
    def gap(self) -> float:
        """Return an upper bound of the gap."""
        return self.gap_with(self.mismatch, 0.0)

    def gap_with(self, mismatch: float, cost: float) -> float:
        """Return an upper bound of the gap; ``mismatch`` is at least ``||w - v||``, ``cost`` is added to the sum."""
        square = 0.5 * squared(mismatch) + (TINY if mismatch else 0.0)
        terms = fsum(self.terms) + cost
        return UP * (square + UP * self.entry["C"] * terms) + (TINY if terms else 0.0)

    @property
    def primal(self) -> tuple[float, float]:
        """Return the primal value, and a bound of its error."""
        w, C = self.w, self.entry["C"]
        value = 0.5 * fsum(w * w) + C * fsum(self.losses)
        error = UP * (C * fsum(self.spread) + (8.0 * UNIT + self.inexact) * value)
        return value, error + (TINY * w.size if np.any(w) else 0.0)


def check(header: dict, steps: list, source, kind: type[Pair] = Pair) -> list[Pair]:
    """Return what is known about every step that claims anything; both passes over ``source``."""
    width = source.d + (header["bias"] != 0.0 and header.get("intercept") != "free")  # of what is penalised
    pairs = pairs_of(kind, header, steps, source, source.d + (header["bias"] != 0.0))
    for block in source.passed(indices=True):
        for box in losses(header, block):
            for pair in pairs.values():
                pair.sums.add(block, pair.theta(box) * box.signs)
    for pair in pairs.values():
        pair.inexact = slope_error(header)
        pair.settle()
    for block in source.passed(indices=False):
        products, norms = {k: products_of(block, pair.solution) for k, pair in pairs.items()}, norms_of(block, width)
        for box in losses(header, block):
            for k, pair in pairs.items():
                pair.look(box, *share_of(pair, block, box, products[k]), norms)
                claims_of(pairs, k, box, products, norms)
    refute(pairs)
    return list(pairs.values())


def pairs_of(kind: type, header: dict, steps: list, source, width: int) -> dict:
    """Return a pair for each step; ``width`` is the length of its primal point, 0 where the file has none."""
    size = source.n * (2 if header["model"] == "svr" else 1)
    return {entry["step"]: kind(entry, size, width) for entry in steps}


def refute(pairs: dict) -> None:
    """Note the claims that the balls do not prove."""
    for k, pair in pairs.items():
        for code, (allowed, row) in pair.allowed.items():
            if not pairs[k + PAIRS[code]].radius(pair.entry["C"]) < allowed:
                pair.faults.append(f"row {row + 1}: it is not proven to be at its end in the optimum")


def products_of(block: Block, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``x_i.w`` of the rows, and bounds of the errors."""
    parts, n = block.values * w[block.columns], block.labels.size
    longest = int(np.diff(block.indptr).max(initial=0))
    tiny = TINY * (longest + float(np.abs(w).sum())) if np.any(w) else 0.0
    return np.bincount(block.rows, parts, n), gamma(longest + 4) * np.bincount(block.rows, np.abs(parts), n) + tiny


def norms_of(block: Block, width: float = math.inf) -> np.ndarray:
    """Return upper bounds of the norms of the rows in the first ``width`` columns, those that are penalised."""
    values, lengths = np.where(block.columns < width, block.values, 0.0), np.diff(block.indptr)
    size = float(np.max(np.abs(values), initial=TINY))
    squares = np.bincount(block.rows, (values / size) ** 2, block.labels.size)
    return UP * size * np.sqrt(squares + TINY * lengths) * (1.0 + gamma(lengths.max(initial=0) + 8))


def share_of(pair: Pair, block: Block, box: Losses, products, exactly: bool = True) -> tuple:
    """Add the block's share to the gap and to the losses of a pair; return the rows' ``t`` and bounds of its errors."""
    theta, (p, error) = pair.theta(box), products
    t = box.c - box.signs * p
    error = error + UNIT * np.abs(t) + np.abs(box.tail)
    upper, lower = box.hi - theta, theta - box.lo
    again = (upper * (t + error) > 0.0) | (lower * (error - t) > 0.0)
    # Far kinks and intercepts leave a loss too unsure for the primal value that is claimed.
    unsure = pair.entry["C"] * np.maximum(-box.lo, box.hi) * error * pair.size > UNSURE * abs(
        pair.entry.get("primal", math.inf)
    )
    again |= unsure & ((box.hi * (t + error) > 0.0) | (box.lo * (t - error) > 0.0))
    for i in np.flatnonzero(again).tolist() if exactly else ():
        t[i], error[i] = _exactly(block, i, (box.c[i], box.tail[i]), -box.signs[i] * pair.solution)
    most = np.maximum(upper * (t + error), lower * (error - t))
    some = ((upper > 0.0) & (t + error > 0.0)) | ((lower > 0.0) & (error - t > 0.0))  # their products may underflow
    pair.losses.append(fsum(np.maximum(box.lo * t, box.hi * t)))
    # The exact box has the dual point times 1 - inexact, at least, and its losses differ by that part.
    slopes = UP * pair.inexact * (2.0 * pair.losses[-1] + fsum(np.maximum(most, 0.0)))
    pair.terms.append(UP * (fsum(np.maximum(most, 0.0)) + slopes) + TINY * np.count_nonzero(some))
    steep = np.where(t > error, box.hi, np.where(t < -error, -box.lo, np.maximum(-box.lo, box.hi)))  # 0: no loss
    pair.spread.append(UP * fsum(steep * (error + 2.0 * UNIT * np.abs(t))))
    return t, error


def _exactly(block: Block, i: int, c: tuple[float, float], w: np.ndarray) -> tuple[float, float]:
    """Return ``c[0] + c[1] + x_i.w`` and a bound of its error: rounded once where the row is known exactly."""
    here = slice(block.indptr[i], block.indptr[i + 1])
    weights = w[block.columns[here]]
    p, e = two_product(block.values[here], weights)
    lost = (np.abs(p) < NORMAL) & (block.values[here] != 0.0) & (weights != 0.0)
    error, parts = TINY * np.count_nonzero(lost), [p, e]
    if block.tails is not None:
        parts.append(block.tails[here] * weights)
        rounded = block.columns[here] != block.bias
        error += 32.0 * UNIT * UNIT * fsum(np.abs(p[rounded])) + TINY * fsum(np.abs(weights[rounded]))
    t = fsum([*c, *np.concatenate(parts).tolist()])
    return t, UP * (UNIT * abs(t) + (error if np.any(weights) else 0.0))


def claims_of(pairs: dict, k: int, box: Losses, products: dict, norms) -> None:
    """Keep, for each kind of claim, the smallest radius at which a claimed row of the block would fail."""
    pair = pairs[k]
    states, claims = pair.codes("states", box), pair.codes("claims", box)
    if pair.entry.get("after") is not None:
        claims = np.where(claims == NOTHING, pair.codes("after", box), claims)
    for code, offset in PAIRS.items():
        rows = np.flatnonzero(claims == code)
        pair.claims += rows.size
        if not rows.size:
            continue
        if k + offset not in pairs or np.any(states[rows] > HIGH):
            pair.faults.append(f"row {box.first + rows[0] + 1}: it is claimed to be fixed, and nothing proves it")
            continue
        half, (p, error) = 0.5 * (1.0 + pair.entry["C"] / pairs[k + offset].entry["C"]), products[k + offset]
        p, c = half * box.signs[rows] * p[rows], box.c[rows]
        margin = np.where(states[rows] == LOW, p - c, c - p)
        radii = (margin - UP * (half * error[rows] + 8.0 * UNIT * (np.abs(p) + np.abs(c)))) / norms[rows]
        radii = np.where(radii > 0.0, radii * (1.0 - 8.0 * UNIT), -1.0)
        worst = int(np.argmin(radii))
        found = float(radii[worst]), int(box.first + rows[worst])
        pair.allowed[code] = min(pair.allowed.get(code, (math.inf, 0)), found)
