"""Compiled kernels that came with the package, in a file that ``make wheel`` makes. This module holds no kernel.

They are compiled for a level of the architecture that most processors support, not for the one they run on. The file is
part of the package, and trusted like it; whatever does not fit (versions, processor, a damaged entry) is compiled.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import zipfile
from pathlib import Path

from llvmlite import binding
from numba import config

FILE = Path(__file__).with_name("shipped.zip")  # in the format of `cache pack`
MANIFEST = "manifest.json"
LEVEL = "x86-64-v3"
# Features of that level beyond the first processors with 64 bits.
FEATURES = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")


@functools.cache
def _fits(triple: str) -> bool:
    """Tell whether code for ``LEVEL`` runs here, and no other processor is configured."""
    if config.CPU_NAME is not None or not triple.startswith("x86_64"):
        return False
    with contextlib.suppress(RuntimeError):  # unknown features
        here = binding.get_host_cpu_features()
        return all(here.get(name, False) for name in FEATURES)
    return False


@functools.cache
def _archive(key: str):
    """Return the archive, if its kernels were made by this numba and Python, else None."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(FILE.read_bytes()))  # forks would share the position in an open file
        manifest = json.loads(archive.read(MANIFEST))
        fits = manifest["key"] == key and manifest["processor"][1] == LEVEL
    except (OSError, zipfile.BadZipFile, ValueError, KeyError, TypeError, IndexError):
        return None
    return archive if fits else None


def level(codegen) -> tuple | None:
    """Return the processor in the keys of shipped kernels, or None if they do not run here."""
    triple = codegen.magic_tuple()[0]
    return (triple, LEVEL, "") if FILE.exists() and _fits(triple) else None


def shipped(key: str, name: str) -> bytes | None:
    """Return the bytes of an entry (its file name changes with the kernel's sources), or None; ``key`` is
    ``cache.cache_key()``.
    """
    archive = _archive(key)
    try:
        return None if archive is None else archive.read(name)
    except (KeyError, OSError, zipfile.BadZipFile, EOFError, ValueError, NotImplementedError):
        return None
