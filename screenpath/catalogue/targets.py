"""From the labels of a data set to the targets of a model, and back. Imports numpy only when it is needed."""

from __future__ import annotations

from screenpath.errors import DataError

SAME_TASK = "give test data of the same task, with the same labels; or leave out the rows that have another"


def sign_targets(y, options, known=None):
    """Return labels as -1 and +1 and the map back: two labels, or ``--positive`` against the rest."""
    import numpy as np

    from screenpath.data.words.labels import binary_labels, label_text

    positive = options.get("positive")
    if positive is not None:
        if known is None and not np.any(y == positive):
            texts = options.get("label_texts")
            labels = ", ".join(label_text(v, texts) for v in np.unique(y)[:20])
            raise DataError(
                f"`positive={label_text(positive)}` is not among the labels of the data ({labels})", "name one of these"
            )
        if known is None and np.all(y == positive):
            name = label_text(positive, options.get("label_texts"))
            raise DataError(f"all labels are {name}; two different ones are needed", "check the data")
        return np.where(y == positive, 1.0, -1.0), {"+1": positive, "-1": "rest"}
    if known is None:
        data = options.get("data", "")
        source = data if isinstance(data, str) else "arrays"
        signs, _ = binary_labels(y, source=source, names=options.get("label_texts"))
        return signs, _label_map(y, signs)
    strange = y[(y != known["+1"]) & (y != known["-1"])]
    if strange.size:
        raise DataError(
            f"the test data has the label {label_text(strange[0])}; the training data has "
            f"{label_text(known['-1'])} and {label_text(known['+1'])}",
            SAME_TASK,
        )
    return np.where(y == known["+1"], 1.0, -1.0), known


def class_targets(y, options, known=None):
    """Return signs and their map for two labels or ``--positive``, else class numbers and the list of labels."""
    import numpy as np

    from screenpath.data.words.labels import label_text

    if known is not None and "classes" not in known:
        return sign_targets(y, options, known)
    classes = np.unique(y) if known is None else np.array(known["classes"])
    if known is None and (classes.size <= 2 or options.get("positive") is not None):
        return sign_targets(y, options)
    codes = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    strange = y[classes[codes] != y]
    if strange.size:
        raise DataError(
            f"the test data has the label {label_text(strange[0])}, which the training data lacks", SAME_TASK
        )
    return codes, {"classes": [float(label) for label in classes]}


def _label_map(y, signs):
    return {"+1": float(y[signs > 0][0]), "-1": float(y[signs < 0][0])}


def real_targets(y, options, known=None):
    """Return the targets of a regression, and no label map."""
    return y, None
