r"""Products of rows with primal points, each with a bound of its error, and the two passes that form them.

A kernel's w is that of the dual point, known through the kernel's values: ``g_i.w = C y_i sum_j y_j theta_j K(x_i,
x_j)`` and ``||w||^2 = sum_i C theta_i g_i.w``; w = u, so that the gap is that of the rows alone. The values are formed
between all rows and those that have a share in any step, each with a bound of its error; the distances of the RBF
kernel as sums of squares of differences, which do not cancel. All of it is in numpy's longest numbers: of 64 bits on
x86, where every bound is 2,000 times narrower than that of a double; where they are doubles, less can be proven.
Products that this leaves too unsure are formed again in decimal numbers of 60 digits, of steps whose claims are not
proven without that: one such value takes as long as a thousand others. Pass 1 reads the rows into memory, pass 2 forms
the products block by block.
"""

from __future__ import annotations

import decimal
import math
from functools import cached_property

import numpy as np

from screenpath.errors import DataError
from screenpath.verify.certificate import PAIRS, Pair
from screenpath.verify.data import Block
from screenpath.verify.exact import TINY, UNIT, UP, fsum, gamma, squared, two_product, two_sum
from screenpath.verify.model import Model, Part

LONG = np.longdouble
LAST = float(np.finfo(LONG).eps)  # twice the largest relative error of one operation
EXPONENTIALS = "rbf", "laplacian"
DIGITS = 60  # of decimal numbers
UNSURE = 2.0**-52  # part of the primal value that the rounding of a product may be worth, over the number of rows
CELLS = 1 << 16  # values that are formed at once, of all steps
DEGREE = 1 << 16  # of a polynomial, at most: one product of all pairs of rows each
EXP = 16.0 * LAST  # relative error of the exponential: a few units in the last place on every machine


