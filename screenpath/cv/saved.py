"""Folds on disk: one file each, rewritten as the fold proceeds, so that a crash costs about a second of it.

The format is private: the run that wrote the files reads them when it is resumed, and removes them when it is complete.
Each file holds a hash of its content, and a key made of the run, the fold, the grid and the tolerance.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from screenpath.catalogue.scores import SCORES
from screenpath.cv.certify import LARGEST, FreeLine, HeldOut, Line
from screenpath.cv.folds import Split
from screenpath.data.safe.values import is_number
from screenpath.errors import RunFolderError
from screenpath.numbers import states
from screenpath.regions.lever import RANGE_SIZES
from screenpath.store.archive import load_archive, save_archive

COLUMNS = (
    "status", "rel_gap", "rejection_ratio", "nnz_w", "epochs", "passes", "screen_s", "solve_s", "certify_s",
)  # fmt: skip
FURTHER = {score.column for score in SCORES.values()}  # columns of scores besides the one that chooses
EVERY = 1.0  # seconds between two writings of a fold under way
SHARE = 0.05  # of a fold's time that may go into writing it
STATE, PRODUCTS, PROOFS, SIZES = "state-", "products", "proofs", "sizes"
SCALARS = ("radius_sq", "xi", "xi_error", "extent")
HUGE = 1e150  # no scalar is larger: their squares are finite


@dataclass(frozen=True)
class FoldPath:
    """The path of one fold over one grid."""

    split: Split
    rows: list[dict]  # one a grid point that was reached: parameters, score and the columns of ``COLUMNS``
    held_out: HeldOut | None = None  # for the certified bound
    # with ``Task.keep``: linear forms of the held-out samples, one array a grid point
    products: list[np.ndarray] = field(default_factory=list)
    # arrays of the reference of the next point; empty where no point can follow
    state: dict = field(default_factory=dict)
    # with ``Task.proves``: the frame of the fold and those of its grid points, for ``folds.bin``
    proofs: list[bytes] = field(default_factory=list)

    def only(self, values: set) -> FoldPath:
        return self._of({C: point for C, point in self._points().items() if C in values})

    def merged(self, other: FoldPath) -> FoldPath:
        """Return the points of both in the order of C; at the same C those of ``other``."""
        return self._of(self._points() | other._points())

    def _points(self) -> dict[float, tuple]:
        """Return row, line, linear forms and frame of each C; None for what is not kept."""
        parts = zip_longest(self.rows, self.held_out.lines, self.products, self.proofs[1:])
        return {point[0]["C"]: point for point in parts}

    def _of(self, points: dict[float, tuple]) -> FoldPath:
        columns = zip(*(points[C] for C in sorted(points)), strict=True) if points else [()] * 4
        rows, lines, products, proofs = ([one for one in column if one is not None] for column in columns)
        held_out = replace(self.held_out, lines=lines)
        return FoldPath(self.split, rows, held_out, products, proofs=[*self.proofs[:1], *proofs])


class FoldFile:
    """File of one fold over one grid, in the folder of this grid; a finer one has a folder of its own.

    ``run`` is the key of data and options (``store.folder.run_key``), ``width`` the entries of a line's centre, where
    the file is to have lines. If the grid ``grows``, points may follow after it: then the reference of the next one is
    kept.
    """

    def __init__(
        self, folder: Path, split: Split, grid, tol: float, run: str = "", width: int | None = None,
        grows: bool = False,
    ):  # fmt: skip
        self.path = folder / f"{split.repeat}-{split.fold}.npz"
        values = np.asarray(list(grid), dtype=np.float64)
        digest = hashlib.sha256(repr((run, split.repeat, split.fold, values.shape, float(tol))).encode())
        digest.update(values.tobytes())
        digest.update(np.ascontiguousarray(split.held_out, dtype=np.int64).tobytes())
        self._key, self._grid = digest.hexdigest(), values.reshape(values.shape[0], -1)
        self._split, self._width, self._grows = split, width, grows
        self._seconds, self._since = EVERY, time.monotonic()

    def load(self) -> FoldPath | None:
        """Return the path that an earlier run has stored; None where there is none."""
        if not self.path.exists():
            return None
        try:
            content = load_archive(self.path)
            key, rows, counts = json.loads(content.pop("record").tobytes())
            if key != self._key:
                what = f"{self.path} is that of another run, fold or grid"
                raise RunFolderError(what, "remove it: its fold is computed again")
            self._check_rows(rows)
            products = list(content.pop(PRODUCTS, ()))
            if products and (len(products), len(products[0])) != (len(rows), self._split.held_out.size):
                raise ValueError("its linear forms are those of other rows")
            proofs = _proofs(content, len(rows))
            points = self._grid[: len(rows), 0].tolist()
            held_out = _held_out(content, counts, self._split.held_out.size, points, self._width)
            if held_out is None and self._width is not None:
                raise ValueError("there are no lines")
            state = {name.removeprefix(STATE): value for name, value in content.items()}
            if bool(state) != (self._grows or len(rows) < self._grid.shape[0]):
                raise ValueError("it does not say how far the fold had come")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise damaged(self.path, error) from None
        return FoldPath(self._split, rows, held_out, products, state, proofs)

    def _check_rows(self, rows) -> None:
        """Raise a ValueError unless there is a complete row for each of the first grid points."""
        if not isinstance(rows, list) or not 0 < len(rows) <= self._grid.shape[0]:
            raise ValueError("its rows are not those of the grid")
        for row, point in zip(rows, self._grid.tolist(), strict=False):
            if not isinstance(row, dict) or not isinstance(row["status"], str):
                raise ValueError("a row is no record")
            numbers = {name: value for name, value in row.items() if name != "status"}
            if not all(isinstance(value, (int, float)) for value in numbers.values()):
                raise ValueError("a row holds something else than numbers")
            given = [numbers.pop(name) for name in ("score", *COLUMNS[1:], *numbers.keys() & FURTHER)]
            if list(numbers.values()) != point or not all(map(is_number, given[2:])):
                raise ValueError("a row is that of another grid point")

    def due(self) -> bool:
        return time.monotonic() - self._since >= self._seconds

    def save(self, rows: list, held_out: HeldOut | None, state: dict, products: list, proofs: list) -> None:
        began = time.monotonic()
        arrays = {STATE + name: array for name, array in state.items()}
        arrays |= {PRODUCTS: np.array(products)} if products else {}
        arrays |= {PROOFS: np.frombuffer(b"".join(proofs), np.uint8), SIZES: np.array([*map(len, proofs)], np.int64)}
        counts: list = []
        if held_out is not None:
            arrays |= _arrays(held_out)
            # As text: int64 may not hold them.
            counts = [held_out.weights.tolist(), [int(line.errors) for line in held_out.lines]]
        record = json.dumps([self._key, plain(rows), counts]).encode()
        save_archive(self.path, {"record": np.frombuffer(record, dtype=np.uint8), **arrays})
        self._since = time.monotonic()
        self._seconds = max(EVERY, (self._since - began) / SHARE)


def damaged(path: Path | None, why) -> RunFolderError:
    """Return the error of a damaged fold; ``path`` is None where its beginning came from another process."""
    why = f"there is no {why}" if isinstance(why, KeyError) else why
    if path is None:
        return RunFolderError(f"the beginning of a fold is damaged ({why})", "start again with `force`")
    return RunFolderError(f"{path} is damaged ({why})", "remove it: its fold is computed again")


def _proofs(content: dict, steps: int) -> list[bytes]:
    """Return the frames of a fold, removing them from ``content``; none where none were kept."""
    data, sizes = content.pop(PROOFS).tobytes(), content.pop(SIZES).tolist()
    if len(sizes) not in (0, steps + 1) or min(sizes, default=0) < 0 or sum(sizes) != len(data):
        raise ValueError("its frames are those of other rows")
    ends = np.cumsum(sizes).tolist()
    return [data[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def plain(rows: list) -> list:
    """Return rows with Python's own numbers, as a file gives them back."""
    return [{name: value.item() if hasattr(value, "item") else value for name, value in row.items()} for row in rows]


