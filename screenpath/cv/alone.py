"""Leave-one-out as a cross-validation: one path on all rows, and at each step the exact model without each row.

All rows are one fold (:class:`screenpath.cv.folds.Split`), trained on and held out: the ``products`` of its path are of
each row by the model of the others. Data stay scaled and weighted as for all rows.
"""

from __future__ import annotations

import numpy as np

from screenpath.catalogue.scores import ROW_PARTS, SCORES, Score, of_rows
from screenpath.catalogue.spec import Spec
from screenpath.cv.choice import OPEN
from screenpath.cv.folds import Split
from screenpath.errors import UsageError
from screenpath.walk.step import CERTIFIED, verdict


def check_task(spec: Spec, options: dict, classes: int, scores: tuple[Score, ...]) -> None:
    """Refuse models whose rows cannot be left out, and scores of several rows together."""
    from screenpath.engine.leave_out import check_removal

    check_removal(spec.name, options, classes, "use a number: `folds=5`", "use `positive=LABEL` in its place")
    for score in scores:
        if score.name not in ROW_PARTS:
            able = ", ".join(name for name in ROW_PARTS if SCORES[name].task == score.task)
            raise UsageError(f"`score={score.name}` is of several rows, and `folds=loo` holds out one", f"use {able}")


def whole_fold(n: int) -> list[Split]:
    return [Split(0, 0, np.arange(n), np.arange(n))]


def without_each(task, model, certificate) -> tuple[np.ndarray, dict]:
    """Return what each row is predicted to be by the model of the others, shape (n,), and cells of the fold's table.

    Where only labels count (accuracy alone, nothing kept), a bound may stand for a value.
    """
    from screenpath.engine.leave_out import say_cost  # other runs start up without it
    from screenpath.kernels.compilation import ensure_compiled
    from screenpath.solve.polish import polished
    from screenpath.solve.removal import Solution, leave_out

    ensure_compiled("removal_proof")
    labels = task.labels is not None
    bounded = labels and not task.keep and all(one.name == "accuracy" for one in (task.score, *task.further))
    samples = np.arange(model.rows.n)
    say_cost(Solution(model, certificate), samples, task.alone, "a number, such as `folds=10`, takes less")
    of = Solution(model, polished(model, certificate))
    found = leave_out(of, samples, bounded)
    status = verdict(certificate, task.options["tol"])[0]
    if status == CERTIFIED and found.unproven(labels).any():
        status = OPEN
    instead = -of.signs[: model.rows.n] if labels else of.forms[: model.rows.n]  # a label that is not known is wrong
    values = np.where(np.isfinite(found.values), found.values, instead)
    worst = float(found.gap.max())
    return values, {"status": status, "rel_gap": worst / of.certificate.primal if worst > 0.0 else 0.0}


def row_scores(score: Score, products: list, targets, weights=None) -> np.ndarray:
    """Return the score of each row at each step, shape (n, steps), for means and standard errors over rows.

    With weights the mean over rows is the weighted mean, and rows deviate from it by their share of the weight.
    """
    parts = np.column_stack([of_rows(score, one, targets) for one in products])
    if weights is None:
        return parts
    means = np.average(parts, axis=0, weights=weights)
    return means + (parts - means) * (weights / weights.mean())[:, None]
