"""From labels to the targets of a model and back; from the weights of labels and samples to those of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from screenpath.catalogue.options import WAYS
from screenpath.data.files.arrays import FARTHEST, check_size, one_each
from screenpath.data.words.labels import binary_labels, label_text
from screenpath.errors import DataError, UsageError

SAME_TASK = "give test data of the same task, with the same labels; or leave out the rows that have another"


def sign_targets(y, options, known=None):
    """Return labels as -1 and +1 and the map back: two labels, or ``--positive`` against the other or the rest."""
    positive = options.get("positive")
    if positive is not None and (known is None or known["-1"] == "rest"):
        if known is None and not np.any(y == positive):
            texts = options.get("label_texts")
            labels = ", ".join(label_text(v, texts) for v in np.unique(y)[:20])
            what = f"`positive={label_text(positive)}` is not among the labels of the data ({labels})"
            raise DataError(what, "name one of these")
        if known is None and np.all(y == positive):
            name = label_text(positive, options.get("label_texts"))
            raise DataError(f"all labels are {name}; two different ones are needed", "check the data")
        others = y[y != positive]
        one = known is None and others.min() == others.max()
        return np.where(y == positive, 1.0, -1.0), {"+1": positive, "-1": float(others[0]) if one else "rest"}
    if known is None:
        data = options.get("data", "")
        source = data if isinstance(data, str) else "arrays"
        ways = [way for way in WAYS if way in options]
        signs = binary_labels(y, source=source, names=options.get("label_texts"), ways=ways)
        return signs, {"+1": float(y[signs > 0][0]), "-1": float(y[signs < 0][0])}
    strange = y[(y != known["+1"]) & (y != known["-1"])]
    if strange.size:
        raise DataError(
            f"the test data has the label {label_text(strange[0])}; the training data has "
            f"{label_text(known['-1'])} and {label_text(known['+1'])}",
            SAME_TASK,
        )
    return np.where(y == known["+1"], 1.0, -1.0), known


def class_targets(y, options, known=None):
    """Return signs and their map for two labels or ``--positive``, else class numbers and the list of labels: sorted,
    or for ``one_vs_one`` in the order in which they appear, as LIBSVM numbers them.
    """
    if known is not None and "classes" not in known:
        return sign_targets(y, options, known)
    found, first = np.unique(y, return_index=True)
    found = y[np.sort(first)] if options.get("one_vs_one") else found
    classes = found if known is None else np.array(known["classes"])
    if known is None and (classes.size <= 2 or options.get("positive") is not None):
        return sign_targets(y, options)
    order = np.argsort(classes)
    codes = order[np.minimum(np.searchsorted(classes, y, sorter=order), classes.size - 1)]
    strange = y[classes[codes] != y]
    if strange.size:
        what = f"the test data has the label {label_text(strange[0])}, which the training data lacks"
        raise DataError(what, SAME_TASK)
    return codes, {"classes": [float(label) for label in classes]}


def real_targets(y, options, known=None):
    """Return the targets of a regression, and no label map."""
    return y, None


# -- weights ----------------------------------------------------------------------------------------------------------


def row_weights(y, class_weight=None, sample_weight=None, texts=None) -> np.ndarray | None:
    """Return the weights of rows, shape (n,): class weights times sample weights; None if there are none.

    ``y``, shape (n,), has the labels as in the data. ``class_weight`` is a dict of label to weight, 1 for other labels;
    or ``balanced``, which gives label k the weight n / (K n_k), counting each sample with its weight; or None.
    ``sample_weight``, shape (n,), says how often each sample counts; ``texts`` is how the data writes labels, for
    messages.

    A :class:`UsageError` names an unknown label, a class weight that is negative or not finite, or sample weights of
    another length, negative, not finite or all 0.
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
        if not 0.0 <= number <= FARTHEST:
            what = f"the weight of label {label_text(label, texts)} must be from 0 to {FARTHEST:g}, not {weight}"
            raise UsageError(what, "1 leaves the samples of a label as they are, 0 leaves them out")
        weights[y == float(label)] = number
    with np.errstate(over="ignore"):
        return checked_weights(y, weights if sample_weight is None else weights * sample_weight)


def _balanced(labels: list, codes, counts: list, sample_weight) -> dict:
    """Return class weights that balance the classes, each rounded once.

    ``counts`` are numbers of samples; a label whose samples all have weight 0 is not in the data.
    """
    if sample_weight is not None:
        counts = [_total(sample_weight[codes == k]) for k in range(len(labels))]
    there = {label: Fraction(count) for label, count in zip(labels, counts, strict=True) if count > 0}
    share = sum(there.values(), Fraction(0)) / len(there)
    return {label: float(share / count) for label, count in there.items()}


def _total(weights):
    """Return the sum of weights as a fraction: that of two doubles, with an error of ``UNIT^2``."""
    values = weights.tolist()
    total = math.fsum(values)
    return Fraction(total) + Fraction(math.fsum([*values, -total]))


def checked_weights(y, sample_weight) -> np.ndarray | None:
    """Return the weights of samples as an array; None if there are none."""
    if sample_weight is None:
        return None
    weights = one_each(sample_weight, "weights", y.size, "sample")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
    if bad.size:
        raise UsageError(f"weight {bad[0] + 1} is {weights[bad[0]]}", "weights must be at least 0 and finite")
    if not weights.any():
        raise UsageError("all weights are 0: no sample is left", "give some sample a weight above 0")
    check_size("the largest weight", weights.max(), "all weights")
    return weights