def products_of(block: Block, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``x_i.w`` of the rows, and bounds of the errors."""
    parts, n = block.values * w[block.columns], block.labels.size
    longest = int(np.diff(block.indptr).max(initial=0))
    tiny = TINY * (longest + float(np.abs(w).sum())) if np.any(w) else 0.0
    tiny += 0.0 if block.unknown is None else float(block.unknown @ np.abs(w))
    return np.bincount(block.rows, parts, n), gamma(longest + 4) * np.bincount(block.rows, np.abs(parts), n) + tiny


def norms_of(block: Block, width: float = math.inf) -> np.ndarray:
    """Return upper bounds of the norms of the rows in the first ``width`` columns, those that are penalised."""
    values, lengths = np.where(block.columns < width, block.values, 0.0), np.diff(block.indptr)
    if block.unknown is not None:
        values = np.abs(values) + block.unknown[block.columns]
    size = float(np.max(np.abs(values), initial=TINY))
    squares = np.bincount(block.rows, (values / size) ** 2, block.labels.size)
    return UP * size * np.sqrt(squares + TINY * lengths) * (1.0 + gamma(lengths.max(initial=0) + 8))


class Centred:
    """Rows beside centres of their columns: as b is free, ``x - m`` with the bias ``b + m.w`` is the same problem.

    A column has a centre where all rows have a value in it, all of them within a factor of two of each other: such
    differences are doubles (Sterbenz). Centres are found while the first pass is read.
    """

    def __init__(self, source):
        self.source, self.n, self.d = source, source.n, source.d

    def passed(self, indices: bool):
        """Yield all blocks; those of the second pass beside the centres."""
        if indices:
            yield from self._first()
            return
        m = self.centres
        for block in self.source.passed(indices=False):
            block.values = block.values - m[block.columns]
            if block.tails is not None:
                block.values, block.tails = two_sum(block.values, block.tails)
                block.unknown = 64.0 * UNIT * UNIT * np.abs(m)  # of an entry, in addition to what is relative to it
            yield block

    def _first(self):
        counts, sums, low, high = *np.zeros((2, self.d + 1)), *np.full((2, self.d + 1), math.inf)
        high = -high
        for block in self.source.passed(indices=True):
            counts += np.bincount(block.columns, minlength=counts.size)
            sums += np.bincount(block.columns, block.values, counts.size)
            np.minimum.at(low, block.columns, block.values)
            np.maximum.at(high, block.columns, block.values)
            yield block
        full = (counts == self.n) & (((low > 0.0) & (high / 2.0 <= low)) | ((high < 0.0) & (low / 2.0 >= high)))
        full[-1] = False
        self.centres = np.where(full, np.clip(sums / self.n, low, high), 0.0)

    def moved(self, w: np.ndarray, extra: float) -> tuple[np.ndarray, float]:
        """Return the primal point beside the centres, its bias larger by ``extra``; how far that bias may be off."""
        products, rests = two_product(self.centres[:-1], w[:-1])
        bias = fsum([float(w[-1]), extra, *products, *rests])
        lost = UNIT * abs(bias) + TINY * np.count_nonzero(products)
        return np.append(w[:-1], bias), UP * (abs(extra) + lost)


class KernelPair(Pair):
    """What the passes find out about one step; its solution are the coefficients ``y_i C theta_i`` of the samples.

    ``b`` is the intercept, ``shares`` are ``y_i theta_i``, shape (n,), or of two dual variables the difference,
    ``square`` and ``square_error`` the shares of the blocks in ``||w||^2`` and what they may be off by; ``again`` has
    rows of the block, what their products in the longest numbers lack, and what is left of the errors with that.
    """

    again: list = []

    def __init__(self, model: Model, entry: dict):
        super().__init__(model, entry)
        self.b = float(self.w.sum())
        self.shares = np.zeros(model.n)
        self.square: list[float] = []
        self.square_error: list[float] = []

    def add(self, block: Block, part: Part, theta: np.ndarray) -> None:
        where = slice(block.first, block.first + theta.size)
        self.shares[where], rest = two_sum(self.shares[where], part.signs * theta)
        bad = np.flatnonzero(rest)
        if bad.size:  # w is that of the dual point, whose digits a difference of two may lose
            self.faults.append(f"row {block.first + bad[0] + 1}: its two dual variables have no exact difference")

    def kinks(self, part: Part) -> tuple[np.ndarray, np.ndarray]:
        """Return the kinks less the intercept, beside which sums over the samples may be small, and less ``again``."""
        c, rest = two_sum(part.c, -part.signs * self.b)
        tail = part.tail + rest
        for i, more, _ in self.again:
            tail[i] = fsum([part.tail[i], rest[i], -part.signs[i] * more])
        return c, tail

    def look(self, block: Block, part: Part, forms: tuple, norms) -> None:
        products, errors = forms
        if self.again:
            rows, _, offs = zip(*self.again, strict=True)
            errors = errors.copy()
            errors[0, list(rows)] = offs
        super().look(block, part, (products, errors), norms)

    def settle(self) -> None:
        """Form the coefficients after the first pass."""
        self.solution = np.append(self.num * self.shares, self.w)

    @property
    def nnz(self) -> int:
        return int(np.count_nonzero(self.shares))

    @cached_property
    def residue(self) -> tuple[np.ndarray, np.ndarray]:
        value = fsum(self.shares)
        return np.array([value]), np.array([UP * UNIT * abs(value)])

    def norm_squared(self) -> tuple[float, float]:
        """Return ``||w||^2``, and a bound of its error; without support vectors w is 0."""
        return (fsum(self.square), UP * fsum(self.square_error)) if self.nnz else (0.0, 0.0)

    @property
    def pull(self) -> tuple[float, float]:
        return 0.0, 0.5 * self.num * self.flow_size

    @property
    def columns(self) -> tuple:
        """Return the features' part of the gap, and how it grows: w is that of the dual point but for its weights."""
        away = self.away(1.0)
        return 0.5 * squared(away), away, None, None

    def away(self, x: float) -> float:
        part = abs(1.0 - x) + (4.0 * UNIT * x if x != 1.0 else 0.0) + x * UP * self.model.inexact
        return UP * part * math.sqrt(max(UP * sum(self.norm_squared()), 0.0)) if part else 0.0

    @property
    def penalty(self) -> tuple[float, float]:
        square, error = self.norm_squared()
        return 0.5 * square, UP * 0.5 * error


class Kernels:
    def __init__(self, model: Model, source, pairs: dict, exact=None):
        self.model, self.d, self.pairs = model, source.d, pairs
        self.exact = pairs.keys() if exact is None else exact  # steps whose products are formed again
        self.rows: list[np.ndarray] = []

    def first(self, block: Block) -> None:
        self.rows.append(_dense(block, self.d))

    def settle(self) -> None:
        """Keep the rows that have a share in any step."""
        X, pairs = np.concatenate([*self.rows, np.zeros((0, self.d), dtype=LONG)]), self.pairs.values()
        shares = np.array([pair.shares for pair in pairs]).reshape(len(pairs), self.model.n)
        self.used = np.flatnonzero(np.any(shares, axis=0))
        self.shares, self.support = shares[:, self.used].T.astype(LONG), X[self.used]
        self.rows.clear()
        for pair in pairs:
            pair.settle()

    def of(self, block: Block, parts: list[Part]) -> tuple[dict, np.ndarray]:
        """Return, by step, the linear forms of rows and bounds of their errors; and bounds of the rows' norms."""
        kernel, shares, found = self.model.kernel, self.shares, {}
        Z = _dense(block, self.d)
        products, errors = np.zeros((2, len(Z), len(self.pairs)), dtype=LONG)
        count, growth = max(CELLS // max(self.used.size, 1), 1), gamma(self.used.size + 2, LAST)
        for at in range(0, len(Z), count):
            K, error = values(kernel, Z[at : at + count], self.support)
            products[at : at + count] = K @ shares
            # Of a sum its roundings, and what its values are off by; the sum of these is rounded as often.
            errors[at : at + count] = (growth * np.abs(K) + error) @ np.abs(shares)
        errors = UP * (1.0 + growth) * errors + TINY * shares.any(axis=0)  # a sum of no products is 0
        errors[np.isnan(errors)] = math.inf  # shares of 0 of values that may be any
        for (k, pair), p, e in zip(self.pairs.items(), products.T, errors.T, strict=True):
            C = pair.num
            rows = Z, self.support, self.used
            pair.again = []
            if block.tails is None and k in self.exact:  # else the rows themselves are no better
                pair.again = _exactly(kernel, pair, parts, rows, p, e)
            p, e = C * p, UP * (C * e + LAST * np.abs(C * p)) + TINY * (pair.nnz > 0)
            weights = pair.solution[block.first : block.first + p.size]
            pair.square.append(fsum(weights * p))
            pair.square_error.append(UP * fsum(np.abs(weights) * (e + 4.0 * UNIT * np.abs(p)) + TINY))
            ground = np.zeros(p.size, dtype=p.dtype)
            found[k] = np.stack([p, ground]), np.stack([e, ground])
        return found, _norms(kernel, Z)


def _exactly(kernel: dict, pair: KernelPair, parts: list[Part], rows: tuple, p: np.ndarray, e: np.ndarray) -> list:
    """Form those products again, in place, whose errors a claim of the pair would not survive; return ``pair.again``.

    ``p, e``: products ``sum_j y_j theta_j K(x_i, x_j)`` and bounds of their errors; ``rows``: those of the block, those
    with a share, and which these are.
    """
    Z, support, used = rows
    C, (lo, hi, _, _), first = pair.num, parts[0].cells, parts[0].first
    weights, steep = pair.shares[first : first + p.size], np.maximum(-lo, hi)
    counts, own = weights != 0.0, np.zeros(p.size, dtype=bool)  # all that count, and those with a share of the gap
    for part in parts:
        t, theta = part.c - part.signs * (C * p + pair.b), np.clip(part.signs * weights, lo, hi)
        counts |= (hi * (t + C * e) > 0.0) | (lo * (t - C * e) > 0.0)
        own |= ((hi - theta) * (t + C * e) > 0.0) | ((theta - lo) * (t - C * e) < 0.0)
    limit = UNSURE * abs(pair.entry["primal"]) + np.where(own, 0.0, 2.0**-34 * abs(pair.entry["primal"]))
    chosen = np.flatnonzero(counts & (C * steep * C * e * pair.shares.size > limit))
    some = np.flatnonzero(pair.shares[used])
    again: list = []
    if not chosen.size:
        return again
    with decimal.localcontext() as context:
        context.prec, context.Emax, context.Emin = DIGITS, decimal.MAX_EMAX, decimal.MIN_EMIN
        others = [[decimal.Decimal(v) for v in row] for row in support[some].astype(float).tolist()]
        shares = [decimal.Decimal(v) for v in pair.shares[used[some]].tolist()]
        for i in chosen:
            row = [decimal.Decimal(v) for v in Z[i].astype(float).tolist()]
            found = [_decimal(kernel, row, other) for other in others]
            total = sum((s * value for s, (value, _) in zip(shares, found, strict=True)), decimal.Decimal(0))
            most = sum((abs(s) * size for s, (_, size) in zip(shares, found, strict=True)), decimal.Decimal(0))
            p[i] = LONG(float(total)) + LONG(float(total - decimal.Decimal(float(total))))
            lost = float(most) * 10.0 ** (4 - DIGITS) * (len(row) + len(shares) + 64.0)
            e[i] = UP * (abs(float(total)) * LAST + lost) * (1.0 + kernel.get("degree", 1)) + TINY
            near = C * p[i]
            known = decimal.Decimal(float(near)) + decimal.Decimal(float(near - LONG(float(near))))
            rest = float(decimal.Decimal(C) * total - known)
            again.append((i, rest, UP * (C * lost * (1.0 + kernel.get("degree", 1)) + UNIT * abs(rest)) + TINY))
    return again


def _decimal(kernel: dict, x: list, z: list) -> tuple:
    """Return a kernel value in decimal numbers, and the size that its rounding is relative to."""
    name, constant = kernel["kernel"], decimal.Decimal(kernel["constant"])
    if name in EXPONENTIALS:
        parts = (a - b for a, b in zip(x, z, strict=True))
        square = sum((part * part if name == "rbf" else abs(part) for part in parts), decimal.Decimal(0))
        value = (-decimal.Decimal(kernel["gamma"]) * square).exp() if square else decimal.Decimal(1)
        return value + constant, 1 + constant
    terms = [a * b for a, b in zip(x, z, strict=True)]
    value, size = sum(terms, decimal.Decimal(0)), sum(map(abs, terms), decimal.Decimal(0))
    if name == "poly":
        scale, shift = decimal.Decimal(kernel["gamma"]), decimal.Decimal(kernel["coef0"])
        value, size = (scale * value + shift) ** kernel["degree"], (scale * size + shift) ** kernel["degree"]
    return value + constant, size + constant


def _norms(kernel: dict, Z: np.ndarray) -> np.ndarray:
    """Return upper bounds of ``sqrt(K(x, x))``: of an exponential of a distance of 0, whatever those of others are."""
    if kernel["kernel"] in EXPONENTIALS:
        return np.full(Z.shape[0], UP * math.sqrt(UP * (1.0 + kernel["constant"])))
    own = [values(kernel, row, row) for row in Z[:, None, :]]
    return np.array([UP * math.sqrt(max(value[0, 0] + bound[0, 0], 0.0)) for value, bound in own])


def _dense(block: Block, d: int) -> np.ndarray:
    """Return the rows; scaled ones are good to ``LAST`` of each value."""
    X = np.zeros((block.labels.size, d), dtype=LONG)
    long = block.values.astype(LONG)
    X[block.rows, block.columns] = long if block.tails is None else long + block.tails
    return X


def values(kernel: dict, X: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the kernel between rows, shapes (n, d) and (m, d), and bounds of the errors.

    ``kernel`` has its name (``kernel``), its parameters, and ``constant``, which is added. Every value of the rows is
    good to ``LAST`` of it.
    """
    name, constant, d = kernel["kernel"], kernel["constant"], X.shape[1]
    sizes = np.sqrt(np.einsum("ij,ij->i", X, X))[:, None], np.sqrt(np.einsum("ij,ij->i", Z, Z))
    if name == "laplacian":
        sizes = np.abs(X).sum(axis=1)[:, None], np.abs(Z).sum(axis=1)
        distance = np.zeros((X.shape[0], Z.shape[0]), dtype=LONG)
        for j in range(d):
            distance += np.abs(X[:, j, None] - Z[:, j])
        off = gamma(d + 4, LAST) * distance + (1.0 + gamma(d + 4, LAST)) * (sizes[0] + sizes[1]) * LAST + d * TINY
        K, error = exponential(kernel["gamma"], distance, off)
    elif name == "rbf":
        square = np.zeros((X.shape[0], Z.shape[0]), dtype=LONG)
        for j in range(d):
            square += (X[:, j, None] - Z[:, j]) ** 2
        both = UP * (1.0 + gamma(d + 4, LAST)) * (sizes[0] + sizes[1]) * LAST
        off = gamma(d + 4, LAST) * square + d * TINY
        off += 2.0 * both * np.sqrt(square + off) + 2.0 * both * both
        K, error = exponential(kernel["gamma"], square, off)
    elif name in ("linear", "poly"):
        K = X @ Z.T
        error = gamma(d + 12, LAST) * sizes[0] * sizes[1] + d * TINY
        if name == "poly":
            rough = kernel["gamma"] * K
            base = rough + kernel["coef0"]
            error = UP * (kernel["gamma"] * error + 2.0 * LAST * (np.abs(rough) + np.abs(base))) + TINY
            if not (type(kernel["degree"]) is int and 1 <= kernel["degree"] <= DEGREE):
                raise DataError(f"certificates of a polynomial's degree beyond 1 to {DEGREE:,} cannot be checked")
            degree, most, K = kernel["degree"], np.abs(base) + error, np.ones_like(base)
            top = np.ones_like(base)
            for _ in range(degree):
                K, last, top = K * base, top, top * most
            error = (
                UP * (1.0 + gamma(4 * degree, LAST)) * (degree * last * error + gamma(2 * degree, LAST) * top) + TINY
            )
    else:
        raise DataError(f"certificates of the kernel '{name}' cannot be checked")
    if constant:
        K = K + constant
        error = UP * (error + 4.0 * LAST * (np.abs(K) + constant))
    return K, error


def exponential(rate: float, distance: np.ndarray, off: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``exp(-rate distance)`` and bounds of the errors; ``off`` are those of the distances."""
    off = UP * rate * (off + 4.0 * LAST * distance)
    K = np.exp(-rate * distance)
    return K, np.where(off < 0.5, UP * K * (2.0 * off + EXP) + TINY, math.inf)


class Linear:
    def __init__(self, model: Model, source, pairs: dict):
        self.model, self.source, self.pairs = model, source, pairs

    def first(self, block: Block) -> None:
        """Look at a block of the first pass: no more than its sums are needed."""

    def settle(self) -> None:
        """Move the primal points beside the centres that the first pass has found."""
        if self.model.own:
            for pair in self.pairs.values():
                w, pair.lost = self.source.moved(pair.w[0], pair.entry.get("b_off", 0.0))
                pair.w = w[None]

    def of(self, block: Block, parts: list[Part]) -> tuple[dict, np.ndarray | None]:
        """Return, by step, the products of each node and bounds of their errors; and bounds of the rows' norms."""
        model, found = self.model, {}
        ground = [] if model.nodes > 1 else [np.zeros((2, block.labels.size))]
        for k, pair in self.pairs.items():
            found[k] = tuple(np.stack(p) for p in zip(*(products_of(block, w) for w in pair.w), *ground, strict=True))
        return found, norms_of(block, model.penalised) if model.free or model.box else None


def check(header: dict, steps: list, source, proven=None) -> list[Pair]:
    """Return what is known about every step that claims anything; two passes over ``source``, or four.

    ``proven(pair)`` tells whether what is known of a step proves all that it claims; where it does not, or nobody is
    asked, products behind a kernel are formed again.
    """
    if proven is None or not header.get("kernel"):
        return _passes(header, steps, source)
    pairs = _passes(header, steps, source, exact=())
    # What a step claims of rows is proven by the ball of the one before or after, too.
    left = [(pair, k) for pair in pairs if not proven(pair) for k in PAIRS.values() if k == 0 or pair.claims]
    return _passes(header, steps, source, {pair.entry["step"] + k for pair, k in left}) if left else pairs


def _passes(header: dict, steps: list, source, exact=None) -> list[Pair]:
    """Return what :func:`check` does; ``exact`` are the steps whose products are formed again, None for all."""
    model = Model(header, source)
    source = Centred(source) if model.own else source
    pairs = {entry["step"]: (KernelPair if model.kernel else Pair)(model, entry) for entry in steps}
    forms = Kernels(model, source, pairs, exact) if model.kernel else Linear(model, source, pairs)
    for block in source.passed(indices=True):
        for part in [] if model.own else model.parts(block):
            for pair in pairs.values():
                pair.add(block, part, pair.theta(part))
        forms.first(block)
    forms.settle()
    for block in source.passed(indices=False):
        parts = model.parts(block)
        products, norms = forms.of(block, parts)
        for part in parts:
            for k, pair in pairs.items():
                pair.look(block, part, products[k], norms)
                if model.box:
                    pair.keep(pairs, k, part, products, norms)
    for k, pair in pairs.items():
        for code, (allowed, row) in pair.allowed.items():
            if not pairs[k + PAIRS[code]].radius(pair.entry["C"]) < allowed:
                pair.faults.append(f"row {row + 1}: it is not proven to be at its end in the optimum")
    return list(pairs.values())
