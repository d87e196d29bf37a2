"""Proximal SDCA, plain and accelerated: the solvers of Hong 2019 (Shalev-Shwartz & Zhang 2016), as plug-ins.

    screenpath sparse-svm data.libsvm --intercept none --solver examples/papers/sdca.py:ProximalSDCA
    screenpath compare-rules sparse-svm data.libsvm --intercept none --start warm,cold \
        --solver examples/papers/sdca.py:AcceleratedSDCA

One dual variable at a time is maximised exactly, in random order, with ``v = X' psi(theta)/n`` kept and
``w = S_beta(v)/alpha`` formed where it is read. Where features were screened, the rows and columns left are copied
first, so that an epoch costs what survives. Stops when the gap of the reduced problem is at most ``tol`` times its
primal value.

The accelerated outer loop (Acc-Prox-SDCA) minimises ``P(w) + kappa/2 ||w - y||^2`` roughly by proximal SDCA, ``y``
ahead of the last two points. The term makes the problem as strongly convex as is good for one pass,
``kappa = max ||x||^2 / (gamma n) - alpha``; where that is not positive the method is proximal SDCA itself. With
``v' = v + kappa y`` in place of ``v`` and ``alpha + kappa`` in place of ``alpha`` the sweeps are the same, and so is
the gap that they report.
"""

from __future__ import annotations

import functools
import time
from math import sqrt
from typing import NamedTuple

import numpy as np

from screenpath.data.safe.memory import in_force
from screenpath.errors import UsageError
from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem import sparse as sums
from screenpath.kernels.problem.sparse import Samples
from screenpath.kernels.rows import rows as row_kernels
from screenpath.problem.sparse_types import SparseCertificate, SparseReduced
from screenpath.screen.sparse import tighten
from screenpath.solve.base import Budget, Solution, Solver

VISITS = 50_000_000  # values of one kernel call: bounds the time until a signal or a deadline is noticed
FIRST_CHECK, LAST_CHECK = 2, 50  # sweeps between two gap evaluations, at first and at most
GROWTH = 4  # by a quarter each time
SCREEN_AGAIN = 0.5  # the gap must fall by this factor before the dynamic rule is applied again


