r"""The check of a sparse SVM's certificate (two classes), in two passes over the data.

Objective   P(w) = 1/n sum_i v_i l(t_i) + alpha/2 ||w||^2 + beta ||w||_1,  t_i = 1 - y_i x_i.w,  l the smoothed hinge
Gap         1/n sum_i v_i [l(t_i) + gamma/2 theta_i^2 - theta_i t_i] + sum_j [(alpha w_j - S_j)^2 / (2 alpha)
            + beta |w_j| - w_j (u_j - S_j)], u = sum_i v_i theta_i y_i x_i / n, S = u shrunk by beta, 0 <= theta_i <= 1
            v_i the weights, n their sum

No term of either sum is negative, and each is convex in t_i or u_j: the larger one of its values at the ends of what
is known of t_i or u_j bounds it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from screenpath.errors import DataError
from screenpath.verify.box import products_of
from screenpath.verify.data import signs_of, weights_of
from screenpath.verify.exact import TINY, UNIT, UP, ColumnSums, fsum, two_product
from screenpath.verify.file import BETWEEN, HIGH, unpack


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
    digits = 0.0

    @property
    def gap(self) -> float:
        """Return an upper bound of the gap."""
        n, (alpha, beta) = self.samples, (self.entry["alpha"], self.entry["beta"])
        total = self.sums.total + self.sums.rest
        u = total / n
        off = UP * (self.sums.error / n + self.units * UNIT * np.abs(u)) + np.where(total == 0.0, 0.0, TINY)
        ends = [feature_terms(self.solution, end, alpha, beta) for end in (u - off, u + off)]
        return UP * (fsum(np.maximum(*ends)) + UP * fsum(self.terms) / n)

    @property
    def primal(self) -> tuple[float, float]:
        """Return the primal value, and a bound of its error."""
        w, entry = self.solution, self.entry
        value = fsum(self.losses) / self.samples
        value += 0.5 * entry["alpha"] * fsum(w * w) + entry["beta"] * fsum(np.abs(w))
        return value, UP * (fsum(self.spread) / self.samples + 8.0 * UNIT * value) + TINY * w.size


def feature_terms(w, u, alpha: float, beta: float):
    """Return upper bounds of the terms of the features."""
    inner = np.clip(u, -beta, beta)
    shrunk = u - inner
    apart = np.abs(alpha * w - shrunk) + 4.0 * UNIT * (alpha * np.abs(w) + np.abs(shrunk))
    lost = np.abs(w) * np.maximum(beta - np.sign(w) * inner, 0.0)
    terms = apart * apart / (2.0 * alpha) + lost
    return UP * terms + np.where(terms > 0.0, TINY, 0.0)


def sample_terms(t, theta, gamma: float):
    """Return upper bounds of the terms of the samples; ``t`` may be off by as much as it is moved for the bound."""
    below = theta * -t + 0.5 * gamma * theta * theta
    middle = (np.abs(t - gamma * theta) + 4.0 * UNIT * (np.abs(t) + gamma)) ** 2 / (2.0 * gamma)
    above = (1.0 - theta) * (t - gamma) + 0.5 * gamma * (1.0 - theta) ** 2
    return UP * np.where(t < 0.0, below, np.where(t > gamma, above, middle))


def smoothed(t, gamma: float):
    """Return the smoothed hinge."""
    return np.where(t <= 0.0, 0.0, np.where(t > gamma, t - 0.5 * gamma, t * t / (2.0 * gamma)))


def read_pair(entry: dict, n: int, samples: float, width: int) -> SparsePair:
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
        or not all(isinstance(entry[name], float) and 0.0 < entry[name] < math.inf for name in ("alpha", "beta"))
    ):
        raise DataError(f"step {entry['step']}: the certificate's numbers do not fit the data")
    w, theta = np.zeros(width), np.where(states == HIGH, 1.0, 0.0)
    w[index], theta[between] = values, entry["between"]
    pair = SparsePair(entry, ColumnSums(width), w, samples, theta)
    bad = np.flatnonzero((states > BETWEEN) | ~((theta >= 0.0) & (theta <= 1.0)))
    if bad.size:
        pair.faults.append(f"row {bad[0] + 1}: the dual variable is outside its box")
    return pair


def check(header: dict, steps: list, source) -> list[SparsePair]:
    """Return what is known about every step that claims anything; both passes over ``source``."""
    width, gamma = source.d + (header["bias"] != 0.0), header["smoothing"]
    if not 0.0 < gamma < 1.0 or header["labels"] is None:
        raise DataError("the certificate's options are not those of a sparse SVM of two classes")
    samples = fsum(header["weights"]) if "weights" in header else source.n
    if not 0.0 < samples < math.inf:
        raise DataError("the certificate's weights have no sum")
    pairs = [read_pair(entry, source.n, samples, width) for entry in steps]
    for pair in pairs:
        pair.units += 2.0 * ("weights" in header)
    for block in source.passed(indices=True):
        signs, v = signs_of(block.labels, header["labels"]), weights_of(header, block)
        for pair in pairs:
            for part in two_product(v, pair.theta[block.first : block.first + signs.size]):
                pair.sums.add(block, signs * part)
    for block in source.passed(indices=False):
        signs, v = signs_of(block.labels, header["labels"]), weights_of(header, block)
        for pair in pairs:
            p, error = products_of(block, pair.solution)
            theta, t = pair.theta[block.first : block.first + signs.size], 1.0 - signs * p
            error = UP * (error + 2.0 * UNIT * np.abs(t))
            ends = [sample_terms(end, theta, gamma) for end in (t - error, t + error)]
            most = v * np.maximum(np.maximum(*ends), 0.0)
            pair.terms.append(UP * fsum(most) + (TINY * most.size if np.any(most > 0.0) else 0.0))
            pair.losses.append(fsum(v * smoothed(t, gamma)))
            pair.spread.append(UP * fsum(v * (error + 8.0 * UNIT * (np.abs(t) + gamma))))
    return pairs
