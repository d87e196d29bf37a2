"""An independent checker of certificates: none of the code that reads, screens, solves or certifies is used here.

A run with ``--certificate`` writes what it claims to ``certificate.bin`` (:mod:`screenpath.verify.file`). The checker
reads that file and the data, and forms every number again with numpy and ``math.fsum``, all rounding counted against
the claim. A step holds if

* its dual point lies in its box, and every row that is said to be fixed in the optimum is so by the ball of the pair
  that is named;
* the gap is proven to be at most ``tol`` times the exact primal value, and at most the gap that is claimed;
* the primal value is the one that is claimed, to the error that is claimed, and to ``tol`` whatever that error is;
* the gap that is claimed is at most ``tol`` times that value, too.

Then the run folder is compared with what was checked (:mod:`screenpath.verify.run`): each fact of ``run.json``, of the
step table and of the coefficients is formed again or compared, or named as not covered.

The claimed primal value is read as if written to 9 digits; the gap of an ``l1svm``, whose dual point is the checker's
own, to 12 digits of the primal value, and that of a kernel model to 15. ``tol`` has no margin, nor has the gap of any
other model.
"""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from screenpath.errors import ResourceError, RunFolderError, UsageError, file_name, folder_of
from screenpath.verify import file as form
from screenpath.verify.data import ROUNDINGS
from screenpath.verify.folds import Folds
from screenpath.verify.model import BOXES
from screenpath.verify.pairs import check_pairs
from screenpath.verify.problem import Problem
from screenpath.verify.products import check as check_steps
from screenpath.verify.removals import LeftOut
from screenpath.verify.run import FOLDED, UNREADABLE, differences, read_record
from screenpath.verify.table import open_data

PRIMAL_DIGITS = 2.0**-30
NOTHING = 2.0**-1060  # a gap of which whatever is counted for numbers that underflow may be the whole
GAP_DIGITS = 2.0**-40  # part of a claimed gap: the bounds of two programs differ in their last digits
ROWS = 1 << 21  # rows of a block times steps: bounds the memory
NUMBERS = 32  # bytes for each feature of a step: what it claims, and sums in three parts
ROOM = "check the certificate's sizes, or check it on a machine with more memory"


@dataclass
class Verification:
    """What the checker found."""

    path: str  # run folder
    steps: int = 0  # of the path,
    proven: int = 0  # and those whose every claim holds
    unclaimed: list[int] = field(default_factory=list)  # steps, or rows left out, that claim nothing
    claims: int = 0  # rows claimed to be fixed in the optimum, over all steps
    worst: float | None = None  # largest relative gap of a step that is proven
    tol: float = 0.0
    # Step (None: the folder as a whole) and reason of each claim that does not hold.
    faults: list[tuple[int | None, str]] = field(default_factory=list)
    # What was found out about each step that claims anything; its ``solution`` is as the scaled rows have it.
    pairs: dict[int, Any] = field(default_factory=dict, repr=False)
    # What the run folder says and was compared with certificate and data, and what nothing was compared with, each as
    # ``file: name``.
    covered: list[str] = field(default_factory=list, repr=False)
    uncovered: list[str] = field(default_factory=list, repr=False)
    removed: LeftOut | None = field(default=None, repr=False)  # of a leave-one-out: what its rows claim

    @property
    def holds(self) -> bool:
        return not self.faults

    def __str__(self) -> str:
        gap = "" if self.worst is None else f", worst relative gap {self.worst:.2g}"
        if self.removed is not None:
            return f"{self.path}: {self.removed} (tol {self.tol:g})"
        held = f"{self.proven} of {self.steps} steps proven, {self.claims} rows fixed{gap}"
        rest = f", {len(self.unclaimed)} steps claim nothing" if self.unclaimed else ""
        return f"{self.path}: {held} (tol {self.tol:g}){rest}"

    def record(self) -> dict:
        """Return what was found as numbers and texts that JSON has."""
        return {
            "schema_version": 1, "run": self.path, "holds": self.holds, "steps": self.steps, "proven": self.proven,
            "unclaimed": self.unclaimed, "rows_fixed": self.claims, "tol": self.tol,
            "worst_rel_gap": None if self.worst is None else float(self.worst),
            "faults": [{"step": step, "reason": reason} for step, reason in self.faults],
            "covered": self.covered, "not_covered": self.uncovered,
            **({} if self.removed is None else {"left_out": self.removed.record()}),
        }  # fmt: skip


