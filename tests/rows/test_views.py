"""Both views of the data hold the same numbers."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.rows.memory import MemoryRows
from screenpath.rows.views import Views


def matrix(view, lines, length):
    data, indices, indptr = view
    out = np.zeros((lines, length))
    for k in range(lines):
        span = slice(indptr[k], indptr[k + 1])
        where = indices[span] if indices.size else np.arange(span.stop - span.start)
        out[k, where] = data[span]
    return out


@pytest.mark.parametrize("form", ["dense", "csr", "csc", "coo with duplicates"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_views_agree(form, dtype):
    X = (np.random.default_rng(0).normal(size=(7, 5)) * (np.arange(35).reshape(7, 5) % 3 > 0)).astype(dtype)
    X[:, 2] = 1.0
    given = {"dense": X, "csr": sp.csr_array(X), "csc": sp.csc_array(X)}.get(form)
    if given is None:
        row, column = X.nonzero()
        given = sp.coo_array((np.tile(X[row, column] / 2, 2), (np.tile(row, 2), np.tile(column, 2))), shape=X.shape)
    views = Views(given)
    np.testing.assert_array_equal(matrix(views.by_row, 7, 5), X)
    np.testing.assert_array_equal(matrix(views.by_column, 5, 7), X.T)
    np.testing.assert_allclose(views.row_sqnorms, (X.astype(float) ** 2).sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(views.column_sqnorms, (X.astype(float) ** 2).sum(axis=0), rtol=1e-6)
    data, indices, indptr = views.by_column
    if indices.size:  # a full column is read without its indices
        np.testing.assert_array_equal(indices[indptr[2] : indptr[3]], np.arange(7))


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
def test_views_share_the_memory_of_rows(form):
    rows = MemoryRows(form(np.eye(4)))
    views = Views.of_rows(rows)
    assert np.shares_memory(views.by_row[0], rows.data if rows.sparse else rows.X)
