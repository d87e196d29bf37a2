"""Which samples are held out together: drawn, or read from a file; checked before anything is computed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from screenpath.data.words.labels import label_text
from screenpath.errors import DataError, UsageError
from screenpath.inputs.load import read_lines

ALL_CLASSES = ("balanced-accuracy", "f1", "auc")  # scores that need every class in every held-out part

FEWER = "use `stratify` with {folds}"  # what to do where a class is missing from a fold
SPREAD, OTHER = "spread its samples over the folds", ", or use `score=accuracy`"  # where folds or groups are given


@dataclass(frozen=True)
class Split:
    """One training part and one held-out part."""

    repeat: int  # repeat, fold: from 0; of a fold file, ``fold`` is the rank of its number
    fold: int
    held_out: np.ndarray  # int64: held-out samples, increasing
    trained: np.ndarray | None = None  # int64: samples that are trained on, increasing; all others by default

    def training(self, n: int) -> np.ndarray:
        if self.trained is not None:
            return self.trained
        keep = np.ones(n, dtype=bool)
        keep[self.held_out] = False
        return np.flatnonzero(keep)


def splits_of(options: dict, n: int, groups: np.ndarray | None, classes=None) -> list[Split]:
    """Return the folds that the options of a cross-validation ask for; ``groups`` are those of its column."""
    o = options
    if o["fold_file"] is not None:
        return read_fold_file(o["fold_file"], n)
    if o["fold_column"] is not None:
        return folds_of(groups, f"the column '{o['fold_column']}'")
    if groups is not None:
        return draw_groups(groups, o["folds"], o["repeats"], o["fold_seed"])
    return draw_folds(n, o["folds"], o["repeats"], o["fold_seed"], classes)


def held_out_order(splits: list[Split], n: int) -> np.ndarray:
    """Return all samples, those that a fold of the first repeat holds out beside each other."""
    every, first = np.unique(np.concatenate([*(one.held_out for one in splits), np.arange(n)]), return_index=True)
    return every[np.argsort(first)]


def digest_of(splits: list[Split]) -> str:
    digest = hashlib.sha256()
    for split in splits:
        digest.update(np.append([split.repeat, split.fold], split.held_out).astype(np.int64).tobytes())
    return digest.hexdigest()


def draw_folds(n: int, k: int, repeats: int, seed: int, classes=None) -> list[Split]:
    """Draw ``repeats`` partitions of the samples into ``k`` folds; the folds of the first repeat come first.

    The folds depend on seed, ``n``, ``k`` and labels alone. With labels, ``classes`` of shape (n,), each fold gets each
    class in the same proportion, to one sample; without, sizes differ by at most one.
    """
    splits: list[Split] = []
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        order = rng.permutation(n)
        if classes is not None:  # sorted by class and dealt out in turns: sizes stay equal across classes
            order = order[np.argsort(np.asarray(classes)[order], kind="stable")]
        member = np.empty(n, dtype=np.int64)
        member[order] = np.arange(n) % k
        splits.extend(Split(repeat, fold, np.flatnonzero(member == fold)) for fold in range(k))
    return splits


def draw_groups(groups: np.ndarray, k: int, repeats: int, seed: int) -> list[Split]:
    """Draw ``repeats`` partitions into ``k`` folds that cut no group: the largest ones first, to the smallest fold."""
    names, codes, counts = np.unique(groups, return_inverse=True, return_counts=True)
    if names.size < 2:
        raise DataError("all samples are in one group", "cross-validation needs two or more")
    if names.size < k:
        raise UsageError(f"`folds={k}` is more than the {names.size} groups", f"use {fewer(names.size)}")
    splits: list[Split] = []
    for repeat in range(repeats):
        order = np.random.default_rng([seed, repeat]).permutation(names.size)
        member, sizes = np.empty(names.size, dtype=np.int64), np.zeros(k)
        for group in order[np.argsort(-counts[order], kind="stable")]:
            member[group] = sizes.argmin()
            sizes[member[group]] += counts[group]
        splits.extend(Split(repeat, fold, np.flatnonzero(member[codes.ravel()] == fold)) for fold in range(k))
    return splits


def read_fold_file(path, n: int) -> list[Split]:
    """Read a fold file: one whole number a line, one line a sample; two folds at least."""
    member = read_lines(path, "sample", "fold", whole=True)
    if member.size != n:
        raise DataError(f"{path} has {member.size} lines for {n} samples", "write one fold number a sample, in order")
    return folds_of(member, path)


def folds_of(member: np.ndarray, source) -> list[Split]:
    """Return the folds that numbers or texts, one a sample, name."""
    names = np.unique(member)
    if names.size < 2:
        raise DataError(f"{source} names one fold only ({names[0]})", "cross-validation needs two or more")
    return [Split(0, rank, np.flatnonzero(member == name)) for rank, name in enumerate(names)]


def check_count(n: int, k: int) -> None:
    if n < 2:
        raise DataError("cross-validation needs 2 samples or more, and there is 1", "add samples")
    if k > n:
        raise UsageError(f"`folds={k}` is more than the {n} samples", f"use {fewer(n)}: {n} leave one out")


def fewer(k: int) -> str:
    return f"`folds={k}` or fewer" if k > 2 else f"`folds={k}`"


def more_samples(classes: int) -> str:
    return "add samples of it" + ", or remove the class" * (classes > 2)


def check_counts(classes, k: int, name=label_text, alone: bool = False) -> None:
    """Refuse more folds than the rarest class has samples; ``name(value) -> str`` is the class as in the file.

    ``alone`` tells a model of two labels, and scores, whose rows can be left out one at a time.
    """
    values, counts = np.unique(classes, return_counts=True)
    rare = int(counts.argmin())
    if counts[rare] >= k:
        return
    found, loo = f"{counts[rare]} samples", ", or `folds=loo`" if alone and values.size == 2 else ""
    hint = f"use {fewer(counts[rare])}{loo}"
    if counts[rare] == 1:
        found, hint = "1 sample", more_samples(values.size) + loo.replace("or", "or use")
    raise DataError(f"the class {name(values[rare])} has {found}, fewer than the {k} folds", hint)


def check_weights(weights, splits: list[Split]) -> None:
    """Refuse parts whose samples all have weight 0, which is as if they were empty."""
    for split in splits:
        for part, index in (("training", split.training(len(weights))), ("held-out", split.held_out)):
            if not np.any(weights[index]):
                what = f"all samples of the {part} part of fold {split.fold} have weight 0"
                raise DataError(what, "use fewer folds, or remove the samples of weight 0")


def check_classes(classes, splits: list[Split], everywhere: bool, name=label_text, weights=None, advice=FEWER) -> None:
    """Refuse training parts that lack a class, and ``everywhere`` held-out parts too; weight 0 does not count.

    ``name(value) -> str`` is the class as in the file; ``advice`` may name the ``{folds}`` that its samples allow.
    """
    n = len(classes)
    there = np.ones(n, dtype=bool) if weights is None else weights > 0.0
    values, counts = np.unique(classes[there], return_counts=True)
    for split in splits:
        parts = [("training", split.training(n))] + ([("held-out", split.held_out)] if everywhere else [])
        for part, index in parts:
            missing = np.setdiff1d(values, classes[index[there[index]]])
            if missing.size:
                count = int(counts[np.searchsorted(values, missing[0])])
                raise DataError(
                    f"the {part} part of fold {split.fold} has no sample of the class {name(missing[0])}, "
                    f"which has {count} in all",
                    advice.format(folds=fewer(count)) if count > 1 else more_samples(values.size),
                )
