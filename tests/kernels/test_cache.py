"""The store of compiled kernels: where it is, what it survives, and that it is what a second process uses."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from screenpath.kernels import cache

ROOT = Path(__file__).resolve().parents[2]
# Two signatures of a tiny kernel; prints what they return and how many compilations there were.
TINY = """
import sys
import numpy as np
from screenpath.kernels import KERNELS, kernel
from screenpath.kernels.cache import cache_folder, cache_key

@kernel
def add_one(x):
    return x + 1

results = [add_one(v) for v in (1, 1.5)]
missed = sum(sum(one.stats.cache_misses.values()) for one in KERNELS.values()) if KERNELS else "plain"
folder = cache_folder()
print(*results, missed, folder)
"""


@pytest.fixture
def tiny(tmp_path):
    """Return a function that runs the tiny kernel in a new process, with a home folder of its own."""
    script = tmp_path / "tiny.py"
    script.write_text(TINY)
    home = tmp_path / "home"
    home.mkdir()

    def start(*flags, **environment):
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_", "TMPDIR", "PYTHONWARNINGS"))
        }
        environment = {"HOME": str(home), "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), **environment}
        return subprocess.Popen(
            [sys.executable, *flags, str(script)],
            env={**inherited, **environment},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(*flags, **environment):
        process = start(*flags, **environment)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        two, two_and_a_half, missed, folder = out.split()
        assert (two, two_and_a_half) == ("2", "2.5")
        return missed, folder, err

    run.start = start
    return run


def test_second_process_loads_what_the_first_compiled(tiny, tmp_path):
    missed, folder, err = tiny()
    assert (missed, err) == ("2", "")
    assert folder == str(tmp_path / "home" / ".cache" / "screenpath" / cache.cache_key())
    assert len(list(Path(folder).iterdir())) == 2
    assert tiny()[0] == "0"


@pytest.mark.parametrize("variable, below", [("XDG_CACHE_HOME", "screenpath"), ("NUMBA_CACHE_DIR", "screenpath")])
def test_folder_is_taken_from_the_environment(tiny, tmp_path, variable, below):
    _, folder, err = tiny("-W", "error", **{variable: str(tmp_path / "elsewhere")})
    assert folder == str(tmp_path / "elsewhere" / below / cache.cache_key())
    assert err == ""


@pytest.fixture
def blocked(tmp_path):
    """Return a path that nobody can make a folder at, not even root: it lies below a regular file."""
    (tmp_path / "file").write_text("")
    return str(tmp_path / "file" / "folder")


def test_unwritable_home_falls_back_to_a_private_temporary_folder(tiny, tmp_path, blocked):
    missed, folder, err = tiny("-W", "error", HOME=blocked)
    private = tmp_path / f"screenpath-{os.getuid()}"
    assert (missed, folder, err) == ("2", str(private / cache.cache_key()), "")
    assert private.stat().st_mode & 0o777 == 0o700


def test_temporary_folder_that_others_may_write_to_is_not_trusted(tiny, tmp_path, blocked):
    (tmp_path / f"screenpath-{os.getuid()}").mkdir()
    (tmp_path / f"screenpath-{os.getuid()}").chmod(0o777)
    _, folder, err = tiny(HOME=blocked)
    assert folder == "None"
    assert err.count("KernelCacheWarning") == 1


def test_unwritable_numba_cache_dir_falls_back_with_one_warning(tiny, blocked):
    _, folder, err = tiny(NUMBA_CACHE_DIR=blocked)
    assert "home" in folder
    assert err.count("KernelCacheWarning") == 1
    assert f"NUMBA_CACHE_DIR={blocked}" in err


def test_no_folder_at_all_runs_uncached_with_one_warning(tiny, tmp_path, blocked):
    # The temporary folder itself must exist for Python's tempfile; the name in it is taken by a file.
    (tmp_path / f"screenpath-{os.getuid()}").write_text("")
    missed, folder, err = tiny(HOME=blocked)
    assert (missed, folder) == ("2", "None")
    assert err.count("KernelCacheWarning") == 1
    assert "NUMBA_CACHE_DIR" in err


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-100],
        lambda content: b"\x80garbage" * 50,
        lambda content: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
    ],
    ids=["empty", "truncated", "garbage", "flipped bit"],
)
def test_damaged_entry_is_deleted(tmp_path, damage):
    path = tmp_path / "entry.kernel"
    cache.write_entry(path, ("key", list(range(1000))))
    path.write_bytes(damage(path.read_bytes()))
    assert cache.read_entry(path) is None
    assert not path.exists()


def test_damaged_files_are_compiled_again_and_replaced(tiny):
    files = sorted(Path(tiny()[1]).iterdir())
    files[0].write_bytes(files[0].read_bytes()[:1000])
    key, _ = cache.read_entry(files[1])
    cache.write_entry(files[1], (key, ("whole, but nothing a compile result can be rebuilt from",)))
    missed, folder, err = tiny()
    assert (missed, err) == ("2", "")
    assert sorted(Path(folder).iterdir()) == files
    assert tiny()[0] == "0"


def test_entry_of_another_key_is_not_used(tiny):
    one, other = sorted(Path(tiny()[1]).iterdir())
    one.write_bytes(other.read_bytes())  # the integer and the floating-point signature
    assert tiny()[0] == "1"


def test_many_processes_at_once_on_a_cold_cache(tiny, tmp_path):
    processes = [tiny.start() for _ in range(8)]
    outputs = [process.communicate(timeout=240) for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, outputs
    assert {out.split()[0] + err for out, err in outputs} == {"2"}
    folder = Path(outputs[0][0].split()[-1])
    assert len(list(folder.iterdir())) == 2  # no partial files left
    assert tiny()[0] == "0"


def test_loaded_kernels_allocate_call_the_runtime_and_raise(tiny, tmp_path):
    # Loading skips numba's refresh of its context; whatever a kernel can do must work without it.
    (tmp_path / "tiny.py").write_text("""
