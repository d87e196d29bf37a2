"""Rational arithmetic: what the sparse and the L1 model's proofs are judged by, and hostile problems to try them on.

Every double is a fraction; objectives, dual points and optimality conditions are evaluated without any rounding.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite

import numpy as np

from tests.safety.rational import solve


def fractions(values) -> list[Fraction]:
    """Return doubles as fractions; those that are fractions stay what they are."""
    return [value if isinstance(value, Fraction) else Fraction(float(value)) for value in values]


def tops_of_rounding():
    """Return data and labels whose largest parameter is 0 on paper, and nothing but rounding as computed."""
    rng = np.random.default_rng(0)
    pairs = np.repeat(rng.normal(size=(50, 3)) * [1.0, 1e6, 1e-6], 2, axis=0)
    y = np.tile([1.0, -1.0], 50)
    order = rng.permutation(100)
    decimal = np.array([0.1, 0.3, 0.2, 0.0, 0.7, 0.6, 0.1, 0.2, 0.0, 0.0])[:, None]  # 0 on paper, 2.8e-17 as stored
    return (pairs[order], y[order]), (decimal, y[:10]), (np.full((100, 1), 0.1), y)


def small_signal():
    """Return data and labels: a large column, the same for both labels, beside a small one that tells them apart."""
    rng = np.random.default_rng(1)
    y = np.tile([1.0, -1.0], 30)
    noise = np.repeat(1e12 * rng.normal(size=30), 2)
    order = rng.permutation(60)
    return np.column_stack([noise, 1e-7 * y])[order], y[order]


def overflows(lines, weights=None) -> bool:
    """Tell whether the squared norm of a line, a row or a column, is beyond the largest double; ``weights`` are of its
    values.
    """
    for line in lines:
        given = fractions(np.ones(len(line)) if weights is None else weights)
        if sum(s * v * v for s, v in zip(given, fractions(line), strict=True)) > Fraction(np.finfo(float).max):
            return True
    return False


def hostile(rng):
    """Return data of 2 to 6 rows and 1 to 4 columns, badly scaled in many ways, and labels -1 and 1."""
    n, d = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    kind = rng.integers(5)
    X = rng.normal(size=(n, d)) if kind < 3 else rng.integers(-3, 4, size=(n, d)).astype(float)
    X = np.round(X) / 10.0 if kind == 4 else X
    X = X * (rng.random((n, d)) < rng.choice([1.0, 0.6]))
    spread = rng.choice([0, 1, 6, 12])
    if rng.random() < 0.4:
        X = X * 10.0 ** rng.uniform(-spread, spread, size=(n, 1))
    if rng.random() < 0.4:
        X = X * 10.0 ** rng.uniform(-spread, spread, size=(1, d))
    if rng.random() < 0.3:  # a mean far above the spread
        X[:, rng.integers(d)] += 10.0 ** rng.uniform(0, 12) * rng.choice([-1, 1])
    if rng.random() < 0.2:
        X[:, rng.integers(d)] = X[:, rng.integers(d)]
    if rng.random() < 0.2:
        X[rng.integers(n)] = X[rng.integers(n)]
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.uniform(-150, 150)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    return X, y


def far_from_0(rng):
    """Return hostile data all of whose columns have a mean above their spread, by up to 14 digits."""
    X, y = hostile(rng)
    sizes = np.abs(X).max(axis=0)
    return X + np.where(sizes > 0.0, sizes, 1.0) * 10.0 ** rng.uniform(0, 14, X.shape[1]) * rng.choice([-1, 1]), y


def random_weights(seed, y):
    """Return weights of samples, None half the time; no class is without weight."""
    rng = np.random.default_rng([seed, 77])
    kind = rng.integers(6)
    if kind < 3:
        return None
    if kind == 3:
        weights = rng.integers(0, 4, size=len(y)).astype(float)
    else:
        weights = 10.0 ** rng.uniform(*((-1, 1) if kind == 4 else (-9, 9)), size=len(y))
    for label in np.unique(y):
        weights[np.argmax(y == label)] += 1.0
    return weights


class Sparse:
    """A sparse SVM; dual variables and weights in the order of ``kernels/problem/sparse.py``."""

    def __init__(self, X, labels, classes: int, gamma: float, weights=None, kinks=None, ends=(0, 1)):
        self.signs: list | None = None  # of weights that must not be on the other side of 0
        self.kinks, (self.low, self.high) = fractions(np.ones(len(X)) if kinks is None else kinks), ends
        given = fractions(np.ones(len(X)) if weights is None else weights)
        self.weights = [s * len(X) / sum(given) for s in given]  # of mean 1
        self.n, self.d, self.classes, self.gamma = *X.shape, classes, Fraction(gamma)
        self.free, self.rows = [], {}  # of the dual
        data = [fractions(row) for row in X]
        for i in range(self.n):
            for c in range(classes):
                row = [Fraction(0)] * (classes * self.d)
                if classes > 1 and c == labels[i]:
                    continue
                for j in range(self.d):
                    if classes == 1:
                        row[j] = int(labels[i]) * data[i][j]
                    else:
                        row[labels[i] * self.d + j] += data[i][j]
                        row[c * self.d + j] -= data[i][j]
                self.rows[c * self.n + i] = row
                self.free.append(c * self.n + i)

    def outward(self, u) -> list:
        """Return how far ``u`` goes towards weights that their signs (0 for any) allow."""
        signs = self.signs or [0] * len(u)
        return [abs(value) if sign == 0 else sign * value for value, sign in zip(u, signs, strict=True)]

    def weight(self, k):
        return self.weights[k % self.n]

    def respond(self, w):
        """Return ``t`` and ``theta(w)`` of the dual variables."""
        forms = {k: sum(a * b for a, b in zip(self.rows[k], w, strict=True) if a and b) for k in self.free}
        t = {k: self.kinks[k % self.n] - forms[k] for k in self.free}
        if self.gamma == 0:
            return t, {k: Fraction(int(t[k] > 0)) for k in self.free}
        return t, {k: min(max(t[k] / self.gamma, Fraction(self.low)), Fraction(self.high)) for k in self.free}

    def sums(self, theta):
        u = [Fraction(0)] * (self.classes * self.d)
        for k in self.free:
            if theta[k]:
                u = [a + b * theta[k] * self.weight(k) for a, b in zip(u, self.rows[k], strict=True)]
        return [value / self.n for value in u]

    def objectives(self, w, theta, alpha: float, beta: float):
        """Return primal and dual objective; at ``alpha = 0`` the latter is -1 outside of the dual's feasible set."""
        alpha, beta, w, values = Fraction(alpha), Fraction(beta), fractions(w), fractions(theta)
        theta = {k: values[k] for k in self.free}
        assert all(self.low <= value <= self.high for value in theta.values())
        t, best = self.respond(w)
        loss = sum(self.weight(k) * best[k] * (t[k] - self.gamma / 2 * best[k]) for k in self.free) / self.n
        primal = loss + alpha / 2 * sum(v * v for v in w) + beta * sum(abs(v) for v in w)
        over = [max(value - beta, Fraction(0)) for value in self.outward(self.sums(theta))]
        each = ((self.weight(k), self.kinks[k % self.n], v) for k, v in theta.items())
        linear = sum(s * (c * v - self.gamma / 2 * v * v) for s, c, v in each) / self.n
        if alpha == 0:
            return primal, linear if max(over) == 0 else Fraction(-1)
        return primal, linear - sum(v * v for v in over) / (2 * alpha)

    def gap_of(self, c, alpha: float) -> tuple:
        """Return primal and dual value of a certificate's pair at ``alpha``."""
        return self.objectives(c.w, c.theta, alpha, c.beta)

    def optimum(self, w, alpha: float, beta: float):
        """Return weights, dual variables and ``u`` at the optimum, from a guess of the pattern; None if it is wrong."""
        alpha, beta, w = Fraction(alpha), Fraction(beta), fractions(w)
        for _ in range(6):
            t, theta = self.respond(w)
            u = self.sums(theta)
            active = [j for j in range(len(w)) if w[j] or abs(u[j]) > beta]
            sign = {j: 1 if (w[j] or u[j]) > 0 else -1 for j in active}
            inside = [k for k in self.free if 0 < t[k] < self.gamma]
            upper = [k for k in self.free if t[k] >= self.gamma]
            scale = 1 / (self.n * self.gamma)
            inner = {
                (a, b): sum(self.weight(k) * self.rows[k][a] * self.rows[k][b] for k in inside)
                for a in active
                for b in active
            }
            matrix = [[scale * inner[a, b] + (alpha if a == b else 0) for b in active] for a in active]
            right = [
                sum(self.weight(k) * self.rows[k][a] for k in upper) / self.n
                + scale * sum(self.weight(k) * self.rows[k][a] for k in inside)
                - beta * sign[a]
                for a in active
            ]
            found = dict(zip(active, solve(matrix, right) or [], strict=False))
            w = [found.get(j, Fraction(0)) for j in range(len(w))]
            w = [value if j not in sign or value * sign[j] > 0 else Fraction(0) for j, value in enumerate(w)]
            _, theta = self.respond(w)
            u = self.sums(theta)
            if all(
                alpha * v == (x - beta if x > beta else x + beta if x < -beta else 0) for v, x in zip(w, u, strict=True)
            ):
                return w, theta, u
        return None


