"""The sparse SVM (:mod:`.sparse`) of several classes, each with an unpenalised intercept.

Objective   min_{W,b}  1/n sum_(i,c) s_i l(1 - x_i.(w_{y_i} - w_c) - b_{y_i} + b_c) + alpha/2 ||W||^2 + beta ||W||_1
Dual        as without b, and for every class  sum_i s_i (sum_k theta_ik [c = y_i] - theta_ic [c != y_i]) = 0

A dual variable is a flow from its sample's class to another one, and the flows of a dual point are in balance. Only
differences of intercepts matter: their sum is 0. ``b`` is always the best one for ``W``, found exactly up to
rounding (``kernels.problem.sparse_levels``), and part of the scores. Then the flows of ``theta(W)`` are in balance, the
gap is the same sum as without ``b``, and so are the balls around ``W`` and ``theta``, see :mod:`.sparse_free`. A few
dual variables can carry the rounding error of the balance from class to class: each certificate counts it.

Features are decided within the plane of their own class, where a column counts by its distance from its mean over the
dual variables of the class that survive. Samples are decided with the scores of rows seen from the mean of all rows,
and bounds on the differences of the scores of that mean, which ``kernels.screen.sparse_levers`` proves.

With ``W = 0`` the intercepts are those of one sample per class with the weight of the class, and ``theta`` depends only
on the two classes. If all classes have the same weight, ``theta = 1`` stays optimal down to ``alpha_max``, where a
largest mean of margins around a cycle of classes reaches ``1 - gamma``; else the path is solved from there on.
"""

from __future__ import annotations

from math import fsum, inf, sqrt

import numpy as np

from screenpath.errors import UsageError
from screenpath.kernels.problem import sparse_levels as kernels
from screenpath.kernels.problem import sparse_samples as losses
from screenpath.numbers.rounding import UNIT
from screenpath.problem.sparse_free import TRIES, FreeModel
from screenpath.problem.sparse_types import Level

LOOSE = 1e-12  # of the largest eigenvalue of a graph: one below it belongs to parts that nothing connects


