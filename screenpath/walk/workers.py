"""Worker processes, and the rows of a sparse-SVM grid in several or on a cluster: same steps, same order, same numbers.

Processes of this machine map one temporary file of the data, so that it is in memory once.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
from dataclasses import replace
from itertools import groupby
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, cast

from screenpath.data.safe.atomic import load_shared, save_shared
from screenpath.data.safe.memory import SPARSE, MemoryLimit, Shape, in_force
from screenpath.errors import ResourceError
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_grid import SentCertificate, SparseGrid, sparse_model
from screenpath.problem.sparse_types import SparseVector
from screenpath.rows.cluster import in_order, tasks_on
from screenpath.walk.loop import walk

START = "spawn"  # a forked child would inherit threads half way
FOLLOWED = (signal.SIGINT, signal.SIGTERM)  # what they mean is for the parent to say
MASKS = hasattr(signal, "pthread_sigmask")  # Windows has none, and no process that tracks resources
FEWER = "memory may be short: use fewer `jobs`"
SCRIPT = "; a Python script, which every process reads anew, calls this below `if __name__ == '__main__':`"
SAFE_PATH = "PYTHONSAFEPATH"  # known to Python 3.11 and later


def walk_grid(
    model: SparseGrid, pairs, screening, solver, options, reference=None, first: int = 0, jobs: int = 1,
    scheduler: str | None = None, answer=(), begun=None,
):  # fmt: skip
    """Walk a grid of (alpha, beta) as :func:`screenpath.walk.loop.walk` does, its rows shared out.

    ``pairs`` has the rows one after the other; where all have one ``alpha``, each step begins at the one before, and
    they are one row. ``jobs`` processes of this machine walk them, or the workers of a Dask ``scheduler``, see
    :func:`rows.cluster.connect` for its ``answer``. ``begun`` is that of ``walk``; where the rows are shared out, they
    all begin anew.

    Yields steps with their certificates in the order of the grid. From other processes, these are SentCertificates: a
    run can go on behind the last step of a row alone. If a process dies, a ResourceError is raised.
    """
    ranks = range(first, len(pairs))
    rows = [list(row) for _, row in groupby(ranks, key=lambda rank: pairs[rank][1])]
    if len({pairs[rank][0] for rank in ranks}) == 1:
        rows = [list(ranks)]
    if scheduler is None and (jobs == 1 or len(rows) < 2):
        yield from walk(model, pairs, screening, solver, options, reference, first, begun=begun)
        return
    # Its state, and not the reference itself: a copy of the closed form would not be known as one.
    state = None if reference is None else model.state(reference)
    options = replace(options, pulse=None)  # of a point here; the points are elsewhere
    tasks = [([pairs[rank] for rank in row], row[0], state if row[0] == first else None) for row in rows]
    how = screening, solver, options
    here = scheduler is None
    walked = _here(model, tasks, how, jobs) if here else _on_cluster(model, tasks, how, (scheduler, *answer))
    with contextlib.closing(walked):
        for found, row in zip(walked, rows, strict=True):
            yield from found
            if len(found) < len(row):  # the deadline: later rows would leave a hole behind them
                return


def _here(model: SparseGrid, tasks: list, how: tuple, jobs: int):
    """Yield the rows that processes of this machine walk."""
    jobs, limit, base = min(jobs, len(tasks)), in_force(), model.base
    shape = Shape(base.n, base.d, base.views.size, base.views.dense, classes=base.classes)
    points = max(len(pairs) for pairs, *_ in tasks)  # their dual points are here and there, as arrays and as messages
    duals = 2 * 8 * points * base.ones.size
    what = f"{jobs} processes for the values of beta"
    limit.lend(jobs, SPARSE.vectors(shape) + duals, jobs * duals, what, "use fewer `jobs`")
    try:
        with tempfile.TemporaryDirectory(prefix="screenpath-") as folder:
            save_shared(Path(folder), _parts(base))
            with workers(jobs, _open, (limit.share, folder, *how)) as pool:
                yield from pool.map(_walk_mapped_row, tasks)
    finally:
        limit.take_back()


def _on_cluster(model: SparseGrid, tasks: list, how: tuple, cluster: tuple):
    """Yield the rows that the workers of a cluster walk."""
    parts = pickle.dumps(_parts(model.base), 5)  # arrays that come over the wire are read-only, another compiled type
    with tasks_on(*cluster) as spread:
        yield from in_order(spread.run(_walk_sent_row, (parts, how), tasks, how[-1].deadline))


class Workers:
    """Processes that wait for tasks, each at its own pipe.

    A pool of the standard library has one pipe for the results of all. A process that is killed while it writes to it
    leaves half a message, and everybody else waiting forever.
    """

    def __init__(self, started: list):
        self.processes, self.pipes = zip(*started, strict=True)

    def map(self, function, tasks):
        """Yield ``function(task)`` for each task, in their order; a process gets the next task when it is free."""
        tasks = list(tasks)
        todo, results = iter(enumerate(tasks)), {}
        busy: dict[Connection, int] = {}
        for pipe in self.pipes:
            self._hand_over(pipe, function, todo, busy)
        for rank in range(len(tasks)):
            while rank not in results:
                for pipe in cast("list[Connection]", wait(list(busy))):
                    with self._watched():
                        value = pipe.recv()
                    if isinstance(value, Exception):
                        raise value
                    results[busy.pop(pipe)] = value
                    self._hand_over(pipe, function, todo, busy)
            yield results.pop(rank)

    @contextlib.contextmanager
    def _watched(self):
        try:
            yield
        except (EOFError, OSError):  # the other end is gone, perhaps in the middle of a message
            ended = wait([process.sentinel for process in self.processes], 1.0)
            for process in self.processes:
                process.join(float(process.sentinel in ended))  # its files are closed before it has a code
            raised = any(process.exitcode == 1 for process in self.processes)  # and was not killed
            raise ResourceError("a worker process has died", FEWER + SCRIPT * raised) from None

    def _hand_over(self, pipe, function, todo, busy) -> None:
        for rank, task in todo:
            busy[pipe] = rank
            with self._watched():
                pipe.send((function, task))
            return


def _serve(pipe, initializer, arguments) -> None:
    """Do tasks until the other end of the pipe is closed: the parent has ended, or wants no more of them."""
    initializer(*arguments)
    while True:
        try:
            function, task = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            value = function(task)
        except Exception as error:  # for the parent to raise
            value = error
        try:
            pipe.send(value)
        except OSError:
            return


@contextlib.contextmanager
def _put_off():
    """Delay Ctrl-C and SIGTERM for this thread; processes that it starts ignore them from the beginning.

    A terminal, or a scheduler, signals all processes of a job. A process signalled during its imports would print
    a traceback; :func:`follow_parent` sets what it should do instead, as soon as it can.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FOLLOWED) if MASKS else None
    try:
        yield
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def workers(jobs: int, initializer, arguments: tuple):
    """Start processes that the end of the block ends; ``initializer`` should call :func:`follow_parent` in each."""
    context: Any = multiprocessing.get_context(START)  # the type of all contexts lacks `Process`
    started = []
    if START != "fork" and MASKS:  # a fresh process starts it first, which lets the signals through again
        with without_current_folder():
            resource_tracker.ensure_running()
    try:
        for _ in range(jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, initializer, arguments))
            started.append((process, ours))
            with _put_off(), without_current_folder():
                process.start()
            theirs.close()  # the end of the process ends the messages
        yield Workers(started)
    finally:
        # In this order: a process that waits for a task, and finds its pipe closed, has time to do something about it.
        for process, _ in started:
            if process.pid is not None:
                process.kill()
        for process, pipe in started:
            if process.pid is not None:
                process.join()
            pipe.close()


