"""Every example runs as its first lines say."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, clouds, libsvm_text, read_csv
from tests.conftest import HANGS

EXAMPLES = ROOT / "examples"


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a program with `screenpath` on its PATH, as after an installation."""
    command = tmp_path / "bin" / "screenpath"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m screenpath "$@"\n')
    command.chmod(0o755)

    def function(*arguments, **variables):
        environment = {
            **os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
            **variables,
        }  # fmt: skip
        return subprocess.run(
            [str(a) for a in arguments], capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=HANGS
        )

    return function


@pytest.fixture
def files(tmp_path):
    """Three data files."""
    found = []
    for k in range(3):
        path = tmp_path / f"data{k}.libsvm"
        path.write_text(libsvm_text(*clouds(seed=k)))
        found.append(path)
    return found


def test_path(run, files, tmp_path):
    done = run("bash", EXAMPLES / "path.sh", files[0], tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("%") == 20
    assert "C = 0.1: " in done.stdout and "C = 1.0: " in done.stdout
    assert len(read_csv(tmp_path / "out" / "steps.csv")) == 20


def test_slurm_array(run, files, tmp_path):
    script = EXAMPLES / "slurm_array.sh"
    for task in ("0", "1", "2", "1"):  # a task that is submitted again finds its work done
        done = run("bash", script, tmp_path / "results", *files, SLURM_ARRAY_TASK_ID=task, SLURM_CPUS_PER_TASK="1")
        assert done.returncode == 0, done.stderr
    assert "complete already" in done.stderr
    for k in range(3):
        assert len(read_csv(tmp_path / "results" / f"data{k}" / "steps.csv")) == 100
    done = run("bash", script, tmp_path / "results", *files, SLURM_ARRAY_TASK_ID="3")
    assert done.returncode == 2 and "only 3 files" in done.stderr


def test_slurm_array_has_a_folder_for_each_name(run, files, tmp_path):
    """Endings of formats and compression are left out of it, other dots are not."""
    text, names = files[0].read_bytes(), {"a.x.libsvm": "a.x", "a.y.libsvm.gz": "a.y"}
    for k, (name, folder) in enumerate(names.items()):
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        given = [tmp_path / one for one in names]
        done = run("bash", EXAMPLES / "slurm_array.sh", tmp_path / "out", *given, SLURM_ARRAY_TASK_ID=str(k))
        assert done.returncode == 0 and (tmp_path / "out" / folder / "steps.csv").is_file(), done.stderr


def test_slurm_parts(run, files, tmp_path):
    for task, parts in (("1", {}), ("2", {}), ("2", {"SLURM_ARRAY_TASK_COUNT": "1", "PARTS": "2"})):
        done = run(
            "bash", EXAMPLES / "slurm_parts.sh", files[0], tmp_path / "parts", "cv", "svm", "--grid", 4, "--folds", 3,
            SLURM_ARRAY_TASK_ID=task, **{"SLURM_ARRAY_TASK_COUNT": "2", **parts},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert "complete already" in done.stderr  # a task that is submitted again alone
    done = run("screenpath", "merge", tmp_path / "parts" / "part-1", tmp_path / "parts" / "part-2", "-o", "whole")
    assert done.returncode == 0 and len(read_csv(tmp_path / "whole" / "folds.csv")) == 12, done.stderr


@pytest.mark.wide_only
def test_slurm_cluster(run, files, tmp_path):
    """Scheduler, workers and path as the script starts them; `srun` only starts its command here."""
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    for name, text in (
        ("srun", 'shift\nexec "$@"'), ("dask", f'exec "{sys.executable}" -m dask "$@"'),
    ):  # fmt: skip
        command = tmp_path / "bin" / name
        command.write_text(f"#!/bin/sh\n{text}\n")
        command.chmod(0o755)
    assert run("screenpath", "convert", files[0], "shards").returncode == 0
    script = EXAMPLES / "slurm_cluster.sh"
    done = run("bash", script, "shards", "out/path", SLURM_CPUS_PER_TASK="2")
    assert done.returncode == 0, done.stderr
    rows = read_csv(tmp_path / "out/path/steps.csv")
    assert len(rows) == 50 and all(int(row["bytes_moved"]) > 0 for row in rows)
    assert not (tmp_path / "out/path.scheduler.json").exists()


def test_choose_from_path(run, files):
    done = run(sys.executable, EXAMPLES / "choose_from_path.py", files[0])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("best C: ") and "held-out accuracy: " in done.stdout


def test_choose_c_on_the_digits(run, tmp_path):
    pytest.importorskip("liblinear.liblinearutil", reason="needs liblinear-official (extra: test)")
    done = run("bash", EXAMPLES / "choose_c.sh", PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr
    assert "LIBLINEAR decides 397 of 397 rows alike" in done.stdout
    assert "accuracy: 0.9" in done.stderr
    assert len(read_csv(tmp_path / "runs" / "choose_c" / "cv.csv")) == 20


@pytest.mark.wide_only
def test_choose_c_on_two_labels(run, files, tmp_path):
    options = ("--grid", "5", "--certify", "--out", tmp_path / "other")
    plain = run("bash", EXAMPLES / "choose_c.sh", *files[:2], tmp_path / "out", "--grid", "5", PYTHON=sys.executable)
    assert plain.returncode == 0, plain.stderr
    refused = run("bash", EXAMPLES / "choose_c.sh", *files[:2], tmp_path / "out", *options)
    assert refused.returncode == 2 and "--certify bounds the error of two classes" in refused.stderr


def test_no_example_is_forgotten():
    text = Path(__file__).read_text()
    names = [path.name for path in EXAMPLES.iterdir() if path.suffix in (".sh", ".py")]
    assert names and all(name in text for name in names)
