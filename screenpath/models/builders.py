"""The box models by name: which rows, kinks and boxes each loss has (table in :mod:`screenpath.models.box`)."""

from __future__ import annotations

import numpy as np

from screenpath.errors import UsageError
from screenpath.models.box import BoxModel
from screenpath.models.kernel import KernelModel
from screenpath.read.labels import label_text


def svm_model(rows, signs, weights=None) -> BoxModel:
    """Return the hinge-loss model: ``g = y x``, ``c = 1``, box ``[0, s]`` (Wang 2014, eq. 22; Ogawa 2014, eq. 1).

    Parameters
    ----------
    rows : Rows
    signs : ndarray of shape (n,)
        -1 and +1.
    weights : ndarray of shape (n,), optional
        ``s``, one weight a row.
    """
    ones = np.ones(rows.n)
    upper = ones if weights is None else _weights(rows, weights)  # one array serves as both
    return BoxModel(rows, ones, np.zeros(rows.n), upper, signs=signs, name="svm")


def kernel_svm_model(rows, weights=None) -> KernelModel:
    """Return the hinge-loss model behind a kernel; the signs are those of the rows (Ogawa 2014, Section IV-D).

    Parameters
    ----------
    rows : rows.gram.GramRows
    weights : ndarray of shape (n,), optional
        ``s``, one weight a row.
    """
    return KernelModel(rows, np.ones(rows.n), np.zeros(rows.n), _weights(rows, weights))


def lad_model(rows, y, weights=None) -> BoxModel:
    """Return the least-absolute-deviations model: ``g = x``, ``c = y``, box ``[-s, s]`` (Wang 2014, eq. 27)."""
    s = _weights(rows, weights)
    return BoxModel(rows, np.array(y, dtype=np.float64), -s, s, name="lad")


def quantile_model(rows, y, tau: float, weights=None) -> BoxModel:
    """Return the quantile-regression model of level ``tau``: box ``[(tau - 1) s, tau s]``.

    Raises
    ------
    UsageError
        For a level outside (0, 1).
    """
    if not 0.0 < tau < 1.0:
        raise UsageError(f"the quantile level must lie between 0 and 1, not {tau}", "for the median use --tau 0.5")
    s = _weights(rows, weights)
    return BoxModel(rows, np.array(y, dtype=np.float64), (tau - 1.0) * s, tau * s, name="quantile")


def svr_model(rows, y, epsilon: float, weights=None) -> BoxModel:
    """Return the epsilon-insensitive model: rows ``x``, ``-x``; kinks ``y - eps``, ``-y - eps``; boxes ``[0, s]``.

    Raises
    ------
    UsageError
        For a negative or infinite ``epsilon``.
    """
    if not (np.isfinite(epsilon) and epsilon >= 0.0):
        raise UsageError(
            f"epsilon must be a number of at least 0, not {epsilon}", "--epsilon 0 gives least absolute deviations"
        )
    s, y = _weights(rows, weights), np.asarray(y, dtype=np.float64)
    kinks = np.concatenate([y - epsilon, -y - epsilon])
    return BoxModel(rows, kinks, np.zeros(2 * rows.n), np.concatenate([s, s]), mirrored=True, name="svr")


def row_weights(y, class_weight=None, sample_weight=None) -> np.ndarray | None:
    """Combine class and sample weights.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels as in the data.
    class_weight : dict of label to weight, "balanced", or None
        ``balanced`` gives label k the weight n / (K n_k). Labels that are not named have weight 1.
    sample_weight : ndarray of shape (n,), optional

    Returns
    -------
    ndarray of shape (n,), or None where there are no weights

    Raises
    ------
    UsageError
        For an unknown label, a class weight that is negative or not finite, or sample weights of another length,
        negative or not finite.
    """
    if class_weight is None and sample_weight is None:
        return None
    weights = np.ones(y.size)
    if class_weight is not None:
        labels, counts = np.unique(y, return_counts=True)
        if isinstance(class_weight, str):
            if class_weight != "balanced":
                raise UsageError(f"unknown class weight '{class_weight}'", "use balanced, or LABEL=WEIGHT")
            class_weight = dict(zip(labels.tolist(), (y.size / (labels.size * counts)).tolist(), strict=True))
        for label, weight in class_weight.items():
            if float(label) not in labels:
                named = ", ".join(label_text(value) for value in labels[:20])
                raise UsageError(f"no sample has the label {label_text(label)}; the labels are {named}")
            if not (np.isfinite(weight) and weight >= 0.0):
                raise UsageError(f"the weight of label {label_text(label)} must be at least 0 and finite, not {weight}")
            weights[y == float(label)] = weight
    if sample_weight is not None:
        sample_weight = np.asarray(sample_weight, dtype=np.float64).ravel()
        if sample_weight.size != y.size:
            raise UsageError(f"{sample_weight.size} weights for {y.size} samples", "give one weight a sample, in order")
        bad = np.flatnonzero(~(np.isfinite(sample_weight) & (sample_weight >= 0.0)))
        if bad.size:
            raise UsageError(f"weight {bad[0] + 1} is {sample_weight[bad[0]]}", "weights must be at least 0 and finite")
        weights *= sample_weight
    return weights


def _weights(rows, weights) -> np.ndarray:
    return np.ones(rows.n) if weights is None else np.array(weights, dtype=np.float64)
