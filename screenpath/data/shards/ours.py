"""What ``convert`` may replace or remove: folders that carry its mark and hold nothing else, never through a link."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from screenpath.data.safe.atomic import LOCK
from screenpath.data.shards.shards import META
from screenpath.errors import RunFolderError

LOG = "progress.jsonl"  # of an unfinished folder: how it is made, then a line for each shard that is done
MARKS = {META: b'{\n  "schema_version": ', LOG: b'{"settings": {"schema_version": '}
TOOL, HEAD = b'\n  "tool": "screenpath"', 80  # stands within so many first bytes of meta.json
_PART = r"\d{6,}-(targets|sqnorms|ranges|dense|data|indices|indptr|columns)\.npy"
_NAMES = re.compile(
    rf"({_PART}|labels\.npy|{re.escape(META)})(\.new(-[0-9a-f]{{16}})?)?|{re.escape(LOG)}|{re.escape(LOCK)}"
)


def check_ours(folder: Path) -> None:
    """Refuse to take over or remove a folder, unless it is not there or ``convert`` made all of it."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            what = "a symbolic link" if folder.is_symlink() else "no folder"
            raise _foreign(folder, f"is {what}")
        names = sorted(file.name for file in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise _foreign(folder, f"cannot be looked at ({error.strerror or error})") from None
    for name in names:
        if not _NAMES.fullmatch(name) or not stat.S_ISREG((folder / name).lstat().st_mode):
            raise _foreign(folder, f"holds '{name}', which convert did not write")
    if not (set(names) <= {LOCK, LOG} or _marked(folder)) or not _is_log(folder / LOG):
        raise _foreign(folder, "does not carry the mark of convert")


def remove_ours(folder: Path) -> None:
    """Remove a folder that ``convert`` made; any other is refused."""
    check_ours(folder)
    if not folder.exists():
        return
    for file in marks_last(folder):
        file.unlink(missing_ok=True)
    folder.rmdir()


def marks_last(folder: Path) -> list[Path]:
    """Return the files of a folder in an order of removing that leaves it ours, whenever a kill comes."""
    return sorted(folder.iterdir(), key=lambda file: (file.name in MARKS, file.name))


def _foreign(folder: Path, what: str) -> RunFolderError:
    return RunFolderError(f"{folder} {what}, and is left alone", "move it away, or choose another name")


def _marked(folder: Path) -> bool:
    """Tell whether a folder has the beginning of a file that only ``convert`` writes."""
    log, meta = (_head(folder / name) for name in (LOG, META))
    return log.startswith(MARKS[LOG]) or (meta.startswith(MARKS[META]) and TOOL in meta)


def _is_log(file: Path) -> bool:
    """Tell whether a log is ours, or the first bytes of one, or not there."""
    head = _head(file)[: len(MARKS[LOG])]
    return MARKS[LOG].startswith(head)


def _head(file: Path) -> bytes:
    """Return the first bytes of a file, none where there is no file."""
    if not file.is_file():
        return b""
    with open(file, "rb") as stream:
        return stream.read(HEAD)
