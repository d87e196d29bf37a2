"""What is stored, and who reads it: the kinds of artefacts that ``fuzz_artefacts`` damages, each an entry of KINDS."""

from __future__ import annotations

import bz2
import contextlib
import csv
import functools
import gzip
import io
import lzma
import shutil
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np

from screenpath.cli.app import run as run_command
from screenpath.data.files.libsvm import read_libsvm
from screenpath.data.shards.convert import DataCacheWarning, cached_shards, convert
from screenpath.data.shards.shards import ShardFolder
from screenpath.errors import ScreenpathError
from screenpath.report.console import Console
from screenpath.store import folder as folders
from screenpath.store.archive import FAULTS, read_npz, save_archive
from screenpath.store.record import CHECKPOINT
from screenpath.verify import verify_certificate
from screenpath.verify.file import NAME
from tests.run_folders import reseal
from tests.shard_folders import seal, without_hashes

TIMES = ("screen_s", "solve_s", "certify_s", "init_s")


@dataclass(frozen=True)
class Kind:
    """A kind of artefact.

    Parameters
    ----------
    name : str
    make : callable
        ``make(base)`` writes the artefact to ``base / "artefact"``, and what its readers need beside it to ``base``.
    readers : dict of str to callable
        ``reader(base, artefact)`` returns what it has read, as something that can be compared; ``artefact`` is a
        damaged copy. A reader that finds a fault raises a ScreenpathError.
    seal : callable, optional
        ``seal(artefact)`` makes the hashes fit what is there: the work of somebody who makes artefacts up. What is read
        then may differ; it must not crash.
    hashed : bool
        Whether damage to any byte can be noticed. Where there is no hash, results may differ.
    meant : callable, optional
        ``meant(artefact)`` tells that damage has made something that is an artefact as good as the first one.
    mends : bool
        Readers may not even fail: what is damaged is made again.
    """

    name: str
    make: Callable
    readers: dict[str, Callable]
    seal: Callable | None = None
    hashed: bool = True
    meant: Callable | None = None
    mends: bool = False


class Refused(ScreenpathError):
    """A command ended with exit code 1 or 2 and one clear error."""


def command(*arguments) -> str:
    """Run a command in this process and return its output, without times.

    Raises
    ------
    Refused
        For a clear error. Whatever else it raises is a failure.
    """
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
    "svm --storage dense": lambda base, folder: path_of(folder, "--storage", "dense"),
    "svm --resume": resumed,
    "inspect": inspected,
}

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


# -- compressed text ---------------------------------------------------------------------------------------------------

PACK = {"gz": lambda text: gzip.compress(text, mtime=0), "bz2": bz2.compress, "xz": lzma.compress}
HALVES = text_of(), text_of(seed=1)


@functools.cache
def streams(ending: str) -> tuple[bytes, bytes]:
    return tuple(PACK[ending](half) for half in HALVES)


def make_archives(base: Path) -> None:
    (base / "artefact").mkdir()
    for ending in PACK:
        (base / "artefact" / f"text.{ending}").write_bytes(b"".join(streams(ending)))


def other_streams(folder: Path) -> bool:
    """Tell whether an archive is one of the streams alone: nobody can know that there was another."""
    found = ((streams(ending), folder / f"text.{ending}") for ending in PACK)
    return any(file.is_file() and _without_zeros(file.read_bytes()) in map(_without_zeros, two) for two, file in found)


def _without_zeros(data: bytes) -> bytes:
    return data.rstrip(b"\0")


def read_archive(ending: str) -> Callable:
    return lambda base, folder: read_libsvm(folder / f"text.{ending}").fingerprint()


# -- run folders -------------------------------------------------------------------------------------------------------

RUN = ("svm", "text.libsvm", "--intercept", "none", "--grid", 4, "--tol", 1e-3, "--certificate", "--quiet")


def walked(base: Path, run: Path, *options) -> int:
    with contextlib.redirect_stderr(io.StringIO()):
        return run_command(
            [str(base / word) if word == "text.libsvm" else str(word) for word in (*RUN, "-o", run, *options)]
        )


