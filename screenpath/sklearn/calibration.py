"""From held-out decision values to probabilities: Platt's sigmoid, or a monotone step function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import IsotonicRegression

METHODS = ("sigmoid", "isotonic")
ROUNDING = 1e-14
STEPS = 100  # of Newton's method, which takes about ten


@dataclass(frozen=True)
class Sigmoid:
    """``p(f) = 1 / (1 + exp(-(slope f + offset)))``."""

    slope: float
    offset: float

    def predict(self, forms: np.ndarray) -> np.ndarray:
        return _logistic(self.slope * forms + self.offset)


def calibrated(method: str, forms, positive, weights=None):
    """Return the map from decision values to probabilities of the positive class, by its ``predict(forms)``.

    ``forms``, decision values of held-out samples, ``positive``, bool, and ``weights`` have the shape (n,).
    """
    weights = np.ones(forms.size) if weights is None else weights
    if method == "isotonic":
        steps = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        return steps.fit(forms, positive.astype(np.float64), sample_weight=weights)
    return fitted_sigmoid(forms, positive, weights)


def fitted_sigmoid(forms, positive, weights) -> Sigmoid:
    """Fit the sigmoid by maximum likelihood, targets drawn in by a sample a class (Platt 1999; Lin et al. 2007).

    Sums are numpy's own: the last digits of BLAS depend on where in memory the numbers lie.
    """
    many, few = weights[positive].sum(), weights[~positive].sum()
    targets = np.where(positive, (many + 1.0) / (many + 2.0), 1.0 / (few + 2.0))
    size = max(float(np.abs(forms).max(initial=0.0)), np.finfo(np.float64).tiny)  # the scale of values that may be huge
    x = forms / size
    at = np.array([0.0, np.log((many + 1.0) / (few + 1.0))])
    value = _loss(at[0] * x + at[1], targets, weights)
    for _ in range(STEPS):
        p = _logistic(at[0] * x + at[1])
        off, spread = weights * (p - targets), weights * p * (1.0 - p)
        slope = np.array([np.sum(off * x), np.sum(off)])
        bend = np.array([[np.sum(spread * x * x), np.sum(spread * x)], [np.sum(spread * x), np.sum(spread)]])
        move = np.linalg.lstsq(bend, -slope, rcond=None)[0]  # equal values of all samples leave the slope open
        allowed = value + ROUNDING * abs(value)  # near the end the loss no longer tells better from worse
        while (new := _loss((at + move)[0] * x + (at + move)[1], targets, weights)) > allowed and np.abs(
            move
        ).max() > 0.0:
            move *= 0.5
        at, value = at + move, new
        if np.abs(move).max() <= ROUNDING * np.abs(at).max():
            break
    return Sigmoid(float(at[0] / size), float(at[1]))


def probabilities(maps: list, forms: np.ndarray) -> np.ndarray:
    """Return the probabilities of all classes, shape (m, classes), from a map for each class, or one map for two.

    ``forms`` has the shape (m,) for two classes, else (m, classes).
    """
    if forms.ndim == 1:
        p = maps[0].predict(forms)
        return np.column_stack([1.0 - p, p])
    each = np.column_stack([one.predict(form) for one, form in zip(maps, forms.T, strict=True)])
    total = each.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, each / np.where(total > 0.0, total, 1.0), 1.0 / len(maps))


def _logistic(z: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, -z))


def _loss(z, targets, weights) -> float:
    return float(np.sum(weights * (np.logaddexp(0.0, z) - targets * z)))
