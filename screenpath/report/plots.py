"""The pictures of a run by matplotlib: one function a kind, each from a run to a figure."""

from __future__ import annotations

import numpy as np

from screenpath.report import figures as f
from screenpath.report import series
from screenpath.report.figures import to_bytes
from screenpath.report.plots_grid import draw_cv, draw_grid
from screenpath.report.plots_weights import draw_coefficients

FLOOR = 1e-17  # relative gaps below it are zero to rounding; a logarithmic axis has no zero
CEILING = 1e100  # ... and none far above it: steps that overflowed are as uncertified here


def _panel(run) -> tuple:
    """Return a figure, its only axes, and the axis of the path."""
    figure, axes = f.new_figure()
    return figure, axes[0, 0], f.path_axis(run.steps, run.parameters)


def draw_rejection(run):
    """Draw stacked areas of what the rule fixed, as in Wang 2014, Fig. 1."""
    found, (figure, axes, axis) = series.rejection(run), _panel(run)
    samples = bool(np.nansum(found.R + found.L))
    if samples or found.features is None:
        parts = [(found.R, "fixed at the lower end (R)", f.BLUE), (found.L, "fixed at the upper end (L)", f.ORANGE)]
        _stack(axes, axis, parts)
        _along(axes, axis, found.at_end, color=f.BLACK, linestyle="--", linewidth=1.2, label="at an end (limit)")
    else:
        _stack(axes, axis, [(found.features, "features fixed to zero", f.GREEN)])
    if samples and found.features is not None:
        _along(axes, axis, found.features, color=f.GREEN, linewidth=1.8, label="features fixed to zero")
    if not samples and found.features is None:
        axes.annotate(
            "nothing was fixed before a solve", (0.5, 0.5), xycoords="axes fraction", ha="center", color=f.GREY
        )
    axis.apply(axes)
    axes.set_ylim(0.0, 1.0)
    axes.set_ylabel("share fixed before the solve")
    axes.set_title(f"{run.model}: rejection by the rule {run.record['options'].get('rule', '')}".rstrip())
    _legend_below(figure, axes)
    return figure


def draw_gap(run):
    """Draw the relative duality gap of each step against its target."""
    (gap, target), (figure, axes, axis) = series.gaps(run), _panel(run)
    certified = np.array([row["status"] == "certified" for row in run.steps])
    zero = gap <= FLOOR
    size = 16 if gap.size <= 200 else 5
    for where, color, marker, label in (
        (certified & ~zero, f.BLUE, "o", "certified"),
        (certified & zero, f.SKY, "v", "certified, gap zero to rounding"),
        (~certified, f.RED, "X", "not certified"),
    ):
        if where.any():
            label = f"{label}: {int(where.sum())}"
            shown = np.clip(gap[where], FLOOR, CEILING)
            axes.scatter(axis.x[where], shown, s=size, c=color, marker=marker, label=label, clip_on=False, zorder=3)
    _along(axes, axis, target, color=f.BLACK, linestyle="--", linewidth=1.2, label="target", wide=True)
    axes.set_yscale("log")
    axis.apply(axes)
    known = np.concatenate([gap[np.isfinite(gap)], target[np.isfinite(target)]]).clip(FLOOR, CEILING)
    if known.size:
        axes.set_ylim(known.min() / 3, known.max() * 5)
    axes.set_ylabel("(primal − dual) / primal")
    axes.set_title(f"{run.model}: duality gap on the full data")
    _legend_below(figure, axes)
    return figure


def draw_time(run):
    """Draw the seconds of each phase, stacked."""
    figure, axes, axis = _panel(run)
    colors = (f.GREEN, f.ORANGE, f.BLUE, f.PURPLE)
    phases = series.times(run)
    total = sum(seconds for _, seconds in phases)
    unit = 1.0 if np.median(total) >= 0.5 else 1e3
    parts = [
        (unit * seconds, f"{name}: {f.seconds_text(float(seconds.sum()))} in all", color)
        for (name, seconds), color in zip(phases, colors, strict=False)
    ]
    _stack(axes, axis, parts, step="mid")
    axis.apply(axes)
    _limit_time(axes, total, unit)
    axes.set_ylabel("seconds per step" if unit == 1.0 else "milliseconds per step")
    axes.set_title(f"{run.model}: time per phase")
    _legend_below(figure, axes)
    return figure


def _limit_time(axes, total, unit: float) -> None:
    """Let a few slow steps (the machine was busy elsewhere) not flatten all the others; say how high they are."""
    top, limit = float(total.max()), 3.0 * float(np.quantile(total, 0.85))
    if total.size > 20 and top > 2.0 * limit > 0:
        axes.set_ylim(0, unit * limit)
        text = f"{int((total > limit).sum())} steps cut off, the longest {f.seconds_text(top)}"
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        axes.annotate(text, (0.99, 0.98), xycoords="axes fraction", va="top", ha="right", bbox=box)
    else:
        axes.set_ylim(bottom=0)


def _stack(axes, axis, parts, **options) -> None:
    """Stack (values, label, colour) as areas, or as bars where steps are few."""
    if axis.few:
        base = np.zeros(axis.x.size)
        for values, label, color in parts:
            axes.bar(axis.x, values, width=0.5, bottom=base, color=color, label=label)
            base = base + values
        return
    for number, group in enumerate(axis.groups):
        labels = [label if number == 0 else None for _, label, _ in parts]
        rows = [np.nan_to_num(values[group]) for values, _, _ in parts]
        x = axis.x[group]
        if x.size == 1:  # an area of one point has no width
            x, rows = np.array([x[0] - 0.4, x[0] + 0.4]), [np.repeat(row, 2) for row in rows]
        areas = axes.stackplot(x, rows, colors=[color for *_, color in parts], **options)
        for area, label in zip(areas, labels, strict=True):
            area.set_label(label)
            area.set_linewidth(0.0)  # white edges would hide the areas of a thousand steps


def _along(axes, axis, values, label: str, wide: bool = False, **style) -> None:
    """Draw a line along the steps, broken between the groups; a short bar over each step where they are few."""
    if axis.few:
        half = 0.4 if wide else 0.3
        axes.hlines(values, axis.x - half, axis.x + half, label=label, **style)
        return
    for number, group in enumerate(axis.groups):
        marker = "_" if values[group].size == 1 else None
        axes.plot(axis.x[group], values[group], label=label if number == 0 else None, marker=marker, **style)


def _legend_below(figure, axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 3))


DRAW = {
    "rejection": draw_rejection,
    "coefficients": draw_coefficients,
    "gap": draw_gap,
    "time": draw_time,
    "cv": draw_cv,
    "grid": draw_grid,
}


def draw(run, kind: str):
    """Return the picture of a run as a matplotlib Figure; a kind that the run does not have is refused."""
    matplotlib = f.need_matplotlib()
    series.check_kind(run, kind)
    with matplotlib.rc_context(f.STYLE):
        return DRAW[kind](run)


def picture(run, kind: str | None, name: str | None) -> tuple[str, bytes]:
    """Return the name of a picture's file, ``RUN/KIND.png`` by default, and its content."""
    form = series.picture_form(name)
    kind = kind or series.available(run)[0]
    series.check_kind(run, kind)
    return name or str(run.path / f"{kind}.png"), to_bytes(draw(run, kind), form)
