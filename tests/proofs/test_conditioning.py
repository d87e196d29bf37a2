"""What conditioning takes from norms and centres, summed the other way and as matrices, and what each costs."""

import numpy as np
import pytest

from screenpath.kernels.problem.sparse import Samples
from screenpath.kernels.problem.sparse_intercept import keep_totals
from screenpath.kernels.screen import conditioning

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
N, D = 7, 5


def lines(X):
    """Return the rows of a matrix as the kernels take them: of one that is full, the indices are not to be read."""
    places = [np.flatnonzero(row).astype(np.int32) for row in X]
    indptr = np.concatenate([[0], np.cumsum([part.size for part in places])]).astype(np.int64)
    values = np.concatenate([row[part] for row, part in zip(X, places, strict=True)])
    return values, np.concatenate([part * (part.size < X.shape[1]) for part in places]).astype(np.int32), indptr


def data(seed, dense, classes):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    if not dense:
        X *= rng.random((N, D)) < 0.6
        X[2], X[:, 3], X[4], X[:, 1] = rng.normal(size=D), rng.normal(size=N), 0.0, 0.0
        X[2, 1] = X[4, 3] = 1.5
    labels = rng.choice([-1, 1], N) if classes == 1 else np.arange(N) % classes
    return rng, X, labels


@pytest.mark.parametrize("dense", [False, True])
def test_costs_and_lists(dense):
    _, X, _ = data(0, dense, 1)
    _, _, indptr = lines(X.T)
    counts = np.diff(indptr)
    each = np.where(counts == N, 0.25 * counts, counts)
    assert [conditioning.line_cost(indptr, j, N) for j in range(D)] == each.tolist()
    features = np.array([1, 3, 4, 8, 8])  # two classes
    assert conditioning.lines_cost(indptr, N, features) == each[features % D].sum()
    keep = np.array([1, 0, 0, 2, 1, 0, 0, 1, 1, 0], dtype=np.int8)
    live = np.flatnonzero(keep)
    assert conditioning.lines_cost(indptr, N, live) == each[live % D].sum()
    assert conditioning.lines_cost(indptr, N, live[:0]) == 0.0


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("classes", [1, 3])
def test_screened_features_leave_norms_and_scores(dense, classes):
    rng, X, _ = data(1, dense, classes)
    columns = lines(X.T)
    counts = np.diff(columns[2])
    keep = np.ones(classes * D, dtype=np.int8)
    pending = np.array([classes * D - 1, 0, 3, 1, -1, -1])
    keep[pending[:4]] = 0
    w = rng.normal(size=classes * D)
    w[3] = 0.0
    twice = rng.normal(size=D)  # the point that rows are seen from
    scores, norms = rng.normal(size=classes * N), np.tile((X * (X - twice)).sum(axis=1), classes)
    gone, left = np.zeros((classes, D)), keep.reshape(classes, D)
    gone[left == 0] = w[keep == 0]
    expected = scores - (gone @ X.T).ravel(), (left @ (X * (X - twice)).T).ravel()
    one, other = (scores.copy(), norms.copy()), (scores.copy(), norms.copy())
    assert conditioning.drop_columns(columns, N, w, pending[:4], twice, *one) == counts[pending[:4] % D].sum()
    live, known, part = np.flatnonzero(keep), np.zeros_like(keep), np.full(classes * N, np.nan)
    touched = counts[live % D].sum() + counts[np.array([pending[0], 0, 1]) % D].sum()
    assert conditioning.keep_columns(columns, N, w, keep, live, pending[:4], twice, *other, known, part) == touched
    for found in (one, other):
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(known, keep)
    np.testing.assert_array_equal(part, other[1])
    # The same features again: the norms are those of the last time, and count all the same.
    part += 1.0
    last, again = part.copy(), (scores.copy(), np.zeros(classes * N))
    assert conditioning.keep_columns(columns, N, w, keep, live, pending[:4], twice, *again, known, part) == touched
    np.testing.assert_array_equal(again[1], last)
    known[-1] = 1 - known[-1]  # one feature differs: summed anew
    conditioning.keep_columns(columns, N, w, keep, live, pending[:0], twice, *again, known, part)
    np.testing.assert_allclose(again[1], expected[1], rtol=1e-12, atol=1e-13)


