"""Scores of linear forms against targets: of test data, of predictions and of held-out folds.

``products`` are the linear forms ``x.w`` of the rows, of shape (m,), or (m, classes) where each class has its weights;
``targets`` are -1 and +1, class numbers, or real targets. A linear form of exactly 0 counts as negative, as in
LIBLINEAR. ``weights``, where they are given, say how often each row stands in the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from screenpath.errors import UsageError

CLASSIFICATION, REGRESSION = "classification", "regression"


def decided(products, targets) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted and true class numbers; 0 and 1 for signs."""
    if products.ndim == 2:
        return products.argmax(axis=1), np.asarray(targets)
    return (products > 0.0).astype(np.int64), (np.asarray(targets) > 0.0).astype(np.int64)


def mean(values, weights=None) -> float:
    """Return the weighted mean over the rows."""
    return float(np.mean(values) if weights is None else np.average(values, weights=weights))


def count(chosen, weights=None):
    """Return the total weight of the chosen rows."""
    return np.count_nonzero(chosen) if weights is None else weights[chosen].sum()


def right(products, targets) -> np.ndarray:
    """Tell for each row whether it is decided as labelled."""
    found, true = decided(products, targets)
    return found == true


def accuracy(products, targets, weights=None) -> float:
    return mean(right(products, targets), weights)


def balanced_accuracy(products, targets, weights=None) -> float:
    """Return the mean over the classes present of the share of their rows decided as labelled."""
    found, true = decided(products, targets)
    return float(np.mean([count((found == k) & (true == k), weights) / size for k, size in _present(true, weights)]))


def f1(products, targets, weights=None) -> float:
    """Return the harmonic mean of precision and recall of +1; for several classes its mean over those present."""
    found, true = decided(products, targets)
    classes = [k for k, _ in _present(true, weights)] if products.ndim == 2 else [1]
    values = []
    for k in classes:
        both = count((found == k) & (true == k), weights)
        either = count(found == k, weights) + count(true == k, weights)
        values.append(2.0 * both / either if either else 0.0)
    return float(np.mean(values))


def _present(true, weights) -> list:
    """Return the classes with rows of a weight above 0, and the number of these rows."""
    sizes = [(k, count(true == k, weights)) for k in np.unique(true)]
    return [(k, size) for k, size in sizes if size > 0.0]


def auc(products, targets, weights=None) -> float:
    """Return the area under the ROC curve: the share, by weight, of pairs of a +1 and a -1 row in which the +1 row has
    the larger linear form, ties counting half. nan if all targets are of one class.
    """
    positive, weights = np.asarray(targets) > 0.0, np.ones(len(products)) if weights is None else weights
    _, level = np.unique(products, return_inverse=True)
    high, low = (np.bincount(level[side], weights[side], level.max() + 1) for side in (positive, ~positive))
    if not (high.any() and low.any()):
        return math.nan
    below = np.cumsum(low) - low
    return float(high @ (below + 0.5 * low) / (high.sum() * low.sum()))


def mae(products, targets, weights=None) -> float:
    return mean(np.abs(products - targets), weights)


def mse(products, targets, weights=None) -> float:
    return mean(np.square(products - targets), weights)


def pinball(products, targets, weights=None, tau: float = 0.5) -> float:
    """Return the mean of ``max((tau - 1) t, tau t)``, ``t = target - product``."""
    t = targets - products
    return mean(np.maximum((tau - 1.0) * t, tau * t), weights)


@dataclass(frozen=True)
class Score:
    name: str  # in ``--score``; columns have ``_`` for ``-``
    function: Callable  # ``function(products, targets, weights=None) -> float``
    higher: bool  # whether higher is better
    task: str  # ``classification`` or ``regression``
    two_classes: bool = False  # whether it is defined for two classes only

    @property
    def column(self) -> str:
        """Return the name in columns."""
        return self.name.replace("-", "_")


SCORES = {
    score.name: score
    for score in (
        Score("accuracy", accuracy, True, CLASSIFICATION),
        Score("balanced-accuracy", balanced_accuracy, True, CLASSIFICATION),
        Score("f1", f1, True, CLASSIFICATION),
        Score("auc", auc, True, CLASSIFICATION, two_classes=True),
        Score("mae", mae, False, REGRESSION),
        Score("mse", mse, False, REGRESSION),
        Score("pinball", pinball, False, REGRESSION),
    )
}


def of_rows(name: str, products, targets) -> np.ndarray:
    """Return each row's contribution to a score that is a mean over rows: accuracy, mae or mse."""
    parts = {"accuracy": right, "mae": lambda p, t: np.abs(p - t), "mse": lambda p, t: np.square(p - t)}
    return parts[name](products, targets).astype(np.float64)


def higher_is_better(column: str) -> bool:
    """Tell whether a score column of a step table (``test_...``, ``cv_...``) is better when higher."""
    name = column.removeprefix("test_").removeprefix("cv_").replace("_", "-")
    return SCORES[name].higher


def choose_score(name: str | None, spec, task: str, classes: int = 2, tau: float | None = None) -> Score:
    """Return the score of that name, by default the model's own, if it fits the task; ``tau`` is the level of the
    pinball loss, 0.5 by default.
    """
    if name is None:
        name = spec.chosen_by or spec.score
    score = SCORES[name]
    if score.task != task:
        fitting = ", ".join(other.name for other in SCORES.values() if other.task == task)
        raise UsageError(f"`score={name}` is for {score.task}, and {spec.name} is for {task}", f"use one of {fitting}")
    if score.two_classes and classes > 2:
        raise UsageError(
            f"`score={name}` needs two classes; there are {classes}", "use accuracy, balanced-accuracy or f1"
        )
    if name == "pinball" and tau is not None:
        score = Score(name, partial(pinball, tau=tau), score.higher, score.task)
    return score
