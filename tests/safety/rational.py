"""Tiny box problems in exact arithmetic: what a certificate claims is compared with optima that are fractions."""

from __future__ import annotations

import copy
import decimal
import functools
import itertools
from fractions import Fraction

import numpy as np

LOSSES = ("svm", "lad", "quantile", "svr")


def signed_rows(model) -> np.ndarray:
    """Return ``G`` of a model: a sign changes no digit."""
    X = model.rows.X if not model.rows.sparse else _dense(model.rows)
    stacked = np.vstack([X, X]) if model.mirrored else X
    return np.asarray(stacked, dtype=float) * np.asarray(model.signs, dtype=float)[:, None]


def _dense(rows):
    out = np.zeros((rows.n, rows.d))
    for i in range(rows.n):
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            out[i, rows.indices[p]] = rows.data[p]
    return out


def integers(values) -> tuple[np.ndarray, int]:
    """Return floats as integers times a power of 1/2, and which power: sums of products of these need no fractions."""
    pairs = [float(v).as_integer_ratio() for v in np.ravel(values)]
    bits = max((divisor.bit_length() - 1 for _, divisor in pairs), default=0)
    whole = np.array([number * ((1 << bits) // divisor) for number, divisor in pairs], dtype=object)
    return whole.reshape(np.shape(values)), bits


def losses_of(model) -> tuple:
    """Return kinks and both ends of the boxes of a model as fractions."""
    c, lo, hi = ([Fraction(float(v)) for v in a] for a in (model.c, model.lo, model.hi))
    tails = np.broadcast_to(model.tail, model.c.shape)
    return [a + Fraction(float(b)) for a, b in zip(c, tails, strict=True)], lo, hi


class Exact:
    """Objectives of a box model in fractions: of at most about five dual variables, as all active sets are tried.

    ``losses``: kinks and both ends of the boxes as fractions of the data's numbers; by default those of the model.
    """

    inside = False  # whether only dual points in their box are tried: those of an optimum are

    def __init__(self, model, C: float, losses=None):
        self.rows, self.bits = integers(signed_rows(model))
        self.C = Fraction(float(C))
        self.c, self.lo, self.hi = losses or losses_of(model)

    def at(self, C: float) -> Exact:
        other = copy.copy(self)
        other.C = Fraction(float(C))
        return other

    @functools.cached_property
    def G(self) -> list[list[Fraction]]:
        return [[Fraction(int(v), 1 << self.bits) for v in row] for row in self.rows]

    def primal(self, w) -> Fraction:
        if any(isinstance(v, Fraction) for v in w):
            w = [Fraction(v) for v in w]
            margins, square = [dot(g, w) for g in self.G], dot(w, w)
        else:
            whole, bits = integers(w)
            margins = [Fraction(int(m), 1 << (self.bits + bits)) for m in self.rows @ whole]
            square = Fraction(int(whole @ whole), 1 << (2 * bits))
        t = [c - m for c, m in zip(self.c, margins, strict=True)]
        loss = sum(max(lo * v, hi * v) for lo, hi, v in zip(self.lo, self.hi, t, strict=True))
        return square / 2 + self.C * loss

    def dual(self, theta) -> Fraction:
        whole, bits = integers(theta)
        u = whole @ self.rows
        square = Fraction(int(u @ u), 1 << (2 * (self.bits + bits)))
        return self.C * dot(self.c, [Fraction(float(v)) for v in theta]) - self.C * self.C * square / 2

    @property
    def zero(self) -> Fraction:
        return self.primal([0.0] * len(self.G[0]))

    def gram(self) -> list[list[Fraction]]:
        return [[dot(a, b) for b in self.G] for a in self.G]

    def primal_of(self, theta) -> Fraction:
        return self.primal(
            [self.C * sum(t * g[j] for t, g in zip(theta, self.G, strict=True)) for j in range(len(self.G[0]))]
        )

    def optimum(self) -> Fraction:
        """Return the smallest primal value over the points of all active sets: an upper bound of the optimum, and
        the optimum itself unless rows at their kink depend on each other in a way that no subset shows."""
        best = self.zero
        for theta in self.candidates():
            if self.inside and any(not lo <= v <= hi for lo, v, hi in zip(self.lo, theta, self.hi, strict=True)):
                continue
            best = min(best, self.primal_of(theta))
        return best

    def candidates(self):
        """Yield the dual point of every active set: some at an end of their box, the others at their kink."""
        gram = self.gram()
        for sides in itertools.product((-1, 0, 1), repeat=len(gram)):
            theta = [self.lo[i] if s < 0 else self.hi[i] for i, s in enumerate(sides)]
            free = [i for i, s in enumerate(sides) if s == 0]
            fixed = [i for i, s in enumerate(sides) if s != 0]
            right = [self.c[i] - self.C * sum(gram[i][k] * theta[k] for k in fixed) for i in free]
            found = solve([[self.C * gram[i][k] for k in free] for i in free], right)
            if found is None:
                continue
            for i, value in zip(free, found, strict=True):
                theta[i] = value
            yield theta


class ExactFree(Exact):
    """Objectives of a linear model with a free intercept: the last entry of a primal point."""

    def __init__(self, model, C: float, losses=None):
        super().__init__(model, C, losses)
        self.signs = [int(s) for s in model.signs]

    def primal(self, w) -> Fraction:
        w, b = [Fraction(v) for v in w[:-1]], Fraction(w[-1])
        t = [c - dot(g, w) - s * b for c, g, s in zip(self.c, self.G, self.signs, strict=True)]
        return dot(w, w) / 2 + self.C * sum(max(lo * v, hi * v) for lo, hi, v in zip(self.lo, self.hi, t, strict=True))

    @property
    def zero(self) -> Fraction:
        """Return the smallest primal value with w = 0 and an intercept that is a double."""
        w = [Fraction(0)] * len(self.G[0])
        return min(self.primal([*w, float(s * c)]) for c, s in zip(self.c, self.signs, strict=True))

    def _best(self, w) -> Fraction:
        """Return the smallest primal value with that ``w``: the best intercept is at a kink."""
        kinks = {s * (c - dot(g, w)) for c, g, s in zip(self.c, self.G, self.signs, strict=True)}
        return min(self.primal([*w, b]) for b in kinks)

    def optimum(self) -> Fraction:
        """Return the smallest primal value over the points of all active sets: an upper bound of the optimum."""
        gram, n = self.gram(), range(len(self.G))
        best = self._best([Fraction(0)] * len(self.G[0]))
        for sides in itertools.product((-1, 0, 1), repeat=len(gram)):
            theta = [self.lo[i] if s < 0 else self.hi[i] for i, s in enumerate(sides)]
            free, fixed = [i for i in n if sides[i] == 0], [i for i in n if sides[i] != 0]
            if free:
                system = [[*(self.C * gram[i][k] for k in free), self.signs[i]] for i in free]
                right = [self.c[i] - self.C * sum(gram[i][k] * theta[k] for k in fixed) for i in free]
                system.append([*(self.signs[k] for k in free), 0])
                found = solve(system, [*right, -sum(self.signs[k] * theta[k] for k in fixed)])
                if found is None:
                    continue
                for i, value in zip(free, found, strict=False):
                    theta[i] = value
            if all(lo <= v <= hi for lo, v, hi in zip(self.lo, theta, self.hi, strict=True)):
                w = [self.C * sum(t * g[j] for t, g in zip(theta, self.G, strict=True)) for j in range(len(self.G[0]))]
                best = min(best, self._best(w))
        return best


class ExactKernel(Exact):
    """Objectives of a kernel model in fractions; a ``w`` is given by its coefficients ``s_i alpha_i``."""

    inside = True  # far outside of it, an RBF kernel would need more digits to be positive definite

    def __init__(self, model, X, C: float):
        self.C, self.signs = Fraction(float(C)), [int(s) for s in model.rows.signs]
        self.c, self.lo, self.hi = losses_of(model)
        rows = [[Fraction(float(v)) for v in row] for row in X]
        kernel = [[exact_kernel(model.rows.blocks.function, a, b) for b in rows] for a in rows]
        n = range(len(rows))
        self.Q = [[self.signs[i] * self.signs[j] * kernel[i][j] for j in n] for i in n]

    @property
    def zero(self) -> Fraction:
        return self.primal([0.0] * len(self.Q))

    def gram(self) -> list[list[Fraction]]:
        return self.Q

    def primal(self, w) -> Fraction:
        alpha = [s * (v if isinstance(v, Fraction) else Fraction(float(v))) for s, v in zip(self.signs, w, strict=True)]
        products = [dot(row, alpha) for row in self.Q]
        t = [c - p for c, p in zip(self.c, products, strict=True)]
        loss = sum(max(lo * v, hi * v) for lo, hi, v in zip(self.lo, self.hi, t, strict=True))
        return dot(alpha, products) / 2 + self.C * loss

    def primal_of(self, theta) -> Fraction:
        return self.primal([s * self.C * t for s, t in zip(self.signs, theta, strict=True)])

    def dual(self, theta) -> Fraction:
        theta = [Fraction(float(v)) for v in theta]
        square = dot(theta, [dot(row, theta) for row in self.Q])
        return self.C * dot(self.c, theta) - self.C * self.C * square / 2


def exact_kernel(function, a, b) -> Fraction:
    """Return a kernel value of two rows of fractions; exponentials to 90 digits."""
    gamma, constant = Fraction(float(function.gamma)), Fraction(float(function.constant))
    if function.name == "linear":
        return dot(a, b) + constant
    if function.name == "poly":
        return (gamma * dot(a, b) + Fraction(float(function.coef0))) ** function.degree + constant
    power = 2 if function.name == "rbf" else 1
    t = gamma * sum(abs(x - y) ** power for x, y in zip(a, b, strict=True))
    if t > 2000:  # 0, to more digits than matter
        return constant
    with decimal.localcontext() as context:
        context.prec = 90
        return Fraction((-decimal.Decimal(t.numerator) / decimal.Decimal(t.denominator)).exp()) + constant


def dot(a, b) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def solve(matrix, right):
    rows = [[*row, r] for row, r in zip(matrix, right, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def faults(model, C: float, tol: float, step, certificate=None, exact=None) -> list[str]:
    """Return what a step claims and exact arithmetic contradicts; the dual point of a certificate has a say as well."""
    found, exact = [], exact or Exact(model, C)
    numbers = [step.primal, step.dual, step.gap, *np.ravel(step.coefficients)]
    if not np.all(np.isfinite(numbers)):
        return ["numbers that are not finite"]
    primal, optimum = exact.primal(step.coefficients), exact.optimum()
    if step.status == "certified" and primal - optimum > Fraction(tol) * primal:
        found.append(f"certified, but {float((primal - optimum) / primal):.1e} from the optimum")
    if primal - optimum > Fraction(step.gap):
        found.append(f"gap {step.gap:.3e}, but {float(primal - optimum):.3e} above the optimum")
    if Fraction(step.dual) > optimum:
        found.append(f"dual {step.dual!r} above the optimum {float(optimum)!r}")
    zero = exact.zero
    if primal > zero + Fraction(1, 10**12) * zero:
        found.append("worse than zero")
    error = max(Fraction(step.primal) - Fraction(step.gap) - Fraction(step.dual), 0) + primal / 10**9
    error += Fraction(step.gap) / 2**50  # the error is read from a difference of rounded numbers
    if abs(Fraction(step.primal) - primal) > error:
        found.append(f"primal {step.primal!r}, but it is {float(primal)!r}")
    if certificate is not None:
        theta = certificate.theta
        if np.any(theta < model.lo) or np.any(theta > model.hi):
            found.append("the dual point is not feasible")
        gap = primal - exact.dual(theta)
        if gap > Fraction(certificate.gap):
            found.append(f"gap {certificate.gap:.3e} below the exact one of the pair, {float(gap):.3e}")
        if step.status == "certified" and gap > Fraction(tol) * primal:
            found.append("certified, but the pair's exact gap is too large")
    return found
