"""Columns on shards give what columns in memory give, to the last bit."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.data.files.prepare import prepare
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.shards.convert import convert
from screenpath.errors import ResourceError, UsageError
from screenpath.rows.column_shards import ColumnShards, ShardColumns, columns_of
from screenpath.rows.columns import Columns
from screenpath.rows.memory import prepared_rows
from tests.rows.test_shards import make_folder, random_rows

same = np.testing.assert_array_equal


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders by columns of dense, sparse and half-full data, and what their text holds."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for density in (1.0, 0.3, 0.1):
            X, y = random_rows(n=150, d=40, density=density)
            if density == 1.0:  # some columns far from 0, all of one sign, or all the same
                X = sp.csr_array(
                    np.where(np.arange(40) < 4, X.toarray() * 1e-9 + [7.0, -3.0, 1e7, 0.0] * 10, X.toarray())
                )
            path = tmp_path_factory.mktemp("folders") / "s"
            found[density] = make_folder(path, X, y, patch, by="columns", jobs=2)
    return found


def both(folder, data, scale="none", storage="auto", weights=None, penalties=None, threads=1):
    """Return signed columns on disk and in memory."""
    source = ColumnShards(folder, scale, storage, weights, penalties, threads)
    X, preparation = prepare(data.X, scale, 0.0, storage, weights=weights, penalties=penalties)
    rows = prepared_rows(X, preparation)
    for one, other in (
        (source.preparation.scale, preparation.scale), (source.preparation.shift, preparation.shift)
    ):  # fmt: skip
        assert (one is None) == (other is None)
        if one is not None:
            same(one, other)
    assert source.preparation.inexact == preparation.inexact
    return columns_of(source, data.y, 1, weights), columns_of(rows, data.y, 1, weights)


def as_array(columns, index):
    """Return some columns as a dense array."""
    data, samples, begin, end = columns.some(index)
    out = np.zeros((index.size, columns.d))
    for row, first, last in zip(out, begin[index], end[index], strict=True):
        row[samples[first:last] if columns.sparse else slice(None)] = data[first:last]
    return out


@pytest.mark.covering(9)
@pytest.mark.parametrize(
    ("density", "scale", "storage", "weighted", "threads"),
    [
        (1.0, "none", "auto", False, 1), (1.0, "maxabs", "auto", True, 2), (1.0, "standard", "auto", True, 1),
        (1.0, "none", "sparse", True, 1), (0.3, "none", "auto", False, 2), (0.1, "none", "auto", True, 1),
        (0.1, "maxabs", "auto", False, 2), (0.1, "standard", "dense", False, 1), (0.1, "none", "dense", False, 1),
    ],
)  # fmt: skip
def test_operations_agree_with_memory(folders, density, scale, storage, weighted, threads):
    folder, data = folders[density]
    assert folder.count > 3
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, size=data.n).astype(float) if weighted else None
    penalties = rng.uniform(0.5, 2.0, size=data.d) if threads == 2 else None
    ours, theirs = both(folder, data, scale, storage, weights, penalties, threads)
    assert isinstance(ours, ShardColumns) and isinstance(theirs, Columns)
    assert (ours.n, ours.d, ours.sparse, ours.inexact) == (theirs.n, theirs.d, theirs.sparse, theirs.inexact)
    for name in ("norms", "signs"):
        same(getattr(ours, name), getattr(theirs, name))
    v, w = rng.normal(size=ours.d), np.where(rng.random(ours.n) < 0.6, 0.0, rng.normal(size=ours.n))
    same(ours.products(v), theirs.products(v))
    same(ours.combine(w), theirs.combine(w))
    for index in (np.flatnonzero(w), np.array([3, 39]), np.array([0, 3, 5, 39]), np.arange(0, 40, 7), np.arange(40)):
        same(as_array(ours, index), as_array(theirs, index))
        same(ours.combine(w), theirs.combine(w))
    for j in (0, 3, 22):
        for one, other in zip(ours.column(j), theirs.column(j), strict=True):
            same(one, other)
    same(np.zeros(ours.d), ours.combine(np.zeros(ours.n)))
    assert ours.touched == theirs.touched


def test_sums_in_blocks_agree_with_memory(folders, monkeypatch):
    """Partial sums end where they do in memory, whatever is held."""
    monkeypatch.setattr("screenpath.rows.memory.BLOCK", 8)
    for storage in ("dense", "sparse"):
        ours, theirs = both(*folders[1.0], storage=storage)
        assert len(theirs._blocks) > 1
        w = np.random.default_rng(2).normal(size=40) * (np.arange(40) % 3 == 0)
        same(ours.combine(w), theirs.combine(w))


def test_columns_that_are_far_apart_are_let_go(folders):
    """What is in memory is at most twice what was asked for last."""
    ours, _ = both(*folders[1.0])
    for index in (np.arange(20), np.array([25, 30])):
        ours.slices(index)
        assert set(index) <= set(ours._held) and ours._held.size <= 2 * index.size
        same(np.flatnonzero(ours._where >= 0), ours._held)
    before = ours._arrays[0]
    ours.slices(np.array([25]))
    assert ours._arrays[0] is before  # nothing to read


def test_limits(folders):
    folder, data = folders[1.0]
    with pytest.raises(UsageError, match="converted by rows|by=rows"):
        ColumnShards(folder, "l2")
    with pytest.raises(UsageError, match="would fill these sparse columns"):
        ColumnShards(folders[0.1][0], "standard")
    ours, _ = both(folder, data)
    limit = MemoryLimit(1 << 20)
    with limit.in_force(), pytest.raises(ResourceError, match="20 columns of 40 needs"):
        ours.slices(np.arange(20))


def test_wide_data_have_columns_that_occur(tmp_path, monkeypatch):
    monkeypatch.setattr("screenpath.numbers.csr.ORDINARY", 10)
    X, y = random_rows(n=60, d=8, density=0.3)
    wide = sp.csr_array((X.data, X.indices * 1000, X.indptr), shape=(60, 8000))
    folder, data = make_folder(tmp_path / "s", wide, y, monkeypatch, by="columns")
    narrow = data.narrowed()
    same(folder.numbers, narrow.columns)
    ours, theirs = both(folder, narrow)
    same(as_array(ours, np.arange(ours.n)), as_array(theirs, np.arange(ours.n)))
    assert folder.dataset().fingerprint() == data.fingerprint()


def test_float32(tmp_path, monkeypatch):
    X, y = random_rows(n=60, d=8, density=0.3)
    folder, _ = make_folder(tmp_path / "s", X, y, monkeypatch, by="columns", dtype=np.float32)
    data = convert([tmp_path / "s.libsvm"], tmp_path / "rows", dtype=np.float32).dataset()
    ours, theirs = both(folder, data, "maxabs")
    same(ours.norms, theirs.norms)
    assert folder.dataset().fingerprint() == data.fingerprint()
