"""The numbers behind the pictures, for matplotlib, the terminal and the page."""

from __future__ import annotations

import contextlib
import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from screenpath.catalogue.losses import LOSSES
from screenpath.catalogue.scores import SCORES, Score, Sigmoid, choose_score
from screenpath.catalogue.specs import SPECS
from screenpath.cv.choice import folds_of, unmet_line
from screenpath.data.safe import values as kinds
from screenpath.data.words.labels import label_text
from screenpath.errors import RunFolderError, UsageError
from screenpath.store.record import strict_json
from screenpath.walk.step import SKIPPED

LEFT_OUT = ("loo", "influence")  # whose numbers are computed from the training data
KINDS = ("rejection", "coefficients", "gap", "time", "cv", "gammas", "grid", *LEFT_OUT)
FORMS = ("png", "svg", "pdf")
FLOOR = 1e-17  # smaller relative gaps are drawn here: they are rounding, and a logarithmic axis has no zero
PHASES = (("screen_s", "screen"), ("solve_s", "solve"), ("certify_s", "certify"), ("init_s", "far end"))
LABELLED, DRAWN, PANELS = 8, 150, 12  # most feature paths with a name, feature paths drawn, and classes


def column(run, name: str) -> np.ndarray:
    return np.array([math.nan if row.get(name) is None else row[name] for row in run.steps], dtype=float)


@dataclass(frozen=True)
class Rejection:
    """Shares screened before the solve, each of shape (n_steps,)."""

    R: np.ndarray  # R, L: dual variables fixed at their lower and at their upper bound, over all
    L: np.ndarray
    at_end: np.ndarray  # dual variables at a bound in the solution, over all: no rule can fix more
    features: np.ndarray | None  # features fixed to zero, over all; None if none ever was


def rejection(run) -> Rejection:
    ends = column(run, "n_R") + column(run, "n_L")
    total = np.maximum(ends + column(run, "n_E"), 1.0)
    weights = max(run.n_columns * len(run.blocks or [0]), 1)  # a kernel run screens no features
    features = column(run, "n_features_screened") / weights
    shown = np.minimum(features, 1.0) if np.nanmax(features) > 0 else None  # the bias is a feature to sparse-svm
    return Rejection(column(run, "screened_R") / total, column(run, "screened_L") / total, ends / total, shown)


def gaps(run) -> tuple[np.ndarray, np.ndarray]:
    """Return relative gap and relative target, each of shape (n_steps,)."""
    primal = column(run, "primal")
    with np.errstate(divide="ignore", invalid="ignore"):
        return column(run, "rel_gap"), np.where(primal > 0, column(run, "gap_target") / primal, np.nan)


def times(run) -> list:
    """Return pairs of a phase's name and its seconds, shape (n_steps,), without unused phases."""
    pairs = [(name, np.nan_to_num(column(run, key))) for key, name in PHASES]
    return [(name, seconds) for name, seconds in pairs if name != "far end" or seconds.any()]


@dataclass(frozen=True)
class FeaturePaths:
    """Weights along the path of the most important features (of a kernel model: samples), for one class."""

    title: str  # the class; empty with two classes and in regressions
    features: np.ndarray  # shape (m,): numbered from 1, the largest absolute weight first
    values: np.ndarray  # shape (n_steps, m): in units of the scaled features, to be comparable
    nonzero: int  # features with a weight anywhere on the path
    names: list[str] | None = None  # of the features, if they have some


