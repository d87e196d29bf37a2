"""Scores of linear forms against targets: of test data, of predictions and of held-out folds; and the step they choose.

``products`` are the linear forms ``x.w`` of the rows, of shape (m,), or (m, classes) where each class has its weights;
``targets`` are -1 and +1, class numbers, or real targets. A linear form of exactly 0 counts as negative, as in
LIBLINEAR. ``weights``, where they are given, say how often each row stands in the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from screenpath.errors import ResourceError, UsageError

CLASSIFICATION, REGRESSION = "classification", "regression"


def decided(products, targets) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted and true class numbers; whether they are above 0 for signs."""
    if products.ndim == 2:
        return products.argmax(axis=1), np.asarray(targets)
    return products > 0.0, np.asarray(targets) > 0.0


def pairs_of(labels: int | list) -> list[tuple]:
    """Return the pairs of one-vs-one in LIBSVM's order; of a number of labels those of their numbers."""
    return list(combinations(range(labels) if isinstance(labels, int) else labels, 2))


def votes(forms: np.ndarray) -> np.ndarray:
    """Return how many pairs decide for each class, shape (m, classes), by the forms of :func:`pairs_of`, (m, pairs).

    A form above 0 is a vote for the first of its pair, any other for the second, as in LIBSVM's ``svm_predict_values``;
    of equally many votes the first class has the most (``argmax``).
    """
    pairs = np.array(pairs_of(round((1.0 + math.sqrt(1.0 + 8.0 * forms.shape[1])) / 2.0)))
    found = np.zeros((forms.shape[0], pairs[-1, 1] + 1))
    np.add.at(found, (np.arange(len(forms))[:, None], np.where(forms > 0.0, *pairs.T)), 1.0)
    return found


def mean(values, weights=None) -> float:
    if weights is None and values.dtype == bool and values.size:  # the same number, sooner
        return np.count_nonzero(values) / values.size
    return float(np.mean(values) if weights is None else np.average(values, weights=weights))


def count(chosen, weights=None):
    """Return the total weight of the chosen rows."""
    return np.count_nonzero(chosen) if weights is None else weights[chosen].sum()


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


# Of a typical decision: how accurate decisions are. Nearer ones may be equal but for the solver, such as those of rows
# on their kink, all -1 or +1. At a relative gap of 1e-6 those of one-hot tables were up to 3e-5 apart.
RESOLUTION = 1e-4


def tied(products) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Group the linear forms, shape (m,), that differ by less than their accuracy, so that noise is no order.

    Returns the group of each, the lowest and the highest form of each group, ascending, and the accuracy,
    ``RESOLUTION * max(1, median |form|)``. No group is wider: a longer chain of near forms is cut into such widths.
    """
    forms, at = np.unique(products, return_inverse=True)
    width = RESOLUTION * max(1.0, float(np.median(np.abs(forms))))
    chain = np.append(True, np.diff(forms) > width)
    start = forms[np.maximum.accumulate(np.where(chain, np.arange(forms.size), 0))]
    first = chain | np.append(True, np.diff(np.floor((forms - start) / width)) != 0.0)
    return np.cumsum(first)[at] - 1, forms[first], forms[np.append(first[1:], True)], width


def auc(products, targets, weights=None) -> float:
    """Return the area under the ROC curve: the share, by weight, of pairs of a +1 and a -1 row in which the +1 row has
    the larger linear form, ties (see :func:`tied`) counting half. nan if all targets are of one class.
    """
    positive, weights = np.asarray(targets) > 0.0, np.ones(len(products)) if weights is None else weights
    level = tied(products)[0]
    high, low = (np.bincount(level[side], weights[side], level.max() + 1) for side in (positive, ~positive))
    if not (high.any() and low.any()):
        return math.nan
    below = np.cumsum(low) - low
    return float(high @ (below + 0.5 * low) / (high.sum() * low.sum()))


# Column of the step table: the rows of ``--test`` by label and prediction, label after label, if labels are so few.
CONFUSION, TABULATED = "confusion", 20


def confusion(products, targets) -> np.ndarray:
    """Return the number of rows by label and prediction, shape (labels, labels)."""
    found, true = decided(products, targets)
    k = 2 if products.ndim == 1 else products.shape[1]
    return np.bincount(k * true.astype(np.int64) + found, minlength=k * k).reshape(k, k)


def r2(products, targets, weights=None) -> float:
    """Return ``1 - mse / variance`` of the targets that are scored: 0 for their mean; nan if all are equal."""
    variance, mse = (mean(np.square(one - targets), weights) for one in (mean(targets, weights), products))
    return 1.0 - mse / variance if variance > 0.0 else math.nan


# Each row's contribution to scores that are means over rows, and the other scores; the level is that of the pinball
# loss, ``max((tau - 1) t, tau t)``, ``t = target - product``.
ROW_PARTS: dict[str, Callable] = {
    "accuracy": lambda p, t, level: np.equal(*decided(p, t)),
    "mae": lambda p, t, level: np.abs(p - t),
    "mse": lambda p, t, level: np.square(p - t),
    "pinball": lambda p, t, level: np.maximum((level - 1.0) * (t - p), level * (t - p)),
}
WHOLE: dict[str, Callable] = {"balanced-accuracy": balanced_accuracy, "f1": f1, "auc": auc, "r2": r2}


@dataclass(frozen=True)
class Score:
    name: str  # in ``--score``; columns have ``_`` for ``-``
    higher: bool  # whether higher is better
    task: str  # ``classification`` or ``regression``
    two_classes: bool = False  # whether it is defined for two classes only
    level: float | None = None  # the constant with the best score is this quantile of the targets; else their mean

    @property
    def column(self) -> str:
        return self.name.replace("-", "_")

    def __str__(self) -> str:
        return f"{self.name} at tau = {self.level:g}" if self.name == "pinball" else self.name

    def function(self, products, targets, weights=None) -> float:
        if self.name in WHOLE:
            return WHOLE[self.name](products, targets, weights)
        return mean(ROW_PARTS[self.name](products, targets, self.level), weights)


SCORES = {
    score.name: score
    for score in (
        Score("accuracy", True, CLASSIFICATION),
        Score("balanced-accuracy", True, CLASSIFICATION),
        Score("f1", True, CLASSIFICATION),
        Score("auc", True, CLASSIFICATION, two_classes=True),
        Score("mae", False, REGRESSION, level=0.5),
        Score("mse", False, REGRESSION),
        Score("pinball", False, REGRESSION, level=0.5),
        Score("r2", True, REGRESSION),
    )
}


def of_rows(score: Score, products, targets) -> np.ndarray:
    """Return each row's contribution to a score of ``ROW_PARTS``."""
    return ROW_PARTS[score.name](products, targets, score.level).astype(np.float64)