class FreeSparse(Sparse):
    """The same with a free intercept, which is the last weight."""

    def __init__(self, X, labels, classes: int, *more):
        super().__init__(np.column_stack([X, np.ones(len(X))]), labels, classes, *more)
        self.labels = [int(label) for label in labels]

    def feasible(self, theta, slopes) -> list | None:
        """Return the dual point whose signed sum is 0 exactly, one row that loses little being moved."""
        rest = sum(s * y * v for s, y, v in zip(self.weights, self.labels, theta, strict=True))
        for i in sorted((i for i in range(self.n) if self.weights[i]), key=lambda i: abs(slopes[i])):
            value = theta[i] - self.labels[i] * rest / self.weights[i]
            if self.low <= value <= self.high:
                return [*theta[:i], value, *theta[i + 1 :]]
        return None

    def gap_of(self, c, alpha: float) -> tuple:
        """Return primal and dual value of a certificate's pair at ``alpha``; no dual value where no row has room."""
        alpha, beta, w = Fraction(alpha), Fraction(c.beta), [*fractions(c.w), Fraction(float(c.intercept))]
        t, best = self.respond(w)
        loss = sum(self.weight(k) * best[k] * (t[k] - self.gamma / 2 * best[k]) for k in self.free) / self.n
        primal = loss + alpha / 2 * sum(v * v for v in w[:-1]) + beta * sum(abs(v) for v in w[:-1])
        theta = fractions(c.theta)
        theta = self.feasible(theta, [t[k] - self.gamma * theta[k] for k in self.free])
        if theta is None:
            return primal, None
        over = [max(value - beta, Fraction(0)) for value in self.outward(self.sums(dict(enumerate(theta)))[:-1])]
        each = zip(self.weights, self.kinks, theta, strict=True)
        linear = sum(s * (c * v - self.gamma / 2 * v * v) for s, c, v in each) / self.n
        return primal, linear - sum(v * v for v in over) / (2 * alpha)


