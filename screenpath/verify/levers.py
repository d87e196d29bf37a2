r"""Held-out rows beside a free intercept: what a pair and combinations of its training rows prove of their signs.

Rows are without signs here: ``t_i = a_i c_i - x_i.w - b``, theta times a_i, so that its sum is 0. With Gamma the rows'
part of the gap, every optimum (w*, b*) at C obeys, x = C / C0,

    ||w* - c||^2 + C sum_i [(hi_i - theta_i) max(t*_i, 0) + (theta_i - lo_i) max(-t*_i, 0)] <= r^2,
    c = (w + x u)/2,  r^2 = ||w - x u||^2 / 4 + x Gamma

A **lever** are weights v >= 0 of training rows, sum v = 1, mu = sum v_i x_i, that theta has room for: ``delta v_i <=
hi_i - theta_i``. Then the sum is at least ``C delta sum v_i t*_i``, and a held-out row z at the distance D of mu has

    z.w* + b*  >=  (z - mu).c + sum v_i a_i c_i - r^2 / (C delta) - C delta D^2 / 4

With ``delta v_i <= theta_i - lo_i`` it is at most the same with the last two terms added. For a fixed delta either side
is concave (or convex) in C, so that a sign that is sure at both ends of a range is sure within it.
"""

from __future__ import annotations

import math

import numpy as np

from screenpath.verify.data import signs_of
from screenpath.verify.exact import TINY, UNIT, UP, fsum, gamma, norm_above, squared
from screenpath.verify.file import BETWEEN, HIGH, unpack
from screenpath.verify.products import norms_of, products_of

PIECES = 4  # ranges between two neighbours in which each row is looked at
NAMES = ("lever_ends", "lever_rows", "lever_weights")


def rows_of(entries: list, n: int) -> np.ndarray:
    """Return the training rows that the levers of steps are made of; of the wrong kind or size they raise."""
    for entry in entries:
        ends, rows, weights = (entry[name] for name in NAMES)
        good = rows.size == weights.size and np.all(np.diff(np.append(0, ends)) > 0) and np.all(weights > 0.0)
        good &= not ends.size or bool(ends[-1] == rows.size and 0 <= rows.min() <= rows.max() < n)
        if not good or (ends.dtype, rows.dtype, weights.dtype) != (np.int64, np.int64, np.float64):
            raise ValueError(f"step {entry['step']}: its levers are not made of training rows")
    return np.unique(np.concatenate([np.zeros(0, np.int64), *(entry["lever_rows"] for entry in entries)]))


