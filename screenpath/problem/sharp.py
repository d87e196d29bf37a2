"""Certificates of box models whose gap would be met but for rounding: the sums that matter in twice the precision.

A margin counts only if its row's share of the gap may not be 0, and the sum over rows only through its distance
from ``w``. Both are recomputed as sums of two doubles. If the pair itself is a few units in the last place from
one that meets the gap, such as a hinge of 1e-16 that a large C weighs, neighbours of ``w`` are tried. A solver that
continues from such sums reaches accuracies that plain ones would hide.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from screenpath.kernels.problem import box
from screenpath.kernels.rows import double
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.numbers.rounding import OUTWARD, TINY, UNIT, blurred, gamma, meets

CHUNK = 4096  # rows that are copied at a time
ULPS = (1, 2, 4, 8)  # by so many units in the last place w grows
ALONE = 1e-3  # part of the tolerance that a row's loss may be off by, over the number of rows


def sharpened(model, certificate, tol: float):
    """Return the best certificate of the pair or a neighbour of its ``w``; the given one if no bound is smaller."""
    best = certificate
    found = _with_rows(model, certificate, tol, certificate.sum_error, None)
    if meets(found, tol):
        return found
    apart = Apart(model, certificate)
    found = _with_rows(model, certificate, tol, None, apart)
    if meets(found, tol):
        return found
    w = certificate.point.vector
    neighbours = [w * (1.0 + 2.0 * UNIT * ulps) for ulps in ULPS]
    for other in (certificate.C * apart.total[0], *neighbours):
        if not np.all(np.isfinite(other)):
            continue
        moved = model.moved(certificate, other)
        candidate = _with_rows(model, moved, tol, None, apart)
        if candidate.gap < found.gap:
            found = candidate
            if meets(found, tol):
                break
    return found if found.gap < best.gap else best


def recomputed(model, certificate, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``c - g.w`` (less a free intercept) of rows in twice the precision, and errors before its rounding."""
    w, (kinks, rest), t = certificate.point.vector, model.kinks_of(certificate), np.empty(index.size)
    rest = rest[index]
    for start in range(0, index.size, CHUNK):
        part = slice(start, start + CHUNK)
        products = np.empty((2, index[part].size))
        double.double_products(_taken(model, index[part]), w, products)
        t[part] = difference(kinks[index[part]], *products) + rest[part]
    size = float(np.linalg.norm(w)) * (1.0 + gamma(w.size + 8)) if w.any() else 0.0
    exact = (4.0 * gamma(w.size + 8) ** 2 + model.rows.inexact) * size
    floor = model.errors_of(certificate)[1]
    return t, exact * (model.norms[index] + floor) + (w.size + 1) * TINY + 4.0 * UNIT * np.abs(rest)


class Apart:
    """``G'theta`` in twice the precision, and so its distance from any ``w``."""

    def __init__(self, model, certificate):
        self.C, theta = certificate.C, certificate.theta
        self.total = np.zeros((2, certificate.total.size))
        used = np.flatnonzero(theta)
        for start in range(0, used.size, CHUNK):
            index = used[start : start + CHUNK]
            double.double_sum(_taken(model, index), theta[index], self.total)
        size = float(np.abs(theta) @ model.norms) * (1.0 + gamma(theta.size))
        # Each entry is a sum of as many terms as there are rows, and the scaled rows are what they are.
        self.error = (4.0 * gamma(2 * used.size + 8) ** 2 + model.rows.inexact) * size + used.size * TINY

    def distance(self, w: np.ndarray) -> float:
        """Return an upper bound of ``||w - C G'theta||``."""
        apart = np.empty(w.size)
        double.double_difference(w, self.C, self.total, apart)
        size = self.C * float(np.linalg.norm(self.total[0]))
        length = float(np.linalg.norm(apart)) * (1.0 + gamma(w.size + 8))
        if length == 0.0 == size and self.error == 0.0:  # terms that cancel leave a sum of 0 with an error
            return 0.0
        return (length + 16.0 * UNIT * UNIT * size + self.C * self.error) * OUTWARD


def _with_rows(model, certificate, tol: float, sum_error: float | None, apart: Apart | None):
    """Return the certificate with the margins that matter recomputed."""
    C, w = certificate.C, certificate.point.vector
    slope, floor = model.errors_of(certificate)
    t, e = model.kinks_of(certificate)[0] - certificate.point.products, slope * model.norms + floor
    index = that_matter(model, certificate, t, e, tol)
    t[index], e[index] = recomputed(model, certificate, index)
    if apart is not None:
        distance = apart.distance(w)
    else:
        distance = float(np.linalg.norm(w - C * certificate.total)) * (1.0 + gamma(w.size + 8))
        distance += 2.0 * UNIT * C * float(np.sqrt(certificate.total_sq)) + C * sum_error
    distance += C * (certificate.shift + model.inexact * float(np.sqrt(certificate.total_sq)) * OUTWARD)
    found = 0.5 * float(np.square(w - C * certificate.total).sum())
    square = certificate.point.sqnorm, 2.0 * gamma(w.size + 8) * certificate.point.sqnorm
    return with_terms(model, certificate, t, e, square, (0.5 * distance * distance, found))


