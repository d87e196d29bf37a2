"""Paths in notebooks: certificate and pictures as self-contained HTML."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from screenpath.catalogue.scores import best_and_one_se
from screenpath.data.words.tables import finite
from screenpath.engine.result import KernelPathResult, Result
from screenpath.errors import ResourceError, UsageError
from screenpath.numbers import sparse as sp
from screenpath.report import series
from screenpath.report.figures import to_bytes
from screenpath.store.open import Run
from screenpath.walk.step import CERTIFIED, SKIPPED

MEMORY = Path("a path in memory")


@dataclass(frozen=True)
class Picture:
    """A picture for notebooks."""

    figure: Any  # matplotlib Figure
    title: str

    def svg(self) -> bytes:
        return to_bytes(self.figure, "svg")

    def save(self, name, force: bool = False) -> None:
        """Write the picture to a file that ends in .png, .svg or .pdf; an existing one only with ``force``."""
        from screenpath.store.outputs import Output

        Output(str(name), force).write(to_bytes(self.figure, series.picture_form(str(name))))

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.svg()).decode("ascii")
        return f'<img alt="{escape(self.title)}" src="data:image/svg+xml;base64,{data}" style="background: white">'


def plot_of(path: Result, kind: str | None = None) -> Picture:
    """Return a picture of a path: by default ``cv`` if the path has it, else ``rejection`` or ``gap``."""
    from screenpath.report.plots import draw

    if kind is not None and kind not in series.KINDS:
        raise UsageError(f"there is no picture of the kind '{kind}'", f"use one of {', '.join(series.KINDS)}")
    run = run_of(path)
    kind = kind or series.available(run)[0]
    return Picture(draw(run, kind), f"{run.model}: {kind}")


def curve_of(points: list[dict], mean, se, record: dict) -> Picture:
    """Return the picture of a cross-validation in memory: larger scores are better.

    ``points`` has the parameters of each step, ``mean`` and ``se`` the shape (steps,). ``record`` has ``model``,
    ``score`` and ``folds`` of cv.json, and ``certified`` if there is a bound.
    """
    from screenpath.report import plots

    chosen = zip(("best", "one_se"), best_and_one_se(mean, se, True), strict=True)
    whole = {**record, "parameters": list(points[0])}
    whole |= {name: {"step": step, "parameters": points[step]} for name, step in chosen}
    rows = zip(points, mean.tolist(), se.tolist(), strict=True)
    steps = [{"step": k, **point, "mean": one, "se": error} for k, (point, one, error) in enumerate(rows)]
    ends = [(record.get("certified") or {}).get(name) for name in ("cmin", "cmax", "lower_bound")]
    bounds = np.array([] if None in ends else ends, dtype=float).reshape(-1, 3)
    with plots.f.need_matplotlib().rc_context(plots.f.STYLE):
        return Picture(plots.curve_of(series.CrossValidation(whole, steps, bounds)), f"{record['model']}: cv")


def html_of(path: Result) -> str:
    """Return a path for notebooks: what is proven, and the picture of what was screened."""
    if not len(path):
        return f"<p>{escape(repr(path))}</p>"
    met = sum(step.status == CERTIFIED for step in path.steps)
    gaps = [step.rel_gap for step in path.steps if step.status != SKIPPED and _known(step.rel_gap)]
    shares = [row["rejection_ratio"] for row in path.table() if _known(row.get("rejection_ratio"))]
    first, last = (path.steps[at].parameters for at in (0, -1))
    pairs = [("certified", f"{met} of {len(path)} steps")]
    pairs += [(name, f"{value:.4g} to {last[name]:.4g}") for name, value in first.items()]
    pairs += [("worst relative gap", f"{max(gaps):.1e}")] if gaps else []
    pairs += [("mean rejection", f"{100 * float(np.mean(shares)):.1f} %")] if shares else []
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in pairs)
    try:
        picture = plot_of(path, "rejection")._repr_html_() if gaps else ""
    except ResourceError as error:  # without matplotlib, show what is proven
        picture = f"<p>{escape(error.message)}</p>"
    return f"<div><b>{escape(type(path).__name__)}</b><table>{rows}</table>{picture}</div>"


def _known(value) -> bool:
    return value is not None and math.isfinite(value)


def run_of(path: Result) -> Run:
    """Return a path as the run folder that pictures need; a path in memory has no folder."""
    stored = getattr(path, "run", None)
    if stored is not None:
        return stored
    rows = finite(path.table())
    weights: Any = None if isinstance(path, KernelPathResult) else path.coefficients
    linear = isinstance(weights, np.ndarray)
    preparation = path.preparation
    labels = None
    if path.labels is not None:
        several = linear and weights.ndim == 3
        labels = {"classes": list(path.labels)} if several else dict(zip(("-1", "+1"), path.labels, strict=False))
    options = getattr(path.origin, "options", {})
    record = {
        "model": getattr(path.origin, "model", "path"), "parameters": list(path.steps[0].parameters),
        "columns": list(rows[0]), "options": {"rule": options.get("rule", "")}, "labels": labels,
        "kernel": {"kernel": "kernel"} if weights is None else None,
        "preparation": {"scaling": preparation.kind, "scale": preparation.scale},
        "data": {"n_features": preparation.width or preparation.n_features, "feature_names": path.feature_names},
    }  # fmt: skip
    solved = [row for row in rows if row["primal"] is not None]
    place: Any = (MEMORY, 0) if linear else None
    run = Run(MEMORY, record, solved, place, [], rows)
    if linear:  # in place of reading a folder
        intercepts = np.nan_to_num(path.intercepts).reshape(-1, 1)
        blocks = np.nan_to_num(weights).reshape(intercepts.shape[0], -1)
        vars(run)["matrix"] = sp.csr_array(np.hstack([intercepts, blocks]))
    return run
