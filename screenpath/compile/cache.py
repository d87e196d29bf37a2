"""Where compiled kernels are kept between processes. This module holds no kernel.

numba's own store (``cache=True``) is not used, for four reasons that were each seen in its source
(``numba.core.caching``): a truncated or overwritten file raises out of the first call and stays broken until the
user finds and deletes it; its index and its data files are replaced one after the other, so that two processes that
compile different signatures of one function at once can leave an index entry that points at the other's code; an
edit in an imported helper goes unnoticed; and it falls back on a ``__pycache__`` folder beside the sources. The store
here keeps one file for each function and signature, whole or not at all, with a checksum in front. The file's name
changes with the sources that the function depends on (see ``sources``), the folder's with numba and Python.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import io
import os
import pickle
import secrets
import shutil
import stat
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numba
from llvmlite import binding
from numba import config, types
from numba.core.event import trigger_event
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from screenpath.compile import KERNELS, name_of
from screenpath.compile.apart import keep_apart, needed, rebuilt, remember
from screenpath.compile.sharing import changeable, end_turn, read_own, take_turn, user_cache, wait_for_turn
from screenpath.compile.sources import closure, digest

FORMAT = 4  # of the files; another one when what is stored changes its shape
SUFFIX = ".kernel"
CHECKSUM_BYTES = hashlib.sha256().digest_size
# Kernels that came with the package: the folder of a cache as an archive that `make wheel` makes, trusted like the
# package. They are for a level of the architecture that most processors support; what does not fit is compiled.
SHIPPED = Path(__file__).with_name("shipped.zip")
LEVEL = "x86-64-v3"
# Features of that level beyond the first processors with 64 bits.
FEATURES = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")


class KernelCacheWarning(RuntimeWarning):
    """Compiled kernels cannot be stored where they should be; results are not affected."""


@functools.cache
def cache_key() -> str:
    """Return the folder name for this numba and this Python; the names of entries depend on the sources."""
    return f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}-numba-{numba.__version__}-{FORMAT}"


def is_current(name: str) -> bool:
    """Tell whether a file is an entry of an imported kernel's current sources; those of others are kept too."""
    kernel, _, rest = name.partition("-")
    return kernel in KERNELS and rest.startswith(f"{KERNELS[kernel]._cache.stamp}-")


def _private_temporary() -> Path:
    """Return this user's folder in the system's temporary one, accessible to them alone.

    If the name is taken by something that is not private to this user, a folder for this process is made instead:
    cached kernels are code, and code that another user could have prepared must not be loaded. OSError if no folder can
    be made.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"screenpath-{user}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        folder.chmod(0o700)  # whatever the umask
    if _private(folder):
        return folder
    own = Path(tempfile.mkdtemp(prefix="screenpath-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    _warn(f"{folder} is not private to this user: compiled kernels are kept until this process ends. Remove it.")
    return own


def _private(folder: Path) -> bool:
    """Tell whether a folder is a real folder, ours, and closed to everybody else."""
    state = folder.lstat()
    mine = not hasattr(os, "getuid") or state.st_uid == os.getuid()
    return stat.S_ISDIR(state.st_mode) and mine and stat.S_IMODE(state.st_mode) == 0o700


def _named_by_user() -> Path:
    return Path(config.CACHE_DIR).absolute() / "screenpath"


def _make(folder: Path) -> None:
    """Make a folder and its parents, which others may read (a cache warmed for a group), but not write to."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o755, exist_ok=True)


def _closed(folder: Path) -> bool:
    """Tell whether nobody else can put code into a resolved folder; warn if others can."""
    one = changeable(folder)
    if one is not None:
        _warn(
            f"compiled kernels are not kept in {folder}: other users can change {one}. "
            "Set NUMBA_CACHE_DIR to a folder that only you can write to."
        )
    return one is None


