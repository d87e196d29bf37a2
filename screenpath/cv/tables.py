"""The tables of a cross-validation: what the choice says of each step, and in cv.json."""

from __future__ import annotations

import numpy as np

from screenpath.data.words.tables import CsvTable
from screenpath.store.choose import Choice


def csv_text(columns, rows) -> str:
    """Return a table as CSV."""
    table = CsvTable(columns)
    return "".join([table.opening(), *(table.record(row, first=k == 0) for k, row in enumerate(rows))])


def scores_text(parameters: list, choice: Choice, n_folds: int) -> str:
    """Return cv.csv: mean and standard error at each grid point, whose parameters are given, and which are chosen."""
    names, scored = list(parameters[0]), np.isfinite(choice.mean)
    rows = [
        {
            "step": k, **point, "mean": choice.mean[k], "se": choice.se[k], "n_folds": n_folds if scored[k] else 0,
            "best": int(k == choice.best), "one_se": int(k == choice.one_se),
        }
        for k, point in enumerate(parameters)
    ]  # fmt: skip
    return csv_text(("step", *names, "mean", "se", "n_folds", "best", "one_se"), rows)


def chosen(parameters: list, choice: Choice, step: int) -> dict:
    """Return what is known of a step, for cv.json."""
    mean, se = float(choice.mean[step]), float(choice.se[step])
    return {"step": step, "parameters": parameters[step], "mean": mean, "se": se}
