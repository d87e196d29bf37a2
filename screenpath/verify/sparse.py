r"""The check of a sparse SVM's certificate (two classes), in two passes over the data.

Objective   P(w) = 1/n sum_i v_i l(t_i) + alpha/2 ||w||^2 + beta ||w||_1,  t_i = 1 - y_i x_i.w,  l the smoothed hinge
            (of width gamma; 0: the exact one, max(t, 0))
Gap         1/n sum_i v_i [l(t_i) + gamma/2 theta_i^2 - theta_i t_i] + sum_j [(alpha w_j - S_j)^2 / (2 alpha)
            + beta |w_j| - w_j (u_j - S_j)], u = sum_i v_i theta_i y_i x_i / n, S = u shrunk by beta, 0 <= theta_i <= 1
            v_i the weights, n their sum

No term of either sum is negative, and each is convex in t_i or u_j: the larger one of its values at the ends of what
is known of t_i or u_j bounds it.

Without the L2 term (``alpha = 0``) ``S`` has to be 0: ``|u_j| <= beta`` for every j. A dual point that misses that by
a factor is one when it is divided by it; by concavity that costs no more of the gap than the same part of P(w).

The squared hinge ``l(t) = 1/2 max(0, t)^2`` is the smoothed one of width 1 whose quadratic part has no end; then
``theta_i >= 0`` alone.

With a free intercept ``b``, the last entry of ``w`` in the file, ``t_i = 1 - y_i (x_i.w + b)``, and the dual has one
condition more: ``sum_i v_i y_i theta_i = 0``. What rounding has left of that sum, one row can take whose dual variable
has room for it; that row's term and ``u`` change by what is added here. The row with the smallest change is taken.

The weights may be products that were rounded: the part ``v_i / n`` is ``r_i`` times the exact one, ``r_i`` within
``inexact`` of 1. ``theta_i r_i / (1 + inexact)`` is a dual point of the exact problem whose sums are those of ``theta``
but for one factor: the gap is larger by at most ``2 inexact P(w)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from screenpath.errors import DataError
from screenpath.verify.box import norms_of, products_of
from screenpath.verify.data import signs_of, weights_error, weights_of
from screenpath.verify.exact import TINY, UNIT, UP, ColumnSums, fsum, two_product
from screenpath.verify.file import BETWEEN, HIGH, unpack

Kind = TypeVar("Kind", bound="SparsePair")
DIGITS = 2.0**-50  # part of the primal value: which row takes the rest of a sum is the checker's choice


@dataclass(frozen=True)
class Hinge:
    """The loss of a margin that is ``t`` below 1.

    Parameters
    ----------
    gamma : float
        Width of its quadratic part, 0 for the exact hinge; of the squared hinge what divides ``t^2 / 2``.
    squared : bool, default False
    """

    gamma: float
    squared: bool = False

    @classmethod
    def of(cls, header: dict) -> Hinge:
        """Return the loss of a certificate's problem."""
        kind, gamma = header.get("loss", "hinge"), header["smoothing"]
        if kind not in ("hinge", "squared-hinge") or not 0.0 <= gamma < 1.0:
            raise DataError("the certificate's options are not those of a sparse SVM")
        return cls(1.0, True) if kind == "squared-hinge" else cls(gamma)

    @property
    def end(self) -> float:
        """Return the upper end of a dual variable."""
        return math.inf if self.squared else 1.0

    def values(self, t):
        """Return the losses."""
        if self.gamma == 0.0:
            return np.maximum(t, 0.0)
        inside = np.maximum(t, 0.0) ** 2 / (2.0 * self.gamma)
        return inside if self.squared else np.where(t > self.gamma, t - 0.5 * self.gamma, inside)

    def spread(self, t, error):
        """Return bounds on the errors of the losses, where ``t`` is off by so much."""
        if self.squared:
            return (np.abs(t) + error) * error + 8.0 * UNIT * t * t
        return error + 8.0 * UNIT * (np.abs(t) + self.gamma)

    def terms(self, t, theta):
        """Return upper bounds of the terms of samples; ``t`` may be off by as much as it is moved for the bound."""
        gamma = self.gamma
        if gamma == 0.0:
            terms = np.where(t < 0.0, theta * -t, (1.0 - theta) * t)
            return UP * UP * np.where(terms > 0.0, terms, 0.0)
        below = theta * -t + 0.5 * gamma * theta * theta
        middle = (self.slopes(t, theta)) ** 2 / (2.0 * gamma)
        above = (1.0 - theta) * (t - gamma) + 0.5 * gamma * (1.0 - theta) ** 2
        return UP * np.where(t < 0.0, below, np.where((t > gamma) & (not self.squared), above, middle))

    def slopes(self, t, theta):
        """Return upper bounds of the slopes of the terms in ``theta``."""
        return np.abs(t - self.gamma * theta) + 4.0 * UNIT * (np.abs(t) + self.gamma * np.maximum(theta, 1.0))

    def room(self, v, theta, up):
        """Return how much a dual variable times its weight can grow, where ``up`` says so, or else fall."""
        with np.errstate(invalid="ignore"):
            room = v * np.where(up, self.end - theta, theta) * (1.0 - 4.0 * UNIT)
        return np.where(v > 0.0, room, 0.0)


