"""Numbers that a picture of a page shows where the pointer rests: titles of areas that nobody sees."""

from __future__ import annotations

import math
import re
from html import escape

import numpy as np

from screenpath.report import figures as f
from screenpath.report import series

MOST = 300  # areas of a picture
NAMED = 6  # features of a step
UNSEEN = 0.004  # opacity: what is not painted at all does not feel the pointer


def add_areas(figure, run, kind: str) -> list[str]:
    """Add an area over each step of a picture with one panel along the path; return what they have to say."""
    if kind not in WORDS or len(figure.axes) != 1:
        return []
    rows = series.read_cv(run).steps if kind == "cv" else run.steps
    words = WORDS[kind](run, rows)
    axis, axes = f.path_axis(rows, run.parameters), figure.axes[0]
    limits = axes.get_xlim(), axes.get_ylim()
    edges = _edges(axis)
    found: list[str] = []
    for k in np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST)).astype(int)):
        where = ", ".join(f"{name} = {rows[k][name]:.6g}" for name in run.parameters)
        axes.axvspan(*edges[k], color="white", alpha=UNSEEN, linewidth=0.0, zorder=10, gid=f"hover-{len(found)}")
        found.append(f"step {int(rows[k]['step'])} ({where}): {words[k]}")
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    return found


def titled(svg: str, words: list[str]) -> str:
    """Return an SVG text whose areas have their titles."""
    return re.sub(r'<g id="hover-(\d+)">', lambda found: f"<g><title>{escape(words[int(found[1])])}</title>", svg)


def _edges(axis) -> list[tuple[float, float]]:
    """Return from where to where each step is nearest."""
    x = axis.x
    if axis.few or x.size < 2:
        return [(at - 0.4, at + 0.4) for at in x]
    order = np.argsort(x, kind="stable")
    sorted_x = np.log(x[order]) if axis.log else x[order]
    middle = 0.5 * (sorted_x[1:] + sorted_x[:-1])
    edges = np.concatenate([sorted_x[:1], middle, sorted_x[-1:]])
    edges = np.exp(edges) if axis.log else edges
    found: list = [None] * x.size
    for place, k in enumerate(order):
        found[k] = (float(edges[place]), float(edges[place + 1]))
    return found


def _rejection(run, rows) -> list[str]:
    found = series.rejection(run)
    parts = [("R", found.R), ("L", found.L), ("at an end", found.at_end)]
    parts += [] if found.features is None else [("features", found.features)]
    return [", ".join(f"{name} {100.0 * values[k]:.1f} %" for name, values in parts) for k in range(len(rows))]


def _gap(run, rows) -> list[str]:
    gap, target = series.gaps(run)
    return [f"relative gap {gap[k]:.2e}, target {target[k]:.0e}, {rows[k]['status']}" for k in range(len(rows))]


def _time(run, rows) -> list[str]:
    phases = series.times(run)
    return [", ".join(f"{name} {f.seconds_text(float(s[k]))}" for name, s in phases) for k in range(len(rows))]


def _coefficients(run, rows) -> list[str]:
    path = series.feature_paths(run)[0]
    names = path.names or [f"{run.unit} {number}" for number in path.features]
    words = []
    for values in path.values:
        largest = np.argsort(-np.abs(values), kind="stable")[:NAMED]
        words.append(", ".join(f"{names[j]}: {values[j]:.4g}" for j in largest if values[j] != 0.0) or "no weights")
    return words


def _cv(run, rows) -> list[str]:
    score = series.read_cv(run).record["score"]
    errors = ["" if math.isnan(row["se"]) else f" ± {row['se']:.2g}" for row in rows]
    return [f"{score} {row['mean']:.5g}{error}" for row, error in zip(rows, errors, strict=True)]


WORDS = {"rejection": _rejection, "gap": _gap, "time": _time, "coefficients": _coefficients, "cv": _cv}
