"""One step of a run as a model file: LIBLINEAR's text format, JSON, NPZ."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from screenpath.data.labels import NamedLabel, label_text
from screenpath.data.tables import SCHEMA_VERSION, dump_json, readable_json
from screenpath.errors import RunFolderError, UsageError
from screenpath.models.specs import SPECS
from screenpath.runs.open import Run

INT_MAX = 2**31 - 1  # LIBLINEAR's labels are C ints


def liblinear_text(run: Run, step: dict) -> str:
    """Return the model file that LIBLINEAR's ``predict`` reads, with the same linear forms.

    The intercept is the weight of a constant feature of value 1 (``bias 1``). The first label is the one of positive
    linear forms; a form of 0 gives the second, as in ``screenpath predict``.

    Parameters
    ----------
    run : Run
    step : dict
        Row of the step table.

    Raises
    ------
    UsageError
        For ``--scale l2``, which LIBLINEAR cannot repeat, and labels that are not whole numbers.
    """
    if run.record["preparation"].get("scaling") == "l2":
        raise UsageError(
            "LIBLINEAR does not divide rows by their norm, as this run with `scale=l2` does",
            "export `to=json` or npz, or normalise the data file and compute the path with `scale=none`",
        )
    weights, intercepts = run.coefficients(step)
    if run.classes:
        kind, labels = "MCSVM_CS", run.classes
    else:
        kind = SPECS[run.model].liblinear
        labels = [run.labels["+1"], _rest(run.labels)] if run.labels else None
    bias = bool(np.any(intercepts))
    lines = [f"solver_type {kind}", f"nr_class {len(labels) if labels else 2}"]
    if labels:
        lines.append("label " + " ".join(_whole(label) for label in labels))
    lines += [f"nr_feature {run.n_features}", f"bias {1 if bias else -1}", "w"]
    rows = [" ".join(repr(v) for v in row) + " \n" for row in weights.T.tolist()]
    if run.numbers is not None:  # the format has a line for every feature
        empty, gaps = " ".join(["0.0"] * len(weights)) + " \n", np.diff(run.numbers, prepend=0) - 1
        rows = [empty * gap + row for gap, row in zip(gaps.tolist(), rows, strict=True)]
        rows.append(empty * (run.n_features - int(run.numbers[-1])))
    rows += [" ".join(repr(v) for v in intercepts.tolist()) + " \n"] if bias else []
    return "\n".join(lines) + "\n" + "".join(rows)


def _rest(labels: dict):
    """Return the label behind -1; of ``--positive``, where it stands for several, -1 or, if that is taken, 0."""
    return (0.0 if labels["+1"] == -1.0 else -1.0) if labels["-1"] == "rest" else labels["-1"]


def _whole(label: float) -> str:
    if isinstance(label, NamedLabel) or label != int(label) or abs(label) > INT_MAX:
        raise UsageError(
            f"LIBLINEAR's labels are whole numbers, {label_text(label)} is none it can hold",
            "export `to=json` or npz, or rename the labels in the data file",
        )
    return str(int(label))


def _description(run: Run, step: dict) -> dict:
    """Return what JSON and NPZ say about the model besides the numbers."""
    return {
        "schema_version": SCHEMA_VERSION,
        "model": run.model,
        "objective": run.record.get("objective"),
        "step": step["step"],
        "parameters": {name: step[name] for name in run.parameters},
        "status": step["status"],
        "rel_gap": step.get("rel_gap"),
        "n_features": run.n_features,
        "first_index": 0 if run.record["options"].get("zero_based") else 1,
        "rows": "l2" if run.record["preparation"].get("scaling") == "l2" else "as they are",
        "labels": run.labels,
        **({} if run.feature_names is None else {"feature_names": list(run.feature_names)}),
    }


def json_text(run: Run, step: dict) -> str:
    """Return the model as JSON: a description, and for each class the intercept and the non-zero weights.

    ``features`` are numbered from 1 in the order of the file's columns.
    """
    weights, intercepts = run.coefficients(step)
    blocks = []
    for w, b in zip(weights, intercepts, strict=True):
        where = np.flatnonzero(w)
        features = where + 1 if run.numbers is None else run.numbers[where]
        blocks.append({"intercept": float(b), "features": features.tolist(), "values": w[where].tolist()})
    if run.classes:
        blocks = [{"label": label, **block} for label, block in zip(run.classes, blocks, strict=True)]
    return readable_json({**_description(run, step), "weights": blocks}, levels=1) + "\n"


def npz_bytes(run: Run, step: dict) -> bytes:
    """Return the model as NPZ: ``weights`` (k, d), ``intercepts`` (k,), ``labels`` as text, ``description`` as JSON.

    ``labels`` are those of the rows of ``weights``; with one row those of negative and positive linear forms; of a
    regression there are none. Of wide data with few values ``weights`` is (k, m): it has the features that ``features``
    numbers, from 1.
    """
    weights, intercepts = run.coefficients(step)
    labels = run.classes or ([run.labels["-1"], run.labels["+1"]] if run.labels else [])
    names = np.array([label_text(v) for v in labels], dtype=np.str_)
    file = io.BytesIO()
    description = np.array(dump_json(_description(run, step)))
    more: dict[str, Any] = {} if run.numbers is None else {"features": run.numbers}
    np.savez_compressed(file, weights=weights, intercepts=intercepts, labels=names, description=description, **more)
    return file.getvalue()


FORMATS: dict[str, Callable[[Run, dict], str | bytes]] = {
    "liblinear": liblinear_text,
    "json": json_text,
    "npz": npz_bytes,
}


def exported(run: Run, step: dict, kind: str):
    """Return a step as a model file of a kind of ``FORMATS``.

    Raises
    ------
    RunFolderError, UsageError
        For a run that has no weights of features.
    """
    if run.model not in SPECS:
        raise RunFolderError(f"{run.path} holds a run of the model '{run.model}'", f"this works for {', '.join(SPECS)}")
    if run.kernel:
        raise UsageError(
            f"{run.path} is a kernel run: it has no weights of features", "use predict, which reads its support vectors"
        )
    return FORMATS[kind](run, step)