@dataclass
class SparsePair:
    """What the passes find out about one step; ``terms``, ``losses`` and ``spread`` as of :class:`verify.box.Pair`."""

    entry: dict
    sums: ColumnSums
    solution: np.ndarray
    samples: float
    theta: np.ndarray
    terms: list = field(default_factory=list)
    losses: list = field(default_factory=list)
    spread: list = field(default_factory=list)
    faults: list = field(default_factory=list)
    claims: int = 0
    units: float = 2.0  # relative errors of one operation in u: of the sum, of the division, of the sum of weights
    inexact: float = 0.0  # largest relative error of a sample's part of the sum of the weights
    digits = 0.0

    @property
    def gap(self) -> float:
        """Return an upper bound of the gap."""
        return self.gap_with(0.0, 0.0)

    def gap_with(self, cost: float, shift: float) -> float:
        """Return an upper bound of the gap of a dual point with terms ``cost`` larger and ``u`` off by ``shift``."""
        found = (self.gap_within if self.entry["alpha"] == 0.0 else self.gap_beyond)(cost, shift)
        return UP * (found + 2.0 * self.inexact * sum(self.primal)) if self.inexact else found

    def gap_beyond(self, cost: float, shift: float) -> float:
        """Return the same for the weights as they are, at ``alpha > 0``."""
        alpha, beta, (u, off) = self.entry["alpha"], self.entry["beta"], self.u
        ends = [feature_terms(self.weights, end, alpha, beta) for end in (u - off, u + off)]
        gap = UP * (fsum(np.maximum(*ends)) + UP * fsum(self.terms) / self.samples)
        if cost == 0.0 == shift:
            return gap
        apart = np.abs(u - np.clip(u, -beta, beta) - alpha * self.weights)
        apart += off + 4.0 * UNIT * (np.abs(u) + alpha * np.abs(self.weights))
        return UP * (gap + cost + (UP * math.sqrt(fsum(apart * apart)) + 0.5 * shift) * shift / alpha)

    def gap_within(self, cost: float, shift: float) -> float:
        """Return the same at ``alpha = 0``, of the dual point or of the largest part of it that is one."""
        beta, w, (u, off) = self.entry["beta"], self.weights, self.u
        kinks, size = beta * np.abs(w) - w * u, np.abs(w)
        errors = size * off + 4.0 * UNIT * size * (beta + np.abs(u)) + np.where(w == 0.0, 0.0, TINY)
        gap = max(fsum(kinks) + UP * fsum(errors), 0.0) + UP * fsum(self.terms) / self.samples
        gap = UP * (gap + cost + UP * math.sqrt(fsum(w * w)) * shift)
        most = UP * (float(np.max(np.abs(u) + off, initial=0.0)) + shift)
        if most <= beta:
            return gap
        value, error = self.primal
        return UP * (gap + UP * (most - beta) / most * (value + error)) if most < math.inf else math.inf

    @property
    def weights(self) -> np.ndarray:
        """Return what is penalised."""
        return self.solution

    @property
    def u(self) -> tuple[np.ndarray, np.ndarray]:
        """Return ``u``, and bounds of its errors."""
        return self.divided(self.sums)

    def divided(self, sums: ColumnSums) -> tuple[np.ndarray, np.ndarray]:
        """Return sums by the number of samples, and bounds of the errors."""
        total = sums.total + sums.rest
        u = total / self.samples
        off = UP * (sums.error / self.samples + self.units * UNIT * np.abs(u))
        return u, off + np.where(total == 0.0, 0.0, TINY)

    def look(self, signs, v, theta, t, error, norms, loss: Hinge) -> None:
        """Look at the rows of a block for what else a certificate needs: here nothing."""

    @property
    def primal(self) -> tuple[float, float]:
        """Return the primal value, and a bound of its error."""
        w, entry = self.weights, self.entry
        value = fsum(self.losses) / self.samples
        value += 0.5 * entry["alpha"] * fsum(w * w) + entry["beta"] * fsum(np.abs(w))
        return value, UP * (fsum(self.spread) / self.samples + (8.0 * UNIT + self.inexact) * value) + TINY * w.size


