"""Rows on the workers of a Dask cluster: one task a shard, pinned to the worker that has read it before.

A pass sends each worker what its shard needs of a vector and brings back what the shard contributes; the arithmetic is
that of :mod:`rows.shards`, so the numbers are those of one machine. A task depends on nothing but its arguments and the
shard's files: when a worker is lost, another one repeats it, with the same result.
"""

from __future__ import annotations

import itertools
import threading
import uuid

import numpy as np

from screenpath.data.shards.shards import ShardFolder
from screenpath.errors import DataError
from screenpath.rows.dask_cluster import check_loss, losses
from screenpath.rows.shards import ShardRows, shard_checked

PACKED_ENTRY = 12  # bytes of a position and a value
DRIVERS = 64  # tasks under way at once, at most

RUNS = 2  # of which a worker keeps the folder open: each may hold some hundred files

_folders: dict = {}  # of a worker process: shard folders by path and run


def run_task(path: str, stamp: str, run: tuple, k: int, task, plan, arguments):
    """Run one task of a pass on a worker, which looks at a shard when a run first takes it there.

    ``stamp`` is that of the folder: another one under the same path is an error. ``run`` tells the run from others, for
    workers outlive runs, and files may change between them; and whether the content is compared with its SHA-256.
    """
    folder = _folders.get((path, run))
    if folder is None:
        for former in list(_folders)[: 1 - RUNS]:
            _folders.pop(former, None)
        folder = _folders[path, run] = ShardFolder(path, content=run[1])
    if folder.stamp != stamp:
        raise DataError(f"a worker sees other data at {path}", "put the shard folder on a file system that all share")
    return task(folder.shard(k), plan, *(_unpacked(argument) for argument in arguments))


def _packed(argument):
    """Return a vector of mostly zeros as (size, positions, values); anything else as it is."""
    if not (isinstance(argument, np.ndarray) and argument.dtype == np.float64):
        return argument
    positions = np.flatnonzero(argument).astype(np.int32)
    if PACKED_ENTRY * positions.size >= argument.nbytes:
        return argument
    return argument.size, positions, argument[positions]


def _unpacked(argument):
    """Undo :func:`_packed`; what came over the wire is read-only, which compiled code takes for another type."""
    if isinstance(argument, tuple):
        size, positions, values = argument
        vector = np.zeros(size)
        vector[positions] = values
        return vector
    return np.require(argument, requirements=["C", "W"]) if isinstance(argument, np.ndarray) else argument


class ClusterRows(ShardRows):
    """Sample rows of a shard folder, every pass spread over the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        Closed with the rows.
    folder, scale, bias, storage, n_features, limit
        As of :class:`ShardRows`. The path of the folder must mean the same on every worker.

    Attributes
    ----------
    moved : int
        Bytes of the arrays sent to workers and received from them so far. A task that had to be repeated counts once.

    """

    moved: int

    def __init__(self, client, folder: ShardFolder, *arguments, **options):
        self.client, self.moved = client, 0
        self._counting = threading.Lock()  # tasks are waited for in several threads
        self._path, self._run_name = str(folder.path.resolve()), (uuid.uuid4().hex, folder.content)
        self._workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        super().__init__(folder, *arguments, **options)

    def close(self) -> None:
        """Leave the cluster."""
        super().close()
        self.client.close()

    def _check_elsewhere(self) -> None:
        """Raise where the files have changed since the last pass, as the workers see them."""
        moved = self.moved
        for _ in self._each(shard_checked, ((k,) for k in range(self.folder.count))):
            pass
        self.moved = moved  # this is no pass

    def _tasks_at_once(self) -> int:
        """Return how many remote tasks are waited for at once, each by a thread."""
        return min(2 * len(self._workers), DRIVERS)

    def _run(self, task, k: int, *arguments):
        """Return what a task gives for shard ``k``, run on the worker that has it."""
        plan, arguments = self._plan(k), tuple(_packed(argument) for argument in arguments)
        home = self._workers[k * len(self._workers) // self.folder.count]
        lost = losses()
        for attempt in itertools.count():
            try:
                result = self.client.submit(
                    run_task, self._path, self.folder.stamp, self._run_name, k, task, plan, arguments,
                    workers=[home], allow_other_workers=True, pure=False,
                ).result()  # fmt: skip
                break
            except lost as error:
                check_loss(self.client, attempt, f"the task of shard {k}", error)
        moved = _bytes((plan.preparation.scale, plan.preparation.shift, *arguments)) + _bytes((result,))
        with self._counting:
            self.moved += moved
        return result


def _bytes(values) -> int:
    """Return the bytes of the arrays in (nested) tuples."""
    return sum(v.nbytes if isinstance(v, np.ndarray) else _bytes(v) if isinstance(v, tuple) else 0 for v in values)
