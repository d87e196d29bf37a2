"""Groups of features: a file with a label for each feature, or a table of features, groups and weights."""

from __future__ import annotations

import csv

import numpy as np

from screenpath.data.words.numerals import number_of
from screenpath.errors import DataError, UsageError

HEADS = (["feature", "group"], ["feature", "group", "weight"])
HINT = "write the group of each feature, in their order, as in `1 1 2 2 3`; or CSV with `feature,group` or "
HINT += "`feature,group,weight` in its first line"


def read_groups(source, width: int, names=None, columns=None) -> np.ndarray | None:
    """Return the groups of the features that have a column, shape (d, 2): number of the group, from 0, and its weight.

    Without weights in the file a group's is the root of its size. ``source`` is a path, an array of labels of shape
    (width,), or None; ``names`` are those of the features.

    Raises
    ------
    DataError
        If a feature is in no group or in two, or a weight none.
    """
    if source is None:
        return None
    weights: dict = {}
    if isinstance(source, str):
        labels = _from_file(source, width, names, weights)
    else:
        labels = np.asarray(source).tolist()
        if np.ndim(source) != 1 or len(labels) != width:
            raise UsageError(f"groups of shape {np.shape(source)} for {width:,} features", "give each feature a label")
    numbers = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    of = np.array([numbers[label] for label in labels])
    sizes = np.bincount(of)
    given = np.array([weights.get(label, np.sqrt(sizes[k])) for label, k in numbers.items()])
    found = np.column_stack([of.astype(np.float64), given[of]])
    return found if columns is None else found[columns]


def _from_file(path: str, width: int, names, weights: dict) -> list[str]:
    """Return the label of each feature; the weights of groups that have one are written to ``weights``."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = [line.strip() for line in file]
    except (OSError, UnicodeDecodeError) as error:
        what = f"{path}: the groups cannot be read ({getattr(error, 'strerror', None) or error})"
        raise DataError(what, HINT) from None
    head = [cell.strip().lower() for cell in lines[0].split(",")] if lines else []
    if head in HEADS:
        return _from_table(path, lines, head, width, names, weights)
    if len(head) > 1:
        raise DataError(f"{path}, line 1: '{lines[0]}' is neither a label nor the head of a table", HINT)
    found = [(k, token) for k, line in enumerate(lines, 1) for token in line.split()]
    if len(found) > width:
        k, token = found[width]
        raise DataError(f"{path}, line {k}: '{token}' is label {width + 1}, and there are {width:,} features", HINT)
    if len(found) < width:
        raise DataError(f"{path}, line {len(lines)}: it ends after {len(found):,} of {width:,} features", HINT)
    return [token for _, token in found]


def _from_table(path: str, lines: list[str], head: list[str], width: int, names, weights: dict) -> list[str]:
    places = {name: j for j, name in enumerate(names or ())}
    labels: list = [None] * width
    try:
        found = list(csv.reader(lines))
    except csv.Error as error:
        raise DataError(f"{path}: the table cannot be read ({error})", HINT) from None
    for k, cells in enumerate(found, 1):
        if k == 1 or not cells:
            continue
        where, cells = f"{path}, line {k}", [cell.strip() for cell in cells]
        if len(cells) != len(head) or not cells[1]:
            raise DataError(f"{where}: '{lines[k - 1]}' is not {','.join(head)}", HINT)
        j = places.get(cells[0], int(cells[0]) - 1 if cells[0].isdecimal() else -1)
        if not 0 <= j < width:
            what = f"{where}: there is no feature '{cells[0]}'"
            raise DataError(what, f"features are 1 to {width}, or have the names of the data")
        if labels[j] is not None:
            what = f"{where}: feature '{cells[0]}' has a group already, '{labels[j]}'"
            raise DataError(what, "name each feature once")
        labels[j] = cells[1]
        if len(head) > 2:
            try:
                weight = number_of(cells[2])
            except ValueError:
                weight = np.nan
            if not 0.0 < weight < np.inf or weights.setdefault(cells[1], weight) != weight:
                hint = "a weight is above 0, and the same on all lines of a group"
                raise DataError(f"{where}: '{cells[2]}' is no weight of the group '{cells[1]}'", hint)
    if None in labels:
        raise DataError(f"{path}: feature {labels.index(None) + 1} has no group", "name each feature once")
    return labels
