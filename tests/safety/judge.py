"""A judge in rational arithmetic of what certificates say of a data file."""

from __future__ import annotations

import math
from fractions import Fraction as F

from screenpath.verify.file import unpack
from tests.safety.rational import dot


def root(x: F) -> F:
    """Return the square root to 200 bits."""
    scale = 1 << 400
    return F(math.isqrt(x.numerator * scale * scale // x.denominator), scale)


def exact_rows(header: dict, X) -> list:
    rows = [[F(x) for x in row] for row in X]
    if header["scaling"] == "standard":
        shift, scale = ([F(v) for v in header[name].tolist()] for name in ("shift", "scale"))
        rows = [[(x - m) / s for x, m, s in zip(row, shift, scale, strict=True)] for row in rows]
    elif header["scaling"] == "maxabs":
        rows = [[x / F(s) for x, s in zip(row, header["scale"].tolist(), strict=True)] for row in rows]
    elif header["scaling"] == "l2":
        norms = [root(dot(row, row)) or F(1) for row in rows]
        rows = [[x / norm for x in row] for row, norm in zip(rows, norms, strict=True)]
    return [[*row, F(header["bias"])] for row in rows] if header["bias"] else rows


def exact_losses(header: dict, X, y) -> tuple[list, list, list, list]:
    """Return rows g, kinks and both ends of all dual variables."""
    rows, n, model = exact_rows(header, X), len(y), header["model"]
    zeros, ones = [F(0)] * n, [F(1)] * n
    if model == "svm":
        plus = float(header["labels"]["+1"])
        signs = [1 if label == plus else -1 for label in y]
        return [[k * x for x in row] for k, row in zip(signs, rows, strict=True)], ones, zeros, ones
    if model == "svr":
        mirrored = [[-x for x in row] for row in rows]
        kinks = [F(sign * t) - F(header["epsilon"]) for sign in (1, -1) for t in y]
        return rows + mirrored, kinks, 2 * zeros, 2 * ones
    tau = header["tau"] if model == "quantile" else None
    return rows, [*map(F, y)], n * [F(-1.0 if tau is None else tau - 1.0)], n * [F(1.0 if tau is None else tau)]


class ExactPair:
    """All that the judge knows about one step; ``valid`` is False where its dual point is none."""

    def __init__(self, problem, entry: dict):
        g, c, lo, hi = problem
        states, between = unpack(entry["states"], 0, len(c)).tolist(), iter(entry["between"].tolist())
        theta = [lo[i] if s == 0 else hi[i] if s == 1 else F(next(between)) for i, s in enumerate(states)]
        self.C, self.valid = F(entry["C"]), all(a <= t <= b for a, t, b in zip(lo, theta, hi, strict=True))
        self.w = [F(x) for x in entry["w"].tolist()]
        self.v = [self.C * dot(theta, column) for column in zip(*g, strict=True)]
        away = [a - b for a, b in zip(self.w, self.v, strict=True)]
        t = [k - dot(row, self.w) for k, row in zip(c, g, strict=True)]
        losses = [max(a * x, b * x) for a, b, x in zip(lo, hi, t, strict=True)]
        self.slope = sum(losses) - dot(theta, t)
        self.gap = dot(away, away) / 2 + self.C * self.slope
        self.primal = dot(self.w, self.w) / 2 + self.C * sum(losses)


def l1_values(entry: dict, rows, signs, w) -> tuple:
    """Return the gap and the primal value of a pair of the L1 SVM with the dual point that its w gives.

    The checker's own dual point differs from it by rounding: the gap is smaller by 9 digits of it.
    """
    lam, b = F(entry["lambda"]), F(entry["b"])
    slack = [1 - s * (dot(row, w) + b) for s, row in zip(signs, rows, strict=True)]
    primal = sum(max(x, F(0)) ** 2 for x in slack) / 2 + lam * sum(map(abs, w))
    a = [max(x - s * F(entry.get("b_off", 0.0)), F(0)) for s, x in zip(signs, slack, strict=True)]
    masses = [sum(x for x, s in zip(a, signs, strict=True) if s == sign) for sign in (1, -1)]
    least = min(masses)
    a = [x * (least / masses[0 if s > 0 else 1]) if least else F(0) for x, s in zip(a, signs, strict=True)]
    most = max(abs(dot([s * x for s, x in zip(signs, a, strict=True)], column)) for column in zip(*rows, strict=True))
    if not any(a):
        return primal, primal
    r = min(lam / most if most else F(10**300), sum(a) / dot(a, a))
    return (primal - r * sum(a) + r * r * dot(a, a) / 2) * (1 - F(1, 10**9)), primal
