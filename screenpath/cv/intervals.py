"""Prediction intervals of a cross-validated regression: CV+, by the models of its folds."""

from __future__ import annotations

import math

import numpy as np

from screenpath.catalogue.scores import REGRESSION, choose_score
from screenpath.cv.folds import Split, digest_of, splits_of
from screenpath.cv.run import Task, fold_path
from screenpath.engine.leave_out import VALUES, check_alike, check_intervals, check_step, ends_of, intervals
from screenpath.engine.run_problem import problem_of_run
from screenpath.errors import DataError, RunFolderError
from screenpath.inputs.load import read_training
from screenpath.inputs.rows import Samples
from screenpath.numbers import sparse as sp
from screenpath.store.open import Run
from screenpath.walk.step import CERTIFIED


def intervals_of(run: Run, step, X, level: float = 0.9, training: str | tuple | None = None) -> tuple[np.ndarray, str]:
    """Return prediction intervals for new rows, shape (m, 2), and in words what they promise.

    Those of a cross-validation are CV+ (Barber, Candes, Ramdas, Tibshirani 2021): each fold's model predicts the new
    row, and for each training row the error of the model that has not seen it is added and subtracted. The folds of the
    first repeat are solved again at the step. Those of other runs, of classifiers and of ``folds=loo`` are jackknife+,
    see :meth:`screenpath.engine.leave_out.LeaveOneOut.intervals`. ``step`` is a row of the step table, ``X`` csr in the
    units of the data, with the columns of the run.
    """
    if not run.cross_validated or run.labels is not None or run.record["options"]["folds"] == "loo":
        return intervals(run, step, X, level, training)
    check_intervals(run)
    errors, fold, values = _by_folds(run, [check_step(step)[name] for name in run.parameters], X, level, training)
    out, size = np.empty((X.shape[0], 2)), 1 + VALUES // errors.size
    for start in range(0, X.shape[0], size):
        out[start : start + size] = ends_of(values[start : start + size, fold], errors, level)
    n, folds = errors.size, values.shape[1]
    # Of folds of one size (Barber et al. 2021, theorem 4).
    lost = min(2.0 * (1.0 - 1.0 / folds) / (n / folds + 1.0), (1.0 - folds / n) / (folds + 1.0))
    least = math.floor(100.0 * max(2.0 * level - 1.0 - lost, 0.0) + 1e-9)
    return out, f"CV+ by the models of {folds} folds: at least {least}% of targets like those of training are inside"


def _by_folds(run: Run, parameters: list, X, level: float, training) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return of n training rows their errors when held out and their folds, and (m, folds) predictions of new rows."""
    with problem_of_run(run, training) as (spec, asked, data):
        check_alike(data.sample_weights)
        raw, n, count = read_training(asked), data.targets.size, X.shape[0]
        o = {**run.record["options"], **asked, "penalty_weights": data.penalties, "signs": data.signs}
        splits = splits_of(o, n, raw.groups)
        if digest_of(splits) != run.record["identity"]["folds_sha256"]:
            raise DataError("the folds are not those of the run", "restore the file of `fold_file`")
        splits = [one for one in splits if one.repeat == 0]
        none, rows = np.zeros(count), sp.csr_array(sp.vstack([sp.csr_array(raw.X), X]))
        # New rows are held out of every fold: their targets count nowhere.
        samples = Samples(rows, np.append(raw.y, none), np.append(data.targets, none))
        score = choose_score(None, spec, REGRESSION, 2, o.get("tau"))
        storage = "sparse" if data.rows.sparse else "dense"
        task = Task(spec, o, score, None, None, storage, math.inf, keep=True)
        grid = np.array([parameters] if parameters[1:] else parameters)
        errors, fold, values = np.empty(n), np.empty(n, dtype=np.int64), np.empty((count, len(splits)))
        for k, split in enumerate(splits):
            whole = Split(0, k, np.append(split.held_out, n + np.arange(count)), split.training(n))
            found = fold_path(samples, task, whole, grid, o["tol"])
            if found.rows[0]["status"] != CERTIFIED:
                raise RunFolderError(f"fold {k} could not be certified", "compute the run with a larger `tol`")
            own, values[:, k] = np.split(found.products[0], [split.held_out.size])
            errors[split.held_out], fold[split.held_out] = np.abs(data.targets[split.held_out] - own), k
    return errors, fold, values
