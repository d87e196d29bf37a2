"""Coefficient paths, the largest with their names."""

from __future__ import annotations

import math

from screenpath.errors import shown
from screenpath.report import figures as f
from screenpath.report import series

LONGEST_NAME = 24  # characters of a name that fit beside a picture
LABELLED_IN_PANELS = 3  # names that fit beside a small panel


def draw_coefficients(run):
    """Draw the weights along the path, one panel a class, the largest named at the end of their lines."""
    paths, axis = series.feature_paths(run), f.path_axis(run.steps, run.parameters)
    columns = 1 if len(paths) == 1 else min(3, math.ceil(math.sqrt(len(paths))))
    rows = math.ceil(len(paths) / columns)
    size = (7.0, 4.4) if len(paths) == 1 else (4.0 * columns, 2.6 * rows + 0.5)
    figure, axes = f.new_figure(*size, rows, columns, sharex=True)
    for number, panel in enumerate(axes.ravel()):
        if number >= len(paths):
            panel.set_visible(False)
            continue
        _draw_panel(panel, axis, paths[number], "" if len(paths) > 1 else run.unit)
        panel.set_xlabel("")
        panel.tick_params(labelbottom=number + columns >= len(paths))  # no panel stands below
        if len(paths) > 1:
            panel.set_title(paths[number].title)
    figure.supxlabel(axis.label, fontsize=9)
    scaled = run.record["preparation"].get("scale") is not None
    weight = "y α of the sample" if run.kernel else "weight of the scaled feature" if scaled else "weight"
    figure.supylabel(weight, fontsize=9)
    figure.suptitle(_title(run, paths), fontsize=10)
    return figure


def _title(run, paths) -> str:
    text = f"{run.model}: coefficients of {run.width:,} {run.unit}s"
    drawn = max(path.features.size for path in paths)
    if any(path.nonzero > path.features.size for path in paths):
        text += f" (the {drawn} largest drawn)"
    if run.classes and len(run.classes) > len(paths):
        text += f", {len(paths)} of {len(run.classes)} classes"
    return text


def _draw_panel(panel, axis, path, unit: str) -> None:
    """Draw one class; an empty ``unit`` means that there are many: few names, and numbers only."""
    named = min(series.LABELLED if unit else LABELLED_IN_PANELS, path.features.size)
    style = {"marker": "o", "linestyle": "none"} if axis.few else {}
    for group in axis.groups:
        x = axis.x[group]
        panel.plot(x, path.values[group, named:], color=f.LIGHT, linewidth=0.6, zorder=1, **style)
        for k in range(named):
            color, line = f.LINES[k % len(f.LINES)]
            own: dict = style or {"linestyle": line, "marker": "." if x.size == 1 else None}
            panel.plot(x, path.values[group, k], color=color, linewidth=1.4, zorder=2, **own)
    panel.axhline(0.0, color=f.GREY, linewidth=0.6)
    axis.apply(panel)
    if axis.few:
        panel.set_xlim(-0.5, axis.x[-1] + 0.08)  # the names stand close to the points
    if named:
        _name_lines(panel, path, named, unit)
    else:
        panel.annotate("all weights are zero", (0.5, 0.6), xycoords="axes fraction", ha="center", color=f.GREY)


def _name(path, k: int, unit: str) -> str:
    """Return what stands beside a line: the name of its feature, if need be its beginning, or its number."""
    if path.names is None:
        return f"{unit} {path.features[k]}".strip()
    name = shown(path.names[k])
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return name.replace("$", r"\$")  # not the beginning of a formula


def _name_lines(panel, path, named: int, unit: str) -> None:
    """Write the numbers beside the ends of their lines, moved apart, each with a thin leader."""
    low, high = panel.get_ylim()
    ends = (path.values[-1, :named] - low) / (high - low)
    height = panel.get_window_extent().height / panel.figure.dpi  # inches, before the layout is final
    places = f.spread(ends, 0.155 / max(height, 0.8))
    places = places - max(0.0, places.max() - 1.0) + max(0.0, -places.min())
    for k in range(named):
        panel.annotate(
            _name(path, k, unit),
            (1.0, ends[k]),
            xytext=(1.05, places[k]),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            color=f.LINES[k % len(f.LINES)][0],
            arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": f.LINES[k % len(f.LINES)][0], "shrinkA": 0},
        )
