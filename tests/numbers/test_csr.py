"""Sparse arrays are handed on without copies, and no index is stored wider than it was."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from screenpath.data.files.prepare import prepare
from screenpath.data.shards.convert import convert
from screenpath.data.shards.shards import ShardFolder
from screenpath.numbers.csr import Csr, shared_csr, with_constant
from screenpath.rows.columns import Columns
from screenpath.rows.memory import MemoryRows
from screenpath.rows.views import Views

X = sp.csr_array(np.random.default_rng(0).normal(size=(7, 5)) * (np.arange(35).reshape(7, 5) % 3 > 0))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_values_and_indices_are_shared(kind):
    rows = MemoryRows(sp.csr_array((X.data, X.indices.astype(kind), X.indptr.astype(kind)), shape=X.shape))
    assert rows.indptr.dtype == np.int64 and rows.indices.dtype == np.int32
    indices = X.indices.astype(kind)
    shared = shared_csr(rows.data, indices, rows.indptr, X.shape)
    assert shared.indices.dtype == kind and np.shares_memory(shared.indices, indices)
    assert np.shares_memory(shared.data, rows.data) and np.array_equal(shared.toarray(), X.toarray())


def test_row_pointers_that_do_not_fit_stay_wide():
    indptr = np.array([0, 0, 0], dtype=np.int64)
    indptr[-1] = 200  # beyond int8, which stands here for what two thousand million values would be beyond
    found = shared_csr(np.ones(200), np.zeros(200, dtype=np.int8), indptr, (2, 1))
    assert np.array_equal(found.indptr, indptr)


def test_columns_have_the_indices_of_the_rows():
    rows, signs = MemoryRows(X), np.array([1.0, -1.0] * 3 + [1.0])
    views, columns = Views.of_rows(rows), Columns.of_rows(rows, signs)
    assert views.by_row[1].dtype == views.by_column[1].dtype == columns.kinds[1] == np.int32
    assert np.shares_memory(views.by_row[1], rows.indices) and np.shares_memory(views.by_row[0], rows.data)


def test_shards_have_the_indices_of_text(tmp_path):
    text = tmp_path / "text"
    text.write_text("1 2:1 5:2\n2 1:-1 70000:4\n")
    found = ShardFolder(convert([text], tmp_path / "shards", storage="sparse").path).dataset()
    assert found.X.indices.dtype == found.X.indptr.dtype == np.int32


@pytest.mark.parametrize("kinds", [(np.int32, np.int32), (np.int32, np.int64), (np.int64, np.int64)])
def test_a_constant_stands_behind_the_other_features(kinds):
    X = sp.csr_array(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]]))
    given = X.data, X.indices.astype(kinds[0]), X.indptr.astype(kinds[1])
    before = [one.copy() for one in given]
    found = with_constant(*given, 3, 0.5)
    assert [one.dtype for one in found] == [np.float64, *kinds]
    whole = sp.csr_array(found, shape=(3, 4))
    assert whole.has_sorted_indices and np.array_equal(whole.toarray(), np.column_stack([X.toarray(), [0.5] * 3]))
    assert all(np.array_equal(one, other) for one, other in zip(given, before, strict=True))


@st.composite
def as_read(draw):
    """Return sparse rows as reading leaves them: sorted places or not, stored zeros, empty rows."""
    n, d = draw(st.integers(1, 9)), draw(st.integers(1, 6))
    rows = [draw(st.permutations(range(d)))[: draw(st.integers(0, d))] for _ in range(n)]
    ends = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    values = draw(
        st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.0, 3e300]), min_size=int(ends[-1]), max_size=int(ends[-1]))
    )
    return Csr(np.array(values, dtype=np.float64), np.array(sum(rows, []), dtype=np.int64), ends, (n, d))


@given(as_read(), st.integers(-10, 10), st.integers(-10, 10))
def test_rows_as_read_are_those_that_scipy_makes_of_them(read, start, stop):
    whole = read.array()
    assert np.array_equal(read.toarray(), whole.toarray()) and read.nnz == whole.nnz
    assert np.array_equal(read[start:stop].toarray(), whole.toarray()[start:stop])
    assert np.shares_memory(read.array().data, read.data) or not read.nnz


@given(as_read(), st.sampled_from(["none", "maxabs", "standard", "l2"]), st.sampled_from([0.0, 2.0]))
def test_rows_as_read_are_prepared_as_those_of_scipy(read, scale, bias):
    storage = "dense" if scale == "standard" else "auto"
    for dtype in (np.float64, np.float32):
        read_so = Csr(np.clip(read.data, -9.0, 9.0), read.indices, read.indptr, read.shape)
        found, how = prepare(read_so, scale, bias, storage, dtype)
        expected, known = prepare(read_so.array(), scale, bias, storage, dtype)
        assert sp.issparse(found) == sp.issparse(expected) and found.dtype == expected.dtype == dtype
        dense = (X.toarray() if sp.issparse(X) else X for X in (found, expected))
        assert np.array_equal(*dense)
        assert how.kind == known.kind and np.array_equal(how.scale, known.scale)