def _usable(folder: Path, private: bool = False) -> bool:
    """Tell whether a resolved folder can be written to, or at least holds kernels to read.

    Owner and mode of a ``private`` one are known. Its parents are not checked: in a container they may belong to an
    unknown user, and the owner of each file is checked.
    """
    try:
        if not private and not _closed(folder):  # make nothing there
            return False
        _make(folder)
        tempfile.TemporaryFile(dir=folder).close()
        return private or _closed(folder)
    except OSError:
        # A cache warmed beforehand may be read-only where the work is done (container, compute node).
        found = folder.glob(f"*{SUFFIX}")
        return os.path.isdir(folder) and _closed(folder) and any(is_current(one.name) for one in found)


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder of compiled kernels, chosen once per process.

    It is the first that works of NUMBA_CACHE_DIR, the user's cache folder, a private temporary folder. Without one,
    None: every process then compiles all kernels, and is warned once, as it is about a NUMBA_CACHE_DIR that cannot be
    used.
    """
    candidates = [_named_by_user] if config.CACHE_DIR else []
    candidates += [user_cache, _private_temporary]
    chosen = None
    for candidate in candidates:
        try:
            folder = (candidate() / cache_key()).resolve()
        except (OSError, RuntimeError):  # a cycle of links
            continue
        if _usable(folder, private=candidate is _private_temporary):
            chosen = folder
            break
    if chosen is None:
        _warn(
            "no folder to keep compiled kernels in can be written to: every run compiles them again. "
            "Set NUMBA_CACHE_DIR to a folder that can be written to."
        )
    elif config.CACHE_DIR and _named_by_user().resolve() not in chosen.parents:
        _warn(f"NUMBA_CACHE_DIR={config.CACHE_DIR} cannot be used: compiled kernels are kept in {chosen}.")
    return chosen


@functools.cache
def _warn(message: str) -> None:
    warnings.warn(message, KernelCacheWarning, stacklevel=3)


def read_entry(path: Path):
    """Return what :func:`write_entry` stored, None if there is no such file; a damaged one is deleted."""
    try:
        content = read_own(path)
    except OSError:
        return None
    entry = _entry_of(content)
    if entry is None:
        evict(path)
    return entry


def _entry_of(content: bytes):
    checksum, payload = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
    # Check before loading: a flipped bit in machine code would not raise, it would run.
    return pickle.loads(payload) if hashlib.sha256(payload).digest() == checksum else None


def write_entry(path: Path, entry) -> None:
    """Store an object so that other processes see it whole or not at all; OSError if it cannot be written."""
    payload = dumps(entry)  # numba's pickler: it knows numba's types
    _make(path.parent)
    # A random name, since process numbers repeat across the machines that share a folder; not mkstemp, whose files
    # nobody else may read, since a folder may be warmed by one user for a group. Only the owner may write, whatever
    # the umask: it is code.
    partial = path.with_name(f"{path.name}.{secrets.token_hex(8)}.partial")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            file.write(hashlib.sha256(payload).digest() + payload)
        os.replace(partial, path)
    except BaseException:  # also an interrupt must leave no incomplete file
        partial.unlink(missing_ok=True)
        raise


def evict(path: Path) -> None:
    """Delete an unusable entry, so that the next process does not read it again."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        _warn(f"damaged kernels in {path.parent} cannot be deleted ({error.strerror}): every run compiles them again.")


@functools.cache
def _shipped(triple: str) -> zipfile.ZipFile | None:
    """Return the archive of shipped kernels, if kernels for its level run here, else None."""
    if config.CPU_NAME is not None or not triple.startswith("x86_64"):
        return None
    try:
        here, content = binding.get_host_cpu_features(), io.BytesIO(SHIPPED.read_bytes())  # forks share an open file
        return zipfile.ZipFile(content) if all(here.get(name, False) for name in FEATURES) else None
    except (OSError, RuntimeError, zipfile.BadZipFile):
        return None  # no file, a damaged one, or unknown features


def _present(symbol: str, name: str, signature: tuple) -> bool:
    """Load a kernel, and tell whether it is the one that a stored caller refers to.

    Each process numbers the functions it compiles, so a kernel that was compiled again has another symbol, and its
    callers must be compiled again as well.
    """
    kernel = KERNELS.get(name)
    if kernel is None:
        return False
    kernel.compile(signature)
    return kernel.overloads[signature].fndesc.mangled_name == symbol