class FreeClassesModel(FreeModel):
    """A sparse SVM of several classes with free intercepts; parameters as of :class:`SparseModel`.

    Raises
    ------
    UsageError
        If all samples of a class have weight 0.
    """

    same: bool
    loss_at_zero: float

    def __init__(self, views, labels, classes, beta, gamma, weights=None, shared=None):
        self.levels = classes
        super().__init__(views, labels, classes, beta, gamma, weights, shared)
        if shared is not None:
            self.same, self.loss_at_zero, self.col_total = shared.same, shared.loss_at_zero, shared.col_total
            return
        given = [fsum(self.given[labels == c]) for c in range(classes)]
        if not min(given) > 0.0:
            raise UsageError(
                "free intercepts need samples of positive weight in every class: without any, none is best",
                "use `intercept=none`, or leave out the classes that have no weight",
            )
        self.same = min(given) == max(given)
        self._begin(np.array([fsum(self.weights[labels == c]) for c in range(classes)]))
        self._centre()
        shares = np.empty(classes * self.n)
        losses.pair_weights(self.samples, shares)
        self.col_total = self.n * self.column_sums(shares)

    def _begin(self, weights: np.ndarray) -> None:
        """Find the dual point of ``W = 0`` from the weights of the classes, with one sample for each class."""
        count, own = weights.size, np.arange(weights.size)
        few = losses.Samples(own, weights, count, count, self.gamma)
        status = np.zeros(count * count, dtype=np.int8)
        status[own * count + own] = -1
        level, scores, theta = np.zeros(count), np.zeros(count * count), np.empty(count * count)
        kernels.settle_levels(scores, few, status, level)
        self.loss_at_zero = losses.respond(scores, few, status, theta, np.empty(theta.size)) / self.n
        self.top = self.ones if self.same else np.ascontiguousarray(theta.reshape(count, count)[:, self.labels]).ravel()
        self.balance(np.repeat(level, self.n), self.top)
        self.u_top = self.u_ones if self.same else self.column_sums(self.weigh(self.top))

    @property
    def even(self) -> bool:
        return self.same

    # -- the intercepts and dual points ---------------------------------------------------------------------------

    def placed(self, scores: np.ndarray, intercept=None, guess=0.0) -> Level:
        if intercept is None:
            level = np.zeros(self.classes) + guess
            kernels.settle_levels(scores, self.samples, self.free, level)
            return Level(level)
        scores += np.repeat(intercept, self.n)
        return Level(intercept)

    def answers(self, inside: np.ndarray) -> np.ndarray:
        i, other, size = inside % self.n, inside // self.n, self.classes
        own, roots = self.labels[i], self.roots[i]
        graph = -np.bincount(own * size + other, self.weights[i], size * size).reshape(size, size)
        graph += graph.T
        graph[np.diag_indices(size)] -= graph.sum(axis=1)
        found, ways = np.linalg.eigh(graph)
        kept = found > LOOSE * found[-1]
        lines = np.empty((int(np.count_nonzero(kept)), inside.size))
        for line, way in zip(lines, (ways[:, kept] / np.sqrt(found[kept])).T, strict=True):
            np.subtract(way[own], way[other], out=line)
            line *= roots
        return lines

    def balance(self, scores: np.ndarray, theta: np.ndarray) -> bool:
        """Let the dual variables that lose least take the rounding error of the balance; tell whether any did."""
        moved = False
        found, error = np.empty(self.classes), np.empty(self.classes)
        for _ in range(TRIES):
            kernels.excesses(theta, self.labels, self.given, self.classes, found, error)
            if np.all(np.abs(found) <= error):
                break
            rows, costs = self._flows(scores, theta, float(np.abs(found).sum()))
            way = ways(costs)[0]
            before = theta.copy()
            while True:
                out, into = int(np.argmax(found)), int(np.argmin(found))
                amount = min(found[out], -found[into])
                if not amount > 0.0 or way[into, out] < 0:
                    break
                self._send(theta, rows, way, (into, out), amount)
                found[out] -= amount
                found[into] += amount
            if np.array_equal(theta, before):
                break
            moved = True
        return moved

    def _send(self, theta: np.ndarray, rows: np.ndarray, way: np.ndarray, ends: tuple, amount: float) -> None:
        """Let more flow from the first class of ``ends`` to the second."""
        here, last = ends
        while here != last:
            there = int(way[here, last])
            k = int(rows[here, there])
            i = k % self.n
            step = amount / self.given[i] if self.labels[i] == here else -amount / self.given[i]
            theta[k] = min(max(theta[k] + step, 0.0), 1.0)
            here = there

    def _flows(self, scores: np.ndarray, theta: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the dual variables that can take ``least`` more from class to class, and their slopes."""
        rows, costs = np.empty((self.classes, self.classes), dtype=np.int64), np.empty((self.classes, self.classes))
        kernels.nearest_flows(scores, theta, self.samples, self.given, least, rows, costs)
        return rows, costs

    def residue(self, scores: np.ndarray, theta: np.ndarray, extent: float) -> dict:
        """Return the difference of an exact dual point: the imbalance flows from class to class."""
        found, error = np.empty(self.classes), np.empty(self.classes)
        kernels.excesses(theta, self.labels, self.given, self.classes, found, error)
        size = float(np.abs(found).sum() + error.sum()) * (1.0 + 8.0 * self.classes * UNIT)
        if size == 0.0:
            return {}
        rows, slopes = self._flows(scores, theta, size)
        there, any_row = rows >= 0, int(np.argmax(self.given))
        i = np.where(there, rows % self.n, any_row)
        more, weight = size / self.given[i], self.weights[i] / self.n
        slopes = slopes + (self.rounding.row * (self.rounding.spread * extent + 4.0) + self.gamma * more)
        _, cost, off, shift = ways(
            np.where(there, weight * more * slopes, inf), more * np.sqrt(self.weights[i]),
            sqrt(2.0) * weight * more * self.row_norm[i],
        )  # fmt: skip
        if not np.all(np.isfinite(cost)):
            return {"off": inf, "shift": inf, "cost": inf}
        grown = 1.0 + 16.0 * self.classes * UNIT
        return {name: grown * float(part.max()) for name, part in (("off", off), ("shift", shift), ("cost", cost))}

    # -- closed-form start ----------------------------------------------------------------------------------------

    @property
    def null_loss(self) -> float:
        return self.loss_at_zero

    def _most(self, scores: np.ndarray, error: np.ndarray) -> float:
        """Return the largest mean around a cycle of classes, of the largest margins from each one to the next.

        Intercepts with ``m + b_p - b_q <= most`` for all margins from ``p`` to ``q`` exist if no cycle has more.
        """
        margins = scores[self.labels, np.arange(self.n)] - scores + error
        margins = np.where(self.weights > 0.0, margins, -inf)
        between = np.stack([margins[:, self.labels == p].max(axis=1) for p in range(self.classes)])
        np.fill_diagonal(between, -inf)
        return largest_cycle_mean(between)


def ways(costs: np.ndarray, *beside: np.ndarray) -> tuple:
    """Return the cheapest ways between the nodes of a graph.

    Parameters
    ----------
    costs : ndarray of shape (k, k)
        Of the edges; infinite if there is none.
    *beside : ndarray of shape (k, k)
        Other properties of the edges, to be summed along the ways.

    Returns
    -------
    tuple of ndarray of shape (k, k)
        The first node of each way, -1 if there is none; costs and the other sums.
    """
    size = costs.shape[0]
    first = np.where(np.isfinite(costs), np.arange(size)[None, :], -1)
    totals = [costs.copy(), *(part.copy() for part in beside)]
    for part in totals:
        np.fill_diagonal(part, 0.0)
    for k in range(size):
        through = totals[0][:, k, None] + totals[0][None, k, :]
        better = through < totals[0]
        first = np.where(better, first[:, k, None], first)
        totals = [np.where(better, part[:, k, None] + part[None, k, :], part) for part in totals]
    return (first, *totals)


def largest_cycle_mean(lengths: np.ndarray) -> float:
    """Return the largest mean length of a cycle of a complete graph (Karp 1978); minus infinity is on the diagonal."""
    size = lengths.shape[0]
    walks = np.full((size + 1, size), -inf)
    walks[0, 0] = 0.0
    for k in range(size):
        walks[k + 1] = (walks[k][:, None] + lengths).max(axis=0)
    steps = size - np.arange(size)[:, None]
    with np.errstate(invalid="ignore"):
        means = np.where(np.isfinite(walks[:-1]), (walks[-1] - walks[:-1]) / steps, inf)
    return float(means.min(axis=0).max())
