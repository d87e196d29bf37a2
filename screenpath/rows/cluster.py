"""Rows on the workers of a Dask cluster: one task a shard, pinned to the worker that has read it before.

A pass sends each worker what its shard needs of a vector and brings back what the shard contributes; the arithmetic is
that of :mod:`rows.shards`, so the numbers are those of one machine. A task depends on nothing but its arguments and the
shard's files: when a worker is lost, another one repeats it, with the same result.
"""

from __future__ import annotations

from concurrent.futures import CancelledError

import numpy as np

from screenpath import __version__
from screenpath.errors import DataError, ResourceError
from screenpath.read.shards import ShardFolder
from screenpath.rows.shards import ShardRows

WAIT = 120  # seconds for the first worker to appear: on a busy machine its imports alone take many
ATTEMPTS = 5  # of a task whose worker is lost
PACKED_ENTRY = 12  # bytes of a position and a value
DRIVERS = 64  # tasks under way at once, at most

_folders: dict = {}  # of a worker process: opened shard folders


def connect(scheduler: str | None = None, local: int | None = None):
    """Return a Dask client and the cluster that it owns (None where it belongs to somebody else).

    Parameters
    ----------
    scheduler : str, optional
        Address of a running scheduler, such as ``tcp://node:8786``.
    local : int, optional
        Start this many worker processes on this machine instead.

    Raises
    ------
    ResourceError
        If Dask is not installed, or no worker answers.
    """
    try:
        import distributed
    except ImportError:
        raise ResourceError(
            "a cluster needs dask.distributed, which is not installed", "pip install 'screenpath[cluster]'"
        ) from None
    cluster = None
    try:
        if local is not None:
            # No limit: mapped shards count as a worker's memory, and Dask would stop it for them.
            cluster = distributed.LocalCluster(
                n_workers=local, threads_per_worker=1, dashboard_address=None, memory_limit=0, silence_logs=50
            )
        client = distributed.Client(cluster if cluster is not None else scheduler, timeout=WAIT, set_as_default=False)
        client.wait_for_workers(1, timeout=WAIT)
    except (OSError, TimeoutError, ValueError) as error:
        if cluster is not None:
            cluster.close()
        raise ResourceError(
            f"no cluster at {scheduler or 'this machine'} ({error})", "start dask-scheduler and dask-worker first"
        ) from None
    return client, cluster


def run_task(path: str, sha256: str, k: int, task, plan, arguments):
    """Run one task of a pass on a worker.

    Raises
    ------
    DataError
        Where the worker sees another folder under the same path.
    """
    folder = _folders.get(path)
    if folder is None or folder.sha256 != sha256:
        folder = _folders[path] = ShardFolder(path)
    if folder.sha256 != sha256:
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


def worker_version() -> str:
    """Return the version of this package on a worker."""
    return __version__


class ClusterRows(ShardRows):
    """Sample rows of a shard folder, every pass spread over the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    cluster : distributed.LocalCluster or None
        Closed with the rows.
    folder, scale, bias, storage, n_features, limit
        As of :class:`ShardRows`. The path of the folder must mean the same on every worker.

    Attributes
    ----------
    moved : int
        Bytes of the arrays sent to workers and received from them so far. A task that had to be repeated counts once.

    Raises
    ------
    ResourceError
        Where a worker has another version of the package.
    """

    def __init__(self, client, cluster, folder: ShardFolder, *arguments, **options):
        self.client, self.cluster, self.moved = client, cluster, 0
        self._path = str(folder.path.resolve())
        versions = set(client.run(worker_version).values())
        if versions != {__version__}:
            raise ResourceError(
                f"the workers have screenpath {', '.join(sorted(versions))}, this process {__version__}",
                "install the same version everywhere",
            )
        self._workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        super().__init__(folder, *arguments, **options)

    def close(self) -> None:
        """Leave the cluster, and end it if it was started here."""
        super().close()
        self.client.close()
        if self.cluster is not None:
            self.cluster.close()

    def _tasks_at_once(self) -> int:
        """Return how many remote tasks are waited for at once, each by a thread."""
        return min(2 * len(self._workers), DRIVERS)

    def _run(self, task, k: int, *arguments):
        """Return what a task gives for shard ``k``, run on the worker that has it."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        plan, arguments = self._plan(k), tuple(_packed(argument) for argument in arguments)
        home = self._workers[k * len(self._workers) // self.folder.count]
        for attempt in range(ATTEMPTS):
            try:
                result = self.client.submit(
                    run_task, self._path, self.folder.sha256, k, task, plan, arguments,
                    workers=[home], allow_other_workers=True, pure=False,
                ).result()  # fmt: skip
                break
            except (KilledWorker, CommClosedError, CancelledError, TimeoutError) as error:
                if attempt == ATTEMPTS - 1 or self.client.status != "running":
                    raise ResourceError(
                        f"the cluster lost the task of shard {k} ({type(error).__name__})",
                        "finished steps are kept: repeat the command with --resume when the cluster is back",
                    ) from None
        self.moved += _bytes((plan.preparation.scale, plan.preparation.shift, *arguments)) + _bytes((result,))
        return result


def _bytes(values) -> int:
    """Return the bytes of the arrays in (nested) tuples."""
    return sum(v.nbytes if isinstance(v, np.ndarray) else _bytes(v) if isinstance(v, tuple) else 0 for v in values)
