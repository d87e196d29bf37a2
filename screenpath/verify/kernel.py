r"""The check of a kernel model's certificate: w is that of the dual point, known through the kernel's values.

``g_i.w = C y_i sum_j y_j theta_j K(x_i, x_j)`` and ``||w||^2 = sum_i C theta_i g_i.w``; with ``w = v`` the gap is
its sum over the rows alone (:mod:`screenpath.verify.box`). The kernel's values are computed here, between all rows and
those that have a share in any step, each with a bound of its error; the distances of the RBF kernel as sums of squares
of differences, which do not cancel. All of it is in numpy's longest numbers: of 64 bits on x86, where every bound is
2,000 times narrower than that of a double; where they are doubles, less can be proven. The few products that this
leaves too unsure are formed again in decimal numbers of 60 digits. Pass 1 reads the rows into memory, pass 2 forms the
products block by block.
"""

from __future__ import annotations

import decimal
import math

import numpy as np

from screenpath.errors import DataError
from screenpath.verify.box import Pair, claims_of, losses, pairs_of, refute, share_of, slope_error
from screenpath.verify.data import Block
from screenpath.verify.exact import TINY, UNIT, UP, fsum

LONG = np.longdouble
LAST = float(np.finfo(LONG).eps)  # twice the largest relative error of one operation
DIGITS = 60  # of decimal numbers
UNSURE = 2.0**-44  # part of the primal value that the rounding of a product may be worth, over the number of rows
DEGREE = 1 << 16  # of a polynomial, at most: one product of all pairs of rows each
EXP = 16.0 * LAST  # relative error of the exponential: a few units in the last place on every machine


class KernelPair(Pair):
    """What the passes find out about one step; its solution are the coefficients ``y_i C theta_i`` of the samples.

    Attributes
    ----------
    weights : ndarray of shape (n,)
        ``y_i theta_i``.
    square, square_error : list of float
        Shares of the blocks in ``||w||^2``, and what they may be off by.
    """

    digits = 2.0**-50  # a run's products may have more bits than the longest numbers that all others are formed in

    def __init__(self, entry: dict, size: int, width: int):
        super().__init__(entry, size, width)
        self.weights = np.zeros(size)
        self.square: list[float] = []
        self.square_error: list[float] = []

    def settle(self) -> None:
        """Form the coefficients behind the first pass."""
        self.solution = self.entry["C"] * self.weights

    def forms(self, products, error) -> tuple:
        """Return the linear forms of rows from their products with ``w``, and bounds of their errors."""
        return products, error

    def norm_squared(self) -> tuple[float, float]:
        """Return ``||w||^2``, and a bound of its error."""
        return fsum(self.square), UP * fsum(self.square_error)

    def radius(self, C: float) -> float:
        """Return an upper bound of the distance of the optimum at ``C`` from ``(1 + x)/2 w``."""
        x = C / self.entry["C"]
        away = abs(1.0 - x) + 4.0 * UNIT * x
        return UP * math.sqrt(UP * (0.25 * away * away * max(sum(self.norm_squared()), 0.0) + x * self.term) + TINY)

    @property
    def gap(self) -> float:
        """Return an upper bound of the gap."""
        return self.gap_with(self.shortened, 0.0)

    @property
    def shortened(self) -> float:
        """Return how far ``w`` is from that of the dual point in the exact boxes, at most."""
        return UP * self.inexact * math.sqrt(max(UP * sum(self.norm_squared()), 0.0)) if self.inexact else 0.0

    @property
    def primal(self) -> tuple[float, float]:
        """Return the primal value, and a bound of its error."""
        C, (square, error) = self.entry["C"], self.norm_squared()
        value = 0.5 * square + C * fsum(self.losses)
        return value, UP * (0.5 * error + C * fsum(self.spread) + (8.0 * UNIT + self.inexact) * (abs(square) + value))


def gamma(k: float) -> float:
    """Return a bound of the relative error of ``k`` operations on the longest numbers in a row."""
    return UP * k * LAST / (1.0 - k * LAST)


def check(header: dict, steps: list, source, kind: type[KernelPair] = KernelPair) -> list[KernelPair]:
    """Return what is known about every step that claims anything; both passes over ``source``."""
    pairs, rows = pairs_of(kind, header, steps, source, 0), []
    for block in source.passed(indices=True):
        (box,) = losses(header, block)
        here = slice(block.first, block.first + box.c.size)
        for pair in pairs.values():
            pair.weights[here] = box.signs * pair.theta(box)
        rows.append(_dense(block, source.d))
    X = np.concatenate(rows) if rows else np.zeros((0, source.d), dtype=LONG)
    del rows
    used = np.flatnonzero(np.any([pair.weights for pair in pairs.values()], axis=0)) if pairs else np.zeros(0, int)
    shares = np.array([pair.weights[used] for pair in pairs.values()], dtype=LONG).reshape(len(pairs), used.size).T
    support = X[used]
    for pair in pairs.values():
        pair.inexact = slope_error(header)
        pair.settle()
    for block in source.passed(indices=False):
        (box,) = losses(header, block)
        Z = _dense(block, source.d)
        K, error = values(header["kernel"], Z, support)
        products = K @ shares
        errors = UP * (gamma(used.size + 2) * (np.abs(K) @ np.abs(shares)) + error @ np.abs(shares)) + TINY
        norms = _norms(header["kernel"], Z)
        found = {}
        for k, p, e, pair in zip(pairs, products.T, errors.T, pairs.values(), strict=True):
            C = pair.entry["C"]
            if block.tails is None:  # else the rows themselves are no better
                _exactly(header["kernel"], pair, box, block.first, (Z, support, used), p, e)
            found[k] = C * p, UP * (C * e + LAST * np.abs(C * p)) + TINY
            pair.look(box, *share_of(pair, block, box, pair.forms(*found[k]), exactly=False), norms)
            weights = pair.solution[block.first : block.first + box.c.size]
            pair.square.append(fsum(weights * found[k][0]))
            pair.square_error.append(
                UP * fsum(np.abs(weights) * (found[k][1] + 4.0 * UNIT * np.abs(found[k][0])) + TINY)
            )
        for k in pairs:
            claims_of(pairs, k, box, found, norms)
    refute(pairs)
    return list(pairs.values())