class L1:
    """An L1-regularised squared hinge with a free bias; its dual variables are ``a_i = s_i max(0, t_i)``.

    Its columns are those of ``X`` over ``scale``, divided without rounding.
    """

    def __init__(self, X, y, weights=None, scale=None):
        self.y = [int(value) for value in y]
        self.weights = fractions(np.ones(len(y)) if weights is None else weights)
        self.n, self.m = X.shape
        units = fractions(np.ones(self.m) if scale is None else scale)
        self.columns = [
            [s * v / unit for s, v in zip(self.y, fractions(column), strict=True)]
            for column, unit in zip(X.T, units, strict=True)
        ]

    @property
    def center(self):
        return sum(s * v for s, v in zip(self.weights, self.y, strict=True)) / sum(self.weights)

    def slack(self, w, bias):
        out = [1 - s * bias for s in self.y]
        for value, column in zip(w, self.columns, strict=True):
            if value:
                out = [a - value * b for a, b in zip(out, column, strict=True)]
        return out

    def products(self, alpha):
        return [sum(a * b for a, b in zip(column, alpha, strict=True) if b) for column in self.columns]

    def primal(self, w, bias, lam):
        loss = sum(v * max(s, 0) ** 2 for v, s in zip(self.weights, self.slack(w, bias), strict=True)) / 2
        return loss + lam * sum(abs(v) for v in w)

    def respond(self, slack, t=0):
        each = zip(self.weights, slack, self.y, strict=True)
        return [v * max(a - s * t, Fraction(0)) for v, a, s in each]

    def balanced(self, slack):
        """Return ``s max(slack - y t, 0)`` with the ``t`` that makes its product with the labels 0."""
        points = sorted({a * s for a, s in zip(slack, self.y, strict=True)})
        points = [points[0] - 1, *points, points[-1] + 1]

        def at(t):
            alpha = self.respond(slack, t)
            return sum(s * a for s, a in zip(self.y, alpha, strict=True)), alpha

        while at(points[0])[0] < 0:
            points.insert(0, points[0] - 2 * (points[-1] - points[0]))
        while at(points[-1])[0] > 0:
            points.append(points[-1] + 2 * (points[-1] - points[0]))
        for low, high in zip(points, points[1:], strict=False):
            above, below = at(low)[0], at(high)[0]
            if above >= 0 >= below:
                t = low if above == below else low + (high - low) * above / (above - below)
                total, alpha = at(t)
                assert total == 0  # linear in between
                return alpha
        raise AssertionError("no root")

    def evened(self, theta):
        """Return the dual point of a certificate's ``theta``, one class made lighter so that it is feasible."""
        weights = np.sqrt([float(v) for v in self.weights])
        alpha = fractions(theta * weights)
        shares = [sum(a for a, s in zip(alpha, self.y, strict=True) if s == sign) for sign in (1, -1)]
        if not min(shares):
            return [Fraction(0)] * self.n
        factor = {1: min(shares) / shares[0], -1: min(shares) / shares[1]}
        return [a * factor[s] for a, s in zip(alpha, self.y, strict=True)]

    def dual(self, alpha, lam):
        """Return the best dual value on the ray of a point with ``alpha >= 0`` and ``y.alpha = 0``."""
        total = sum(alpha)
        squares = sum(a * a / v for v, a in zip(self.weights, alpha, strict=True) if v)
        if squares == 0:
            return Fraction(0)
        assert min(alpha) >= 0 and sum(s * a for s, a in zip(self.y, alpha, strict=True)) == 0
        largest = max(abs(p) for p in self.products(alpha))
        scale = min(total / squares, lam / largest) if largest else total / squares
        return scale * total - scale * scale * squares / 2

    def objectives(self, w, bias: float, lam: float):
        """Return the primal objective, and the dual one at a feasible point made from the same weights."""
        w, bias, lam = fractions(w), Fraction(float(bias)), Fraction(lam)
        return self.primal(w, bias, lam), self.dual(self.balanced(self.slack(w, bias)), lam)

    def optimum(self, w, bias: float, lam: float):
        """Return the dual optimum, from a guess of the pattern of the primal; None where it is wrong."""
        w, bias, lam = fractions(w), Fraction(float(bias)), Fraction(lam)
        active = [j for j in range(self.m) if w[j]]
        sign = {j: 1 if w[j] > 0 else -1 for j in active}
        slack = self.slack(w, bias)
        for _ in range(6):
            inside = [i for i in range(self.n) if slack[i] > 0 and self.weights[i]]
            share = [self.weights[i] for i in inside]
            lines = [[self.columns[j][i] for i in inside] for j in active] + [[self.y[i] for i in inside]]
            matrix = [[sum(v * a * b for v, a, b in zip(share, p, q, strict=True)) for q in lines] for p in lines]
            sums = [sum(v * a for v, a in zip(share, line, strict=True)) for line in lines]
            right = [value - lam * sign[j] for j, value in zip(active, sums, strict=False)] + [sums[-1]]
            found = solve(matrix, right)
            if found is None:
                return None
            w = [found[active.index(j)] if j in sign else Fraction(0) for j in range(self.m)]
            slack = self.slack(w, found[-1])
            alpha = self.respond(slack)
            products = self.products(alpha)
            stationary = all(products[j] == lam * sign[j] and w[j] * sign[j] >= 0 for j in active)
            if stationary and sum(s * a for s, a in zip(self.y, alpha, strict=True)) == 0:
                return alpha if all(abs(p) <= lam for p in products) else None
        return None


def faults(step, certificate, primal, dual, tol: float, ceiling) -> list[str]:
    """Return what a step claims and rational arithmetic denies.

    ``primal``, ``dual``: exact objectives of the pair; of the L1 model ``dual`` is any lower bound that is near.
    ``ceiling``: the objective of the weights 0, which no gap may exceed.
    """
    numbers = step.primal, step.dual, step.gap, certificate.primal_error
    if not all(map(isfinite, numbers)) or not np.isfinite(certificate.w).all():
        return ["a number is not finite"]
    found = []
    if step.status == "certified" and primal - dual > Fraction(tol) * primal:
        found.append(f"certified at {tol:g}, its gap is {float((primal - dual) / primal):.1e}")
    if abs(Fraction(step.primal) - primal) > Fraction(certificate.primal_error):
        found.append("the primal objective is off by more than its bound")
    if Fraction(step.dual) > primal:
        found.append("the lower bound of the optimum exceeds an objective")
    if Fraction(step.gap) > ceiling * Fraction(1.000001):
        found.append("worse than zero")
    return found
