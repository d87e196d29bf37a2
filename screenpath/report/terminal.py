"""The pictures of a run drawn with characters; no matplotlib."""

from __future__ import annotations

import math

import numpy as np

from screenpath.cv.choice import found_lines
from screenpath.data.words.tables import aligned
from screenpath.errors import NARROWEST, shown
from screenpath.report import series
from screenpath.report.figures import seconds_text

LINES = 24  # most steps shown, evenly chosen
NAME, FIGURES = 24, 9  # characters of a name, and of a number of three digits
WIDTH, NUMBERS = 50, 46  # characters of the longest bar; of all that may stand beside it
BLOCKS = " ▁▂▃▄▅▆▇█"
MARKS = "▒─●µ"
# Substitutes in an output without such characters, as in the C locale.
ASCII = str.maketrans(BLOCKS + MARKS, " _.-:=+*#" + "%-ou")


def drawn(run, kind: str, columns: int, encoding: str) -> str:
    """Return a picture for a terminal of so many columns; in ASCII if the encoding lacks the characters."""
    columns = WIDTH + NUMBERS if columns < NARROWEST else columns  # it does not know its size: lines are left to it
    width = max(10, min(WIDTH, columns - NUMBERS))
    lines = [shown(f"{run.model}: {kind} of {run.path}"), *SHOW[kind](run, width)]
    return _in(encoding, "".join(f"{line}\n" for line in lines))


