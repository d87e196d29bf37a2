"""New data for a run: columns found as in its training data, labels numbered as there."""

from __future__ import annotations

from dataclasses import replace

from screenpath.data.files.dataset import Dataset
from screenpath.data.files.form import Form
from screenpath.data.files.libsvm import ABSENT, MARKED
from screenpath.data.files.read import read_like, refuse_columns
from screenpath.data.files.source import is_shard_folder
from screenpath.data.shards.column_shards import open_folder
from screenpath.data.words.labels import recoded
from screenpath.errors import DataError
from screenpath.store.open import Run


def read_new(
    run: Run, path, zero_based: bool | None = None, *, labelled: bool = True, target: str | None = None
) -> Dataset:
    """Read data to be predicted: LIBSVM text, a table or a folder of shards; labels have the numbers of the run.

    Indices count from where they do in the run by default. Unless ``labelled``, labels mean nothing; one that is not
    known is nan in any case. ``target`` is the column of labels in a table, where it is not called as in the training
    data.
    """
    if is_shard_folder(path):
        refuse_columns(str(path), target)
        data = open_folder(path).dataset()
    else:
        zero_based = run.record["options"].get("zero_based", False) if zero_based is None else zero_based
        labels = MARKED if labelled else ABSENT
        data = read_like(
            path, form=_form(run), width=run.n_features, target=target, zero_based=zero_based, labels=labels
        )
    if not labelled:
        return data
    if run.labels is None:
        if data.label_names is not None:
            hint = "leave a target empty, or write ?, where it is not known; or say `no_labels`"
            if data.text_label is not None:
                raise replace(data.text_label, hint=f"{run.model} is a regression: {hint}").error()
            what = f"{run.model} is a regression, the targets are texts: {data.label_names[0]}, ..."
            raise DataError(f"{path}: {what}", hint)
        return data
    known = run.label_names
    y = recoded(data.y, data.label_names, known, str(path), data.spelled, run.sides)
    return replace(data, y=y, label_names=known)


def _form(run: Run) -> Form | None:
    """Return the columns of the training data; of one that was a table in memory, the features by their names."""
    if run.form is not None or run.feature_names is None:
        return run.form
    return Form(None, run.feature_names)
