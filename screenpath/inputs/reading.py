"""From the names of files, or arrays, to data in memory, and from labels as users name them to numbers."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from screenpath.catalogue.spec import real_targets
from screenpath.catalogue.targets import checked_weights, row_weights
from screenpath.data.files.arrays import dataset_of
from screenpath.data.files.dataset import Dataset
from screenpath.data.files.libsvm import BLOCK
from screenpath.data.files.read import read_data as read_file
from screenpath.data.files.read import refuse_columns
from screenpath.data.files.source import is_shard_folder
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.words.labels import label_number, label_text, named
from screenpath.data.words.numerals import Spelled, number_of
from screenpath.errors import DataError, UsageError

if TYPE_CHECKING:
    from screenpath.data.shards.shards import ShardFolder
    from screenpath.data.words.faults import Fault

ARRAYS = "arrays"  # in place of a file's name
TOO_LARGE = "convert the file (screenpath convert) and name the folder with a model that streams it"


def name_of(data) -> str:
    """Return what a run calls its data: the name of the file, or ``arrays``."""
    return data if isinstance(data, str) else ARRAYS


def is_shards(data) -> bool:
    return isinstance(data, str) and is_shard_folder(data)


def open_shards(options: dict) -> ShardFolder:
    """Open the shard folder DATA; to resume a run, its content is checked too, as the data must be the same."""
    from screenpath.data.shards.shards import ShardFolder

    folder = ShardFolder(options["data"], bool(options.get("resume")), by=None)
    folder.check_indices(options["zero_based"])
    if folder.form is None or options.get("one_hot"):
        refuse_columns(str(folder.path), options.get("target"), options.get("one_hot", ()))
    elif options.get("target") not in (None, folder.form.target):
        raise UsageError(
            f"{folder.path} was converted with the target '{folder.form.target}'", "convert again with `target`"
        )
    return folder


def read_data(path, options: dict, limit: MemoryLimit, n_features: int | None = None) -> Dataset:
    """Read a text file, a shard folder or what ``--cache`` kept of a text file into memory.

    Raises
    ------
    DataError, UsageError, ResourceError
    """
    columns = {"target": options.get("target"), "one_hot": tuple(options.get("one_hot") or ())}
    if not isinstance(path, str):
        refuse_columns("what was passed in", **columns)
        return dataset_of(path, ARRAYS)
    zero_based = options["zero_based"]
    if is_shard_folder(path):
        folder = open_shards({**options, "data": path})
    elif options.get("cache"):
        if str(path) == "-":
            raise UsageError("`cache` keeps files, not standard input", "leave out `cache`, or name a file")
        from screenpath.data.shards.convert import cached_shards

        folder = cached_shards(path, options["cache"], zero_based, options["max_memory"], **columns)
    else:
        folder = None
    if folder is None:
        block = BLOCK // 4 if limit else BLOCK  # what a block is parsed into is many times its size
        return read_file(path, n_features=n_features, zero_based=zero_based, block=block, limit=limit, **columns)
    limit.check(folder.dataset_bytes(), f"{path} in memory", TOO_LARGE)
    return folder.dataset(n_features)


def coded(options: dict, names) -> dict:
    """Return options in which labels are numbers; ``names`` has their texts, or the file's spelling of numbers.

    The result's ``label_names`` are texts only, its ``label_texts`` what messages call labels.
    """
    positive = options.get("positive")
    positive = None if positive is None else label_number(positive, names, "positive")
    texts = None if isinstance(names, Spelled) else names
    return {**options, "positive": positive, "label_names": texts, "label_texts": names}


def class_weights(given, names=None):
    """Return the values of ``class_weight`` as :func:`row_weights` takes them; ``names`` as of :func:`coded`."""
    if not given:
        return None
    if tuple(given) == ("balanced",):
        return "balanced"
    weights = {}
    for text in given:
        name, _, weight = text.rpartition("=")
        try:
            value = number_of(weight if name else "")
        except ValueError:
            raise UsageError(
                f"`class_weight='{text}'` is not LABEL=WEIGHT", "write for example `class_weight=1=5`, or balanced"
            ) from None
        label = label_number(name, names, "class_weight")
        if label in weights:
            raise UsageError(f"`class_weight` names the label {name} twice", "give each label one weight")
        weights[label] = value
    return weights


def read_weights(path, unit: str = "sample"):
    """Return the numbers of a weights file, one line a ``unit``; arrays and None are returned as they are."""
    if path is None or not isinstance(path, str):
        return path
    weights, empty = array("d"), 0
    try:
        with open(path, encoding="utf-8") as file:
            for k, line in enumerate(file):
                if not line.strip():  # below the last number it says nothing
                    empty = empty or k + 1
                    continue
                if empty:
                    raise DataError(f"{path}, line {empty}: the line is empty", f"one number a line, one line a {unit}")
                try:
                    weights.append(number_of(line))
                except ValueError:
                    raise DataError(
                        f"{path}, line {k + 1}: the weight is not a number: '{line.strip()}'",
                        f"one number a line, one line a {unit}",
                    ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: the weights cannot be read ({getattr(error, 'strerror', None) or error})",
            f"one number a line, one line a {unit}",
        ) from None
    return np.array(weights)


def targets_of(
    spec, options: dict, y: np.ndarray, source: str, text: Fault | None = None
) -> tuple[np.ndarray, dict | None]:
    """Return the targets of a model and the map from +1, -1 or classes to labels (None of a regression).

    ``text`` is the first target that is not a number, where its place is known.
    """
    names = options["label_names"]
    spelled = options["label_texts"] if isinstance(options["label_texts"], Spelled) else None
    if spelled is not None and spelled.fault and spec.targets is not real_targets:
        raise DataError(f"{source}: {spelled.fault}", "write labels that begin with a letter: id9007199254740993")
    targets, labels = spec.targets(y, options)
    if names is not None and labels is None and text is not None:
        hint = f"{spec.name} is a regression: write a number, leave the row out, or name a column: `target=COLUMN`"
        raise replace(text, hint=hint).error()
    if names is not None and labels is None:
        raise DataError(
            f"{source}: {spec.name} is a regression, the targets are texts: {label_text(0, names)}, ...",
            "name a column of numbers: `target=COLUMN`; svm and sparse-svm tell labels apart",
        )
    if spelled is not None and labels is not None:
        used = [label for one in labels.values() for label in (one if isinstance(one, list) else [one])]
        names = spelled if any(label in spelled.texts for label in used) else None
    return targets, named(labels, names)


def learned(spec, options: dict, told, y: np.ndarray, source: str, text: Fault | None = None) -> tuple[dict, dict]:
    """Return options in which labels are numbers, and the fields of Training that depend on labels.

    ``told`` is a data set or a folder of shards with the labels ``y``; ``text`` as of :func:`targets_of`.
    """
    options = coded(options, told.label_names or told.spelled)
    targets, labels = targets_of(spec, options, y, source, text)
    given, texts = checked_weights(y, read_weights(options.get("weights"))), options["label_texts"]
    weights = row_weights(y, class_weights(options.get("class_weight"), texts), given, texts)
    known = {"targets": targets, "labels": labels, "weights": weights, "sample_weights": given, "label_texts": texts}
    return options, {**known, "names": told.names, "label_names": told.label_names, "form": told.form}


def named_cluster(options: dict) -> bool:
    """Tell whether the options name a cluster; ``jobs`` would be a second way to share the work."""
    named = options.get("scheduler") is not None
    if named and options.get("jobs", 1) > 1:
        raise UsageError("`jobs` are processes here, a cluster has its own workers", "use one of the two")
    return named
