"""Rows on a cluster: the same bytes, whatever becomes of the workers."""

import os
import signal
import sys

import numba
import numpy as np
import pytest

pytest.importorskip("distributed", reason="dask.distributed is not installed")

from screenpath.data.shards.shards import ShardFolder
from screenpath.errors import DataError, ResourceError
from screenpath.rows.cluster import ClusterRows, check_versions, connect, run_task
from screenpath.rows.shards import ShardRows, shard_products
from tests import shard_folders
from tests.conftest import HANGS
from tests.rows.test_shards import as_array, make_folder, random_rows
from tests.width import wide

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="workers are the same as plain Python, only slower")


class Shared(ClusterRows):
    """Rows that leave the tests' cluster as it is."""

    def close(self):
        self._pool.shutdown()


def worker_pids(client) -> list[int]:
    return sorted(client.run(os.getpid).values())


@pytest.mark.parametrize(("density", "scale"), [(1.0, "standard"), (0.1, "none"), (0.1, "maxabs"), (1.0, "none")])
def test_operations_have_the_bytes_of_one_machine(client, tmp_path, monkeypatch, density, scale):
    X, y = random_rows(density=density)
    folder, _ = make_folder(tmp_path / "s", X, y, monkeypatch)
    here, there = ShardRows(folder, scale, 1.0), Shared(client, folder, scale, 1.0)
    rng = np.random.default_rng(0)
    w, theta = rng.normal(size=here.d), rng.normal(size=here.n)
    same = np.testing.assert_array_equal
    same(here.norms, there.norms)
    before = there.moved
    same(here.margins(w), there.margins(w))
    assert there.moved - before >= 8 * here.n  # the products have come back
    same(here.weighted_sum(theta), there.weighted_sum(theta))
    few, before = np.where(theta > 1.5, theta, 0.0), there.moved
    same(here.weighted_sum(few), there.weighted_sum(few))
    assert there.moved - before < 4 * here.n + 32 * folder.count * here.d  # zeros stay here
    index, signs = np.arange(0, here.n, 3), np.ones(len(range(0, here.n, 3)))
    same(*(as_array(rows.take(index, signs), rows.sparse, rows.d) for rows in (here, there)))
    assert here.touched == there.touched
    there.close()


@pytest.mark.wide_only
def test_lost_workers(client, tmp_path, monkeypatch):
    """Workers are killed while passes run; the numbers and the bytes counted stay the same."""
    X, y = random_rows(n=2000)
    folder, _ = make_folder(tmp_path / "s", X, y, monkeypatch)
    rows, there = ShardRows(folder, "standard"), Shared(client, folder, "standard")
    rng, counted = np.random.default_rng(0), set()
    for attempt in range(wide(2, 3)):
        w, theta = rng.normal(size=rows.d), rng.normal(size=rows.n)
        if attempt:
            os.kill(worker_pids(client)[attempt % 2 - 1], signal.SIGKILL)
        before = there.moved
        np.testing.assert_array_equal(there.margins(w), rows.margins(w))
        np.testing.assert_array_equal(there.weighted_sum(theta), rows.weighted_sum(theta))
        counted.add(there.moved - before)
        try:
            client.wait_for_workers(2, timeout=HANGS)
        except TimeoutError:  # Dask, which starts another one for each that is lost, has given up: one is left
            break
    assert attempt > 0 and len(counted) == 1
    there.close()


def test_other_data_other_version_no_cluster(client, tmp_path, monkeypatch):
    X, y = random_rows()
    folder, _ = make_folder(tmp_path / "s", X, y, monkeypatch)
    with pytest.raises(DataError, match="sees other data"):
        run_task(str(folder.path), "another hash", ("run", False), 0, shard_products, None, ())
    monkeypatch.setattr("screenpath.rows.cluster.__version__", "9.9")
    with pytest.raises(ResourceError, match="the workers have screenpath"):
        check_versions(client)
    heard = []
    with pytest.raises(ResourceError, match="no cluster at tcp://127.0.0.1:9") as caught:
        connect("tcp://127.0.0.1:9", wait=0.2, tell=heard.append)
    assert heard == ["connecting to tcp://127.0.0.1:9 ..."] and "`connect_timeout`" in caught.value.hint


def test_workers_look_at_what_they_open(client, tmp_path, monkeypatch):
    """The one who asks reads no rows: a fault in them is found where they are read."""
    X, y = random_rows()
    folder, _ = make_folder(tmp_path / "s", X, y, monkeypatch)
    Shared(client, folder).close()
    shard_folders.edit(folder.path, 1, "dense", lambda array: array + 1.0)
    folder = ShardFolder(folder.path)
    folder.targets()
    with pytest.raises(DataError, match=r"000001-dense.npy .* not what was written \(CRC-32\)") as caught:
        Shared(client, folder)
    assert "convert the text again" in caught.value.hint
    shard_folders.seal(folder.path)
    Shared(client, ShardFolder(folder.path)).close()
    with pytest.raises(DataError, match="a worker sees other data"):
        Shared(client, folder)


@pytest.mark.wide_only
def test_bytes_are_counted_whatever_thread_counts_them(client, tmp_path, monkeypatch):
    X, y = random_rows(n=2000)
    folder, _ = make_folder(tmp_path / "s", X, y, monkeypatch)
    there = Shared(client, folder, "standard")
    interval, counted = sys.getswitchinterval(), set()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(wide(2, 5)):
            before = there.moved
            there.margins(np.ones(there.d))
            counted.add(there.moved - before)
    finally:
        sys.setswitchinterval(interval)
    assert len(counted) == 1
    there.close()
