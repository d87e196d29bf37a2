"""Rows on the workers of a Dask cluster: one task per shard, on the worker that has read it before.

A pass sends each worker its shard's part of a vector and receives the shard's contribution; the arithmetic is that of
:mod:`rows.shards`, so the numbers are those of one machine. A task depends only on its arguments and the shard's files:
if a worker is lost, another one repeats it, with the same result.
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
DRIVERS = 64  # most tasks in progress at once

RUNS = 2  # folders that a worker keeps open: each may hold hundreds of files

_folders: dict = {}  # of a worker process: shard folders by path and run


def run_task(path: str, stamp: str, run: tuple, k: int, task, plan, arguments):
    """Run one task of a pass on a worker, which checks a shard the first time a run uses it there.

    ``stamp`` is that of the folder: another one under the same path is an error. ``run`` identifies the run, because
    workers outlive runs and files may change in between; and tells whether the content is compared with its SHA-256.
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
    """Return a vector of mostly zeros as (size, positions, values); anything else unchanged."""
    if not (isinstance(argument, np.ndarray) and argument.dtype == np.float64):
        return argument
    positions = np.flatnonzero(argument).astype(np.int32)
    if PACKED_ENTRY * positions.size >= argument.nbytes:
        return argument
    return argument.size, positions, argument[positions]


def _unpacked(argument):
    """Undo :func:`_packed`; received arrays are read-only, which is another type to compiled code."""
    if isinstance(argument, tuple):
        size, positions, values = argument
        vector = np.zeros(size)
        vector[positions] = values
        return vector
    return np.require(argument, requirements=["C", "W"]) if isinstance(argument, np.ndarray) else argument


class ClusterRows(ShardRows):
    """Sample rows of a shard folder, every pass spread over the workers of a cluster.

    ``client``, a distributed.Client, is closed with the rows; other arguments are those of :class:`ShardRows`. The path
    of the folder must mean the same on every worker. ``moved`` counts a repeated task once.
    """

    moved: int

    def __init__(self, client, folder: ShardFolder, *arguments, **options):
        self.client, self.moved = client, 0
        self._counting = threading.Lock()  # tasks are waited for in several threads
        self._path, self._run_name = str(folder.path.resolve()), (uuid.uuid4().hex, folder.content)
        self._workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        super().__init__(folder, *arguments, **options)

    def close(self) -> None:
        super().close()
        self.client.close()

    def _check_elsewhere(self) -> None:
        """Raise if the files have changed since the last pass, as the workers see them."""
        moved = self.moved
        for _ in self._each(shard_checked, ((k,) for k in range(self.folder.count))):
            pass
        self.moved = moved  # this is no pass

    def _tasks_at_once(self) -> int:
        return min(2 * len(self._workers), DRIVERS)

    def _run(self, task, k: int, *arguments):
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
    return sum(v.nbytes if isinstance(v, np.ndarray) else _bytes(v) if isinstance(v, tuple) else 0 for v in values)
