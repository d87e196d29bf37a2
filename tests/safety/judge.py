"""A judge in rational arithmetic of what certificates say of a data file."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction as F

from screenpath.verify.file import unpack

KERNEL_DIGITS = F(1, 2**50)  # as GAP_DIGITS, behind a kernel
GAP_DIGITS, PRIMAL_DIGITS = (
    {"l1svm": F(1, 2**40)},
    F(1, 2**30),
)  # to how much of the primal a claim is read, see verify/__init__
PAIRS = {1: 0, 2: -1, 3: 1}


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


def dot(a, b) -> F:
    return sum((x * y for x, y in zip(a, b, strict=True)), F(0))


def exact_kernel(kernel: dict, a, b) -> F:
    """Return the kernel of two rows; an exponential to 80 digits."""
    if kernel["kernel"] == "rbf":
        square = F(kernel["gamma"]) * sum((x - z) ** 2 for x, z in zip(a, b, strict=True))
        with localcontext() as context:
            context.prec = 90
            return F((-Decimal(square.numerator) / Decimal(square.denominator)).exp()) + F(kernel["constant"])
    if kernel["kernel"] == "poly":
        return (F(kernel["gamma"]) * dot(a, b) + F(kernel["coef0"])) ** kernel["degree"] + F(kernel["constant"])
    return dot(a, b) + F(kernel["constant"])


def exact_losses(header: dict, X, y) -> tuple:
    """Return rows g, kinks and both ends of all dual variables, and for a kernel the matrix Q."""
    if "kernel" in header:
        rows, kernel = exact_rows(header, X), header["kernel"]
        signs = [1 if label == float(header["labels"]["+1"]) else -1 for label in y]
        Q = [[s * t * exact_kernel(kernel, a, b) for t, b in zip(signs, rows, strict=True)]
             for s, a in zip(signs, rows, strict=True)]  # fmt: skip
        return rows, [F(1)] * len(y), [F(0)] * len(y), [F(1)] * len(y), Q
    return (*_linear_losses(header, X, y), None)


def _linear_losses(header: dict, X, y) -> tuple[list, list, list, list]:
    rows, n, model = exact_rows(header, X), len(y), header["model"]
    s = header["weights"].tolist() if "weights" in header else [1.0] * n
    zeros = [F(0)] * n
    if model == "svm":
        plus = float(header["labels"]["+1"])
        signs = [1 if label == plus else -1 for label in y]
        return [[k * x for x in row] for k, row in zip(signs, rows, strict=True)], [F(1)] * n, zeros, [*map(F, s)]
    if model == "svr":
        mirrored = [[-x for x in row] for row in rows]
        kinks = [F(sign * t) - F(header["epsilon"]) for sign in (1, -1) for t in y]
        return rows + mirrored, kinks, 2 * zeros, 2 * [*map(F, s)]
    tau = header["tau"] if model == "quantile" else None
    low = [F(-v if tau is None else (tau - 1.0) * v) for v in s]
    return rows, [*map(F, y)], low, [F(v if tau is None else tau * v) for v in s]


class ExactPair:
    """All that the judge knows about one step; ``valid`` is False where it is no feasible pair of the right shape.

    With a free intercept ``signs`` are those of the rows, and the last entry of each row of ``g``, and of ``w``, is for
    it. The dual point that is meant has the rest of its sum taken by one row, the best of all.
    """

    def __init__(self, problem, entry: dict, signs=None):
        g, c, lo, hi, Q = problem
        size = len(c)
        states = unpack(entry["states"], 0, size).tolist()
        between = iter(entry["between"].tolist())
        values = [entry["C"], entry["gap"], entry["primal"], *entry["between"].tolist()]
        values += entry["w"].tolist() if Q is None else [entry["b"]] if signs else []
        self.valid = (
            all(map(math.isfinite, values))
            and states.count(2) == entry["between"].size
            and 3 not in states
            and (("w" not in entry) if Q is not None else entry["w"].size == len(g[0]))
            and entry["C"] > 0.0
        )
        if not self.valid:
            return
        theta = [lo[i] if s == 0 else hi[i] if s == 1 else F(next(between)) for i, s in enumerate(states)]
        self.states, self.C, self.Q = states, F(entry["C"]), Q
        self.valid = all(a <= t <= b for a, t, b in zip(lo, theta, hi, strict=True))
        if Q is None:
            self.w = [F(x) for x in entry["w"].tolist()]
            self.v = [self.C * dot(theta, column) for column in zip(*g, strict=True)]
            self.products = [dot(row, self.w) for row in g]
            square, away = dot(self.w, self.w), [a - b for a, b in zip(self.w, self.v, strict=True)]
        else:
            self.products = [self.C * dot(row, theta) for row in Q]
            square, away = self.C * dot(theta, self.products), []
        t = [k - p for k, p in zip(c, self.products, strict=True)]
        losses = [max(a * x, b * x) for a, b, x in zip(lo, hi, t, strict=True)]
        self.square, self.slope = square, sum(losses) - dot(theta, t)
        self.gap = dot(away, away) / 2 + self.C * self.slope
        self.primal = square / 2 + self.C * sum(losses)
        if signs:
            self._with_intercept(problem, entry, signs, theta)

    def _with_intercept(self, problem, entry, signs, theta) -> None:
        g, c, lo, hi, Q = problem
        b = F(entry["b"]) if Q is not None else self.w[-1]
        if Q is None:  # so far a coefficient as all others
            self.square -= b * b
        t = [k - p - (s * b if Q is not None else 0) for k, p, s in zip(c, self.products, signs, strict=True)]
        losses = [max(u * x, v * x) for u, v, x in zip(lo, hi, t, strict=True)]
        rho, gaps = dot(signs, theta), []
        for i in range(len(theta)) if rho else [0]:
            own = [*theta]
            own[i] -= signs[i] * rho
            if not lo[i] <= own[i] <= hi[i]:
                continue
            slope, step = sum(losses) - dot(own, t), [a - b for a, b in zip(theta, own, strict=True)]
            if Q is None:
                v = [self.C * dot(own, column) for column in zip(*g, strict=True)][:-1]
                apart = dot(*2 * [[x - y for x, y in zip(self.w[:-1], v, strict=True)]])
            else:
                apart = self.C**2 * dot(step, [dot(row, step) for row in Q])
            gaps.append(apart / 2 + self.C * slope)
        self.valid = self.valid and bool(gaps)
        self.gap = min(gaps, default=None)
        self.primal = self.square / 2 + self.C * sum(losses)

    def fixes(self, C: F, i: int, row, kink: F, high: bool) -> bool:
        """Tell whether the pair's ball at ``C`` proves row ``i`` to be at one end."""
        x = C / self.C
        if self.Q is not None:
            margin, size = (1 + x) / 2 * self.products[i] - kink, self.Q[i][i]
            square = (1 - x) ** 2 * self.square / 4 + C * self.slope
        else:
            margin = dot(row, [(a + x * b) / 2 for a, b in zip(self.w, self.v, strict=True)]) - kink
            away = [a - x * b for a, b in zip(self.w, self.v, strict=True)]
            square, size = dot(away, away) / 4 + C * self.slope, dot(row, row)
        return (margin < 0) == high and margin**2 > square * size


