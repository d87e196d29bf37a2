"""What the step table, the totals and the grid of a run folder have to say about the steps of its certificate."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from screenpath.verify.exact import UNIT
from screenpath.verify.file import CERTIFIED, PARAMETERS
from screenpath.verify.table import listed

FINISHED, STOPPED, SKIPPED = "complete", ("time-limit", "interrupted"), "skipped"
FEW = 8.0 * UNIT  # relative: numbers that one operation, or a few, make of others
SUMS = 1e-9  # relative: sums over the steps
CELLS = ("double", "int64", "string", "bool", "null")  # types of Parquet's columns
NUMBER, CHUNK = 24, 1 << 12  # bytes that a number, and the frame of a column, take at most in Parquet

CMIN, CMAX = 0.01, 10.0  # ends of a grid of C by default
NEAR = 1e-9  # relative: values that a run has computed, against the formula
OPTIONS = (
    "grid", "cmin", "cmax", "c_list", "eps_path", "c", "reference", "log", "lambda_min_ratio", "lambda_list", "betas",
    "alphas", "beta_min_ratio", "alpha_min_ratio", "alpha", "beta", "references",
)  # fmt: skip


def read_table(file: Path, content: bytes | None, count: int = 0, most: int = 0) -> tuple[list[str], list[dict]]:
    """Return the columns of a step table, and its rows as texts or numbers.

    ``content`` are the bytes of the file, None where there is none. Of Parquet nothing is returned if it has other than
    ``count`` rows, texts of more than ``most`` bytes, or cells that step tables do not have.
    """
    if content is None:
        raise FileNotFoundError(file)
    if file.suffix == ".json":
        rows = json.loads(content)["steps"]
        return list(rows[0]) if rows else [], rows
    if file.suffix == ".parquet":
        import pyarrow.parquet

        schema = pyarrow.parquet.read_schema(io.BytesIO(content))
        texts = [field.name for field in schema if field.type == "string"]
        parquet = pyarrow.parquet.ParquetFile(io.BytesIO(content), read_dictionary=texts)
        groups = [parquet.metadata.row_group(k) for k in range(parquet.num_row_groups)]
        # A few bytes may say that there are billions of rows, or hold a long text.
        if not all(str(field.type) in CELLS for field in schema) or parquet.metadata.num_rows != count:
            return [], []
        if sum(group.total_byte_size for group in groups) > most + len(schema) * (CHUNK + NUMBER * count):
            return [], []
        table = parquet.read()
        cells = {name: listed(table.column(name).combine_chunks()) for name in table.column_names}
        return list(cells), [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    reader = csv.DictReader(io.StringIO(content.decode(), newline=""))
    return list(reader.fieldnames or []), list(reader)


def number(cell) -> float | None:
    """Return the number in a cell; None where there is none."""
    return None if cell in (None, "") else float(cell)


def cells_of(header: dict, pair) -> dict[str, Any]:
    """Return, by columns of a step that is certified, predicates of the number that has to stand there."""
    entry = pair.entry
    primal, gap, off = entry["primal"], entry["gap"], entry["primal_error"]
    size = abs(primal) + abs(gap) + abs(off)

    def ratio(value):
        parts = [(one["primal"], one["gap"]) for one in getattr(pair, "entries", [entry])]
        worst = max((part / whole for whole, part in parts if whole), default=0.0)
        return abs(value - worst) <= FEW * worst

    found: dict[str, Any] = {
        "dual": lambda value: abs(value - (primal - gap - off)) <= FEW * size and value <= primal + FEW * size,
        "rel_gap": ratio,
        "gap_target": lambda value: abs(value - header["tol"] * primal) <= FEW * header["tol"] * abs(primal),
        "nnz_w": lambda value: value == pair.nnz,
    }
    for name, (low, high) in pair.counts.items():
        found[name] = lambda value, low=low, high=high: low <= value <= high
    return found


def range_of(header: dict) -> dict[str, float]:
    """Return the most that columns may say of which nobody can know the right number; the least is 0."""
    data, classes = header["data"], len((header["labels"] or {}).get("classes", ())) or 1
    duals = data["n_samples"] * (2 if header["model"] in ("svr", "sparse-svr") else classes)
    counts = {name: duals for name in ("screened_R", "screened_L", "n_survivors")}
    # A column of ones, or an intercept, may be one more feature.
    more = {"n_features_screened": (data["n_features"] + 1) * classes}
    return {**counts, **more, "rejection_ratio": 1.0}


def table_faults(header: dict, record: dict, columns: list, table: list, steps: list, pairs: dict) -> list:
    found: list = []
    if columns != record["columns"]:
        found.append((None, "the columns of the step table are not those of run.json"))
    parameters = [name for name in PARAMETERS if any(name in entry for entry in steps)]
    if record["parameters"] != parameters:
        found.append((None, f"run.json has another parameters than the certificate ({', '.join(parameters)})"))
    if len(table) != len(steps):
        return [*found, (None, f"the step table has {len(table)} steps, the certificate {len(steps)}")]
    for row, entry in zip(table, steps, strict=True):
        certified = entry["status"] == CERTIFIED
        for name in ("step", "status", *PARAMETERS, *(("primal", "gap") if certified else ())):
            if name in entry and str(row.get(name)) != str(entry[name]):
                found.append((entry["step"], f"the step table says {name} {row.get(name)}, certified is {entry[name]}"))
        if not certified:
            continue
        if row.get("reason") not in (None, ""):
            found.append((entry["step"], "the step table has a reason why the step is not certified"))
        for name, good in cells_of(header, pairs[entry["step"]]).items():
            value = number(row.get(name))
            if name in columns and (value is None or not good(value)):
                found.append((entry["step"], f"the step table says {name} {row.get(name)}, which is not so"))
        for name, most in range_of(header).items():
            value = number(row.get(name))
            if value is not None and not 0.0 <= value <= most:
                found.append((entry["step"], f"the step table says {name} {row[name]}: it is from 0 to {most:g}"))
    return found


def covered_columns(pairs: dict, header: dict) -> set[str]:
    """Return the columns that :func:`table_faults` compares in steps that are certified."""
    cells = cells_of(header, next(iter(pairs.values()))) if pairs else ()
    return {"step", "status", "reason", "primal", "gap", *PARAMETERS, *cells}


def totals_of(table: list, steps: list) -> dict:
    """Return the facts of ``status``, ``totals`` and ``grid`` in run.json."""
    done = [row for row, entry in zip(table, steps, strict=False) if entry["status"] != SKIPPED]

    def total(name):
        return math.fsum(number(row.get(name)) or 0.0 for row in done)

    def is_total(name, size=1.0):
        return lambda value: value is None and not done or abs(value - total(name) / size) <= SUMS * abs(value)

    worst = [number(row.get("rel_gap")) for row in done]
    ends = [{name: entry[name] for name in PARAMETERS if name in entry} for entry in (steps[0], steps[-1])]
    return {
        "status": FINISHED if len(done) == len(steps) else lambda value: value in STOPPED,
        "totals": {
            "n_steps": len(steps), "steps_done": len(done),
            "certified": sum(entry["status"] == CERTIFIED for entry in steps), "unsafe": total("unsafe"),
            "epochs": is_total("epochs"), "passes": is_total("passes"),
            "mean_rejection_ratio": is_total("rejection_ratio", max(len(done), 1)),
            "worst_rel_gap": max((math.inf if gap is None else gap for gap in worst), default=None),
        },
        "grid": {"points": len(steps), "first": ends[0], "last": ends[1]},
    }  # fmt: skip


def grid_faults(header: dict, options: dict, steps: list, complete: bool) -> list[str]:
    """Return what the parameters of the steps are otherwise than the options ask for."""
    if "alpha" in steps[0]:
        covers = options.get("eps_path") is not None  # the steps follow from each other
        return _alone(options, ["alpha", "alphas", "beta", "betas", "references"]) if covers else _pairs(options, steps)
    wanted: np.ndarray | list
    if header["model"] == "l1svm":
        values, given = [entry["lambda"] for entry in steps], options["lambda_list"]
        alone = [] if given is None else ["grid", "log", "lambda_min_ratio"]
        alone += [] if options["log"] else ["lambda_min_ratio"]
        if given is not None:
            wanted = np.sort(np.array(given, float))[::-1]
        else:
            count, ratio = options["grid"] or 20, options["lambda_min_ratio"] or 0.05
            wanted = values[0] * (_spaced(count, ratio) if options["log"] else 1.0 / np.arange(1.0, count + 1.0))
        return _alone(options, alone) + _compared("lambda", values, wanted)
    values = [entry["C"] for entry in steps]
    low, high = (options[name] or default for name, default in (("cmin", CMIN), ("cmax", CMAX)))
    alone = [] if options["c"] is not None else ["reference"]
    if options["c"] is not None:
        alone += ["grid", "cmin", "cmax", "c_list", "eps_path"]
        wanted = [value for value in (options["reference"], options["c"]) if value is not None]
    elif options["eps_path"] is not None:
        alone += ["grid", "c_list"]
        wanted = [low, *values[1:-1], high] if complete and len(values) > 1 else [low, *values[1:]]
        if any(not a < b <= high for a, b in zip(values, values[1:], strict=False)):
            return ["the steps of the eps-path do not go up to its end"]
    elif options["c_list"] is not None:
        alone += ["grid", "cmin", "cmax"]
        wanted = sorted(options["c_list"])
    else:
        count = options["grid"] or 100
        wanted = low * _spaced(count, high / low)
    if options.get("certify_to"):  # bounds may have asked for more
        values = [value for value in values if np.any(np.abs(value - wanted) <= NEAR * value)]
    return _alone(options, alone) + _compared("C", values, wanted)


def _pairs(options: dict, steps: list) -> list[str]:
    """Return the faults of a grid of (alpha, beta): for every beta, from the largest down, its values of alpha."""
    rows: list[tuple[float, list]] = []
    for entry in steps:
        if not rows or rows[-1][0] != entry["beta"]:
            rows.append((entry["beta"], []))
        rows[-1][1].append(entry["alpha"])
    alone = [] if options["beta"] is None else ["betas", "beta_min_ratio"]
    alone += [] if options["alpha"] is None else ["alphas", "alpha_min_ratio"]
    found = _alone(options, alone)
    found += ["run.json has `references` without `alpha`"] if options["references"] and options["alpha"] is None else []
    betas, alphas = [beta for beta, _ in rows], options["alpha"]
    if options["beta"] is None:
        found += _compared("beta", betas, betas[0] * _spaced(options["betas"] or 10, options["beta_min_ratio"] or 0.05))
    else:
        found += _compared("beta", betas, sorted(options["beta"], reverse=True))
    for _, row in rows:
        if alphas is None:
            count, ratio = options["alphas"] or 100, options["alpha_min_ratio"] or 0.01
            found += _compared("alpha", row, row[0] * _spaced(count, ratio))
        else:
            wanted = sorted(alphas, reverse=True)
            references = max(len(row) - len(wanted), 0)
            most = options["references"] * len(wanted)
            kept = row if not most else [value for value in row if value in wanted]
            found += _compared("alpha", kept, wanted)
            # before 0, and before what is not below the value before it, there are none
            few = references > most or references % max(options["references"], 1)
            found += ["there are more or fewer references than the options ask for"] if few else []
    return list(dict.fromkeys(found))


def _spaced(count: int, ratio: float) -> np.ndarray:
    return np.array([1.0]) if count == 1 else ratio ** (np.arange(count) / (count - 1))


def _alone(options: dict, names: list) -> list[str]:
    return [f"run.json has the option {name}, which its grid does not have" for name in names if options.get(name)]


def _compared(name: str, values: list, wanted) -> list[str]:
    if len(values) != len(wanted):
        return [f"the options ask for {len(wanted)} values of {name}, the certificate has {len(values)}"]
    far = [k for k, (a, b) in enumerate(zip(values, wanted, strict=True)) if not abs(a - b) <= NEAR * abs(b)]
    return [f"{name} is {values[far[0]]:.17g} where the options ask for {wanted[far[0]]:.17g}"] if far else []
