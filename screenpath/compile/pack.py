"""Compiled kernels as one file: made on one machine, used on others of the same kind. This module holds no kernel.

The file contains code that will run, so it must be trusted like the package itself. Its checksums only detect damage.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import zipfile

from numba.core.registry import cpu_target

from screenpath.compile.cache import CHECKSUM_BYTES, MANIFEST, SUFFIX, cache_folder, cache_key, is_current, store
from screenpath.compile.sharing import read_own
from screenpath.errors import ResourceError

FORMAT = 1
NAME = re.compile(r"[\w.<>-]+" + re.escape(SUFFIX))
LARGEST = 1 << 28  # bytes of one kernel
AGAIN = "pack again where the kernels are warm: screenpath cache pack FILE"


def processor() -> list:
    """Return the kind of processor that kernels are compiled for here: triple, name and features."""
    return list(cpu_target.target_context.codegen().magic_tuple())


def pack_kernels() -> tuple[bytes, int]:
    """Return all compiled kernels of these sources as one file, and their number; a ResourceError if there are none.

    Only modules that have been imported count, here and in :func:`unpack_kernels`.
    """
    folder = cache_folder()
    found = {}
    for path in [] if folder is None else sorted(folder.glob(f"*{SUFFIX}")):
        if not is_current(path.name):
            continue
        with contextlib.suppress(OSError):  # kernels that would not be loaded here are not packed
            found[path.name] = read_own(path)
    if not found:
        raise ResourceError("no kernel is compiled yet", "compile them first: screenpath cache warm")
    manifest = {
        "tool": "screenpath",
        "format": FORMAT,
        "key": cache_key(),
        "processor": processor(),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in found.items()},
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
        for name, content in found.items():
            archive.writestr(name, content)
    return file.getvalue(), len(found)


def unpack_kernels(content: bytes, name: str) -> tuple[int, int, bool]:
    """Store the ``content`` of the file ``name`` of packed kernels where this process looks for them.

    Return how many are of these sources, how many of others, which are skipped, and whether they are for this kind of
    processor; others are compiled again when needed. A file that is damaged or of another version, or no folder for
    kernels, is a :class:`ResourceError`: then nothing is unpacked.
    """
    folder = cache_folder()
    if folder is None:
        raise ResourceError("there is no folder for compiled kernels", "set NUMBA_CACHE_DIR to one that can be written")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            manifest = json.loads(archive.read(MANIFEST))
            key, kind, listed = manifest["key"], manifest["processor"], dict(manifest["files"])
            if key != cache_key() or manifest["format"] != FORMAT:
                raise ResourceError(
                    f"{name} was packed for another version of numba or Python ({key}, here {cache_key()})",
                    AGAIN,
                )
            found = {member: _checked(archive, member, digest) for member, digest in listed.items()}
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError, OSError, NotImplementedError) as error:
        raise ResourceError(f"{name} is not a file of packed kernels, or is damaged ({error})", AGAIN) from None
    current = [member for member in found if is_current(member)]
    if not current:
        raise ResourceError(f"{name} was packed by another version of screenpath: none of its kernels fits", AGAIN)
    for member in current:
        store(folder / member, found[member])
    return len(current), len(found) - len(current), kind == processor()


def _checked(archive: zipfile.ZipFile, member: str, digest: str) -> bytes:
    """Return the bytes of a kernel; a ValueError if they are not those that were packed."""
    if not NAME.fullmatch(member) or archive.getinfo(member).file_size > LARGEST:
        raise ValueError("a name or a size that no kernel has")
    kernel = archive.read(member)
    right = hashlib.sha256(kernel[CHECKSUM_BYTES:]).digest() == kernel[:CHECKSUM_BYTES]
    if not right or hashlib.sha256(kernel).hexdigest() != digest:
        raise ValueError(f"{member} is not what was packed")
    return kernel
