"""The pictures of a run drawn with characters on standard output; no matplotlib."""

from __future__ import annotations

import io
import math
import sys

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from screenpath.errors import NARROWEST, shown
from screenpath.report import series
from screenpath.report.figures import seconds_text

LINES = 24  # most steps shown, evenly chosen
WIDTH, NUMBERS = 50, 46  # characters of the longest bar; of all that may stand beside it
BLOCKS = " ▁▂▃▄▅▆▇█"
SHADES = " ░▒▓█"
MARKS = "─●·µ"
# Substitutes in an output without such characters, as in the C locale.
ASCII = str.maketrans(BLOCKS + SHADES + MARKS, " _.-:=+*#" + " .%+#" + "-o.u")


def show(run, kind: str) -> None:
    console = Console(highlight=False, file=_encodable(sys.stdout))
    if console.width < NARROWEST:  # COLUMNS=0, a terminal that does not know its size: lines are left to it
        console.width = WIDTH + NUMBERS
    console.print(shown(f"{run.model}: {kind} of {run.path}"), soft_wrap=True, markup=False)
    width = max(10, min(WIDTH, console.width - NUMBERS))
    for part in SHOW[kind](run, width):
        console.print(part)


class _Plain(io.TextIOBase):
    """A stream whose encoding lacks the characters of pictures: they are drawn in ASCII, and names escaped."""

    def __init__(self, stream):
        self.stream, self.codec = stream, stream.encoding or "ascii"

    def write(self, text: str) -> int:
        self.stream.write(text.translate(ASCII).encode(self.codec, "backslashreplace").decode(self.codec))
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return self.stream.isatty()


def _encodable(stream):
    try:
        (BLOCKS + SHADES + MARKS).encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return _Plain(stream)
    return stream


def _chosen(n: int, most: int = LINES) -> list:
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int)).tolist()


def _where(row: dict, parameters) -> list:
    return [f"{row[name]:.4g}" for name in parameters]


