"""What coordinate descent knows between its sweeps: the gap of what is alive is that of all survivors."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.catalogue.losses import SVM
from screenpath.kernels.solve import descent
from screenpath.kernels.solve.descent import KNOWN, STALE, TOLD
from screenpath.rows.memory import MemoryRows
from screenpath.solve.base import Budget
from screenpath.solve.cd import Descent, draws
from tests.conftest import two_classes


def begun(sparse: bool, C: float = 0.3) -> Descent:
    X, y = two_classes(n=300, d=8, seed=3)
    model = SVM.model(MemoryRows(sp.csr_array(X) if sparse else X), y)
    reduced = model.reduce(C, model.nothing_screened(), model.start(C))
    return Descent(reduced, draws(0, 0))


def of_all(run: Descent) -> tuple[float, float]:
    """Return gap and primal value of the reduced problem, all of its rows formed anew."""
    r, w = run.reduced, run.w
    margins = r.products(w)
    t, pull = r.c - margins, w @ w - run.alpha @ margins
    loss = np.maximum(r.lo * t, r.hi * t).sum()
    return w @ w - pull + loss - r.c @ run.alpha, 0.5 * w @ w - pull + loss + r.offset


@pytest.mark.parametrize("sparse", [False, True])
def test_the_gap_of_what_is_alive_is_that_of_all(sparse):
    run, budget, sizes = begun(sparse), Budget(10**6, np.inf), []
    for _ in range(400):
        alive, before = run.alive.size, run.touched
        done = run.check(1e-7, True)
        gap, primal = run.gap, run.primal
        every = of_all(run) if run.alive.size == alive else None  # what it screens moves w
        if every is not None:
            assert gap == pytest.approx(every[0], rel=1e-9, abs=1e-12 * primal)
            assert primal == pytest.approx(every[1], rel=1e-12)
            assert run.touched - before == alive
            sizes.append(alive)
        if done:
            break
        run.sweep(3, True, budget)
    assert done and min(sizes) < 0.5 * max(sizes)
    assert np.array_equal(run.alive, np.setdiff1d(np.arange(300), np.flatnonzero(run.decided)))


def test_a_screened_row_on_the_wrong_side_is_seen_in_all_rows_alone():
    """The control: the two gaps are not the same by construction."""
    run, budget = begun(False), Budget(10**6, np.inf)
    while not run.check(1e-6, True):
        run.sweep(3, True, budget)
    assert run.screened > 0
    run.w[:] = -run.w
    run.check(0.0, False)
    assert of_all(run)[0] > run.gap + 1e-3


@pytest.mark.parametrize("sparse", [False, True])
def test_margins_are_known_to_be_those_of_w_or_not(sparse):
    """Screening moves w as sweeps do, unless what it fixes is at its end already."""
    run, budget, seen = begun(sparse), Budget(10**6, np.inf), set()
    assert run.point.now[TOLD] == STALE
    for k, dynamic in enumerate((False, True) * 20):
        run.sweep(1, False, budget)
        assert run.point.now[TOLD] == STALE
        alive, r = run.alive, run.reduced
        if k > 10:  # off their ends, to which screening brings some of them back
            inside = 1e-6 * (r.hi - r.lo)[alive]
            held = np.clip(run.alpha[alive], r.lo[alive] + inside, r.hi[alive] - inside)
            descent.place(run.task, run.point, alive, held)
        before, w = run.screened, run.w.copy()
        if run.check(1e-9, dynamic):
            break
        moved = run.point.now[TOLD] != KNOWN
        seen.add((run.screened > before, moved))
        assert moved == (not np.array_equal(run.w, w))
        off = np.abs(run.point.margins[alive] - run.reduced.products(run.w)[alive]).max()
        assert moved or off < 1e-12
    assert {(False, False), (True, True)} <= seen
