"""A sparse SVM's certificate with the margins and sums that matter recomputed without rounding.

Terms and slopes are those of ``problem/sparse_rounding.py``, entry by entry. An entry is recomputed if its rounding may
add more to the gap than its share of the tolerance, or more than a trifle of the objective.
"""

from __future__ import annotations

from dataclasses import replace
from math import fsum, inf, isfinite

import numpy as np

from screenpath.numbers import accurate
from screenpath.numbers.rounding import OUTWARD, TINY, UNIT, blurred, meets

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


class _Sums:
    """Margins and sums of one pair with a bound on the error of each."""

    def __init__(self, model, c):
        self.model, self.c = model, c
        bounds, classes, n = model.rounding, model.classes, model.n
        self.pairs = np.flatnonzero(model.free == 0)  # dual variables, as numbers c n + i
        i = self.pairs % n
        own = (
            model.labels[i] * c.scores[i] if classes == 1 else c.scores[model.labels[i] * n + i] - c.scores[self.pairs]
        )
        self.t, self.theta, self.weights = 1.0 - own, c.theta[self.pairs], model.weights[i]
        extent = bounds.spread * float(np.linalg.norm(c.w))
        self.t_error = bounds.row * (model.row_norm[i] * extent + abs(c.intercept) + 4.0)
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
        n, gamma, alpha, beta = m.n, m.gamma, c.alpha, c.beta
        with np.errstate(over="ignore", invalid="ignore"):
            t, off = self.t, self.t_error + 4.0 * UNIT * (1.0 + np.abs(self.t))
            best = np.clip(t / gamma, 0.0, 1.0)
            lag = best - self.theta
            slack = self.weights * lag * (t - 0.5 * gamma * (best + self.theta))
            flat = ((t + off <= 0.0) & (self.theta == 0.0)) | ((t - off >= gamma) & (self.theta == 1.0))
            adds = np.where(flat, 0.0, np.minimum(np.abs(lag) + 0.5 * off / gamma, 1.0) * off)
            self.t_adds = self.weights * adds / n
            loss = self.weights * best * (t - 0.5 * gamma * best)
            adds = np.where(t + off <= 0.0, 0.0, np.minimum(best + 0.5 * off / gamma, 1.0) * off)
            self.loss_adds = self.weights * adds / n

            pull, size = alpha * self.w, np.abs(self.w)
            shrunk = np.sign(self.u) * np.maximum(np.abs(self.u) - beta, 0.0)
            off = self.u_error + 4.0 * UNIT * (np.abs(self.u) + beta + np.abs(pull)) + 8.0 * TINY
            if alpha > 0.0:
                apart, rate = (shrunk - pull) / alpha, 0.5 / alpha
            else:  # a dual point's sums are within beta, whatever the formed ones seem to be
                shrunk, apart, rate = 0.0 * pull, -self.w, 0.0
            flat = (self.w == 0.0) & (np.abs(self.u) + off <= beta)
            self.u_adds = np.where(flat, 0.0, (np.abs(apart) + rate * off) * off)
            across = np.sign(shrunk) * np.sign(self.w) < 0.0
            kink = np.where(shrunk == 0.0, beta - np.sign(self.w) * self.u, np.where(across, 2.0 * beta, 0.0))
            share = size * np.maximum(kink, 0.0) + 0.5 * apart * (shrunk - pull)
        floor = c.floor
        penalty = 0.5 * _total(pull * self.w) + beta * _total(size)
        primal = _total(loss) / n + penalty
        inexact = m.rounding.inexact
        primal_error = OUTWARD * (_total(self.loss_adds) + (16.0 * UNIT + inexact) * primal + floor)
        gap = max(_total(slack) / n + _total(share), 0.0)
        rounding = _total(self.t_adds) + _total(self.u_adds) + 16.0 * UNIT * (gap + UNIT * primal) + floor
        rounding += 2.0 * inexact * primal
        rounding = OUTWARD * (rounding + (self._residue(apart) if c.off > 0.0 else 0.0))
        gap = OUTWARD * (gap + rounding)
        if not isfinite(gap):
            gap, rounding = inf, 0.0
        return replace(c, primal=primal, primal_error=primal_error, gap=gap, rounding=rounding)

    def _residue(self, apart) -> float:
        """Return the most that an exact dual point may add to the gap, if this one's signed sum is not 0
        (``c.off``).
        """
        c = self.c
        samples = c.cost + c.off * _norm(self.t_error * np.sqrt(self.weights)) / self.model.n
        errors = (_norm(self.u_error) + 0.5 * c.shift) / c.alpha if c.alpha > 0.0 else 0.0
        return samples + (_norm(apart) + errors) * c.shift

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
            if not m.intercept:
                return accurate.inner(values * own, w[places], 1.0)
            return accurate.inner(np.append(values * own, own), np.append(w[places], self.c.intercept), 1.0)
        both = np.concatenate([-w[m.labels[i] * m.d + places], w[c * m.d + places]])
        values = np.concatenate([values, values])
        return accurate.inner(values, both, 1.0)

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
        return value / m.n, error / m.n + UNIT * abs(value / m.n) + TINY


def _norm(values: np.ndarray) -> float:
    """Return an upper bound of the norm."""
    return OUTWARD * float(np.linalg.norm(values))


def _total(values: np.ndarray) -> float:
    """Return the sum, rounded once; inf or nan if it is not a number."""
    return fsum(values.tolist()) if np.isfinite(values).all() else float(np.sum(np.abs(values)))
