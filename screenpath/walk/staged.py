"""A compiled walk on rows that are not in memory: for some steps it copies those that may come to their kinks.

A *stage* has a limit of the odometer of ``w``'s moves, see ``kernels.walk.deadlines``: rows whose deadline is earlier
are read. Up to the limit no other row can come to its kink, so the steps until then need the copies alone, and have the
numbers of a walk that could read any row. A shard without such a row is not opened. Of the other rows only the deadline
and the dual variable are known, and their part of every sum over rows, which steps update.
"""

from __future__ import annotations

import numpy as np

from screenpath.errors import ResourceError
from screenpath.kernels.problem import box, partition
from screenpath.kernels.rows.barrier import Team, make_board
from screenpath.kernels.rows.matrix import listed_products, matrix_of
from screenpath.kernels.walk import compiled, deadlines
from screenpath.kernels.walk import compiled_types as kernels
from screenpath.problem import unread
from screenpath.walk.compiled import TOUCHED, CompiledWalk, make_workspace

SPAN, WIDER = 2.0, 4.0  # how far a stage goes, times what the last step has moved and reached; if that is passed, more
SOON = 1.0  # times the same: a step does not begin nearer to the limit
STAGES = 4  # for one step, before it is left to the loop
NEVER = -1  # sums over all rows are not computed anew
FREE = ("kinks", "lo", "hi", "width", "spread")  # what a free intercept has of each row


