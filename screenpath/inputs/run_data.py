"""Data for a run that is stored: its training data again, new data in its numbers, the support vectors of a kernel."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from screenpath.data.files.arrays import dataset_like
from screenpath.data.files.dataset import Dataset, Form
from screenpath.data.files.libsvm import ABSENT, MARKED
from screenpath.data.files.npy import is_npy, read_npy
from screenpath.data.files.prepare import Preparation
from screenpath.data.files.read import read_like, refuse_columns
from screenpath.data.files.source import is_shard_folder
from screenpath.data.shards.shards import ShardFolder
from screenpath.data.words.labels import recoded
from screenpath.errors import DataError, RunFolderError
from screenpath.inputs.load import ARRAYS, name_of
from screenpath.numbers import sparse as sp
from screenpath.store.archive import FAULTS, read_npz
from screenpath.store.open import Run
from screenpath.store.record import ROWS_FILE

if TYPE_CHECKING:
    from screenpath.rows.kernel_functions import KernelFunction

HINT = "name the training data with `training`"


def training_path(run: Run, path: str | tuple | None = None) -> str | tuple:
    """Return where the training data of a run are, or arrays; ``path``, if given, is the user's answer."""
    if path is not None:
        return path
    named = run.record["data"].get("path")
    if named is None:
        raise DataError(f"{run.path} does not record where its training data are", HINT)
    if named == "-":
        raise DataError("the run read its training data from standard input", HINT)
    if named == ARRAYS and "sha256" in run.record["data"] and not Path(named).exists():
        hint = "pass them again: load_run(DIR, (X, y)); a command reads a file of write_libsvm: `training=FILE`"
        raise DataError("the run was computed from arrays, and does not keep them", hint)
    return found_path(run, named)


def found_path(run: Run, named: str) -> str:
    """Return a file that a run names, found from here or from the folders above the run: both may have moved."""
    places = [Path(named)]
    if not places[0].is_absolute():
        places += [folder / named for folder in run.path.resolve().parents]
    return str(next((place for place in places if place.exists()), named))


def training_data(run: Run, path: str | tuple | None = None) -> Dataset:
    """Read the training data of a run and check their fingerprint; ``path`` as of :func:`training_path`."""
    where = training_path(run, path)
    zero_based = run.record["options"].get("zero_based", False)
    try:
        if not isinstance(where, str):
            missing = run.record["options"].get("missing")
            data = dataset_like(where, ARRAYS, run.feature_names, run.form, missing)
        elif run.kernel == "precomputed" and is_npy(where):
            target = run.record["options"].get("target")
            data = read_npy(where, None if target is None else found_path(run, target))
        elif is_shard_folder(where):
            data = ShardFolder(where, by=None).dataset(run.n_features)
        else:
            numbered = _numbered(run)
            n_features = run.n_features + numbered
            data = read_like(where, form=run.form, zero_based=zero_based or numbered, n_features=n_features)
            data = data.without_numbers() if numbered else data
    except DataError as error:
        raise DataError(f"this needs rows of the training data: {error.message}", HINT) from None
    if data.fingerprint() != run.record["data"]["sha256"]:
        raise DataError(f"{name_of(where)} is not the training data of {run.path}: its values differ", HINT)
    return data


