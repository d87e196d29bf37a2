"""The kernel model, and the weights of samples, as options ask for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from screenpath.data.files.arrays import unmasked
from screenpath.data.words.labels import label_text
from screenpath.errors import UsageError

if TYPE_CHECKING:
    from screenpath.problem.kernel import KernelModel


def kernel_svm_model(rows, weights=None, intercept: str | None = None) -> KernelModel:
    """Return the hinge-loss model with a kernel, for signed rows (Ogawa 2014, Section IV-D); ``weights``, shape (n,),
    are ``s``.
    """
    from screenpath.numbers.rounding import WEIGHTS_ERROR
    from screenpath.problem.free_kernel import FreeKernelModel  # here: other models start up without them
    from screenpath.problem.kernel import KernelModel

    kind = FreeKernelModel if intercept == "free" else KernelModel
    inexact = 0.0 if weights is None else WEIGHTS_ERROR
    return kind(rows, np.ones(rows.n), np.zeros(rows.n), _weights(rows, weights), inexact=inexact)


def row_weights(y, class_weight=None, sample_weight=None, texts=None) -> np.ndarray | None:
    """Combine class and sample weights.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels as in the data.
    class_weight : dict of label to weight, "balanced", or None
        ``balanced`` gives label k the weight n / (K n_k), counting each sample with its weight. Labels that are not in
        the dict have weight 1.
    sample_weight : ndarray of shape (n,), optional
        How often each sample counts.
    texts : sequence of str or Spelled, optional
        How the data writes labels, for messages.

    Returns
    -------
    ndarray of shape (n,), or None if there are no weights

    Raises
    ------
    UsageError
        For an unknown label, a class weight that is negative or not finite, or sample weights of another length,
        negative, not finite or all 0.
    """
    sample_weight = checked_weights(y, sample_weight)
    if class_weight is None:
        return sample_weight
    weights = np.ones(y.size)
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise UsageError(f"unknown class weight '{class_weight}'", "use balanced, or a weight for each label")
        class_weight = _balanced(labels.tolist(), codes.ravel(), counts.tolist(), sample_weight)
    if not isinstance(class_weight, Mapping):
        raise UsageError(f"`class_weight` must be balanced, or a weight for each label, not {class_weight!r}")
    for label, weight in class_weight.items():
        try:
            known = float(label) in labels
        except (TypeError, ValueError, OverflowError):  # a text, although labels are numbers
            known, label = False, str(label)
        if not known:
            named = ", ".join(label_text(value, texts) for value in labels[:20])
            what = f"no sample has the label {label_text(label)}; the labels are {named}"
            raise UsageError(what, "name one of these")
        try:
            number = float(weight)
        except (TypeError, ValueError, OverflowError):
            number = np.nan
        if not (np.isfinite(number) and number >= 0.0):
            raise UsageError(
                f"the weight of label {label_text(label, texts)} must be at least 0 and finite, not {weight}",
                "1 leaves the samples of a label as they are, 0 leaves them out",
            )
        weights[y == float(label)] = number
    with np.errstate(over="ignore"):
        return checked_weights(y, weights if sample_weight is None else weights * sample_weight)


def _balanced(labels: list, codes, counts: list, sample_weight) -> dict:
    """Return class weights that balance the classes, each rounded once.

    ``counts`` are numbers of samples; a label whose samples all have weight 0 is not in the data.
    """
    from fractions import Fraction  # not at the top: other models start faster

    if sample_weight is not None:
        counts = [_total(sample_weight[codes == k]) for k in range(len(labels))]
    there = {label: Fraction(count) for label, count in zip(labels, counts, strict=True) if count > 0}
    share = sum(there.values(), Fraction(0)) / len(there)
    return {label: float(share / count) for label, count in there.items()}


def _total(weights):
    """Return the sum of weights as a fraction: that of two doubles, with an error of ``UNIT^2``."""
    from fractions import Fraction

    values = weights.tolist()
    total = math.fsum(values)
    return Fraction(total) + Fraction(math.fsum([*values, -total]))


def checked_weights(y, sample_weight) -> np.ndarray | None:
    """Return the weights of samples as an array; None if there are none."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(unmasked(sample_weight, "the weights"), dtype=np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        raise UsageError("the weights are not all numbers", "give one weight a sample, in order") from None
    if weights.size != y.size:
        raise UsageError(f"{weights.size} weights for {y.size} samples", "give one weight a sample, in order")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
    if bad.size:
        raise UsageError(f"weight {bad[0] + 1} is {weights[bad[0]]}", "weights must be at least 0 and finite")
    if not weights.any():
        raise UsageError("all weights are 0: no sample is left", "give some sample a weight above 0")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise UsageError("the sum of the weights exceeds the range of floating point", "divide them by a power of ten")
    return weights


def _weights(rows, weights) -> np.ndarray:
    return np.ones(rows.n) if weights is None else np.array(weights, dtype=np.float64)
