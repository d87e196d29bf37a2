"""The command line on a cluster."""

import json
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("distributed", reason="dask.distributed is not installed")

from tests.cli.conftest import ROOT, clouds, libsvm_text, read_csv
from tests.conftest import HANGS

GRID = ("--grid", "8", "--cmax", "1", "--bias", "1", "--quiet")


def rows_without(path, *names):
    rows = read_csv(path)
    return [{k: v for k, v in row.items() if not k.endswith("_s") and k not in names} for row in rows]


@pytest.fixture(scope="module")
def scheduler():
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"],
        stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    workers = []
    try:
        for line in scheduler.stderr:
            found = re.search(r"Scheduler at:\s+(tcp://\S+)", line)
            if found:
                break
        address = found.group(1)
        for _ in range(2):
            words = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-dashboard", "--no-nanny"]
            workers.append(subprocess.Popen(words, stderr=subprocess.DEVNULL, env=environment))
        yield address
    finally:
        for process in (*workers, scheduler):
            process.terminate()
            process.wait(timeout=HANGS)
        scheduler.stderr.close()


def test_passes_over_shards(call, data, shards, scheduler):
    """A path in memory, on shards and on two workers: the same bytes."""
    assert call("svm", data, *GRID, "-o", "memory").code == 0
    assert call("svm", shards, *GRID, "-o", "shards-run").code == 0
    folder = data.parent / "cluster-run"
    done = call("svm", shards, *GRID, "-o", folder, "--scheduler", scheduler)
    assert done.code == 0, done.err
    sharded = rows_without("shards-run/steps.csv")  # survivors are copied from shards, and read in place in memory
    assert rows_without("shards-run/steps.csv", "passes", "bytes_read") == rows_without("memory/steps.csv", "passes")
    assert rows_without(folder / "steps.csv", "bytes_moved") == sharded
    assert (folder / "coefficients.csv").read_bytes() == (data.parent / "memory/coefficients.csv").read_bytes()
    assert json.loads((folder / "run.json").read_text())["columns"][-1] == "bytes_moved"
    # each step sends a vector to every shard and gets the products of all rows
    assert all(int(row["bytes_moved"]) > 8 * 120 for row in read_csv(folder / "steps.csv"))


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_rows_are_left_unread_on_a_cluster_too(call, tmp_path, monkeypatch, scheduler, storage):
    """A path that copies the rows near their kinks, on shards and on two workers: the same bytes."""
    from screenpath.data.shards.convert import convert

    monkeypatch.setattr("screenpath.data.shards.convert.BLOCK", 1 << 16)
    X, y = clouds(n=2400)
    (tmp_path / "many").write_text(libsvm_text(X, y))
    folder = convert([tmp_path / "many"], tmp_path / "folder", block_mb=1e-3, storage=storage).path
    options = ("--grid", 12, "--scale", "maxabs", "--intercept", "free", "--quiet")
    for name, where in (("one", ()), ("two", ("--scheduler", scheduler))):
        done = call("svm", folder, *options, "-o", tmp_path / name, *where)
        assert done.code == 0, done.err
    assert rows_without("two/steps.csv", "bytes_moved") == rows_without("one/steps.csv")
    # Later steps send a few rows, not a number of each row.
    assert sum(int(row["bytes_moved"]) for row in read_csv("two/steps.csv")[4:]) < 8 * 2400 * 8


def test_a_free_intercept_on_shards_and_on_a_cluster(call, data, shards, scheduler):
    """A path in memory, on shards and on two workers: the same solutions, the latter two to the byte."""
    options = ("--grid", 4, "--cmax", 1, "--intercept", "free", "--scale", "maxabs", "--quiet")
    for storage in ("sparse", "dense"):
        for name, source in (("memory", data), ("shards-run", shards)):
            done = call("svm", source, *options, "--storage", storage, "-o", name, "--force")
            assert done.code == 0, done.err
        for one, other in zip(read_csv("memory/steps.csv"), read_csv("shards-run/steps.csv"), strict=True):
            assert one["status"] == other["status"] == "certified"
            assert float(one["primal"]) == pytest.approx(float(other["primal"]), rel=1e-9)
            assert float(one["intercept_low"]) == pytest.approx(float(other["intercept_low"]), rel=1e-6)
    folders = data.parent / "one", data.parent / "two"
    assert call("svm", shards, *options, "-o", folders[0]).code == 0
    done = call("svm", shards, *options, "-o", folders[1], "--scheduler", scheduler)
    assert done.code == 0, done.err
    found = [rows_without(folder / "steps.csv", "bytes_moved") for folder in folders]
    assert found[0] == found[1]
    assert (folders[0] / "coefficients.csv").read_bytes() == (folders[1] / "coefficients.csv").read_bytes()


@pytest.mark.parametrize(
    "command",
    [
        ("cv", "svm", "--grid", 4, "--certify-to", 0.1, "--certify-points", 4, "--folds", 3),
        pytest.param(("cv", "sparse-svm", "--betas", 2, "--alphas", 3, "--folds", 2), marks=pytest.mark.wide_only),
        ("sparse-svm", "--betas", 3, "--alphas", 4),
    ],
)
def test_folds_and_rows_of_a_grid(call, data, command, scheduler):
    """Folds, and rows of a grid of (alpha, beta), are tasks of two workers: the bytes of one process."""
    names = [*command[: 1 + (command[0] == "cv")], data, *command[1 + (command[0] == "cv") :], "--quiet"]
    assert call(*names, "-o", "here").code == 0
    folder = data.parent / "there"
    done = call(*names, "-o", folder, "--scheduler", scheduler)
    assert done.code == 0, done.err
    compared = 0
    for path in (data.parent / "here").iterdir():
        if path.name in ("steps.csv", "folds.csv"):
            assert rows_without(folder / path.name) == rows_without(path)
        elif path.suffix == ".csv":
            assert (folder / path.name).read_bytes() == path.read_bytes()
        compared += path.suffix == ".csv"
    assert compared >= 2
    assert not (folder / "parts.partial").exists()


def test_usage(call, data, shards):
    for arguments, message in (
        (("svm", data, "--scheduler", "tcp://a:1"), "screenpath convert DATA SHARDS"),
        (("l1svm", shards, "--scheduler", "tcp://a:1"), "svm, lad, quantile, svr and sparse-svm do"),
        (("sparse-svm", data, "--scheduler", "tcp://a:1", "--jobs", 2), "use one of the two"),
        (("cv", "lad", data, "--scheduler", "tcp://a:1", "--jobs", 2), "use one of the two"),
        (("svm", shards, "--kernel", "rbf", "--scheduler", "tcp://a:1"), "a kernel run cannot use a cluster"),
    ):
        result = call(*arguments)
        assert result.code == 2 and message in result.err, result.err


def test_without_dask(call, shards, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = call("svm", shards, "--scheduler", "tcp://a:1")
    assert result.code == 1 and "screenpath[cluster]" in result.err