def follow_parent() -> None:
    """Let the parent decide what Ctrl-C and SIGTERM mean, and end with it, however it ends.

    A scheduler may signal all processes of a job: the parent, not a lost worker, should say why the run ends. And a
    process whose parent was killed would wait for its next task forever.
    """
    for number in FOLLOWED:
        signal.signal(number, signal.SIG_IGN)
    if MASKS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FOLLOWED)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    wait([cast(Any, multiprocessing.parent_process()).sentinel])
    os._exit(1)


def _parts(base: SparseModel) -> tuple:
    """Return what :func:`sparse_model` makes a model of; a copy has caches of its own."""
    weights = base.given if base.rounding.inexact > 0.0 else None
    targets = base.kinks if base.regression else None
    intercept = "free" if base.intercept else None
    ends, signs = (base.low, base.high), base.signs[: base.d]
    return base.views, base.labels, base.classes, base.width, weights, intercept, targets, ends, signs


_worker: tuple = ()  # of a worker process: model; screening, solver and options


def _open(share: MemoryLimit | None, folder: str, *how) -> None:
    global _worker
    follow_parent()
    (share or MemoryLimit()).begin()
    _worker = SparseGrid(sparse_model(*load_shared(Path(folder)))), how


def _walk_mapped_row(task) -> list:
    with in_force().kept("a value of beta"):
        model, how = _worker
        return _walk_row(model, how, task)


def _walk_sent_row(shared: tuple, task, deadline: float) -> list:
    parts, (screening, solver, options) = shared
    model = SparseGrid(sparse_model(*pickle.loads(parts)))
    return _walk_row(model, (screening, solver, replace(options, deadline=deadline)), task)


def _walk_row(model: SparseGrid, how: tuple, task) -> list:
    pairs, first, state = task
    reference = None if state is None else model.restore(state)
    numbered = [None] * first + pairs  # so that the walk counts from `first`
    steps, c = [], None
    for step, certificate in walk(model, numbered, *how, reference, first):
        c, w = certificate, SparseVector.of(certificate.w)
        steps.append((step, SentCertificate(c.alpha, c.beta, w, c.theta, intercept=c.intercept)))
    if c is not None:  # a run goes on behind whole rows: the sums of every step would be much memory
        steps[-1] = steps[-1][0], replace(steps[-1][1], u=c.u, u_slack=c.u_slack, formed=c.formed, room=c.room)
    return steps


@contextlib.contextmanager
def without_current_folder():
    """Let no process that starts meanwhile import from the current folder before it knows its parent's path.

    ``multiprocessing`` starts Python with ``-c``, which puts the current folder first: anybody's ``struct.py`` may lie
    there.
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before
