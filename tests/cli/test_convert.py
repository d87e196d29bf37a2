"""The commands on shard folders, the cache and the memory limit."""

import json
import shlex
import zlib

import numpy as np
import pytest

from tests import shard_folders
from tests.cli.conftest import libsvm_text, without_times
from tests.sparse_problems import SDCA

GRID = ("--grid", "8", "--cmax", "1", "--quiet")


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


def test_the_name_that_is_missing(call, data):
    """With one name the parser has OUT, and lacks DATA: for the user it is the other way round."""
    data.rename("my data.v2.libsvm")
    done = call("convert", "my data.v2.libsvm")
    assert done.code == 2 and "there is one name, and convert needs two" in done.err
    typed = done.err.strip().rpartition("name the folder last: screenpath ")[2]
    assert typed == "convert 'my data.v2.libsvm' 'my data.shards'" and call(*shlex.split(typed)).code == 0
    assert "convert - data.shards" in call("convert", "-").err and call("convert").code == 2


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
    monkeypatch.setattr("screenpath.inputs.load.read_file", None)
    monkeypatch.setattr("screenpath.data.shards.convert.convert", None)
    assert call("svm", data, *GRID, "-o", "second", "--cache", "kept").code == 0
    assert without_times("first/steps.csv") == without_times("second/steps.csv")
    assert without_times("plain/steps.csv", "passes") == without_times("first/steps.csv", "passes")
    result = call("svm", "-", *GRID, "--cache", "kept")
    assert result.code == 2 and "standard input" in result.err


def test_resume_refuses_changed_shards(call, data, shards):
    """The identity of a run holds the content of its shards, whatever hashes somebody has made fit."""
    assert call("svm", shards, *GRID, "-o", "r").code == 0
    assert call("svm", shards, *GRID, "-o", "r", "--resume").code == 0
    before = shard_folders.read(shards)

    def change(array):
        array[3] = 3.0 - array[3]  # the other label

    shard_folders.edit(shards, 1, "targets", change)
    result = call("svm", shards, *GRID, "-o", "r", "--resume")
    assert result.code == 1 and "000001-targets.npy is missing or damaged" in result.err
    shard_folders.seal(shards)
    result = call("svm", shards, *GRID, "-o", "r", "--resume")
    assert result.code == 1 and "cannot resume r: the data have changed since\n" in result.err
    meta = shard_folders.read(shards)
    sha256 = [entry["sha256"] for entry in before["shards"]]
    for entry, digest in zip(meta["shards"], sha256, strict=True):
        entry["sha256"] = digest
    shard_folders.write(shards, {**meta, "sha256": before["sha256"]})
    result = call("svm", shards, *GRID, "-o", "r", "--resume")
    assert result.code == 1 and "000001-*.npy is missing or damaged" in result.err and "SHA-256" in result.err


def test_memory_limit(call, data, shards, tmp_path):
    for where in (data, shards):
        result = call("svm", where, *GRID, "--max-memory", "1M")
        assert result.code == 1 and "--max-memory '1.0 MB'" in result.err, result.err
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


# -- by columns ------------------------------------------------------------------------------------------------------


@pytest.fixture
def by_columns(call, data, monkeypatch):
    monkeypatch.setattr("screenpath.data.shards.convert.BLOCK", 1 << 11)
    from screenpath.data.shards.convert import convert

    return convert([data], data.parent / "columns", block_mb=1e-3, by="columns").path


def same_run(one, other):
    assert without_times(f"{one}/steps.csv") == without_times(f"{other}/steps.csv")
    with open(f"{one}/coefficients.csv") as first, open(f"{other}/coefficients.csv") as second:
        assert first.read() == second.read()


NONE = ("--intercept", "none")
GRIDS = {"l1svm": ("--grid", 8, "--quiet"), "sparse-svm": ("--betas", 2, "--alphas", 4, "--quiet")}


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("l1svm", ()), ("l1svm", ("--scale", "standard", "--rule", "none")),
        ("l1svm", ("--scale", "maxabs", "--threads", 2, "--class-weight", "balanced")),
        ("l1svm", ("--storage", "sparse", "--solver", "cd", "--log")),
        ("l1svm", ("--penalty-weights", "penalties", "--one-vs-rest")),
        ("sparse-svm", ("--intercept", "none")), ("sparse-svm", ("--scale", "standard", "--rule", "sifs")),
        ("sparse-svm", ("--smoothing", 0, "--storage", "sparse", "--bias", 0.5)),
        ("sparse-svm", ("--loss", "squared-hinge", "--intercept", "penalised", "--scale", "maxabs")),
        ("sparse-svm", ("--scale", "maxabs", "--class-weight", "balanced", "--tol", "1e-11", "--audit", *NONE)),
    ],
)  # fmt: skip
def test_paths_on_columns_have_the_bytes_of_those_in_memory(call, data, by_columns, command, options):
    (data.parent / "penalties").write_text("1\n2\n0.5\n1\n3\n")
    more = (*GRIDS[command], *options)
    assert call(command, data, *more, "-o", "memory").code == 0
    result = call(command, by_columns, *more, "--test", data, "-o", "streamed")
    assert result.code == 0, result.err
    tested = without_times("streamed/steps.csv", "test_accuracy", "confusion")
    assert tested == without_times("memory/steps.csv", "test_accuracy")
    with open("streamed/run.json") as file:
        record = json.load(file)
    bias = 0.5 if 0.5 in options else 0.0 if set(NONE) <= set(options) else 1.0
    assert record["data"]["storage"] == "shards" and record["preparation"]["bias"] == bias
    with open("memory/coefficients.csv") as one, open("streamed/coefficients.csv") as other:
        assert one.read() == other.read()