def verify_certificate(run: str | os.PathLike[str], data: str | os.PathLike[str] | None = None) -> Verification:
    """Check the certificate of a run against its data, by code that shares nothing with what computed the run.

    ``run`` is a folder of a path command with ``--certificate``, or the file of ``loo --certificate FILE``, which needs
    ``data``: LIBSVM text or CSV, plain or compressed, Parquet, or a folder of shards by rows; by default the path that
    the run was started with. A :class:`screenpath.errors.ScreenpathError` tells that there is no certificate, that it
    is damaged, or that the data are not those of the run.
    """
    folder = folder_of(run, "use screenpath.run(MODEL, FILE, certificate=True), and pass its folder")
    data = None if data is None else file_name(data, "data", "a certificate is checked against the file of the run")
    if folder.is_file():
        return _left_out(folder, data)
    if not folder.is_dir():
        raise RunFolderError(f"{folder} is not a run folder", "give the folder of a run with `certificate`")
    hashed = form.Hashed()
    header, several = form.read_pairs(folder / form.NAME, hashed)
    record = read_record(folder)
    if record["options"].get("part"):
        part = f"{folder} is part {record['options']['part']} of a run"
        raise RunFolderError(part, "put the parts together with screenpath merge, which joins their certificates")
    if data is None:
        data = record["data"]["path"]
        if data == "-":
            raise RunFolderError("the run read standard input", "name the data file behind the run folder")
    try:
        problem = Problem(record, header, (Path(data), folder))
        how = data, str(folder), problem.watch, problem.roundings(), problem.options.get("eps_path")
    except UNREADABLE as error:
        raise form.damaged(folder / form.NAME, f"an entry is missing or of the wrong kind ({error})") from None
    steps = several[0]
    if header.get("one_vs_one"):
        steps, found = _check_pairs(header, several, *how)
    else:
        found = check(header, steps, *how)
    if not found.faults:
        with _in_words(str(folder)):
            parts = differences(folder, problem, steps, found.pairs, hashed.entry)
            found.faults, found.covered, found.uncovered = parts
    if "folds" in record["options"] and form.FOLDS not in record.get("files", ()):  # the time was up
        found.uncovered += [f"{name}: all" for name in FOLDED]
    elif not found.faults and "folds" in record["options"]:
        with _in_words(str(folder)), np.errstate(all="ignore"):
            folds = Folds(folder, problem, data, lambda pair: _judge(Verification("", tol=found.tol), pair).faults)
            folds.check()
            found.faults += [(None, fault) for fault in folds.faults]
            found.covered += dict.fromkeys(folds.covered)
            left = dict.fromkeys([*found.uncovered, *folds.uncovered])
            found.uncovered = [name for name in left if name not in folds.covered]
    return found


def _left_out(path: Path, data) -> Verification:
    """Check the certificate of a leave-one-out, which has no run folder."""
    if form.of_run(path):
        raise UsageError(f"{path} is the certificate of a run", f"name its folder: screenpath verify {path.parent}")
    if data is None:
        raise UsageError(f"{path} is a certificate without a run folder", "name the data file behind it")
    parts = form.frames(path)
    (first, *header), (second, *step) = (next(parts, (b"", {}, {})) for _ in range(2))
    problem, entry = ({**fields, **arrays} for fields, arrays in (header, step))
    good = (first, second) == (form.HEADER, form.STEP) and problem.get("model") in BOXES and entry.get("step") == 0
    if not good or "kernel" in problem:
        raise form.damaged(path, "its parts are not in order")
    found = check(problem, [{**entry, "after": None}], data, str(path))
    if found.faults or found.unclaimed:
        return found
    with _in_words(str(path)), np.errstate(all="ignore"):
        (pair,), source, whole = found.pairs.values(), open_data(data, problem, ROWS), False
        found.removed = rows = LeftOut(pair, source)
        for kind, fields, arrays in parts:
            if whole or kind not in (form.LEAVE, form.END):
                raise form.damaged(path, "its parts are not in order")
            if kind == form.LEAVE:
                rows.look(fields, arrays)
            whole = kind == form.END and rows.end(fields)
        if not whole:
            raise form.damaged(path, "it is cut short")
        found.faults += [(None, fault) for fault in rows.faults]
        found.unclaimed = rows.open
        found.covered = ["rows left out: bounds of their values, errors"]
    return found


