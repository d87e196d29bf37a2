"""Read run folders: the record, the step table and the coefficients of finished and unfinished runs."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from screenpath.catalogue.scores import best_and_one_se, higher_is_better
from screenpath.catalogue.spec import Spec
from screenpath.catalogue.specs import SPECS
from screenpath.data.files.dataset import Form
from screenpath.data.safe.atomic import prefix_sha256
from screenpath.data.words.labels import NamedLabel, label_text, of_text, pair_labels
from screenpath.data.words.numerals import number_of
from screenpath.errors import DataError, NoStep, RunFolderError, UsageError
from screenpath.numbers import sparse as sp
from screenpath.store import record as records
from screenpath.store.coefficients import NPZ, Layout, read_matrix, step_of_nu
from screenpath.store.folder import Progress, run_key
from screenpath.store.record import damaged, read_steps

if TYPE_CHECKING:
    from screenpath.data.files.prepare import Preparation

NEAR = 1e-3  # relative tolerance of a parameter given to --step
SHOWN = 5  # steps listed in a message
UNLABELLED = 0.0  # stands for "no label" in files, unless it is a label of the run
TRIES = 3  # attempts to read a folder that a run is changing


@dataclass(frozen=True)
class Run:
    """The content of a run folder."""

    path: Path
    record: dict  # content of run.json
    steps: list[dict]  # rows of the step table that have a solution, numbers as numbers; missing values are None
    # (Path, int): file of the coefficients, and how many of its bytes belong to the steps; None if there is none
    stored: tuple | None = None
    notices: list[str] = field(default_factory=list)  # what a user should know
    table: list[dict] = field(default_factory=list)  # all rows of the step table

    def __repr__(self) -> str:
        return f"<Run: {self.model} in {self.path}, {len(self.steps)} steps>"

    def has(self, name: str) -> bool:
        """Tell whether a further file (``cv.json``) belongs to the run: run.json must list it."""
        listed, there = self.record.get("files"), (self.path / name).is_file()
        if listed is not None and name in listed and not there:
            raise damaged(self.path, f"there is no {name}")
        return there and (listed is None or name in listed)

    @property
    def model(self) -> str:
        return self.record["model"]

    @property
    def parameters(self) -> list:
        """Return ``["C"]``, ``["lambda"]`` or ``["alpha", "beta"]``."""
        return self.record["parameters"]

    @cached_property
    def labels(self) -> dict | None:
        """Return the label map: ``+1`` and ``-1``, or ``classes``; None for a regression.

        Labels are numbers; text labels are :class:`NamedLabel`.
        """
        labels, names = self.record.get("labels"), self.label_names

        def label(one):
            if names is None:
                return of_text(one)
            return NamedLabel(names.index(one), one) if one in names else one

        if labels is None:
            return labels
        return {side: [*map(label, one)] if side == "classes" else label(one) for side, one in labels.items()}

    @property
    def label_names(self) -> tuple[str, ...] | None:
        """Return the names of the labels 0, 1, ..., if they are texts."""
        names = self.record["data"].get("label_names")
        return None if names is None else tuple(names)

    @property
    def form(self) -> Form | None:
        table = self.record["data"].get("table")
        return None if table is None else Form.of_record(table)

    def declared(self) -> Spec:
        """Return the declaration of the model; an unknown model is an error."""
        if self.model not in SPECS:
            what = f"{self.path} holds a run of the model '{self.model}'"
            raise RunFolderError(what, f"this works for {', '.join(SPECS)}")
        return SPECS[self.model]

    @property
    def sides(self) -> list:
        """Return the labels of a classifier, of two the negative class first; empty for a regression."""
        return self.classes or ([self.labels["-1"], self.labels["+1"]] if self.labels else [])

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Return known labels or targets of new data as those that the model was trained on."""
        rest = self.labels is not None and self.labels.get("-1") == "rest"
        positive = self.labels["+1"] if rest else None  # of one against the rest
        return np.asarray(SPECS[self.model].targets(y, {"positive": positive}, self.labels)[0])

    def known(self, y: np.ndarray) -> np.ndarray:
        """Tell which rows have a label, or a target; nan means none, and so does 0 where it is not a label.

        Any other label unknown to a classifier is an error: the file belongs to another task.
        """
        labels = self.sides
        if not labels or "rest" in labels:
            return np.isfinite(y)
        known = np.isin(y, labels)
        strange = y[~known & (y != UNLABELLED) & np.isfinite(y)]
        if strange.size:
            names = ", ".join(label_text(label) for label in sorted(labels))
            what = f"the data has the label {label_text(strange[0])}; the run is a classifier of the labels {names}"
            hint = "predict data of the same task; write the label ? where it is unknown, or use `no_labels`"
            raise DataError(what, hint)
        return known

    @property
    def classes(self) -> list | None:
        """Return the labels of a model with weights for each class; None for others."""
        return (self.labels or {}).get("classes")

    @property
    def voting(self) -> bool:
        """Tell whether there are weights for each pair of classes, whose votes decide."""
        return bool(self.classes) and bool(self.record["options"].get("one_vs_one"))

    @property
    def blocks(self) -> list | None:
        """Return what the sets of weights are of: the classes, or their pairs; None where there is one set."""
        return pair_labels(self.classes) if self.voting else self.classes

    @property
    def n_features(self) -> int:
        return self.record["data"]["n_features"]

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        names = self.record["data"].get("feature_names")
        return None if names is None else tuple(names)

    @property
    def kernel(self) -> str | None:
        """Return the name of the kernel; None for a linear model. Coefficients of a kernel model belong to samples."""
        return (self.record.get("kernel") or {}).get("kernel")

    @property
    def unit(self) -> str:
        return "sample" if self.kernel else "feature"

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """Return the numbers, from 1, of the features that have a weight; None if all have one."""
        features = self.record["preparation"].get("features")
        return None if features is None else np.array(features, dtype=np.int64)

    @property
    def fill(self) -> np.ndarray | None:
        """Return what takes the place of a missing value in each feature that has a column; None if nothing does."""
        values = self.record["preparation"].get("fill")
        return None if values is None else np.array(values, dtype=np.float64)

    @property
    def n_columns(self) -> int:
        """Return how many features have a column: all, except in wide data of which most never occur."""
        return self.n_features if self.numbers is None else self.numbers.size

    @property
    def preparation(self) -> Preparation:
        """Return the preparation of new rows, without a constant feature."""
        from screenpath.data.files.prepare import Preparation  # with all that reads data

        p, columns = self.record["preparation"], None if self.numbers is None else self.numbers - 1
        scale, shift = (None if p.get(name) is None else np.array(p[name]) for name in ("scale", "shift"))
        size = self.n_columns, columns, self.n_features
        return Preparation(p.get("scaling", "none"), scale, shift, 0.0, *size, fill=self.fill)

    @property
    def width(self) -> int:
        """Return the number of features, or of samples for a kernel model."""
        return self.record["data"]["n_samples" if self.kernel else "n_features"]

    @property
    def score_column(self) -> str | None:
        """Return the column that ranks the steps: of cross-validation, else of the test data, else None."""
        columns = self.record["columns"]
        validated = [name for name in columns if f"{name}_se" in columns]
        return next((name for name in (*validated, *columns) if name.startswith(("cv_", "test_"))), None)

    @property
    def cross_validated(self) -> bool:
        return (self.score_column or "").startswith("cv_")

    def describe(self, step: dict) -> str:
        """Return ``step 3 (C = 0.1)``."""
        values = ", ".join(f"{name} = {step[name]:.6g}" for name in self.parameters)
        return f"step {step['step']} ({values})"

    def choose(self, text: str) -> dict:
        """Return the row of the step that ``--step`` names: ``best`` (highest score or lowest error of cross-validation
        or on the test data), ``one-se`` (the most regularised within one standard error of it), the number of a
        step, ``NAME=VALUE``, several joined by commas, or ``nu=VALUE`` (:func:`step_of_nu`). Ties go to the first in
        the order of the walk, the most regularised. An unknown step is a :class:`UsageError` that lists the steps.
        """
        if text in ("best", "one-se"):
            return self._best(text == "one-se")
        if "=" in text:
            return self._nearest(text)
        try:
            number = int(text)
        except ValueError:
            raise UsageError(f"`step='{text}'` is not a step", f"use best, one-se, a number, or {self._form}") from None
        for row in self.steps:
            if row["step"] == number:
                return row
        raise UsageError(f"{self.path} has no solution of step {number}", self._existing())

    @property
    def _form(self) -> str:
        return ",".join(f"{name}=VALUE" for name in self.parameters)

    def _best(self, one_se: bool = False) -> dict:
        column = self.score_column
        scored = [row for row in self.steps if column and row[column] is not None]
        if one_se and not self.cross_validated:
            best = "use `step=best`, or " if scored else ""
            raise UsageError(f"{self.path} has no standard errors", f"{best}compute it with screenpath cv")
        if not scored and self.cross_validated:
            raise UsageError(f"{self.path}: no step has a score of all folds yet", "continue the run with `resume`")
        if not scored:
            what = f"{self.path} was computed without `test`: no step is known to be the best"
            raise UsageError(what, f"name one with `step`, or cross-validate (screenpath cv); {self._existing()}")
        mean = np.array([row[column] for row in scored])
        se = np.array([row[f"{column}_se"] for row in scored], dtype=float) if one_se else np.zeros(mean.size)
        return scored[best_and_one_se(mean, se, higher_is_better(column))[1 if one_se else 0]]

    def _nearest(self, text: str) -> dict:
        wanted, digits = {}, {}
        for part in text.split(","):
            name, _, value = part.partition("=")
            try:
                wanted[name.strip()] = number_of(value)
                digits[name.strip()] = len(re.sub(r"[eE].*|[^0-9]", "", value).lstrip("0")) - 1
            except ValueError:
                what = f"'{value}' is not a number" if value else f"'{part}' is no NAME=VALUE"
                comma = len(self.parameters) == 1 and text.count(",") == 1
                point = f"write {text.replace(',', '.')}; " if comma else ""
                raise UsageError(f"`step='{text}'`: {what}", point + self._existing()) from None
        if list(wanted) == ["nu"]:
            return step_of_nu(self, wanted["nu"])
        if sorted(wanted) != sorted(self.parameters):
            raise UsageError(f"`step='{text}'` does not name the parameters of {self.model}", f"write {self._form}")

        def distance(row):
            return max(abs(row[n] - v) / max(abs(row[n]), abs(v), 1e-300) for n, v in wanted.items())

        ranked = sorted(self.steps, key=distance)
        near = [row for row in ranked if distance(row) <= NEAR]
        if len(near) == 1 or (near and distance(near[0]) < 1e-9):
            return near[0]
        # To one digit, steps that are 1.5 times larger would round to it.
        rounded = [
            row for row in ranked
            if all(digits[n] >= 1 and f"{row[n]:.{digits[n]}e}" == f"{v:.{digits[n]}e}" for n, v in wanted.items())
        ]  # fmt: skip
        if len(rounded) == 1:
            return rounded[0]
        nearest = "the nearest are " + "; ".join(self.describe(row) for row in ranked[:SHOWN])
        if near or rounded:
            raise UsageError(f"several steps are {text}, rounded", nearest)
        raise NoStep(f"no step is within {NEAR:g} of {text}", nearest, wanted)

    def _existing(self) -> str:
        rows = self.steps
        if len(rows) <= SHOWN:
            return "the steps are " + "; ".join(self.describe(row) for row in rows)
        return f"the steps are {self.describe(rows[0])} to {self.describe(rows[-1])}"

    # -- coefficients --------------------------------------------------------------------------------------------

    def coefficients(self, step: dict) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and intercepts of a step, a row of the table, in the units of the data file; of a kernel model
        ``y_i alpha_i``.

        Weights have the shape (k, d): one row, or one per class in the order of ``classes``, and a weight for each of
        ``numbers``, or of all features; intercepts (k,). A file that is missing, unreadable, or holds less than the
        step table says is a :class:`RunFolderError`.
        """
        k = self.layout.blocks
        try:
            matrix = self.matrix if "matrix" in vars(self) else self._read(step["step"])
            block = matrix[step["step"] * k : (step["step"] + 1) * k].toarray()
        except ValueError:
            block = np.zeros((0, 0))
        # nnz_w may include the weights of the constant features, which are the intercepts.
        if block.shape[0] != k or np.count_nonzero(block[:, 1:]) < (step["nnz_w"] or 0) - k:
            raise damaged(self.path, f"the coefficients of step {step['step']} are not complete")
        return block[:, 1:], block[:, 0]

    def deciding(self, step: dict) -> tuple[np.ndarray, np.ndarray]:
        """Return :meth:`coefficients` with intercepts less the threshold of the step: +1 is where the form is above 0.
        """
        weights, intercepts = self.coefficients(step)
        return weights, intercepts - (step.get("threshold") or 0.0)

    def sigmoid(self, step: dict) -> dict[str, float]:
        """Return slope and offset of the probability of +1 in the linear forms of :meth:`deciding`."""
        if (slope := step.get("sigmoid_slope")) is None:
            why = f"{self.path} has no probabilities at step {step['step']}"
            raise UsageError(why, "`screenpath cv` fits them with `calibrate`")
        return {"slope": slope, "offset": step["sigmoid_offset"] + slope * (step.get("threshold") or 0.0)}

    def blank(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what :meth:`coefficients` would of a step without a solution: nan."""
        d = self.width if self.kernel else self.n_columns
        return np.full((self.layout.blocks, d), np.nan), np.full(self.layout.blocks, np.nan)

    def sparse_coefficients(self, step: int) -> list[tuple]:
        """Return a pair per class: features as the file numbers them, 0 the intercept, and values, stored zeros too."""
        k, numbers = self.layout.blocks, self.layout.numbers
        numbers = None if numbers is None else np.append(0, numbers)
        found = []
        for row in range(step * k, (step + 1) * k):
            part = slice(*self.matrix.indptr[row : row + 2])
            features = self.matrix.indices[part]
            found.append((features if numbers is None else numbers[features], self.matrix.data[part]))
        return found

    @property
    def layout(self) -> Layout:
        numbers, names = (None, None) if self.kernel else (self.numbers, self.feature_names)
        return Layout(self.width, self.unit, self.blocks, numbers, names)

    @cached_property
    def matrix(self) -> sp.csr_array:
        """Return all coefficients, shape (steps x classes, 1 + d), intercepts first; d as in :meth:`coefficients`."""
        return self._read(None)

    def _read(self, step: int | None) -> sp.csr_array:
        """Return the matrix of all coefficients, or with the rows of one step alone; all are checked."""
        if self.model not in SPECS:
            what = f"{self.path} holds a run of another kind: its solutions are not weights of features"
            raise RunFolderError(what, f"this works for {', '.join(SPECS)}")
        lost = lost_coefficients(self.path, self.record)
        if self.stored is None and lost:
            raise RunFolderError(f"{self.path} has lost its {lost}", "compute it again with `force`")
        if self.stored is None:
            what = f"{self.path} has no coefficients"
            raise RunFolderError(what, "compute the path with `coefficients=csv` or npz, into a run folder")
        last = max((row["step"] for row in self.steps), default=-1)
        asked = (self.record.get("totals") or {}).get("n_steps", 0)
        return read_matrix(self.stored, self.layout, last, asked, step)


