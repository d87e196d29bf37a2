"""Large kernels are linked, not compiled again; a stored caller is used with what it was compiled against alone."""

import os
import subprocess
import sys

import pytest
from numba import config

from screenpath.compile import cache
from tests.compile.test_cache import ROOT
from tests.conftest import HANGS

# Two callers of one kernel, one of them through a small one; prints results, the kernels compiled, and symbols.
SCRIPT = """
import sys
from screenpath.kernels import KERNELS, kernel
from screenpath.compile import apart
apart.LARGE = int(sys.argv[1])
if "shifted" in sys.argv:  # the process numbers its functions otherwise
    @kernel
    def first(x):
        return x + 1

    @kernel
    def second(x):
        return x + 2

    assert first(second(1.0)) == 4.0

@kernel
def _inner(x, power):
    total = 0.0
    for k in range(power):
        total += x / (k + 1.0)
    return total

@kernel(forceinline=True)
def _between(x):
    return 2.0 * _inner(x, 3)

@kernel
def direct(x):
    return _inner(x, 5)

@kernel
def outer(x):
    return _between(x) + _inner(x, 2)

print(direct(1.0), outer(1.0))
print(*sorted(name for name, one in KERNELS.items() if sum(one.stats.cache_misses.values())))
inner = next(one for name, one in KERNELS.items() if name.endswith("_inner"))
print(*(one.fndesc.mangled_name for one in inner.overloads.values()))
"""
RESULTS = [str(sum(1.0 / k for k in range(1, 6))), str(2.0 * (1.0 + 0.5 + 1.0 / 3.0) + 1.5)]

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="the jit is disabled")


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the script in a new process, and the folder that its kernels are kept in."""
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run(large=0, *arguments):
        command = [sys.executable, str(tmp_path / "script.py"), str(large), *arguments]
        done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=HANGS)
        assert done.returncode == 0, done.stderr
        results, compiled, symbol = (line.split() for line in done.stdout.splitlines())
        assert results == RESULTS
        return {name.rpartition(".")[2] for name in compiled}, symbol

    run.folder = tmp_path / "cache" / "screenpath" / cache.cache_key()
    return run


def entry(run, name):
    """Return the file of a kernel, and what it holds."""
    (path,) = run.folder.glob(f"*{name}-*{cache.SUFFIX}")
    return path, cache.read_entry(path)


def test_callers_name_what_they_need_and_are_compiled_again_with_it(run):
    compiled, symbol = run()
    assert compiled == {"_inner", "_between", "direct", "outer"}
    assert {name for _, name, _ in entry(run, "direct")[1][2]} == {"__main__._inner"}
    # `_between` is a part of its caller, which calls `_inner` for it.
    assert {name for _, name, _ in entry(run, "outer")[1][2]} == {"__main__._inner"}
    entry(run, "_inner")[0].unlink()
    compiled, other = run(0, "shifted")
    assert other != symbol
    assert {"_inner", "direct", "outer"} <= compiled
    assert run()[0] == set()  # what is stored now fits together


def test_what_is_small_is_a_part_of_its_callers(run):
    run(10_000)
    assert [entry(run, name)[1][2] for name in ("direct", "outer", "_between")] == [[], [], []]
    assert run(10_000)[0] == set()


@pytest.mark.wide_only
def test_damage_to_what_is_needed(run):
    run()
    path, _ = entry(run, "_inner")
    path.write_bytes(path.read_bytes()[:-1])
    assert "_inner" in run()[0]
    assert run()[0] == set()


@pytest.mark.wide_only
def test_an_entry_that_needs_what_is_not_there(run):
    run()
    path, (key, state, needs) = entry(run, "direct")
    cache.write_entry(path, (key, state, [(needs[0][0], "__main__.gone", needs[0][2])]))
    assert "direct" in run()[0]
    assert run()[0] == set()
