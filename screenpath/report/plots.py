"""The pictures of a run by matplotlib: a function per kind, from a run to a figure."""

from __future__ import annotations

import math

import numpy as np

from screenpath.cv.choice import folds_of
from screenpath.errors import shown
from screenpath.report import figures as f
from screenpath.report import series
from screenpath.report.figures import to_bytes

CEILING = 1e100  # ... and larger ones, of steps that overflowed, here
CHOICES = {"best": "best", "one_se": "one standard error"}
LEVELS = 8  # contours over C and gamma
MANY = 60  # with more steps, standard errors are drawn as a band, not bars
LONGEST_NAME = 24  # characters of a name that fit next to a picture
LABELLED_IN_PANELS = 3  # names that fit next to a small panel
LEADER = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0, "relpos": (0.0, 0.5)}  # ends at its name
DASHES = ("-", "--", ":", "-.")  # of the lines of several runs
# Columns of a comparison of rules that are drawn: title, and the format of the number at a bar.
RULE_PANELS = {
    "mean_rejection": ("share of the rows\ndecided before the solve", "{:.3f}"),
    "mean_scaling": ("scaling ratio", "{:.3f}"), "speedup": ("speed-up\n(CPU seconds of the path)", "{:.2f}"),
    "decisions": ("decisions", "{:,.0f}"), "unsafe": ("unsafe decisions", "{:,.0f}"),
}  # fmt: skip


def _panel(run) -> tuple:
    figure, axes = f.new_figure()
    return figure, axes[0, 0], f.path_axis(run.steps, run.parameters)


def draw_rejection(run):
    """Draw stacked areas of what the rule screened, as in Wang 2014, Fig. 1."""
    found, (figure, axes, axis) = series.rejection(run), _panel(run)
    samples = bool(np.nansum(found.R + found.L))
    if samples or found.features is None:
        parts = [(found.R, "screened, lower bound (R)", f.BLUE), (found.L, "screened, upper bound (L)", f.ORANGE)]
        _stack(axes, axis, parts)
        _along(axes, axis, found.at_end, color=f.BLACK, linestyle="--", linewidth=1.2, label="at a bound (limit)")
    else:
        _stack(axes, axis, [(found.features, "screened features", f.GREEN)])
    if samples and found.features is not None:
        _along(axes, axis, found.features, color=f.GREEN, linewidth=1.8, label="screened features")
    if not samples and found.features is None:
        axes.annotate(
            "nothing was screened before a solve", (0.5, 0.5), xycoords="axes fraction", ha="center", color=f.GREY
        )
    axis.apply(axes)
    title = f"{run.model}: rejection by the rule {run.record['options'].get('rule', '')}".rstrip()
    axes.set(ylim=(0.0, 1.0), ylabel="share screened before the solve", title=title)
    return _legend_below(figure, axes)


def draw_gap(run):
    (gap, target), (figure, axes, axis) = series.gaps(run), _panel(run)
    certified = np.array([row["status"] == "certified" for row in run.steps])
    zero = gap <= series.FLOOR
    size = 16 if gap.size <= 200 else 5
    for where, color, marker, label in (
        (certified & ~zero, f.BLUE, "o", "certified"),
        (certified & zero, f.SKY, "v", "certified, gap zero to rounding"),
        (~certified, f.RED, "X", "not certified"),
    ):
        if where.any():
            label = f"{label}: {int(where.sum())}"
            shown = np.clip(gap[where], series.FLOOR, CEILING)
            axes.scatter(axis.x[where], shown, s=size, c=color, marker=marker, label=label, clip_on=False, zorder=3)
    _along(axes, axis, target, color=f.BLACK, linestyle="--", linewidth=1.2, label="target", wide=True)
    axes.set_yscale("log")
    axis.apply(axes)
    known = np.concatenate([gap[np.isfinite(gap)], target[np.isfinite(target)]]).clip(series.FLOOR, CEILING)
    if known.size:
        axes.set_ylim(known.min() / 3, known.max() * 5)
    axes.set(ylabel="(primal − dual) / primal", title=f"{run.model}: duality gap on the full data")
    return _legend_below(figure, axes)


def draw_time(run):
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
    axes.set(ylabel=f"{'' if unit == 1.0 else 'milli'}seconds per step", title=f"{run.model}: time per phase")
    return _legend_below(figure, axes)


