"""What is stored, and who reads it: the kinds of artefacts that ``fuzz_artefacts`` damages, each an entry of KINDS."""

from __future__ import annotations

import contextlib
import csv
import io
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from screenpath.cli.app import run as run_command
from screenpath.data.shards.convert import DataCacheWarning, cached_shards, convert
from screenpath.data.shards.shards import ShardFolder
from screenpath.errors import ScreenpathError
from tests.shard_folders import seal, without_hashes

TIMES = ("screen_s", "solve_s", "certify_s", "init_s")


@dataclass(frozen=True)
class Kind:
    """A kind of artefact: ``make(base)`` writes it to ``base / "artefact"``, and what its readers need to ``base``.

    ``readers[name](base, artefact)`` returns what it has read of a damaged copy, or raises a ScreenpathError. ``seal``
    makes the hashes fit what is there, as somebody does who makes artefacts up: readers must not crash then. Where
    nothing is ``hashed``, results may differ; what ``mends`` is made again, and its readers may not fail.
    """

    name: str
    make: Callable
    readers: dict[str, Callable]
    seal: Callable | None = None
    hashed: bool = True
    mends: bool = False


class Refused(ScreenpathError):
    """A command ended with exit code 1 or 2 and one clear error."""


def command(*arguments) -> str:
    """Run a command in this process and return its output, without times; a clear error is Refused."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", newline=""), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_command([str(argument) for argument in arguments])
    out.flush()
    said = out.buffer.getvalue().decode("utf-8", "surrogateescape")
    if code in (1, 2):
        errors = [line for line in err.getvalue().splitlines() if line.startswith("error: ")]  # behind notices
        clear = len(errors) == 1 or "fault: " in said or (arguments[0] == "verify" and said)
        if "Traceback" in err.getvalue() or not clear:
            raise AssertionError(f"exit code {code} and no clear error: {err.getvalue()[-300:]!r}")
        raise Refused(err.getvalue() or said)
    if code not in (0, 3):
        raise AssertionError(f"exit code {code}")
    return said


def without_times(text: str) -> list:
    """Return the cells of a step table but for the seconds."""
    return [
        {name: cell for name, cell in row.items() if name not in TIMES} for row in csv.DictReader(io.StringIO(text))
    ]


def path_of(data, *options) -> list:
    return without_times(command("svm", data, "--grid", 3, "--tol", 1e-3, "--quiet", "-o", "-", *options))


def text_of(rows: int = 30, columns: int = 6, density: float = 1.0, seed: int = 0) -> bytes:
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(rows):
        stored = np.flatnonzero(rng.random(columns) < density)
        cells = [f"{j + 1}:{value:.4g}" for j, value in zip(stored, rng.normal(size=stored.size), strict=True)]
        lines.append(" ".join([str(1 - 2 * (i % 2)), *cells]))
    return ("\n".join(lines) + "\n").encode()


# -- shard folders -----------------------------------------------------------------------------------------------------


def make_shards(base: Path, change=lambda folder: None) -> None:
    """Write a folder of a dense and a sparse shard, and a run on it after a change of the folder."""
    sources = base / "dense.libsvm", base / "sparse.libsvm"
    sources[0].write_bytes(text_of())
    sources[1].write_bytes(text_of(rows=20, columns=40, density=0.1, seed=1))
    convert(sources, base / "artefact")
    change(base / "artefact")
    command("svm", base / "artefact", "--grid", 3, "--tol", 1e-3, "--quiet", "-o", base / "run")


def make_old_shards(base: Path) -> None:
    make_shards(base, without_hashes)


def resumed(base: Path, folder: Path) -> bytes:
    shutil.rmtree(base / "resumed", ignore_errors=True)
    shutil.copytree(base / "run", base / "resumed")
    command("svm", folder, "--grid", 3, "--tol", 1e-3, "--quiet", "--resume", "-o", base / "resumed")
    return (base / "resumed" / "steps.csv").read_bytes()


def inspected(base: Path, folder: Path) -> str:
    return command("inspect", folder).split("\n", 1)[1]


SHARD_READERS = {
    "read into memory": lambda base, folder: ShardFolder(folder).dataset().fingerprint(),
    "svm": lambda base, folder: path_of(folder),
    "svm --scale maxabs": lambda base, folder: path_of(folder, "--scale", "maxabs", "--bias", 1),
    "svm --storage dense": lambda base, folder: path_of(folder, "--storage", "dense"), "svm --resume": resumed,
    "inspect": inspected,
}  # fmt: skip

# -- entries of a cache ------------------------------------------------------------------------------------------------


def make_cache(base: Path) -> None:
    (base / "text.libsvm").write_bytes(text_of(columns=20, density=0.3))
    cached_shards(base / "text.libsvm", base / "artefact")


def seal_cache(folder: Path) -> None:
    for entry in folder.glob("*.shards"):
        seal(entry)


def with_cache(base: Path, folder: Path) -> list:
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataCacheWarning)
        return path_of(base / "text.libsvm", "--cache", folder)


KINDS = [
    Kind("shard folder", make_shards, SHARD_READERS, seal=seal),
    Kind("shard folder of 0.1.0", make_old_shards, SHARD_READERS, seal=seal, hashed=False),
    Kind("cache entry", make_cache, {"svm --cache": with_cache}, seal=seal_cache, mends=True),
]