import numpy as np
from screenpath.kernels import kernel
from screenpath.kernels.cache import cache_folder

@kernel
def solve(A, b):
    if b.size == 0:
        raise ValueError("empty")
    x = np.linalg.solve(A, b)
    return x, np.sort(np.dot(A, x)), np.exp(np.log(x.sum()))

x, Ax, total = solve(2 * np.eye(2), np.array([4.0, 1.0]))
assert (x.tolist(), Ax.tolist(), total) == ([2.0, 0.5], [1.0, 4.0], 2.5)
try:
    solve(np.eye(2), np.empty(0))
except ValueError as error:
    assert str(error) == "empty"
    print(2, total, sum(solve.stats.cache_misses.values()), cache_folder())
""")
    assert tiny()[0] == "1"
    assert tiny()[0] == "0"


def test_disabled_jit_runs_plain_python(tiny):
    missed, _, err = tiny(NUMBA_DISABLE_JIT="1")
    assert (missed, err) == ("plain", "")


def test_write_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        cache.write_entry(tmp_path / "entry.kernel", (1, 2))
    assert list(tmp_path.iterdir()) == []


def test_read_entry_returns_what_was_written(tmp_path):
    path = tmp_path / "entry.kernel"
    assert cache.read_entry(path) is None
    cache.write_entry(path, ("key", 5))
    assert cache.read_entry(path) == ("key", 5)


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """Point this process at an empty cache folder, and back afterwards."""
    monkeypatch.setattr(cache.config, "CACHE_DIR", str(tmp_path))
    cache.cache_folder.cache_clear()
    yield cache.cache_folder()
    cache.cache_folder.cache_clear()


def test_clear_deletes_all_versions_and_nothing_else(own_folder):
    older = own_folder.parent / "older-version"
    cache.write_entry(own_folder / "a.kernel", ("key", 1))
    cache.write_entry(older / "b.kernel", ("key", 2))
    (older / "c.kernel.0123.partial").write_bytes(b"12345")
    foreign = own_folder.parent / "another" / "notes.txt"
    foreign.parent.mkdir()
    foreign.write_text("mine")
    size = sum((own_folder / "a.kernel").stat().st_size for _ in range(2)) + 5
    assert cache.clear_cache() == size
    assert sorted(own_folder.parent.rglob("*")) == [foreign.parent, foreign]
    assert cache.clear_cache() == 0


def test_read_only_folder_with_kernels_is_used(tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache.tempfile, "TemporaryFile", refuse)
    assert not cache._usable(tmp_path)
    cache.write_entry(tmp_path / "a.kernel", ("key", 1))
    assert cache._usable(tmp_path)


def test_key_changes_with_an_edited_source(monkeypatch):
    before = cache.cache_key()
    read = cache._source
    monkeypatch.setattr(cache, "_source", lambda path: read(path) + b"#" * path.endswith("cd.py"))
    assert cache.cache_key.__wrapped__() != before


def test_failure_to_write_is_warned_of_once_and_the_kernel_still_runs(own_folder, monkeypatch):
    from screenpath.kernels import kernel

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "write_entry", full)
    monkeypatch.setattr(cache, "_warn", cache.functools.cache(cache._warn.__wrapped__))
    doubled = kernel(lambda x: 2 * x)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert (doubled(2), doubled(2.5)) == (4, 5.0)
    assert ["No space left on device" in str(one.message) for one in seen] == [True]