def higher_is_better(column: str) -> bool:
    """Tell whether a score column of a step table (``test_...``, ``cv_...``) is better when higher."""
    name = column.removeprefix("test_").removeprefix("cv_").replace("_", "-")
    return SCORES[name].higher


def choose_score(name: str | None, spec, task: str, classes: int = 2, tau: float | None = None) -> Score:
    """Return the score of that name, or the model's own, if it fits the task; ``tau`` is that of the pinball loss."""
    if name is None:
        name = spec.chosen_by or spec.score
    score = SCORES[name]
    if score.task != task:
        fitting = ", ".join(other.name for other in SCORES.values() if other.task == task)
        raise UsageError(f"`score={name}` is for {score.task}, and {spec.name} is for {task}", f"use one of {fitting}")
    if score.two_classes and classes > 2:
        what = f"`score={name}` needs two classes; there are {classes}"
        raise UsageError(what, "use accuracy, balanced-accuracy or f1")
    if name == "pinball" and tau is not None:
        score = replace(score, level=tau)
    return score


# -- what is reached without any feature -------------------------------------------------------------------------------


def baseline(score: Score, trained, targets, weights=(None, None)) -> float | None:
    """Return the score on ``targets`` of the constant that suits the targets ``trained`` best.

    It is their most frequent label, their mean, or their quantile of the score's level. ``weights`` are those of both.
    None for R^2, which is a comparison with a constant itself.
    """
    learned, scored = weights
    if score.name == "r2":
        return None
    if score.task == CLASSIFICATION:
        labels = np.unique(trained)
        constant = labels[np.bincount(np.searchsorted(labels, trained), learned).argmax()]
        if labels[0] >= 0:  # class numbers: a linear form for each
            constant = np.arange(max(labels[-1], np.max(targets)) + 1) == constant
    elif score.level is None:
        constant = mean(trained, learned)
    else:
        order = np.argsort(trained, kind="stable")
        below = np.cumsum(np.ones(order.size) if learned is None else learned[order])
        constant = trained[order[np.searchsorted(below, score.level * below[-1])]]
    return score.function(np.tile(constant, (len(targets), 1) if np.ndim(constant) else len(targets)), targets, scored)


def baseline_words(name: str, value: float) -> str:
    constant = {"mae": "median", "mse": "mean", "pinball": "quantile"}.get(name, "most frequent label")
    return f"{value:.6g} (always the {constant})"


# -- from the scores of the folds to a step ----------------------------------------------------------------------------

