"""From labels to numbers and signs, and back to their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from screenpath.data.safe import values
from screenpath.data.words.numerals import Spelled, is_number, is_plain, number_of, same_number, usual_text
from screenpath.errors import DataError, UsageError, shown

SHOWN = 8  # labels named in a message
MANY = 100  # from this many distinct labels they are probably regression targets
SEVERAL = 30  # ... and from this many they may be
TRUTH = {"true": 1.0, "false": 0.0}


class NamedLabel(float):
    """The number of a text label: code computes with the number, messages show the name.

    It is the number that the text writes or, if labels are not numbers, the place of the name among them, sorted, from
    0.
    """

    def __new__(cls, number: float, name: str):
        made = super().__new__(cls, number)
        made.name = name
        return made

    name: str

    def __getnewargs__(self):
        return float(self), self.name

    def __format__(self, form: str) -> str:
        return self.name


def named(value, names: Sequence[str] | Spelled | None):
    """Return a label, or the labels in a map or a list, with their names; other values are returned unchanged."""
    if names is None or isinstance(value, str | NamedLabel):
        return value
    if isinstance(value, Mapping):
        return {key: named(one, names) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(named(one, names) for one in value)
    return NamedLabel(value, label_text(value, names)) if isinstance(value, int | float) else value


def of_text(label):
    """Return a label of a record; the text of a number becomes this number, with its text as name."""
    if isinstance(label, str) and is_number(label):
        return NamedLabel(float(label), label)
    return label


def are_texts(labels: Sequence) -> bool:
    """Tell whether programs need labels as texts: their numbers are places among texts, or do not say all of them."""
    whole = all(is_plain(one.name) and float(one.name) == one for one in labels if isinstance(one, NamedLabel))
    return not whole or any(isinstance(one, str) for one in labels)


def in_python(labels: Sequence) -> list:
    """Return labels for Python: all as numbers, or all as texts."""
    return [label_text(label) if are_texts(labels) else float(label) for label in labels]


def label_cells(labels: Sequence) -> list[str]:
    """Return the table cell of each label: its number, or its name on one line, quoted if CSV needs it.

    If names are ambiguous on one line, or look like the numbers of labels, all labels are written as numbers.
    """
    cells = [repr(float(label)) for label in labels]
    if not all(isinstance(label, NamedLabel) for label in labels) or not are_texts(labels):
        return cells
    names = [shown(label.name) for label in labels]
    if len(set(names)) < len(names) or set(names) & set(cells):
        return cells
    return [quoted(name) for name in names]


def pair_labels(labels: Sequence) -> list[NamedLabel]:
    """Return the names ``A/B`` of pairs of labels in LIBSVM's order, with their numbers."""
    return [NamedLabel(k, "/".join(map(label_text, pair))) for k, pair in enumerate(combinations(labels, 2))]


def quoted(text: str) -> str:
    """Return text on one line as a cell of a table, quoted if CSV needs it."""
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"') else text


def label_number(label, names: Sequence[str] | Spelled | None, what: str) -> float:
    """Return the number of a label in the option ``what``; ``names`` is None if labels are numbers."""
    if names is not None and not isinstance(names, Spelled):
        text = label if isinstance(label, str) else label_text(label)
        text = text if text in names else next((name for name in names if _alike(text, name)), text)
        if text not in names:
            some = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
            raise UsageError(f"`{what}={text}` is not among the labels of the data ({some})", "name one of these")
        return float(names.index(text))
    try:
        value = number_of(label) if isinstance(label, str) else float(label)
    except (TypeError, ValueError):
        raise UsageError(f"`{what}={label}`: the labels of the data are numbers", "name one of them") from None
    text, said = label_text(value, names), str(label) if isinstance(label, str | int) else usual_text(value)
    if not isinstance(label, bool) and not _alike(said, text):
        why = f"`{what}={said}` is not among the labels of the data: the nearest number in float64 is {text}"
        raise UsageError(why, "name a label as the data has it")
    return value


def _alike(one: str, other: str) -> bool:
    return is_number(one) and is_number(other) and same_number(one.strip(), other.strip())


def recoded(
    y: np.ndarray, names: Sequence[str] | None, known: Sequence[str] | None, source: str,
    spelled: Spelled | None = None, labels: Sequence = (),
) -> np.ndarray:  # fmt: skip
    """Return the labels of new data as numbers of the training data's labels; unknown ones (nan) stay nan.

    ``names`` and ``known`` are the label names of the new and the training data, None if they are numbers; ``spelled``
    has the texts of numbers in the new data, ``labels`` are those of the model. A label unknown to the model is an
    error.
    """
    exact = {float(one): label_text(one) for one in labels if not isinstance(one, str)}

    def other(text: str) -> DataError:
        some = list(exact.values()) if known is None else known
        have = "numbers" if not some else ", ".join(some[:SHOWN])
        return DataError(
            f"{source} has the label {text}; the labels of the training data are {have}",
            "name data of the same task; leave a label empty, or write ?, where it is not known",
        )

    if names is None and known is None:
        if exact and spelled is not None and spelled.fault:
            raise DataError(f"{source}: {spelled.fault}", "leave a label empty, or write ?, where it is not known")
        for value, text in exact.items():  # float64 may take another number for this one
            here = label_text(value, spelled)
            if not same_number(here, text) and np.any(y == value):
                raise other(here)
        return y
    where = np.isfinite(y)
    found, codes = np.unique(y[where], return_inverse=True)
    texts = [names[int(v)] for v in found] if names is not None else [label_text(v, spelled) for v in found]
    truths = _truths(known)
    numbers = []
    for text in texts:
        same = text if known is None or text in known else next((name for name in known if _alike(text, name)), None)
        if known is not None and same is not None:
            numbers.append(float(known.index(same)))
        elif known is None and is_number(text) and _alike(text, exact.get(float(text), text)):
            numbers.append(float(text))
        elif text.lower() in truths:
            numbers.append(truths[text.lower()])
        elif known is not None and names is None and text == "0":  # placeholder in files without labels
            numbers.append(np.nan)
        else:
            raise other(text)
    out = np.full(y.size, np.nan)
    out[where] = np.array(numbers)[codes.ravel()] if numbers else np.nan
    return out


