"""For which C of a range the side of each held-out row is proven: between solved steps, too.

A proof at one C (``kernels.solve.removal_sides``) is a number ``e = P(w') - D(alpha) < 0``. Between ``C0 < C1`` take
the mean of both pairs, as :mod:`screenpath.problem.between` does: the losses are convex, so::

    e(s) <= (1 - s) e0 + s e1 + s (1 - s) K,   K = (C1 - C0) (xi0 - xi1) - 1/2 ||w1 - w0||^2 - 1/2 ||v1 - v0||^2,

with the other rows' losses ``xi`` at ``w'`` and the sums over rows ``v``. Where it is below 0, the side is proven.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from screenpath.errors import DataError
from screenpath.kernels.solve import removal_sides as kernels
from screenpath.kernels.solve.removal import PROVEN
from screenpath.numbers.rounding import gamma
from screenpath.problem.between import open_shares
from screenpath.solve.removal import ROOM, Near, Solution, in_bands, leave_out

NUMBERS = 8  # arrays of one number a row that a solution keeps


@dataclass
class Proofs:
    """Proofs of rows at values of C. Arrays have the shape (m,), vectors (m, d); not proven: ``below`` is inf."""

    C: np.ndarray
    side: np.ndarray  # int8: of the row's form
    below: np.ndarray  # upper bound of ``e``
    gap: np.ndarray  # the same for the pair where the row's dual variable is 0, whose ``v`` is ``w``
    xi: np.ndarray  # xi, xi_error: the losses of the other rows at ``w``
    xi_error: np.ndarray
    away: np.ndarray  # bound on the norm of the error of ``v``
    w: np.ndarray
    v: np.ndarray

    @classmethod
    def joined(cls, several: list[Proofs]) -> Proofs:
        return cls(*(np.concatenate([getattr(one, name.name) for one in several]) for name in fields(cls)))


@dataclass(frozen=True)
class Held:
    """What is proven of n held-out rows over the steps ``C``, shape (k,): sides, -1 or 1, and 0 where nothing is."""

    C: np.ndarray
    at: np.ndarray  # int8, shape (k, n): at the steps
    whole: np.ndarray  # int8, shape (k - 1, n): from a step to the next
    # of what is left: row, segment, side, and from where to where in C; shape (parts, 5)
    parts: np.ndarray
    solved: int  # local solutions

    @property
    def unproven(self) -> np.ndarray:
        """Return the share of (row, logarithm of C) for which nothing is proven, by segment, shape (k - 1,)."""
        widths, n = np.diff(np.log(self.C)), self.at.shape[1]
        shares = np.count_nonzero(self.whole == 0, axis=1) / n
        segments = self.parts[:, 1].astype(np.int64)
        known = np.log(self.parts[:, 4] / self.parts[:, 3]) / widths[segments] / n
        return np.maximum(shares - np.bincount(segments, known, widths.size), 0.0)


def held(certificates: list, model) -> Held:
    """Return what is proven along polished certificates of a box model with increasing C."""
    k, n = len(certificates), model.rows.n
    if 8 * model.rows.d * n > ROOM:
        raise DataError(f"{model.rows.d:,} features are too many for every C", "use the steps of the path: `steps=all`")
    nodes = _Nodes(certificates, model)
    at, whole = np.zeros((k, n), dtype=np.int8), np.zeros((k - 1, n), dtype=np.int8)
    before = None
    for step in range(k):
        of = nodes[step]
        now = (of, *_plain(of))
        at[step] = np.where(now[1] < 0.0, now[2], 0)
        if before is not None:
            start, end = _between_steps(before, now)
            whole[step - 1] = np.where((start > end) & (before[2] == now[2]), now[2], 0)
        before = now
    rows = np.flatnonzero((whole == 0).any(axis=0))
    search = _Search(nodes, rows, at, whole)
    search.run()
    for step in range(k):  # a form too near 0 for a proof that carries over may be proven by itself
        left = np.flatnonzero(at[step] == 0)
        if left.size:
            found = leave_out(nodes[step], left)
            at[step, left] = np.where(found.low > 0.0, 1, np.where(found.high < 0.0, -1, 0))
    parts = np.concatenate([np.empty((0, 5)), *search.parts])
    return Held(np.array([one.C for one in certificates]), at, whole, parts, int(search.known.C.size))


class _Nodes:
    """Solutions at the steps; kept if memory allows."""

    def __init__(self, certificates: list, model):
        self.certificates, self.model = certificates, model
        self._kept: dict[int, Solution] = {}
        self._keeps = NUMBERS * 8 * model.size * len(certificates) < ROOM

    def __getitem__(self, step: int) -> Solution:
        of = self._kept.get(step) or Solution(self.model, self.certificates[step])
        if self._keeps:
            self._kept[step] = of
        return of


def _plain(of: Solution) -> tuple[np.ndarray, np.ndarray]:
    """Return ``e`` and the sides of all rows where ``w'`` is the model of all rows: only the row's dual variable moves,
    and with a free intercept that of a row near its kink the other way.
    """
    n = of.model.rows.n
    below, side = np.full(n, np.inf), np.sign(of.forms[:n]).astype(np.int8)
    for sign in (1, -1):
        rows = np.flatnonzero(side == sign)
        if not of.free:
            below[rows] = _moved(of, rows, np.inf, 0.0, 0.0)
            continue
        room, able = of.takers(sign > 0, 1)
        for e in able.tolist():
            others = rows[rows != e]
            below[others] = _moved(of, others, room[e], float(abs(of.t[e]) + of.errors[e]), float(of.lengths[e]))
    return below, side


def _moved(of: Solution, rows: np.ndarray, room: float, cost: float, other: float) -> np.ndarray:
    """Return ``e`` of rows, the best of each for its own dual variable; ``room``, ``cost`` (distance from the kink) and
    length are those of another row that takes over.
    """
    forms, alpha, residue = of.forms[rows], of.alpha[rows], of.rounding.residue
    lengths, away = of.lengths[rows] + other, of.rounding.distance + residue * (other + of.rounding.shift)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.minimum(np.nan_to_num(np.abs(forms) / lengths**2, posinf=0.0), room - residue)
    beta, off = alpha - np.sign(forms) * step, step * lengths * (1.0 + 1e-12) + away
    size = of.gap + off * off + np.abs(beta * forms) + (step + residue) * cost
    below = of.gap + 0.5 * off * off + (step + residue) * cost + beta * forms + np.abs(beta) * of.errors[rows]
    return np.where(step > residue, below + 1e-12 * size, np.inf)


def _own_losses(of: Solution) -> np.ndarray:
    """Return each row's loss."""
    n, t = of.model.rows.n, of.t
    return np.maximum(of.high * t, of.low * t)[:n] / of.certificate.C