# Relative difference up to which means are equal: sums of rounded fractions over folds differ by some ulps if the
# underlying counts are equal. The solutions behind the scores are far less accurate.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Choice:
    """Scores over a grid and the chosen steps."""

    # mean, se: shape (steps,): mean over the folds (of all repeats) and its standard error, ``std(ddof=1) / sqrt(number
    # of folds)``. nan if a fold has no score; means that differ by rounding are the same number. Folds share
    # training samples, so the standard error is a convention, not a guarantee.
    mean: np.ndarray
    se: np.ndarray
    best: int  # step of the best mean; ties go to the first in the order of the walk, the most regularised
    # most regularised step whose mean is within one standard error of the best (Breiman et al. 1984, section 3.4.3)
    one_se: int
    optimism: float | None = None  # see :func:`optimism`


def choose(scores, higher: bool) -> Choice:
    """Choose a step; the first in the order of the walk is the most regularised.

    C increases along its paths, lambda decreases; on a grid of (alpha, beta) the larger beta, then the larger alpha,
    counts as more regularised. ``scores``, shape (folds, steps), are nan if a fold did not reach the step.
    """
    mean, se = averaged(scores)
    if not np.isfinite(mean).any():
        raise ResourceError("no grid point has a score in all folds", "use a smaller grid")
    best, one_se = best_and_one_se(mean, se, higher)
    return Choice(mean, se, best, one_se, optimism(scores, best, higher))