def feature_paths(run) -> list:
    """Return the FeaturePaths of each class (at most PANELS), of up to DRAWN features each."""
    run.coefficients(run.steps[-1])  # raises if the file is damaged, unlike zero weights
    blocks, numbers = len(run.blocks or [0]), np.array([row["step"] for row in run.steps])
    scale = None if run.kernel else run.record["preparation"].get("scale")
    paths = []
    for block in range(min(blocks, PANELS)):
        matrix = run.matrix[numbers * blocks + block][:, 1:].tocsc()
        if scale is not None:
            matrix = matrix.multiply(np.asarray(scale)[None, :]).tocsc()
        largest = abs(matrix).max(axis=0).toarray().ravel() if matrix.nnz else np.zeros(matrix.shape[1])
        top = np.argsort(-largest, kind="stable")[:DRAWN]
        top = top[largest[top] > 0]
        title = f"{'pair' if run.voting else 'class'} {label_text(run.blocks[block])}" if run.blocks else ""
        named = top + 1 if run.numbers is None or run.kernel else run.numbers[top]
        names = None if run.feature_names is None or run.kernel else [run.feature_names[k - 1] for k in named]
        paths.append(FeaturePaths(title, named, matrix[:, top].toarray(), int(np.count_nonzero(largest)), names))
    return paths


@dataclass(frozen=True)
class Grid:
    """One number for each pair of parameters."""

    rows: list[float]  # the second parameter (``beta``), in the order of the walk
    # names of the columns: the first parameter over its largest value in the row, if rows agree in it
    columns: list[str]
    label: str  # meaning of the columns
    values: dict  # dict of str to ndarray of shape (n_rows, n_columns): nan if the grid has no such step


def grid(run) -> Grid:
    """Return scaling ratio, screened samples and features, and the score over the grid of two parameters."""
    shown = {"scaling ratio": column(run, "scaling_ratio")}
    found = rejection(run)
    shown["samples screened"] = found.R + found.L
    shown["features screened"] = np.zeros(len(run.steps)) if found.features is None else found.features
    if run.score_column:
        shown[run.score_column.replace("_", " ")] = column(run, run.score_column)
    return fold_grid(run.steps, run.parameters, shown)


def fold_grid(steps: list, parameters: list, shown: dict) -> Grid:
    """Arrange values of shape (n_steps,) by the two parameters."""
    first, second = parameters
    rows = list(dict.fromkeys(row[second] for row in steps))
    members = [[k for k, row in enumerate(steps) if row[second] == value] for value in rows]
    width = max(len(m) for m in members)
    values = {name: np.full((len(rows), width), np.nan) for name in shown}
    ratios = np.full((len(rows), width), np.nan)
    for r, m in enumerate(members):
        largest = max(abs(steps[k][first]) for k in m)
        ratios[r, : len(m)] = [steps[k][first] / largest if largest else 1.0 for k in m]
        for name, numbers in shown.items():
            values[name][r, : len(m)] = numbers[m]
    spreads = np.nanmax(ratios, axis=0) - np.nanmin(ratios, axis=0)
    if np.all(spreads <= 1e-6 * np.nanmax(ratios, axis=0)):
        names = [f"{v:.2g}" for v in np.nanmax(ratios, axis=0)]
        return Grid(rows, names, f"{first} / largest {first} of the row", values)
    return Grid(rows, [str(k) for k in range(width)], f"number of the {first} in its row, from 0", values)


@dataclass(frozen=True)
class CrossValidation:
    record: dict  # content of cv.json
    steps: list[dict]  # rows of cv.csv, in the order of the grid: the parameters, ``mean``, ``se``
    # shape (m, 3): C_from, C_to and the lower bound on the CV error between them; no rows without ``--certify``
    bounds: np.ndarray