class StagedWalk(CompiledWalk):
    """Walks the steps of one grid, one in each call; parameters as of :class:`CompiledWalk`."""

    def __init__(self, model, grid, screening, options, aim: float):
        super().__init__(model, grid, screening, options, aim)
        self.length, self.threads = 1, 1
        self.index, self.copies = np.empty(0, dtype=np.int64), np.empty((0, model.rows.d))

    def _workspace(self, blocks: int) -> tuple:
        return ()

    def _known(self, reference, C: float, more) -> tuple:
        if reference.updates >= self.model.fresh_unread:  # the loop computes the sum over all rows anew
            return None, reference
        return super()._known(reference, C, more)

    def _call(self, points, settings, reference, rank: int, lazy):
        try:
            return self._take_step(points, settings, reference, lazy)
        except ResourceError:  # what the loop solves for may be less than what may come to its kink
            return 0, True

    def _take_step(self, points, settings, reference, lazy) -> tuple:
        """Take one step from copies of the rows that may come to their kinks, in a new stage where there is need."""
        state, read, found, refused = lazy.state, 0, 0, True
        state[deadlines.LEAST], state[deadlines.RATIO] = lazy.sizes.min(), lazy.ratios.max()
        lazy.points[0] = np.append(points.w[0], reference.intercept or 0.0)
        begin, near = state[deadlines.ODOMETER], state[deadlines.REACH] + state[deadlines.MOVE]
        far, passed = SPAN * near, not SOON * near <= state[deadlines.LIMIT] - begin < np.inf
        for _ in range(STAGES):
            if passed:
                state[deadlines.LIMIT] = begin + far
                self._copy(np.flatnonzero(~(lazy.deadlines >= state[deadlines.LIMIT])))
                read += self.index.size
                lazy.deadlines[self.index] = self._copied(lazy, points).deadlines
            index = np.flatnonzero(~(lazy.deadlines >= state[deadlines.LIMIT]))
            self._copy(index)  # read already, but where a run is resumed
            some = self._copied(lazy, points)
            read += index.size
            done, worse, theta = self._step(points, settings, reference, some)
            passed = some.state[deadlines.PASSED] > 0.0
            if not passed:
                found, refused = done, worse
                break
            far = max(WIDER * far, SPAN * (some.state[deadlines.ODOMETER] + some.state[deadlines.REACH] - begin))
        points.numbers[1, TOUCHED] += read
        if found:
            points.theta[-1] = points.theta[0]
            points.theta[-1, index] = theta
            lazy.deadlines[index] = some.deadlines
            state[: deadlines.LIMIT] = some.state[: deadlines.LIMIT]
            state[deadlines.VERSIONS] = 1.0
            lazy.points[0] = np.append(points.w[1], points.numbers[1, kernels.INTERCEPT])
        return found, refused

    def _copy(self, index: np.ndarray) -> None:
        """Have copies of these rows, in memory; those that are there are kept."""
        place = np.minimum(np.searchsorted(self.index, index), max(self.index.size - 1, 0))
        there = self.index[place] == index if self.index.size else np.zeros(index.size, dtype=bool)
        if there.all():
            self.index, self.copies = index, self.copies[place]
            return
        rows, touched = self.model.rows, self.model.rows.touched
        copies, new = np.empty((index.size, rows.d)), index[~there]
        copies[~there], copies[there] = rows.dense(new), self.copies[place[there]]
        self.index, self.copies, rows.touched = index, copies, touched

    def _copied(self, lazy, points) -> deadlines.Lazy:
        """Return what is known of the copied rows, their margins at the present ``w``."""
        index, state, d = self.index, lazy.state, self.model.rows.d
        measure = lazy.sizes[index], lazy.units, lazy.mean, lazy.ratios[index], lazy.metric, lazy.lost
        some = deadlines.nothing(index.size, unread.room_of(d), d, measure, lazy.most)
        some.state[deadlines.ODOMETER] = state[deadlines.ODOMETER]
        listed_products(matrix_of(self.copies), np.arange(index.size), points.w[0], some.margins)
        problem, theta = self._some(index), points.theta[0, index]
        box.sign(some.margins, problem.signs, 0, index.size)
        deadlines.set_deadlines(problem, points.w[0], float(lazy.points[0, -1]), theta, some)
        some.state[:] = state
        some.state[deadlines.VERSIONS], some.state[deadlines.PASSED] = 1.0, 0.0
        return some

    def _some(self, index) -> kernels.Problem:
        p = self.problem
        edges = np.searchsorted(index, p.edges)
        c, lo, hi, norms, signs = (v[index] for v in (p.c, p.lo, p.hi, p.norms, p.signs))
        return kernels.Problem(edges, c, lo, hi, norms, signs, p.bounds)

    def _step(self, points, settings, reference, some) -> tuple:
        """Take the step; return what ``box_walk`` does, and the dual variables of the copied rows."""
        index, m, d, more = self.index, self.index.size, self.model.rows.d, int(self.free is not None)
        problem, theta = self._some(index), np.repeat(points.theta[:1, index], len(points.theta), axis=0)
        n_R, n_L, _ = partition.box_ends(theta[0], problem.lo, problem.hi, np.empty(m, dtype=np.int8), 0, m)
        others = reference.n_R - n_R, reference.n_L - n_L
        some.state[[deadlines.OTHERS_R, deadlines.OTHERS_L]] = others
        free = self.free
        if free is not None:
            free = free._replace(**{name: getattr(free, name)[index] for name in FREE})
        own = points._replace(theta=theta, margins=np.empty((2, 0)), decided=np.zeros(m, dtype=np.int8))
        changes, room, table = make_workspace(m, d, False, problem.edges.size - 1, more)
        found, refused = compiled.box_walk(
            matrix_of(self.copies), problem, free or (), some, own, settings._replace(fresh_every=NEVER), changes, room,
            Team(table, make_board(1), 0),
        )  # fmt: skip
        if found:
            now = points.numbers[1]
            now[kernels.COUNTS : kernels.COUNTS + 2] += others
            ends, decided = now[kernels.COUNTS : kernels.COUNTS + 2], now[kernels.SCREENED : kernels.SCREENED + 2]
            _, *shares = partition.shares(float(self.model.size), *ends, *decided)
            now[kernels.SCREENED + 2], now[kernels.RATIO], now[kernels.RATIO + 1] = shares
        return found, refused, theta[-1]