def _truths(known: Sequence[str] | None) -> dict[str, float]:
    """Return the numbers of true and false in all spellings; empty if the training data has other labels."""
    if known is None:  # numeric labels, from older runs that stored true and false as numbers
        return TRUTH
    numbers = {TRUTH[name.lower()]: float(k) for k, name in enumerate(known) if name.lower() in TRUTH}
    if len(numbers) < len(known):
        return {}
    texts = {**TRUTH, "0": 0.0, "1": 1.0}
    return {text: numbers[value] for text, value in texts.items() if value in numbers}


def label_text(value: float | str, names: Sequence[str] | Spelled | None = None) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, NamedLabel):
        return value.name
    if isinstance(names, Spelled):
        return names.text(value)
    return usual_text(value) if names is None else names[int(value)]


def sorted_labels(y: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return labels, places among names (nan if unknown), as places among the sorted names, and these names."""
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order))
    known = np.isfinite(y)
    y[known] = rank[y[known].astype(np.int64)]
    return y, tuple(names[k] for k in order)


INT_MAX = 2**31 - 1  # labels of LIBLINEAR and LIBSVM are C ints


def rest_label(labels: dict):
    """Return the label of the negative class; if it stands for several, -1 or, if that is taken, 0."""
    return (0.0 if labels["+1"] == -1.0 else -1.0) if labels["-1"] == "rest" else labels["-1"]


def whole_label(label: float, tool: str, others: str = "export `to=json`, npz or onnx, or ") -> str:
    """Return a label for a model file of LIBLINEAR or LIBSVM, which holds whole numbers only; ``others`` hold more."""
    text = label_text(label)
    if not is_plain(text) or not float(text).is_integer() or abs(float(text)) > INT_MAX:
        what = f"{tool}'s labels are whole numbers, {text} is not one that it can hold"
        raise UsageError(what, f"{others}rename the labels in the data file")
    return str(int(float(text)))


def are_targets(labels: np.ndarray) -> bool:
    """Tell whether distinct labels look like regression targets: fractions, or very many."""
    return bool(labels.size > MANY or np.any(labels != np.floor(labels)))


def binary_labels(y, source: str = "", names=None, ways=("one_vs_one", "one_vs_rest")) -> np.ndarray:
    """Turn two labels into signs, shape (n,): the larger is +1. Another number of labels is a DataError.

    ``source``, the name of the data, is put before an error message; it is empty for Python functions of arrays, whose
    hints name no options. ``ways`` are the options of the model for more than two labels.
    """
    low, high = (y.min(), y.max()) if y.size else (0.0, 0.0)
    upper = y == high
    if low < high and (upper | (y == low)).all():
        return np.where(upper, 1.0, -1.0)
    labels, counts = np.unique(y, return_counts=True)
    where = f"{source}: " if source else ""
    several = [f"{c} sample{'' if c == 1 else 's'}" for c in counts[:SHOWN]]
    named = ", ".join(f"{label_text(a, names)} ({many})" for a, many in zip(labels[:SHOWN], several, strict=True))
    named += ", ..." if labels.size > SHOWN else ""
    if labels.size == 1:
        raise DataError(f"{where}only one label: {named}", "a classifier needs samples of two labels")
    message = f"{where}two labels are needed, these are {labels.size}: {named}"
    raise DataError(message, _several_hint(labels, names, bool(source), ways))


def _several_hint(labels: np.ndarray, names, options: bool, ways) -> str:
    """Return the hint for more than two labels; Python functions of arrays have no ``options`` for them."""
    if options:
        one = "choose one against the rest (`positive=LABEL`"
        every = f"fit all: {''.join(f'`{way}` or ' for way in ways)}sparse-svm"
        regression = "use lad, svr or quantile"
    else:
        one = "choose one against the rest (pass y == LABEL"
        every = "fit all: sparse_svm_path, a classifier of screenpath.sklearn, or screenpath.run with `one_vs_rest`"
        regression = "use lad_path, svr_path or quantile_path"
    names = None if isinstance(names, Spelled) else names  # numbers as the file spells them
    if names is None and are_targets(labels):
        return f"they look like the targets of a regression: {regression}; for classes {one}), or {every}"
    in_python = "; in Python pass y == label" if options else ""
    several = names is None and labels.size > SEVERAL
    return f"{one}{in_python}), or {every}" + (f"; for targets of a regression {regression}" if several else "")


def are_labels(value, names: list | None = None) -> bool:
    """Tell whether a value is a map of +1 and -1, or a list of classes; ``names`` are those of text labels."""

    def number(label):
        if names is None:
            return float(label) if isinstance(label, str) and is_number(label) else label
        return names.index(label) if label in names else None

    if not isinstance(value, dict):
        return False
    if set(value) == {"classes"}:
        classes = [number(label) for label in value["classes"]] if isinstance(value["classes"], list) else []
        return len(classes) > 1 and all(map(values.is_number, classes)) and len(set(classes)) == len(classes)
    if set(value) != {"+1", "-1"}:
        return False
    return values.is_number(number(value["+1"])) and (value["-1"] == "rest" or values.is_number(number(value["-1"])))
