"""The sources that a kernel depends on: its module and the kernel modules that it imports. No kernel here.

Imports are found in the text of a source without parsing it, which would take a tenth of a second for all kernels in
every process. A false hit, such as an import in a docstring, only costs a compilation.
"""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
KERNELS = f"{PACKAGE.name}.kernels"
COUNTED = (KERNELS, f"{PACKAGE.name}.compile.apart")  # the modules that change what is compiled
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<where>[\w.]+)[ \t]+import\b[ \t]*(?P<names>\((?:[^)#]|#.*)*\)|(?:.*\\\n)*.*)"
    r"|import[ \t]+(?P<whole>(?:.*\\\n)*.*))",
    re.MULTILINE,
)


def digest(*parts: bytes) -> str:
    """Return a hash of byte strings that depends on their borders."""
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()


@functools.cache
def read(path: Path) -> bytes:
    """Return a source file's bytes, or nothing if the sources were not installed."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


@functools.cache
def file_of(module: str) -> Path | None:
    """Return the source file of a counted module, None for others."""
    if not any(module == one or module.startswith(f"{one}.") for one in COUNTED):
        return None
    place = PACKAGE.joinpath(*module.split(".")[1:])
    return next((one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file()), None)


@functools.cache
def imported(path: Path) -> frozenset[str]:
    """Return the counted modules that a file imports anywhere."""
    found = set()
    for where, names, whole in IMPORT.findall(read(path).decode("utf-8", "replace")):
        found |= {where, *(f"{where}.{name}" for name in re.findall(r"\w+", names))} if where else set()
        found |= set(re.findall(r"[\w.]+", whole))
    return frozenset(name for name in found if file_of(name) is not None)


@functools.cache
def _fingerprint(path: Path) -> bytes:
    return hashlib.sha256(read(path)).digest()


@functools.cache
def closure(path: Path) -> str:
    """Return a hash of a source file and everything that it depends on."""
    seen: set[str] = set()
    todo = {KERNELS, *imported(path)}
    while todo:
        seen.add(name := todo.pop())
        todo |= imported(file_of(name)) - seen
    parts = [part for name in sorted(seen) for part in (name.encode(), _fingerprint(file_of(name)))]
    return digest(_fingerprint(path), *parts)
