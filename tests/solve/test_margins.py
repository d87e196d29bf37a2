"""Rows that Newton's kernel leaves unread are on the side where they were, wherever w has gone; and it says how far."""

import numpy as np
import pytest

from screenpath.kernels import kernel
from screenpath.kernels.problem.box import Errors
from screenpath.kernels.rows.barrier import Team, make_board
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.solve import margins as kernels
from screenpath.kernels.solve.margins import table_of
from screenpath.kernels.solve.newton import How, minimise
from tests.width import wide

NOTHING = Errors(1e-12, 1e-15, 0.0, 0.0)


def room_of(G, c, hi, w, alpha):
    k, d = G.shape
    room = kernels.workspace(k, d, False)
    room.vectors[:] = c, np.zeros(k), hi, np.linalg.norm(G, axis=1), alpha, c - G @ w, np.zeros(k), np.zeros(k)
    room.lists[kernels.WHERE], room.lists[kernels.ALIVE] = np.arange(k), np.arange(k)
    room.marks[kernels.SIGNS] = 1
    return room, Team(table_of(1, d), make_board(1), 0)


@kernel
def sizes(vectors, k, sparse, team):
    return kernels.sizes(vectors, k, sparse, team)


@kernel
def look(X, count, n, w, bias, odometer, every, room, team):
    return kernels.look(X, count, n, w, bias, odometer, every, room, team)


def wandering(seed, norms=1.0):
    """Move w to and fro; return rows on the wrong side, rows nearer to their kink than said, and the share read."""
    rng = np.random.default_rng(seed)
    G, c, w = rng.normal(size=(200, 5)), rng.normal(size=200), rng.normal(size=5)
    room, team = room_of(G, c, np.ones(200), w, np.zeros(200))
    room.vectors[kernels.NORMS] *= norms
    sizes(room.vectors, 200, False, team)
    t, due, odometer, wrong, near, read = room.vectors[kernels.T], room.vectors[kernels.DUE], 0.0, 0, 0, 0
    for _ in range(30):
        step = rng.normal(size=5) * 10.0 ** rng.uniform(-4.0, -1.0)
        w, odometer = w + step, odometer + np.linalg.norm(step) * (1.0 + 1e-12)
        read += look(matrix_of(G), 200, 0, w, 0.0, odometer, False, room, team)
        exact, fresh = c - G @ w, room.marks[kernels.FRESH] == 1
        assert t[fresh] == pytest.approx(exact[fresh], abs=1e-13)
        wrong += np.count_nonzero(t * exact < 0.0)
        near += np.count_nonzero((due - odometer) * room.vectors[kernels.NORMS] > np.abs(exact) + 1e-12)
    look(matrix_of(G), 200, 0, w, 0.0, odometer, True, room, team)
    assert t == pytest.approx(c - G @ w, abs=1e-13)
    return wrong, near, read / 6000


@pytest.mark.parametrize("seed", range(wide(20, 1000)))
def test_unread_rows_are_on_their_side(seed):
    wrong, near, read = wandering(seed)
    assert wrong == near == 0 and read < 0.5


def test_norms_that_are_too_small_are_noticed():
    found = [wandering(seed, 0.25)[:2] for seed in range(20)]
    assert min(sum(one) for one in zip(*found, strict=True)) > 0


def solved(seed, tol, screen, exact, norms=1.0):
    """Return what is left of a problem's room, its result and its data; ``norms`` is what those of rows are times."""
    rng = np.random.default_rng(seed)
    G, c, hi = rng.normal(size=(400, 4)), rng.normal(size=400) + 0.5, np.full(400, 10.0 ** rng.uniform(-2.0, 1.0))
    w, alpha = np.zeros(4), np.where(c > 0.0, hi, 0.0)
    room, team = room_of(G, c, hi, w, alpha)
    room.vectors[kernels.NORMS] *= norms
    how = How(tol, 500, screen, NOTHING, exact)
    _, _, count, gap, primal = minimise(matrix_of(G), 400, 0.0, G.T @ alpha, w, how, 0.0, room, team)
    return room, count, gap / primal, c - G @ w


def fixed_wrongly(seed, exact, norms=1.0):
    """Return how many rows a solve fixes, and by how much their dual variables are off, over their boxes."""
    best = solved(seed, 1e-13, False, exact)[0].vectors
    room, count, gap, _ = solved(seed, 1e-6, True, exact, norms)  # at 1e-4 the ball of each 30th problem fixes nothing
    assert gap <= 1e-6
    fixed = np.setdiff1d(np.arange(400), room.lists[kernels.ALIVE, :count])
    off = np.abs(room.vectors[kernels.ALPHA] - best[kernels.ALPHA])[fixed].max(initial=0.0)
    return fixed.size, off / best[kernels.HI, 0]


@pytest.mark.parametrize("seed", range(wide(10, 200)))
@pytest.mark.parametrize("exact", [False, True])
def test_a_solve_fixes_no_row_wrongly_and_returns_products_where_they_are_asked_for(seed, exact):
    count, off = fixed_wrongly(seed, exact)
    assert count > 0 and off < 1e-6
    if exact:
        room, _, _, t = solved(seed, 1e-13, False, True)
        assert room.vectors[kernels.T] == pytest.approx(t, abs=1e-12)


def test_a_ball_that_is_too_small_fixes_rows_wrongly():
    """A control: with norms that are too small, rows seem farther from their kinks than they are."""
    assert sum(fixed_wrongly(seed, False, 0.1)[1] > 1e-3 for seed in range(20)) > 4


def astray(seed, far, screen):
    """Return how far ``v`` is from its rows, over the sizes of all, and over the root of what the gap may be."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 40))  # systems in d, and in the rows between the ends
    G, c, hi = rng.normal(size=(300, d)) + far, rng.normal(size=300) + 0.5, np.full(300, 10.0 ** rng.uniform(-2.0, 1.0))
    w, alpha, tol = np.zeros(d), np.where(c > 0.0, hi, 0.0), 1e-8
    room, team = room_of(G, c, hi, w, alpha)
    v, how = G.T @ alpha, How(tol, 500, screen, NOTHING, False)
    _, _, _, gap, primal = minimise(matrix_of(G), 300, 0.0, v, w, how, 0.0, room, team)
    assert 0.0 <= gap <= tol * primal
    away = np.linalg.norm(v - G.T @ room.vectors[kernels.ALPHA])
    return away / (np.linalg.norm(G, axis=1) @ hi), away / np.sqrt(tol * primal)


@pytest.mark.parametrize("far", [0.0, 30.0])
@pytest.mark.parametrize("seed", range(wide(5, 200)))
def test_a_sum_that_has_followed_its_rows_is_near_them_and_exact_where_a_ball_is_put_around_it(seed, far):
    assert astray(seed, far, True)[0] < 1e-15 and astray(seed, far, False)[1] < 0.01


@pytest.mark.parametrize("seed", [12, 86, 110])
def test_the_target_on_the_way_does_not_decide_how_far_a_sum_may_stray(seed):
    """A primal value of a working set may be a million times the optimum: by it, the gap was off by the target."""
    assert astray(seed, 30.0, False)[1] < 0.01


def test_a_sum_that_has_followed_its_rows_is_not_exact_by_itself():
    assert max(astray(seed, 30.0, False)[0] for seed in range(20)) > 2e-15