def read_cv(run) -> CrossValidation:
    if not run.has("cv.json"):
        what = f"{run.path} holds no cross-validation"
        raise UsageError(what, "make one: screenpath cv MODEL DATA, in Python screenpath.cross_validate")
    with _reading(run.path / "cv.json") as file:
        record = strict_json(file.read_bytes())
    with _reading(run.path / "cv.csv") as file:
        steps = [_floats(row, ("step", *run.parameters, "mean", "se")) for row in _rows(file)]
        if [row["step"] for row in steps] != list(range(len(steps))) or not steps:
            raise ValueError("the grid points are not numbered 0, 1, ...")
    with _reading(run.path / "cv.json"):
        _check_cv(record, run, len(steps))
    with _reading(run.path / "bounds.csv") as file:
        certified = record.get("certified") and run.has("bounds.csv")
        bounds = [list(_floats(row, ("C_from", "C_to", "lower")).values()) for row in _rows(file)] if certified else []
        if np.isnan(bounds).any():
            raise ValueError("a number is missing")
    return CrossValidation(record, steps, np.array(bounds, dtype=float).reshape(-1, 3))


def chosen_by(run) -> Score:
    """Return the score that chose a step in a cross-validation; pinball losses of two levels are two scores."""
    name = read_cv(run).record["score"]
    return choose_score(name, SPECS[run.model], SCORES[name].task, tau=run.record["options"].get("tau"))


@contextlib.contextmanager
def _reading(file: Path) -> Iterator[Path]:
    """Turn what a damaged file of a cross-validation raises into the error that names it."""
    try:
        yield file
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        why = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise RunFolderError(f"{file} is damaged: {why}", "compute the cross-validation again with `force`") from None


def read_gammas(run) -> tuple[Grid, list[float]]:
    """Return the mean scores of gammas.csv over gamma, falling, and C (nan: gamma dropped), and the values of C."""
    score = read_cv(run).record["score"]
    with _reading(run.path / "gammas.csv") as file:
        every = list(_rows(file))
        chosen = next((row.get("epsilon") for row in every if row.get("best") == "1"), None)
        every = [row for row in every if row.get("epsilon") == chosen]  # of several, those with the best epsilon
        rows = [_floats(row, ("gamma", "C", "mean", "n_folds")) for row in every]
        gammas, C = sorted({row["gamma"] for row in rows}, reverse=True), sorted({row["C"] for row in rows})
        means = np.full((len(gammas), len(C)), np.nan)
        for row in rows:
            if row["n_folds"] == max(one["n_folds"] for one in rows):
                means[gammas.index(row["gamma"]), C.index(row["C"])] = row["mean"]
    return Grid(gammas, [f"{value:.2g}" for value in C], "C", {score.replace("-", " "): means}), C


def read_folds(run) -> list[dict]:
    """Return the rows of folds.csv: status, numbers of repeat, fold and step, and the score (nan: none)."""
    whole = ("repeat", "fold", "step")
    with _reading(run.path / "folds.csv") as file:
        found = [
            {"status": row["status"], "score": float(row["score"] or "nan"), **{name: int(row[name]) for name in whole}}
            for row in _rows(file)
        ]
    return found


def unmet_folds(run) -> str | None:
    """Return the notice about steps of folds that are not certified; None if all are."""
    if not (run.has("cv.json") and run.has("folds.csv")):
        return None
    cv = read_cv(run)
    paths = 1 if cv.record.get("leave_one_out") else folds_of(cv.record)[0]
    return unmet_line(read_folds(run), paths * len(cv.steps))


# What entries of cv.json hold.
THRESHOLD = {**dict.fromkeys(("value", "recall", "precision", "specificity"), kinds.is_number), "asked": kinds.is_text}
SIGMOID = dict.fromkeys((one.name for one in fields(Sigmoid)), kinds.is_number)
BOUND = dict.fromkeys(("cmin", "cmax", "best_error", "best_C", "lower_bound", "difference"), kinds.is_number)
CHOSEN = dict.fromkeys(("C", "mean"), kinds.is_number)
TRIED = {  # one of several gammas
    **dict.fromkeys(("gamma", "folds"), kinds.is_number), **dict.fromkeys(("dropped", "certified"), kinds.is_flag),
}  # fmt: skip


