"""Worker processes, and the rows of a sparse-SVM grid in several: same steps, same order, same numbers.

The data is written to a temporary folder once and mapped by every process, so that it is in memory once.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import groupby
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np

from screenpath.errors import ResourceError
from screenpath.models.sparse import SparseModel, SparseVector
from screenpath.models.sparse_grid import Kept, SparseGrid
from screenpath.path import walk
from screenpath.rows.views import Views

ARRAYS = ("data", "indices", "indptr")
START = "spawn"  # a forked child would inherit threads half way


def walk_grid(model: SparseGrid, pairs, screening, solver, options, reference=None, first: int = 0, jobs: int = 1):
    """Walk a grid of (alpha, beta) as :func:`screenpath.path.walk` does, its rows shared out over processes.

    Parameters
    ----------
    model : SparseGrid
    pairs : sequence of (float, float)
        The rows one after the other.
    screening, solver, options, reference, first
        As of ``walk``.
    jobs : int, default 1

    Yields
    ------
    Step, Certificate or Kept
        In the order of the grid.

    Raises
    ------
    ResourceError
        If a process dies.
    """
    ranks = range(first, len(pairs))
    rows = [list(row) for _, row in groupby(ranks, key=lambda rank: pairs[rank][1])]
    if jobs == 1 or len(rows) < 2:
        yield from walk(model, pairs, screening, solver, options, reference, first)
        return
    with tempfile.TemporaryDirectory(prefix="screenpath-") as folder:
        _save(model.base, Path(folder))
        # Its state, and not the reference itself: a copy of the closed form would not be known as one.
        state = None if reference is None else model.state(reference)
        tasks = [([pairs[rank] for rank in row], row[0], state if row[0] == first else None) for row in rows]
        with workers(min(jobs, len(rows)), _open, (folder, screening, solver, options)) as pool:
            for found, row in zip(pool.map(_walk_row, tasks), rows, strict=True):
                yield from found
                if len(found) < len(row):  # the deadline: later rows would leave a hole behind them
                    return


@contextlib.contextmanager
def workers(jobs: int, initializer, arguments: tuple):
    """Give a pool of processes; whatever ends the block ends them too.

    Parameters
    ----------
    jobs : int
    initializer : callable
        Called in each process first; it should call :func:`follow_parent`.
    arguments : tuple
        Of the initializer.

    Raises
    ------
    ResourceError
        If a process dies.
    """
    context = multiprocessing.get_context(START)
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(jobs, context, initializer, arguments) as pool:
        try:
            yield pool
        except BrokenProcessPool:
            raise ResourceError("a worker process has died", "memory may be short: use fewer --jobs") from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()


def follow_parent() -> None:
    """Leave it to the parent to decide what Ctrl-C means, and end with it, however it ends.

    A process whose parent was killed would wait for its next task for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _save(base: SparseModel, folder: Path) -> None:
    views = base.views
    for view, arrays in (("row", views.by_row), ("column", views.by_column)):
        for name, array in zip(ARRAYS, arrays, strict=True):
            np.save(folder / f"{view}-{name}.npy", array)
    np.save(folder / "row-sqnorms.npy", views.row_sqnorms)
    np.save(folder / "column-sqnorms.npy", views.column_sqnorms)
    np.save(folder / "labels.npy", base.labels)
    shape = np.array([views.n, views.d, views.dense, base.classes, base.gamma])
    np.save(folder / "shape.npy", shape)


_worker: dict = {}  # of a worker process: model, screening, solver, options


def _open(folder: str, screening, solver, options) -> None:
    follow_parent()

    def load(name):
        path = Path(folder) / f"{name}.npy"
        # Mapped copy-on-write: shared, and yet an ordinary array to the compiled code.
        stored = np.load(path, mmap_mode="c") if path.stat().st_size > 1024 else np.load(path)
        return np.asarray(stored)

    n, d, dense, classes, gamma = load("shape").tolist()
    sides = (tuple(load(f"{view}-{name}") for name in ARRAYS) for view in ("row", "column"))
    views = Views.from_parts(int(n), int(d), bool(dense), *sides, load("row-sqnorms"), load("column-sqnorms"))
    base = SparseModel(views, load("labels"), int(classes), 0.0, gamma)
    _worker.update(model=SparseGrid(base), screening=screening, solver=solver, options=options)


def _walk_row(task) -> list:
    pairs, first, state = task
    w = _worker
    reference = None if state is None else w["model"].restore(state)
    numbered = [None] * first + pairs  # so that the walk counts from `first`
    found = walk(w["model"], numbered, w["screening"], w["solver"], w["options"], reference, first)
    return [(step, Kept(c.alpha, c.beta, SparseVector.of(c.w), c.theta, c.u, c.u_slack)) for step, c in found]
