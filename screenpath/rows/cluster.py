"""Access to a Dask cluster; whole tasks (folds, rows of a grid) on its workers, and passes over shards.

A pass sends each worker its shard's part of a vector and receives the shard's contribution; the arithmetic is that of
:mod:`rows.shards`, so the numbers are those of one machine. A task depends only on its arguments and the shard's files:
if a worker is lost, another one repeats it, with the same result.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import uuid
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from screenpath import __version__
from screenpath.data.shards.shards import ShardFolder
from screenpath.errors import DataError, ResourceError, needed
from screenpath.rows.shards import ShardRows, shard_checked

ANSWER = 10.0  # seconds that a scheduler may take to answer
WAIT = 120  # seconds for the first worker to appear: on a busy machine its imports alone take many
ATTEMPTS = 5  # of a task whose worker is lost
BOOT = Path("/proc/sys/kernel/random/boot_id")


def connect(scheduler: str, wait: float = ANSWER, tell=None):
    """Return a Dask client of a scheduler such as ``tcp://node:8786``, which has ``wait`` seconds to answer; ``tell``
    reports the waiting.
    """
    with needed("a cluster needs dask.distributed, which is not installed", "pip install 'screenpath[cluster]'"):
        import distributed
    client = None
    try:
        if tell is not None:
            tell(f"connecting to {scheduler} ...")
        client = distributed.Client(scheduler, timeout=wait, set_as_default=False)
        if tell is not None and not client.scheduler_info()["workers"]:
            tell(f"{scheduler} answers, but has no worker yet: waiting up to {WAIT} s for one ...")
        client.wait_for_workers(1, timeout=WAIT)
        check_versions(client)
    except BaseException as error:
        if client is not None:
            client.close()
        if not isinstance(error, (OSError, TimeoutError, ValueError)):
            raise
        raise ResourceError(
            f"no cluster at {scheduler} ({error})",
            "start one first (`dask scheduler`, `dask worker ADDRESS`), check the address, or allow it more time with "
            "`connect_timeout`",
        ) from None
    return client


def worker_version() -> str:
    return __version__


def check_versions(client) -> None:
    versions = set(client.run(worker_version).values())
    if versions != {__version__}:
        raise ResourceError(
            f"the workers have screenpath {', '.join(sorted(versions))}, this process {__version__}",
            "install the same version everywhere",
        )


def losses() -> tuple:
    """Return the errors that signal a lost worker."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    return KilledWorker, CommClosedError, CancelledError, TimeoutError


def check_loss(client, attempt: int, what: str, error: BaseException) -> None:
    """Raise if a lost task is not to be repeated: after too many attempts, or without a cluster."""
    if attempt >= ATTEMPTS - 1 or client.status != "running":
        raise ResourceError(
            f"the cluster lost {what} ({type(error).__name__})",
            "finished steps are kept: repeat the command with `resume` when the cluster is back",
        ) from None


@contextlib.contextmanager
def tasks_on(scheduler: str, wait: float = ANSWER, tell=None):
    """Yield a :class:`Spread` over the workers of a scheduler, see :func:`connect`."""
    client = connect(scheduler, wait, tell)
    try:
        yield Spread(client)
    finally:
        client.close()


class Spread:
    """Tasks on the workers of a cluster."""

    def __init__(self, client):
        self.client = client
        self._shared = self._held = None

    def run(self, function, shared, tasks, deadline: float = float("inf")):
        """Run ``function(shared, task, deadline)`` for each task and yield rank and result of tasks as they end.

        ``shared`` is sent once, and kept by the workers for further calls with the same object. The deadline is a
        ``time.monotonic()`` value, for the function one of the worker's clock; the clocks of other machines are
        assumed to show the same time of day. If a task is lost again and again, a ResourceError is raised.
        """
        from distributed import as_completed

        lost, until = losses(), Deadline.of(deadline)

        def submit(rank: int, attempt: int):
            held = self._scattered(shared)
            future = self.client.submit(run_whole, function, held, tasks[rank], until, pure=False)
            running[future] = rank, attempt, held
            return future

        running: dict = {}
        for rank in range(len(tasks)):
            submit(rank, 0)
        ended = as_completed(list(running), loop=self.client.loop)
        try:
            for future in ended:
                rank, attempt, held = running.pop(future)
                try:
                    result = future.result()
                except lost as error:
                    check_loss(self.client, attempt, f"task {rank + 1} of {len(tasks)}", error)
                    if held is self._held:
                        self._held = None  # what was sent is lost as well, or may be
                    ended.add(submit(rank, attempt + 1))
                    continue
                yield rank, result
        finally:
            self.client.cancel(list(running))

    def _scattered(self, shared):
        """Return the shared object as the workers know it: sent to one of them, from which the others get it."""
        for attempt in itertools.count():
            if self._held is not None and shared is self._shared:
                return self._held
            try:
                self._held, self._shared = self.client.scatter(shared, hash=False), shared
            except losses() as error:
                check_loss(self.client, attempt, "the data", error)
                time.sleep(attempt)  # the scheduler has yet to notice that a worker is gone


def run_whole(function, shared, task, until: Deadline):
    return function(shared, task, until.here())


def in_order(found):
    """Yield the results of :meth:`Spread.run` in the order of the tasks."""
    waiting, rank = {}, 0
    for at, result in found:
        waiting[at] = result
        while rank in waiting:
            yield waiting.pop(rank)
            rank += 1


@dataclass(frozen=True)
class Deadline:
    """A moment at which work must end."""

    at: float  # ``time.monotonic()`` value on the machine it was made on
    machine: str  # identifies that machine since its start; empty if unknown
    left: float  # left, made: seconds left, and the time of day, when it was made
    made: float

    @classmethod
    def of(cls, at: float) -> Deadline:
        """Return the moment of a ``time.monotonic()`` value of this machine."""
        return cls(at, machine(), at - time.monotonic(), time.time())

    def here(self) -> float:
        """Return the moment as a ``time.monotonic()`` value of the current machine."""
        if self.machine and self.machine == machine():
            return self.at
        return time.monotonic() + self.left - max(time.time() - self.made, 0.0)


def machine() -> str:
    """Return a text that identifies this machine since its start."""
    try:
        return BOOT.read_text().strip()
    except OSError:
        return ""


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
    if not (isinstance(argument, np.ndarray) and argument.dtype == np.float64 and argument.ndim == 1):
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

    def check(self) -> None:
        """Raise if the files have changed since the last pass, here or as the workers see them."""
        super().check()
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