def check(
    header: dict, steps: list, data, name: str = "certificate", watch=None, roundings: int = ROUNDINGS, epsilon=None
) -> Verification:
    """Check a certificate that has been read against a data file.

    ``watch`` gets the source before it is read; ``roundings`` are those of a weight; ``epsilon`` is of an eps-path.
    """
    with _in_words(name):
        claimed = [entry for entry in steps if entry["status"] == form.CERTIFIED]
        source = open_data(data, header, max(ROWS // max(len(claimed), 1), 1))
        if watch is not None:
            watch(source)
        header = {**header, "labels": source.mapping(), "roundings": roundings}
        _ask_for_room(name, header, len(claimed), source)
        with np.errstate(all="ignore"):  # what overflows proves nothing
            pairs = check_steps(header, claimed, source, _asked(header, steps, epsilon))
            found = Verification(name, len(steps), tol=header["tol"], claims=sum(pair.claims for pair in pairs))
            found.faults += [] if steps else [(None, "the certificate has no step")]
            found.unclaimed = [entry["step"] for entry in steps if entry["status"] != form.CERTIFIED]
            for pair in pairs:
                _judge(found, pair)
                found.pairs[pair.entry["step"]] = pair
    return found


def _check_pairs(header: dict, several: list, data, name: str, watch, roundings: int, epsilon=None) -> tuple:
    """Check a certificate of pairs of labels; return its steps, and what was found; parameters as of :func:`check`."""
    found = Verification(name, len(several[0]), tol=header["tol"])
    with _in_words(name), np.errstate(all="ignore"):
        source = open_data(data, header, ROWS)
        watch(source)
        _ask_for_room(name, header, len(several[0]), source)
        names = ["/".join(map(str, pair)) for pair in combinations(header["labels"]["classes"], 2)]

        def judge(k: int, pair) -> None:
            found.claims += pair.claims
            _judge(found, pair, f"labels {names[k]}, ")

        problem = {**header, "roundings": roundings}
        steps, found.pairs = check_pairs(problem, several, source, judge, _asked(header, several[0], epsilon))
    found.faults += [] if steps else [(None, "the certificate has no step")]
    found.unclaimed = [entry["step"] for entry in steps if entry["status"] != form.CERTIFIED]
    found.proven = len(found.pairs.keys() - {step for step, _ in found.faults})
    return steps, found


@contextlib.contextmanager
def _in_words(name: str):
    """Turn what an entry of the wrong kind or size raises into the error of a damaged certificate."""
    try:
        yield
    except MemoryError as error:
        raise ResourceError(f"{name}: checking takes more memory than there is ({error})", ROOM) from None
    except form.UNFIT as error:
        raise form.damaged(name, f"an entry is missing or of the wrong kind ({error})") from None


def _ask_for_room(name: str, header: dict, claimed: int, source) -> None:
    """Raise where what the checker keeps, as the certificate's sizes say, is more than the machine has."""
    classes = max(len((header["labels"] or {}).get("classes", ())), 1)
    needed = NUMBERS * classes * claimed * (source.d + 1) + 8 * source.n
    needed += np.dtype(np.longdouble).itemsize * source.n * source.d if "kernel" in header else 0
    if needed > form.memory():
        raise ResourceError(f"{name}: checking takes {needed:,} bytes, more than this machine has", ROOM)


def _asked(header: dict, steps: list, epsilon: float | None):
    """Return what tells whether a step is proven as it stands: within the gap that it claims, without more digits."""

    def proven(pair) -> bool:
        if not pair.gap <= pair.entry["gap"] or _judge(Verification("", tol=header["tol"]), pair).faults:
            return False
        place = pair.entry["step"] + 1
        return epsilon is None or all(pair.serves(after["C"], epsilon) for after in steps[place : place + 1])

    return proven


def _judge(found: Verification, pair, of: str = "") -> Verification:
    """Add the verdict about a step, of which labels if it is that of two of them, and return what was found."""
    entry, (primal, error), gap = pair.entry, pair.primal, pair.gap
    least, faults = primal - error, list(dict.fromkeys(pair.faults))
    if not all(isinstance(entry[name], float) for name in ("primal", "primal_error", "gap")):
        faults.append("the primal value, its error or the gap is claimed to be what is no double")
    relative = gap / least if least > 0.0 else 0.0 if gap == 0.0 else math.inf
    if not gap <= found.tol * least * (1.0 - 2.0**-50) < math.inf and not gap == 0.0 == least:
        faults.append(f"the relative gap is not proven to be below {found.tol:g} (only {relative:.3g})")
    if not gap <= entry["gap"] * (1.0 + GAP_DIGITS) + pair.digits * least + NOTHING:
        rounded = ", with the weights' rounding, which earlier versions did not count" if pair.model.inexact else ""
        faults.append(f"the gap is claimed to be {entry['gap']:.17g}, proven is {gap:.17g}{rounded}")
    if not entry["gap"] <= found.tol * (primal + error) * (1.0 + 2.0**-50) + pair.digits * least < math.inf:
        faults.append(f"the gap is claimed to be {entry['gap']:.17g}, a relative one above {found.tol:g}")
    apart = abs(entry["primal"] - primal)
    near = apart <= max(PRIMAL_DIGITS, found.tol) * least + error  # an error that is claimed could be any
    if not (near and apart + error <= entry["primal_error"] + PRIMAL_DIGITS * least < math.inf):
        faults.append(f"the primal value is claimed to be {entry['primal']:.17g}, it is {primal:.17g}")
    if not faults:
        found.proven += 1
        found.worst = relative if found.worst is None else max(found.worst, relative)
    where = of + ", ".join(f"{name} = {entry[name]:.6g}" for name in form.PARAMETERS if name in entry)
    found.faults += [(entry["step"], f"{where}: {fault}") for fault in faults]
    return found