def _check_cv(record, run, n_steps: int) -> None:
    if record["parameters"] != run.parameters or record.get("model", run.model) != run.model:
        raise ValueError("it is that of another model")
    (count, whole), at = folds_of(record), kinds.has(dict.fromkeys(run.parameters, kinds.is_number))
    needed: dict[str, Any] = {"score": kinds.one_of(SCORES), "folds": kinds.is_whole(2)}
    possible: dict[str, Any] = {
        "repeats": kinds.is_whole(1), "fold_sizes": lambda sizes: isinstance(sizes, list) and 0 < len(sizes) <= whole,
        "baselines": kinds.are_numbers, "confusion": _is_confusion, "at_boundary": kinds.is_text,
        "n_grid": kinds.is_number, "certified": kinds.has(BOUND),
        "until_turn": kinds.has({"last": at, "added_points": kinds.is_whole(0), "turned": kinds.is_flag}),
        "tuned": kinds.has({"gamma": kinds.is_number, "pairs": kinds.is_number, "gammas": kinds.list_of(
            lambda one: kinds.has(TRIED)(one) and (one["dropped"] or kinds.has(CHOSEN)(one))
        )}),
        "tuned.difference": kinds.is_number, "tuned.epsilon": kinds.is_number,
    }  # fmt: skip
    for name in ("best", "one_se"):
        needed |= {f"{name}.step": kinds.is_whole(0, n_steps - 1), f"{name}.mean": kinds.is_number}
        needed[f"{name}.parameters"] = at
        # One fold, the part of a job array, has no standard error.
        (possible if count == 1 else needed)[f"{name}.se"] = kinds.is_number
        possible |= {f"{name}.threshold": kinds.has(THRESHOLD, True), f"{name}.calibrate": kinds.has(SIGMOID, True)}
        possible |= {f"{name}.optimism": kinds.is_number, f"{name}.further": lambda found: _are_further(found, record)}
    for name, there in kinds.wrong_entries(record, needed, possible):
        raise ValueError(f"{name} has the wrong type or value" if there else f"there is no {name}")


def _is_confusion(value: dict) -> bool:
    labels, row = value["labels"], kinds.list_of(kinds.is_whole(0))
    lines = kinds.list_of(lambda line: row(line) and len(line) == len(labels))
    return kinds.are_words(labels) and lines(value["counts"]) and len(value["counts"]) == len(labels)


def _are_further(value, record: dict) -> bool:
    """Tell whether further scores of a choice are scores, and those of the folds numbers."""
    score = kinds.has({"mean": kinds.is_number, "se": lambda se: se is None or kinds.is_number(se)})
    return kinds.is_mapping(value) and all(
        name.replace("_", "-") in SCORES and kinds.are_numbers(record["further"][name]) and score(one)
        for name, one in value.items()
    )


def _rows(file: Path) -> list:
    with open(file, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, strict=True))


def _floats(row: dict, names) -> dict:
    found = {name: float(row[name]) if row[name] not in ("", None) else math.nan for name in names}
    if any(math.isinf(value) for value in found.values()):
        raise ValueError("a number is not finite")
    return found


@dataclass(frozen=True)
class Lines:
    """One number along the paths of several runs."""

    title: str  # what the number is
    label: str  # the parameter, or that steps are counted
    log: bool  # whether the number has a logarithmic axis
    names: list[str]  # a run each: its folder, and its rule unless that is the model's own
    x: list[np.ndarray]  # the parameter, or the number of the step if a run has two parameters
    y: list[np.ndarray]


