"""The training data of a run, read again."""

from __future__ import annotations

from pathlib import Path

from screenpath.data.files.dataset import Dataset
from screenpath.data.files.read import read_like
from screenpath.data.files.source import is_shard_folder
from screenpath.data.shards.column_shards import open_folder
from screenpath.errors import DataError
from screenpath.inputs.reading import ARRAYS
from screenpath.store.open import Run

HINT = "name the training data with `training`"


def training_path(run: Run, path: str | None = None) -> str:
    """Return where the training data of a run are; ``path`` is what the user says.

    A relative name is looked up as :func:`found_path` does: data and run may have been moved together.
    """
    if path is not None:
        return path
    named = run.record["data"].get("path")
    if named is None:
        raise DataError(f"{run.path} does not say where its training data are", HINT)
    if named == "-":
        raise DataError("the run read its training data from standard input", HINT)
    if named == ARRAYS and "sha256" in run.record["data"] and not Path(named).exists():
        raise DataError(
            "the run was computed from arrays, and does not keep them",
            "write them to a file (write_libsvm), and name it with `training`",
        )
    return found_path(run, named)


def found_path(run: Run, named: str) -> str:
    """Return where a file is that a run names, from here or from the folders above the run."""
    places = [Path(named)]
    if not places[0].is_absolute():
        places += [folder / named for folder in run.path.resolve().parents]
    return str(next((place for place in places if place.exists()), named))


def training_data(run: Run, path: str | None = None) -> Dataset:
    """Read the training data of a run and check that they are the same; ``path`` as of :func:`training_path`."""
    where = training_path(run, path)
    zero_based = run.record["options"].get("zero_based", False)
    try:
        if is_shard_folder(where):
            data = open_folder(where).dataset(run.n_features)
        else:
            data = read_like(where, form=run.form, zero_based=zero_based, n_features=run.n_features)
    except DataError as error:
        raise DataError(f"this takes rows of the training data: {error.message}", HINT) from None
    if data.fingerprint() != run.record["data"]["sha256"]:
        raise DataError(f"{where} is not the training data of {run.path}: its values differ", HINT)
    return data