def _limit_time(axes, total, unit: float) -> None:
    """Cut off a few slow steps (on a busy machine), which would flatten all others, and note how high they are."""
    top, limit = float(total.max()), 3.0 * float(np.quantile(total, 0.85))
    if total.size > 20 and top > 2.0 * limit > 0:
        axes.set_ylim(0, unit * limit)
        text = f"{int((total > limit).sum())} steps cut off, the longest {f.seconds_text(top)}"
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        axes.annotate(text, (0.99, 0.98), xycoords="axes fraction", va="top", ha="right", bbox=box)
    else:
        axes.set_ylim(bottom=0)


def _stack(axes, axis, parts, **options) -> None:
    """Stack (values, label, colour) as areas, or as bars if steps are few."""
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
    """Draw a line along the steps, broken between groups; a short bar over each step if they are few."""
    if axis.few:
        half = 0.4 if wide else 0.3
        axes.hlines(values, axis.x - half, axis.x + half, label=label, **style)
        return
    for number, group in enumerate(axis.groups):
        marker = "_" if values[group].size == 1 else None
        axes.plot(axis.x[group], values[group], label=label if number == 0 else None, marker=marker, **style)


def _legend_below(figure, axes, most: int = 3):
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), most))
    return figure


def draw_grid(run):
    """Draw scaling ratio, screened samples and features, and the score over (alpha, beta), as Hong 2019."""
    grid = series.grid(run)
    shares = [name for name in grid.values if not name.startswith(("test", "cv"))]
    return _heat_maps(grid, run.parameters, f"{run.model}: share screened over the grid", shares)[0]


