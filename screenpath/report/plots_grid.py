"""Heat maps over two parameters, and the cross-validation curve."""

from __future__ import annotations

import numpy as np

from screenpath.report import figures as f
from screenpath.report import series

CHOICES = {"best": "best", "one_se": "one standard error"}
MANY = 60  # from so many grid points on, standard errors are a band in place of bars


def draw_grid(run):
    """Draw scaling ratio, screened samples and features, and the score over (alpha, beta), as Hong 2019."""
    grid = series.grid(run)
    count = len(grid.values)
    figure, axes = f.new_figure(3.3 * count + 0.6, 3.6, 1, count, sharey=True)
    for panel, (name, values) in zip(axes[0], grid.values.items(), strict=True):
        heat_map(figure, panel, grid, values, name, run.parameters, share=not name.startswith(("test", "cv")))
    axes[0, 0].set_ylabel(run.parameters[1])
    figure.suptitle(f"{run.model}: share screened over the grid", fontsize=10)
    return figure


def heat_map(figure, panel, grid, values, name: str, parameters, share: bool) -> None:
    """Draw one heat map; ``share``: the colours run from 0 to 1."""
    limits = {"vmin": 0.0, "vmax": 1.0} if share else {}
    panel.set_facecolor(f.LIGHT)  # where the grid has no point
    mesh = panel.pcolormesh(np.ma.masked_invalid(values), cmap=f.MAP, edgecolors="face", linewidth=0.3, **limits)
    panel.yaxis.set_inverted(True)  # the first row, the largest, on top: panels share the axis, which a turn would undo
    for setter, names in ((panel.set_xticks, grid.columns), (panel.set_yticks, [f"{v:.3g}" for v in grid.rows])):
        every = max(1, -(-len(names) // 5))
        setter(np.arange(0, len(names), every) + 0.5, names[::every])
    panel.set_xlabel(grid.label)
    panel.set_title(name)
    figure.colorbar(mesh, ax=panel, shrink=0.9)


def draw_cv(run):
    """Draw the mean score with its standard errors, both choices, and what is certified for every C."""
    cv = series.read_cv(run)
    names, record = cv.record["parameters"], cv.record
    if len(names) == 2 and len(cv.steps) > f.FEW:
        return _draw_cv_grid(run, cv)
    figure, axes = f.new_figure()
    axes = axes[0, 0]
    axis = f.path_axis(cv.steps, names)
    mean, se = (np.array([row[name] for row in cv.steps]) for name in ("mean", "se"))
    if mean.size <= MANY:
        axes.errorbar(axis.x, mean, yerr=se, color=f.BLUE, ecolor=f.SKY, fmt="o" if axis.few else "o-", markersize=3,
                      linewidth=1.2, label="mean" if np.isnan(se).all() else "mean ± standard error")  # fmt: skip
    else:
        label = None if np.isnan(se).all() else "± standard error"  # one fold has none
        axes.fill_between(axis.x, mean - se, mean + se, color=f.SKY, alpha=0.5, linewidth=0, label=label)
        axes.plot(axis.x, mean, color=f.BLUE, linewidth=1.4, label="mean")
    numbers = [int(row["step"]) for row in cv.steps]
    for key, text in CHOICES.items():
        where = numbers.index(int(record[key]["step"])) if int(record[key]["step"]) in numbers else None
        if where is not None:
            at = ", ".join(f"{name} = {record[key]['parameters'][name]:.3g}" for name in names)
            _mark(axes, axis.x[where], mean[where], key, f"{text}: step {record[key]['step']} ({at})", record, f.BLACK)
    if cv.bounds.size and record["score"] == "accuracy" and not axis.few:
        _draw_bounds(axes, axis, cv.bounds)
    axis.apply(axes)
    axes.set_ylabel(record["score"].replace("-", " "))
    axes.set_title(_cv_title(record))
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _mark(axes, x, y, key: str, label: str, record: dict, color: str) -> None:
    """Mark a choice: the best by a star, one standard error by a diamond in a colour; if they are one, around it."""
    style: dict = {"clip_on": False, "zorder": 4, "label": label}
    same = record["best"]["step"] == record["one_se"]["step"]
    if key == "best":
        axes.scatter(x, y, marker="*", s=90 if same else 160, color=f.RED, edgecolor="white", linewidth=0.6, **style)
    elif same:
        axes.scatter(x, y, marker="D", s=110, facecolor="none", edgecolor=color, linewidth=1.2, **style)
    else:
        axes.scatter(x, y, marker="D", s=45, color=color, edgecolor="white", linewidth=0.6, **style)


def _draw_bounds(axes, axis, bounds) -> None:
    """Draw the accuracy that no C exceeds: one minus the certified lower bound on the error."""
    edges = axis.place(np.append(bounds[:, 0], bounds[-1, 1]))
    axes.stairs(1.0 - bounds[:, 2], edges, baseline=None, color=f.GREEN, linewidth=1.2, linestyle="-",
                label="certified: no C above this (1 − lower bound on the error)")  # fmt: skip


def _cv_title(record) -> str:
    text = f"{record.get('model', '')}: {record['folds']}-fold cross-validation"
    if (record.get("repeats") or 1) > 1:
        text += f", {record['repeats']} times"
    count, whole = series.folds_of(record)
    text += "" if count == whole else f", {count} of {whole} folds"
    certified = record.get("certified")
    if certified:
        text += f"\nat most {certified['difference']:.3g} better anywhere in"
        text += f" C = {certified['cmin']:.3g} to {certified['cmax']:.3g}"
    return text


def _draw_cv_grid(run, cv):
    names = cv.record["parameters"]
    mean, se = (np.array([row[name] for row in cv.steps]) for name in ("mean", "se"))
    grid = series.fold_grid(cv.steps, names, {cv.record["score"]: mean, "standard error": se})
    figure, axes = f.new_figure(8.4, 3.9, 1, 2, sharey=True)
    for panel, (name, values) in zip(axes[0], grid.values.items(), strict=True):
        heat_map(figure, panel, grid, values, name, names, share=False)
    second = names[1]
    for key, text in CHOICES.items():
        chosen = cv.record[key]
        row = int(np.argmin([abs(value - chosen["parameters"][second]) for value in grid.rows]))
        members = [int(s["step"]) for s in cv.steps if s[second] == grid.rows[row]]
        where = members.index(int(chosen["step"])) if int(chosen["step"]) in members else None
        if where is not None:
            _mark(axes[0, 0], where + 0.5, row + 0.5, key, text, record=cv.record, color=f.RED)
    axes[0, 0].set_ylabel(second)
    figure.suptitle(_cv_title(cv.record), fontsize=10)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure
