"""Scores of held-out rows from linear forms that are known to an error: the least and the largest that they can be."""

from __future__ import annotations

import math

import numpy as np

from screenpath.verify.data import signs_of
from screenpath.verify.exact import fsum
from screenpath.verify.products import products_of

LOSSES = ("mae", "mse", "pinball", "r2")
CLASSES = ("accuracy", "balanced-accuracy", "f1", "auc")
TIES = 1e-4  # times the median size of a form, or 1: forms that are nearer may count as equal in an auc
Ends = tuple[float, float]


def forms_of(blocks: list, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the products of rows with ``w``, a row for each class if there are several, and bounds of the errors."""
    found = [[products_of(block, one) for one in np.atleast_2d(w)] for block in blocks]
    p, e = (np.concatenate([[one[k] for one in block] for block in found], axis=1) for k in range(2))
    return (p, e) if w.ndim > 1 else (p[0], e[0])


def truth_of(blocks: list, labels: dict | None) -> np.ndarray:
    """Return the targets of rows; of labels the number of the class, 1 for +1 and 0 for -1."""
    y = np.concatenate([block.labels for block in blocks])
    if labels is None:
        return y
    if "classes" in labels:
        return np.searchsorted(np.array(labels["classes"], float), y)
    return (signs_of(y, labels) > 0.0).astype(np.int64)


def between(score: str, forms: tuple, y: np.ndarray, weights: np.ndarray, tau: float) -> Ends:
    """Return the least and the largest score of linear forms, each known to an error."""
    if score in LOSSES:
        return _losses(score, forms, y, weights, tau)
    if score == "auc":
        return _auc(forms, y, weights)
    sure, may = _decided(*forms)
    several, classes = forms[0].ndim > 1, range(sure.shape[0])
    sizes = [fsum(weights[y == k]) for k in classes]
    right = [[fsum(weights[(y == k) & one[k]]) for k in classes] for one in (sure, may)]
    present = [k for k in classes if sizes[k] > 0.0]
    if score == "accuracy":
        return fsum(right[0]) / fsum(weights), fsum(right[1]) / fsum(weights)
    if score == "f1":
        present = present if several else [1]
        wrong = [[fsum(weights[(y != k) & one[k]]) for k in classes] for one in (may, sure)]
        parts = [[_f1(right[n][k], wrong[n][k], sizes[k]) for k in present] for n in range(2)]
    else:
        parts = [[right[n][k] / sizes[k] for k in present] for n in range(2)]
    return fsum(parts[0]) / len(present), fsum(parts[1]) / len(present)


def _f1(right: float, wrong: float, size: float) -> float:
    return 2.0 * right / (right + wrong + size) if right + wrong + size else 0.0


def _decided(p: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each class which rows are certainly decided as it, and which may be."""
    if p.ndim == 1:  # a form of 0 counts as negative
        sure = np.stack([p <= -e, p > e])
        return sure, ~sure[::-1]
    low, high, classes = p - e, p + e, np.arange(len(p))[:, None]
    sure, may = np.ones((2, *p.shape), dtype=bool)
    for k in range(len(p)):  # of equal forms the first counts
        sure[k] = np.all(np.where(classes < k, low[k] > high, low[k] >= high) | (classes == k), axis=0)
        may[k] = np.all(np.where(classes < k, high[k] > low, high[k] >= low) | (classes == k), axis=0)
    return sure, may


def _losses(score: str, forms: tuple, y: np.ndarray, weights: np.ndarray, tau: float) -> Ends:
    (p, e), total = forms, fsum(weights)
    t = y - p
    square = score in ("mse", "r2")
    value = t * t if square else np.abs(t) if score == "mae" else np.maximum((tau - 1.0) * t, tau * t)
    off = fsum(weights * (e * (2.0 * np.abs(t) + e) if square else e)) / total
    low, high = fsum(weights * value) / total - off, fsum(weights * value) / total + off
    if score != "r2":
        return low, high
    variance = fsum(weights * (y - fsum(weights * y) / total) ** 2) / total
    return (1.0 - high / variance, 1.0 - low / variance) if variance > 0.0 else (math.nan, math.nan)


def _auc(forms: tuple, y: np.ndarray, weights: np.ndarray) -> Ends:
    """Return the share of pairs in which +1 is certainly ahead, and in which it may be."""
    p, e = forms
    apart = TIES * (1.0 + 1e-9) * max(1.0, float(np.median(np.abs(p)))) + 2.0 * float(e.max())
    order = np.argsort(p[y == 0], kind="stable")
    low, before = p[y == 0][order], np.append(0.0, np.cumsum(weights[y == 0][order]))
    ahead = (before[np.searchsorted(low, p[y == 1] + shift, side="right")] for shift in (-apart, apart))
    total = fsum(weights[y == 1]) * before[-1]
    least, most = (fsum(weights[y == 1] * one) / total for one in ahead)
    return least, most