def _exactly(kernel: dict, pair: KernelPair, box, first: int, rows: tuple, p: np.ndarray, e: np.ndarray) -> None:
    """Form those products again, in place, whose errors a claim of the pair would not survive.

    Parameters
    ----------
    kernel, pair, box, first
        Of the block whose first row that is.
    rows : tuple of ndarray
        The block's rows, those with a share, and which rows these are.
    p, e : ndarray
        Products ``sum_j y_j theta_j K(x_i, x_j)`` and bounds of their errors.
    """
    Z, support, used = rows
    C, size = pair.entry["C"], p.size
    weights = pair.weights[first : first + size]
    t, steep = box.c - box.signs * pair.forms(C * p, e)[0], np.maximum(-box.lo, box.hi)
    counts = (weights != 0.0) | (box.hi * (t + C * e) > 0.0) | (box.lo * (t - C * e) > 0.0)
    own = np.abs(weights) < steep  # not at the far end: a share of the gap
    limit = UNSURE * abs(pair.entry["primal"]) + np.where(own, 0.0, 2.0**-34 * abs(pair.entry["primal"]))
    chosen = np.flatnonzero(counts & (C * steep * C * e * pair.weights.size > limit))
    some = np.flatnonzero(pair.weights[used])
    if not chosen.size:
        return
    with decimal.localcontext() as context:
        context.prec, context.Emax, context.Emin = DIGITS, decimal.MAX_EMAX, decimal.MIN_EMIN
        others = [[decimal.Decimal(v) for v in row] for row in support[some].astype(float).tolist()]
        shares = [decimal.Decimal(v) for v in pair.weights[used[some]].tolist()]
        for i in chosen:
            row = [decimal.Decimal(v) for v in Z[i].astype(float).tolist()]
            found = [_decimal(kernel, row, other) for other in others]
            total = sum((s * value for s, (value, _) in zip(shares, found, strict=True)), decimal.Decimal(0))
            most = sum((abs(s) * size for s, (_, size) in zip(shares, found, strict=True)), decimal.Decimal(0))
            p[i] = LONG(float(total)) + LONG(float(total - decimal.Decimal(float(total))))
            lost = abs(float(total)) * LAST + float(most) * 10.0 ** (4 - DIGITS) * (len(row) + len(shares) + 64.0)
            e[i] = UP * lost * (1.0 + kernel.get("degree", 1)) + TINY


def _decimal(kernel: dict, x: list, z: list) -> tuple:
    """Return a kernel value in decimal numbers, and the size that its rounding is relative to."""
    name, constant = kernel["kernel"], decimal.Decimal(kernel["constant"])
    if name == "rbf":
        square = sum(((a - b) ** 2 for a, b in zip(x, z, strict=True)), decimal.Decimal(0))
        value = (-decimal.Decimal(kernel["gamma"]) * square).exp() if square else decimal.Decimal(1)
        return value + constant, 1 + constant
    terms = [a * b for a, b in zip(x, z, strict=True)]
    value, size = sum(terms, decimal.Decimal(0)), sum(map(abs, terms), decimal.Decimal(0))
    if name == "poly":
        scale, shift = decimal.Decimal(kernel["gamma"]), decimal.Decimal(kernel["coef0"])
        value, size = (scale * value + shift) ** kernel["degree"], (scale * size + shift) ** kernel["degree"]
    return value + constant, size + constant


def _norms(kernel: dict, Z: np.ndarray) -> np.ndarray:
    """Return upper bounds of ``sqrt(K(x, x))``; the RBF kernel needs one row for it."""
    some = Z[:1] if kernel["kernel"] == "rbf" else Z
    own = [values(kernel, row, row) for row in some[:, None, :]]
    norms = [UP * math.sqrt(max(value[0, 0] + bound[0, 0], 0.0)) for value, bound in own]
    return np.array(norms if some.size == Z.size else norms * Z.shape[0])


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
    if name == "rbf":
        square = np.zeros((X.shape[0], Z.shape[0]), dtype=LONG)
        for j in range(d):
            square += (X[:, j, None] - Z[:, j]) ** 2
        both = UP * (1.0 + gamma(d + 4)) * (sizes[0] + sizes[1]) * LAST
        off = gamma(d + 4) * square + d * TINY
        off += 2.0 * both * np.sqrt(square + off) + 2.0 * both * both
        off = UP * kernel["gamma"] * (off + 4.0 * LAST * square)
        K = np.exp(-kernel["gamma"] * square)
        error = np.where(off < 0.5, UP * K * (2.0 * off + EXP) + TINY, math.inf)
    elif name in ("linear", "poly"):
        K = X @ Z.T
        error = gamma(d + 12) * sizes[0] * sizes[1] + d * TINY
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
            error = UP * (1.0 + gamma(4 * degree)) * (degree * last * error + gamma(2 * degree) * top) + TINY
    else:
        raise DataError(f"certificates of the kernel '{name}' cannot be checked")
    if constant:
        K = K + constant
        error = UP * (error + 4.0 * LAST * (np.abs(K) + constant))
    return K, error
