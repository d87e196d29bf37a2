"""From label numbers to signs."""

from __future__ import annotations

import numpy as np

from screenpath.errors import DataError

SHOWN = 8  # labels named in a message
MANY = 100  # different labels from which they are no classes, most likely


def label_text(value: float) -> str:
    """Return a label as a file would have it: ``3`` rather than ``3.0``."""
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def are_targets(labels: np.ndarray) -> bool:
    """Tell whether different labels look like the targets of a regression: fractions, or very many."""
    return bool(labels.size > MANY or np.any(labels != np.floor(labels)))


def binary_labels(y, positive: float | None = None, source: str = "") -> tuple[np.ndarray, dict]:
    """Turn two labels into signs: sorted, the larger is +1.

    Parameters
    ----------
    y : ndarray of shape (n,)
    positive : float, optional
        This label is +1, every other one -1 (one against the rest).
    source : str, optional
        Name of the data, put before the message of an error.

    Returns
    -------
    signs : ndarray of shape (n,)
    mapping : dict
        ``{"+1": label, "-1": label or "rest"}``, labels as text.

    Raises
    ------
    DataError
        For one label only, more than two without ``positive``, or an unknown ``positive``.
    """
    low, high = (y.min(), y.max()) if y.size else (0.0, 0.0)
    if positive is None and low < high and np.all((y == low) | (y == high)):  # as it should be: nothing to sort
        return np.where(y == high, 1.0, -1.0), {"+1": label_text(high), "-1": label_text(low)}
    labels, counts = np.unique(y, return_counts=True)
    where = f"{source}: " if source else ""
    named = ", ".join(f"{label_text(a)} ({c} samples)" for a, c in zip(labels[:SHOWN], counts, strict=False))
    named += ", ..." if labels.size > SHOWN else ""
    if labels.size == 1:
        raise DataError(f"{where}only one label: {named}", "a classifier needs samples of two labels")
    if positive is not None:
        if positive not in labels:
            raise DataError(
                f"{where}no sample has the label {label_text(positive)}; the labels are {named}", "name one of these"
            )
        rest = label_text(labels[labels != positive][0]) if labels.size == 2 else "rest"
        return np.where(y == positive, 1.0, -1.0), {"+1": label_text(positive), "-1": rest}
    if are_targets(labels):
        raise DataError(
            f"{where}two labels are needed, these are {labels.size}: {named}",
            "they look like the targets of a regression: use lad, svr or quantile; for classes choose one against the "
            "rest (`positive=LABEL`), or fit all: svm with `one_vs_rest`, sparse-svm",
        )
    raise DataError(
        f"{where}two labels are needed, these are {labels.size}: {named}",
        "choose one against the rest (`positive=LABEL`; in Python pass y == label), or fit all: svm with "
        "`one_vs_rest`, sparse-svm",
    )