def pull(X, labels, classes, weights):
    """Return ``X' psi`` of every class for numbers on the dual variables, shape (classes, d)."""
    if classes == 1:
        return (labels * weights[0]) @ X
    found = np.zeros((classes, X.shape[1]))
    for c in range(classes):
        for i in np.flatnonzero(labels != c):
            found[c] -= weights[c, i] * X[i]
            found[labels[i]] += weights[c, i] * X[i]
    return found


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("classes", [1, 3])
def test_screened_samples_leave_norms_and_move_both_centres(dense, classes):
    rng, X, labels = data(2, dense, classes)
    rows, columns = lines(X), lines(X.T)
    status = rng.choice([-1, 0, 1], classes * N)
    status[2] = 1  # the full row
    real = np.ones((classes, N), dtype=bool)
    if classes > 1:
        real[labels, np.arange(N)] = False
    status[~real.ravel()] = 0
    theta = rng.random(classes * N)
    kink_part, theta_part = parts = 0.3, 0.7
    value = (status > 0).astype(float)
    weights, kinks = rng.choice([0.0, 0.5, 1.0, 3.0], N), rng.uniform(0.5, 2.0, N)
    apart = value - kink_part * np.tile(kinks, classes) - theta_part * theta
    first = np.where(status != 0, apart / N, 0.0).reshape(classes, N) * weights
    second = np.where(status != 0, (value - theta) / N, 0.0).reshape(classes, N) * weights
    moves = [pull(X, labels, classes, one).ravel() for one in (first, second)]

    def norms(free):
        found = np.zeros((classes, D))
        for c, i in zip(*np.nonzero(free & real), strict=True):
            found[c] += weights[i] * X[i] ** 2
            if classes > 1:
                found[labels[i]] += weights[i] * X[i] ** 2
        return found.ravel()

    left = norms(status.reshape(classes, N) == 0)
    pending = np.concatenate([np.flatnonzero(status), [-1, -1]])
    part, one, two = norms(np.ones((classes, N), dtype=bool)), np.zeros(classes * D), np.zeros(classes * D)
    size = pending.size - 2
    sums, summed = np.zeros((2, 0 if classes > 1 else D))
    if classes == 1:  # with a free intercept, sums over the columns as well
        sums += weights @ X
    samples = Samples(labels, weights, N, classes, 0.5, kinks, 0.0, 1.0)
    conditioning.drop_rows(rows, D, samples, theta, parts, status, pending[:size], (one, two), part, sums)
    assert conditioning.lines_size(rows[2], pending[:size]) == np.diff(rows[2])[pending[:size] % N].sum()
    live, active = np.arange(classes * D)[:-1], np.zeros(classes * D, dtype=np.int8)
    active[0] = 1
    again = [np.full(classes * D, 9.0) for _ in range(3)]
    touched = conditioning.keep_rows(columns, samples, theta, parts, status, live, active, tuple(again[:2]), again[2])
    assert touched == np.diff(columns[2])[live[1:] % D].sum()
    if classes == 1:
        assert keep_totals(columns, samples, status, live, summed) == np.diff(columns[2])[live].sum()
        total = (weights * (status == 0)) @ X
        np.testing.assert_allclose(sums, total, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(summed[:-1], total[:-1], rtol=1e-11, atol=1e-13)
    for found, expected in zip((one, two, part), (*moves, left), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    for found, expected in zip(again, (*moves, left), strict=True):
        np.testing.assert_allclose(found[1:-1], expected[1:-1], rtol=1e-11, atol=1e-13)
        assert found[0] == found[-1] == 9.0  # proven active, or screened
