r"""The sparse SVM (:mod:`.sparse`) with a penalty on groups of features: the group lasso, and the sparse-group lasso.

Objective   min_w  1/n sum_i s_i l(1 - y_i x_i.w) + alpha/2 ||w||^2 + beta Omega(w)
            Omega(w) = (1 - tau) sum_g p_g ||w_g|| + tau ||w||_1,   0 <= tau < 1
Dual        max    1/n sum s theta - gamma/(2n) ||theta||^2 - 1/(2 alpha) ||S(u)||^2,  u as there

``S`` is the proximal operator of ``beta Omega``: with ``v = soft(u_g, beta tau)`` it is ``S_g = v max(0, 1 - beta
(1 - tau) p_g / ||v||)``. So ``u - S`` is the point nearest to ``u`` where the dual norm is at most ``beta``, and a
column's share ``beta Omega(w) - w.(u - S) + ||S - alpha w||^2 / (2 alpha)`` is made of the same two parts as that of
the L1 penalty, which is the case of groups of one feature. ``S`` moves no more than ``u`` does: what the certificate,
the balls and the rounding ask of the penalty (:mod:`.penalised_rounding`) holds word for word.

At ``alpha = 0`` dual points have ``||soft(u_g, beta tau)|| <= beta (1 - tau) p_g``, a norm of ``u`` (Ndiaye et al.
2016): a point of the box is divided by its excess, as with the L1 penalty.
"""

from __future__ import annotations

from math import fsum, inf

import numpy as np

from screenpath.data.safe.memory import SPARSE, in_force
from screenpath.errors import UsageError
from screenpath.numbers import sparse as sp
from screenpath.numbers.rounding import OUTWARD, UNIT, gamma
from screenpath.problem.penalised_rounding import EXTRA
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_free import FreeSparseModel
from screenpath.problem.sparse_types import SparseCertificate

HALVINGS = 64  # of the interval of a dual norm, to the last digit
LARGEST = 300  # features of a group up to which its spectral norm is computed: a matrix of their products


class Groups:
    """Groups of features with their weights in the penalty, and its share of the L1 norm.

    ``of`` (int64 of shape (d,)): number of each feature's group, 0 .. k - 1, each of which has a feature. ``weights``
    (shape (k,)): ``p_g > 0``. ``share``: ``tau``, at least 0 and below 1.
    """

    def __init__(self, of: np.ndarray, weights: np.ndarray, share: float):
        self.of, self.weights, self.share = of, weights, share
        self.order, self.sizes = np.argsort(of, kind="stable"), np.bincount(of, minlength=weights.size)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)  # of each group in that order
        self.parts = (1.0 - share) * weights
        self.depth = gamma(int(self.sizes.max()) + EXTRA)  # relative error of a group's norm

    def features(self, g: int) -> np.ndarray:
        """Return the features of a group."""
        return self.order[self.starts[g] :][: self.sizes[g]]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sums over each group, shape (k,)."""
        return np.add.reduceat(values[self.order], self.starts)

    def norms(self, values: np.ndarray) -> np.ndarray:
        """Return the Euclidean norms of each group, shape (k,); squares leave the range of floating point nowhere."""
        sizes = np.abs(values)
        most = np.maximum.reduceat(sizes[self.order], self.starts)
        return most * np.sqrt(self.sums(np.square(sizes / np.where(most > 0.0, most, 1.0)[self.of])))

    def soft(self, u: np.ndarray, limit) -> np.ndarray:
        """Return ``u``, towards 0 by ``limit``, a number or one of each feature."""
        return u - np.clip(u, -limit, limit)

    def shrunk(self, u: np.ndarray, beta: float) -> np.ndarray:
        """Return the proximal operator of ``beta Omega``."""
        v = self.soft(u, beta * self.share)
        norms = self.norms(v)
        factors = np.maximum(1.0 - beta * self.parts / np.where(norms > 0.0, norms, 1.0), 0.0)
        return v * np.where(norms > 0.0, factors, 0.0)[self.of]

    def size(self, w: np.ndarray) -> np.ndarray:
        """Return each group's part of ``Omega(w)``, shape (k,)."""
        return self.parts * self.norms(w) + (self.share * self.sums(np.abs(w)) if self.share else 0.0)

    def dual_norms(self, sizes: np.ndarray) -> np.ndarray:
        """Return upper bounds of each group's dual norm, shape (k,), from ``|u|``: of the smallest ``nu`` with
        ``||soft(u_g, nu tau)|| <= nu (1 - tau) p_g``.
        """
        high = OUTWARD * (1.0 + self.depth) * self.norms(sizes) / (self.parts + self.share)  # as ||w||_1 >= ||w||
        if self.share == 0.0 or not np.all(high < inf):
            return high
        low = np.zeros(high.size)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            enough = self.norms(self.soft(sizes, self.share * middle[self.of])) <= middle * self.parts
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return OUTWARD * (1.0 + 2.0 * self.depth) * high


