"""The path of each training part and its scores on the held-out part, in one process or several.

Scaling and balanced class weights are measured on the training part alone; the grid is the same for all folds and is
made from all data. A sample weight counts as that many samples everywhere, in the scores too.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path as Folder
from typing import TYPE_CHECKING, Any

import numpy as np

from screenpath.catalogue.scores import Score
from screenpath.catalogue.spec import Spec
from screenpath.cv.alone import without_each
from screenpath.cv.certify import HeldOut, certified_line
from screenpath.cv.folds import Split
from screenpath.cv.saved import COLUMNS, FoldFile, FoldPath, damaged, plain
from screenpath.data.safe.atomic import load_shared, save_shared
from screenpath.data.safe.memory import F8, Bytes, MemoryLimit, code_is_loaded, in_force, shape_of
from screenpath.engine.path import Path
from screenpath.inputs.rows import Samples, prepared
from screenpath.numbers import sparse as sp
from screenpath.problem.unread import MANY
from screenpath.walk.loop import PathOptions, restore_walk, walk_state
from screenpath.walk.sample import beside
from screenpath.walk.step import verdict

if TYPE_CHECKING:
    from screenpath.walk.workers import Workers

NEAR = 0.05  # part of w that a fold's first solution may be away from that of all rows


@dataclass(frozen=True)
class Task:
    """What all folds share, small enough to be sent to every process."""

    spec: Spec  # model: ``build``, ``rule``, ``solver``, ``walk`` and ``weights``
    options: dict  # of the command
    score: Score
    labels: dict | None  # label map of the whole data
    class_weight: object  # dict, "balanced" or None
    storage: str  # {"dense", "sparse"}
    deadline: float  # ``time.monotonic()`` value
    certify: bool = False  # whether to keep what the certified bound needs
    run: str = ""  # key of the data and the options in the files of the folds
    limit: MemoryLimit | None = None  # of a worker process
    keep: bool = False  # whether to keep the linear forms of the held-out samples at every step
    grows: bool = False  # whether points may follow after the end of a grid
    proves: bool = False  # whether to keep the frames of a certificate of every fold
    shares: bool = True  # whether folds in one process may share what they compute alike
    order: np.ndarray | None = None  # of the samples, for what folds share: those held out together beside each other
    further: tuple[Score, ...] = ()  # scores that are reported besides the one that chooses
    alone: Callable | None = None  # leave out each row of the one fold, see ``cv.alone``; it hears of a long wait
    # C, and coefficients and intercept in the units of the file: of a solution on all rows, for folds to begin beside
    beside: tuple[float, np.ndarray, float] | None = None


def fold_path(
    samples: Samples, task: Task, split: Split, grid, tol: float, file=None, begun: FoldPath | None = None
) -> FoldPath:
    """Train on one part over the whole grid and score every step on the other, until the deadline.

    ``file``, a FoldFile, stores the fold as it proceeds; a path that it holds is continued. Where there is none,
    ``begun`` may be the path over the first points of the grid. ``tol`` is the relative gap on the training part.
    """
    limit = in_force()
    saved = (file and file.load()) or begun
    o, spec = task.options, task.spec
    data, test = _parts(samples, task, split)
    # Of several steps at once the last one's certificate is enough; but classes take them at different places.
    asked = task.certify or task.proves or task.alone is not None or tol < o["tol"] or "classes" in (task.labels or {})
    limits = PathOptions(tol=tol, max_epochs=o["max_epochs"], deadline=task.deadline, certificates=asked)
    path = Path.of(spec, {**o, "jobs": 1, "scheduler": None}, data, grid, limits=limits)
    held_weights = None if samples.weights is None else samples.weights[split.held_out]
    targets = samples.targets[split.held_out]
    rows, held_out = [], HeldOut.of(test, targets, [], held_weights) if task.certify else None
    reference, began, kept = None, 0.0, [] if saved is None else list(saved.products)
    frames, proofs = None, []
    if task.proves:
        from screenpath.store.certificates import Frames, fold_frame  # here: others do without scipy's linear algebra

        frames, proofs = Frames(path.model, lone=True), [fold_frame(split, data)]
    if saved is not None:
        rows, held_out, proofs = list(saved.rows), saved.held_out, list(saved.proofs)
        if held_out is not None:
            held_out = replace(held_out, lines=list(held_out.lines))
        try:
            reference = restore_walk(path.model, path.screening, saved.state, grid[len(rows) - 1])
        except ValueError as error:
            raise damaged(file and file.path, error) from None
    elif task.beside is not None and path.model.size >= MANY and task.beside[0] == path.grid[0]:
        C, *solution = task.beside
        w, before = data.preparation.modelled(*solution)[: data.rows.d], data.rows.touched
        reference = beside(path.model, C, w, 0.0, NEAR * w)
        began = (data.rows.touched - before) / data.rows.n
    sure = len(rows)  # a path goes on after a step with a certificate
    for step, certificate in path.walk(reference, len(rows)):
        # A solve that the deadline cut short is dropped: a resumed run must repeat it with the same numbers.
        if time.monotonic() > task.deadline:
            break
        code_is_loaded()
        limit.look(f"step {step.step} of a fold")
        own: dict = {}
        if task.alone is None:
            products = test @ spec.weights(step, task.labels).T
        else:
            products, own = without_each(task, path.model, certificate)
        if task.keep or task.alone is not None:
            kept.append(products)
        forms = spec.of_each_class(products)
        score, *further = (one.function(forms, targets, held_weights) for one in (task.score, *task.further))
        more = zip((one.column for one in task.further), further, strict=True)
        cells = {name: step.cells[name] for name in COLUMNS}
        rows.append({**step.parameters, "score": score, **dict(more), **cells})
        if len(rows) == 1:
            rows[0]["passes"] += began
        if tol < o["tol"]:  # refinement asks for more than the user, whose tolerance decides the status
            rows[-1]["status"] = verdict(certificate, o["tol"])[0]
        rows[-1].update(own)
        if task.certify:
            held_out.lines.append(certified_line(certificate, test, products, held_out, path.model))
        if frames is not None:
            proofs.append(frames.of(step, certificate, getattr(held_out.lines[-1], "made", {}) if task.certify else {}))
        if certificate is None:
            continue
        reference, sure = certificate, len(rows)
        if file is not None and len(rows) < len(grid) and file.due():
            file.save(rows, held_out, walk_state(path.model, path.screening, certificate), kept, proofs)
    rows, kept = rows[:sure], kept[:sure]
    ended = not rows or (len(rows) == len(grid) and not task.grows)
    state = {} if ended else walk_state(path.model, path.screening, reference)
    if file is not None and rows:
        file.save(rows, held_out, state, kept, proofs)
    return FoldPath(split, plain(rows), held_out, kept, state, proofs)


def _parts(samples: Samples, task: Task, split: Split):
    """Return the training part, prepared, and the held-out rows alike."""
    spec, trained = task.spec, split.training(samples.y.size)
    if task.options.get("kernel") == "precomputed":
        held_out, X = (samples.X[index[:, None], trained] for index in (split.held_out, trained))
        part = replace(replace(samples, X=samples.y).part(trained), X=X)
    else:
        part, held_out = samples.part(trained), samples.X[split.held_out]
    data = prepared(spec, task.options, part, task.class_weight, task.storage, spent=True)
    del part
    shared = _shared_values(samples, task, data) if spec.rows is not None and task.shares else None
    dense = task.storage == "dense" and sp.issparse(held_out)
    test = data.preparation.apply(held_out.toarray() if dense else held_out)
    if spec.rows is not None:
        test = data.rows.held_out(test)
    elif isinstance(test, np.ndarray):
        test = np.asfortranarray(test)  # by columns, a product takes two thirds of the time
    if shared is not None:
        shared.give(data.rows, trained, test, split.held_out)
    return data, test


_shared: tuple = ()  # of this process: samples, and the values between their rows


def _shared_values(samples: Samples, task: Task, data):
    """Return the kernel values that folds share, if they prepare their rows alike; None where nothing is shared."""
    global _shared
    from screenpath.rows.kernel_functions import SCALE  # here: other models start up without them
    from screenpath.rows.shared import SharedValues, may_share

    p, function = data.preparation, data.rows.blocks.function
    largest = task.options.get("largest_gamma", function.gamma)
    alike = p.scale is None and p.shift is None and p.fill is None and function.gamma <= largest
    if not function.exponential or not alike or task.options["gamma"] == SCALE:
        return None
    if not (_shared and _shared[0] is samples and _shared[1].blocks.function.gamma == largest):
        if not may_share(samples.y.size, task.options.get("jobs", 1)):
            return None
        _shared = ()  # before others take its place
        options, order = {**task.options, "gamma": largest}, task.order
        order = np.arange(samples.y.size) if order is None else order
        blocks = prepared(task.spec, options, samples.part(order), None, task.storage).rows.blocks
        _shared = samples, SharedValues(blocks, order)
    return _shared[1]


def needs_of_folds(samples: Samples, task: Task, splits: list[Split], points: int) -> tuple[int, int]:
    """Return the bytes of the largest fold without data and solver, and the bytes that all folds keep."""
    o, spec, (n, d) = task.options, task.spec, samples.X.shape
    counts = np.diff(samples.X.indptr) if sp.issparse(samples.X) else np.full(n, d)
    classes = len((task.labels or {}).get("classes", (0,)))
    o = o if spec.rows is None else {**o, "bias": 0.0, "dtype": "float64"}
    largest, left = 0, 0
    for split in splits:
        m, held_out = split.held_out.size, int(counts[split.held_out].sum())
        raw, dense = int(counts.sum()) - held_out, task.storage == "dense"
        shape, test = (shape_of(k, d, nnz, o, dense, classes) for k, nnz in ((n - m, raw), (m, held_out)))
        sliced = 12 * raw + 8 * (n - m)
        tested = 12 * held_out + (3 if dense else 1) * test.rows
        freed = sliced if dense or o["bias"] else 0
        largest = max(largest, sliced + Bytes.of(spec.needs, shape, raw, o).peak(freed - tested))
        left += F8 * points * (16 * m + 2 * max(d + 1, n if spec.rows is not None else 0)) if task.certify else 0
        left += F8 * points * m * classes if task.keep or task.alone is not None else 0
        left += F8 * points * (d + n) if task.proves else 0
    return largest + left // len(splits), left


def finished_paths(samples: Samples, task: Task, splits, grid, tol: float, folder: Folder | None) -> dict:
    """Return the finished paths in a folder, by the rank of their folds."""
    found = {}
    for k, split in enumerate(splits if folder is not None else []):
        saved = _file(samples, task, split, grid, tol, folder).load()
        if saved is not None and len(saved.rows) == len(grid):
            found[k] = saved
    return found


def _file(samples: Samples, task: Task, split: Split, grid, tol: float, folder: Folder | None) -> FoldFile | None:
    if folder is None:
        return None
    bias = bool(task.options.get("bias")) or task.spec.free_bias
    width = samples.X.shape[1] + bias if task.spec.rows is None else samples.y.size - split.held_out.size
    return FoldFile(folder, split, grid, tol, task.run, width if task.certify else None, task.grows)


class Processes:
    """Worker processes for folds: started when there is work for two, and kept until the context ends.

    The samples are written to a temporary folder once; all processes map them.
    """

    def __init__(self, samples: Samples, task: Task, jobs: int):
        self.samples, self.task, self.jobs = samples, task, jobs
        self._held, self._count = contextlib.ExitStack(), 0
        self._pool: Workers | None = None

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        self._close()

    def _close(self) -> None:
        global _shared
        _shared = ()
        self._pool, self._count = None, 0
        self._held.close()

    def _at_least(self, count: int) -> Workers:
        """Return at least ``count`` processes; where there are too few, all are started anew."""
        from screenpath.walk.workers import workers  # here: others start up without what only processes need

        if self._pool is not None and count <= self._count:
            return self._pool
        self._close()
        data = self._held.enter_context(tempfile.TemporaryDirectory(prefix="screenpath-"))
        save_shared(Folder(data), self.samples)
        task = replace(self.task, limit=in_force().share)
        self._pool, self._count = self._held.enter_context(workers(count, _open, (data, task))), count
        return self._pool

    def paths(self, task: Task, left: list, how: tuple):
        """Yield the paths of pairs (split, begun) of a task; ``how`` is grid, tolerance and folder."""
        count = min(self.jobs, len(left))
        if count <= 1:
            for pair in left:
                yield _kept_fold_path(self.samples, task, pair, *how)
            return
        pool, found = self._at_least(count), 0
        try:
            for path in pool.map(_fold_path, [(task, pair, how) for pair in left]):
                found += 1
                yield path
        finally:
            if found < len(left):  # late answers would be taken for those of the next round
                self._close()


def fold_paths(
    samples: Samples, task: Task, splits, grid, tol: float, jobs: int | Processes = 1, folder: Folder | None = None,
    spread=None, begun=None,
):  # fmt: skip
    """Yield the path of every fold, in order; the numbers do not depend on ``jobs``.

    ``jobs`` is how many processes compute them, or Processes of the same samples and task, kept from call to call;
    ``spread`` (:class:`screenpath.rows.cluster.Spread`) is a cluster that computes them instead. ``folder`` gets a file
    for each fold: finished ones are not computed again. ``begun`` are the paths over the first points of the grid. A
    :class:`ResourceError` tells that a process died.
    """
    known = finished_paths(samples, task, splits, grid, tol, folder)
    begun = [None] * len(splits) if begun is None else begun
    left = [pair for k, pair in enumerate(zip(splits, begun, strict=True)) if k not in known]
    how = grid, tol, folder
    with contextlib.ExitStack() as stack:
        if spread is not None:
            computed = _send(samples, task, left, how, spread)
        elif isinstance(jobs, Processes):
            computed = jobs.paths(task, left, how)
        else:
            computed = stack.enter_context(Processes(samples, task, jobs)).paths(task, left, how)
        stack.enter_context(contextlib.closing(computed))
        for k in range(len(splits)):
            yield known.pop(k) if k in known else next(computed)


def _kept_fold_path(samples: Samples, task: Task, pair: tuple, grid, tol: float, folder: Folder | None) -> FoldPath:
    split, begun = pair
    file = _file(samples, task, split, grid, tol, folder)
    with in_force().kept(f"fold {split.fold + 1}", task.spec.needs.hint):
        return fold_path(samples, task, split, grid, tol, file, begun)


def _send(samples: Samples, task: Task, left: list, how: tuple, spread):
    """Yield the paths that a cluster computes; each is written here as soon as it arrives."""
    from screenpath.rows.cluster import in_order  # here: as in `Processes`

    grid, tol, folder = how
    task = replace(task, limit=in_force().share)
    files = [_file(samples, task, split, grid, tol, folder) for split, _ in left]
    known = [(file and file.load()) or begun for file, (_, begun) in zip(files, left, strict=True)]
    tasks = [(task, split, grid, tol, saved) for (split, _), saved in zip(left, known, strict=True)]

    def written():
        for rank, found in spread.run(_sent_fold_path, samples, tasks, task.deadline):
            if files[rank] is not None and found.rows:
                files[rank].save(found.rows, found.held_out, found.state, found.products, found.proofs)
            yield rank, found

    yield from in_order(written())


def _sent_fold_path(samples: Samples, sent: tuple, deadline: float) -> FoldPath:
    task, split, grid, tol, begun = sent
    with (task.limit or MemoryLimit()).in_force():
        return fold_path(samples, replace(task, deadline=deadline, shares=False), split, grid, tol, None, begun)


_worker: Any = None  # of a worker process: the samples


def _open(data: str, task: Task) -> None:
    from screenpath.walk.workers import follow_parent  # which this process has loaded

    global _worker
    follow_parent()
    (task.limit or MemoryLimit()).begin()
    _worker = load_shared(Folder(data))


def _fold_path(asked: tuple) -> FoldPath:
    task, pair, how = asked
    return _kept_fold_path(_worker, task, pair, *how)
