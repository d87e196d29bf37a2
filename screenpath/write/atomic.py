"""Writing that a crash, a full disk or a second process cannot turn into half a file."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

import numpy as np

from screenpath.errors import InUseError, RunFolderError

LOCK = ".lock"


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power failure; file systems that cannot do this are left alone."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def short_writes_named(path: Path):
    """Call a full disk by its name where numpy says "16 requested and 11 written"."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from None


def save_arrays(folder: Path, arrays: dict) -> None:
    """Write arrays to ``NAME.npy`` in a temporary folder."""
    for name, array in arrays.items():
        file = folder / f"{name}.npy"
        with short_writes_named(file):
            np.save(file, array, allow_pickle=False)


@contextlib.contextmanager
def replacing(path: Path):
    """Open a binary file beside ``path`` that takes its place when the block ends without an error.

    Yields
    ------
    file : binary file
        Removed again if the block raises; ``path`` is then untouched.
    """
    beside = path.with_name(path.name + ".new")
    try:
        with short_writes_named(path), open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


class Appender:
    """A file that grows by whole records, under a name ending in ``.partial`` until it is complete.

    Parameters
    ----------
    path : Path
        Final name.
    keep : int, default 0
        Bytes to keep of what an earlier run left under the final or the partial name.
    named : bool, default False
        Whether it has its final name from the beginning.

    Raises
    ------
    RunFolderError
        If there are fewer bytes than ``keep``.
    """

    def __init__(self, path: Path, keep: int = 0, named: bool = False):
        self.path = path
        self.partial = path if named else path.with_name(path.name + ".partial")
        if keep and not self.partial.exists() and path.exists():
            os.replace(path, self.partial)
        self._descriptor = os.open(self.partial, os.O_RDWR | os.O_CREAT, 0o666)
        if os.fstat(self._descriptor).st_size < keep:
            os.close(self._descriptor)
            raise RunFolderError(
                f"{self.partial} is shorter than its checkpoint says: the run folder is damaged",
                "start again with --force",
            )
        os.ftruncate(self._descriptor, keep)
        os.lseek(self._descriptor, 0, os.SEEK_END)
        self.size = keep

    def append(self, data: bytes) -> None:
        """Append a record; on an error (full disk) the file ends with the last whole record."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(data)

    def sync(self) -> None:
        """Force what was appended to the disk."""
        os.fsync(self._descriptor)

    def read(self) -> bytes:
        """Return everything appended so far."""
        return os.pread(self._descriptor, self.size, 0)

    def complete(self) -> None:
        """Give the file its final name."""
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

    Parameters
    ----------
    folder : Path

    Raises
    ------
    InUseError
        If another process holds the lock.
    """

    def __init__(self, folder: Path):
        self.path = folder / LOCK
        while True:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.read(self._descriptor, 32).decode("ascii", "replace").strip()
                os.close(self._descriptor)
                raise InUseError(
                    f"{folder} is in use by another run (process {owner or 'unknown'})",
                    "wait for it, or choose another folder with --out",
                ) from None
            if self._is_current():
                break
            os.close(self._descriptor)  # the former owner removed the file between our open and our lock
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def _is_current(self) -> bool:
        try:
            return os.stat(self.path).st_ino == os.fstat(self._descriptor).st_ino
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Remove the lock file and let others in."""
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)