@dataclass
class FreeSparsePair(SparsePair):
    """What is found out with a free intercept.

    ``found`` holds, for each way that the signed sum can go, what the best row with room for it changes: how much its
    term at most, and its norm.
    """

    found: dict = field(default_factory=dict)
    digits = DIGITS

    @property
    def residue(self) -> tuple[float, float]:
        """Return the signed sum, and a bound of its error."""
        sums = self.sums
        value = float(sums.total[-1] + sums.rest[-1])
        return value, UP * (float(sums.error[-1]) + UNIT * abs(value))

    def look(self, signs, v, theta, t, error, norms, loss: Hinge) -> None:
        """Look for rows of a block that can take what is left of the sum at a smaller change."""
        value, off = self.residue
        size = UP * (abs(value) + off)
        for way in (1.0, -1.0):
            room = loss.room(v, theta, signs * way < 0.0)
            rows = np.flatnonzero((room >= size) & (room > 0.0))
            if rows.size:
                slope = loss.slopes(t[rows], theta[rows]) + error[rows]
                slope = UP * (slope + loss.gamma * size / v[rows])
                best = int(np.argmin(slope))
                known = self.found.get(way, (math.inf, math.inf))
                if slope[best] < known[0]:
                    self.found[way] = float(slope[best]), float(norms[rows[best]])

    @property
    def weights(self) -> np.ndarray:
        """Return what is penalised."""
        return self.solution[:-1]

    @property
    def u(self) -> tuple[np.ndarray, np.ndarray]:
        """Return ``u``, and bounds of its errors."""
        u, off = super().u
        return u[:-1], off[:-1]

    @property
    def gap(self) -> float:
        """Return an upper bound of the gap."""
        (value, off), n = self.residue, self.samples
        if value == 0.0 == off:
            return super().gap
        size = UP * (abs(value) + off)
        ways = [1.0] * (value + off > 0.0) + [-1.0] * (value - off < 0.0)
        rows = [self.found.get(way, (math.inf, math.inf)) for way in ways]
        cost, shift = (UP * size * max(row[k] for row in rows) / n + TINY for k in (0, 1))
        return self.gap_with(cost, shift)