def _heat_maps(grid, parameters, title: str, shares=(), size: tuple[float, float] | None = None) -> tuple:
    """Draw a heat map for each of the values of a grid; colours of ``shares`` range from 0 to 1."""
    count = len(grid.values)
    width, height = size or (3.3 * count + 0.6, 3.6)
    figure, axes = f.new_figure(width, height, 1, count, sharey=True)
    for panel, (name, values) in zip(axes[0], grid.values.items(), strict=True):
        limits = {"vmin": 0.0, "vmax": 1.0} if name in shares else {}
        panel.set_facecolor(f.LIGHT)  # where the grid has no step
        mesh = panel.pcolormesh(np.ma.masked_invalid(values), cmap=f.MAP, edgecolors="face", linewidth=0.3, **limits)
        panel.yaxis.set_inverted(True)  # the largest on top; set, not toggled, because panels share the axis
        for setter, names in ((panel.set_xticks, grid.columns), (panel.set_yticks, [f"{v:.3g}" for v in grid.rows])):
            every = max(1, -(-len(names) // 5))
            setter(np.arange(0, len(names), every) + 0.5, names[::every])
        panel.set(xlabel=grid.label, title=name)
        figure.colorbar(mesh, ax=panel, shrink=0.9)
    axes[0, 0].set_ylabel(parameters[1])
    figure.suptitle(title, fontsize=10)
    return figure, axes[0, 0]


def curve_of(cv: series.CrossValidation):
    """Draw the mean score with its standard errors, both choices, and the certified bound for every C."""
    names, record = cv.record["parameters"], cv.record
    if len(names) == 2 and len(cv.steps) > f.FEW:
        return _draw_cv_grid(cv)
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
        edges = axis.place(np.append(cv.bounds[:, 0], cv.bounds[-1, 1]))
        axes.stairs(1.0 - cv.bounds[:, 2], edges, baseline=None, color=f.GREEN, linewidth=1.2, linestyle="-",
                    label="certified: no C above this (1 − lower bound on the error)")  # fmt: skip
    axis.apply(axes)
    axes.set(ylabel=record["score"].replace("-", " "), title=_cv_title(record))
    return _legend_below(figure, axes, 2)


def _mark(axes, x, y, key: str, label: str, record: dict, color: str) -> None:
    """Mark a choice: the best by a star, one standard error by a coloured diamond; around the star if they are one."""
    same = record["best"]["step"] == record["one_se"]["step"]
    if key == "best":
        style: dict = {"marker": "*", "s": 90 if same else 160, "color": f.RED, "edgecolor": "white", "linewidth": 0.6}
    elif same:
        style = {"marker": "D", "s": 110, "facecolor": "none", "edgecolor": color, "linewidth": 1.2}
    else:
        style = {"marker": "D", "s": 45, "color": color, "edgecolor": "white", "linewidth": 0.6}
    axes.scatter(x, y, clip_on=False, zorder=4, label=label, **style)


def _cv_title(record) -> str:
    text = f"{record.get('model', '')}: {record['folds']}-fold cross-validation"
    if (record.get("repeats") or 1) > 1:
        text += f", {record['repeats']} times"
    count, whole = folds_of(record)
    text += "" if count == whole else f", {count} of {whole} folds"
    certified = record.get("certified")
    if certified:
        text += f"\nat most {certified['difference']:.3g} better anywhere in"
        text += f" C = {certified['cmin']:.3g} to {certified['cmax']:.3g}"
    return text


def _draw_cv_grid(cv: series.CrossValidation):
    names, record = cv.record["parameters"], cv.record
    values = {record["score"]: "mean", "standard error": "se"}
    shown = {title: np.array([row[name] for row in cv.steps]) for title, name in values.items()}
    grid = series.fold_grid(cv.steps, names, shown)
    figure, axes = _heat_maps(grid, names, _cv_title(record))
    for key, text in CHOICES.items():
        chosen = record[key]
        row = int(np.argmin([abs(value - chosen["parameters"][names[1]]) for value in grid.rows]))
        members = [int(s["step"]) for s in cv.steps if s[names[1]] == grid.rows[row]]
        if int(chosen["step"]) in members:
            _mark(axes, members.index(int(chosen["step"])) + 0.5, row + 0.5, key, text, record=record, color=f.RED)
    return _legend_below(figure, axes, 2)


def draw_gammas(run):
    """Draw contours of the mean score over C and gamma, and the chosen pair; what was dropped is grey."""
    (grid, C), record = series.read_gammas(run), series.read_cv(run).record
    (means,), grey = grid.values.values(), " (grey: dropped)"
    epsilon = f", epsilon = {record['tuned']['epsilon']:.3g}" if "epsilon" in record["tuned"] else ""
    title = f"{_cv_title(record)}{epsilon}, {len(grid.rows)} values of gamma{grey if np.isnan(means).any() else ''}"
    figure, axes = _heat_maps(grid, ["C", "gamma"], title, size=(7.0, 4.4))
    places = np.arange(len(C)) + 0.5, np.arange(len(grid.rows)) + 0.5
    known = np.ma.masked_invalid(means)
    if min(np.isfinite(means).any(axis=k).sum() for k in (0, 1)) > 2 and known.min() < known.max():
        axes.contour(*places, known, levels=LEVELS, colors="white", linewidths=0.8)
    row = int(np.argmin(np.abs(np.array(grid.rows) - record["tuned"]["gamma"])))
    column = int(np.argmin(np.abs(np.array(C) - record["best"]["parameters"]["C"])))
    _mark(axes, column + 0.5, row + 0.5, "best", f"gamma = {grid.rows[row]:.3g}, C = {C[column]:.3g}", record, f.BLACK)
    return _legend_below(figure, axes)


def draw_coefficients(run):
    """Draw the weights along the path, one panel per class; the largest are named at the end of their lines."""
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
    if run.blocks and len(run.blocks) > len(paths):
        text += f", {len(paths)} of {len(run.blocks)} {'pairs' if run.voting else 'classes'}"
    return text


def _draw_panel(panel, axis, path, unit: str) -> None:
    """Draw one class; an empty ``unit`` means many panels, with few names, and numbers only."""
    named = min(series.LABELLED if unit else LABELLED_IN_PANELS, path.features.size)
    style = {"marker": "o", "linestyle": "none"} if axis.few else {}
    for group in axis.groups:
        x = axis.x[group]
        panel.plot(x, path.values[group, named:], color=f.LIGHT, linewidth=0.6, zorder=1, **style)
        for k in range(named):
            color, line = f.LINES[k % len(f.LINES)]
            own: dict = style or {"linestyle": line, "marker": "." if x.size == 1 else None}
            panel.plot(x, path.values[group, k], color=color, linewidth=1.4, zorder=2 + (line == "--"), **own)
    panel.axhline(0.0, color=f.GREY, linewidth=0.6)
    axis.apply(panel)
    if axis.few:
        panel.set_xlim(-0.5, axis.x[-1] + 0.08)  # the names stand close to the points
    if named:
        _name_lines(panel, path, named, unit)
    else:
        panel.annotate("all weights are zero", (0.5, 0.6), xycoords="axes fraction", ha="center", color=f.GREY)


def _name(path, k: int, unit: str) -> str:
    """Return the text at a line: the feature's name, truncated if needed, or its number."""
    if path.names is None:
        return f"{unit} {path.features[k]}".strip()
    name = shown(path.names[k])
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return name.replace("$", r"\$")  # not the beginning of a formula


def _name_lines(panel, path, named: int, unit: str) -> None:
    """Write the names at the ends of their lines, moved apart, each with a thin leader."""
    low, high = panel.get_ylim()
    ends = (path.values[-1, :named] - low) / (high - low)
    height = panel.get_window_extent().height / panel.figure.dpi  # inches, before the layout is final
    places = f.spread(ends, 0.155 / max(height, 0.8))
    places = places - max(0.0, places.max() - 1.0) + max(0.0, -places.min())
    for k in range(named):
        panel.annotate(
            _name(path, k, unit), (1.0, ends[k]), xytext=(1.05, places[k]), xycoords="axes fraction",
            textcoords="axes fraction", va="center", fontsize=8, color=f.LINES[k % len(f.LINES)][0],
            arrowprops={**LEADER, "color": f.LINES[k % len(f.LINES)][0]},
        )  # fmt: skip


DRAW = {
    "rejection": draw_rejection, "coefficients": draw_coefficients, "gap": draw_gap, "time": draw_time,
    "cv": lambda run: curve_of(series.read_cv(run)), "gammas": draw_gammas, "grid": draw_grid,
}  # fmt: skip


def draw(run, kind: str):
    """Return the picture of a run as a matplotlib Figure; unavailable kinds are refused."""
    matplotlib = f.need_matplotlib()
    series.check_kind(run, kind)
    with matplotlib.rc_context(f.STYLE):
        if kind in series.LEFT_OUT:
            from screenpath.report import left_out  # others start up without it

            return left_out.draw_loo(run) if kind == "loo" else left_out.draw_influence(run)
        return DRAW[kind](run)


def picture(run, kind: str | None, name: str | None) -> tuple[str, bytes]:
    """Return the name of a picture's file, ``RUN/KIND.png`` by default, and its content."""
    form = series.picture_form(name)
    kind = kind or series.available(run)[0]
    series.check_kind(run, kind)
    return name or str(run.path / f"{kind}.png"), to_bytes(draw(run, kind), form)


def picture_together(lines: series.Lines, name: str | None) -> bytes:
    with f.need_matplotlib().rc_context(f.STYLE):
        figure, grid = f.new_figure()
        axes, every = grid[0, 0], np.concatenate(lines.x)
        for number, (label, x, y) in enumerate(zip(lines.names, lines.x, lines.y, strict=True)):
            # Dashes, and smaller points, of later lines leave earlier ones visible where they are equal.
            color, style = f.LINES[number % len(f.LINES)][0], DASHES[number % len(DASHES)]
            y = np.clip(y, series.FLOOR, CEILING) if lines.log else y
            size = max(2, 5 - number)
            axes.plot(x, y, style, color=color, marker="o", markersize=size, linewidth=1.6, label=shown(label))
        powers = every.min() > 0 and np.abs(np.log10(every)).max() <= f.DECADES
        if lines.label not in f.LEVELS and powers and every.max() / 5 >= every.min():
            axes.set_xscale("log")
        if lines.log:
            axes.set_yscale("log")
        if lines.x[0][-1] < lines.x[0][0]:  # values decrease along the path
            axes.xaxis.set_inverted(True)
        axes.set(xlabel=lines.label, ylabel=lines.title)
        _legend_below(figure, axes, 1)
        return to_bytes(figure, series.picture_form(name))


def draw_rules(rows: list[dict]):
    """Draw a bar for each row of a comparison or of an attack in a panel for each column of ``RULE_PANELS``."""
    panels = {name: how for name, how in RULE_PANELS.items() if name in rows[0]}
    names = _rule_names(rows)
    width = 2.4 * len(panels) + 0.07 * max(map(len, names)) + 0.3
    with f.need_matplotlib().rc_context(f.STYLE):
        figure, axes = f.new_figure(width, 0.26 * len(rows) + 0.9, 1, len(panels), sharey=True)
        for axis, (column, (title, form)) in zip(axes[0], panels.items(), strict=True):
            values = [row[column] or 0.0 for row in rows]
            bars = axis.barh(names, values, color=f.RED if column == "unsafe" else f.BLUE)
            texts = ["not known" if row[column] is None else form.format(row[column]) for row in rows]
            axis.bar_label(bars, texts, padding=3)
            axis.set(xlim=(0.0, 1.35 * max(values) or 1.0), title=title, xticks=[])  # with room for the numbers
            axis.tick_params(left=False)
            axis.spines["bottom"].set_visible(False)
    axes[0, 0].yaxis.set_inverted(True)  # in the order of the table
    return figure


def _rule_names(rows: list[dict]) -> list[str]:
    """Return a name for each row: the rule or configuration, and what else differs between rows."""
    parts = [name for name in ("shrinking", "start") if len({row.get(name) for row in rows}) > 1]
    words = {True: "shrinking", False: "no shrinking"}
    further = [[str(words.get(row[part], row[part])) for part in parts] for row in rows]
    return [
        ", ".join([row.get("rule") or row["configuration"], *more]) for row, more in zip(rows, further, strict=True)
    ]
