"""Which sources a kernel depends on: those of its module and of the kernel modules that it imports. No kernel here.

Imports are found in the text of a source, without a parse of it: that would take a tenth of a second for all kernels,
in every process. What is found too much, such as an import that a docstring shows, costs a compilation and no more.
"""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
KERNELS = f"{PACKAGE.name}.kernels"
COUNTED = (KERNELS, f"{PACKAGE.name}.compile.apart")  # of all modules: those that change what is compiled
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<where>[\w.]+)[ \t]+import\b[ \t]*(?P<names>\((?:[^)#]|#.*)*\)|(?:.*\\\n)*.*)"
    r"|import[ \t]+(?P<whole>(?:.*\\\n)*.*))",
    re.MULTILINE,
)


def digest(*parts: bytes) -> str:
    """Return a hash of byte strings in which their borders count."""
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()


@functools.cache
def read(path: Path) -> bytes:
    """Return a source file's bytes, or nothing where the sources were not installed."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


@functools.cache
def file_of(module: str) -> Path | None:
    """Return the source file of a module that counts, None where it does not, or is none."""
    if not any(module == one or module.startswith(f"{one}.") for one in COUNTED):
        return None
    place = PACKAGE.joinpath(*module.split(".")[1:])
    return next((one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file()), None)


@functools.cache
def imported(path: Path) -> frozenset[str]:
    """Return the modules that count among those that a file imports, wherever it does."""
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
    """Return a hash of a source file and of all that it depends on."""
    seen: set[str] = set()
    todo = {KERNELS, *imported(path)}
    while todo:
        seen.add(name := todo.pop())
        todo |= imported(file_of(name)) - seen
    parts = [part for name in sorted(seen) for part in (name.encode(), _fingerprint(file_of(name)))]
    return digest(_fingerprint(path), *parts)