def open_run(path) -> Run:
    """Read and check a run folder; an unfinished run has the steps done so far, and a notice."""
    path = Path(path)
    for _ in range(TRIES - 1):
        seen = _moment(path)
        try:
            return _read(path)
        except RunFolderError:
            if _moment(path) == seen:  # otherwise the run has continued meanwhile
                raise
    return _read(path)


def _moment(path: Path) -> list:
    """Return file states that change when a run continues."""
    found = []
    for name in (records.RUN, records.PROGRESS):
        try:
            state = os.stat(path / name)
            found.append((state.st_ino, state.st_size, state.st_mtime_ns))
        except OSError:
            found.append(None)
    return found


def _meant(path: Path) -> list:
    """Return run folders that somebody may mean: in ``runs``, in the folder, or beside it under nearly that name."""
    if Path("runs", path, records.RUN).is_file():
        return [Path("runs", path)]
    with contextlib.suppress(UsageError):
        return records.run_folders(path)
    with contextlib.suppress(UsageError):
        names = {} if path.exists() else {one.name: one for one in records.run_folders(path.parent)}
        return [names[name] for name in difflib.get_close_matches(path.name, names, 3, 0.8)]
    return []


def _read(path: Path) -> Run:
    try:
        record = records.read_record(path)
    except FileNotFoundError:
        near = " or ".join(map(str, _meant(path)[:3]))
        hint = f"did you mean {near}?" if near else "give the folder that a path command wrote (`out=DIR`)"
        hint = f"{hint}, before the data" if path.is_file() else hint
        raise RunFolderError(f"{path} is not a run folder: there is no run.json", hint) from None
    if record["status"] == records.EMPTIED:
        raise RunFolderError(f"{path} holds no run: an earlier one was being replaced", "repeat the path command")
    if "sha256" in record:
        records.check_files(path, record)
    listed = record["files"] if "sha256" in record else (*TABLES, *COEFFICIENTS)
    if any(name in listed for name in TABLES):
        table, stored = _first(path, TABLES, listed), _first(path, COEFFICIENTS, listed)
        if table is None and ("sha256" in record or record["status"] == records.COMPLETE):
            raise damaged(path, "there is no step table")
    else:
        table, stored = _grown(path, record)
    steps = read_steps(table[0], table[1], record) if table else []  # none while a cross-validation computes its folds
    asked = (record.get("totals") or {}).get("n_steps")
    if record["status"] == records.COMPLETE and asked not in (None, len(steps)):
        raise damaged(table[0], f"it has {len(steps)} of {asked} steps")
    solved = [row for row in steps if row["primal"] is not None]
    aside = path / records.EARLIER
    kept = [f"{aside} holds the run that it is to replace"] if (aside / records.RUN).is_file() else []
    if not solved:
        raise RunFolderError(f"{path} has no finished step", "; ".join(["continue the run with `resume`", *kept]))
    lost = lost_coefficients(path, record)
    notices = [f"{path} has lost its {lost}: there are no coefficients"] if lost else []
    if record["status"] != records.COMPLETE:
        total = (record.get("totals") or {}).get("n_steps", "?")
        notices.append(f"{path} holds an unfinished run ({record['status']}): {len(solved)} of {total} steps")
        notices += kept
    return Run(path, record, solved, stored, notices, steps)