def make_run(base: Path) -> None:
    (base / "text.libsvm").write_bytes(text_of())
    assert walked(base, base / "artefact") == 0


def make_stopped_run(base: Path) -> None:
    """Write a run that a signal ended behind its second step: its files are complete, with a checkpoint."""

    def stop(console, step):
        if step.step == 1:
            signal.raise_signal(signal.SIGTERM)

    (base / "text.libsvm").write_bytes(text_of())
    with patch.object(folders, "EVERY", 0.0), patch.object(Console, "advance", stop):
        assert walked(base, base / "artefact") == 143


def make_killed_run(base: Path) -> None:
    """Write a run that was killed behind its last step: partial files, their progress, and a checkpoint."""
    (base / "text.libsvm").write_bytes(text_of())
    with (
        patch.object(folders, "EVERY", 0.0),
        patch.object(folders.RunFolder, "finish", lambda *_: None),
        patch("screenpath.store.certificates.CertificateFile.finish", lambda *_: (NAME, None)),
    ):
        assert walked(base, base / "artefact") == 0


def resumed_run(base: Path, run: Path) -> list:
    """Resume a copy of a run; return its steps, coefficients and certificate.

    Raises
    ------
    Refused
        Also where a finished run is complete but for a file that was removed, or is another with a hash that fits.
    """
    shutil.rmtree(base / "resumed", ignore_errors=True)
    shutil.copytree(run, base / "resumed")
    command(*(base / word if word == "text.libsvm" else word for word in RUN), "--resume", "-o", base / "resumed")
    try:
        table, *rest = ((base / "resumed" / name).read_bytes() for name in ("steps.csv", "coefficients.csv", NAME))
        return [without_times(table.decode()), *rest]
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(str(error)) from None


def seal_run(run: Path) -> None:
    with contextlib.suppress(*FAULTS):
        save_archive(run / CHECKPOINT, read_npz(run / CHECKPOINT))
    reseal(run)


def without_coefficients(run: Path) -> bool:
    """Tell whether the coefficients are gone: a large table may be removed, and pictures and pages do without."""
    return not (run / "coefficients.csv").exists()


PREDICTING = {
    "predict": lambda base, run: command("predict", run, base / "text.libsvm", "--step", 0),
    "export": lambda base, run: command("export", run, "--step", 0, "--to", "json", "-o", "-"),
    "svm --resume": resumed_run,
}
RUN_READERS = {
    **PREDICTING,
    "plot": lambda base, run: command("plot", run, "--terminal"),
    "plot --kind coefficients": lambda base, run: command("plot", run, "--terminal", "--kind", "coefficients"),
    "report": lambda base, run: command("report", run, "-o", "-"),
    "verify": lambda base, run: command("verify", run),
    "verify_certificate": lambda base, run: _holds(run),
}


def _holds(run: Path) -> int:
    """Return how many steps are proven.

    Raises
    ------
    Refused
        If a claim does not hold.
    """
    found = verify_certificate(run)
    if not found.holds:
        raise Refused(str(found.faults[0]))
    return found.proven


# -- all of them -------------------------------------------------------------------------------------------------------

KINDS = [
    Kind("shard folder", make_shards, SHARD_READERS, seal=seal),
    Kind("shard folder of 0.1.0", make_old_shards, SHARD_READERS, seal=seal, hashed=False),
    Kind("cache entry", make_cache, {"svm --cache": with_cache}, seal=seal_cache, mends=True),
    Kind("run folder", make_run, RUN_READERS, seal=seal_run, meant=without_coefficients),
    Kind("stopped run folder", make_stopped_run, RUN_READERS, seal=seal_run, meant=without_coefficients),
    Kind("killed run folder", make_killed_run, PREDICTING, seal=seal_run),
    Kind("compressed text", make_archives, {name: read_archive(name) for name in PACK}, meant=other_streams),
]