def _table(right, *left) -> Table:
    """Return a table with columns aligned to the right, then some to the left."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    for name in left:
        table.add_column(name, no_wrap=True)
    return table


def _rejection(run, width):
    found = series.rejection(run)
    samples = bool(np.nansum(found.R + found.L)) or found.features is None
    table = _table(("step", *run.parameters), *(["R", "L"] if samples else ["features"]), "")
    for k in _chosen(len(run.steps)):
        row = run.steps[k]
        first, second = (found.R[k], found.L[k]) if samples or found.features is None else (found.features[k], 0.0)
        cells = round(width * first)
        bar = Text("█" * cells, style="blue")
        bar.append("▒" * (round(width * (first + second)) - cells), style="yellow")
        numbers = [f"{100 * v:.1f} %" for v in ([first, second] if samples else [first])]
        table.add_row(str(row["step"]), *_where(row, run.parameters), *numbers, bar)
    yield table
    if samples:
        yield "█ fixed at the lower end (R), ▒ at the upper end (L), before the solve"
    else:
        yield "█ features fixed to zero before the solve"


def _curve(values, low: float, high: float) -> str:
    if high <= low:
        return BLOCKS[4] * len(values)
    return "".join(BLOCKS[1 + min(7, int(8 * (v - low) / (high - low)))] for v in values)


def _coefficients(run, width):
    columns = _chosen(len(run.steps), width + 10)
    for path in series.feature_paths(run):
        named = path.values[:, : series.LABELLED]
        table = _table([f"{run.unit} ({path.title})" if path.title else run.unit], "path", "last")
        low, high = (float(named.min()), float(named.max())) if named.size else (0.0, 0.0)
        for k in range(named.shape[1]):
            table.add_row(
                Text(shown(path.names[k]) if path.names else str(path.features[k])),
                _curve(named[columns, k], low, high),
                f"{named[-1, k]:.4g}",
            )
        yield table
        yield f"from {low:.4g} (lowest) to {high:.4g}, first step to last; {path.nonzero} {run.unit}s have weights"


def _gap(run, width):
    gap, target = series.gaps(run)
    table = _table(("step", *run.parameters), "relative gap", "target", "status", "digits")
    for k in _chosen(len(run.steps)):
        row = run.steps[k]
        digits = 16.0 if gap[k] <= 1e-16 else -math.log10(gap[k]) if math.isfinite(gap[k]) else 0.0
        style = "blue" if row["status"] == "certified" else "red"
        bar = Text("█" * round(min(max(digits, 0.0) / 16, 1.0) * min(width, 24)), style=style)
        where = _where(row, run.parameters)
        table.add_row(str(row["step"]), *where, f"{gap[k]:.1e}", f"{target[k]:.1e}", row["status"], bar)
    yield table


def _time(run, width):
    phases = series.times(run)
    whole = sum(float(seconds.sum()) for _, seconds in phases) or 1.0
    table = _table((), "phase", "seconds", "a step", "share", "")
    for name, seconds in phases:
        total = float(seconds.sum())
        bar = Text("█" * round(width * total / whole), style="blue")
        table.add_row(
            name, seconds_text(total), seconds_text(total / seconds.size), f"{100 * total / whole:.1f} %", bar
        )
    yield table


def _cv(run, width):
    cv = series.read_cv(run)
    names, score = cv.record["parameters"], cv.record["score"]
    mean, se = (np.array([row[name] for row in cv.steps]) for name in ("mean", "se"))
    low, high = float(np.nanmin(mean - np.nan_to_num(se))), float(np.nanmax(mean + np.nan_to_num(se)))
    best, one_se = (int(cv.record[key]["step"]) for key in ("best", "one_se"))
    shown = {*_chosen(len(cv.steps)), *(k for k, row in enumerate(cv.steps) if int(row["step"]) in (best, one_se))}
    table = _table(("step", *names), score, "se", "", "")
    for k in sorted(shown):
        row = cv.steps[k]
        ends = [
            (mean[k] + sign * np.nan_to_num(se[k]) - low) / ((high - low) or 1.0) * (width - 1) for sign in (-1, 0, 1)
        ]
        left, middle, right = (round(float(v)) if math.isfinite(v) else 0 for v in ends)
        bar = " " * left + "─" * (middle - left) + "●" + "─" * (right - middle)
        marks = " ".join(text for number, text in ((best, "best"), (one_se, "1 SE")) if number == int(row["step"]))
        error = "" if math.isnan(se[k]) else f"{se[k]:.4f}"
        table.add_row(str(int(row["step"])), *_where(row, names), f"{mean[k]:.4f}", error, bar, marks)
    yield table
    certified = cv.record.get("certified")
    if certified:
        yield (
            f"CV error: best found {certified['best_error']:.4g}, certified lower bound {certified['lower_bound']:.4g},"
            f" at most {certified['difference']:.3g} better anywhere in C = {certified['cmin']:.4g} to"
            f" {certified['cmax']:.4g}"
        )


def _grid(run, width):
    grid = series.grid(run)
    columns = _chosen(len(grid.columns), width // 3)
    for name, values in grid.values.items():
        low, high = (
            (0.0, 1.0) if not name.startswith(("test", "cv")) else (float(np.nanmin(values)), float(np.nanmax(values)))
        )
        table = _table([run.parameters[1]], name)
        for r in _chosen(len(grid.rows)):
            cells = [_shade(values[r, c], low, high) * 3 for c in columns]
            table.add_row(f"{grid.rows[r]:.3g}", "".join(cells))
        yield table
        yield f"blank {low:.3g} to █ {high:.3g}; {grid.label} from {grid.columns[0]} to {grid.columns[-1]}"


def _shade(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return "·"
    return SHADES[min(4, int(5 * (value - low) / ((high - low) or 1.0)))]


SHOW = {
    "rejection": _rejection,
    "coefficients": _coefficients,
    "gap": _gap,
    "time": _time,
    "cv": _cv,
    "grid": _grid,
}
