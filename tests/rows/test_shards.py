"""Rows on shards give what rows in memory give."""

import io

import numba
import numpy as np
import pytest
import scipy.sparse as sp

import screenpath
from screenpath.data.files.libsvm import read_libsvm
from screenpath.data.files.prepare import prepare
from screenpath.data.files.write_libsvm import write_libsvm
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.shards.convert import convert
from screenpath.data.shards.shards import ShardFolder
from screenpath.errors import DataError, ResourceError, UsageError
from screenpath.rows import shards as shard_rows
from screenpath.rows.memory import MemoryRows
from screenpath.rows.shards import ShardRows
from screenpath.walk import step


def random_rows(n=400, d=9, density=1.0, seed=0):
    """Return CSR rows with columns of very different scales and offsets, some rows empty, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=d) + rng.normal(size=d) * 100.0
    X[rng.random(size=X.shape) >= density] = 0.0
    X[:: n // 5] = 0.0
    X[:, 3] = 0.0
    return sp.csr_array(X), np.where(rng.random(n) < 0.5, -1.0, 1.0)


def make_folder(path, X, y, monkeypatch, **options):
    """Convert rows with tiny blocks, so that there are many shards."""
    monkeypatch.setattr("screenpath.data.shards.convert.BLOCK", 1 << 11)
    text = path.with_suffix(".libsvm")
    write_libsvm(text, X, y)
    return convert([text], path, block_mb=1e-3, **options), read_libsvm(text)


def as_array(rows, sparse, d):
    """Return what ``take`` gave as a dense array."""
    return sp.csr_array(rows, shape=(rows[2].size - 1, d)).toarray() if sparse else rows


@pytest.mark.covering(2)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("bias", [0.0, 1.5])
@pytest.mark.parametrize(
    ("density", "scale", "storage"),
    [
        (1.0, "none", "auto"), (1.0, "maxabs", "auto"), (1.0, "standard", "auto"), (1.0, "l2", "auto"),
        (1.0, "none", "sparse"), (0.1, "none", "auto"), (0.1, "maxabs", "auto"), (0.1, "l2", "auto"),
        (0.1, "standard", "dense"), (0.1, "none", "dense"), (0.3, "maxabs", "auto"),
    ],
)  # fmt: skip
def test_operations_agree_with_memory(tmp_path, monkeypatch, density, scale, storage, bias, threads):
    X, y = random_rows(density=density)
    form = "dense" if scale == "standard" else "auto"
    folder, data = make_folder(tmp_path / "s", X, y, monkeypatch, storage=form, jobs=2)
    assert folder.count > 3
    ours = ShardRows(folder, scale, bias, storage, threads=threads)
    prepared, preparation = prepare(data.X, scale, bias, storage)
    theirs = MemoryRows(prepared)
    assert (ours.n, ours.d, ours.sparse) == (theirs.n, theirs.d, theirs.sparse)
    same = np.testing.assert_array_equal  # to the last bit
    same(ours.norms, theirs.norms)
    for one, other in ((ours.preparation.scale, preparation.scale), (ours.preparation.shift, preparation.shift)):
        assert (one is None) == (other is None)
        if one is not None:
            same(one, other)
    rng = np.random.default_rng(1)
    w, theta = rng.normal(size=ours.d), np.where(rng.random(ours.n) < 0.5, 0.0, rng.normal(size=ours.n))
    same(ours.margins(w), theirs.margins(w))
    same(ours.weighted_sum(theta), theirs.weighted_sum(theta))
    for index in (np.flatnonzero(theta), np.array([7, 3, 399, 3], dtype=np.int64), np.empty(0, dtype=np.int64)):
        signs = np.where(index % 2 == 0, 1.0, -1.0)
        one, other = (as_array(rows.take(index, signs), rows.sparse, rows.d) for rows in (ours, theirs))
        same(one, other)
    assert ours.touched == theirs.touched
    same(as_array(ours.whole(), ours.sparse, ours.d), as_array(theirs.whole(), theirs.sparse, theirs.d))
    assert ours.touched == theirs.touched  # setting up is no pass


@pytest.mark.covering(9)
@pytest.mark.parametrize(("density", "scale"), [(1.0, "standard"), (1.0, "maxabs"), (0.1, "maxabs"), (0.1, "l2")])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scaling_with_weights_agrees_with_memory(tmp_path, monkeypatch, density, scale, dtype):
    """To the last bit, whatever the cuts between shards; the largest value of a column may be in a row of weight 0."""
    X, y = random_rows(density=density)
    folder, data = make_folder(tmp_path / "s", X, y, monkeypatch, jobs=2, dtype=dtype)
    weights = np.where(np.random.default_rng(2).random(400) < 0.3, 0.0, np.linspace(0.1, 5.0, 400))
    weights[np.argmax(abs(X.toarray()[:, 1]))] = 0.0
    monkeypatch.setattr("screenpath.data.files.prepare.CHUNK_CELLS", 100)
    ours = ShardRows(folder, scale, weights=weights).preparation
    X = data.X.astype(dtype).astype(np.float64)
    theirs, plain = (prepare(X, scale, weights=given)[1] for given in (weights, None))
    for name in ("scale", "shift"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(one, other)
            assert not np.array_equal(one, getattr(plain, name))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="many rows: slow as plain Python")
def test_many_blocks_agree_with_memory(tmp_path, monkeypatch):
    """Sums of many rows are formed in blocks that begin and end within shards."""
    rng = np.random.default_rng(5)
    for density in (1.0, 0.1):
        X = sp.csr_array(rng.normal(size=(40_000, 3)) * (rng.random((40_000, 3)) < density))
        y = rng.normal(size=40_000)
        text = tmp_path / f"{density}.libsvm"
        write_libsvm(text, X, y)
        folder = convert([text], tmp_path / f"s{density}", block_mb=1)
        data = read_libsvm(text)
        memory, theta = MemoryRows(prepare(data.X, "maxabs", 1.0)[0]), rng.normal(size=40_000)
        for threads in (1, 2):
            rows = ShardRows(folder, "maxabs", 1.0, threads=threads)
            assert len(rows._blocks) == 9
            np.testing.assert_array_equal(rows.weighted_sum(theta), memory.weighted_sum(theta))


def test_threads_give_the_same_bytes(tmp_path, monkeypatch):
    X, y = random_rows(seed=3)
    folder, _ = make_folder(tmp_path / "s", X, y, monkeypatch)
    theta = np.random.default_rng(0).normal(size=400)
    one, two = (ShardRows(folder, "standard", 1.0, threads=t).weighted_sum(theta) for t in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_columns_that_later_shards_add(tmp_path):
    """The first shards of a file know fewer columns than the last ones."""
    folder = tmp_path / "s"
    text = b"".join(b"1 1:%d 2:3\n" % k for k in range(1, 5)) + b"-1 1:1 2:2 5:7 20000000:4\n"
    convert([io.BytesIO(text[:20]), io.BytesIO(text[20:])], folder)
    rows = ShardRows(ShardFolder(folder))
    assert (rows.n, rows.d) == (5, 20_000_000)
    data, indices, _ = rows.take(np.arange(5), np.ones(5))
    assert data.tolist() == [1, 3, 2, 3, 3, 3, 4, 3, 1, 2, 7, 4] and indices[-1] == 19_999_999


def test_mixed_forms(tmp_path):
    dense = b"".join(b"1 1:%d 2:3 3:1\n" % k for k in range(1, 9))
    sparse = b"".join(b"-1 %d:2\n" % k for k in range(4, 30))
    folder = convert([io.BytesIO(dense), io.BytesIO(sparse)], tmp_path / "s")
    assert [shard["dense"] for shard in folder.meta["shards"]] == [True, False]
    X = read_libsvm(io.BytesIO(dense + sparse)).X
    index, w = np.arange(34), np.arange(29.0)
    for storage in ("dense", "sparse"):
        rows, memory = ShardRows(folder, storage=storage), MemoryRows(X)
        np.testing.assert_array_equal(as_array(rows.take(index, np.ones(34)), rows.sparse, 29), X.toarray())
        np.testing.assert_array_equal(rows.margins(w), memory.margins(w))
        np.testing.assert_array_equal(rows.weighted_sum(np.ones(34)), memory.weighted_sum(np.ones(34)))


def test_limits_and_faults(tmp_path, monkeypatch):
    X, y = random_rows()
    folder, _ = make_folder(tmp_path / "s", X, y, monkeypatch)
    with pytest.raises(ResourceError, match="`max_memory"):
        ShardRows(folder, limit=MemoryLimit(1000))
    rows = ShardRows(folder)
    rows.limit = MemoryLimit(1000)
    with pytest.raises(ResourceError, match="solving for 100 of 400 rows"):
        rows.take(np.arange(100), np.ones(100))
    with pytest.raises(DataError, match="`n_features=9`"):
        ShardRows(folder, n_features=3)
    with pytest.raises(UsageError, match="unknown scaling"):
        ShardRows(folder, "zscore")
    huge, _ = make_folder(tmp_path / "huge", X * 1e200, y, monkeypatch)
    with pytest.raises(DataError, match="variance of feature 1 exceeds"):
        ShardRows(huge, "standard", storage="dense")
    assert ShardRows(folder, n_features=20).d == 20
    (tmp_path / "s" / "000001-dense.npy").write_bytes(b"short")
    with pytest.raises(DataError, match="000001-dense.npy is missing or damaged"):
        ShardRows(ShardFolder(tmp_path / "s")).margins(np.ones(9))


def test_float32(tmp_path, monkeypatch):
    X, y = random_rows()
    folder, data = make_folder(tmp_path / "s", X, y, monkeypatch, dtype=np.float32)
    rows, memory = ShardRows(folder), MemoryRows(data.X.toarray().astype(np.float32))
    np.testing.assert_allclose(rows.margins(np.ones(9)), memory.margins(np.ones(9)), rtol=1e-14)
    assert rows.take(np.arange(3), np.ones(3)).dtype == np.float64


@pytest.mark.parametrize("weighted", [False, True])
def test_a_constant_column_is_told_exactly(tmp_path, monkeypatch, weighted):
    X, y = random_rows(density=1.0)
    X = X.toarray()
    X[:, 1] = 333333333333333.3  # whose rounded mean is another number
    weights = np.arange(len(y)) % 3.0 if weighted else None
    if weighted:
        X[weights == 0.0, 1] = 1.0  # these rows have no say
    folder, _ = make_folder(tmp_path / "s", sp.csr_array(X), y, monkeypatch, storage="dense")
    preparation = ShardRows(folder, "standard", weights=weights).preparation
    assert (preparation.shift[1], preparation.scale[1], preparation.nearly) == (333333333333333.3, 1.0, None)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_the_bytes_of_a_step_are_those_of_the_rows_that_its_tasks_read(tmp_path, monkeypatch, storage):
    X, y = random_rows()
    folder, _ = make_folder(tmp_path / "s", X, y, monkeypatch, storage=storage)
    counted: list = []

    def counting(task, rows_of):
        def counted_task(shard, plan, *arguments):
            found = task(shard, plan, *arguments)
            sizes = [shard.dense.nbytes] if storage == "dense" else [12 * shard.data.size, 8 * shard.rows]
            counted.append(sum(sizes) * rows_of(shard, found) // shard.rows)
            return found

        return counted_task

    made = {"products": lambda shard, _: shard.rows, "sum": lambda _, found: found[1]}
    made["take"] = lambda _, found: len(found) if storage == "dense" else found[2].size - 1
    for name, rows_of in made.items():
        monkeypatch.setattr(shard_rows, f"shard_{name}", counting(getattr(shard_rows, f"shard_{name}"), rows_of))
    marks, bytes_of = [], step.bytes_of
    monkeypatch.setattr(step, "bytes_of", lambda rows: marks.append(sum(counted)) or bytes_of(rows))
    how = {"scale": "maxabs", "intercept": "none", "storage": storage, "quiet": True, "out": tmp_path / "r"}
    found = [row["bytes_read"] for row in screenpath.run("svm", str(folder.path), grid=6, **how).table()]
    marks = marks[-13:]  # before and after each step, and at the end
    assert found == [marks[k + 1] - marks[k] for k in range(0, 12, 2)] and min(found) > 0