def _arrays(held_out: HeldOut) -> dict:
    lines = held_out.lines
    arrays = {"signs": held_out.signs, "norms": held_out.norms, "at": np.array([line.C for line in lines])}
    for k, line in enumerate(lines):
        if isinstance(line, FreeLine):
            found = line.arrays()
        else:
            found = {"center": line.center, "products": line.products}
            found |= {} if line.trained is line.center else {"trained": line.trained}
            found["scalars"] = np.array([getattr(line, name) for name in SCALARS], dtype=np.float64)
        arrays |= {f"{name}-{k}": array for name, array in found.items()}
    return arrays


def _held_out(content: dict, counts: list, size: int, points: list, width: int | None) -> HeldOut | None:
    """Undo :func:`_arrays`, removing its arrays from ``content``; ``counts`` are weights of samples, errors of lines.

    A ValueError unless it has ``size`` held-out samples and the values of C ``points``.
    """
    if "signs" not in content:
        return None
    signs, norms = states.vector(content, "signs", size, -1.0, 1.0), states.vector(content, "norms", size, 0.0)
    if states.vector(content, "at", len(points)).tolist() != points:
        raise ValueError("its lines are those of another grid")
    whole, errors = counts
    if (len(whole), len(errors)) != (size, len(points)) or any(type(n) is not int or n < 0 for n in (*whole, *errors)):
        raise ValueError("its counts are not whole numbers of at least 0")
    levers, lines = 2 * len(RANGE_SIZES), []
    width = np.size(content.get("center-0", ())) if width is None else width
    free = {"pair": (9,), "forms": (2, size), "levers": (3, levers), "apart": (levers, size)}
    for k, C in enumerate(points):
        shapes = free if f"pair-{k}" in content else {"center": (width,), "products": (size,)}
        found: dict[str, Any] = {name: states.matrix(content, f"{name}-{k}", shape) for name, shape in shapes.items()}
        if shapes is not free:
            known = f"trained-{k}" in content
            found["trained"] = states.matrix(content, f"trained-{k}", (width,)) if known else found["center"]
            values = states.vector(content, f"scalars-{k}", len(SCALARS), 0.0, HUGE).tolist()
            found |= zip(SCALARS, values, strict=True)
        lines.append((FreeLine if shapes is free else Line)(C=C, **found, errors=errors[k]))
    for name in [name for name in content if not name.startswith(STATE)]:
        del content[name]
    return HeldOut(signs, norms, np.array(whole, dtype=np.int64 if sum(whole) < LARGEST else object), lines)