def _in(encoding: str, text: str) -> str:
    """Return a text, in ASCII if the encoding lacks its characters."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(ASCII)
    return text


def drawn_together(lines: series.Lines, columns: int, encoding: str) -> str:
    """Return the lines of several runs as rows of characters, all on one scale."""
    columns = WIDTH + NUMBERS if columns < NARROWEST else columns
    ys = [np.log10(np.maximum(y, series.FLOOR)) if lines.log else y for y in lines.y]
    known = np.concatenate([y[np.isfinite(y)] for y in ys] or [np.zeros(0)])
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    names = [shown(name) for name in lines.names]
    width = max(10, min(WIDTH, columns - max(map(len, names)) - 22))
    rows = [["run", "path".ljust(width), "first", "last"]]
    for name, y, raw in zip(names, ys, lines.y, strict=True):
        curve = _curve(y[_chosen(y.size, width)], low, high).ljust(width)
        rows.append([name, curve, *(f"{raw[k]:.3g}" for k in (0, -1))])
    ends = [f"{10.0**one if lines.log else one:.3g}" for one in (low, high)]
    along = f"{lines.title} along {lines.label}, first step to last; from {ends[0]} (lowest) to {ends[1]}"
    return _in(encoding, "".join(f"{line}\n" for line in (*aligned(rows, 2), along)))


def _chosen(n: int, most: int = LINES) -> list:
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int)).tolist()


def _where(row: dict, parameters) -> list:
    return [str(int(row["step"])), *(f"{row[name]:.4g}" for name in parameters)]


def _rejection(run, width):
    found = series.rejection(run)
    samples = bool(np.nansum(found.R + found.L)) or found.features is None
    first, second = (found.R, found.L) if samples or found.features is None else (found.features, 0.0 * found.R)
    rows = [["step", *run.parameters, *(["R", "L"] if samples else ["features"]), "".ljust(width)]]
    for k in _chosen(len(run.steps)):
        cells = round(width * first[k])
        bar = "█" * cells + "▒" * (round(width * (first[k] + second[k])) - cells)
        numbers = [f"{100 * values[k]:.1f} %" for values in ((first, second) if samples else (first,))]
        rows.append([*_where(run.steps[k], run.parameters), *numbers, bar.ljust(width)])
    words = "█ screened at the lower bound (R), ▒ at the upper bound (L)"
    return [*aligned(rows), words if samples else "█ features screened before the solve"]


def _curve(values, low: float, high: float) -> str:
    if high <= low:
        return BLOCKS[4] * len(values)
    return "".join(BLOCKS[1 + min(7, int(8 * (v - low) / (high - low)))] if math.isfinite(v) else " " for v in values)


def _coefficients(run, width):
    lines = []
    for path in series.feature_paths(run):
        named = path.values[:, : series.LABELLED]
        head = f"{run.unit} ({path.title})" if path.title else run.unit
        names = [shown(name)[:NAME] for name in path.names or map(str, path.features[: series.LABELLED])]
        room = width + NUMBERS - max(map(len, [head, *names])) - 3 * (FIGURES + 2) - 2
        columns = _chosen(len(run.steps), max(10, min(WIDTH, room)))
        rows = [[head, "path".ljust(len(columns)), "lowest", "highest", "last"]]
        for name, values in zip(names, named.T, strict=False):
            ends = float(values.min()), float(values.max())
            rows.append([name, _curve(values[columns], *ends), *(f"{one:.3g}" for one in (*ends, values[-1]))])
        lines += [*aligned(rows), f"each from its lowest to its highest; {path.nonzero} {run.unit}s have weights"]
    return lines


def _gap(run, width):
    gap, target = series.gaps(run)
    width = min(width, 24)
    rows = [["step", *run.parameters, "relative gap", "target", "status", "digits".ljust(width)]]
    for k in _chosen(len(run.steps)):
        row = run.steps[k]
        digits = 16.0 if gap[k] <= 1e-16 else -math.log10(gap[k]) if math.isfinite(gap[k]) else 0.0
        bar = "█" * round(min(max(digits, 0.0) / 16, 1.0) * width)
        where = _where(row, run.parameters)
        rows.append([*where, f"{gap[k]:.1e}", f"{target[k]:.1e}", row["status"], bar.ljust(width)])
    return aligned(rows)


def _time(run, width):
    phases = series.times(run)
    whole = sum(float(seconds.sum()) for _, seconds in phases) or 1.0
    rows = [["phase", "seconds", "a step", "share", "".ljust(width)]]
    for name, seconds in phases:
        total = float(seconds.sum())
        numbers = [seconds_text(total), seconds_text(total / seconds.size), f"{100 * total / whole:.1f} %"]
        rows.append([name, *numbers, ("█" * round(width * total / whole)).ljust(width)])
    return aligned(rows, 1)


def _cv(run, width):
    cv = series.read_cv(run)
    names, score = cv.record["parameters"], cv.record["score"]
    mean, se = (np.array([row[name] for row in cv.steps]) for name in ("mean", "se"))
    spread = np.nan_to_num(se)
    low, high = float(np.nanmin(mean - spread)), float(np.nanmax(mean + spread))
    marks = {int(cv.record[key]["step"]): text for key, text in (("one_se", "1 SE"), ("best", "best"))}
    if cv.record["best"]["step"] == cv.record["one_se"]["step"]:
        marks[int(cv.record["best"]["step"])] = "best 1 SE"
    rows = [["step", *names, score, "se", "".ljust(width), "".ljust(9)]]
    for k in sorted({*_chosen(len(cv.steps)), *(k for k, row in enumerate(cv.steps) if int(row["step"]) in marks)}):
        places = (np.array([-1, 0, 1]) * spread[k] + mean[k] - low) / ((high - low) or 1.0) * (width - 1)
        left, middle, right = np.nan_to_num(places).round().astype(int).tolist()
        bar = " " * left + "─" * (middle - left) + "●" + "─" * (right - middle)
        error, mark = "" if math.isnan(se[k]) else f"{se[k]:.4f}", marks.get(int(cv.steps[k]["step"]), "")
        rows.append([*_where(cv.steps[k], names), f"{mean[k]:.4f}", error, bar.ljust(width), mark.ljust(9)])
    bound = found_lines(cv.record)[-3:] if cv.record.get("certified") else []
    return [*aligned(rows), *(f"{what}: {value}" for what, value in bound)]


def _rows_of(grid, second: str, width) -> list[str]:
    """Return a curve along the first parameter for each value of the second."""
    lines: list[str] = []
    columns = _chosen(len(grid.columns), width)
    for name, values in grid.values.items():
        scored = second == "gamma" or name.startswith(("test", "cv"))
        low, high = (float(np.nanmin(values)), float(np.nanmax(values))) if scored else (0.0, 1.0)
        size = max(len(name), len(columns))
        curves = [(grid.rows[r], _curve(values[r, columns], low, high)) for r in _chosen(len(grid.rows))]
        lines += aligned([[second, name.ljust(size)], *([f"{b:.3g}", one.ljust(size)] for b, one in curves)])
        lines.append(f"▁ {low:.3g} to █ {high:.3g}; {grid.label} from {grid.columns[0]} to {grid.columns[-1]}")
    return lines


SHOW = {
    "rejection": _rejection, "coefficients": _coefficients, "gap": _gap, "time": _time, "cv": _cv,
    "gammas": lambda run, width: _rows_of(series.read_gammas(run)[0], "gamma", width),
    "grid": lambda run, width: _rows_of(series.grid(run), run.parameters[1], width),
}  # fmt: skip
