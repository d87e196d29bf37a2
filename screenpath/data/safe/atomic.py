"""Writing that survives a crash, a full disk or a second process without half a file, and that follows no links.

Written files are new: a symbolic link or a hard link under their name is replaced, and its target is not changed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import pickle
import re
import secrets
import stat
from pathlib import Path

import numpy as np

from screenpath.data.safe.system import AT_ONCE, fcntl, lock, open_bytes, read_at
from screenpath.errors import InUseError, RunFolderError, failure_named, failures_named

LOCK = ".lock"
TEMPORARY = re.compile(r"(.+)\.new-[0-9a-f]{16}", re.DOTALL)  # name of a file that will replace another
NAME = 60  # letters of a name that its temporary name keeps
RELEASED = -1  # in place of the descriptor of a lock
CHUNK = 1 << 20  # bytes read at a time
OWNER = re.compile(rb"(screenpath )?([0-9]*)\n?")  # content of a lock; 0.1.0 wrote the number alone


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power failure, if the file system supports that."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows opens no folders
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def save_shared(folder: Path, value) -> None:
    """Write an object to an empty temporary folder of this process, each of its arrays to a file of its own."""
    arrays: list[pickle.PickleBuffer] = []
    whole = pickle.dumps(value, 5, buffer_callback=arrays.append)
    for k, data in enumerate([memoryview(whole), *(array.raw() for array in arrays)]):
        file = folder / f"{k:06d}"
        with failures_named(file):
            file.write_bytes(data)


def load_shared(folder: Path):
    """Return the object of :func:`save_shared`, its arrays mapped copy-on-write: ordinary ones to compiled code."""
    files = [np.memmap(file, mode="c") if file.stat().st_size else np.empty(0) for file in sorted(folder.iterdir())]
    whole, *arrays = (file.data for file in files)
    return pickle.loads(whole, buffers=arrays)


@contextlib.contextmanager
def replacing(path: Path, last_look=None):
    """Open a binary file that replaces ``path`` when the block ends; after an error it is removed.

    A link under this name is replaced, not followed. ``last_look()`` is called just before the file gets its name, and
    may raise to keep what is there.
    """
    beside = path.with_name(f"{path.name[:NAME]}.new-{secrets.token_hex(8)}")
    try:
        descriptor = open_bytes(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            with open(descriptor, "w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if last_look is not None:
                last_look()
            os.replace(beside, path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise failure_named(error, path) from None
    sync_folder(path.parent)


def remove_temporaries(folder: Path, is_ours) -> None:
    """Remove temporary files that killed processes left in a folder that nobody else writes to.

    ``is_ours(name) -> bool`` tells whether a file of that name is one that screenpath replaces.
    """
    for entry in list(os.scandir(folder)):
        found = TEMPORARY.fullmatch(entry.name)
        if found and is_ours(found[1]) and entry.is_file(follow_symlinks=False):
            os.unlink(entry.path)


def open_own(path: Path) -> int:
    """Return a read-write descriptor of a file of ours, created if missing; links, folders, devices are refused."""
    what = None
    try:
        descriptor = open_bytes(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK, errno.EISDIR, errno.ENXIO):
            raise
        what = "a folder" if error.errno == errno.EISDIR else "a symbolic link"
    else:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            what = "not a file"
        elif found.st_nlink > 1:
            what = "a file with a second name (a hard link)"
        if what:
            os.close(descriptor)
    if what:
        raise RunFolderError(f"{path} is {what}: it is not written to", f"remove {path}, or choose another folder")
    return descriptor


def prefix_sha256(descriptor: int, size: int):
    """Return the SHA-256 object of the first ``size`` bytes of a file, and how many of them there are."""
    digest, done = hashlib.sha256(), 0
    while done < size:
        data = read_at(descriptor, min(CHUNK, size - done), done)
        if not data:
            break
        digest.update(data)
        done += len(data)
    return digest, done


def _kept(path: Path, descriptor: int, keep: int, sha256: str | None):
    digest, found = prefix_sha256(descriptor, keep)
    if found < keep or sha256 not in (None, digest.hexdigest()):
        why = "is shorter than" if found < keep else "has other content than"
        raise RunFolderError(f"{path} {why} its checkpoint says: the run folder is damaged", "start again with `force`")
    return digest


def check_kept(path: Path, keep: int, sha256: str) -> None:
    """Check, without changing anything, that an :class:`Appender` would find the bytes to keep."""
    if not keep:
        return
    partial = path.with_name(path.name + ".partial")
    found = partial if os.path.lexists(partial) else path
    try:
        descriptor = open_bytes(found, os.O_RDONLY | AT_ONCE)
    except OSError as error:
        raise RunFolderError(f"{found} cannot be continued: {error.strerror}", "start again with `force`") from None
    try:
        _kept(found, descriptor, keep, sha256)
    finally:
        os.close(descriptor)


class Appender:
    """A file that grows by whole records, under a name ending in ``.partial`` until it is complete.

    ``named``: it has its final name from the beginning. ``keep`` bytes of an earlier run's file, under either name,
    are kept; if there are fewer, or others than those of ``sha256``, a RunFolderError is raised.
    """

    def __init__(self, path: Path, keep: int = 0, named: bool = False, sha256: str | None = None):
        self.path = path
        self.partial = path if named else path.with_name(path.name + ".partial")
        if keep and not os.path.lexists(self.partial) and os.path.lexists(path):
            os.replace(path, self.partial)
        self._descriptor = open_own(self.partial)
        try:
            self._digest = _kept(self.partial, self._descriptor, keep, sha256)
            os.ftruncate(self._descriptor, keep)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except BaseException as error:
            os.close(self._descriptor)
            raise failure_named(error, self.partial) if isinstance(error, OSError) else error from None
        self.size, self.sha256 = keep, self._digest.hexdigest()

    def append(self, data: bytes) -> None:
        """Append a record; after an error (full disk) the file ends with the last whole record."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            os.ftruncate(self._descriptor, self.size)
            raise failure_named(error, self.partial) from None
        self._digest.update(data)
        self.size, self.sha256 = self.size + len(data), self._digest.hexdigest()

    def sync(self) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise failure_named(error, self.partial) from None

    def complete(self) -> None:
        self.sync()
        os.close(self._descriptor)
        os.replace(self.partial, self.path)

    def abandon(self, remove: bool = False) -> None:
        """Close the file under its partial name, or remove it."""
        os.close(self._descriptor)
        if remove:
            self.partial.unlink()


