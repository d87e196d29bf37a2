"""Errors speak Python in Python and flags in the shell."""

import ast
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from screenpath import kernel_svm_path, l1_svm_path, sparse_svm_path, svm_path
from screenpath.data.shards.shards import AGAIN
from screenpath.errors import ScreenpathError, flags, waits
from screenpath.store.outputs import OTHER
from tests.conftest import two_classes

PACKAGE = Path(__file__).resolve().parents[1] / "screenpath"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use `grid=N` with N >= 1", "use --grid N with N >= 1"), ("swap `cmin` and `cmax`", "swap --cmin and --cmax"),
        ("`beta_min_ratio` must be above 0", "--beta-min-ratio must be above 0"),
        ("use `max_memory=2G`, or `dtype=float32`", "use --max-memory 2G, or --dtype float32"),
        ("a file `A B` and an empty ``", "a file `A B` and an empty ``"),
    ],
)  # fmt: skip
def test_flags(text, expected):
    assert flags(text) == expected


def test_python_calls_hear_no_flags():
    X, y = two_classes(n=20, d=3)
    calls = (
        lambda: svm_path(X, y, grid=0), lambda: svm_path(X, y, cmin=2.0, cmax=1.0), lambda: svm_path(X, y, threads=0),
        lambda: svm_path(X, np.arange(20.0)), lambda: l1_svm_path(X, y, grid=0),
        lambda: l1_svm_path(X, y, log=True, lambda_min_ratio=2.0), lambda: sparse_svm_path(X, y, smoothing=2.0),
        lambda: sparse_svm_path(X, y, jobs=0), lambda: sparse_svm_path(X, y, beta_min_ratio=0.0),
        lambda: sparse_svm_path(X, y, first="rows"),
        lambda: kernel_svm_path(np.tile(X, (400, 1)), np.tile(y, 400), max_memory=1000),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(ScreenpathError) as caught:
            call()
        assert "--" not in str(caught.value), caught.value


def test_errors_behind_the_shell_have_no_flags():
    """Python functions raise them, too: path.plot().save() said "choose another file with -o"."""
    for path in sorted(PACKAGE.rglob("*.py")):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        raised = [node for node in calls if getattr(node.func, "id", "").endswith("Error")]
        texts = [one.value for node in raised for one in ast.walk(node) if isinstance(one, ast.Constant)]
        for text in texts if "cli" not in path.parts else ():
            assert not re.search(r"(?<![`\w-])--?[a-z]", str(text)), (path, text)
    for text in (OTHER, AGAIN):
        assert " -" not in text


@pytest.fixture
def default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_waits_for_the_end(default_handler):
    done = []

    @waits
    def build(error=None):
        os.kill(os.getpid(), signal.SIGINT)
        done.append(sum(range(1000)))  # the handler has run by now
        if error is not None:
            raise error
        return done

    with pytest.raises(KeyboardInterrupt):
        build()
    assert done == [499500]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt) as found:
        build(ValueError("what it failed of is told too"))
    assert isinstance(found.value.__context__, ValueError)

    def own(number, frame):
        raise OSError(str(done))

    signal.signal(signal.SIGINT, own)
    with pytest.raises(OSError, match=r"\[499500, 499500\]"):
        build()  # a program's own handler runs where it always does
    assert signal.getsignal(signal.SIGINT) is own


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tol", 0), ("tol", "a"), ("tol", float("nan")), ("max_epochs", 0), ("max_epochs", 1.5), ("max_epochs", "3"),
        ("time_limit", float("nan")), ("time_limit", 0), ("time_limit", "soon"), ("threads", 0), ("threads", 1.5),
        ("threads", "2"), ("seed", -1), ("seed", "a"),
    ],
)  # fmt: skip
def test_what_is_no_such_number_is_named(name, value):
    X, y = two_classes(n=20, d=3)
    with pytest.raises(ScreenpathError, match=f"`{name}` must .*{re.escape(repr(value))}"):
        svm_path(X, y, **{name: value})


def test_a_signal_within_a_line_has_its_own():
    """Python's stream lets no handler write within a write; that of the first signal has something to say."""
    script = """
import io, signal, sys
from screenpath import errors

class Slow(io.RawIOBase):  # a signal comes within each write
    def writable(self):
        return True

    def write(self, data):
        signal.raise_signal(signal.SIGTERM) if b"compiling" in bytes(data) else None
        return len(data)

signal.signal(signal.SIGTERM, lambda *_: errors.tell("stopping"))
sys.stderr = io.TextIOWrapper(io.BufferedWriter(Slow()))
errors.tell("compiling")
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "stopping\n")