class FreeLine:
    """What a pair with a free intercept tells about ``m`` held-out rows.

    ``trained`` are the numbers of the training rows that levers are made of, and their blocks.
    """

    def __init__(self, pair, header: dict, blocks: list, weights: np.ndarray, trained: tuple):
        entry, (u, rest, off), (cost, shift, _) = pair.entry, pair.u, pair.costs
        self.pair, self.C, self.weights = pair, entry["C"], weights / fsum(weights)
        self.gamma = UP * UP * (pair.term + cost + TINY)
        self.points = pair.weights, u + rest
        # How far u may be from what is known of it, and the dual point's from that which makes the sum 0.
        self.lost = UP * (norm_above(off + (4.0 * UNIT + UP * pair.model.inexact) * (np.abs(u) + np.abs(rest))) + shift)
        self.shift, self.sizes = shift, [norm_above(np.abs(point)) for point in self.points]
        self.signs = np.concatenate([signs_of(block.labels, header["labels"]) for block in blocks])
        width = pair.model.penalised
        self.norms = np.concatenate([norms_of(block, width) for block in blocks])
        self.forms = [_products(blocks, point) for point in self.points]
        self.levers = [
            lever for some in np.split(np.arange(entry["lever_rows"].size), entry["lever_ends"][:-1]) if some.size
            for lever in self._levers(entry["lever_rows"][some], entry["lever_weights"][some], header, trained, blocks)
        ]  # fmt: skip

    def _levers(self, rows: np.ndarray, weights: np.ndarray, header: dict, trained: tuple, blocks: list) -> list:
        """Return, for each side on which there is room: the side, the room, products, distances and their errors."""
        numbers, train = trained
        places, width = np.searchsorted(numbers, rows), self.pair.model.penalised
        share, center, size = np.zeros(numbers.size), *np.zeros((2, width))
        np.add.at(share, places, weights / fsum(weights))
        places = np.unique(places)
        v, rows = share[places], numbers[places]
        for block in train:
            parts = share[block.first + block.rows] * block.values
            center += np.bincount(block.columns, parts, width + 1)[:width]
            size += np.bincount(block.columns, np.abs(parts), width + 1)[:width]
        # From the combination to what was formed of it.
        away = UP * norm_above(gamma(rows.size + 12) * size + TINY * rows.size)
        labels = np.concatenate([signs_of(block.labels, header["labels"]) for block in train])[places]
        products, errors, (p, e) = [], [], _products(blocks, center)
        for (form, error), point, norm in zip(self.forms, self.points, self.sizes, strict=True):
            own, around = fsum(center * point), fsum(np.abs(center * point))
            products.append(form - own)
            lost = UNIT * (np.abs(products[-1]) + 4.0 * abs(own) + around) + TINY * width
            errors.append(UP * (error + lost + away * norm))
        square = self.norms**2 - 2.0 * (p - e) + fsum(center * center)
        square += 8.0 * UNIT * (self.norms**2 + 2.0 * np.abs(p) + fsum(center * center)) + TINY
        apart = UP * (np.sqrt(np.maximum(square, 0.0)) + away)
        offset, found = fsum(v * labels), []
        for side, room in zip((1.0, -1.0), self._rooms(rows, labels, header), strict=True):
            able = float(np.min(room / v)) * (1.0 - 8.0 * UNIT)
            found += [(side, able, offset, products, errors, apart)] if able > 0.0 else []
        return found

    def _rooms(self, rows: np.ndarray, labels: np.ndarray, header: dict) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much the dual variables of rows, times their signs, can rise and fall, at least."""
        pair, entry = self.pair, self.pair.entry
        hi = header["weights"][rows] if "weights" in header else np.ones(rows.size)
        states = unpack(entry["states"], 0, pair.model.n)[rows]
        theta = np.where(states == HIGH, hi, 0.0)
        inner = states == BETWEEN
        theta[inner] = entry["between"][np.searchsorted(pair.between, rows[inner])]
        # What makes the sum 0 may be taken from any of them, and the weights may be rounded.
        moved, up = pair.flow_size + 2.0 * pair.model.inexact * hi, labels > 0.0
        rise, fall = ((part - moved) * (1.0 - 4.0 * UNIT) for part in (hi - theta, theta))
        return np.where(up, rise, fall), np.where(up, fall, rise)

    def radius(self, C: float) -> float:
        """Return an upper bound of r: how far the optimum at C is from ``(w + x u)/2``."""
        x = UP * C / self.C
        away = self.pair.away(C / self.C) + x * self.shift
        return UP * math.sqrt(UP * (0.25 * squared(away) + x * self.gamma) + TINY)

    def sure(self, low: float, high: float, side: np.ndarray) -> np.ndarray:
        """Tell of each row whether ``z.w* + b*`` has the sign ``side`` for all C from ``low`` to ``high``."""
        found, middle, ends = np.zeros(side.size, dtype=bool), math.sqrt(low * high), (low, high)
        radii, at = [self.radius(C) for C in ends], self.radius(middle)
        for sign, room, offset, products, errors, apart in self.levers:
            with np.errstate(all="ignore"):  # what is no number shows nothing
                delta, good = np.minimum(room, 2.0 * at / (middle * apart)), side == sign
                for C, r in zip(ends, radii, strict=True):
                    x = C / self.C
                    form = sign * (0.5 * (products[0] + x * products[1]) + offset)
                    width = r * r / (C * delta) + 0.25 * C * delta * apart * apart
                    slack = 0.5 * (errors[0] + x * (errors[1] + apart * self.lost)) + 16.0 * UNIT * (
                        np.abs(products[0]) + x * np.abs(products[1]) + abs(offset) + 1.0 + width
                    )
                    good &= form > UP * (width + slack)
            found |= good
        return found


def _products(blocks: list, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return products of rows with a point of the penalised features, and bounds of the errors."""
    found = [products_of(block, np.append(point, 0.0)) for block in blocks]
    p, e = (np.concatenate(one) for one in zip(*found, strict=True))
    return p, e


def heaviest(ends: list, wrong: bool) -> float:
    """Return the largest weight, over the pieces of a range, of held-out rows not sure to be wrong (or right)."""
    low, high = ends[0][0].C, ends[0][1].C
    cuts = low * (high / low) ** np.linspace(0.0, 1.0, PIECES + 1)
    cuts[0], cuts[-1] = low, high
    found = []
    for start, stop in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        sides = [(a, b, -a.signs if wrong else a.signs) for a, b in ends]
        left = [a.weights[~(a.sure(start, stop, side) | b.sure(start, stop, side))] for a, b, side in sides]
        found.append(fsum(np.concatenate(left)) / len(ends))
    return max(found)
