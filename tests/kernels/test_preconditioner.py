"""The preconditioner of text is the matrix that it says it is; conjugate gradients need few products with it."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.kernels import preconditioner
from screenpath.kernels.face import face_step
from screenpath.kernels.matrix import matrix_of

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


def inverse(M, n):
    out, sums = np.empty(n), np.empty(M.factor.shape[0])
    columns = []
    for unit in np.eye(n):
        preconditioner.preconditioned(M, unit, out, sums)
        columns.append(out.copy())
    return np.array(columns).T


@pytest.fixture(scope="module")
def rows():
    G = text(120, 300)
    return G, preconditioner.precondition(matrix(G), np.full(120, RIDGE), 300)


def test_the_inverse_is_that_of_the_matrix_in_the_docstring(rows):
    G, M = rows
    A = sp.csr_array((M.values, M.columns, M.starts), shape=(120, M.factor.shape[0])).toarray()
    L = np.eye(120)
    alike = np.flatnonzero(M.like >= 0)
    L[alike, M.like[alike]] = M.slope[alike]
    assert np.all(M.like[M.like[alike]] < 0) and np.all(M.like < np.arange(120)) and alike.size >= 6
    full = L @ np.diag(M.pivot) @ L.T + A @ A.T
    np.testing.assert_allclose(inverse(M, 120) @ full, np.eye(120), atol=1e-8)
    np.testing.assert_allclose(np.diag(full), 1.0 + RIDGE, rtol=1e-12)  # norms are right, and products of those alike
    np.testing.assert_allclose(full[alike, M.like[alike]], (G @ G.T)[alike, M.like[alike]], rtol=1e-10)


def test_rows_left_out_get_nothing_and_the_rest_is_positive_definite(rows):
    _, M = rows
    opened = np.arange(120) % 3 > 0
    found = inverse(preconditioner.closed(M, opened), 120)
    assert not found[~opened].any() and not found[:, ~opened].any()
    np.testing.assert_allclose(found, found.T, atol=1e-9)
    assert np.linalg.eigvalsh(found[np.ix_(opened, opened)]).min() > 0.0
    every = preconditioner.closed(M, np.full(120, True))
    assert np.array_equal(every.pivot, M.pivot) and np.array_equal(every.like, M.like)


@pytest.mark.parametrize("sparse", [True, False])
def test_systems_are_solved_with_few_products(rows, sparse):
    G, _ = rows
    X = matrix(G) if sparse else matrix_of(G)
    ridge, right = np.full(120, RIDGE), G @ np.sin(np.arange(300))
    M = preconditioner.precondition(X, ridge, 300) if sparse else preconditioner.diagonal(ridge + np.sum(G * G, axis=1))
    step, change, residual = np.empty(120), np.empty(300), right.copy()
    touched = preconditioner.solve_rows(
        X,
        np.arange(120),
        M,
        ridge,
        residual,
        step,
        change,
        np.ones(120),
        1e-12 * (right @ right),
        200,
        np.empty((3, 0)),
        -1.0,
    )
    K = G @ G.T + RIDGE * np.eye(120)
    np.testing.assert_allclose(K @ step, right, atol=1e-5 * np.abs(right).max())
    np.testing.assert_allclose(G.T @ step, change, atol=1e-10)
    assert touched < (40 if sparse else 200) * 120, touched / 120


@pytest.mark.parametrize("half", [50.0, 0.02])  # of the box: no variable reaches its ends, or many do
def test_a_step_keeps_the_sum_and_raises_the_dual(half):
    G, n = text(120, 300, 1), 120
    face, one = np.arange(3, n - 2), np.ones(n)
    alpha = np.zeros(n)
    w = G.T @ alpha
    touched, share = face_step(
        matrix(G), one, -half * one, half * one, np.sum(G * G, axis=1), alpha, w, face, 1e-4, 0.0, 1e-6, 1.0, 80
    )
    assert 0.0 < share <= 1.0 and touched > 0 and np.all(np.abs(alpha) <= half)
    np.testing.assert_allclose(w, G.T @ alpha, atol=1e-12)
    assert not alpha[:3].any() and alpha.sum() - 0.5 * w @ w > 0.0
    if half == 50.0:
        assert np.abs(1.0 - G @ w)[face].max() < 1e-2
    else:
        assert np.any(np.abs(alpha) >= half * (1 - 1e-12))