def read_new(
    run: Run, path, zero_based: bool | None = None, *, labelled: bool = True, target: str | None = None
) -> Dataset:
    """Read data to be predicted: LIBSVM text, a table or a folder of shards; labels get the numbers of the run.

    ``zero_based`` is that of the run by default. Unless ``labelled``, labels are ignored; an unknown one is nan.
    ``target`` names the column of labels where the training data call it otherwise.
    """
    if is_shard_folder(path):
        refuse_columns(str(path), target)
        data = ShardFolder(path, by=None).dataset()
    elif run.kernel == "precomputed" and is_npy(path):
        data = read_npy(str(path), target, MARKED if labelled else ABSENT, run.n_features)
    else:
        zero_based = run.record["options"].get("zero_based", False) if zero_based is None else zero_based
        labels, numbered = MARKED if labelled else ABSENT, _numbered(run)
        data = read_like(
            path, form=_form(run), width=run.n_features + numbered, target=target, zero_based=zero_based or numbered,
            labels=labels, new=True,
        )  # fmt: skip
        data = data.without_numbers(run.n_features) if numbered else data
    if not labelled:
        return data
    if data.lacking is not None and data.lacking.any():
        data = replace(data, y=np.where(data.lacking, np.nan, data.y))  # what has no prediction has no score
    if run.labels is None:
        if data.label_names is not None:
            hint = "leave a target empty, or write ?, where it is not known; or use `no_labels`"
            if data.text_label is not None:
                raise replace(data.text_label, hint=f"{run.model} is a regression: {hint}").error()
            what = f"{run.model} is a regression, the targets are texts: {data.label_names[0]}, ..."
            raise DataError(f"{path}: {what}", hint)
        return data
    known = run.label_names
    y = recoded(data.y, data.label_names, known, str(path), data.spelled, run.sides)
    return replace(data, y=y, label_names=known)


def digests_of(run: Run, path, data: Dataset, target: str | None = None) -> set[str]:
    """Return the fingerprints of new data: as :func:`read_new` has them, and as training and ``test`` do, without
    the rows of a table that have no label or are dropped, and with texts of labels numbered by the file alone.
    """
    found, zero_based = {data.fingerprint()}, run.record["options"].get("zero_based", False)
    if (run.form is not None or data.label_names is not None) and not is_shard_folder(path):
        with contextlib.suppress(DataError):  # data that no run takes
            found.add(read_like(path, form=run.form, target=target, zero_based=zero_based).fingerprint())
    return found


def _numbered(run: Run) -> bool:
    """Tell whether rows of a file begin with their number, as LIBSVM writes a precomputed kernel."""
    return run.kernel == "precomputed" and run.form is None


def _form(run: Run) -> Form | None:
    """Return the columns of the training data; of a table in memory only the features had names."""
    if run.form is not None or run.feature_names is None:
        return run.form
    return Form(None, run.feature_names)


