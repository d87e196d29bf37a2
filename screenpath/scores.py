"""Scores of linear forms against targets: of test data, of predictions and of held-out folds.

``products`` are the linear forms ``x.w`` of the rows, of shape (m,), or (m, classes) where each class has its weights;
``targets`` are -1 and +1, class numbers, or real targets. A linear form of exactly 0 counts as negative, as in
LIBLINEAR.
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


def accuracy(products, targets) -> float:
    """Return the share of rows decided as labelled."""
    found, true = decided(products, targets)
    return float((found == true).mean())


def balanced_accuracy(products, targets) -> float:
    """Return the mean over the classes present of the share of their rows decided right."""
    found, true = decided(products, targets)
    return float(np.mean([(found[true == k] == k).mean() for k in np.unique(true)]))


def f1(products, targets) -> float:
    """Return the harmonic mean of precision and recall of +1; of several classes the mean over those present."""
    found, true = decided(products, targets)
    classes = np.unique(true) if products.ndim == 2 else [1]
    values = []
    for k in classes:
        both = np.count_nonzero((found == k) & (true == k))
        either = np.count_nonzero(found == k) + np.count_nonzero(true == k)
        values.append(2.0 * both / either if either else 0.0)
    return float(np.mean(values))


def auc(products, targets) -> float:
    """Return the area under the ROC curve: the chance that a +1 row has the larger linear form, ties counting half.

    nan where all targets are of one class.
    """
    from scipy.stats import rankdata

    positive = np.asarray(targets) > 0.0
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    if not (n_positive and n_negative):
        return math.nan
    ranks = rankdata(products)
    return float((ranks[positive].sum() - 0.5 * n_positive * (n_positive + 1)) / (n_positive * n_negative))


def mae(products, targets) -> float:
    """Return the mean absolute error."""
    return float(np.abs(products - targets).mean())


def mse(products, targets) -> float:
    """Return the mean squared error."""
    return float(np.square(products - targets).mean())


def pinball(products, targets, tau: float = 0.5) -> float:
    """Return the mean of ``max((tau - 1) t, tau t)``, ``t = target - product``."""
    t = targets - products
    return float(np.maximum((tau - 1.0) * t, tau * t).mean())


@dataclass(frozen=True)
class Score:
    """A score by name.

    Parameters
    ----------
    name : str
        As ``--score`` has it, with ``_`` in place of ``-`` in columns.
    function : callable
        ``function(products, targets) -> float``.
    higher : bool
        Whether more is better.
    task : str
        ``classification`` or ``regression``.
    two_classes : bool
        Whether it is defined for two classes only.
    """

    name: str
    function: Callable
    higher: bool
    task: str
    two_classes: bool = False

    @property
    def column(self) -> str:
        """Return the name as part of a column."""
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


def higher_is_better(column: str) -> bool:
    """Tell whether a score column of a step table (``test_...``, ``cv_...``) is better when higher."""
    name = column.removeprefix("test_").removeprefix("cv_").replace("_", "-")
    return SCORES[name].higher


def choose_score(name: str | None, model: str, task: str, classes: int = 2, tau: float | None = None) -> Score:
    """Return the score of that name, or the model's own.

    Parameters
    ----------
    name : str or None
        None: accuracy of classifiers, the pinball loss of quantile regressions, the mean absolute error of others.
    model : str
        For messages and the default.
    task : str
        ``classification`` or ``regression``.
    classes : int
    tau : float, optional
        Level of the pinball loss, by default 0.5.

    Raises
    ------
    UsageError
        If the score does not fit the task.
    """
    if name is None:
        name = "accuracy" if task == CLASSIFICATION else "pinball" if model == "quantile" else "mae"
    score = SCORES[name]
    if score.task != task:
        fitting = ", ".join(other.name for other in SCORES.values() if other.task == task)
        raise UsageError(f"--score {name} is for {score.task}, and {model} is for {task}", f"use one of {fitting}")
    if score.two_classes and classes > 2:
        raise UsageError(
            f"--score {name} needs two classes; there are {classes}", "use accuracy, balanced-accuracy or f1"
        )
    if name == "pinball" and tau is not None:
        score = Score(name, partial(pinball, tau=tau), score.higher, score.task)
    return score
