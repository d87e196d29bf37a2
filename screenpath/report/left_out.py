"""Pictures of leave-one-out, whose numbers are computed from the training data when they are drawn."""

from __future__ import annotations

import numpy as np

from screenpath.data.words.labels import label_text
from screenpath.engine.every_c import every_c
from screenpath.engine.leave_out import leave_one_out
from screenpath.errors import shown
from screenpath.report import figures as f
from screenpath.walk.step import SKIPPED

NAMED = 6  # rows that are named in the picture of influence
APART = 0.08, 0.04  # of the axes: nearer to a named row, a name would be printed over the other


def draw_loo(run):
    """Draw errors in training and held out, of linear runs at every C."""
    figure, axes = f.new_figure()
    axes = axes[0, 0]
    if run.kernel or len(run.steps) == 1:
        _at_steps(run, axes)
    else:
        _at_every_c(run, axes)
    axes.set_title(f"{run.model}: leave-one-out")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _at_every_c(run, axes) -> None:
    found = every_c(run)
    edges = np.append(found.curve[:, 0], found.curve[-1, 1])
    low, high = found.curve[:, 2:].T
    axes.stairs(high, edges, baseline=low, fill=True, color=f.ORANGE, alpha=0.5, label="between: not proven")
    axes.stairs(low, edges, baseline=None, color=f.ORANGE, linewidth=1.4, label="left out, at least")
    axes.plot(found.C, found.trained, color=f.BLUE, linewidth=1.4, label="in training")
    axes.set(xscale="log", xlim=(edges[0], edges[-1]), xlabel="C", ylabel=found.measure)


def _at_steps(run, axes) -> None:
    steps = [step for step in run.steps if step["status"] != SKIPPED]
    each = [(next(iter(one.scores.items())), one.training) for one in leave_one_out(run, steps)]
    axis, name = f.path_axis(steps, run.parameters), each[0][0][0]
    style = {"marker": "o", "linestyle": "none"} if axis.few else {}
    axes.plot(axis.x, [score for (_, score), _ in each], color=f.ORANGE, label="left out", **style)
    axes.plot(axis.x, [own[name] for _, own in each], color=f.BLUE, label="in training", **style)
    axis.apply(axes)
    axes.set_ylabel(name.replace("-", " "))


def draw_influence(run):
    """Draw how each row's own value changes without it, and by how much the weights move; rows without part in them
    change nothing.
    """
    step = run.choose("best") if run.score_column else run.steps[-1]
    found = next(leave_one_out(run, [step]))
    figure, axes = f.new_figure()
    axes, own = axes[0, 0], found.solution.forms[found.samples]
    change, sizes = found.values - own, 4.0 + 60.0 * found.distance / (found.distance.max() or 1.0)
    there = (found.distance > 0.0) & np.isfinite(change)
    sides = [("", there, f.BLUE)]
    if run.labels is not None:
        low, high = (f"label {shown(label_text(side))}" for side in run.sides)
        sides = [(low, there & (found.targets < 0.0), f.BLUE), (high, there & (found.targets > 0.0), f.ORANGE)]
    for label, which, color in sides:
        axes.scatter(own[which], change[which], s=sizes[which], c=color, alpha=0.6, label=label or None, linewidths=0)
    axes.axhline(0.0, color=f.GREY, linewidth=0.6, zorder=0)
    axes.autoscale_view()
    spots: list = []
    for row in np.argsort(-found.distance, kind="stable")[:NAMED].tolist():
        spot = axes.transLimits.transform((own[row], change[row]))
        if any(np.all(np.abs(spot - other) < APART) for other in spots):
            continue
        spots.append(spot)
        name = str(found.samples[row] + 1) if found.ids is None else shown(found.ids[found.samples[row]])
        place = {"xytext": (5, 4), "textcoords": "offset points", "fontsize": 8}
        axes.annotate(name.replace("$", r"\$"), (own[row], change[row]), **place)
    what = "decision value" if run.labels is not None else "prediction"
    axes.set(xlabel=f"{what} by the model of all rows", ylabel="change without the row")
    axes.set_title(f"{run.model}: influence of each row, {run.describe(step)}")
    if run.labels is not None and there.any():
        limits = axes.get_xlim(), axes.get_ylim()
        ends = np.array(limits[0])
        axes.plot(ends, -ends, color=f.BLACK, linewidth=0.8, linestyle=":", label="beyond it the label changes")
        axes.set(xlim=limits[0], ylim=limits[1])
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
