"""A Dask cluster: how it is reached, and whole tasks (folds, rows of a grid) on its workers.

A task depends on nothing but its arguments: when a worker is lost, another one repeats it, with the same result.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from concurrent.futures import CancelledError

from screenpath import __version__
from screenpath.errors import ResourceError
from screenpath.rows.deadline import Deadline

ANSWER = 10.0  # seconds that a scheduler may take to answer
WAIT = 120  # seconds for the first worker to appear: on a busy machine its imports alone take many
ATTEMPTS = 5  # of a task whose worker is lost


def connect(scheduler: str, wait: float = ANSWER, tell=None):
    """Return a Dask client of the scheduler at an address such as ``tcp://node:8786``.

    It may take ``wait`` seconds to answer. A worker of another version of this package is refused. ``tell`` hears what
    is waited for.
    """
    try:
        import distributed
    except ImportError:
        raise ResourceError(
            "a cluster needs dask.distributed, which is not installed", "pip install 'screenpath[cluster]'"
        ) from None
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
    """Return the version of this package on a worker."""
    return __version__


def check_versions(client) -> None:
    """Refuse workers that have another version of this package."""
    versions = set(client.run(worker_version).values())
    if versions != {__version__}:
        raise ResourceError(
            f"the workers have screenpath {', '.join(sorted(versions))}, this process {__version__}",
            "install the same version everywhere",
        )


def losses() -> tuple:
    """Return the errors that a lost worker shows itself by."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    return KilledWorker, CommClosedError, CancelledError, TimeoutError


def check_loss(client, attempt: int, what: str, error: BaseException) -> None:
    """Raise where a lost task is not to be tried again: after too many attempts, or without a cluster."""
    if attempt >= ATTEMPTS - 1 or client.status != "running":
        raise ResourceError(
            f"the cluster lost {what} ({type(error).__name__})",
            "finished steps are kept: repeat the command with `resume` when the cluster is back",
        ) from None


@contextlib.contextmanager
def tasks_on(scheduler: str | None, wait: float = ANSWER, tell=None):
    """Give a :class:`Spread` over the workers of a scheduler, see :func:`connect`; None where none is named."""
    if scheduler is None:
        yield None
        return
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
        """Run a function for each task and yield what it returns as the tasks end, in any order.

        Parameters
        ----------
        function : callable
            ``function(shared, task, deadline)``, run on a worker whose clock gives ``deadline`` its meaning there.
        shared : object
            What all tasks need: sent once, and kept by the workers for further calls with the same object.
        tasks : sequence
        deadline : float
            ``time.monotonic()`` value. The clocks of other machines are taken to show the same time of day.

        Yields
        ------
        rank : int
            Of the task.
        result : object

        Raises
        ------
        ResourceError
            Where a task is lost again and again.
        """
        from distributed import as_completed

        lost, until = losses(), Deadline.of(deadline)

        def submit(rank: int, attempt: int):
            held = self._scattered(shared)
            future = self.client.submit(run_task, function, held, tasks[rank], until, pure=False)
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
        """Return the shared object as the workers know it: sent to one of them, from whom the others have it."""
        for attempt in itertools.count():
            if self._held is not None and shared is self._shared:
                return self._held
            try:
                self._held, self._shared = self.client.scatter(shared, hash=False), shared
            except losses() as error:
                check_loss(self.client, attempt, "the data", error)
                time.sleep(attempt)  # the scheduler has yet to notice that a worker is gone


def run_task(function, shared, task, until: Deadline):
    """Run one task on a worker; ``until`` is when it should end."""
    return function(shared, task, until.here())


def in_order(found):
    """Yield the results of :meth:`Spread.run` in the order of the tasks."""
    waiting, rank = {}, 0
    for at, result in found:
        waiting[at] = result
        while rank in waiting:
            yield waiting.pop(rank)
            rank += 1