def test_what_else_takes_columns(call, data, by_columns):
    """Models by rows, cross-validation, predict and inspect read the folder as they read the text."""
    assert call("svm", data, *GRID, "-o", "a").code == 0
    assert call("svm", by_columns, *GRID, "-o", "b").code == 0
    same_run("a", "b")
    for where, out in ((data, "c"), (by_columns, "d")):
        assert call("cv", "l1svm", where, "--grid", 3, "--folds", 3, "--quiet", "-o", out).code == 0
    same_run("c", "d")
    one, other = (call("predict", "a", where, "--step", 3, "--quiet") for where in (data, by_columns))
    assert one.code == other.code == 0 and one.out == other.out != ""
    one, other = (call("inspect", where).out.splitlines()[1:] for where in (data, by_columns))
    assert one == other
    result = call("svm", by_columns, "--scheduler", "tcp://a:1", *GRID)
    assert result.code == 2 and "convert again with --by rows" in result.err
    for option, said in (
        (("--scale", "l2"), "--by rows"), (("--dtype", "float32"), "leave it out"), (("--n-features", 9), "5 features"),
        (("--certificate",), "name the file"), (("--scheduler", "tcp://a:1"), "cannot use a cluster"),
    ):  # fmt: skip
        result = call("l1svm", by_columns, *option)
        assert result.code == 2 and said in result.err


def test_options_of_the_sparse_svm_that_need_the_data_in_memory(call, data, by_columns):
    """They go on as they do with the text, and say why."""
    for option, name in (
        (("--solver", SDCA, *NONE), f"--solver {SDCA}"), (("--first", "samples"), "--first samples"),
    ):  # fmt: skip
        result = call("sparse-svm", by_columns, *GRIDS["sparse-svm"][:-1], *option, "--force", "-o", "a")
        assert result.code == 0 and f"columns: {name} needs the data in memory" in result.err
        assert call("sparse-svm", data, *GRIDS["sparse-svm"], *option, "--force", "-o", "b").code == 0
        same_run("a", "b")
    from screenpath.catalogue.specs import SPARSE_SVM

    assert SPARSE_SVM.in_memory({"jobs": 2, "first": "features"}) == "jobs"
    result = call("sparse-svm", by_columns, "--dtype", "float32")
    assert result.code == 2 and "leave it out" in result.err


@pytest.mark.parametrize("command", GRIDS)
def test_a_path_on_columns_is_stopped_and_resumed(call, data, by_columns, monkeypatch, command):
    from screenpath.rows.column_shards import HeldColumns
    from screenpath.walk import loop

    grid = GRIDS[command]
    assert call(command, by_columns, *grid, "-o", "whole").code == 0
    real, calls = loop.time.monotonic, []

    def late(model, *arguments, plain=loop.solve_point, **more):
        data = model.rows if command == "l1svm" else model.base.views
        calls.append(isinstance(data, HeldColumns))  # toys are solved before
        if sum(calls) == 4:
            monkeypatch.setattr(loop.time, "monotonic", lambda: real() + 1e6)
        return plain(model, *arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "solve_point", late)
        assert call(command, by_columns, *grid, "--time-limit", 1000, "-o", "cut").code == 3
    monkeypatch.setattr(loop.time, "monotonic", real)
    with open("cut/run.json") as file:
        assert 0 < json.load(file)["totals"]["steps_done"] < 8
    assert call(command, by_columns, *grid, "--resume", "-o", "cut").code == 0
    same_run("cut", "whole")


@pytest.mark.parametrize("name", ["000001-dense.npy", "000002-targets.npy", "labels.npy", "meta.json"])
def test_damaged_columns_are_noticed(call, by_columns, name):
    shard_folders.flip(by_columns / name, -4)
    result = call("l1svm", by_columns)
    assert result.code == 1 and name in result.err and "damaged" in result.err
    assert "Traceback" not in result.err
    result = call("inspect", by_columns)
    assert result.code == 1 and name in result.out + result.err
    (by_columns / name).unlink()
    result = call("l1svm", by_columns)
    assert result.code == 1 and "Traceback" not in result.err


