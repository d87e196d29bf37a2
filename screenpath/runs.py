"""Reading run folders: the record, the step table and the coefficients of finished and of unfinished runs."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from screenpath.cv.choose import best_and_one_se
from screenpath.errors import RunFolderError, UsageError
from screenpath.scores import higher_is_better
from screenpath.write.coefficients import RECORD
from screenpath.write.folder import COMPLETE
from screenpath.write.tables import SCHEMA_VERSION

LINEAR = ("svm", "lad", "quantile", "svr", "l1svm", "sparse-svm")  # models whose solution is one weight a feature
KEYS = ("model", "status", "data", "preparation", "parameters", "columns", "options")
WORDS = ("status", "solver", "iss_found", "ifs_found")  # columns of the step table that hold text
NEAR = 1e-3  # a parameter given to --step may differ from the step's by this, relatively
SHOWN = 5  # steps named in a message


@dataclass(frozen=True)
class Run:
    """A run folder that has been read.

    Parameters
    ----------
    path : Path
    record : dict
        Content of run.json.
    steps : list of dict
        Rows of the step table that have a solution, numbers as numbers; missing values are None.
    notices : list of str
        Things a user should know.
    """

    path: Path
    record: dict
    steps: list
    notices: list = field(default_factory=list)

    @property
    def model(self) -> str:
        """Return the name of the model's command."""
        return self.record["model"]

    @property
    def parameters(self) -> list:
        """Return the names of the parameters: ``["C"]``, ``["lambda"]`` or ``["alpha", "beta"]``."""
        return self.record["parameters"]

    @property
    def labels(self) -> dict | None:
        """Return the label map: ``+1`` and ``-1``, or ``classes``; None for a regression."""
        return self.record.get("labels")

    @property
    def classes(self) -> list | None:
        """Return the labels of a model with weights for each class; None for the others."""
        return (self.labels or {}).get("classes")

    @property
    def n_features(self) -> int:
        """Return the number of features of the training data."""
        return self.record["data"]["n_features"]

    @property
    def kernel(self) -> str | None:
        """Return the name of the kernel; None for a linear model. Coefficients of a kernel model belong to samples."""
        return (self.record.get("kernel") or {}).get("kernel")

    @property
    def unit(self) -> str:
        """Return what the coefficients belong to: ``feature`` or ``sample``."""
        return "sample" if self.kernel else "feature"

    @property
    def width(self) -> int:
        """Return the number of features, or of samples for a kernel model."""
        return self.record["data"]["n_samples" if self.kernel else "n_features"]

    @property
    def score_column(self) -> str | None:
        """Return the column that ranks the steps: of cross-validation, else of the test data, else None."""
        columns = self.record["columns"]
        return next((name for name in columns if f"{name}_se" in columns or name.startswith("test_")), None)

    def describe(self, step: dict) -> str:
        """Return a step in words: ``step 3 (C = 0.1)``."""
        values = ", ".join(f"{name} = {step[name]:.6g}" for name in self.parameters)
        return f"step {step['step']} ({values})"

    def choose(self, text: str) -> dict:
        """Return the row of the step that ``--step`` names.

        Parameters
        ----------
        text : str
            ``best`` (highest score or lowest error of cross-validation or on the test data), ``one-se`` (the most
            regularised within one standard error of it), the number of a step, or ``NAME=VALUE``, several joined
            by commas. Of equal scores the first in the order of the walk is taken, the most regularised.

        Raises
        ------
        UsageError
            Naming the steps that exist.
        """
        if text in ("best", "one-se"):
            return self._best(text == "one-se")
        if "=" in text:
            return self._nearest(text)
        try:
            number = int(text)
        except ValueError:
            raise UsageError(
                f"--step '{text}' is not a step", f"use best, one-se, a number, or {self.parameters[0]}=VALUE"
            ) from None
        for row in self.steps:
            if row["step"] == number:
                return row
        raise UsageError(f"{self.path} has no solution of step {number}", self._existing())

    def _best(self, one_se: bool = False) -> dict:
        column = self.score_column
        scored = [row for row in self.steps if column and row[column] is not None]
        if not scored:
            raise UsageError(
                f"{self.path} was computed without --test: no step is known to be the best",
                f"name one with --step, or cross-validate (screenpath cv); {self._existing()}",
            )
        if one_se and not column.startswith("cv_"):
            raise UsageError(f"{self.path} has no standard errors", "use --step best, or compute it with screenpath cv")
        mean = np.array([row[column] for row in scored])
        se = np.array([row[f"{column}_se"] for row in scored]) if one_se else np.zeros(mean.size)
        return scored[best_and_one_se(mean, se, higher_is_better(column))[1 if one_se else 0]]

    def _nearest(self, text: str) -> dict:
        wanted = {}
        for part in text.split(","):
            name, _, value = part.partition("=")
            try:
                wanted[name.strip()] = float(value)
            except ValueError:
                raise UsageError(f"--step '{text}': '{value}' is not a number", self._existing()) from None
        if sorted(wanted) != sorted(self.parameters):
            form = ",".join(f"{name}=VALUE" for name in self.parameters)
            raise UsageError(f"--step '{text}' does not name the parameters of {self.model}", f"write {form}")

        def distance(row):
            return max(abs(row[n] - v) / max(abs(row[n]), abs(v), 1e-300) for n, v in wanted.items())

        ranked = sorted(self.steps, key=distance)
        near = [row for row in ranked if distance(row) <= NEAR]
        if len(near) == 1 or (near and distance(near[0]) < 1e-9):
            return near[0]
        what = "several steps are" if near else "no step is"
        raise UsageError(
            f"{what} within {NEAR:g} of {text}",
            "the nearest are " + "; ".join(self.describe(row) for row in ranked[:SHOWN]),
        )

    def _existing(self) -> str:
        rows = self.steps
        if len(rows) <= SHOWN:
            return "the steps are " + "; ".join(self.describe(row) for row in rows)
        return f"the steps are {self.describe(rows[0])} to {self.describe(rows[-1])}"

    # -- coefficients --------------------------------------------------------------------------------------------

    def coefficients(self, step: dict) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and intercepts of a step, in the units of the data file; for a kernel model ``y_i alpha_i``.

        Parameters
        ----------
        step : dict
            Row of the step table.

        Returns
        -------
        weights : ndarray of shape (k, d)
            One row, or one for each class in the order of ``classes``.
        intercepts : ndarray of shape (k,)

        Raises
        ------
        RunFolderError
            If the file is missing, unreadable, or holds less than the step table says.
        """
        k = self._blocks
        try:
            block = self.matrix[step["step"] * k : (step["step"] + 1) * k].toarray()
        except ValueError:
            block = np.zeros((0, 0))
        # nnz_w may count the weights of the constant features too, which are the intercepts.
        if block.shape[0] != k or np.count_nonzero(block[:, 1:]) < (step["nnz_w"] or 0) - k:
            raise _damaged(self.path, f"the coefficients of step {step['step']} are not complete")
        return block[:, 1:], block[:, 0]

    @property
    def _blocks(self) -> int:
        return len(self.classes) if self.classes else 1

    @cached_property
    def matrix(self) -> sp.csr_array:
        """All coefficients: shape (steps x classes, 1 + d), column 0 the intercepts."""
        if self.model not in LINEAR:
            raise RunFolderError(
                f"{self.path} holds a run of another kind: its solutions are not weights of features",
                f"this works for {', '.join(LINEAR)}",
            )
        for name, read in (
            ("coefficients.csv", self._read_csv),
            ("coefficients.csv.partial", self._read_csv),
            ("coefficients.npz.records.partial", self._read_records),
            ("coefficients.npz", self._read_npz),
        ):
            file = self.path / name
            if file.exists():
                try:
                    return read(file)
                except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
                    raise _damaged(file, str(error).splitlines()[0] if str(error) else "unreadable") from None
        raise RunFolderError(
            f"{self.path} has no coefficients", "compute the path with --coefficients csv or npz, into a run folder"
        )

    def _assemble(self, rows, features, values) -> sp.csr_array:
        last = max((row["step"] for row in self.steps), default=-1)
        shape = ((last + 1) * self._blocks, 1 + self.width)
        keep = rows < shape[0]  # a step whose row of the table was lost has no say
        if rows.size and (rows.min() < 0 or features.min() < 0 or features.max() >= shape[1]):
            raise ValueError(f"a step or {self.unit} out of range; the data has {self.width} {self.unit}s")
        if not np.all(np.isfinite(values)):
            raise ValueError("a value is not a finite number")
        return sp.csr_array((values[keep], (rows[keep], features[keep])), shape=shape)

    def _read_csv(self, file: Path) -> sp.csr_array:
        text = file.read_bytes()
        if file.suffix == ".partial":
            text = text[: text.rfind(b"\n") + 1]
        header, _, body = text.partition(b"\n")
        columns = header.decode("utf-8").strip().split(",")
        expected = ["step", "class", "feature", "value"] if self.classes else ["step", self.unit, "value"]
        if columns != expected:
            raise ValueError(f"the columns are not {', '.join(expected)}")
        if not body.strip():
            return self._assemble(*(np.zeros(0, dtype=t) for t in (np.int64, np.int64, np.float64)))
        table = np.loadtxt(io.BytesIO(body), delimiter=",", ndmin=2, comments=None)
        if table.shape[1] != len(expected):
            raise ValueError(f"the lines do not have {len(expected)} numbers")
        whole = table[:, [0, -2]]
        if not np.array_equal(whole, np.floor(whole)):
            raise ValueError(f"a step or {self.unit} is not a whole number")
        rows, features = whole.astype(np.int64).T
        if self.classes:
            classes = np.array(self.classes)
            codes = np.minimum(np.searchsorted(classes, table[:, 1]), classes.size - 1)
            if not np.array_equal(classes[codes], table[:, 1]):
                raise ValueError("a class is not among the labels of run.json")
            rows = rows * classes.size + codes
        return self._assemble(rows, features, table[:, -1])

    def _read_records(self, file: Path) -> sp.csr_array:
        data = file.read_bytes()
        records = np.frombuffer(data[: len(data) // RECORD.itemsize * RECORD.itemsize], dtype=RECORD)
        return self._assemble(records["step"], records["feature"], records["value"])

    def _read_npz(self, file: Path) -> sp.csr_array:
        stored = sp.coo_array(sp.load_npz(io.BytesIO(file.read_bytes())))
        if stored.shape[1] != 1 + self.width:
            raise ValueError(f"{stored.shape[1]} columns in place of {1 + self.width}")
        return self._assemble(stored.row, stored.col, stored.data)


def open_run(path) -> Run:
    """Read a run folder.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Run
        Of a run that was stopped or is still going on: the steps done so far, and a notice.

    Raises
    ------
    RunFolderError
        If there is no run, it is damaged, or a newer version wrote it.
    """
    path = Path(path)
    record = _read_record(path)
    steps = _read_steps(path, record)
    solved = [row for row in steps if row["primal"] is not None]
    if not solved:
        raise RunFolderError(f"{path} has no finished step", "let the run go on with --resume")
    notices = []
    if record["status"] != COMPLETE:
        total = (record.get("totals") or {}).get("n_steps", "?")
        notices.append(f"{path} holds an unfinished run ({record['status']}): {len(solved)} of {total} steps")
    return Run(path, record, solved, notices)


def _read_record(path: Path) -> dict:
    file = path / "run.json"
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise RunFolderError(
            f"{path} is not a run folder: there is no run.json", "give the folder that a path command wrote (--out DIR)"
        ) from None
    except (OSError, ValueError) as error:
        raise _damaged(file, getattr(error, "strerror", None) or str(error)) from None
    if not isinstance(record, dict) or not isinstance(record.get("schema_version"), int):
        raise _damaged(file, "there is no schema_version")
    if record["schema_version"] > SCHEMA_VERSION:
        raise RunFolderError(
            f"{file} has schema version {record['schema_version']}; this program knows up to {SCHEMA_VERSION}",
            "use the version of screenpath that wrote it, or a newer one",
        )
    missing = [name for name in KEYS if record.get(name) is None]
    if missing:
        raise _damaged(file, f"there is no {missing[0]}")
    parts = ((record["data"], dict), (record["preparation"], dict), (record["options"], dict))
    lists = ((record["columns"], list), (record["parameters"], list))
    if not all(isinstance(value, kind) for value, kind in (*parts, *lists)) or "n_features" not in record["data"]:
        raise _damaged(file, "an entry has the wrong type")
    return record


def _read_steps(path: Path, record: dict) -> list:
    for name in ("steps.csv", "steps.json", "steps.csv.partial", "steps.json.partial"):
        file = path / name
        if file.exists():
            break
    else:
        if record["status"] != COMPLETE:  # a cross-validation is still at its folds
            return []
        raise _damaged(path, "there is no step table")
    partial = file.suffix == ".partial"
    try:
        text = file.read_text(encoding="utf-8")
        rows = _json_rows(text, partial) if ".json" in name else _csv_rows(text, partial)
        steps = [{column: _number(column, row[column]) for column in record["columns"]} for row in rows]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise _damaged(file, f"{error}" if not isinstance(error, KeyError) else f"no column {error}") from None
    needed = {"step", "primal", "nnz_w", *record["parameters"]} - set(record["columns"])
    if needed:
        raise _damaged(file, f"there is no column {sorted(needed)[0]}")
    if [row["step"] for row in steps] != list(range(len(steps))):
        raise _damaged(file, "the steps are not numbered 0, 1, ...")
    return steps


def _csv_rows(text: str, partial: bool) -> list:
    if partial:  # the last line may be half a line
        text = text[: text.rfind("\n") + 1]
    rows = list(csv.DictReader(io.StringIO(text), strict=True))
    if any(None in row or None in row.values() for row in rows):
        raise ValueError("a line has the wrong number of fields")
    return rows


def _json_rows(text: str, partial: bool) -> list:
    if not partial:
        return json.loads(text)["steps"]
    try:
        return json.loads(text + "\n]}")["steps"]
    except ValueError:  # half a record at the end
        return json.loads(text[: text.rfind("\n")].rstrip(",") + "\n]}")["steps"]


def _number(column: str, value):
    if value in (None, "") or column in WORDS or not isinstance(value, str):
        return value if value != "" else None
    return int(value) if column == "step" else float(value)


def _damaged(what: Path, why: str) -> RunFolderError:
    return RunFolderError(f"{what} is damaged: {why}", "compute the path again with --force, or restore the folder")
