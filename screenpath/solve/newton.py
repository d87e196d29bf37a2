"""Semismooth Newton on the proximal dual of a reduced box problem: certified in a few passes.

Method of multipliers on the dual with a semismooth Newton inner solver (the scheme of Li, Sun and Toh 2018, SSNAL),
on a working set of rows near their kink: superlinear, and insensitive to the conditioning that makes coordinate descent
crawl. Stops when the duality gap of the reduced problem is at most ``tol`` times its primal value.

A free intercept is one more column, penalised around a guess: one or two such problems are enough, almost always
(:mod:`screenpath.kernels.solve.multiplier`).
"""

from __future__ import annotations

import math

import numpy as np

from screenpath.kernels.problem import box
from screenpath.kernels.rows.barrier import Team, make_board
from screenpath.kernels.rows.matrix import Matrix, listed_products, matrix_of
from screenpath.kernels.solve import margins as places
from screenpath.kernels.solve import newton as kernels
from screenpath.numbers import sparse as sp
from screenpath.problem.reduced import Reduced
from screenpath.regions.geometry import ROUNDING
from screenpath.solve.base import Budget, Progress, Solution, Solver

CALL_ITERATIONS = 100  # of one kernel call: bounds the time until a signal or a deadline is noticed
STEEP, FEW = 64.0, 100  # of the first sigma, where there are fewer rows for each column, read at every step
STALLS = 4  # such calls in a row that do not halve the gap, after which rounding is to blame


class Newton(Solver):
    """Semismooth Newton / augmented Lagrangian."""

    name = "newton"
    steep = True  # where there are few rows; those of a sample are not

    def compiled(self, rows) -> Solver:
        return self

    def solve(self, reduced: Reduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        r, free, k, d = reduced, reduced.free, reduced.size, reduced.start_w.size
        more = 0 if free is None else 1
        w, v = np.append(r.start_w, np.zeros(more)), np.append(r.start_sum, np.zeros(more))
        stored, where, signs = r.stored()
        X, room = matrix_of(stored), places.workspace(k, d + more, r.sparse)
        team = Team(places.table_of(1, 0 if r.sparse else d + more), make_board(1), 0)
        vectors, lists, margins = room.vectors, room.lists, r.start_margins
        for row, values in zip(vectors, (r.c, r.lo, r.hi, r.norms, r.start_alpha), strict=False):
            row[:] = values
        lists[places.WHERE], room.marks[places.SIGNS] = where, signs
        norms, b, near = r.norms, 0.0 if free is None else free.intercept, free is None
        iterations, touched, errors, progress = 0, 0, r.errors, Progress(STALLS)
        while True:
            vectors[places.T], lists[places.ALIVE] = r.c - margins - b * signs, np.arange(k)
            limit = min(budget.epochs - iterations, CALL_ITERATIONS)
            how = kernels.How(tol, limit, dynamic, errors, False, steepness(r.theta.size, d) if self.steep else 1.0)
            if free is None:
                done, work, count, gap, primal = kernels.minimise(X, k, r.offset, v, w, how, 0.0, room, team)
                converged, ended = gap <= tol * abs(primal), done < limit
            else:
                from screenpath.kernels.solve.multiplier import minimise_free  # other paths start up without it

                vectors[places.NORMS], count = norms, k
                done, work, gap, primal, b, converged, _ = minimise_free(
                    X, k, r.offset, free.rest, b, free.typical, v, w, how, room, team
                )
                ended = done == 0 and near
            iterations, touched = iterations + done, touched + work
            budget.note(gap, primal, touched)
            finished = converged or ended or not math.isfinite(gap)
            if finished or budget.spent(iterations) or progress.stalls(gap):
                break
            if not near:
                (X, mean), where, near = _around_mean(X, where, d), np.arange(k), True
                b, lists[places.WHERE] = b + float(mean @ w[:d]), where
                norms = _norms(X, k) * (1.0 + ROUNDING)
            margins = np.empty(k)
            listed_products(X, where, w[:d], margins)
            margins *= signs
            touched += k
            widths, apart = float((r.hi - r.lo) @ r.norms), np.linalg.norm(w[:d] - v[:d])
            moved = box.moved_by(float(work), np.linalg.norm(w[:d]), apart, widths)
            errors = errors._replace(total=errors.total + float(moved))  # the next call goes on with ``v``
        # What the ball of a problem with a penalised intercept has fixed there is nothing about this one.
        alpha, alive = vectors[places.ALPHA].copy(), np.arange(k) if free else lists[places.ALIVE, :count].copy()

        def decided() -> np.ndarray:
            status = np.where(alpha <= r.lo, -1, 1).astype(np.int8)
            status[alive] = 0
            return status

        return Solution(w[:d], alpha, iterations, touched, converged, k - count, self.name, decided)


def steepness(n: int, d: int) -> float:
    """Return ``newton.How.steep`` for the ``n`` rows and ``d`` columns of a full problem that is read at every step."""
    return STEEP if n < FEW * d else 1.0


def _around_mean(X: Matrix, where: np.ndarray, d: int) -> tuple[Matrix, np.ndarray]:
    """Return a copy of rows less their mean, and that, of sparse rows where most have an entry: it joins ``b``."""
    if not X.sparse:
        rows = X.dense[where]
        mean = rows.mean(axis=0)
        return matrix_of(rows - mean), mean
    rows = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.indptr.size - 1, d))[where]
    many = 2 * np.bincount(rows.indices, minlength=d) > where.size
    mean = np.where(many, rows.sum(axis=0) / where.size, 0.0)
    rows = sp.csr_array(rows - sp.csr_array(np.ones((where.size, 1))) @ sp.csr_array(mean[None]))
    indices, indptr = rows.indices.astype(X.indices.dtype), rows.indptr.astype(X.indptr.dtype)
    return matrix_of((rows.data, indices, indptr)), mean


def _norms(X: Matrix, k: int) -> np.ndarray:
    """Return the norms of rows that stand one after the other."""
    if not X.sparse:
        return np.linalg.norm(X.dense, axis=1)
    return np.sqrt(np.bincount(np.repeat(np.arange(k), np.diff(X.indptr)), np.square(X.data), k))
