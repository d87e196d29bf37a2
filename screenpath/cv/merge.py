"""Merge cross-validations of a job array: each has some of the folds and the path on all data."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

from screenpath.cv.choice import chosen, scores_text
from screenpath.data.words.tables import readable_json
from screenpath.engine.merge import TOGETHER, Plan, check_alike, in_order, merge_paths, open_parts, write
from screenpath.errors import UsageError
from screenpath.store.choose import at_boundary, choose
from screenpath.store.record import damaged, read_record


def merge_runs(folders, out, force: bool = False, command=("screenpath.merge_runs",)) -> dict:
    """Merge runs that are parts of one into a run folder.

    Parameters
    ----------
    folders : sequence of path-like
        Of ``part=1/K`` to ``part=K/K`` of a path or of a cross-validation, or of runs that differ in the values of
        their grid alone.
    out : path-like
    force : bool
    command : sequence of str
        For run.json.

    Returns
    -------
    dict
        Content of the run.json that was written.

    Raises
    ------
    UsageError
        If they are not parts of one run, saying what does not fit.
    RunFolderError
        If one is damaged, or there is a run in the folder already.
    """
    runs = open_parts(folders)
    validated = [run.has("cv.json") for run in runs]
    if all(validated):
        _merge_folds(runs, out, force, list(command))
    elif any(validated):
        raise UsageError("some of the runs are cross-validations, the others are paths", TOGETHER)
    else:
        merge_paths(runs, out, force, list(command))
    return read_record(Path(out))


def _merge_folds(runs: list, out, force: bool, command: list) -> None:
    """Write the cross-validation over all folds: scores and choice anew, the path on all data from the first part."""
    if not all(run.record["options"].get("part") for run in runs):
        raise UsageError("cross-validations are put together from parts of their folds", "compute them with `part=I/K`")
    runs = in_order(runs)
    check_alike(runs, ("part",))
    records = [json.loads((run.path / "cv.json").read_text()) for run in runs]
    tables = [(run.path / "folds.csv").read_text().splitlines(keepends=True) for run in runs]
    folds = [tables[0][0], *(line for table in tables for line in table[1:])]
    first = runs[0]
    parameters = [{name: row[name] for name in first.parameters} for row in first.table]
    choice = choose(_scores(first, folds, len(parameters)), records[0]["higher_is_better"])
    column = first.score_column
    rows = [
        (first, row, {**row, column: choice.mean[k], f"{column}_se": choice.se[k]}) for k, row in enumerate(first.table)
    ]
    whole = {
        **records[0],
        "fold_sizes": [size for record in records for size in record["fold_sizes"]],
        "best": chosen(parameters, choice, choice.best),
        "one_se": chosen(parameters, choice, choice.one_se),
        "at_boundary": at_boundary(parameters, choice.best),
        "seconds": sum(record["seconds"] for record in records),
    }
    outputs = (
        ("cv.csv", scores_text(parameters, choice, len(whole["fold_sizes"]))),
        ("folds.csv", "".join(folds)),
        ("cv.json", readable_json(whole) + "\n"),
    )
    certified = all(run.record["folds_certified"] for run in runs)
    plan = Plan(runs, [], {"part": None}, [first])
    write(plan, rows, out, force, command, {"folds_certified": certified}, outputs)


def _scores(run, folds: list, steps: int) -> np.ndarray:
    """Return the scores, shape (folds, steps); nan for steps that a fold did not reach."""
    found: dict[tuple, np.ndarray] = {}
    for row in csv.DictReader(folds):
        scores = found.setdefault((row["repeat"], row["fold"]), np.full(steps, np.nan))
        if not 0 <= int(row["step"]) < steps:
            raise damaged(run.path / "folds.csv", "it has steps that the path has not")
        scores[int(row["step"])] = float(row["score"])
    return np.array(list(found.values()))
