"""Small data files, and the command line run in this process or in a real one."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import HANGS
from tests.schemas import watched
from tests.width import WIDE

ROOT = Path(__file__).resolve().parents[2]
TIMES = ("screen_s", "solve_s", "certify_s", "init_s")


@contextlib.contextmanager
def out_of_time_at(monkeypatch, number: int):
    """Let the time of runs be up once they have a step of this number."""
    from screenpath.engine import session
    from screenpath.report.console import Console

    real = session.time.monotonic
    with monkeypatch.context() as patch:

        def advance(self, step):
            if step.step == number:
                patch.setattr(session.time, "monotonic", lambda: real() + 1e6)

        patch.setattr(Console, "advance", advance)
        yield


def libsvm_text(X, y) -> str:
    lines = []
    for row, label in zip(X, y, strict=True):
        cells = [f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()) if v != 0.0]
        lines.append(" ".join([f"{label:g}", *cells]))
    return "\n".join(lines) + "\n"


def clouds(n=120, d=5, seed=0, labels=(1.0, 2.0)):
    """Return two overlapping Gaussian clouds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.arange(1, d + 1)
    y = np.where(np.arange(n) % 2 == 0, labels[0], labels[1])
    X[y == labels[1]] += 1.0
    return X, y


@pytest.fixture(autouse=True)
def bare_pages(request):
    """Pages have no pictures but where these are looked at: drawing takes longer than all else of most tests."""
    if request.path.name == "test_plot.py":
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("screenpath.report.page._figure", lambda run, kind: "")
        yield


@pytest.fixture(autouse=WIDE)
def obeying_schemas(monkeypatch):
    """Every run folder that a command finishes in this process obeys the schemas; in a narrow run test_schemas.py sees.
    """
    watched(monkeypatch)


@pytest.fixture
def data(tmp_path):
    """Path of a data file with the labels 1 and 2."""
    path = tmp_path / "clouds.libsvm"
    path.write_text(libsvm_text(*clouds()))
    return path


@pytest.fixture
def shards(data, monkeypatch):
    """Path of a folder of small shards of the same data."""
    from screenpath.data.shards import convert

    monkeypatch.setattr(convert, "BLOCK", 1 << 11)
    monkeypatch.setattr(convert, "BLOCK_MB", 1e-3)
    return convert.convert([data], data.parent / "shards", block_mb=1e-3).path


@dataclass
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def call(capfd, monkeypatch, tmp_path):
    """Return a function that runs the command line in this process, in a folder of its own."""
    from screenpath.cli.app import run

    monkeypatch.chdir(tmp_path)

    def function(*arguments):
        capfd.readouterr()
        code = run([str(a) for a in arguments])
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return function


def unmeasured() -> dict:
    """Return the environment for a process that is signalled at any moment: without a measurement of coverage.

    Its tracer takes a lock in Python code. An exception that a handler raises there leaves it taken, and the process
    waits for it for ever.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


def in_process(script: str, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", script, *(str(a) for a in arguments)]
    pipes = {"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(command, text=True, timeout=HANGS, **{**pipes, **options})


def screenpath(*arguments, **options):
    return in_process("from screenpath.cli import main; main()", *arguments, **options)


def read_csv(path) -> list[dict]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def without_times(path, *names) -> list[dict]:
    """Return a step table without its seconds and the named columns, cell by cell as text.

    Bytes read from shards are left out, too: data in memory have none, and a resumed run reads some again.
    """
    path = Path(path)
    rows = json.loads(path.read_text())["steps"] if path.suffix == ".json" else read_csv(path)
    return [{name: value for name, value in row.items() if name not in (*TIMES, "bytes_read", *names)} for row in rows]


@pytest.fixture
def three(tmp_path):
    """A file of three labels, the largest of which appears first."""
    rng = np.random.default_rng(0)
    y = np.array([7.0, 2.0, 5.0])[np.arange(90) % 3]
    X = rng.normal(size=(90, 3)) + 0.8 * (y == 7.0)[:, None] - 0.5 * (y == 2.0)[:, None] * [1.0, 0.0, -1.0]
    (tmp_path / "three").write_text(libsvm_text(X, y))
    return "three"
