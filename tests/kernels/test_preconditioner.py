"""The preconditioner of text is the matrix that it says it is; conjugate gradients need few products with it."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.kernels.problem.box import Errors
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.rows.rows import csr_products
from screenpath.kernels.solve import pool as pools
from screenpath.kernels.solve import preconditioner, survey
from screenpath.kernels.solve.cd import Iterate, Task
from screenpath.kernels.solve.face import System, face_step
from screenpath.kernels.solve.pool import ADDED, COLUMNS, FREQUENT, SEATS, STEPS

RIDGE = 1e-3


def text(n, d, seed=0):
    """Return rows with frequent columns, of which every tenth stands a second time but for one value."""
    rng = np.random.default_rng(seed)
    G = (rng.random((n, d)) < np.minimum(1.0, 12.0 / (1.0 + np.arange(d)))) * rng.random((n, d))
    G[:, -1] = 0.1
    again = np.arange(5, n, 10)
    G[again] = G[again - 1]
    G[again, -2] = 0.05
    return G / np.linalg.norm(G, axis=1)[:, None]


def matrix(G):
    csr = sp.csr_array(G)
    return matrix_of((csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int64)))


def dense(G):
    """Return dense rows as kernels take rows in two parts."""
    return pools.copies(survey.nothing_known()[1], matrix_of(G))


def inverse(M, parts, seats):
    n = seats.size
    out, half, sums, share = np.empty(n), np.empty(n), np.empty(M.factor.shape[0]), np.empty(n)
    columns = []
    for unit in np.eye(n):
        preconditioner.preconditioned(M, parts, seats, unit, out, half, sums, share)
        columns.append(out.copy())
    return np.array(columns).T


def links(M):
    """Return the rows that are linked to one each, and ``L`` of the docstring; its inverse exists where there are only
    trees.
    """
    T, alike = np.zeros((M.like.size, M.like.size)), np.flatnonzero(M.like != np.arange(M.like.size))
    T[alike, M.like[alike]] = 1.0
    assert not np.linalg.matrix_power(T, M.like.size).any()
    T[alike, M.like[alike]] = M.slope[alike]
    return alike, np.linalg.inv(np.eye(M.like.size) - T)


@pytest.fixture(scope="module")
def rows():
    """Return rows in the order of their seats, their two parts, the seats, and their preconditioner."""
    G = text(120, 300)
    return preconditioned_rows(G)


def surveyed(G, rows, known=None, pool=None):
    """Return the survey of some rows, their pool, their seats, and which rows have these; after another survey if there
    is one.
    """
    n, d = G.shape
    if known is None:
        known, pool = survey.nothing_known()
    known, pool, seats, order = survey.surveyed(
        known, pool, matrix(G), np.arange(n), np.ones(n, dtype=np.int8), rows, rows, np.sum(G[rows] ** 2, axis=1), n, d
    )  # fmt: skip
    assert np.array_equal(seats, np.sort(seats)) and np.array_equal(np.sort(order), np.arange(rows.size))
    return known, pool, seats, rows[order]


def two_parts(pool):
    return pools.copies(pool, matrix(np.eye(2)))


def preconditioned_rows(G):
    known, pool, seats, order = surveyed(G, np.arange(len(G)))
    parts = two_parts(pool)
    M = preconditioner.precondition(known, parts, seats, np.full(len(G), RIDGE))
    assert np.array_equal(copied(pool, seats, G.shape[1]), G[order])
    numbered = np.zeros((len(G), pool.counts[COLUMNS]))  # columns by their numbers, as products with rows see them
    numbered[:] = G[order][:, pool.columns[: pool.counts[COLUMNS]]]
    return numbered, parts, seats, M


def frequent_parts(pool, seats):
    """Return ``A``, the rows' parts of the frequent columns."""
    found = np.zeros((seats.size, pool.counts[FREQUENT]))
    for k, seat in enumerate(seats):
        own = slice(*pool.starts[seat : seat + 2])
        np.add.at(found[k], pool.places[own], pool.values[own])
    return found


