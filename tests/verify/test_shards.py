"""The checker reads folders of shards: what a run on them claims, shard by shard, and what it makes of changed ones."""

import json

import numpy as np
import pytest

import screenpath
from screenpath import verify_certificate
from screenpath.data.shards import convert as conversion
from screenpath.errors import DataError, ResourceError, UsageError
from screenpath.verify import shards
from tests.cli.conftest import libsvm_text

SHARDS = 4


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng, folder = np.random.default_rng(8), tmp_path_factory.mktemp("shards")
    X = rng.normal(size=(230, 4)) * (rng.random((230, 4)) < 0.6)
    (folder / "text").write_text(libsvm_text(X, np.where(X[:, 0] + 0.4 * rng.normal(size=230) > 0.0, 3, 4)))
    return folder


@pytest.fixture(autouse=True)
def small(monkeypatch, data):
    """Have the text cut into four shards."""
    monkeypatch.setattr(conversion, "BLOCK", int((data / "text").stat().st_size / (SHARDS - 0.5)))


def converted(data, name: str, **how):
    return conversion.convert([data / "text"], data / name, block_mb=1e-3, force=True, **how)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("how", [{}, {"scale": "standard", "bias": 1.0}, {"scale": "l2"}, {"storage": "sparse"}])
def test_the_certificate_of_a_run_on_shards_is_proven_from_them(data, storage, how):
    folder = converted(data, "d", storage=storage)
    if how.get("scale") == "standard":
        how = {**how, "storage": "dense"}
    screenpath.run("svm", str(folder.path), grid=4, certificate=True, quiet=True, force=True, out=data / "r", **how)
    assert folder.count == SHARDS
    found = verify_certificate(data / "r")
    assert found.holds and found.proven == 4, found.faults
    assert "run.json: data.sha256" in found.covered and "run.json: data.nnz" in found.covered


def test_the_certificate_of_a_text_is_proven_from_its_shards_and_not_from_others(data):
    screenpath.run("svm", str(data / "text"), grid=3, certificate=True, quiet=True, force=True, out=data / "r")
    for storage, dtype in (("dense", np.float64), ("sparse", np.float64)):
        assert verify_certificate(data / "r", converted(data, "d", storage=storage, dtype=dtype).path).holds
    with pytest.raises(DataError, match="not the data of the certificate"):
        verify_certificate(data / "r", converted(data, "d", dtype=np.float32).path)


def test_numbers_of_float32_shards_are_exact(data):
    folder = converted(data, "d", dtype=np.float32)
    screenpath.run("svm", str(folder.path), grid=3, certificate=True, quiet=True, force=True, out=data / "r")
    assert verify_certificate(data / "r").holds


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_any_changed_byte_of_a_shard_is_found(data, storage, seeds=12):
    folder = converted(data, "d", storage=storage).path
    screenpath.run("svm", str(folder), grid=2, certificate=True, quiet=True, force=True, out=data / "r")
    rng, files = np.random.default_rng(4), sorted(folder.glob("*.npy"))
    for file in files:
        whole = file.read_bytes()
        for place in rng.integers(128, len(whole), size=seeds):  # the headers hold blanks that nobody reads
            file.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << rng.integers(8))]) + whole[place + 1 :])
            with pytest.raises(DataError):
                verify_certificate(data / "r")
        for other in (whole[:-1], whole + b"x" * 8, b"", whole[:90]):
            file.write_bytes(other)
            with pytest.raises(DataError):
                verify_certificate(data / "r")
        file.unlink()
        with pytest.raises(DataError, match=f"{file.name} is missing or damaged: No such file or directory\n"):
            verify_certificate(data / "r")
        file.write_bytes(whole)
    assert verify_certificate(data / "r").holds


def test_a_folder_is_described_by_its_own_record(data, monkeypatch):
    folder = converted(data, "d").path
    screenpath.run("svm", str(folder), grid=2, certificate=True, quiet=True, force=True, out=data / "r")
    written = (folder / "meta.json").read_text()
    meta = json.loads(written)
    faults = {
        "rows in format 1": {**meta, "schema_version": 1}, "columns in format 2": {**meta, "by": "columns"},
        "not the data": {**meta, "label_names": ["a", "b"]}, "is damaged": {"shards": meta["shards"]},
        "do not fit": {**meta, "shards": [{**meta["shards"][0], "rows": 1}, *meta["shards"][1:]]},
        "content differs": {**meta, "shards": meta["shards"][:-1]},
    }  # fmt: skip
    for words, record in faults.items():
        (folder / "meta.json").write_text(json.dumps(record))
        with pytest.raises(DataError, match=words):
            verify_certificate(data / "r")
    (folder / "meta.json").write_text(written)
    monkeypatch.setattr(shards, "memory", lambda: 4000)
    with pytest.raises(ResourceError, match="more than this machine can hold"):
        verify_certificate(data / "r")


def test_tables_have_their_columns_and_names_in_shards_too(data, tmp_path):
    path = "data_samples/penguins.csv"
    how = {"target": "sex", "one_hot": ("species", "island")}
    folder = conversion.convert([path], tmp_path / "d", **how).path
    screenpath.run("svm", str(folder), grid=3, certificate=True, quiet=True, out=tmp_path / "r")
    assert verify_certificate(tmp_path / "r").holds
    screenpath.run("svm", path, grid=3, certificate=True, quiet=True, out=tmp_path / "t", **how)
    assert verify_certificate(tmp_path / "t", folder).holds
    other = conversion.convert([path], tmp_path / "o", target="sex", one_hot="species", drop="island").path
    with pytest.raises(DataError, match="not the data of the certificate"):
        verify_certificate(tmp_path / "t", other)


def test_columns_have_no_certificate_and_folders_of_something_else_none(data, tmp_path):
    folder = converted(data, "c", by="columns").path
    with pytest.raises(UsageError, match="checked on rows"):
        screenpath.run("l1svm", str(folder), grid=3, certificate=True, quiet=True, out=tmp_path / "r")
    screenpath.run("svm", str(data / "text"), grid=2, certificate=True, quiet=True, out=tmp_path / "r")
    with pytest.raises(DataError, match="not one of shards"):
        verify_certificate(tmp_path / "r", tmp_path)


def test_folds_on_shards_are_checked_from_them(data, tmp_path):
    folder = converted(data, "d").path
    screenpath.cross_validate("svm", str(folder), grid=4, folds=3, certificate=True, quiet=True, out=tmp_path / "r")
    found = verify_certificate(tmp_path / "r")
    assert found.holds and "folds" in " ".join(found.covered)