def fields(kinds) -> list:
    """Return the field names of all named tuples among types, as equal types may differ in them."""
    named = [(str(one), one.fields) for one in kinds if isinstance(one, types.BaseNamedTuple)]
    inner = [name for one in kinds if isinstance(one, types.BaseTuple) for name in fields(one.types)]
    return named + inner


class KernelCache:
    """The compiled signatures of one function on disk, in the form that a numba dispatcher expects."""

    def __init__(self, function):
        self.name = name_of(function)
        self._code = function.__code__

    @functools.cached_property
    def stamp(self) -> str:
        """Return a hash of the sources that the function depends on."""
        return digest(closure(Path(self._code.co_filename)).encode(), self._code.co_code)[:16]

    @property
    def cache_path(self) -> str | None:
        folder = cache_folder()
        return None if folder is None else str(folder)

    def _entry(self, signature, processor: tuple) -> tuple[str, tuple]:
        """Return the file name of one signature on a kind of processor, and its key."""
        key = (signature, processor, self.stamp, fields(getattr(signature, "args", signature)))
        return f"{self.name}-{self.stamp}-{digest(repr(key).encode())[:20]}{SUFFIX}", key

    def load_overload(self, signature, target_context):
        """Return the compile result of a signature, or None if it is missing or unusable."""
        # numba refreshes the whole context here, which takes longer than to load all kernels. Compiling does it by
        # itself; loading needs only the runtime that the machine code calls.
        rtsys.initialize(target_context)
        return self._shipped_result(signature, target_context) or self._stored_result(signature, target_context)

    def _shipped_result(self, signature, target_context):
        """Return the compile result of a signature that came with the package, or None."""
        triple = target_context.codegen().magic_tuple()[0]
        archive = _shipped(triple)
        if archive is None:
            return None
        name, key = self._entry(signature, (triple, LEVEL, ""))
        try:
            return self._rebuilt(_entry_of(archive.read(f"{cache_key()}/{name}")), key, target_context)
        except Exception:  # it is not there, or as below
            return None

    def _stored_result(self, signature, target_context):
        """Return the compile result of a signature that was compiled on this machine, or None: then it is our turn."""
        folder = cache_folder()
        if folder is None:
            return None
        name, key = self._entry(signature, target_context.codegen().magic_tuple())
        found = self._result_in(folder / name, key, target_context)
        if found is not None:
            return found
        if take_turn(folder, name):
            return None
        with trigger_event("numba:compile", data={"dispatcher": KERNELS[self.name]}):  # waiting counts as compiling
            wait_for_turn(folder, name)
        found = self._result_in(folder / name, key, target_context)
        if found is not None:
            end_turn(folder, name)
        return found

    def _result_in(self, path: Path, key, target_context):
        """Return the compile result in a file, None if it is unusable."""
        try:
            return self._rebuilt(read_entry(path), key, target_context)
        except Exception:  # a stale or foreign pickle may raise anything; compiling again solves all cases
            evict(path)
            return None

    def _rebuilt(self, stored, key, target_context):
        """Return the compile result in an entry, None if it belongs to another kernel or calls a missing one."""
        if stored is None or stored[0] != key or not all(_present(*one) for one in stored[2]):
            return None
        result = rebuilt(target_context, stored[1], KERNELS[self.name].inner)
        remember(result, self.name)
        return result

    def save_overload(self, signature, result) -> None:
        """Store a compile result, if possible; warn once about a failure."""
        needs = needed(result.library)
        keep_apart(result, self.name)
        folder = cache_folder()
        if folder is None:
            return
        name, key = self._entry(signature, result.codegen.magic_tuple())
        try:
            # As in numba: code that holds addresses of this process must not outlive it.
            if not result.lifted and not result.library.has_dynamic_globals:
                write_entry(folder / name, (key, result._reduce()[:4], needs))
        except OSError as error:
            _warn(
                f"compiled kernels cannot be kept in {folder} ({error.strerror or error}): "
                "the next run compiles them again."
            )
        finally:
            end_turn(folder, name)