class GroupModel(SparseModel):
    """A sparse SVM of two classes with a penalty on groups, ``groups``; data in memory."""

    groups: Groups

    def grouped(self, groups: Groups) -> GroupModel:
        """Take the groups, and measure their columns; return the model."""
        columns, self.groups = self.views.columns(), groups
        dense = self.views.dense
        self.X = columns[0].reshape(self.d, self.n).T if dense else sp.csc_array(columns, (self.n, self.d))
        self.group_norm = np.sqrt(groups.sums(np.square(self.col_norm))) * (1.0 + groups.depth)
        for g in np.flatnonzero((groups.sizes > 1) & (groups.sizes <= LARGEST)).tolist():
            # An eigenvalue, and the products of its matrix, are off by a part of the trace.
            X = self.columns_of(groups.features(g))
            found = X.T @ (X.multiply(self.weights[:, None]).tocsc() if sp.issparse(X) else self.weights[:, None] * X)
            found = found.toarray() if sp.issparse(found) else found
            off = (gamma(self.n + EXTRA) + 32.0 * UNIT * groups.sizes[g]) * float(np.trace(found))
            top = float(np.linalg.eigvalsh(found)[-1]) if np.all(np.isfinite(found)) else inf
            self.group_norm[g] = min(self.group_norm[g], OUTWARD * np.sqrt(max(top, 0.0) + off) / self.n)
        return self

    def columns_of(self, features: np.ndarray):
        """Return columns of the data as float64, shape (n, k), and count them as read."""
        ends = self.views.column_ends
        values = int(np.sum(ends[features + 1] - ends[features]))
        in_force().check(
            (32 if sp.issparse(self.X) else 16) * values, f"{features.size:,} columns of groups", SPARSE.hint
        )
        self.rows.touched += values
        return self.X[:, features].astype(np.float64, copy=False)

    def row_part(self, keep: np.ndarray) -> np.ndarray:
        """Return that of :class:`SparseScreened` where the features with a mark in ``keep`` are left."""
        if np.all(keep):
            return self.row_sq
        kept = np.flatnonzero(keep)
        X = self.columns_of(kept)
        squares = X.multiply(X) if sp.issparse(X) else np.square(X)
        return np.asarray(squares.sum(axis=1)).ravel() - X @ self.twice[kept]

    # -- the penalty ---------------------------------------------------------------------------------------------

    def shrunk(self, u: np.ndarray, features=slice(None)) -> np.ndarray:
        return self.groups.shrunk(u, self.beta)[features]

    def dual_norm(self, u: np.ndarray, errors: np.ndarray) -> float:
        return float(self.groups.dual_norms(np.abs(u) + errors).max())

    def penalty_terms(self, w: np.ndarray, u: np.ndarray, features: np.ndarray, alpha: float) -> tuple:
        """Return the terms of ``feature_terms``, ``Omega(w)`` for the L1 norm.

        ``S`` is off by what the norms are, as a part of its own size and of ``beta`` times the penalty's: the number of
        active features is one that ``penalised_rounding`` counts as much for. The kinks include their rounding.
        """
        g, beta = self.groups, self.beta
        there = np.zeros(u.size)
        there[features] = u[features]
        S, sizes = self.shrunk(there), g.size(w)
        inner = there - S
        kinks = beta * sizes - g.sums(inner * w)
        kink = fsum(np.maximum(kinks, 0.0)) + fsum(4.0 * g.depth * (beta * sizes + g.sums(np.abs(inner * w))))
        active = np.flatnonzero(g.norms(S) + sizes)
        limits = g.parts[active] + g.share * np.sqrt(g.sizes[active])
        lost = g.depth * (float(np.linalg.norm(S)) + beta * float(np.linalg.norm(limits)))
        count = (lost / (8.0 * UNIT * beta)) ** 2 if beta > 0.0 else 0.0
        reach, nonzero = float(np.abs(w) @ self.feature_norm), int(np.count_nonzero(w))
        if not alpha > 0.0:
            return 0.0, fsum(sizes), kink + float(np.abs(w) @ np.abs(S)), 0.0, 0.0, reach, count, nonzero
        pull = alpha * w
        lag = S - pull
        terms = float(pull @ w), fsum(sizes), kink, float((lag / alpha) @ lag), float(lag @ w)
        return *terms, reach, count, nonzero

    # -- certificates --------------------------------------------------------------------------------------------

    def certify(self, alpha: float, w, theta, reference=None, sums=None, intercept=None) -> SparseCertificate:
        """Evaluate both objectives; every sum over the data is formed, as a group reads those of all its features."""
        return super().certify(alpha, w, theta, None, sums, intercept)

    def sharpened(self, certificate: SparseCertificate, tol: float) -> SparseCertificate:
        return certificate

    def residue(self, scores: np.ndarray, theta: np.ndarray, extent: float) -> dict:
        """Return the difference of an exact dual point; in a dual norm, a move of ``u`` may count for more."""
        found = super().residue(scores, theta, extent)
        least = float((self.groups.parts + self.groups.share).min())
        return {**found, "shift": found["shift"] / min(least, 1.0) * OUTWARD} if found else found

    @property
    def beta_max(self) -> float:
        error = self.ones_error
        return OUTWARD * self.dual_norm(self.u_top, error) if np.any(np.abs(self.u_top) > error) else 0.0

    # -- records -------------------------------------------------------------------------------------------------

    def counts(self, certificate: SparseCertificate, screened) -> dict:
        found, g = super().counts(certificate, screened), self.groups
        kept, there = g.sums(screened.keep.astype(np.int64)), g.sums((certificate.w != 0.0).astype(np.int64))
        found["extras"] |= {"n_groups_screened": int(np.sum(kept == 0)), "nnz_groups": int(np.count_nonzero(there))}
        return found


class FreeGroupModel(GroupModel, FreeSparseModel):
    """With a free intercept."""


def group_model(views, labels, gamma: float, weights, intercept: str | None, groups: Groups) -> GroupModel:
    """Return the model at ``beta = 0``; parameters as of ``sparse_grid.sparse_model``."""
    if not views.whole:
        raise UsageError("`groups` needs the data in memory", "name the file itself, or shards by rows")
    kind = FreeGroupModel if intercept == "free" else GroupModel
    return kind(views, labels, 1, 0.0, gamma, weights).grouped(groups)