def averaged(scores) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard error over the folds, see :class:`Choice`, of scores of shape (folds, steps)."""
    scores = np.asarray(scores, dtype=np.float64)
    mean = levelled(scores.mean(axis=0))
    one = scores.shape[0] == 1  # the part of a job array: its uncertainty is unknown
    return mean, np.full(mean.shape, np.nan) if one else scores.std(axis=0, ddof=1) / math.sqrt(scores.shape[0])


def optimism(scores, best: int, higher: bool) -> float | None:
    """Return by how much the mean score of the best step is expected to promise too much, because it was chosen.

    It is the mean over the folds of how much better each fold's own best step is there than the chosen one (Tibshirani
    and Tibshirani 2009). None where a fold has not reached all steps, or is the only one.
    """
    loss = np.asarray(scores, dtype=np.float64) * (-1.0 if higher else 1.0)
    return float(np.mean(loss[:, best] - loss.min(axis=1))) if len(loss) > 1 and np.isfinite(loss).all() else None


def best_and_one_se(mean, se, higher: bool) -> tuple[int, int]:
    """Return the best step and the first within one standard error of it; nan means are skipped."""
    mean = levelled(mean)
    loss = np.where(np.isfinite(mean), -mean if higher else mean, np.inf)
    best = int(loss.argmin())
    return best, int(np.flatnonzero(loss <= one_se_above(loss, se, best))[0])


def one_se_above(loss, se, best: int) -> float:
    """Return the largest loss within one standard error of the best; the best loss without a standard error."""
    return loss[best] + np.nan_to_num(se[best]) + ROUNDING * abs(loss[best])


def levelled(means) -> np.ndarray:
    """Return means of shape (steps,), replacing those that differ by rounding by the same number."""
    means = np.array(means, dtype=np.float64)
    order = np.argsort(means, kind="stable")
    ranked = means[order]
    with np.errstate(invalid="ignore"):  # nan and infinities are kept
        apart = ~(np.diff(ranked) <= ROUNDING * np.minimum(np.abs(ranked[1:]), np.abs(ranked[:-1])))
    first = np.maximum.accumulate(np.where(np.append(True, apart), np.arange(means.size), 0))
    means[order] = ranked[first]
    return means


# -- a threshold under a constraint -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Threshold:
    """Rows with a linear form above ``value`` are decided as +1; the shares are those of the rows it was chosen by."""

    value: float
    recall: float  # of the +1 rows, the share decided as +1
    precision: float  # of the rows decided as +1, the share that are
    specificity: float  # of the -1 rows, the share decided as -1

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {getattr(self, name):.4g}" for name in ("recall", "precision", "specificity"))
        return f"decisions above {self.value:.6g} are +1; held out: {shares}"


def threshold(products, targets, weights, constraint: str) -> Threshold | None:
    """Return the threshold that keeps a ``constraint``, such as ``recall=0.9``; None if none does.

    Of those that do it has the highest precision, or, under a constraint on precision or specificity, the highest
    recall; of equal ones the lowest. It lies midway between neighbouring groups of tied linear forms, see :func:`tied`.
    """
    name, _, least = constraint.partition("=")
    weights, positive = np.ones(len(products)) if weights is None else weights, np.asarray(targets) > 0.0
    level, lowest, highest, width = tied(products)
    # Thresholds below all groups, above each of them but the last; above all of them, nothing is decided as +1.
    values = np.append(lowest[0] - width, highest[:-1] + 0.5 * (lowest[1:] - highest[:-1]))
    values[1:] = np.where(values[1:] < lowest[1:], values[1:], highest[:-1])
    sizes = (np.bincount(level[side], weights[side], lowest.size) for side in (positive, ~positive))
    true, false = (size[::-1].cumsum()[::-1] for size in sizes)
    with np.errstate(invalid="ignore"):
        shares = {"recall": true / true[0], "precision": true / (true + false), "specificity": 1.0 - false / false[0]}
    shares = {one: np.nan_to_num(share) for one, share in shares.items()}  # of rows without weight
    kept = np.flatnonzero(shares[name] >= float(least) * (1.0 - ROUNDING))
    if not kept.size:
        return None
    at = kept[shares["precision" if name == "recall" else "recall"][kept].argmax()]
    return Threshold(float(values[at]), *(float(share[at]) for share in shares.values()))


@dataclass(frozen=True)
class Sigmoid:
    """``P(+1) = 1 / (1 + exp(slope form + offset))``, and its scores on the rows that it was fitted to: mean
    ``-log P(label)`` and mean ``(P(+1) - 1 or 0)^2``; the baseline is the share of +1 as the probability of every row.
    """

    slope: float
    offset: float
    log_loss: float
    brier: float
    baseline_log_loss: float
    baseline_brier: float

    def __str__(self) -> str:
        baseline = f"always the share of +1: {self.baseline_log_loss:.4g} and {self.baseline_brier:.4g}"
        return f"held out: log-loss {self.log_loss:.4g}, Brier score {self.brier:.4g} ({baseline})"

    def predict(self, products) -> np.ndarray:
        return probability(products, self.slope, self.offset)

    @classmethod
    def fitted(cls, products, targets, weights=None) -> Sigmoid:
        """Fit Platt's sigmoid to linear forms by Newton's method with backtracking (Lin, Lin and Weng 2007, "A note on
        Platt's probabilistic outputs for support vector machines").

        The likelihood is that of Platt's targets, ``(n + 1) / (n + 2)`` for the ``n`` rows of +1 (their weight), and
        ``1 / (n + 2)`` for those of -1: its maximum is finite, even where a threshold divides the labels. Sums are
        numpy's own: the last digits of BLAS depend on where in memory the numbers lie.
        """
        w, true = np.ones(len(products)) if weights is None else weights, (np.asarray(targets) > 0.0).astype(np.float64)
        high, low, share = float(np.sum(w * true)), float(np.sum(w * (1.0 - true))), mean(true, weights)
        t = np.where(true, (high + 1.0) / (high + 2.0), 1.0 / (low + 2.0))
        centre = mean(products, weights)
        width = float(np.abs(products - centre).max()) or 1.0
        z = (products - centre) / width

        def loss(x) -> float:
            q = x[0] * z + x[1]
            return float(np.sum(w * (np.logaddexp(0.0, q) - (1.0 - t) * q)))

        x = np.array([0.0, math.log((low + 1.0) / (high + 1.0))])
        for _ in range(100):
            p = probability(z, *x)
            off, spread = w * (t - p), w * p * (1.0 - p)
            gradient, cross = np.array([np.sum(off * z), np.sum(off)]), np.sum(spread * z)
            hessian = np.array([[np.sum(spread * z * z), cross], [cross, np.sum(spread)]])
            step = np.linalg.lstsq(hessian, -gradient, rcond=None)[0]
            size, slope = 1.0, float(gradient @ step)
            last = slope > -1e-12 * (high + low)  # rounding hides what a smaller step gains
            while not last and loss(x + size * step) > loss(x) + 1e-4 * size * slope:
                size *= 0.5
            x = x + size * step
            if last:
                break
        p, q = probability(z, *x), x[0] * z + x[1]
        scores = mean(np.logaddexp(0.0, np.where(true, q, -q)), weights), mean(np.square(p - true), weights)
        entropy = -sum(part * math.log(part) for part in (share, 1.0 - share) if part > 0.0)
        slope = float(x[0]) / width
        return cls(slope, float(x[1]) - slope * centre, *scores, entropy, share * (1.0 - share))


def probability(products, slope: float, offset: float) -> np.ndarray:
    """Return the probability of the label +1, see :class:`Sigmoid`."""
    return np.exp(-np.logaddexp(0.0, slope * products + offset))


def at_boundary(grid: list[dict], best: int) -> str | None:
    """Return which parameter of the best step is at an end of its values, in words; None for an inner one.

    ``grid`` has the parameters of every step; of two, the first varies within the rows of the second.
    """
    names = list(grid[0])
    said = []
    for rank, name in enumerate(names):
        others = names[rank + 1 :]
        values = [p[name] for p in grid if all(p[other] == grid[best][other] for other in others)]
        low, high = min(values), max(values)
        if low < high and grid[best][name] in (low, high):
            said.append(f"{name} at the {'lower' if grid[best][name] == low else 'upper'} end of the grid")
    return " and ".join(said) or None