def test_convert_by_columns(call, data, tmp_path):
    """From text and from rows the same folder comes out; what cannot be is refused by name."""
    result = call("convert", data, "columns", "--by", "columns")
    assert result.code == 0 and "columns: 120 rows, 5 features" in result.err
    assert not (tmp_path / "columns.by-rows").exists()
    again = call("convert", data, "columns", "--by", "columns")
    assert again.code == 1 and "use --force" in again.err
    assert call("convert", data, "columns", "--by", "columns", "--resume").code == 0
    result = call("convert", data, "columns", "--by", "columns", "--resume", "--zero-based")
    assert result.code == 1 and "zero_based was" in result.err
    assert call("convert", data, "rows").code == 0
    assert call("convert", "rows", "turned", "--by", "columns").code == 0
    from screenpath.data.shards.shards import ShardFolder

    one, other = ShardFolder("columns", by="columns"), ShardFolder("turned", by="columns")
    assert one.sha256 == other.sha256
    for option in (("--n-features", 9), ("--dtype", "float32"), ("--zero-based",), ("--target", "y")):
        result = call("convert", "rows", "twice", "--by", "columns", *option)
        assert result.code == 2 and option[0] in result.err
    result = call("convert", "rows", "twice")
    assert result.code == 2 and "--by columns" in result.err
    result = call("convert", "columns", "twice", "--by", "columns")
    assert result.code == 1 and "was converted by columns" in result.err


def test_convert_by_columns_goes_on(call, data, monkeypatch, tmp_path):
    from screenpath.data.shards import blocks
    from screenpath.data.shards.convert import convert
    from screenpath.data.shards.write_shards import ShardWriter

    monkeypatch.setattr("screenpath.data.shards.convert.BLOCK", 1 << 11)
    monkeypatch.setattr(blocks, "AT_ONCE", 1 << 11)  # a pass over the rows for each block
    whole = convert([data], tmp_path / "whole", block_mb=1e-3, by="columns")
    written, plain = [], ShardWriter.write

    def write(self, k, *arguments):
        if self.path.name == "cut":
            written.append(k)
            if len(written) == 3:
                raise KeyboardInterrupt
        return plain(self, k, *arguments)

    monkeypatch.setattr(ShardWriter, "write", write)
    with pytest.raises(KeyboardInterrupt):
        convert([data], tmp_path / "cut", block_mb=1e-3, by="columns")
    found = convert([data], tmp_path / "cut", block_mb=1e-3, by="columns", resume=True)
    assert found.sha256 == whole.sha256 and written == [0, 1, 2, 2, *range(3, whole.count)]
    assert sorted(path.name for path in tmp_path.iterdir() if "cut" in path.name) == ["cut"]


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("targets", shard_folders.at(0, 9.0), "not numbered from 0 up"),
        ("targets", shard_folders.at(0, 1.5), "not numbered from 0 up"),
        ("targets", shard_folders.at(1, -1.0), "not numbered from 0 up"),
        ("dense", shard_folders.at(3, np.nan), "nan or infinity"),
    ],
)
def test_made_up_columns_do_not_crash(call, by_columns, name, change, words):
    shard_folders.edit(by_columns, 1, name, change)
    shard_folders.seal(by_columns)
    result = call("l1svm", by_columns)
    assert result.code == 1 and words in result.err and "Traceback" not in result.err


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("width", 3, "not numbered from 0 up"), ("width", 2**60, "not numbered from 0 up"),
        ("width", None, "'width' is missing"), ("labels_file", {}, "'labels_file' is missing"),
        ("by", "cells", "'by' is missing"), ("d", 7, "a shard has more than 7 columns"),
    ],
)  # fmt: skip
def test_fields_of_meta_json_by_columns(call, by_columns, name, value, words):
    shard_folders.write(by_columns, {**shard_folders.read(by_columns), name: value})
    for command in ("l1svm", "svm"):
        result = call(command, by_columns)
        assert result.code == 1 and words in result.err and "Traceback" not in result.err
    result = call("inspect", by_columns)
    assert result.code == 1 and words in result.out + result.err


def test_labels_that_are_no_numbers(call, by_columns):
    labels = np.load(by_columns / "labels.npy")
    labels[3] = np.inf
    np.save(by_columns / "labels.npy", labels)
    meta = shard_folders.read(by_columns)
    crc = zlib.crc32((by_columns / "labels.npy").read_bytes())
    shard_folders.write(by_columns, {**meta, "labels_file": {**meta["labels_file"], "crc32": crc}})
    result = call("l1svm", by_columns)
    assert result.code == 1 and "labels.npy" in result.err and "nan or infinity" in result.err
    assert "nan or infinity" in call("inspect", by_columns).out


def test_resume_refuses_changed_columns(call, by_columns):
    assert call("l1svm", by_columns, "--grid", 4, "--quiet", "--time-limit", 1e-9, "-o", "cut").code == 3
    labels = np.load(by_columns / "labels.npy")
    np.save(by_columns / "labels.npy", labels[::-1].copy())
    meta = shard_folders.read(by_columns)
    crc = zlib.crc32((by_columns / "labels.npy").read_bytes())
    shard_folders.write(by_columns, {**meta, "labels_file": {**meta["labels_file"], "crc32": crc}})
    result = call("l1svm", by_columns, "--grid", 4, "--resume", "-o", "cut")
    assert result.code == 1 and "SHA-256" in result.err