class ProximalSDCA(Solver):
    """Proximal SDCA.

    Parameters
    ----------
    seed : int, default 0
        Seed of the random order; each solve starts its generator from the seed and the parameter's rank.
    warm : bool, default True
        Start from the previous grid point; else from ``theta = 0``.
    """

    name = "sdca"

    def __init__(self, seed: int = 0, warm: bool = True):
        self.seed, self.warm = seed, warm
        compiled()  # no step's clock sees it

    def solve(self, reduced: SparseReduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap, see :class:`screenpath.solve.base.Solver`.

        Returns
        -------
        Solution
            ``alpha`` holds all dual variables, on the scale [0, 1].
        """
        check(reduced)
        # A second round at the same alpha goes on from the first one, cold start or not.
        warm = self.warm or reduced.start.alpha == reduced.alpha
        run = _Run(reduced, random_state(self.seed, rank), warm)
        screened = 0
        screen_below = SCREEN_AGAIN * run.gap if reduced.screened.record.size else np.inf
        while not run.ended(tol, budget):
            if dynamic and run.gap <= screen_below:
                screened += run.screen()
                screen_below = SCREEN_AGAIN * run.gap
            if run.order.size == 0:
                break
            run.descend(tol, budget, screen_below if dynamic else -1.0)
        theta, w = run.point()
        return Solution(w, theta, run.epochs, run.touched, run.converged, screened, self.name)


def check(reduced: SparseReduced) -> None:
    """Refuse problems on which steps of one dual variable get nowhere."""
    model = reduced.model
    if model.regression or model.signs.any():
        raise UsageError("SDCA is written for the hinge, and weights of any sign", "use `solver=newton`")
    if model.intercept:
        raise UsageError("SDCA moves one dual variable at a time, which a free intercept does not allow",
                         "use `solver=newton`, or `intercept=none`")  # fmt: skip
    if model.sharp or reduced.alpha == 0.0:
        raise UsageError("SDCA crawls where the dual is not strongly concave, or `alpha` is 0",
                         "use `solver=newton`, or a `smoothing` and values of `alpha` above 0")  # fmt: skip


@functools.cache
def compiled() -> None:
    """Load the kernels once a process, or compile them."""
    warm_up()


def random_state(seed: int, rank: int) -> np.ndarray:
    """Return the state of the generator for one grid point, shape (1,): a hash of both numbers (splitmix64)."""
    wrap = 2**64 - 1
    x = (seed * 0x9E3779B97F4A7C15 + rank + 1) & wrap
    for _ in range(2):
        x = (x + 0x9E3779B97F4A7C15) & wrap
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & wrap
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & wrap
        x ^= x >> 31
    state = np.empty(1, dtype=np.uint64)
    state[0] = max(x, 1)
    return state


class _Copy:
    """Rows and columns of the data, copied row by row (or the data itself)."""

    def __init__(self, model, lines, columns, part, sqnorms):
        self.lines, self.columns, self.part, self.sqnorms = lines, columns, part, sqnorms
        self.samples = model.samples._replace(labels=model.labels[lines], weights=model.weights[lines])
        self.has_line, self.has_column = np.zeros(model.n, dtype=bool), np.zeros(model.d, dtype=bool)
        self.has_line[lines], self.has_column[columns] = True, True
        self.fitted = None  # features for which it was found to serve, with any samples

    def fits(self, model, at) -> bool:
        """Tell whether it holds every surviving row and column, and not many columns more."""
        whole = self.lines.size == model.n
        if whole and self.fitted is not None and np.array_equal(self.fitted, at.keep):
            return True
        if not covers(model.n, model.d, self.has_line, self.has_column, self.columns.size, at.duals, at.keep):
            return False
        self.fitted = at.keep
        return True


class _Copies:
    """The last copy of one solve: where the dynamic rule decides little, it serves on.

    None is kept for another grid point. Sums over more columns than survive have other last digits, and the steps of a
    run that was resumed, or of a part of the grid, would be those of a copy that only the whole run has made.
    """

    def __init__(self):
        self._last = None

    def fitting(self, model, at) -> tuple[_Copy, int]:
        """Return a copy with all that survives, and the values touched to make it."""
        if self._last is not None and self._last.fits(model, at):
            return self._last, 0
        self._last, views = None, model.views  # an earlier copy must go before the next one is made
        if at.keep.all():
            # There is nothing to gain: the sweeps visit surviving samples only, wherever they are.
            whole = np.arange(model.n), np.arange(model.d), views.by_row, views.row_sqnorms
            self._last = _Copy(model, *whole)
            return self._last, 0
        survivors = at.duals.reshape(model.classes, -1).min(axis=0) <= 0  # samples, and a few more
        most = int(np.diff(views.by_row[2])[survivors].sum())
        in_force().check(12 * most, "a copy of the samples and features that survive", "use `solver=newton`")
        lines, columns, *part = gather_rows(
            views.by_row, views.by_column[0], views.dense, model.n, model.d, at.duals, at.keep
        )
        sqnorms = np.empty(lines.size)
        row_kernels.csr_squared_norms(part[0], part[2], sqnorms)
        self._last = _Copy(model, lines, columns, tuple(part), sqnorms)
        return self._last, part[0].size


class _Run:
    """Working arrays of one solve."""

    copy: _Copy
    converged: bool

    def __init__(self, reduced: SparseReduced, random: np.ndarray, warm: bool):
        self.model, self.alpha, self.at, self.copies = reduced.model, reduced.alpha, reduced.screened, _Copies()
        self.own_copy = False
        self.touched, self.epochs, self.random = 0, 0, random
        self.state, self.terms = np.array([0, FIRST_CHECK, FIRST_CHECK]), np.empty(3)
        start = reduced.start
        self._gather(start.theta, warm, start.u, start.u_slack)

    def _gather(self, start: np.ndarray, warm: bool, start_u, u_slack) -> None:
        """Go over to the rows and columns that survive, and form ``v`` from the dual point.

        ``start_u`` holds ``X' psi(start) / n`` wherever ``u_slack`` is 0; where the dual point is that of ``start`` it
        need not be summed again.
        """
        m, at = self.model, self.at
        self.copy = None  # type: ignore[assignment]  # an earlier copy must go before the next one is made
        self.copy, touched = self.copies.fitting(m, at)
        lines, columns = self.copy.lines, self.copy.columns
        self.full, self.theta = np.empty(start.size), np.empty(m.classes * lines.size)
        self.status = np.empty(self.theta.size, dtype=np.int8)
        self.order, self.fixed_L, moved = localise_duals(
            lines, m.n, m.classes, m.weights, at.duals, start, warm, self.full, self.status, self.theta
        )
        self.v, self.shrink, missing, places = localise_weights(
            columns, m.d, m.classes, at.keep, not moved, start_u, u_slack, m.beta
        )
        if missing.size:
            u = np.empty(at.keep.size)
            touched += sums.column_sums(m.views.by_column, m.n, missing, m.weigh(self.full), 1.0 / m.n, u)
            self.v[places] = u[missing]
        self.w = np.empty(self.v.size)
        self.touched += touched
        self._evaluate()

    def ended(self, tol: float, budget: Budget) -> bool:
        """Tell whether the run is at its tolerance, which is noted, or has used its budget up."""
        self.converged = self.gap <= tol * abs(self.primal)
        budget.note(self.gap, self.primal, self.touched)
        return self.converged or self.epochs >= budget.epochs or time.monotonic() > budget.deadline

    def descend(self, tol: float, budget: Budget, screen_below: float) -> None:
        """Sweep until the gap is small enough for the caller, in kernel calls of bounded length."""
        m, copy, state = self.model, self.copy, self.state
        limits = Limits(budget.epochs, VISITS, tol, screen_below, GROWTH, LAST_CHECK)
        while True:
            self.touched += descend(
                copy.part, m.views.dense, copy.samples, copy.columns.size, self.alpha, m.beta, self.shrink,
                copy.sqnorms, self.fixed_L, self.status, self.theta, self.v, self.w, self.order, self.random, limits,
                state, self.terms,
            )  # fmt: skip
            if state[1] == state[2]:  # the last sweep was followed by an evaluation
                break
            if time.monotonic() > budget.deadline:
                self._evaluate()
                break
        self.epochs = int(state[0])

    def _evaluate(self) -> None:
        m, copy = self.model, self.copy
        self.touched += evaluate(
            copy.part, m.views.dense, copy.samples, copy.columns.size, self.alpha, m.beta, self.shrink, self.fixed_L,
            self.status, self.theta, self.v, self.w, self.terms,
        )  # fmt: skip

    @property
    def primal(self) -> float:
        """Return the objective of the reduced problem at the last evaluation."""
        return float(self.terms[0])

    @property
    def gap(self) -> float:
        """Return the gap of the reduced problem at the last evaluation."""
        return float(self.terms[1])

    def point(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the dual variables and the weights of the full problem."""
        m, w = self.model, np.zeros(self.at.keep.size)
        spread(self.copy.lines, self.copy.columns, m.n, m.d, m.classes, self.theta, self.w, self.full, w)
        return self.full, w

    def screen(self) -> int:
        """Apply the gap balls of the current pair; return how many dual variables and features they decide."""
        m = self.model
        if not self.own_copy:
            self.at, self.own_copy = self.at.copy(), True
        point = self._certificate(*self.point())
        found = tighten(m, self.at, point, self.alpha)
        if found:
            self._gather(point.theta, True, point.u, point.u_slack)
        return found

    def _certificate(self, theta: np.ndarray, w: np.ndarray) -> SparseCertificate:
        """Return what the gap balls need of the current pair; a ``v`` kept over many steps has rounding errors."""
        m, view = self.model, self.model.views.by_column
        features = np.flatnonzero(self.at.keep)
        scores, u, psi = np.zeros(theta.size), np.zeros(w.size), m.weigh(theta)
        self.touched += sums.products(view, m.n, w, scores)
        self.touched += sums.column_sums(view, m.n, features, psi, 1.0 / m.n, u)
        primal, gap, apart_sq = (float(term) for term in self.terms)
        samples = primal, gap, 0.0, m.mass, apart_sq, 0, 0
        return m.pair(self.alpha, w, scores, theta, (u, np.zeros(w.size)), samples, features, psi=psi)


class AcceleratedSDCA(ProximalSDCA):
    """Accelerated proximal SDCA.

    Parameters
    ----------
    seed, warm
        See :class:`ProximalSDCA`.
    """

    name = "acc-sdca"

    def solve(self, reduced: SparseReduced, *, tol: float, budget: Budget, dynamic: bool, rank: int = 0) -> Solution:
        """Solve a reduced problem to a relative gap, see :class:`screenpath.solve.base.Solver`."""
        check(reduced)
        model, alpha = reduced.model, reduced.alpha
        kappa = float(model.views.row_sqnorms.max(initial=0.0)) / (model.gamma * model.n) - alpha
        if kappa <= 0.0:
            found = super().solve(reduced, tol=tol, budget=budget, dynamic=dynamic, rank=rank)
            found.solver = self.name
            return found
        run = _Run(reduced, random_state(self.seed, rank), self.warm or reduced.start.alpha == alpha)
        eta = sqrt(0.5 * alpha / (0.5 * alpha + kappa))
        screened, screen_below = 0, SCREEN_AGAIN * run.gap if reduced.screened.record.size else np.inf
        last, ahead, target = run.w.copy(), run.w.copy(), 0.5 * eta * run.gap
        while not run.ended(tol, budget):
            if dynamic and run.gap <= screen_below:
                found_now = run.screen()
                screened, screen_below = screened + found_now, SCREEN_AGAIN * run.gap
                if found_now:  # other features: the momentum begins anew
                    last, ahead, target = run.w.copy(), run.w.copy(), 0.5 * eta * run.gap
            if run.order.size == 0:
                break
            w = _step(run, kappa, ahead, target, budget)
            ahead = w + (1.0 - eta) / (1.0 + eta) * (w - last)
            last, target = w, (1.0 - 0.5 * eta) * target
        theta, w = run.point()
        return Solution(w, theta, run.epochs, run.touched, run.converged, screened, self.name)


def _step(run: _Run, kappa: float, ahead: np.ndarray, target: float, budget: Budget) -> np.ndarray:
    """Minimise the outer step's problem to a gap; return its weights, and leave the run with its own problem's gap."""
    alpha = run.alpha
    run.v += kappa * ahead
    run.alpha, run.state[1:] = alpha + kappa, FIRST_CHECK
    run.descend(0.0, budget, target)
    w = run.w.copy()
    run.v -= kappa * ahead
    run.alpha = alpha
    run._evaluate()
    return w


# -- kernels -----------------------------------------------------------------------------------------------------------


class Limits(NamedTuple):
    """Where sweeps end, and how often they are looked at.

    Attributes
    ----------
    most, values : int
        Return after this many sweeps in all, or once so many values were touched (possibly without an evaluation).
    tol, screen_below : float
        Return where the gap is at most ``tol`` times the primal value, or at most ``screen_below``.
    growth, longest : int
        The sweeps between two evaluations grow by ``1 / growth`` of them and 1 each time, to at most ``longest``.
    """

    most: int
    values: int
    tol: float
    screen_below: float
    growth: int
    longest: int


@kernel
def gather_rows(view, by_column, dense, n, d, status, keep):
    """Copy the rows with surviving dual variables and the columns with surviving weights.

    Of few columns of dense data only these are fetched, from ``by_column`` (the values column by column), and for all
    rows: the copy then serves other grid points with the same columns.

    Returns
    -------
    lines, columns : ndarray of int64
        Numbers of the copied samples and features.
    data, indices, indptr : ndarray
        CSR arrays of the copy; ``indices`` is empty where the data is dense.
    """
    data, indices, indptr = view
    alive = np.zeros(n, dtype=np.bool_)
    for t in range(status.size):
        if status[t] == 0:
            alive[t % n] = True
    rank = np.full(d, -1, dtype=np.int64)
    for f in range(keep.size):
        if keep[f] != 0:
            rank[f % d] = 0
    width = 0
    for j in range(d):
        if rank[j] == 0:
            rank[j] = width
            width += 1
    columns = np.empty(width, dtype=np.int64)
    for j in range(d):
        if rank[j] >= 0:
            columns[rank[j]] = j
    few = dense and 8 * width <= d  # else every cache line of a row holds a value that is wanted
    lines = np.arange(n) if few else np.flatnonzero(alive)
    ptr = np.zeros(lines.size + 1, dtype=np.int64)
    for k in range(lines.size):
        i = lines[k]
        count = 0
        if dense:
            count = width
        else:
            for p in range(at(indptr[i]), at(indptr[i + 1])):
                count += rank[at(indices[p])] >= 0
        ptr[k + 1] = ptr[k] + count
    out = np.empty(ptr[lines.size], dtype=data.dtype)
    where = np.empty(0 if dense else out.size, dtype=indices.dtype)
    if few:
        for j in range(width):
            column = by_column[columns[j] * n : (columns[j] + 1) * n]
            for k in range(lines.size):
                out[k * width + j] = column[k]
        return lines, columns, out, where, ptr
    for k in range(lines.size):
        i = lines[k]
        q = ptr[k]
        start = indptr[i]
        if dense:
            for j in range(width):
                out[q + j] = data[start + columns[j]]
            continue
        for p in range(at(start), at(indptr[i + 1])):
            j = rank[at(indices[p])]
            if j >= 0:
                out[q], where[q] = data[p], j
                q += 1
    return lines, columns, out, where, ptr


@kernel
def covers(n, d, has_line, has_column, width, status, keep):
    """Tell whether a copy holds every surviving row and column, and not many columns more."""
    for t in range(status.size):
        if status[t] == 0 and not has_line[t % n]:
            return False
    used = np.zeros(d, dtype=np.bool_)
    for f in range(keep.size):
        if keep[f] != 0:
            if not has_column[f % d]:
                return False
            used[f % d] = True
    count = 0
    for j in range(d):
        count += used[j]
    return width <= count + max(4, count // 8)


@kernel
def localise_duals(lines, n, classes, weights, status, start, warm, theta, local_status, local_theta):
    """Write the dual variables of a solve, in full and in the numbering of the copy.

    Parameters
    ----------
    lines : ndarray of int64
        Samples of the copy.
    start : ndarray of shape (classes * n,)
        Where survivors begin, 0 unless ``warm``.
    theta : ndarray of shape (classes * n,)
        Start of all, screened ones at their value, written.
    local_status, local_theta : ndarray of shape (classes * lines.size,)
        Written.

    Returns
    -------
    order : ndarray of int64
        Surviving dual variables.
    fixed_L : float
        Dual variables screened to 1, each with its sample's weight.
    moved : bool
        Whether any entry of ``theta`` differs from ``start``.
    """
    fixed_L, apart = 0.0, 0
    for t in range(theta.size):
        value = start[t] if warm else 0.0
        if status[t] != 0:
            value = 1.0 if status[t] > 0 else 0.0
        theta[t] = value
        fixed_L += weights[t % n] if status[t] > 0 else 0.0
        apart += value != start[t]
    k = lines.size
    order = np.empty(classes * k, dtype=np.int64)
    count = 0
    for c in range(classes):
        for i in range(k):
            t = c * n + lines[i]
            local_theta[c * k + i] = theta[t]
            local_status[c * k + i] = status[t]
            order[count] = c * k + i
            count += status[t] == 0
    return order[:count].copy(), fixed_L, apart > 0


@kernel
def localise_weights(columns, d, classes, keep, known, u, u_slack, beta):
    """Return ``v`` and the thresholds of a solve in the numbering of the copy.

    Parameters
    ----------
    columns : ndarray of int64
        Features of the copy; all surviving features are among them.
    known : bool
        Whether ``u``, of shape (classes * d,), holds ``X' psi(theta) / n`` wherever ``u_slack`` is 0.

    Returns
    -------
    v, shrink : ndarray of shape (classes * columns.size,)
        ``X' psi(theta) / n``, 0 for a screened weight; the threshold of every weight: ``beta``, or infinite for a
        screened one.
    missing, places : ndarray of int64
        Surviving features whose sum is not known, and where in ``v`` it belongs.
    """
    width = columns.size
    v, shrink = np.zeros(classes * width), np.empty(classes * width)
    missing, places = np.empty(v.size, dtype=np.int64), np.empty(v.size, dtype=np.int64)
    count = 0
    for c in range(classes):
        for j in range(width):
            f, k = c * d + columns[j], c * width + j
            if keep[f] == 0:
                shrink[k] = np.inf
                continue
            shrink[k] = beta
            if known and u_slack[f] == 0.0:
                v[k] = u[f]
            else:
                missing[count], places[count] = f, k
                count += 1
    return v, shrink, missing[:count], places[:count]


@kernel(leaf=True)
def spread(lines, columns, n, d, classes, local_theta, local_w, theta, w):
    """Write the dual variables and weights of the copy to those of the full problem."""
    k, width = lines.size, columns.size
    for c in range(classes):
        for i in range(k):
            theta[c * n + lines[i]] = local_theta[c * k + i]
        for j in range(width):
            w[c * d + columns[j]] = local_w[c * width + j]


@kernel(leaf=True)
def shuffle(order, random):
    """Permute in place; ``random`` is the state of the generator (xorshift64)."""
    for a in range(order.size - 1, 0, -1):
        random[0] ^= random[0] >> np.uint64(12)
        random[0] ^= random[0] << np.uint64(25)
        random[0] ^= random[0] >> np.uint64(27)
        draw = random[0] >> np.uint64(33)  # 31 bits
        b = np.int64((draw * np.uint64(a + 1)) >> np.uint64(31))
        order[a], order[b] = order[b], order[a]


@kernel
def shift(v, shrink):
    """Replace ``v`` by its soft threshold where no entry's is 0: while the signs hold, that is a mere shift.

    Returns
    -------
    shifts : ndarray
        What was subtracted; empty where ``v`` stays as it is.
    """
    shifts = np.empty(v.size)
    for f in range(v.size):
        if abs(v[f]) <= shrink[f]:
            return shifts[:0]
        shifts[f] = shrink[f] if v[f] > 0.0 else -shrink[f]
    v -= shifts
    return shifts


@kernel(fastmath=SUMS, leaf=True)
def sweep_dense(rows, labels, weights, n, gamma, alpha, shrink, sqnorms, theta, v, order):
    """Visit dual variables of the binary model over dense rows: :func:`sweep` without what only others need.

    The step of one row is added to ``v`` in the loop that forms the next row's margin. What bounds short rows is left
    out of their way: ``rows`` is read by two indices (a slice for each row takes a third of the time of 200 columns),
    and nothing is divided between a margin and the next loop.
    """
    by_n, by_alpha, by_alpha_n = 1.0 / n, 1.0 / alpha, 1.0 / (alpha * n)
    width = rows.shape[1]
    shifts = shift(v, shrink)
    shifted, moved, step, last = shifts.size > 0, 0, 0.0, 0
    for a in range(order.size):
        i = order[a]
        own, old, weight = labels[i], theta[i], weights[i]
        rate = 1.0 / (gamma + weight * sqnorms[i] * by_alpha_n)
        base = old + (1.0 - gamma * old) * rate
        rate *= own * by_alpha
        margin = 0.0
        if shifted and step != 0.0:
            for j in range(width):
                x = v[j] + step * rows[last, j]
                v[j] = x
                margin += rows[i, j] * x
        elif shifted:
            for j in range(width):
                margin += rows[i, j] * v[j]
        elif step != 0.0:
            for j in range(width):
                x = v[j] + step * rows[last, j]
                v[j] = x
                margin += rows[i, j] * (max(x - shrink[j], 0.0) + min(x + shrink[j], 0.0))
        else:
            for j in range(width):
                x = v[j]
                margin += rows[i, j] * (max(x - shrink[j], 0.0) + min(x + shrink[j], 0.0))
        value = min(max(base - rate * margin, 0.0), 1.0)
        theta[i] = value
        step, last = own * (value - old) * weight * by_n, i
        moved += value != old
    if step != 0.0:
        for j in range(width):
            v[j] += step * rows[last, j]
    if shifted:
        v += shifts
    return (order.size + moved) * width


@kernel(fastmath=SUMS, leaf=True)
def sweep(view, dense, samples, width, alpha, shrink, sqnorms, theta, v, order):
    """Visit the dual variables of ``order`` once (see :func:`descend`); return the values touched."""
    (data, indices, indptr), (labels, weights, n, classes, gamma, _, _, _) = view, samples
    if dense and classes == 1:
        rows = data.reshape((labels.size, width))
        return sweep_dense(rows, labels, weights, n, gamma, alpha, shrink, sqnorms, theta, v, order)
    k = labels.size
    touched = 0
    by_alpha, by_alpha_n = 1.0 / alpha, 1.0 / (alpha * n)
    shifts = shift(v, shrink) if classes == 1 else v[:0]  # of many classes some weight is always 0
    shifted = shifts.size > 0
    for a in range(order.size):
        t = order[a]
        c = t // k if classes > 1 else 0
        i = t - c * k
        own, weight = labels[i], weights[i]
        start, stop = indptr[i], indptr[i + 1]
        base = c * width
        margin = 0.0
        if dense:
            line, point, limits = data[start:stop], v[base : base + width], shrink[base : base + width]
            for j in range(width):
                x = point[j]
                margin += line[j] * (max(x - limits[j], 0.0) + min(x + limits[j], 0.0))
        elif shifted:
            for p in range(at(start), at(stop)):
                margin += data[p] * v[at(indices[p])]
        else:
            point, limits = v[base : base + width], shrink[base : base + width]
            for p in range(at(start), at(stop)):
                x, s = point[at(indices[p])], limits[at(indices[p])]
                margin += data[p] * (max(x - s, 0.0) + min(x + s, 0.0))
        if classes == 1:
            margin *= own
            curvature = weight * sqnorms[i]
        else:
            second = own * width
            margin = -margin
            values, places = data[start:stop], indices[start:stop]
            point, limits = v[second : second + width], shrink[second : second + width]
            for r in range(values.size):
                j = at(r) if dense else at(places[r])
                x, s = point[j], limits[j]
                margin += values[r] * (max(x - s, 0.0) + min(x + s, 0.0))
            curvature = 2.0 * weight * sqnorms[i]
        touched += stop - start
        value = theta[t] + (1.0 - margin * by_alpha - gamma * theta[t]) / (gamma + curvature * by_alpha_n)
        value = min(max(value, 0.0), 1.0)
        step = value - theta[t]
        if step == 0.0:
            continue
        theta[t] = value
        step = weight * step / n if classes > 1 else own * weight * step / n
        sign = -1.0 if classes > 1 else 1.0
        if dense:
            line, point = data[start:stop], v[base : base + width]
            for j in range(width):
                point[j] += sign * step * line[j]
        else:
            point = v[base : base + width]
            for p in range(at(start), at(stop)):
                point[at(indices[p])] += sign * step * data[p]
        if classes > 1:
            values, places, point = data[start:stop], indices[start:stop], v[own * width : (own + 1) * width]
            for r in range(values.size):
                point[at(r) if dense else at(places[r])] += step * values[r]
        touched += stop - start
    if shifted:
        v += shifts
    return touched


@kernel(fastmath=SUMS)
def evaluate(view, dense, samples, width, alpha, beta, shrink, fixed_L, status, theta, v, w, terms):
    """Write the weights, and to ``terms`` what a gap needs; return the values touched.

    Only rows with a surviving dual variable are read. The losses at the upper end are linear, and the sum of their
    margins is what ``n w.v`` holds beside the survivors' ``sum theta m``.

    Parameters
    ----------
    fixed_L : float
        Dual variables screened to 1, in the copy or not, each with its sample's weight.
    terms : ndarray of shape (3,)
        Primal objective, gap and ``||theta - theta(w)||^2`` of the reduced problem. The penalty has no share in the
        gap, ``w`` being the point of the dual.
    """
    (data, indices, indptr), (labels, weights, n, classes, gamma, _, _, _) = view, samples
    k = labels.size
    w_sq, w_l1, w_v = 0.0, 0.0, 0.0
    for f in range(w.size):
        x = v[f]
        value = (max(x - shrink[f], 0.0) + min(x + shrink[f], 0.0)) / alpha
        w[f] = value
        w_sq += alpha * value * value  # not w^2 alone: see kernels.sparse.feature_terms
        w_l1 += abs(value)
        w_v += value * x
    scores = np.empty(classes)
    loss, slack, apart_sq, linear = 0.0, 0.0, 0.0, 0.0
    touched = 0
    single = dense and classes == 1  # without the loops over classes: three quarters of the time of short rows
    rows = data[: k * width if single else 0].reshape((k if single else 0, width))
    for i in range(rows.shape[0]):
        if status[i] != 0:
            continue
        total = 0.0
        for j in range(width):
            total += rows[i, j] * w[j]
        touched += width
        margin = labels[i] * total
        t = 1.0 - margin
        value, weight = theta[i], weights[i]
        best = min(max(t / gamma, 0.0), 1.0)
        loss += weight * (best * (t - 0.5 * gamma * best))
        slack += weight * ((best - value) * (t - 0.5 * gamma * (best + value)))
        apart_sq += weight * ((best - value) * (best - value))
        linear += weight * value * margin
    for i in range(0 if single else k):
        alive = False
        for c in range(classes):
            alive = alive or status[c * k + i] == 0
        if not alive:
            continue
        start, stop = indptr[i], indptr[i + 1]
        for c in range(classes):
            total = 0.0
            if dense:
                line, block = data[start:stop], w[c * width : (c + 1) * width]
                for j in range(width):
                    total += line[j] * block[j]
            else:
                block = w[c * width : (c + 1) * width]
                for p in range(at(start), at(stop)):
                    total += data[p] * block[at(indices[p])]
            scores[c] = total
        touched += stop - start
        own, weight = labels[i], weights[i]
        for c in range(classes):
            if status[c * k + i] != 0:
                continue
            margin = own * scores[0] if classes == 1 else scores[own] - scores[c]
            t = 1.0 - margin
            value = theta[c * k + i]
            best = min(max(t / gamma, 0.0), 1.0)
            loss += weight * (best * (t - 0.5 * gamma * best))
            slack += weight * ((best - value) * (t - 0.5 * gamma * (best + value)))
            apart_sq += weight * ((best - value) * (best - value))
            linear += weight * value * margin
    loss += fixed_L * (1.0 - 0.5 * gamma) - (n * w_v - linear)
    terms[0] = loss / n + 0.5 * w_sq + beta * w_l1
    terms[1] = max(slack / n, 0.0)
    terms[2] = apart_sq
    return touched


@kernel(leaf=True)
def descend(view, dense, samples, width, alpha, beta, shrink, sqnorms, fixed_L, status, theta, v, w, order, random,
            limits, state, terms):  # fmt: skip
    """Sweep over the surviving dual variables in random order, in place, and evaluate the gap from time to time.

    Parameters
    ----------
    view : tuple of ndarray
        Copied rows, ``k`` lines of ``width`` columns; labels and weights of ``samples``, and ``sqnorms``, are theirs.
    samples : Samples
    shrink : ndarray of shape (classes * width,)
        Threshold of every weight: ``beta``, or infinite for a screened one.
    fixed_L : float
        See :func:`evaluate`.
    status, theta : ndarray of shape (classes * k,)
        ``theta`` is updated where ``status`` is 0.
    v, w : ndarray of shape (classes * width,)
        ``X' psi(theta) / n``, updated; the weights ``S_shrink(v) / alpha``, written with each evaluation.
    order : ndarray of int64
        Dual variables to visit; permuted in place.
    random : ndarray of uint64 of shape (1,)
        State of the generator, updated.
    limits : Limits
    state : ndarray of int64 of shape (3,)
        Sweeps so far, sweeps until the next evaluation, sweeps between two of them; updated.
    terms : ndarray of shape (3,)
        See :func:`evaluate`.

    Returns
    -------
    touched : int
        Values touched.
    """
    touched = 0
    while state[0] < limits.most and touched < limits.values:
        shuffle(order, random)
        touched += sweep(view, dense, samples, width, alpha, shrink, sqnorms, theta, v, order)
        state[0] += 1
        state[1] -= 1
        if state[1] > 0 and state[0] < limits.most:
            continue
        touched += evaluate(view, dense, samples, width, alpha, beta, shrink, fixed_L, status, theta, v, w, terms)
        state[2] = min(limits.longest, state[2] + state[2] // limits.growth + 1)
        state[1] = state[2]
        if terms[1] <= limits.tol * abs(terms[0]) or terms[1] <= limits.screen_below:
            break
    return touched


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    view = np.ones(2), np.array([0, 1], dtype=np.int32), np.array([0, 1, 2], dtype=np.int64)
    labels, status = np.array([1, -1], dtype=np.int64), np.zeros(2, dtype=np.int8)
    a, keep, random = np.ones(2), np.ones(2, dtype=np.int8), np.ones(1, dtype=np.uint64)
    whole, has = np.arange(2), np.ones(2, dtype=np.bool_)
    gather_rows(view, view[0], False, 2, 2, status, keep)
    covers(2, 2, has, has, 2, status, keep)
    theta, v, w, terms = a.copy(), a.copy(), a.copy(), np.zeros(3)
    order, _, _ = localise_duals(whole, 2, 1, a, status, a, True, a.copy(), status, theta)
    localise_weights(whole, 2, 1, keep, True, a, a, 1.0)
    samples, limits = Samples(labels, a, 2, 1, 0.5, a, 0.0, 1.0), Limits(1, 1, 0.0, 0.0, 4, 50)
    evaluate(view, False, samples, 2, 1.0, 1.0, a, 0.0, status, theta, v, w, terms)
    state = np.array([0, 1, 1])
    descend(view, False, samples, 2, 1.0, 1.0, a, a, 0.0, status, theta, v, w, order, random, limits, state, terms)
    spread(whole, whole, 2, 2, 1, theta, w, a.copy(), a.copy())
