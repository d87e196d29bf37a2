"""Certificates of models with feature penalties whose margins and sums that matter are recomputed without rounding.

The gap is the sum of the shares of rows and columns, and its rounding what the shares at both ends of each margin's and
sum's error are above those in the middle (``kernels/problem/share.py``). Of a sparse SVM an entry is recomputed if its
rounding may add more to the gap than its share of the tolerance, or more than a trifle of the objective. Of an L1-SVM
all slacks are, and its dual point, which is made of them, is made again.
"""

from __future__ import annotations

from dataclasses import replace
from math import fsum, inf, isfinite

import numpy as np

from screenpath.kernels.problem import l1svm as l1_kernels
from screenpath.kernels.problem.share import column_shares, row_shares
from screenpath.numbers import accurate
from screenpath.numbers.rounding import OUTWARD, TINY, UNIT, blurred, meets
from screenpath.problem.penalised_rounding import proven

ROUNDS = 4  # of choosing: better sums may show that others matter too
SHARE = 0.25  # of the tolerance, that all entries left as they are may use up
TRIFLE = 0.01  # of the objective, that rounding may change of it


def sharpened(model, certificate, tol: float):
    """Return the certificate of the same pair with narrower bounds on rounding, to meet the relative gap ``tol``."""
    sums = _Sums(model, certificate)
    for _ in range(ROUNDS):
        found = sums.certificate()
        done = meets(found, tol) and not blurred(found, tol)
        if done or not isfinite(found.primal) or not sums.form(tol * found.primal, found.primal):
            break
    return found


def proof(rows, columns, penalty: float, floor: float, more=0.0, inexact: float = 0.0, part: float = 1.0) -> dict:
    """Return primal objective, gap and the bounds on their rounding, as the fields of a certificate.

    ``more`` is what an exact dual point next to the one at hand may add to the gap, ``inexact`` the largest relative
    error of a weight, ``floor`` bounds underflow, and ``part`` is that of :func:`proven`.
    """
    loss, loss_off, plain, adds = (_total(line) for line in rows)
    share, share_adds = (_total(line) for line in columns)
    primal, core = loss + penalty, plain + share
    primal_error = OUTWARD * (loss_off + (16.0 * UNIT + inexact) * primal + floor)
    rounding = adds + share_adds + 16.0 * UNIT * (core + UNIT * primal) + floor + 2.0 * inexact * primal
    rounding = OUTWARD * (rounding + more)
    return proven(primal, primal_error, OUTWARD * (core + rounding), rounding, part)