def test_the_inverse_is_that_of_the_matrix_in_the_docstring(rows):
    G, parts, seats, M = rows
    A = G[:, : M.factor.shape[0]]
    alike, L = links(M)
    assert alike.size >= 6 and np.any(M.like[M.like[alike]] != M.like[alike])  # more than stars
    full = L @ np.diag(1.0 / M.weight) @ L.T + A @ A.T
    np.testing.assert_allclose(inverse(M, parts, seats) @ full, np.eye(120), atol=1e-8)
    np.testing.assert_allclose(np.diag(full), 1.0 + RIDGE, rtol=1e-12)  # norms are right, and products of those alike
    np.testing.assert_allclose(full[alike, M.like[alike]], (G @ G.T)[alike, M.like[alike]], rtol=1e-10)


def test_what_a_preconditioner_tells_of_products_is_what_they_are(rows):
    """... where no row is left out, and not else."""
    G, parts, seats, M = rows
    A, r, z = G[:, : M.factor.shape[0]], np.cos(np.arange(120)), np.empty(120)
    sums, share = np.empty(A.shape[1]), np.empty(120)
    rest = preconditioner.closed(M, np.arange(120) % 3 > 0)
    assert M.whole and not rest.whole
    for one in (M, rest):
        preconditioner.preconditioned(one, parts, seats, r, z, np.empty(120), sums, share)
        np.testing.assert_allclose(share, A @ sums, atol=1e-12)
        off = np.abs(sums - A.T @ z).max()
        assert off < 1e-12 if one.whole else off > 1e-3


def frequent_columns(pool):
    """Return the frequent columns in the order of their numbers."""
    return pool.columns[: pool.counts[FREQUENT]]