class FolderLock:
    """Exclusive use of a folder for as long as this process lives.

    Raises an :class:`InUseError` if another process holds the lock, a :class:`RunFolderError` if the file under the
    lock's name is not a lock.
    """

    def __init__(self, folder: Path):
        self.path = folder / LOCK
        while True:
            self._descriptor = open_own(self.path)
            owner = OWNER.fullmatch(read_at(self._descriptor, 64, 0))
            try:
                if owner is None:
                    raise RunFolderError(f"{self.path} is not a lock of screenpath", "choose another folder")
                lock(self._descriptor)
            except BlockingIOError:
                os.close(self._descriptor)
                what = f"{folder} is in use by another run (process {(owner and owner[2].decode()) or 'unknown'})"
                raise InUseError(what, "wait for it, or choose another folder with `out`") from None
            except BaseException:
                os.close(self._descriptor)
                raise
            if self._is_current():
                break
            os.close(self._descriptor)  # the former owner removed the file between our open and our lock
        try:
            with failures_named(self.path):
                os.ftruncate(self._descriptor, 0)
                os.write(self._descriptor, f"screenpath {os.getpid()}\n".encode())
        except BaseException:
            self.release()
            raise

    def _is_current(self) -> bool:
        try:
            found, ours = os.lstat(self.path), os.fstat(self._descriptor)
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino)

    def release(self) -> None:
        """Remove the lock file, if it is still ours, and let others in."""
        if self._descriptor == RELEASED:
            return
        if fcntl is not None and self._is_current():  # Windows removes no open file; it is no obstacle
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = RELEASED

    def let_rename(self) -> None:
        """Release the lock where it would be in the way of another name for its folder."""
        if fcntl is None:  # Windows
            self.release()