def lost_coefficients(path: Path, record: dict) -> str | None:
    """Return the name of the coefficients that a run had and has lost."""
    listed = record.get("files") or ()
    return next((name for name in COEFFICIENTS if name in listed and not (path / name).is_file()), None)


# Names in the order of preference; before schema version 2 run.json does not list them.
TABLES = ("steps.csv", "steps.json", "steps.csv.partial", "steps.json.partial")
COEFFICIENTS = ("coefficients.csv", "coefficients.csv.partial", f"{records.RECORDS}.partial", NPZ)


def _first(path: Path, names, listed) -> tuple | None:
    found = [path / name for name in names if name in listed and (path / name).is_file()]
    return (found[0], found[0].stat().st_size) if found else None


def _grown(path: Path, record: dict) -> tuple:
    """Return step table and coefficients of an unfinished run, as far as their hashes match."""
    if record["status"] == records.COMPLETE:
        raise damaged(path, "there is no step table")
    file = path / records.PROGRESS
    try:
        progress = Progress.last(file.read_bytes(), run_key(record.get("identity")))
    except FileNotFoundError:
        progress = Progress()
    if progress is None:
        raise damaged(file, "its last line is not what was written")
    if not progress.steps:
        return None, None
    table = _proven(path, TABLES, progress.table_bytes, progress.table_sha256)
    if not progress.coefficient_bytes:
        return table, None
    names = [name for name in COEFFICIENTS if name != NPZ]
    return table, _proven(path, names, progress.coefficient_bytes, progress.coefficient_sha256)


def _proven(path: Path, names, size: int, sha256: str) -> tuple:
    """Return the file whose first ``size`` bytes have that hash, and ``size``."""
    there = [path / name for name in names if (path / name).is_file()]
    for file in there:
        with open(file, "rb") as stream:
            if prefix_sha256(stream.fileno(), size)[0].hexdigest() == sha256:
                return file, size
    raise damaged(there[0] if there else path, f"it is not what {records.PROGRESS} speaks of (its hash differs)")