def heaviest(known, pool, seats):
    """Return the columns that each row is looked for by, -1 where there are not as many."""
    keys = known.keys[: survey.KEYS * (known.keys.size // survey.KEYS)].reshape(-1, survey.KEYS)[seats]
    return np.where(keys < 0, -1, pool.columns[keys])


def test_a_survey_of_other_rows_is_that_of_their_own_but_for_the_choice_of_columns():
    G = text(120, 300, 3)
    before = np.setdiff1d(np.arange(120), np.arange(4, 120, 30))  # rows that others are like, and others, are missing
    rows = np.setdiff1d(np.arange(120), np.arange(15, 120, 35))
    known, pool, *_ = surveyed(G, before)
    first = frequent_columns(pool).copy()
    fresh = np.setdiff1d(rows, before).size
    known, pool, seats, rows = surveyed(G, rows, known, pool)
    assert pool.counts[STEPS] == 2 and pool.counts[ADDED] == fresh > 0
    frequent = frequent_columns(pool)
    assert np.array_equal(first, frequent) and frequent.size == known.gram.shape[0] > 0
    np.testing.assert_array_equal(frequent_parts(pool, seats), G[np.ix_(rows, frequent)])
    rare, rest = G[rows].copy(), known.rest[seats]
    rare[:, frequent] = 0.0
    np.testing.assert_allclose(rest, np.sum(rare * rare, axis=1), rtol=1e-12)
    keys = heaviest(known, pool, seats)
    assert np.all(keys >= 0)
    found = np.sort(np.take_along_axis(rare, keys, axis=1))
    np.testing.assert_array_equal(found, np.sort(rare)[:, -survey.KEYS :])
    like = np.where(known.like[seats] >= 0, known.spot[known.like[seats]], -1)
    alike = np.flatnonzero(like >= 0)
    assert alike.size >= 6
    shared = known.shared[seats]
    np.testing.assert_allclose(shared[alike], np.sum(rare[alike] * rare[like[alike]], axis=1), rtol=1e-12)
    # Every row that stands twice among these has found its like, also where one of the two is new.
    product = rare @ rare.T / np.sqrt(np.outer(rest, rest))
    twice = np.argwhere(np.triu(product, 1) > 0.99)
    assert twice.size and all(like[k] == j or like[j] == k for j, k in twice.tolist())
    M = preconditioner.precondition(known, two_parts(pool), seats, np.full(rows.size, RIDGE))
    links(M)
    assert np.linalg.eigvalsh(inverse(M, two_parts(pool), seats)).min() > 0.0


def test_rows_that_were_all_there_bring_nothing_new():
    G, rows = text(60, 200, 4), np.arange(60)
    known, pool, *seats = surveyed(G, rows)
    before = [array.copy() for array in (*known, *pool[:-1], *seats)]
    known, pool, *seats = surveyed(G, rows, known, pool)
    assert pool.counts[ADDED] == 0 and pool.counts[STEPS] == 2
    for one, other in zip(before, (*known, *pool[:-1], *seats), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("why", ["few of them were there", "too many are kept", "it is long ago"])
def test_a_pool_is_begun_anew(why):
    """... and is then that of a first step."""
    G, n = text(120, 300, 8), 120
    known, pool, *_ = surveyed(G, np.arange(60 if why == "few of them were there" else n))
    for _ in range(survey.LONG - 1 if why == "it is long ago" else 0):
        known, pool, *_ = surveyed(G, np.arange(n), known, pool)
    rows = {"few of them were there": np.arange(35, n), "too many are kept": np.arange(0, 90)}.get(why, np.arange(n))
    made = []
    for before in ((known, pool), ()):
        known, pool, *seats = surveyed(G, rows, *before)
        assert pool.counts[STEPS] == 1 and pool.counts[ADDED] == pool.counts[SEATS] == rows.size
        M = preconditioner.precondition(known, two_parts(pool), seats[0], np.full(rows.size, RIDGE))
        kept = copied(pool, seats[0], 300), frequent_parts(pool, seats[0])
        made.append((*kept, *seats, M.like, M.slope, M.weight, M.level, np.tril(M.factor)))
    for one, other in zip(*made, strict=True):
        np.testing.assert_array_equal(one, other)


def copied(pool, seats, d):
    """Return the copies of rows as an array."""
    rows = np.zeros((seats.size, d))
    for k, seat in enumerate(seats):
        own, often = slice(*pool.indptr[seat : seat + 2]), slice(*pool.starts[seat : seat + 2])
        rows[k, pool.columns[pool.indices[own]]] = pool.data[own]
        rows[k, pool.columns[pool.places[often]]] = pool.values[often]
    return rows


def test_signed_rows_are_copied_once():
    """Row by row as they come, whatever sign each has, and whatever stands before."""
    G, rng = text(120, 300, 9), np.random.default_rng(0)
    signs, where = np.where(rng.random(50) < 0.5, -1, 1).astype(np.int8), rng.permutation(120)[:50]
    squares = np.sum(G[where] ** 2, axis=1)
    known, pool = survey.nothing_known()
    for rows in (np.arange(40), np.arange(5, 45), np.arange(50)):
        known, pool, seats, order = survey.surveyed(
            known, pool, matrix(G), where, signs, rows, rows, squares[rows], 50, 300
        )  # fmt: skip
        own = rows[order]
        np.testing.assert_array_equal(copied(pool, seats, 300), signs[own, None] * G[where[own]])
    assert pool.counts[SEATS] == 50 and pool.counts[STEPS] == 3


def test_rows_that_come_at_once_stand_by_their_lengths():
    """By their frequent entries first, and by the others where those are as many; later ones stand behind."""
    G = text(120, 300, 2) * (np.random.default_rng(0).random((120, 300)) < 0.7)
    before = ()
    for rows, first in ((np.arange(100), 0), (np.arange(120), 100)):
        *before, seats, own = surveyed(G, rows, *before)
        pool = before[1]
        frequent = frequent_columns(pool)
        often = np.count_nonzero(G[own][:, frequent], axis=1)
        rare = np.count_nonzero(G[own], axis=1) - often
        lengths = list(zip(often[first:].tolist(), rare[first:].tolist(), own[first:].tolist(), strict=True))
        assert lengths == sorted(lengths) and len(set(often.tolist())) > 3
        assert set(own[:100]) == set(range(100))


def test_the_size_of_a_row_does_not_matter_for_what_is_frequent():
    """A column counts by its share of each row; few of them count as much as a row does, and the heaviest are taken."""
    G = text(120, 300, 5)
    shares = np.sum(G * G, axis=0)
    rows = np.arange(120)
    found = np.sort(frequent_columns(surveyed(G, rows)[1]))
    assert (
        0 < found.size <= 120 // pools.FEWER
        and np.all(shares[found] > pools.heavy_of(120))
        and pools.heavy_of(120) < pools.heavy_of(3000)
    )
    assert np.setdiff1d(np.flatnonzero(shares > shares[found].min()), found).size == 0
    sizes = 10.0 ** np.random.default_rng(0).uniform(-3, 3, size=120)
    np.testing.assert_array_equal(np.sort(frequent_columns(surveyed(sizes[:, None] * G, rows)[1])), found)


def test_rows_left_out_get_nothing_and_the_rest_is_positive_definite(rows):
    _, parts, seats, M = rows
    opened = np.arange(120) % 3 > 0
    rest = preconditioner.closed(M, opened)
    found = inverse(rest, parts, seats)
    assert not found[~opened].any() and not found[:, ~opened].any()
    np.testing.assert_allclose(found, found.T, atol=1e-9)
    assert np.linalg.eigvalsh(found[np.ix_(opened, opened)]).min() > 0.0
    # Norms are right, also where the row that one was linked to, and that was linked to a third one, is left out.
    every = np.arange(120)
    alone = (M.like != every) & (rest.like == every) & opened
    assert np.any(M.like[M.like[alone]] != M.like[alone])
    _, L = links(rest)
    norms = (np.square(L[np.ix_(opened, opened)]) / rest.weight[opened]).sum(axis=1)
    np.testing.assert_allclose(norms, M.level[opened], rtol=1e-12)
    every = preconditioner.closed(M, np.full(120, True))
    assert np.array_equal(every.weight, M.weight) and np.array_equal(every.like, M.like)


def no_direction(d):
    return preconditioner.Along(np.zeros(120), np.zeros(d), np.zeros(120), np.zeros(120))


@pytest.mark.covering(9)
@pytest.mark.parametrize("left", [0, 40])
@pytest.mark.parametrize("sparse", [True, False])
def test_systems_are_solved_with_few_products(rows, sparse, left):
    """Of all rows, or without some of them, of which nothing else is to come."""
    G, parts, seats, M = rows
    ridge, right, opened = np.full(120, RIDGE), G @ np.sin(np.arange(G.shape[1])), np.arange(120) >= left
    if not sparse:
        parts, M, seats = dense(G), preconditioner.diagonal(ridge + np.sum(G * G, axis=1)), np.arange(120)
    d = G.shape[1]
    step, change, residual = np.empty(120), np.empty(d), right.copy()
    stop = preconditioner.Stop(opened.astype(float), 1e-12 * (right @ right), 200, -1.0)
    touched, _ = preconditioner.solve_rows(
        parts, seats, preconditioner.closed(M, opened), ridge, residual, step, change, stop, np.empty((3, 0)),
        no_direction(d), 0.0,
    )  # fmt: skip
    K = G @ G.T + RIDGE * np.eye(120)
    assert not step[:left].any()
    np.testing.assert_allclose((K @ step)[opened], right[opened], atol=1e-5 * np.abs(right).max())
    np.testing.assert_allclose(G.T @ step, change, atol=1e-10)
    assert touched < (40 if sparse else 200) * 120, touched / 120


def test_a_system_is_solved_no_further_than_its_box_allows(rows):
    """What a step has to leave at its ends comes back into the residual; where there is room, nothing does."""
    G, parts, seats, M = rows
    squares, right, d = np.sum(G * G, axis=1), G @ np.sin(np.arange(G.shape[1])), G.shape[1]
    taken = {}
    for half in (1e-2, 1e3):
        step, change, residual = np.empty(120), np.empty(d), right.copy()
        box, stop = np.outer([-half, half, 0.0], np.ones(120)), preconditioner.Stop(1.0 / squares, 1e-12, 200, 0.0)
        touched, _ = preconditioner.solve_rows(
            parts, seats, M, np.full(120, RIDGE), residual, step, change, stop, box, no_direction(d), 0.0
        )
        over, left = step - np.clip(step, -half, half), np.sum(residual**2 / squares)
        assert left <= max(np.sum(over**2 * squares), 1e-12) and over.any() == (half < 1.0)
        taken[half] = touched
    assert 0 < taken[1e-2] < 0.5 * taken[1e3]


def test_a_system_goes_on_from_the_last_direction(rows):
    """Stopped and gone on with, it takes what it takes at once; begun anew, more."""
    G, parts, seats, M = rows
    d = G.shape[1]
    right, none, part, more = G @ np.sin(np.arange(d)), np.empty((3, 0)), np.empty(120), np.empty(d)

    def solve(goals, carried):
        residual, along, curve, total = right.copy(), no_direction(d), 0.0, 0
        step, change = np.zeros(120), np.zeros(d)
        for goal in goals:
            stop = preconditioner.Stop(np.ones(120), goal * (right @ right), 200, -1.0)
            touched, curve = preconditioner.solve_rows(
                parts, seats, M, np.full(120, RIDGE), residual, part, more, stop, none, along, curve if carried else 0.0
            )
            step, change, total = step + part, change + more, total + touched
        K = G @ G.T + RIDGE * np.eye(120)
        np.testing.assert_allclose(residual, right - K @ step, atol=1e-12)
        np.testing.assert_allclose(change, G.T @ step, atol=1e-12)
        return total

    goals = 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12
    once, carried, anew = solve(goals[-1:], True), solve(goals, True), solve(goals, False)
    product = solve((0.999,), True)
    assert carried <= once + 1.5 * product and anew >= once + 3 * product


def test_a_system_that_differs_by_its_last_direction_takes_no_product(rows):
    """The right-hand side may change along it; what is left of a direction then is no reason to divide by 0."""
    G, parts, seats, M = rows
    right, box, d = G @ np.cos(np.arange(G.shape[1])), np.empty((3, 0)), G.shape[1]
    ridge, ones, part, more = np.full(120, RIDGE), np.ones(120), np.empty(120), np.empty(d)
    along, residual = no_direction(d), right.copy()
    stop = preconditioner.Stop(ones, 1e-20 * (right @ right), 200, -1.0)
    system = parts, seats, M, ridge, residual, part, more, stop, box, along
    _, curve = preconditioner.solve_rows(*system, 0.0)
    last = along.p.copy()
    residual += 3.0 * along.image
    touched, _ = preconditioner.solve_rows(*system, curve)
    assert touched == 0 and np.linalg.norm(residual) < 1e-9 * np.linalg.norm(right)
    np.testing.assert_allclose(part, 3.0 * last, rtol=1e-9, atol=1e-12 * np.abs(last).max())


@pytest.mark.parametrize("length", range(13))
def test_a_product_of_four_sums_is_the_product(length):
    """Rows of every length below and above a multiple of four, somewhere in the data."""
    rng = np.random.default_rng(length)
    data, indices, w = rng.standard_normal(20), rng.integers(0, 9, 20).astype(np.int32), rng.standard_normal(9)
    found = np.empty(1)
    csr_products(data, indices, np.array([5, 5 + length]), w, found, 0, 1)
    exact = sum(Fraction(data[p]) * Fraction(w[indices[p]]) for p in range(5, 5 + length))
    assert abs(Fraction(found[0]) - exact) <= Fraction(1, 10**14)


def test_a_row_knows_its_heaviest_columns_that_are_not_frequent():
    G, rows = text(120, 300, 7), np.arange(120)
    _, pool, *_ = surveyed(G, rows)
    rare = np.abs(G)
    rare[:, frequent_columns(pool)] = 0.0
    rare[5, np.argsort(rare[5])[:-2]] = 0.0  # the row of fewer columns than there are keys
    known, pool, seats, own = surveyed(np.where((rows == 5)[:, None] & (rare == 0.0), 0.0, G), rows)
    rare[:, frequent_columns(pool)] = 0.0
    found = np.empty((120, survey.KEYS), dtype=int)
    found[own] = heaviest(known, pool, seats)
    for row, keys in zip(rare, found, strict=True):
        best = [j for j in np.argsort(-row, kind="stable")[: keys.size] if row[j] > 0.0]
        assert sorted(row[best].tolist(), reverse=True) == row[keys[: len(best)]].tolist()
        assert keys[len(best) :].tolist() == [-1] * (keys.size - len(best))
    assert (found[5] >= 0).sum() <= 2


def stepped(X, signs, half, squares, start, moved, face, system):
    """Return what a step on the face does, with a problem of kinks 1 and ends ``-half`` and ``half``."""
    (alpha, w, margins), n = start, signs.size
    one, rows, errors = np.ones(n), np.arange(n), Errors(1e-12, 1e-15, 0.0, 0.0)
    task = Task(X, rows, signs, one, -half * one, half * one, np.sqrt(squares), squares, errors, rows, n)
    point = Iterate(alpha, w, margins, np.zeros(n, np.int8), np.ones(1, np.uint64), np.zeros(12))
    return face_step(task, point, moved, face, survey.nameless(*survey.nothing_known()), System(*system))


def test_a_final_step_is_solved_on_though_it_had_to_find_the_set():
    """A step that others are to follow stops where the set is found."""
    G, n = text(120, 300, 4), 120
    squares, half = np.sum(G * G, axis=1), 0.8
    rows, signs = np.arange(n), np.where(np.arange(n) % 2, 1, -1).astype(np.int8)
    X = matrix(signs[:, None] * G)
    kept = {}
    for final in (False, True):
        alpha, w, margins = np.zeros(n), np.zeros(300), np.full(n, np.nan if final else 0.0)  # as `moved` says
        system = 1e-4, 1e-7, 0.1, 0.05, final, 80
        _, share, left, _ = stepped(X, signs, half, squares, (alpha, w, margins), final, rows, system)
        assert np.any(alpha == half) and np.any(np.abs(alpha) < half)  # so the set was not known
        t = 1.0 - G @ w
        assert share == 1.0 and left == pytest.approx(np.sum(half * np.abs(t) - alpha * t), rel=1e-6)
        kept[final] = left
    assert kept[True] < 0.1 * kept[False]


@pytest.mark.parametrize("half", [50.0, 0.02])  # of the box: no variable reaches its ends, or many do
def test_a_step_keeps_the_sum_and_raises_the_dual(half):
    G, n = text(120, 300, 1), 120
    face, signs = np.arange(3, n - 2), np.ones(n, dtype=np.int8)
    alpha = np.zeros(n)
    w = G.T @ alpha
    squares = np.sum(G * G, axis=1)
    start, system = (alpha, w, w[:n]), (1e-4, 0.0, 1e-6, 1.0, False, 80)
    touched, share, left, _ = stepped(matrix(G), signs, half, squares, start, True, face, system)
    assert 0.0 < share <= 1.0 and touched > 0 and np.all(np.abs(alpha) <= half)
    np.testing.assert_allclose(w, G.T @ alpha, atol=1e-12)
    assert not alpha[:3].any() and alpha.sum() - 0.5 * w @ w > 0.0
    t = (1.0 - G @ w)[face]  # with a whole step, what it leaves of the gap is what it says
    if share > 1.0 - 1e-9 and left < np.inf:
        np.testing.assert_allclose(left, np.sum(half * np.abs(t) - alpha[face] * t), rtol=1e-6, atol=1e-9 * half)
    if half == 50.0:
        assert np.abs(1.0 - G @ w)[face].max() < 1e-2
    else:
        assert np.any(np.abs(alpha) >= half * (1 - 1e-12))


def test_what_rows_have_entered_is_kept_as_they_come_and_go():
    """The matrix that is kept is that of the rows there are, whatever the steps and the ridges before."""
    G, rng = text(120, 300, 6), np.random.default_rng(0)
    known, pool, seats, _ = surveyed(G, np.arange(100))
    preconditioner.precondition(known, two_parts(pool), seats, np.full(100, 0.1))
    for ridge in (0.1, 1e-3, 1e-3, 0.05):
        rows = np.flatnonzero(rng.random(120) < 0.85)
        known, pool, seats, _ = surveyed(G, rows, known, pool)
        M = preconditioner.precondition(known, two_parts(pool), seats, np.full(rows.size, ridge))
        own = known.rest[seats] + ridge
        alike, _ = links(M)
        own[alike] -= M.slope[alike] * known.shared[seats][alike]
        assert alike.size >= 6 and np.all(np.abs(1.0 - own * M.weight) <= 1.001 * preconditioner.DRIFT)
        A, every = frequent_parts(pool, seats), frequent_parts(pool, seats)
        A[alike] -= M.slope[alike, None] * every[M.like[alike]]
        W = np.eye(A.shape[1]) + (A * M.weight[:, None]).T @ A
        factor = np.tril(M.factor)
        np.testing.assert_allclose(factor @ factor.T, W, rtol=1e-9, atol=1e-9 * W.max())
    assert pool.counts[STEPS] == 5  # it has not been begun anew
