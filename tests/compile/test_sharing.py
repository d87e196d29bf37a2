"""Processes that compile at once share the work, and none waits for ever for another."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from screenpath.catalogue.kernel_models import behind_kernel
from screenpath.catalogue.specs import SPECS
from screenpath.compile import sharing
from screenpath.data.safe.memory import MemoryLimit
from screenpath.engine.session import Session
from screenpath.kernels import compilation
from screenpath.kernels.compilation import kernel_modules
from tests.conftest import HANGS, ROOT
from tests.width import wide

MAKE = """
import sys
from screenpath.kernels import KERNELS, kernel
from screenpath.compile import sharing
sharing.PATIENCE = float(sys.argv[1])

@kernel
def one(x):
    return x + 1

@kernel
def two(x):
    return 2 * one(x)

@kernel
def three(x):
    return two(x) - one(x)

@kernel
def other(x):
    return x * x + two(x)

assert (three(2), other(3)) == (3, 17)
print(sum(sum(each.stats.cache_misses.values()) for each in KERNELS.values()))
"""
COUNT = 4
HOLD = """
import sys, time
from screenpath.compile import sharing
from screenpath.compile.cache import cache_folder

for name in sys.argv[1:]:
    assert sharing.take_turn(cache_folder(), name)
print("held", flush=True)
time.sleep(600)
"""

LONELY = """
import time
from screenpath.compile import sharing
from screenpath.kernels import compilation
from screenpath.kernels.compilation import kernel_modules

compilation.helpers = lambda: 1
compilation.start_helpers(tuple(kernel_modules()))  # to be compiled for a minute
print(compilation._helpers[0].pid, flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended may wait for somebody to ask how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "XZ"
    except FileNotFoundError:
        return False


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a script with an empty store for compiled kernels."""

    def go(script, *words):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
        environment.pop("NUMBA_DISABLE_JIT", None)
        return subprocess.Popen(
            [sys.executable, "-c", script, *map(str, words)], env=environment, stdout=subprocess.PIPE, text=True
        )

    return go


def compiled(process) -> int:
    out, _ = process.communicate(timeout=HANGS)
    assert process.returncode == 0
    return int(out)


def test_each_kernel_is_compiled_by_one_process_and_nobody_waits_for_ever(start, tmp_path):
    counts = [compiled(one) for one in [start(MAKE, "inf") for _ in range(wide(2, 3))]]
    entries = sorted(tmp_path.rglob("*.kernel"))
    assert sum(counts) == len(entries) == COUNT
    for entry in entries:
        entry.unlink()
    holder = start(HOLD, *(entry.name for entry in entries))
    assert holder.stdout.readline() == "held\n"
    try:
        holder.send_signal(signal.SIGSTOP)  # stands still with every lock
        assert compiled(start(MAKE, 0.05)) == COUNT
    finally:
        holder.kill()
        holder.communicate()
    for entry in tmp_path.rglob("*.kernel"):
        entry.unlink()
    assert compiled(start(MAKE, "inf")) == COUNT  # who was killed holds nothing


@pytest.mark.wide_only
def test_where_nothing_can_be_locked_everybody_compiles(start, tmp_path):
    assert compiled(start(MAKE, "inf")) == COUNT
    for entry in tmp_path.rglob("*.kernel"):
        entry.unlink()
    (locks,) = tmp_path.rglob(sharing.LOCKS)
    locks.unlink()
    locks.mkdir()  # a file that cannot be opened: everybody compiles
    assert compiled(start(MAKE, "inf")) == COUNT
    for entry in tmp_path.rglob("*.kernel"):
        entry.unlink()
    counts = [compiled(one) for one in [start(MAKE, "inf") for _ in range(2)]]
    assert COUNT <= sum(counts) <= 2 * COUNT  # of what one has stored, the other need not compile what it comes to


def test_helpers_compile_and_end_with_the_process(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compilation, "helpers", lambda: 2)
    compilation.start_helpers(("dome", "share"))
    started = list(compilation._helpers)
    assert len(started) == 2
    assert [one.wait(timeout=HANGS) for one in started] == [0, 0]
    assert {path.name.partition(".")[0] for path in tmp_path.rglob("*.kernel")} >= {"dome", "share"}
    compilation.stop_helpers()
    compilation.start_helpers(("newton",))
    (running,) = compilation._helpers
    compilation.stop_helpers()
    assert running.returncode is not None and not compilation._helpers


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no figures of Linux here")
def test_helpers_end_with_a_process_that_is_killed(start):
    process = start(LONELY)
    helper = int(process.stdout.readline())
    assert alive(helper)
    process.kill()
    process.communicate()
    until = time.monotonic() + HANGS
    while alive(helper) and time.monotonic() < until:
        time.sleep(0.02)
    assert not alive(helper)


def test_one_processor_has_no_helper(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert compilation.helpers() == 0
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert compilation.helpers() == compilation.MOST


def test_a_run_has_helpers_unless_memory_is_limited(monkeypatch):
    started = []
    monkeypatch.setattr(compilation, "start_helpers", started.append)
    for spec in (*SPECS.values(), behind_kernel(SPECS["svm"])):
        assert set(spec.kernel_modules) <= set(kernel_modules()) and spec.kernel_modules
        Session.compiling_begins(SimpleNamespace(spec=spec))
        assert started.pop() == spec.kernel_modules
    with MemoryLimit(1 << 40).in_force():
        Session.compiling_begins(SimpleNamespace(spec=behind_kernel(SPECS["svm"])))
    assert not started
