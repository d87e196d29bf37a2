"""Folds on disk: a file each, replaced whole as the fold goes on, so that a crash costs a second of it and no more.

The format is private: the run that wrote the files reads them when it is resumed, and removes them when it is complete.
"""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from screenpath.cv.certify import HeldOut, Line
from screenpath.cv.folds import Split
from screenpath.errors import RunFolderError
from screenpath.write.atomic import replacing

EVERY = 1.0  # seconds between two writings of a fold under way
SHARE = 0.05  # of a fold's time that may go into writing it
STATE = "state-"
SCALARS = ("C", "radius_sq", "xi", "xi_error", "extent", "errors")


@dataclass(frozen=True)
class Saved:
    """What a file holds.

    Parameters
    ----------
    rows : list of dict
        One a grid point that is done.
    held_out : HeldOut or None
        With the lines of these points.
    state : dict
        Arrays of the reference of the next point; empty where the fold is finished.
    """

    rows: list
    held_out: HeldOut | None
    state: dict


class FoldFile:
    """File of one fold over one grid.

    Parameters
    ----------
    folder : Path
        Of the whole grid; a finer one has another.
    split : Split
    grid : sequence
    tol : float
    """

    def __init__(self, folder: Path, split: Split, grid, tol: float):
        self.path = folder / f"{split.repeat}-{split.fold}.npz"
        values = np.asarray(list(grid), dtype=np.float64)
        digest = hashlib.sha256(repr((split.repeat, split.fold, values.shape, float(tol))).encode())
        digest.update(values.tobytes())
        digest.update(np.ascontiguousarray(split.held_out, dtype=np.int64).tobytes())
        self._key = digest.hexdigest()
        self._seconds, self._since = EVERY, time.monotonic()

    def load(self) -> Saved | None:
        """Return what an earlier run left; None where it left nothing.

        Raises
        ------
        RunFolderError
            If the file is damaged, or that of another fold, grid or accuracy.
        """
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as stored:  # the format has checksums
                content = {name: stored[name] for name in stored.files}
            key, rows = json.loads(content.pop("record").tobytes())
            found = Saved(rows, _held_out(content), {n.removeprefix(STATE): v for n, v in content.items()})
        except (ValueError, KeyError, OSError, EOFError, TypeError, zipfile.BadZipFile) as error:
            raise RunFolderError(f"{self.path} is damaged ({error})", "remove it: its fold is computed again") from None
        if key != self._key:
            raise RunFolderError(f"{self.path} is that of another fold or grid", "start again with --force")
        return found

    def due(self) -> bool:
        """Tell whether the fold under way should be written again."""
        return time.monotonic() - self._since >= self._seconds

    def save(self, rows: list, held_out: HeldOut | None, state: dict) -> None:
        """Write the file anew; the arguments are those of :class:`Saved`."""
        began = time.monotonic()
        arrays = {STATE + name: array for name, array in state.items()}
        if held_out is not None:
            arrays |= _arrays(held_out)
        record = json.dumps([self._key, plain(rows)]).encode()
        with replacing(self.path) as file:
            np.savez(file, record=np.frombuffer(record, dtype=np.uint8), **arrays)
        self._since = time.monotonic()
        self._seconds = max(EVERY, (self._since - began) / SHARE)


class FoldMemory:
    """What a :class:`FoldFile` does, in memory: what a worker of a cluster begins with and sends home.

    Parameters
    ----------
    saved : Saved or None
        The beginning of the fold.
    """

    def __init__(self, saved: Saved | None):
        self.saved = saved

    def load(self) -> Saved | None:
        """Return the beginning of the fold."""
        return self.saved

    def due(self) -> bool:
        """Nothing is gained by keeping a fold under way."""
        return False

    def save(self, rows: list, held_out: HeldOut | None, state: dict) -> None:
        """Take what is to be sent home; the arguments are those of :class:`Saved`."""
        self.saved = Saved(plain(rows), held_out, state)


def plain(rows: list) -> list:
    """Return rows with Python's own numbers, as they come back from a file."""
    return [{name: value.item() if hasattr(value, "item") else value for name, value in row.items()} for row in rows]


def _arrays(held_out: HeldOut) -> dict:
    """Return the arrays of the certified bound's record of a fold."""
    lines = held_out.lines
    arrays = {"signs": held_out.signs, "norms": held_out.norms}
    arrays["scalars"] = np.array([[getattr(line, name) for name in SCALARS] for line in lines], dtype=np.float64)
    for k, line in enumerate(lines):
        arrays |= {f"center-{k}": line.center, f"products-{k}": line.products}
        if line.trained is not line.center:
            arrays[f"trained-{k}"] = line.trained
    return arrays


def _held_out(content: dict) -> HeldOut | None:
    """Undo :func:`_arrays`, taking out of ``content`` what belongs to it."""
    if "signs" not in content:
        return None
    lines = []
    for k, values in enumerate(content.pop("scalars")):
        named = dict(zip(SCALARS, values.tolist(), strict=True))
        center = content.pop(f"center-{k}")
        trained, products = content.pop(f"trained-{k}", center), content.pop(f"products-{k}")
        named["errors"] = int(named["errors"])
        lines.append(Line(center=center, trained=trained, products=products, **named))
    return HeldOut(content.pop("signs"), content.pop("norms"), lines)