class _Sums:
    """Margins and sums of one pair of a sparse SVM with a bound on the error of each."""

    def __init__(self, model, c):
        self.model, self.c = model, c
        bounds, classes, n = model.rounding, model.classes, model.n
        self.pairs = np.flatnonzero(model.free == 0)  # dual variables, as numbers c n + i
        i = self.pairs % n
        own = (
            model.labels[i] * c.scores[i] if classes == 1 else c.scores[model.labels[i] * n + i] - c.scores[self.pairs]
        )
        kinks = model.kinks[i]
        self.t, self.theta, self.weights = kinks - own, c.theta[self.pairs], model.weights[i]
        extent = bounds.spread * float(np.linalg.norm(c.w))
        self.t_error = bounds.row * (model.row_norm[i] * extent + abs(c.intercept) + 4.0 * np.abs(kinks))
        # Features beyond these have no share in either objective.
        self.features = np.flatnonzero((c.u_slack == 0.0) | (c.w != 0.0))
        psi, f = model.psi_of(c).reshape(classes, n), self.features
        length = np.linalg.norm(psi, axis=1) + 1e-150
        self.u_error = bounds.column * model.feature_norm[f % model.d] * length[f // model.d] + 8.0 * TINY
        self.w, self.u = c.w[f], c.u[f].copy()
        self.formed_t, self.formed_u = np.zeros(self.t.size, dtype=bool), np.zeros(f.size, dtype=bool)

    def certificate(self):
        """Return the certificate that the sums and their bounds prove; keep each entry's possible rounding error."""
        m, c = self.model, self.c
        if self._both_zero():
            return replace(c, primal=0.0, primal_error=0.0, gap=0.0, rounding=0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            loss = (np.full(self.t.size, number) for number in (m.low, m.high, m.gamma))
            rows = row_shares(self.t, self.t_error, self.theta, self.weights / m.n, *loss)
            columns = column_shares(self.w, self.u, m.signs[self.features], self.u_error, c.alpha, c.beta)
            penalty = 0.5 * _total(c.alpha * self.w * self.w) + c.beta * _total(np.abs(self.w))
            more = self._residue() if c.off > 0.0 else 0.0
        self.loss_adds, self.t_adds, self.u_adds = rows[1], rows[3], columns[1]
        return replace(c, **proof(rows, columns, penalty, c.floor, more, m.rounding.inexact, c.part))

    def _both_zero(self) -> bool:
        """Tell whether both objectives are 0, not only up to underflow: without weights and dual variables, where each
        ``t``, one rounded subtraction then, is 0 or surely on the flat side of its loss.
        """
        if self.w.any() or self.theta.any() or self.u.any():
            return False
        flat = self.t + self.t_error <= (0.0 if self.model.low == 0.0 else -np.inf)
        return bool(np.all(flat | (self.t == 0.0) & (self.model.tail is None)))

    def _residue(self) -> float:
        """Return the most that an exact dual point may add to the gap, if the signed sum is not 0 (``c.off``)."""
        c = self.c
        samples = c.cost + c.off * _norm(self.t_error * np.sqrt(self.weights)) / self.model.n
        if c.alpha == 0.0:
            return samples + _norm(self.w) * c.shift
        shrunk = self.model.shrunk(self.u, self.features)
        apart = _norm(shrunk / c.alpha - self.w)
        return samples + (apart + (_norm(self.u_error) + 0.5 * c.shift) / c.alpha) * c.shift

    def form(self, room: float, primal: float) -> bool:
        """Recompute the sums whose rounding matters, and tell whether there were any."""
        rows = self._heavy(self.t_adds, SHARE * room) | self._heavy(self.loss_adds, min(TRIFLE * primal, SHARE * room))
        columns = self._heavy(self.u_adds, SHARE * room)
        rows, columns = np.flatnonzero(rows & ~self.formed_t), np.flatnonzero(columns & ~self.formed_u)
        for k in rows:
            self.t[k], self.t_error[k] = self._margin(int(self.pairs[k]))
        for k in columns:
            self.u[k], self.u_error[k] = self._sum(int(self.features[k]))
        self.formed_t[rows], self.formed_u[columns] = True, True
        return bool(rows.size or columns.size)

    @staticmethod
    def _heavy(adds: np.ndarray, room: float) -> np.ndarray:
        return adds > room / max(int(np.count_nonzero(adds)), 1)

    def _margin(self, pair: int) -> tuple[float, float]:
        """Return ``t`` of a dual variable and a bound on its error."""
        m, w = self.model, self.c.w
        c, i = divmod(pair, m.n)
        values, places = m.views.row(i, w)
        m.rows.touched += int(m.views.row_ends[i + 1] - m.views.row_ends[i])
        if m.classes == 1:
            own = -float(m.labels[i])
            left, right = values * own, w[places]
            if m.intercept:
                left, right = np.append(left, own), np.append(right, self.c.intercept)
            if m.tail is not None:
                left, right = np.append(left, 1.0), np.append(right, m.tail[i])
        else:
            left = np.concatenate([values, values])
            right = np.concatenate([-w[m.labels[i] * m.d + places], w[c * m.d + places]])
        value, error = accurate.inner(left, right, float(m.kinks[i]))
        return value, error + self._of_data(left, right)

    def _sum(self, f: int) -> tuple[float, float]:
        """Return ``u`` of a feature and a bound on its error; for the class itself, all dual variables of a sample."""
        m, theta = self.model, self.c.theta
        if m.weighted:
            theta = theta * np.tile(m.weights, m.classes)
        c, j = divmod(f, m.d)
        values, places = m.views.column(j)
        m.rows.touched += values.size
        labels = m.labels[places]
        if m.classes == 1:
            parts = [(values, labels * theta[places])]
        else:
            parts = [(values, np.where(labels == c, theta[k * m.n + places], 0.0)) for k in range(m.classes) if k != c]
            parts.append((values, np.where(labels == c, 0.0, -theta[c * m.n + places])))
        left, right = (np.concatenate(side) for side in zip(*parts, strict=True))
        value, error = accurate.inner(left, right)
        if m.weighted:  # the weights are rounded, and so are their products with the dual variables
            error += 5.0 * UNIT * float(np.abs(left) @ np.abs(right))
        error += self._of_data(left, right)
        return value / m.n, error / m.n + UNIT * abs(value / m.n) + TINY

    def _of_data(self, values: np.ndarray, weights: np.ndarray) -> float:
        """Return a bound on what the rounding of the data, in their scaling, changes of a sum."""
        off = self.model.rounding.data
        return off * OUTWARD * float(np.abs(values) @ np.abs(weights)) if off else 0.0


def _norm(values: np.ndarray) -> float:
    """Return an upper bound of the norm."""
    return OUTWARD * float(np.linalg.norm(values))


def _total(values: np.ndarray) -> float:
    """Return the sum, rounded once; inf or nan if it is not a number."""
    return fsum(values.tolist()) if np.isfinite(values).all() else float(np.sum(np.abs(values)))


# -- the L1-SVM --------------------------------------------------------------------------------------------------------


def l1_sharpened(model, c):
    """Return the certificate of the same weights and bias of an L1-SVM with a narrower bound on rounding.

    The bias of the dual point need not be the primal's: the root of ``y.r`` is found again from the better slacks, to
    the last place of ``r``.
    """
    lam, signs = c.lam, model.signs
    support = np.flatnonzero(c.w)
    slack, off = l1_slacks(model, c, support)
    moved = slack.copy()
    l1_kernels.bias_root(moved, signs, 0.0)
    r = np.maximum(moved, 0.0)
    total, squares = fsum(r * model.ones), fsum(r * r)
    balance, error = accurate.inner(signs, r)
    taken = min(2.0 * ((abs(balance) + error) / total + model.rounding.inexact) * OUTWARD, 1.0) if total > 0.0 else 0.0
    best = total / squares if squares > 0.0 else 0.0
    products, unsure = _l1_products(model, lam, r, taken * np.sqrt(squares) * OUTWARD, support, best)
    largest = float(np.max(model.outward(products) + unsure, initial=0.0)) * OUTWARD
    scale = l1_kernels.dual_scale(lam, total, squares, largest)
    point, w, ones = scale * r, c.w[support], np.ones(r.size)
    shift = (taken + 4.0 * UNIT) * point  # of the entries of the point for which y.r is 0
    with np.errstate(over="ignore", invalid="ignore"):
        rows = row_shares(slack, off, point, ones, 0.0 * ones, inf * ones, ones)
        columns = column_shares(w, scale * products[support], model.allowed[support], scale * unsure[support], 0.0, lam)
        more = fsum((np.abs(point - slack) + off + 0.5 * shift) * shift)
    weight = fsum(np.abs(w))
    floor = 16.0 * TINY * model.rounding.terms * (1.0 + (1.0 + scale) * weight)
    found = proof(rows, columns, lam * weight, floor, more)
    # What the plain certificate would be without rounding: that r consists of doubles may cost more than its sums do.
    if found["gap"] < inf:
        found["rounding"] = max(found["rounding"], found["gap"] - (c.gap - c.rounding))
    return replace(c, **found)


def l1_slacks(model, c, support) -> tuple[np.ndarray, np.ndarray]:
    """Return the slack of every sample, rounded once, and bounds on its errors."""
    columns = np.zeros((support.size, model.samples))
    for k, j in enumerate(support):
        values, places = model.rows.column(j)
        columns[k, places] = values
    model.rows.touched += support.size
    rows, weights = np.column_stack([columns.T, model.signs]), -np.append(c.w[support], c.bias)
    found = [accurate.inner(row, weights, one) for row, one in zip(rows, model.ones.tolist(), strict=True)]
    slack, off = (np.array(side) for side in zip(*found, strict=True))
    if model.rounding.inexact:
        off += 2.0 * model.rounding.inexact * (np.abs(rows) @ np.abs(weights) + model.ones)
    if model.rounding.data:
        off += 2.0 * model.rounding.data * (np.abs(columns.T) @ np.abs(c.w[support]))
    return slack, off


def _l1_products(model, lam: float, r, apart: float, support, best: float):
    """Return ``f_j . r'`` and error bounds; columns that matter are computed without rounding.

    ``apart`` is a bound on ``||r' - r||``, and ``best`` the scale of ``r`` if no product reaches ``lam``.
    """
    norm = float(np.linalg.norm(r)) * OUTWARD
    products = model.rows.products(r)
    unsure = (model.rounding.column * norm + apart) * model.norms
    # Where the spread says more than the product does, the latter is taken for 0.
    spread = model.spreads * norm
    wide = np.abs(products) + unsure > spread
    products[wide], unsure[wide] = 0.0, spread[wide]
    sizes = model.outward(products)
    matters = sizes + unsure > max(float(np.max(sizes - unsure, initial=0.0)), lam / best if best else inf)
    matters[support] = True
    for j in np.flatnonzero(matters):
        values, places = model.rows.column(j)
        products[j], error = accurate.inner(values, r[places])
        rounded = (3.0 * model.rounding.inexact + model.rounding.data) * (norm + apart)
        unsure[j] = error + model.norms[j] * (apart + rounded) * OUTWARD
    model.rows.touched += int(np.count_nonzero(matters))
    return products, unsure