def untrue_numbers(header: dict, entry: dict, gap: F, primal: F) -> list:
    """Return what is not true of the numbers of a step whose pair is good for a gap and a primal value."""
    k, wrong = entry["step"], []
    if gap > F(header["tol"]) * primal:
        wrong.append((k, "tol"))
    digits = (
        KERNEL_DIGITS
        if header.get("kernel") or header.get("intercept") == "free"
        else GAP_DIGITS.get(header["model"], 0)
    )
    if gap > F(entry["gap"]) + digits * primal:
        wrong.append((k, "gap"))
    if abs(F(entry["primal"]) - primal) > F(entry["primal_error"]) + PRIMAL_DIGITS * primal:
        wrong.append((k, "primal"))
    return wrong


def sparse_values(header: dict, entry: dict, rows, signs, w) -> tuple:
    """Return the gap and the primal value of a pair of the sparse SVM; None for the gap of a bad dual point.

    With a free intercept, the last weight, one row takes what the signed sum of the dual variables is off by: the one
    that loses least.
    """
    n, alpha, beta, width = len(rows), F(entry["alpha"]), F(entry["beta"]), F(header["smoothing"])
    v = [F(x) for x in header["weights"].tolist()] if "weights" in header else [F(1)] * n
    free, total = header.get("intercept") == "free", sum(v)
    states, between = unpack(entry["states"], 0, n).tolist(), iter(entry["between"].tolist())
    if 3 in states or states.count(2) != entry["between"].size:
        return None, None
    theta = [F(next(between)) if s == 2 else F(s) for s in states]
    t = [1 - s * dot(row, w) for s, row in zip(signs, rows, strict=True)]
    losses = [F(0) if x < 0 else x * x / (2 * width) if x <= width else x - width / 2 for x in t]
    counted = w[:-1] if free else w
    primal = dot(v, losses) / total + alpha * dot(counted, counted) / 2 + beta * sum(map(abs, counted))
    if not all(0 <= a <= 1 for a in theta):
        return None, primal
    if free:
        if header["bias"] != 1.0:
            return None, primal
        rest = sum(a * s * x for a, s, x in zip(v, signs, theta, strict=True))
        able = [i for i in range(n) if v[i] and 0 <= theta[i] - signs[i] * rest / v[i] <= 1]
        if not able:
            return None, primal
        row = min(able, key=lambda i: abs(t[i] - width * theta[i]))
        theta[row] -= signs[row] * rest / v[row]
    pulls = [a * s * x for a, s, x in zip(v, signs, theta, strict=True)]
    u = [dot(pulls, column) / total for column in zip(*rows, strict=True)][: len(counted)]
    shrunk = [max(abs(x) - beta, F(0)) for x in u]
    linear = sum(a * (x - width / 2 * x * x) for a, x in zip(v, theta, strict=True)) / total
    return primal - linear + dot(shrunk, shrunk) / (2 * alpha), primal


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