def kernel_values(run: Run, step: dict, X, training: str | tuple | None = None) -> np.ndarray:
    """Return ``f(x) = sum_i y_i alpha_i K(x_i, x) + b``, shape (m,), or (m, models) of several classes, for new data.

    ``X``, CSR of shape (m, d), is in the units of the data file, with the columns that the run has; the rest is as of
    :func:`screenpath.engine.stored.decision_values`.
    """
    from screenpath.rows.kernel_functions import BLOCK_BYTES, KernelBlocks

    if run.kernel == "precomputed":  # X has the values: only those with support vectors count
        coefficients, intercepts = run.deciding(step)
        intercepts = intercepts + run.record["kernel"]["constant"] * coefficients.sum(axis=1)
        if isinstance(X, np.ndarray):
            support = np.flatnonzero(coefficients.any(axis=0))
            height = max(1, BLOCK_BYTES // (8 * max(support.size, 1)))
            blocks = (X[k : k + height, support] for k in range(0, X.shape[0], height))
            parts = [block @ coefficients[:, support].T for block in blocks]
            forms = np.concatenate([*parts, np.empty((0, intercepts.size))]) + intercepts
        else:
            forms = X @ coefficients.T + intercepts
        wrong = np.flatnonzero(~np.isfinite(forms).all(axis=1))
        if wrong.size:
            what = f"row {wrong[0] + 1}: a kernel value with a support vector is infinite, too large or no number"
            raise DataError(what, "check the kernel: only columns of rows that are no support vectors may be nan")
        return forms if run.blocks else forms[:, 0]
    found = support_of(run, step, training, dense=run.record["data"]["storage"] == "dense")
    if found.coefficients.size == 0:
        return np.full((X.shape[0], *np.shape(found.intercept)), found.intercept)
    new = found.preparation.apply(X if sp.issparse(found.rows) else X.toarray())
    return KernelBlocks(found.rows, found.function).held_out(new) @ found.coefficients + found.intercept


@dataclass(frozen=True)
class Compressed:
    """What fewer support vectors change; see :mod:`screenpath.export.compact`."""

    before: int  # support vectors of the step
    change: float  # upper bound of the change of a decision
    at_training: bool  # whether at the training rows alone; else at every row

    def words(self, now: int) -> str:
        where = "at the training rows" if self.at_training else "anywhere"
        return f"{now:,} of {self.before:,} support vectors: no decision {where} changes by more than {self.change:.3g}"


@dataclass(frozen=True)
class Support:
    """The support vectors of a kernel step, with all that a prediction needs."""

    function: KernelFunction
    preparation: Preparation  # of new rows
    rows: Any  # ndarray or csr_array of shape (m, d): prepared support vectors
    coefficients: np.ndarray  # shape (m,), or (m, models) of several classes
    intercept: Any  # float, or of shape (models,): 0 where there is none; less the threshold of the step
    compressed: Compressed | None = None


def support_of(run: Run, step: dict, training: str | tuple | Support | None = None, dense: bool = True) -> Support:
    """Return the support vectors of a step, prepared; arguments and errors as of :func:`kernel_values`.

    Those that are passed as ``training`` are returned.
    """
    if isinstance(training, Support):
        rows = training.rows.toarray() if dense and sp.issparse(training.rows) else training.rows
        return replace(training, rows=rows)
    coefficients, intercepts = run.deciding(step)
    support = np.flatnonzero(coefficients.any(axis=0))
    coefficients = coefficients[:, support].T if run.blocks else coefficients[0, support]
    rows = training_rows(run, training, support, dense)
    intercept = intercepts if run.blocks else float(intercepts[0])
    return Support(_function(run), run.preparation, rows, coefficients, intercept)


def training_rows(run: Run, training: str | tuple | None, index, dense: bool):
    """Return some training rows of a run, prepared; they are read again unless the run folder has them."""
    if training is None and run.has(ROWS_FILE):
        rows = kept_rows(run)[index]
        return rows.toarray() if dense else rows
    rows = run.preparation.narrowed(sp.csr_array(training_data(run, training).X)[index])
    return run.preparation.apply(rows.toarray() if dense else rows)


def kept_bytes(rows) -> bytes:
    """Return prepared rows, shape (n, d), for the run folder."""
    file, csr = io.BytesIO(), sp.csr_array(rows)
    np.savez(file, data=csr.data, indices=csr.indices, indptr=csr.indptr)
    return file.getvalue()


def kept_rows(run: Run):
    """Return the rows of :func:`kept_bytes` as csr_array of shape (n, d)."""
    file = run.path / ROWS_FILE
    try:
        content = read_npz(file)
        parts = content["data"], content["indices"], content["indptr"]
        found = sp.csr_array(parts, shape=(run.record["data"]["n_samples"], run.n_columns))
        found.check_format()
        return found
    except FAULTS as error:
        raise RunFolderError(f"{file} is damaged: {error}", "name the training data with `training`") from None


def _function(run: Run) -> KernelFunction:
    from screenpath.rows.kernel_functions import KernelFunction

    record = run.record["kernel"]
    try:
        chosen = {name: record[name] for name in ("gamma", "degree", "coef0") if name in record}
        return KernelFunction(record["kernel"], **chosen, constant=record["constant"])
    except (KeyError, TypeError):
        what = f"{run.path / 'run.json'} is damaged: the kernel is not complete"
        raise RunFolderError(what, "compute the path again with `force`") from None


def of_width(run: Run, X) -> sp.csr_array:
    """Return new rows with the columns of a run: others are left out, and those that are not there are 0."""
    if isinstance(X, np.ndarray) and run.kernel == "precomputed":
        return X
    X = sp.csr_array(X[:, : run.n_features] if X.shape[1] > run.n_features else X)
    shape = X.shape[0], run.n_features
    return run.preparation.narrowed(sp.csr_array((X.data, X.indices, X.indptr), shape=shape))