def lines(runs, kind: str) -> Lines:
    """Return what a picture of several runs shows: a line for each."""
    along = {
        "rejection": ("share screened before the solve", _share_screened),
        "gap": ("(primal − dual) / primal", lambda run: column(run, "rel_gap")),
        "time": ("seconds per step", lambda run: sum(seconds for _, seconds in times(run))),
        "cv": ("mean score", lambda run: np.array([row["mean"] for row in read_cv(run).steps])),
    }
    if kind not in along:
        which = ", ".join(along)
        raise UsageError(f"a picture of the kind '{kind}' shows one run", f"name one run, or a `kind` of {which}")
    first = runs[0]
    for run in runs[1:]:
        if run.parameters != first.parameters:
            said = [f"{one.path} by {' and '.join(one.parameters)}" for one in (first, run)]
            raise UsageError(f"{said[0]} and {said[1]}: no axis fits both", "draw runs with the same parameter")
    scores = {str(chosen_by(run)) for run in runs} if kind == "cv" else {""}
    if len(scores) > 1:
        raise UsageError(f"the runs have other scores: {', '.join(sorted(scores))}", "draw runs with the same score")
    title, values = along[kind]
    tables = [read_cv(run).steps if kind == "cv" else run.steps for run in runs]
    named = "step" if len(first.parameters) > 1 else first.parameters[0]
    x = [np.array([row[named] for row in table], dtype=float) for table in tables]
    rules = [run.record["options"].get("rule") for run in runs]
    own = [rule in (None, SPECS[run.model].default_rule) for run, rule in zip(runs, rules, strict=True)]
    more = ["" if usual else f" ({rule})" for rule, usual in zip(rules, own, strict=True)]
    names = [f"{run.path}{rule}" for run, rule in zip(runs, more, strict=True)]
    title = f"{scores.pop().replace('-', ' ')}, mean over folds" if kind == "cv" else title
    return Lines(title, named, kind == "gap", names, x, [values(run) for run in runs])


def _share_screened(run) -> np.ndarray:
    found = rejection(run)
    samples = found.R + found.L
    return samples if found.features is None or np.nansum(samples) else found.features


def available(run) -> list:
    """Return the kinds of pictures that a run has, the most informative first.

    Behind a kernel the usual rule screens nothing, which is no picture.
    """
    kinds = [kind for kind, file in (("gammas", "gammas.csv"), ("cv", "cv.json")) if run.has(file)]
    nothing = bool(run.kernel) and not any((row.get("rejection_ratio") or 0.0) > 0.0 for row in run.steps)
    kinds += ["gap" if nothing else "rejection"]
    if len(run.parameters) == 2 and len(run.steps) > 1:
        kinds.append("grid")
    if run.stored is not None:
        kinds.append("coefficients")
    return [*kinds, "rejection" if nothing else "gap", "time"]


def picture_form(name: str | None, option: str = "out") -> str:
    """Return the format of a picture by the extension of its name; PNG by default. ``option`` named the file."""
    form = Path(name).suffix.lower()[1:] if name else FORMS[0]
    if form not in FORMS:
        raise UsageError(f"`{option}={name}` is no .png, .svg or .pdf", "choose one of them by the file's name")
    return form


def check_kind(run, kind: str) -> None:
    """Check that a run has a kind of picture; the error lists those that it has."""
    if all(row["status"] == SKIPPED for row in run.steps):
        raise UsageError("there is nothing to draw: no step was reached", "give it more time (`time_limit`)")
    if kind == "cv":
        read_cv(run)
    elif kind in LEFT_OUT:
        from screenpath.engine.leave_out import check_left_out

        check_left_out(run)
        if "sha256" not in run.record["data"]:
            raise UsageError(f"the picture '{kind}' needs a run folder", "write one: path.save(folder)")
    elif kind not in (kinds := available(run)):
        kinds += LEFT_OUT if run.model in LOSSES and len(run.classes or ()) <= 2 else ()
        why = {
            "gammas": "it is of several values of gamma (`gammas` of cv)",
            "grid": "heat maps need a grid of two parameters (sparse-svm)",
            "coefficients": "coefficient paths need coefficients in the run folder (`coefficients=csv` or npz)",
        }.get(kind, "there is no such kind")
        raise UsageError(f"{run.path} has no picture of the kind '{kind}': {why}", f"try {', '.join(kinds)}")
