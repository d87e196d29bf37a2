"""The commands on shard folders, the cache and the memory limit."""

import json

import numpy as np
import pytest

from tests.cli.conftest import libsvm_text, without_times

GRID = ("--grid", "8", "--cmax", "1", "--quiet")


@pytest.fixture
def shards(call, data, monkeypatch):
    """A folder of several shards made of ``data``."""
    monkeypatch.setattr("screenpath.convert.BLOCK", 1 << 11)
    monkeypatch.setattr("screenpath.convert.BLOCK_MB", 1e-3)
    from screenpath.convert import convert

    return convert([data], data.parent / "shards", block_mb=1e-3).path


@pytest.mark.parametrize("scale", ["none", "standard", "maxabs", "l2"])
@pytest.mark.parametrize("model", [("svm",), ("lad",), ("svr", "--epsilon", "0.1"), ("quantile", "--tau", "0.3")])
def test_paths_on_shards_have_the_bytes_of_those_in_memory(call, data, shards, model, scale):
    command, *own = model
    more = (*own, *GRID, "--scale", scale, "--bias", "1")
    assert call(command, data, *more, "-o", "memory").code == 0
    result = call(command, shards, *more, "-o", "streamed")
    assert result.code == 0, result.err
    # Passes differ: survivors are copied from shards, and read in place in memory.
    assert without_times("memory/steps.csv", "passes") == without_times("streamed/steps.csv", "passes")
    with open("memory/coefficients.csv") as one, open("streamed/coefficients.csv") as other:
        assert one.read() == other.read()
    with open("streamed/run.json") as file:
        assert json.load(file)["data"]["storage"] == "shards"


@pytest.mark.parametrize("command", ["sparse-svm", "l1svm"])
def test_models_that_need_columns_read_the_folder(call, data, shards, command):
    grid = ("--betas", "2", "--alphas", "4") if command == "sparse-svm" else ("--grid", "5")
    assert call(command, data, *grid, "--quiet", "-o", "memory").code == 0
    assert call(command, shards, *grid, "--quiet", "-o", "streamed").code == 0
    assert without_times("memory/steps.csv") == without_times("streamed/steps.csv")


def test_convert_command(call, data):
    result = call("convert", data, data, "both")
    assert result.code == 0 and "both: 240 rows, 5 features" in result.err
    assert call("convert", data, "both").code == 1
    assert call("convert", data, "both", "--force", "--quiet", "--jobs", "2", "--dtype", "float32").err == ""
    result = call("svm", "both", "--dtype", "float32", *GRID, "-o", "r")
    assert result.code == 0, result.err
    result = call("svm", "both", "--zero-based", *GRID)
    assert result.code == 2 and "converted with indices from 1" in result.err
    result = call("convert", "missing.libsvm", "out")
    assert result.code == 1 and "no such file" in result.err
    result = call("svm", data.parent, *GRID)
    assert result.code == 1 and "not one of shards" in result.err


def test_cross_validation_and_folders(call, data, shards):
    assert call("cv", "svm", data, "--folds", 3, *GRID, "-o", "a").code == 0
    assert call("cv", "svm", shards, "--folds", 3, *GRID, "-o", "b").code == 0
    with open("a/cv.csv") as one, open("b/cv.csv") as other:
        assert one.read() == other.read()


def test_test_data_and_predict_with_folders(call, data, shards):
    assert call("svm", data, *GRID, "--test", data, "-o", "a").code == 0
    assert call("svm", data, *GRID, "--test", shards, "-o", "b").code == 0
    assert without_times("a/steps.csv") == without_times("b/steps.csv")
    one, other = (call("predict", "a", where, "--step", 3, "--quiet") for where in (data, shards))
    assert one.code == other.code == 0 and one.out == other.out != ""


def test_cache(call, data, monkeypatch):
    assert call("svm", data, *GRID, "-o", "plain").code == 0
    assert call("svm", data, *GRID, "-o", "first", "--cache", "kept").code == 0
    monkeypatch.setattr("screenpath.cli.load.read_libsvm", None)
    monkeypatch.setattr("screenpath.convert.convert", None)
    assert call("svm", data, *GRID, "-o", "second", "--cache", "kept").code == 0
    assert without_times("first/steps.csv") == without_times("second/steps.csv")
    assert without_times("plain/steps.csv", "passes") == without_times("first/steps.csv", "passes")
    result = call("svm", "-", *GRID, "--cache", "kept")
    assert result.code == 2 and "standard input" in result.err


def test_memory_limit(call, data, shards, tmp_path):
    for where in (data, shards):
        result = call("svm", where, *GRID, "--max-memory", "1M")
        assert result.code == 1 and "--max-memory 1.0 MB" in result.err, result.err
        assert call("svm", where, *GRID, "--max-memory", "4G", "-o", f"r-{where.name}").code == 0
    result = call("svm", data, "--max-memory", "much")
    assert result.code == 2 and "500M or 8G" in result.err
    result = call("convert", data, "out", "--max-memory", "1M")
    assert result.code == 1 and "--block-mb" in result.err


def test_standard_on_sparse_shards(call, tmp_path):
    X = np.zeros((40, 20))
    X[np.arange(40), np.arange(40) % 20] = 1.0
    (tmp_path / "sparse").write_text(libsvm_text(X, np.where(np.arange(40) < 20, 1.0, -1.0)))
    assert call("convert", "sparse", "s", "--quiet").code == 0
    result = call("svm", "s", *GRID, "--scale", "standard")
    assert result.code == 2 and "--storage dense" in result.err