def _between_steps(first: tuple, second: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Return where between two steps ``e`` may not be below 0, by the numbers of :func:`_plain`."""
    (a, e0, _), (b, e1, _) = first, second
    pair, later = a.certificate, b.certificate
    step, moved = later.C - pair.C, np.linalg.norm(later.point.vector - pair.point.vector)
    losses = _own_losses(a) - _own_losses(b)
    boxes = (a.high - a.low)[: losses.size] / pair.C
    error = pair.error + later.error + 1e-14 * (pair.xi + later.xi) + boxes * (a.errors + b.errors)[: losses.size]
    bend = step * (pair.xi - later.xi - losses + error) - 0.5 * (moved * (1.0 - 1e-12)) ** 2
    return _open(e0, e1, bend)


def _open(e0, e1, bend) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``s`` from where to where ``(1 - s) e0 + s e1 + s (1 - s) bend`` may be >= 0, start > end if none."""
    unknown = ~np.isfinite(e0 + e1)
    e0, e1 = np.where(unknown, 1.0, e0), np.where(unknown, 1.0, e1)
    size = np.maximum(np.maximum(np.abs(e0), np.abs(e1)), np.abs(bend))
    root = np.sqrt(np.where(size > 0.0, size, 1.0))
    start, end = open_shares(root, root, np.ones(root.size), e0 + root**2, e1 + root**2, np.maximum(bend, 0.0))
    return np.where(unknown, 0.0, start), np.where(unknown, 1.0, end)


class _Search:
    """Local proofs for rows of which :func:`_plain` leaves something open: at its ends, at its middle and so on."""

    def __init__(self, nodes: _Nodes, rows: np.ndarray, at: np.ndarray, whole: np.ndarray):
        self.nodes, self.rows, self.at, self.whole = nodes, rows, at, whole
        self.slot = np.full((rows.size, at.shape[0]), -1)  # of the proof of a row at a step
        none, d = np.empty(0), np.empty((0, nodes.model.rows.d))
        self.known = Proofs(none, none.astype(np.int8), none, none, none, none, none, d, d)
        self.parts: list = []

    def run(self) -> None:
        edges = np.diff(np.pad((self.whole[:, self.rows] == 0).astype(np.int8), ((1, 1), (0, 0))), axis=0)
        (who, start), (_, end) = np.nonzero(edges.T > 0), np.nonzero(edges.T < 0)
        while who.size:
            self._solve(np.concatenate([who, who]), np.concatenate([start, end]))
            left = self._tested(who, start, end)
            who, start, end = who[left], start[left], end[left]
            near = end - start == 1
            self._keep_parts(who[near], start[near])
            who, start, end = who[~near], start[~near], end[~near]
            middle = (start + end) // 2
            who, start, end = np.tile(who, 2), np.concatenate([start, middle]), np.concatenate([middle, end])

    def _solve(self, who: np.ndarray, steps: np.ndarray) -> None:
        """Prove the sides of rows at steps, where this has not been done."""
        new = np.unique((steps * self.rows.size + who)[self.slot[who, steps] < 0])
        steps, who = np.divmod(new, self.rows.size)
        count, several = self.known.C.size, [self.known]
        for step in np.unique(steps).tolist():
            some = who[steps == step]
            found = local(self.nodes[step], self.rows[some])
            self.slot[some, step] = count + np.arange(some.size)
            count += some.size
            several.append(found)
            self.at[step, self.rows[some]] = np.where(found.below < 0.0, found.side, self.at[step, self.rows[some]])
        self.known = Proofs.joined(several)

    def _tested(self, who: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Write what is proven from a step to another; tell what is not."""
        a, b = self.slot[who, start], self.slot[who, end]
        side = self.known.side[a]
        first, last = self._open(a, b, side)
        sure = (first > last) & (side == self.known.side[b])
        for row, one, other, value in zip(*(x[sure].tolist() for x in (self.rows[who], start, end, side)), strict=True):
            self.whole[one:other, row], self.at[one : other + 1, row] = value, value
        return ~sure

    def _open(self, a: np.ndarray, b: np.ndarray, side: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where between two proofs of the same rows a side may be another one."""
        of, ends = self.known, []
        for at in (a, b):
            same = of.side[at] == side
            ends.append((np.where(same, of.below[at], of.gap[at]), np.where(same[:, None], of.v[at], of.w[at])))
        (e0, v0), (e1, v1) = ends
        moved, dual_moved = (np.linalg.norm(y - x, axis=1) for x, y in ((of.w[a], of.w[b]), (v0, v1)))
        size = 1e-14 * (np.linalg.norm(of.w[a], axis=1) + np.linalg.norm(of.w[b], axis=1))
        moved = np.maximum(moved * (1.0 - 1e-12) - size, 0.0)
        dual_moved = np.maximum(dual_moved * (1.0 - 1e-12) - size - of.away[a] - of.away[b], 0.0)
        bend = (of.C[b] - of.C[a]) * (of.xi[a] - of.xi[b] + of.xi_error[a] + of.xi_error[b])
        return _open(e0, e1, bend - 0.5 * moved**2 - 0.5 * dual_moved**2)

    def _keep_parts(self, who: np.ndarray, start: np.ndarray) -> None:
        """Keep what is proven of a segment between neighbours."""
        a, b = self.slot[who, start], self.slot[who, start + 1]
        C0, C1 = self.known.C[a], self.known.C[b]
        for side in (-1, 1):
            first, last = self._open(a, b, np.full(a.size, side, dtype=np.int8))
            one = np.full(a.size, side, dtype=np.float64)
            for s0, s1 in ((np.zeros(a.size), first), (last, np.ones(a.size))):
                low, high = C0 + s0 * (C1 - C0) * (1.0 + 1e-12), C0 + s1 * (C1 - C0) * (1.0 - 1e-12)
                low, high = np.where(s0 == 0.0, C0, low), np.where(s1 == 1.0, C1, high)
                there = (s1 > s0) & (high > low) & (first <= last)
                self.parts.append(np.column_stack([self.rows[who], start, one, low, high])[there])


def local(of: Solution, rows: np.ndarray) -> Proofs:
    """Return the proofs of some rows at one step."""
    model, pair, C, m = of.model, of.certificate, of.certificate.C, rows.size
    found = Proofs(np.full(m, C), np.zeros(m, dtype=np.int8), *np.full((2, m), np.inf), *np.zeros((3, m)),
                   *np.tile(pair.point.vector, (2, m, 1)))  # fmt: skip
    alpha, forms, errors = of.alpha[rows], of.forms[rows], of.errors[rows]
    box, own = of.high[rows] - of.low[rows], np.maximum(of.high * of.t, of.low * of.t)[rows]

    def call(near: Near, face, band, which):
        d = band.X.shape[1]
        (side, status), move, dual = np.zeros((2, which.size), dtype=np.int8), *np.empty((2, which.size, d))
        below, gap, loss, off, away, change, offset, part = np.empty((8, which.size))
        out = kernels.Sides(side, below, gap, loss, off, away, change, offset, part, move, dual, status)
        space = kernels.Space(np.empty(band.t.size), np.empty(d))
        kernels.sides(band, face, near.gone(rows[which]), forms[which], of.rounding, near.work, space, out)
        good = np.flatnonzero(out.status == PROVEN)
        to, moved = which[good], near.moves(out.move[good], rows[which[good]], alpha[which[good]])
        found.w[to] += moved
        found.v[to] += near.moves(out.dual_move[good], rows[to], out.part[good])
        found.side[to], found.below[to], found.gap[to] = out.side[good], out.below[good], out.gap[good]
        found.below[to] += np.abs(alpha[to] - out.part[good]) * errors[to]
        found.away[to] = out.away[good]
        length = np.linalg.norm(moved, axis=1)
        losses = C * pair.xi - moved @ pair.point.vector + out.loss[good] - own[to] + alpha[to] * out.change[good]
        error = C * pair.error + out.loss_error[good] + box[to] * errors[to]
        error += length * (of.rounding.distance + gamma(model.rows.d + 8) * (np.linalg.norm(pair.point.vector) + 1.0))
        error += of.rounding.residue * (np.abs(out.offset[good]) + of.rounding.shift * length)
        size = of.lengths[rows[to]] * length + np.abs(out.offset[good])
        error += 1e-14 * (C * pair.xi + own[to] + np.abs(alpha[to]) * size)
        found.xi[to], found.xi_error[to] = losses / C, error / C * (1.0 + 1e-12)
        return out.status

    in_bands(of, np.arange(m), call)
    return found