def feature_terms(w, u, alpha: float, beta: float):
    """Return upper bounds of the terms of the features."""
    inner = np.clip(u, -beta, beta)
    shrunk = u - inner
    apart = np.abs(alpha * w - shrunk) + 4.0 * UNIT * (alpha * np.abs(w) + np.abs(shrunk))
    lost = np.abs(w) * np.maximum(beta - np.sign(w) * inner, 0.0)
    terms = apart * apart / (2.0 * alpha) + lost
    return UP * terms + np.where(terms > 0.0, TINY, 0.0)


def read_pair(entry: dict, n: int, samples: float, width: int, kind: type[Kind], end: float) -> Kind:
    """Return the pair of a step; its numbers have the lengths and ranges that they must have."""
    index, values, states = entry["index"], entry["values"], unpack(entry["states"], 0, n)
    between = np.flatnonzero(states == BETWEEN)
    if (
        entry["states"].dtype != np.uint8
        or entry["states"].size != -(-n // 4)
        or entry["between"].size != between.size
        or index.size != values.size
        or np.any((index < 0) | (index >= width) | (np.diff(index, prepend=-1) <= 0))
        or not np.all(np.isfinite(values))
        or not all(isinstance(entry[name], float) and 0.0 <= entry[name] < math.inf for name in ("alpha", "beta"))
        or entry["beta"] == 0.0
    ):
        raise DataError(f"step {entry['step']}: the certificate's numbers do not fit the data")
    w, theta = np.zeros(width), np.where(states == HIGH, 1.0, 0.0)
    w[index], theta[between] = values, entry["between"]
    pair = kind(entry, ColumnSums(width), w, samples, theta)
    bad = np.flatnonzero((states > BETWEEN) | ~((theta >= 0.0) & (theta <= end) & (theta < math.inf)))
    if bad.size:
        pair.faults.append(f"row {bad[0] + 1}: the dual variable is outside its box")
        theta[bad] = 0.0  # whatever it is, sums go on
    return pair


def check(header: dict, steps: list, source) -> list[SparsePair]:
    """Return what is known about every step that claims anything; both passes over ``source``."""
    width, loss = source.d + (header["bias"] != 0.0), Hinge.of(header)
    if header["labels"] is None:
        raise DataError("the certificate's options are not those of a sparse SVM of two classes")
    samples = fsum(header["weights"]) if "weights" in header else source.n
    if not 0.0 < samples < math.inf:
        raise DataError("the certificate's weights have no sum")
    free = header.get("intercept") == "free"
    if free and header["bias"] != 1.0:
        raise DataError("the certificate's bias is not the free one of this model")
    kind = FreeSparsePair if free else SparsePair
    pairs = [read_pair(entry, source.n, samples, width, kind, loss.end) for entry in steps]
    for pair in pairs:
        pair.units += 2.0 * ("weights" in header)
        pair.inexact = 2.0 * UP * weights_error(header)
    for block in source.passed(indices=True):
        signs, v = signs_of(block.labels, header["labels"]), weights_of(header, block)
        for pair in pairs:
            for part in two_product(v, pair.theta[block.first : block.first + signs.size]):
                pair.sums.add(block, signs * part)
    for block in source.passed(indices=False):
        signs, v = signs_of(block.labels, header["labels"]), weights_of(header, block)
        norms = norms_of(block, source.d) if free else None
        for pair in pairs:
            p, error = products_of(block, pair.solution)
            theta, t = pair.theta[block.first : block.first + signs.size], 1.0 - signs * p
            error = UP * (error + 2.0 * UNIT * np.abs(t))
            ends = [loss.terms(end, theta) for end in (t - error, t + error)]
            most = v * np.maximum(np.maximum(*ends), 0.0)
            pair.terms.append(UP * fsum(most) + (TINY * most.size if np.any(most > 0.0) else 0.0))
            pair.look(signs, v, theta, t, error, norms, loss)
            pair.losses.append(fsum(v * loss.values(t)))
            pair.spread.append(UP * fsum(v * loss.spread(t, error)))
    return pairs
