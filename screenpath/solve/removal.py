"""Every leave-one-out solution of a box model, each with a proof, for the price of a few rows each.

Leaving out one row moves ``w`` by so little that only rows near their kinks can notice: ``kernels.solve.removal``
follows them. It needs a solution whose members are on their kinks (:mod:`screenpath.solve.polish`). Behind a kernel,
rows are vectors in the span of those that are followed (:class:`Spanned`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from screenpath.errors import DataError
from screenpath.kernels.problem import box as box_kernels
from screenpath.kernels.solve import removal as kernels
from screenpath.kernels.solve import removal_proof as proofs
from screenpath.numbers import sparse as sp
from screenpath.numbers.rounding import UNIT, gamma
from screenpath.problem.sharp import Apart, difference, recomputed
from screenpath.regions.geometry import KernelPoint

SPAN = 1e-13  # part of the largest kernel value from which what a row adds to the span of others counts
LEAST = 1e-150  # norm by which products are divided
SNAP = 1e-11  # part of its box that a dual variable is moved by to the end, where rounding has left it beside
AT_ONCE, EFFORT = 256, 10**8  # rows left out in one call at most, and operations of a piece of each: a signal waits
NEAR = 256  # rows of the first band in addition to four times the members
MORE = 512  # members that may come on the way
GROWTH = 4  # of a band that was too short
ROOM = 2**30  # bytes that the rows of a band may take
APART = 20.0  # times its error bound is a row's distance from its kink at least, where a way leads in circles
WIDE = 1e-6  # width of an interval of best intercepts, from which it is no rounding
NOTHING, BOUND, LOCAL, OPEN = range(4)  # by what a row is decided


class Solution:
    """A certified pair of a box model as removals see it: signless rows, ordered by how near their kinks are.

    Arrays have the shape (N,): ``t``, ``errors`` of it, ``alpha``, ``low``, ``high`` in units of C.
    """

    def __init__(self, model, certificate):
        self.model, self.certificate, C = model, certificate, certificate.C
        self.kernel = isinstance(certificate.point, KernelPoint)
        signs = self.signs = model.rows.signs if self.kernel else model.signs
        self.bands: dict[int, Near] = {}
        self.free = certificate.intercept is not None
        b = certificate.intercept if self.free else 0.0
        self.forms = signs * certificate.point.products + b
        self.t = signs * (model.c - certificate.point.products) - b
        exact, up = C * (signs * certificate.theta), signs > 0
        self.low, self.high = C * np.where(up, model.lo, -model.hi), C * np.where(up, model.hi, -model.lo)
        near = SNAP * (self.high - self.low)
        self.alpha = np.where(exact - self.low <= near, self.low, np.where(self.high - exact <= near, self.high, exact))
        snapped = np.abs(self.alpha - exact) * (1.0 + 4.0 * UNIT)
        self.errors = self._errors(snapped) + 4.0 * UNIT * (np.abs(self.t) + np.abs(self.forms))
        # From where the lengths of rows are measured, and what a move of the intercept is divided by beside them.
        self.mean, self.lengths, self.lift = np.zeros(model.rows.d), model.norms, 0.0
        if self.free:
            self.lift = model.typical or 1.0
        if self.free and not self.kernel:
            self.mean, self.lengths, _ = model.around
        self.rounding = self._rounding(snapped)
        # Upper bound of the sum of the rows' shares of the gap.
        self.gap = (C * certificate.slack + float(snapped @ (np.abs(self.t) + self.errors))) * (1.0 + 1e-12)
        if self.kernel:  # whose w moves with the dual variables
            self.gap += 2.0 * float((self.high - self.low) @ model.norms) * float(snapped @ model.norms)
        # Upper bound of the gap between ``w`` and the dual variables as they are here.
        self.whole_gap = (self.gap + 0.5 * self.rounding.distance**2) * (1.0 + 1e-12)
        # Rounding may show in a form, of long rows.
        off = float(model.norms.max(initial=0.0)) * np.sqrt(2.0 * self.whole_gap)
        self.coarse = not self.kernel and bool(off > proofs.NARROW)
        if self.coarse:
            self._sharpen(snapped)

    def _errors(self, snapped: np.ndarray) -> np.ndarray:
        """Return what distances from kinks are off by; behind a kernel, for the ``w`` of ``alpha``."""
        model, pair = self.model, self.certificate
        if self.kernel:
            return model.form_error(pair) + float(snapped @ model.norms) * model.norms
        slope, floor = model.errors_of(pair)
        return slope * model.norms + floor

    def _sharpen(self, snapped: np.ndarray) -> None:
        """Bound the gap and the distance of ``w`` from the sum over rows by sums in twice the precision."""
        model, pair, index = self.model, self.certificate, np.flatnonzero(self.inside | self.wrong)
        t, errors, end = self.t.copy(), self.errors.copy(), self.rounding.end
        own, off = recomputed(model, pair, index)
        t[index], errors[index] = self.signs[index] * own, off + 2.0 * UNIT * np.abs(own)
        up, down = self.high - self.alpha, self.alpha - self.low
        shares = np.maximum(np.maximum(up * (t + errors), down * (errors - t)), 0.0)
        ends = 2.0 * end * np.maximum(np.abs(self.low), np.abs(self.high)) * (np.abs(t) + errors)
        self.gap = min(self.gap, float((shares + (shares > 0.0) * ends).sum()) * (1.0 + gamma(t.size + 8)))
        moved = float((snapped + end * np.abs(self.alpha)) @ model.norms) * (1.0 + gamma(t.size + 8))
        near = pair.C * pair.shift + moved + Apart(model, pair).distance(pair.point.vector)
        self.rounding = self.rounding._replace(distance=min(self.rounding.distance, near * (1.0 + 1e-12)))

    def takers(self, up: bool, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return all room on one side, and the rows that best take over a part: nearest kinks, then most room."""
        room, cost = self.high - self.alpha if up else self.alpha - self.low, np.abs(self.t) + self.errors
        able, apart = np.flatnonzero(room > 2.0 * self.rounding.residue), np.where(cost > 2.0 * self.errors, cost, 0.0)
        return room, able[np.lexsort((-room[able], apart[able]))[:count]]

    def others(self, changes, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which dual variables of other rows change without a row, and their values, in units of C.

        ``changes``, csr_array of shape (1, n), are those of the sums of the dual variables of each row.
        """
        rows = np.setdiff1d(changes.indices, row)
        total = self.alpha[rows] + changes.toarray()[0, rows]
        if not self.partner:
            return rows, total
        total = total + self.alpha[rows + self.partner]
        index = np.concatenate([rows, rows + self.partner])
        values = np.concatenate([np.maximum(total, 0.0), np.minimum(total, 0.0)])
        kept = values != self.alpha[index]
        return index[kept], values[kept]

    def _rounding(self, snapped: np.ndarray) -> proofs.Rounding:
        pair, bounds, sizes = self.certificate, self.model.bounds, np.abs(self.alpha)
        end = 2.0 * UNIT + self.model.inexact
        lost, most = (1.0 + 1e-12) * snapped, float(np.einsum("i,i", sizes, self.model.norms))
        residue = pair.C * pair.residue + end * float(sizes.sum()) + float(lost.sum()) if self.free else 0.0
        if self.kernel:
            return proofs.Rounding(UNIT, end, pair.C * pair.shift + end * most, residue, 0.0, 0.0)
        distance = pair.C * (pair.sum_error + pair.shift) + end * most + float(np.einsum("i,i", lost, self.model.norms))
        distance += 4.0 * UNIT * float(np.linalg.norm(pair.point.vector)) + float(bounds[box_kernels.TINY])
        distance += float(np.linalg.norm(pair.point.vector - pair.C * pair.total)) * (1.0 + 1e-12)
        shift = float(np.linalg.norm(self.mean)) * (1.0 + 1e-12)
        return proofs.Rounding(float(bounds[box_kernels.PRODUCT]), end, distance, residue, shift, 0.0)

    @cached_property
    def inside(self) -> np.ndarray:
        """Return which rows are between the ends of their boxes."""
        return (self.low < self.alpha) & (self.alpha < self.high)

    @cached_property
    def wrong(self) -> np.ndarray:
        """Return which rows are at the other end of their box than their distance from the kink asks for."""
        low, high = self.alpha == self.low, self.alpha == self.high
        return ((self.t > self.errors) & low | (self.t < -self.errors) & high) & (self.low < self.high)

    @cached_property
    def ordered(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows with weight, nearest to their kinks first, and how far ``w`` has to go for each."""
        lengths = np.hypot(self.lengths, self.lift) * (1.0 + 1e-12) + self.model.bounds[box_kernels.HIDDEN]
        ratio = np.maximum(np.abs(self.t) - self.errors, 0.0) / np.maximum(lengths, LEAST) * (1.0 - 1e-12)
        ratio[self.inside | self.wrong] = -1.0  # first of all
        present = np.flatnonzero(self.low < self.high)
        order = present[np.argsort(ratio[present], kind="stable")]
        ratio = np.maximum(ratio, 0.0)
        return order, ratio[order]

    def rows(self, index: np.ndarray):
        """Return a copy of signless rows, an array or a csr_array; behind a kernel their products with all rows."""
        if self.kernel:
            return self.model.rows.blocks.block(self.model.rows.place(index))
        taken = self.model.rows.take(index % self.model.rows.n, np.ones(index.size))
        return sp.csr_array(taken, shape=(index.size, self.model.rows.d)) if isinstance(taken, tuple) else taken

    def recomputed(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return behind a kernel what :func:`problem.sharp.recomputed` does, for the ``w`` of ``alpha``."""
        model, weights = self.model, self.signs * self.alpha
        sums, off = model.rows.precise_sums(index, weights[None])
        kinks, rest = (one[index] for one in model.kinks_of(self.certificate))
        spread = float(np.abs(weights) @ model.norms) * (1.0 + gamma(weights.size + 8))
        return difference(kinks, *sums[0]) + rest, off * spread * model.norms[index] + 4.0 * UNIT * np.abs(rest)

    def near(self, size: int) -> Near:
        """Return the first rows, kept for further calls."""
        if size not in self.bands:
            self.bands[size] = Near(self, size)
        return self.bands[size]

    @property
    def partner(self) -> int:
        """Return how far the other dual variable of a row is, 0 if it has only one."""
        return self.model.rows.n if self.model.mirrored else 0


class Near:
    """The first rows of a solution's order, dense, on the columns that occur in them, and their members."""

    def __init__(self, of: Solution, count: int):
        order, ratio = of.ordered
        self.of, self.index = of, order[:count]
        count = self.index.size
        self.spanned = Spanned(of.model.rows, self.index) if of.kernel else None
        rows: Any = of.rows(self.index) if self.spanned is None else self.spanned.X
        columns = None
        if sp.issparse(rows):
            columns = np.unique(rows.indices)
            if 8 * columns.size * count > ROOM:
                what = f"the {count:,} rows nearest to their kinks have {columns.size:,} features"
                raise DataError(f"{what}: too many for leave-one-out", "use a smaller C, or folds: screenpath cv")
            rows = rows[:, columns].toarray()
        self.columns = columns
        if self.spanned is None:
            self.shift = of.mean if columns is None else of.mean[columns]
            rows = rows - self.shift
        self.place = np.full(of.t.size, -1)
        self.place[self.index] = np.arange(self.index.size)
        behind = self.spanned is not None
        t, errors = of.recomputed(self.index) if behind else recomputed(of.model, of.certificate, self.index)
        t, errors = of.signs[self.index] * t, errors + 2.0 * UNIT * np.abs(t)
        alpha, low, high = (one[self.index] for one in (of.alpha, of.low, of.high))
        squares = np.einsum("ij,ij->i", rows, rows)
        beyond = float(ratio[count]) if count < ratio.size else np.inf
        self.band = kernels.Band(rows, t, alpha, low, high, squares, ratio[:count], errors, t, beyond, of.lift)
        self.inside = np.flatnonzero(of.inside[self.index])
        size = min(int(np.count_nonzero(ratio[:count] == 0.0)), rows.shape[1] + 2) + min(rows.shape[1] + 2, MORE) + 2
        (gram, inverse), (products, share, rest) = np.empty((2, size, size)), np.empty((3, size))
        (t, alpha, speed), (moved, along) = np.empty((3, count)), np.empty((2, rows.shape[1]))
        members, state = np.empty(size, dtype=np.int64), np.empty(count, dtype=np.int8)
        self.work = kernels.Work(members, gram, inverse, products, share, rest, t, alpha, speed, moved, along, state)

    @cached_property
    def apart(self) -> kernels.Band:
        """Return the band with rows at an end beside their kinks, each a little different: none meet at one point."""
        band, low = self.band, self.band.alpha == self.band.low
        off = APART * band.errors * (1.0 + np.random.default_rng(0).random(band.t.size))
        beside = np.where(low, np.minimum(band.t, -off), np.maximum(band.t, off))
        return band._replace(start=np.where(low | (band.alpha == band.high), beside, band.t))

    @cached_property
    def inside_face(self) -> kernels.Face:
        return self.face(self.inside)

    def face(self, members: np.ndarray) -> kernels.Face:
        """Return the system of those members, places in the band, that are independent."""
        work = self.work
        k = kernels.faced(self.band, members, np.zeros(self.band.X.shape[1]), work)
        return kernels.Face(work.members[:k].copy(), work.gram[:k, :k].copy(), work.inverse[:k, :k].copy())

    def found(self, size: int) -> proofs.Found:
        """Return space for what is found of so many removals."""
        most = min(self.index.size, self.inside.size + MORE)
        change, down, up, gap, distance, offset = np.full((6, size), np.nan)
        pieces, read, count = np.zeros((3, size), dtype=np.int64)
        places, changes = np.empty((size, most), dtype=np.int64), np.empty((size, most))
        status = np.zeros(size, dtype=np.int8)
        return proofs.Found(change, down, up, gap, distance, offset, pieces, read, status, count, places, changes)

    def whole_shift(self) -> np.ndarray:
        """Return what was subtracted from the rows, on all columns."""
        out = np.zeros(self.of.model.rows.d)
        out[slice(None) if self.columns is None else self.columns] = self.shift
        return out

    def moves(self, moves: np.ndarray, rows: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """Return moves of ``w`` on all columns: on others than those of the band, only the rows that go count."""
        if self.columns is None:
            return moves
        out = -parts[:, None] * self.of.rows(rows).toarray()
        out[:, self.columns] = moves
        return out

    def gone(self, rows: np.ndarray) -> kernels.Gone:
        """Return rows to leave out, one at a time."""
        of = self.of
        twins = self.place[(rows + of.partner) % of.t.size] if of.partner else np.full(rows.size, -1)
        outside, middle = np.zeros((2, rows.size))
        if self.spanned is not None:
            taken, outside = self.spanned.of(rows)
            squares = np.square(of.model.norms[rows])
            return kernels.Gone(taken, self.place[rows], twins, of.alpha[rows], squares, outside, middle)
        taken = of.rows(rows)
        if self.columns is not None:
            others = np.ones(taken.shape[1], dtype=bool)
            others[self.columns] = False
            rest = taken[:, others]
            outside = sp.row_squares(rest) * (1.0 + gamma(rest.shape[1] + 4))
            middle = rest @ of.mean[others]
            taken = taken[:, self.columns].toarray()
        taken = taken - self.shift
        squares = (np.einsum("ij,ij->i", taken, taken) + outside) * (1.0 + gamma(taken.shape[1] + 4))
        return kernels.Gone(
            np.ascontiguousarray(taken), self.place[rows], twins, of.alpha[rows], squares, outside, middle
        )


class Spanned:
    """Rows behind a kernel, ``index``, as vectors ``X`` of few numbers that have the same products."""

    def __init__(self, behind, index: np.ndarray):
        if 16 * index.size**2 > ROOM:
            what = f"{index.size:,} rows are near their kinks"
            raise DataError(f"{what}: too many for leave-one-out", "use a smaller C, or folds: screenpath cv")
        self.behind, self.blocks, self.index = behind, behind.blocks, behind.place(index)
        self.sizes = np.maximum(self.blocks.sizes[self.index], LEAST)
        K = self.blocks.block(self.index, self.index)
        factor, self.pivots, rank = np.zeros((index.size, 1)), np.zeros(0, dtype=np.int64), 0
        if index.size:
            found, order, rank, _ = lapack.dpstrf(K, tol=SPAN * float(K.diagonal().max()), lower=1)
            factor = np.tril(found)[:, : max(rank, 1)]
            self.pivots = order[:rank].astype(np.int64) - 1
            factor[order - 1] = factor.copy()
        self.X = np.ascontiguousarray(factor)
        self.error = self._off(K, self.X, self.sizes)  # of a product of two rows, over their norms

    def _off(self, K: np.ndarray, X: np.ndarray, sizes: np.ndarray) -> float:
        """Return by how much products of rows ``X`` with those of the span differ from ``K`` over their norms."""
        apart = np.abs(X @ self.X.T - K) / sizes[:, None] / self.sizes
        return (float(apart.max(initial=0.0)) + self.blocks.error + gamma(X.shape[1] + 16)) * (1.0 + 1e-9)

    def of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return vectors of other rows, and their squared norms outside of the span; ``error`` counts them from now."""
        rows = self.behind.place(rows)
        K = self.blocks.block(rows, self.index)
        X = np.zeros((rows.size, self.X.shape[1]))
        if self.pivots.size:
            X[:] = solve_triangular(self.X[self.pivots], K[:, self.pivots].T, lower=True).T
        sizes = np.maximum(self.blocks.sizes[rows], LEAST)
        self.error = max(self.error, self._off(K, X, sizes))
        return X, np.maximum(np.square(sizes) - np.einsum("ij,ij->i", X, X), 0.0)


@dataclass(frozen=True)
class Removed:
    """Solutions without one sample each. Arrays have the shape (m,), one entry for each sample left out.

    ``low <= x.w + b <= high`` holds for the sample and every solution without it; ``values`` is the form of the one
    found. Where only a bound was formed, it is the middle of both; where nothing was, nan.
    """

    samples: np.ndarray  # int64: their numbers
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    how: np.ndarray  # int8: NOTHING, BOUND, LOCAL, OPEN
    gap: np.ndarray  # upper bound of the duality gap of the problem without the sample
    distance: np.ndarray  # by which w moves
    changes: Any  # csr_array of shape (m, n): by how much the sum over rows has more of each row; from it w follows
    offsets: np.ndarray  # by how much the intercept moves
    middles: np.ndarray  # part of this, and of the values: to the middle of several best ones, from that of the gap

    @property
    def error(self) -> np.ndarray:
        """Return by how much each of the values may be off."""
        return np.maximum(self.high - self.values, self.values - self.low)

    def unproven(self, labels: bool) -> np.ndarray:
        """Tell of which rows the label, or the value of a regression, is not proven."""
        return ~((self.low > 0.0) | (self.high < 0.0)) if labels else ~np.isfinite(self.error)


def leave_out(of: Solution, samples: np.ndarray, bounded: bool = False) -> Removed:
    """Leave out samples, one at a time. If ``bounded``, those whose sign a bound decides are not looked at closer."""
    n, rows = of.model.rows.n, samples.astype(np.int64)
    if of.partner:
        rows = np.where(of.alpha[rows] == 0.0, rows + n, rows)
    alpha, forms, errors = of.alpha[rows], of.forms[rows], of.errors[rows]
    down, up = _around(of, rows)
    how = np.where(alpha == 0.0, NOTHING, LOCAL).astype(np.int8)
    found = Removed(
        samples, forms.copy(), forms - down - errors, forms + up + errors, how, np.full(rows.size, of.gap),
        np.zeros(rows.size), None, *np.zeros((2, rows.size)),
    )  # fmt: skip
    if bounded:
        _bounded(of, rows, found)
    local = np.flatnonzero(how == LOCAL)
    return replace(found, changes=_followed(of, rows, local, found))


def _around(of: Solution, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how far forms of rows without part in ``w`` may be from the best, see ``kernels.solve.removal_proof``."""
    away, lengths = of.rounding.distance, of.model.norms[rows]
    if not of.free:
        return 2 * (reach(of.gap + 0.5 * away * away, away, np.inf, lengths, 0.0),)
    residue, cost, ends = of.rounding.residue, np.abs(of.t) + of.errors, []
    for up in (True, False):
        far, (room, able) = np.full(rows.size, np.inf), of.takers(up, 3)
        for e in able.tolist():  # of three one is neither the row nor its other dual variable
            length, off = of.lengths[rows] + of.lengths[e], away + residue * (of.lengths[e] + of.rounding.shift)
            least = of.gap + residue * cost[e] + 0.5 * off * off
            one = reach(least, off, room[e] - residue, length, cost[e])
            other = (rows - e) % of.model.rows.n != 0
            far[other] = np.fmin(far, one)[other]
        ends.append(far)
    return ends[0], ends[1]


def reach(gap, away, room, length, cost):
    """Return how far forms of rows may be from the best ones, by what takes over up to ``room`` of a dual variable at a
    ``cost``: the ``length`` is that of a row, or of the difference of two; see ``kernels.solve.removal_proof``.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.minimum(room, np.sqrt(2.0 * gap) / np.maximum(length, LEAST))
        loss = np.where(gap > 0.0, gap / step, 0.0)
        return (cost + away * length + 0.5 * step * length**2 + loss) * (1.0 + 1e-12)


def _bounded(of: Solution, rows: np.ndarray, found: Removed) -> None:
    """Write what is known of forms if the row's dual variable is set to 0, and nothing else is moved.

    A row's form moves away from where its dual variable pulls it (Jaakkola and Haussler 1999), and without a free
    intercept by at most ``alpha_i ||x_i||^2``; both are in the ball of the pair that is left.
    """
    alpha, forms, errors = of.alpha[rows], of.forms[rows], of.errors[rows]
    open_rows, away, lengths = found.how == LOCAL, of.rounding.distance, of.model.norms[rows]
    size = np.abs(alpha)
    with np.errstate(divide="ignore", invalid="ignore"):
        against = (of.gap + 0.5 * away * away) / size + errors
    low, high = np.where(alpha > 0.0, -np.inf, forms - against), np.where(alpha > 0.0, forms + against, np.inf)
    if not of.free:
        radius = lengths * np.sqrt(of.gap + 0.25 * (size * lengths + away) ** 2) * (1.0 + 1e-12)
        middle, radius = forms - 0.5 * alpha * lengths**2, radius + 0.5 * away * lengths + errors
        radius += 1e-12 * size * lengths**2
        low, high = np.maximum(low, middle - radius), np.minimum(high, middle + radius)
    sure = open_rows & ((low > 0.0) | (high < 0.0))
    found.how[sure], found.low[sure], found.high[sure] = BOUND, low[sure], high[sure]
    found.values[sure] = np.clip(forms, low, high)[sure]


def in_bands(of: Solution, left: np.ndarray, call) -> np.ndarray:
    """Call ``call(near, face, band, which) -> status`` for removals, in growing bands; return those that stay open."""
    size, still = NEAR + 4 * int(np.count_nonzero(of.inside)), []
    while left.size:
        near, short = of.near(size), []
        face = near.inside_face
        at_once = min(AT_ONCE, 1 + EFFORT // (face.members.size * (face.members.size + near.band.X.shape[1]) + 1))
        for start in range(0, left.size, at_once):
            which = left[start : start + at_once]
            for band in (near.band, near.apart):  # the second for rows of which many are on one point
                status = call(near, face, band, which)
                short.append(which[status == kernels.SHORT])
                which = which[(status != kernels.SHORT) & (status != kernels.PROVEN)]
                if not which.size:
                    break
            still.append(which)
        left, size = np.concatenate(short), GROWTH * size
    return np.concatenate([left[:0], *still])


def _followed(of: Solution, rows: np.ndarray, local: np.ndarray, found: Removed):
    """Follow removals; write what is found, and return how the parts of the rows change."""
    n, parts = of.model.rows.n, [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))]
    used: dict[Near, list] = {}
    for one in (found.values, found.low, found.high):
        one[local] = np.nan

    def call(near, face, band, which):
        gone, out = near.gone(rows[which]), near.found(which.size)
        rounding = of.rounding if near.spanned is None else of.rounding._replace(gram=near.spanned.error)
        proofs.removals(band, face, gone, rounding, near.work, out)
        out.status[(out.status == kernels.PROVEN) & (out.gap >= (of.certificate.primal or np.inf))] = kernels.ENDLESS
        good = np.flatnonzero(out.status == kernels.PROVEN)
        parts.extend(_written(of, near, out, which, good, rows, found))
        used.setdefault(near, []).append(which[good])
        return out.status

    left = in_bands(of, local, call)
    found.how[left] = OPEN
    parts.extend(_of_one_side(of, rows, left, found))
    whose, which, change = (np.concatenate(one) for one in zip(*parts, strict=True))
    changes = sp.csr_array((change, (whose, which % n)), shape=(rows.size, n))
    for near, some in used.items() if of.free and not of.kernel else ():  # the intercept of the rows as they are
        which = np.concatenate(some)
        found.offsets[which] -= (changes @ of.model.rows.margins(near.whole_shift()))[which]
    return changes


def _of_one_side(of: Solution, rows: np.ndarray, left: np.ndarray, found: Removed):
    """Write removals that leave a free intercept one class: ``w = 0``, any ``b`` beyond kinks; return changes."""
    size, away = of.high - of.low, of.rounding.distance
    for to in left.tolist() if of.free else ():
        others = (np.arange(size.size) != rows[to]) & (size > 0.0)
        side = float(np.any(of.high[others] > 0.0)) - float(np.any(of.low[others] < 0.0))
        if side == 0.0:
            continue
        e = int(np.argmax(np.where(others, size, 0.0)))  # takes over the row's part in the bound
        kink = float((side * of.signs * of.model.c)[others].max())
        beyond = WIDE * (1.0 + abs(kink))  # so that rounding leaves no share in the gap
        value = side * (kink + beyond)
        lengths = of.model.norms[rows[to]] + of.model.norms[e]
        off = 2.0 * beyond + of.errors[rows[to]] + reach(0.5 * away**2, away, size[e], lengths, 0.0)
        low, high = sorted((value - side * off, side * np.inf))
        found.how[to], found.values[to], found.low[to], found.high[to] = LOCAL, value, low, high
        found.gap[to], found.distance[to] = 0.5 * away**2, np.sqrt(of.certificate.point.sqnorm)
        found.offsets[to] = value - of.certificate.intercept
        changed = np.flatnonzero(of.alpha)
        yield np.full(changed.size, to), changed, -of.alpha[changed]


def _written(of: Solution, near: Near, out, which: np.ndarray, good: np.ndarray, rows: np.ndarray, found: Removed):
    """Write the results of a call, and return the changed parts: whose removal, which row, by how much."""
    to, e = which[good], of.errors[rows[which[good]]]
    value = of.forms[rows[to]] + out.change[good]
    low, high = value - out.down[good] - e, value + out.up[good] + e
    kept = np.arange(out.places.shape[1]) < out.count[good][:, None]
    if of.free:  # where several intercepts are best, the one between: then no row is between the ends of its box
        wide = np.isfinite(high - low) & (high - low > WIDE * (1.0 + np.abs(value)))
        wide[wide] = ~_on_a_kink(near, rows[to[wide]], out, good[wide], kept[wide])
        middle = value.copy()
        middle[wide] = 0.5 * low[wide] + 0.5 * high[wide]
        found.middles[to] = middle - value
        found.offsets[to], value = out.intercept[good] + found.middles[to], middle
    found.values[to] = value
    found.low[to], found.high[to], found.gap[to] = low, high, out.gap[good]
    found.distance[to] = out.distance[good]
    yield np.repeat(to, out.count[good]), near.index[out.places[good][kept]], out.changes[good][kept]
    yield to, rows[to], -of.alpha[rows[to]]


def _on_a_kink(near: Near, rows: np.ndarray, out, good: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Tell of removals whether a dual variable of another row is between the ends of its box, beyond rounding."""
    band = near.band
    alpha, spare = np.tile(band.alpha, (rows.size, 1)), SNAP * (band.high - band.low)
    which = np.nonzero(kept)[0]
    alpha[which, out.places[good][kept]] += out.changes[good][kept]
    inside = (band.low + spare < alpha) & (alpha < band.high - spare)
    return (inside & (near.index != rows[:, None])).any(axis=1)
