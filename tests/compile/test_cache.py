"""The store of compiled kernels: where it is, what it survives, and that it is what a second process uses."""

import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from screenpath.compile import cache
from screenpath.compile.sharing import LOCKS
from tests.conftest import HANGS
from tests.width import wide

ROOT = Path(__file__).resolve().parents[2]
# Two signatures of a tiny kernel; prints what they return and how many compilations there were.
TINY = """
import sys
import numpy as np
from screenpath.kernels import KERNELS, kernel
from screenpath.compile.cache import cache_folder, cache_key

@kernel
def add_one(x):
    return x + 1

results = [add_one(v) for v in (1, 1.5)]
plain = add_one.dispatcher is add_one.function  # without the jit
missed = "plain" if plain else sum(sum(one.stats.cache_misses.values()) for one in KERNELS.values())
folder = cache_folder()
print(*results, missed, folder)
"""


@pytest.fixture
def tiny(tmp_path):
    """Return a function that runs the tiny kernel in a new process, with a home folder of its own."""
    (tmp_path / "home").mkdir()
    (tmp_path / "tiny.py").write_text(TINY)

    def start(**environment):
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_", "PYTHONWARNINGS"))}
        environment = {"HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT), **environment}
        return subprocess.Popen(
            [sys.executable, str(tmp_path / "tiny.py")], env={**inherited, **environment}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(**environment):
        process = start(**environment)
        out, err = process.communicate(timeout=HANGS)
        assert process.returncode == 0, err
        two, two_and_a_half, missed, folder = out.split()
        assert (two, two_and_a_half) == ("2", "2.5")
        return missed, folder, err

    run.start = start
    return run


@pytest.fixture(scope="module")
def compiled():
    """Hold the files that the first process to run the tiny kernel has written, by name."""
    return {}


@pytest.fixture
def warmed(tiny, compiled, tmp_path):
    """Return the cache folder of `tiny`, filled by a process that ran before."""
    folder = tmp_path / "home" / ".cache" / "screenpath" / cache.cache_key()
    if not compiled:
        assert tiny() == ("2", str(folder), "")
        compiled.update((path.name, path.read_bytes()) for path in folder.glob("*.kernel"))
        assert len(compiled) == 2
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in compiled.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def blocked(tmp_path):
    """Return a path that nobody can make a folder at, not even root: it lies below a regular file."""
    (tmp_path / "file").write_text("")
    return str(tmp_path / "file" / "folder")


@pytest.fixture
def choose(tmp_path, monkeypatch):
    """Return a function that chooses the cache folder anew, as a process with another environment would."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cache.config, "CACHE_DIR", "")
    monkeypatch.setattr(cache, "_warn", cache._warn.__wrapped__)

    def choose(numba_cache_dir="", **environment):
        monkeypatch.setattr(cache.config, "CACHE_DIR", numba_cache_dir)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return cache.cache_folder.__wrapped__()

    return choose


def test_folder_is_taken_from_the_environment(choose, tmp_path):
    key = cache.cache_key()
    assert choose(HOME=str(tmp_path / "home")) == tmp_path / "home" / ".cache" / "screenpath" / key
    assert choose(XDG_CACHE_HOME=str(tmp_path / "xdg")) == tmp_path / "xdg" / "screenpath" / key
    assert choose(str(tmp_path / "named")) == tmp_path / "named" / "screenpath" / key
    # A relative XDG_CACHE_HOME is to be ignored (XDG Base Directory Specification).
    assert choose(XDG_CACHE_HOME="xdg") == tmp_path / "home" / ".cache" / "screenpath" / key


def test_unwritable_home_falls_back_to_a_private_temporary_folder(choose, tmp_path, blocked):
    private = tmp_path / f"screenpath-{os.getuid()}"
    assert choose(HOME=blocked) == private / cache.cache_key()
    assert private.stat().st_mode & 0o777 == 0o700


def squat(place, how):
    """Put what another user might have prepared at the name of the private folder."""
    if how == "link":
        (place.parent / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(place.parent / "elsewhere")
    elif how == "dangling link":
        place.symlink_to(place.parent / "nowhere")
    elif how == "file":
        place.write_text("")
    else:
        place.mkdir()
        place.chmod(int(how, 8))


@pytest.mark.parametrize("how", ["777", "770", "755", "link", "dangling link", "file"])
def test_temporary_folder_that_is_not_private_is_not_trusted(choose, tmp_path, blocked, monkeypatch, how):
    """Another one is made, for this process alone; nothing is written to what was there."""
    ended = []
    monkeypatch.setattr(cache.atexit, "register", lambda *arguments, **options: ended.append((arguments, options)))
    place = tmp_path / f"screenpath-{os.getuid()}"
    squat(place, how)
    with pytest.warns(cache.KernelCacheWarning, match="is not private to this user"):
        folder = choose(HOME=blocked)
    own = folder.parent
    assert own.parent == tmp_path and own.name.startswith("screenpath-") and own != place
    assert own.stat().st_mode & 0o777 == 0o700 and own.stat().st_uid == os.getuid()
    assert not (place.is_dir() and list(place.iterdir())) and not (tmp_path / "nowhere").exists()
    (((remove, *arguments), options),) = ended
    remove(*arguments, **options)
    assert not own.exists()


def test_temporary_folder_of_somebody_else_is_not_trusted(choose, tmp_path, blocked, monkeypatch):
    place = tmp_path / f"screenpath-{os.getuid() + 1}"
    place.mkdir(mode=0o700)
    somebody = os.getuid() + 1
    monkeypatch.setattr(cache.os, "getuid", lambda: somebody)
    with pytest.warns(cache.KernelCacheWarning, match="is not private to this user"):
        assert place not in choose(HOME=blocked).parents


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o277])
def test_umask_decides_who_may_read_and_never_who_may_write(choose, tmp_path, blocked, umask):
    before = os.umask(umask)
    try:
        private = choose(HOME=blocked) if umask != 0o277 else cache._private_temporary()
        if umask != 0o277:
            cache.write_entry(tmp_path / "kept" / "version" / "entry.kernel", ("key", 1))
    finally:
        os.umask(before)
    place = tmp_path / f"screenpath-{os.getuid()}"
    assert place in (private, private.parent) and place.stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "kept", *(tmp_path / "kept").rglob("*"), *place.rglob("*")):
        if path.exists():
            assert path.stat().st_mode & 0o777 == (0o644 if path.is_file() else 0o755) & ~umask


def test_cache_folder_that_everybody_may_write_to_is_not_read(choose, tmp_path):
    """A pickle that another user has put there would run as this one."""
    shared = tmp_path / "shared" / "screenpath"
    cache.write_entry(shared / cache.cache_key() / "a.kernel", ("key", 1))
    for open_one in (shared, shared / cache.cache_key()):
        open_one.chmod(0o777)
        with pytest.warns(cache.KernelCacheWarning, match=f"other users can change {open_one}"):
            assert shared not in choose(XDG_CACHE_HOME=str(shared.parent), HOME=str(tmp_path / "home")).parents
        open_one.chmod(0o755)
    assert choose(XDG_CACHE_HOME=str(shared.parent)) == shared / cache.cache_key()


def test_unwritable_numba_cache_dir_falls_back_with_a_warning(choose, tmp_path, blocked):
    with pytest.warns(cache.KernelCacheWarning, match=f"NUMBA_CACHE_DIR={blocked}"):
        assert tmp_path / "home" in choose(blocked, HOME=str(tmp_path / "home")).parents


def test_no_folder_at_all_runs_uncached_with_one_warning(tiny, tmp_path, blocked):
    script = tmp_path / "tiny.py"
    refused = "import tempfile\ndef refuse(**_): raise PermissionError(13, 'no')\ntempfile.mkdtemp = refuse\n"
    script.write_text(refused + script.read_text())
    (tmp_path / f"screenpath-{os.getuid()}").write_text("")
    missed, folder, err = tiny(HOME=blocked, NUMBA_CACHE_DIR=blocked, TMPDIR=str(tmp_path))
    assert (missed, folder) == ("2", "None")
    assert err.count("KernelCacheWarning") == 1
    assert "Set NUMBA_CACHE_DIR" in err


def test_name_that_is_taken_costs_a_compilation_and_leaves_nothing(tiny, tmp_path, blocked):
    place = tmp_path / f"screenpath-{os.getuid()}"
    place.write_text("")
    missed, folder, err = tiny(HOME=blocked, TMPDIR=str(tmp_path))
    assert missed == "2" and str(tmp_path) in folder and not Path(folder).parent.exists()
    assert err.count("KernelCacheWarning") == 1 and "not private" in err


def test_second_process_loads_what_the_first_compiled(tiny, warmed):
    assert tiny() == ("0", str(warmed), "")


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"", lambda content: content[:-100], lambda content: b"\x80garbage" * 50,
        lambda content: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
    ],
    ids=["empty", "truncated", "garbage", "flipped bit"],
)  # fmt: skip
def test_damaged_entry_is_deleted(tmp_path, damage):
    path = tmp_path / "entry.kernel"
    cache.write_entry(path, ("key", list(range(1000))))
    path.write_bytes(damage(path.read_bytes()))
    assert cache.read_entry(path) is None
    assert not path.exists()


def test_damaged_files_are_compiled_again_and_replaced(tiny, warmed):
    files = sorted(warmed.glob("*.kernel"))
    good = [cache.read_entry(path) for path in files]
    files[0].write_bytes(files[0].read_bytes()[:1000])
    cache.write_entry(files[1], (good[1][0], ("whole, but nothing a compile result can be rebuilt from",)))
    assert tiny() == ("2", str(warmed), "")
    assert sorted(warmed.glob("*.kernel")) == files
    assert [cache.read_entry(path)[0] for path in files] == [key for key, *_ in good]
    assert all(len(cache.read_entry(path)[1]) > 1 for path in files)


def test_entry_of_another_key_is_not_used(tiny, warmed):
    one, other = sorted(warmed.glob("*.kernel"))
    one.write_bytes(other.read_bytes())  # the integer and the floating-point signature
    assert tiny()[0] == "1"


def test_many_processes_at_once_on_a_cold_cache(tiny):
    count = int(os.environ.get("SCREENPATH_PROCESSES", wide(2, 8)))  # `make fuzz` starts 40
    processes = [tiny.start() for _ in range(count)]
    outputs = [process.communicate(timeout=HANGS) for process in processes]
    assert [process.returncode for process in processes] == [0] * count, outputs
    assert {out.split()[0] + err for out, err in outputs} == {"2"}
    folder = Path(outputs[0][0].split()[-1])
    assert len([one for one in folder.iterdir() if one.name != LOCKS]) == 2  # no partial files left
    assert all(cache.read_entry(path) is not None for path in folder.glob("*.kernel"))


def test_loaded_kernels_allocate_call_the_runtime_and_raise(tiny, tmp_path):
    # Loading skips numba's refresh of its context; whatever a kernel can do must work without it.
    (tmp_path / "tiny.py").write_text("""
import numpy as np
from screenpath.kernels import kernel
from screenpath.compile.cache import cache_folder

@kernel
def total(A, b):
    if b.size == 0:
        raise ValueError("empty")
    x = np.dot(A, b)
    return x, np.log(np.exp(x).max())

x, largest = total(2 * np.eye(2), np.array([1.25, 1.0]))
assert x.tolist() == [2.5, 2.0]
try:
    total(np.eye(2), np.empty(0))
except ValueError as error:
    assert str(error) == "empty"
    print(2, round(largest, 12), sum(total.stats.cache_misses.values()), cache_folder())
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


def test_read_only_folder_with_kernels_is_used(tmp_path, monkeypatch):
    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache.tempfile, "TemporaryFile", refuse)
    assert not cache._usable(tmp_path)
    cache.write_entry(tmp_path / "known.one-0123-ab.kernel", ("key", 1))
    monkeypatch.setitem(cache.KERNELS, "known.one", SimpleNamespace(_cache=SimpleNamespace(stamp="other")))
    assert not cache._usable(tmp_path)  # of other sources alone
    monkeypatch.setitem(cache.KERNELS, "known.one", SimpleNamespace(_cache=SimpleNamespace(stamp="0123")))
    assert cache._usable(tmp_path)


def test_key_changes_with_the_format_and_numba(monkeypatch):
    before = cache.cache_key()
    monkeypatch.setattr(cache, "FORMAT", 0)
    assert cache.cache_key.__wrapped__() != before
    monkeypatch.undo()
    monkeypatch.setattr(cache.numba, "__version__", "0.1")
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
