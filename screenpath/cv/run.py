"""The path of each training part and its scores on the held-out part, in one process or several.

Every fold is a warm-started, screened path by the one loop of ``path.py``. Scaling and balanced class weights are
measured on the training part alone; the grid is the same for all folds and is made from all data.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from screenpath.cv.certify import HeldOut, certified_line
from screenpath.cv.folds import Split
from screenpath.models.builders import row_weights
from screenpath.parallel import close_to_signals, workers
from screenpath.path import PathOptions, walk
from screenpath.prepare import prepare
from screenpath.rows.memory import MemoryRows
from screenpath.scores import Score

COLUMNS = (
    "status", "rel_gap", "rejection_ratio", "nnz_w", "epochs", "passes", "screen_s", "solve_s", "certify_s",
)  # fmt: skip


@dataclass(frozen=True)
class Task:
    """What all folds have in common, small enough to be sent to every process.

    Parameters
    ----------
    spec : cli.spec.ModelSpec
        Model: ``build``, ``rule``, ``solver``, ``walk`` and ``weights``.
    options : dict
        Of the command.
    score : Score
    labels : dict or None
        Label map of the whole data.
    class_weight : dict, "balanced" or None
    storage : {"dense", "sparse"}
    deadline : float
        ``time.monotonic()`` value.
    certify : bool
        Whether to keep what the certified bound needs.
    """

    spec: object
    options: dict
    score: Score
    labels: dict | None
    class_weight: object
    storage: str
    deadline: float
    certify: bool = False


@dataclass(frozen=True)
class FoldPath:
    """One fold over one grid.

    Parameters
    ----------
    split : Split
    rows : list of dict
        One a grid point that was reached: parameters, score and the columns of ``COLUMNS``.
    held_out : HeldOut or None
        For the certified bound.
    """

    split: Split
    rows: list
    held_out: HeldOut | None = None

    def only(self, values: set) -> FoldPath:
        """Return the grid points whose C is among the given values."""
        lines = [line for line in self.held_out.lines if line.C in values]
        return FoldPath(self.split, [r for r in self.rows if r["C"] in values], replace(self.held_out, lines=lines))

    def merged(self, other: FoldPath) -> FoldPath:
        """Return both, in the order of C; what ``other`` has solved again takes its place."""
        rows = {row["C"]: row for row in (*self.rows, *other.rows)}
        lines = {line.C: line for line in (*self.held_out.lines, *other.held_out.lines)}
        ordered = [lines[C] for C in sorted(lines)]
        return FoldPath(self.split, [rows[C] for C in sorted(rows)], replace(self.held_out, lines=ordered))


@dataclass(frozen=True)
class Samples:
    """The raw data.

    Parameters
    ----------
    X : csr_array of shape (n, d)
        In the units of the file.
    y, targets : ndarray of shape (n,)
        Labels of the file and what the model makes of them.
    weights : ndarray of shape (n,) or None
        Sample weights.
    """

    X: sp.csr_array
    y: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None = None


def fold_path(samples: Samples, task: Task, split: Split, grid, tol: float) -> FoldPath:
    """Train on one part over the whole grid and score every step on the other.

    Parameters
    ----------
    samples : Samples
    task : Task
    split : Split
    grid : sequence
        Parameters in the order of the walk.
    tol : float
        Relative gap of every step on the training part.

    Returns
    -------
    FoldPath
        Shorter than the grid where the deadline came first.
    """
    o, spec = task.options, task.spec
    training = split.training(samples.y.size)
    training_rows, preparation = _rows(samples, task, training)
    given = None if samples.weights is None else samples.weights[training]
    weights = row_weights(samples.y[training], task.class_weight, given)
    model = spec.build(training_rows, samples.targets[training], weights, o)
    held_out = samples.X[split.held_out]
    test = preparation.apply(held_out.toarray() if task.storage == "dense" else held_out)
    if spec.rows is not None:
        test = training_rows.held_out(test)
    targets = samples.targets[split.held_out]
    options = PathOptions(tol=tol, max_epochs=o["max_epochs"], deadline=task.deadline)
    go = spec.walk({**o, "jobs": 1}) if spec.walk else walk
    rows, lines = [], []
    for step, certificate in go(model, grid, spec.rule(o["rule"]), spec.solver(o["solver"], o["seed"]), options):
        products = test @ spec.weights(step, task.labels).T
        score = task.score.function(products, targets)
        rows.append({**step.parameters, "score": score, **{name: getattr(step, name) for name in COLUMNS}})
        if task.certify:
            lines.append(certified_line(certificate, test, products, targets))
    return FoldPath(split, rows, HeldOut.of(test, targets, lines) if task.certify else None)


def _rows(samples: Samples, task: Task, training):
    """Return the training rows, behind the kernel where there is one, and their preparation."""
    o, spec = task.options, task.spec
    if spec.rows is not None:
        X, preparation = prepare(samples.X[training], o["scale"], 0.0, task.storage)
        return spec.rows(X, samples.targets[training], o, None), preparation
    X, preparation = prepare(samples.X[training], o["scale"], o["bias"], task.storage, np.dtype(o["dtype"]))
    if spec.free_bias:
        preparation = replace(preparation, bias=1.0)
    return MemoryRows(X, o["threads"]), preparation


def fold_paths(samples: Samples, task: Task, splits, grid, tol: float, jobs: int = 1):
    """Yield the path of every fold, in order; the numbers do not depend on ``jobs``.

    Parameters
    ----------
    samples : Samples
    task : Task
    splits : list of Split
    grid : sequence
    tol : float
    jobs : int, default 1
        Processes; the data is written to a temporary folder once and mapped by all of them.

    Yields
    ------
    FoldPath

    Raises
    ------
    ResourceError
        If a process dies.
    """
    jobs = min(jobs, len(splits))
    if jobs == 1:
        for split in splits:
            yield fold_path(samples, task, split, grid, tol)
        return
    with tempfile.TemporaryDirectory(prefix="screenpath-") as folder:
        _save(samples, Path(folder))
        with workers(jobs, _open, (folder, task, grid, tol)) as pool:
            yield from pool.map(_fold_path, splits)


def _save(samples: Samples, folder: Path) -> None:
    arrays = {"data": samples.X.data, "indices": samples.X.indices, "indptr": samples.X.indptr}
    arrays.update(y=samples.y, targets=samples.targets, shape=np.array(samples.X.shape))
    if samples.weights is not None:
        arrays["weights"] = samples.weights
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


_worker: dict = {}  # of a worker process: samples, task, grid, tol


def _open(folder: str, task: Task, grid, tol: float) -> None:
    close_to_signals()

    def load(name):
        path = Path(folder) / f"{name}.npy"
        # Mapped copy-on-write: shared, and yet an ordinary array.
        return np.asarray(np.load(path, mmap_mode="c") if path.stat().st_size > 1024 else np.load(path))

    X = sp.csr_array((load("data"), load("indices"), load("indptr")), shape=tuple(load("shape").tolist()))
    weights = load("weights") if (Path(folder) / "weights.npy").exists() else None
    _worker.update(samples=Samples(X, load("y"), load("targets"), weights), task=task, grid=grid, tol=tol)


def _fold_path(split: Split) -> FoldPath:
    w = _worker
    return fold_path(w["samples"], w["task"], split, w["grid"], w["tol"])