def _untrue_gaps(header: dict, steps: list, X, y) -> list:
    """Return what is not true of a certificate without claims about rows."""
    rows, wrong = exact_rows({**header, "bias": 0.0} if header["model"] == "l1svm" else header, X), []
    signs = [1 if label == float(header["labels"]["+1"]) else -1 for label in y]
    for k, entry in enumerate(steps):
        w, index = [F(0)] * len(rows[0]), entry["index"].tolist()
        if len(set(index)) != len(index) or len(index) != entry["values"].size or min(index, default=0) < 0:
            wrong.append((k, "pair"))
            continue
        for j, value in zip(index, entry["values"].tolist(), strict=True):
            w[j] = F(value)
        found = l1_values(entry, rows, signs, w) if "b" in entry else sparse_values(header, entry, rows, signs, w)
        wrong += [(k, "pair")] if found[0] is None else untrue_numbers(header, entry, *found)
    return wrong


def untrue(header: dict, steps: list, X, y) -> list:
    """Return what is not true of a certificate, in exact arithmetic (square roots of ``l2`` to 200 bits)."""
    if header["model"] in ("l1svm", "sparse-svm"):
        return _untrue_gaps(header, steps, X, y)
    problem = exact_losses(header, X, y)
    signs = None
    if header.get("intercept") == "free":
        one = (
            [1 if label == float(header["labels"]["+1"]) else -1 for label in y]
            if header["model"] == "svm" else [1] * len(y)
        )
        signs = one + [-s for s in one] if header["model"] == "svr" else one
        if header["bias"] != (0.0 if "kernel" in header else 1.0):
            return [(0, "bias")]
    pairs = [ExactPair(problem, entry, signs) if entry["status"] == "certified" else None for entry in steps]
    wrong = []
    for k, (entry, pair) in enumerate(zip(steps, pairs, strict=True)):
        if pair is None:
            continue
        if not pair.valid:
            wrong.append((k, "pair"))
            continue
        wrong += untrue_numbers(header, entry, pair.gap, pair.primal)
        size = len(pair.states)
        claims = unpack(entry["claims"], 0, size).tolist()
        after = unpack(entry["after"], 0, size).tolist() if entry.get("after") is not None else [0] * size
        for i, code in enumerate(one or two for one, two in zip(claims, after, strict=True)):
            if not code:
                continue
            other = pairs[k + PAIRS[code]] if 0 <= k + PAIRS[code] < len(pairs) else None
            known = other is not None and other.valid and pair.states[i] <= 1 and not signs  # nothing would prove it
            if not (known and other.fixes(pair.C, i, problem[0][i], problem[1][i], pair.states[i] == 1)):
                wrong.append((k, "claim", i))
    return wrong