def kernel_sharpened(model, certificate, tol: float):
    """Return the certificate of a kernel model with a narrower bound on rounding, or unchanged.

    Products are recomputed from the data, with kernel values that are sums of two doubles. Losses at the end of their
    box have no share of the gap, so they are recomputed only if the gap is met and the primal value is uncertain;
    usually it is enough to count the errors of these alone.
    """
    if not meets(certificate, tol):
        found = _kernel_formed(model, certificate, 1.0)
        return found if found.gap < certificate.gap or meets(found, tol) else certificate
    best = certificate
    for target in (None, tol):
        found = _kernel_formed(model, certificate, target)
        if meets(found, tol) and found.primal_error < best.primal_error:
            best = found
        if not blurred(best, tol):
            break
    return best


def _kernel_formed(model, certificate, tol: float | None):
    """Return the certificate with the products recomputed that matter to gap and primal value; none without ``tol``."""
    alpha, point = certificate.point.vector, certificate.point
    kinks, rest = model.kinks_of(certificate)
    t, e = kinks - point.products, model.form_error(certificate)
    index = np.empty(0, np.int64) if tol is None else that_matter(model, certificate, t, e, tol)
    (margins, totals), off = model.rows.precise_sums(index, np.stack([alpha, certificate.theta]))
    t[index] = difference(kinks[index], *margins) + rest[index]
    e[index] = off * point.spread * OUTWARD * model.norms[index] + 4.0 * UNIT * np.abs(rest[index])
    # The gap is to hold for C theta as well, which the coefficients are but for rounding.
    apart = np.empty(index.size)
    double.double_difference(margins[0], certificate.C, totals, apart)
    e[index] += np.abs(apart + margins[1]) * OUTWARD
    # ||w||^2 = sum alpha_i g_i.w, with the margins as they are known now; t also has what the kinks are off by.
    products, total = point.products.copy(), certificate.total.copy()
    products[index], total[index] = margins[0], totals[0]
    error, terms = e + 2.0 * UNIT * np.abs(t), np.abs(alpha) @ (np.abs(kinks) + np.abs(t))
    square_error = float(np.abs(alpha) @ error + gamma(alpha.size + 16) * terms) * OUTWARD
    square = max(float(alpha @ products), 0.0), square_error
    # Of the coefficients, from C theta.
    moved = (UNIT + model.inexact) * point.spread * OUTWARD + certificate.C * certificate.shift
    found = with_terms(model, certificate, t, e, square, (0.5 * moved * moved, 0.0))
    return replace(found, point=replace(point, products=products), total=total)


def that_matter(model, certificate, t, e, tol: float) -> np.ndarray:
    """Return the rows whose terms ``t = c - g.w``, with errors up to ``e``, must be known better."""
    C, up, down = certificate.C, model.hi - certificate.theta, certificate.theta - model.lo
    steep = np.maximum(np.abs(model.lo), np.abs(model.hi))
    share = np.maximum(up * (t + e), down * (e - t))
    loose = C * steep * e > ALONE * tol * max(certificate.primal, 0.0) / model.size
    active = (model.hi * (t + e) > 0.0) | (model.lo * (t - e) > 0.0)
    return np.flatnonzero((share > 0.0) | (loose & active))


def with_terms(model, certificate, t, e, square, apart):
    """Return the certificate for other values of the same terms, and bounds of their errors.

    ``t`` is ``c - g.w``, shape (N,), and ``e`` bounds its error before the rounding of the difference; ``e`` is
    overwritten. ``square`` has ``||w||^2`` and its error; ``apart`` an upper bound of ``1/2 ||w - w_theta||^2``, and
    its computed value.
    """
    C, up, down = certificate.C, model.hi - certificate.theta, certificate.theta - model.lo
    steep = np.maximum(np.abs(model.lo), np.abs(model.hi))
    e += 2.0 * UNIT * np.abs(t)
    all_rows = 1.0 + gamma(model.size + 64) + model.inexact  # whoever checks it rounds a few times more
    slack = float(np.maximum(np.maximum(up * (t + e), down * (e - t)), 0.0).sum()) * all_rows + certificate.cost
    plain = float(np.maximum(np.maximum(up * t, -down * t), 0.0).sum())
    xi = float(np.maximum(model.lo * t, model.hi * t).sum())
    slack += 2.0 * model.inexact * xi
    active = (model.hi * (t + e) > 0.0) | (model.lo * (t - e) > 0.0)
    unsure = float((steep * e)[active].sum()) + (gamma(model.size + 16) + model.inexact) * xi
    gap = (apart[0] + C * slack) * OUTWARD
    # Also where slack times C is too small a number: it is not 0.
    some = slack > 0.0 or certificate.point.vector.any() or certificate.theta.any()
    gap += box.UNDERFLOW * (1.0 + C) if some else 0.0
    found = apart[1] + C * plain
    return replace(
        certificate, primal=0.5 * square[0] + C * xi, primal_error=(0.5 * square[1] + C * unsure) * OUTWARD, gap=gap,
        rounding=max(gap - found, 0.0),
    )  # fmt: skip


def difference(c, high, low):
    """Return ``c - (high + low)``, off by little more than its own rounding."""
    total = c - high
    part = total - c
    return total + (((c - (total - part)) - (high + part)) - low)


def _taken(model, index):
    """Return a copy of rows, signs applied, as the kernels of ``double`` take them."""
    return matrix_of(model.take(index))
