"""Common parts of all pictures: colours, the axis along a path, and files. matplotlib is imported only here."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass

import numpy as np

from screenpath.catalogue.losses import LOSSES
from screenpath.errors import needed

# Okabe and Ito's colours: distinct for colour-blind readers, and in grey prints by their lightness.
BLUE, ORANGE, GREEN, RED, SKY, PURPLE = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7",
)  # fmt: skip
BLACK, GREY, LIGHT = "#000000", "#8c8c8c", "#d9d9d9"
# Dashed lines are drawn above others, so that of two equal ones, which mostly follow each other, both are seen.
LINES = [(BLUE, "-"), (ORANGE, "--"), (GREEN, "-"), (RED, "--"), (BLACK, "-"), (PURPLE, "--"), (SKY, "-"), (GREY, "--")]
MAP = "cividis"  # even in lightness, the same for colour-blind readers

# Largest distance from 1, in decades, of matplotlib's logarithmic axis, whose ticks go far beyond wide ranges.
DECADES = 100
LEVELS = ("step", *(loss.level for loss in LOSSES.values() if loss.level))  # axes of these are linear
FEW = 3  # up to this many steps are drawn as named bars, not curves
UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # no dates: the same bytes at any time
STYLE = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "screenpath",  # the same bytes for the same run
    "savefig.dpi": 150,
}


@dataclass(frozen=True)
class PathAxis:
    """The places of a path's steps on the horizontal axis."""

    x: np.ndarray  # shape (n_steps,)
    label: str
    log: bool
    reverse: bool  # whether values decrease along the path, which is always drawn from left to right
    groups: list  # list of slice; steps joined by lines: one group, or one for each ``beta`` of a grid
    names: list[str]  # names of the steps if there are few
    powers: bool = False  # whether x has decimal logarithms, because parameters are too far from 1 for an axis

    @property
    def few(self) -> bool:
        """Tell whether bars are drawn."""
        return len(self.names) > 0

    def place(self, values: np.ndarray) -> np.ndarray:
        """Return the places of parameter values on the axis."""
        return np.log10(values) if self.powers else values

    def apply(self, axes) -> None:
        if self.few:
            axes.set_xticks(self.x, self.names)
            axes.set_xlim(-0.8, self.x.size - 0.2)
            return
        if self.log:
            axes.set_xscale("log")
        if self.powers:
            axes.xaxis.set_major_formatter(lambda power, _: f"$10^{{{power:g}}}$")
        axes.set_xlabel(self.label)
        low, high = float(self.x.min()), float(self.x.max())
        axes.set_xlim((high, low) if self.reverse else (low, high))
        for group in self.groups[1:]:
            axes.axvline(self.x[group.start] - 0.5, color=GREY, linewidth=0.6, linestyle=":")


def path_axis(steps: list, parameters: list) -> PathAxis:
    """Return the axis of a path: its parameter, or of two the number of the step, with a group for each ``beta``."""
    n = len(steps)
    if n <= FEW:
        names = ["\n".join(f"{name} = {row[name]:.4g}" for name in parameters) for row in steps]
        return PathAxis(np.arange(n, dtype=float), "", False, False, [slice(0, n)], names)
    if len(parameters) == 1:
        x = np.array([row[parameters[0]] for row in steps])
        log = parameters[0] not in LEVELS and bool(x.min() > 0 and x.max() / 5 >= x.min())
        reverse = bool(x[-1] < x[0])
        powers = log and bool(np.abs(np.log10(x)).max() > DECADES)
        x = np.log10(x) if powers else x
        return PathAxis(x, parameters[0], log and not powers, reverse, [slice(0, n)], [], powers)
    second = np.array([row[parameters[1]] for row in steps])
    starts = [0, *(np.flatnonzero(np.diff(second)) + 1).tolist(), n]
    groups = [slice(a, b) for a, b in zip(starts, starts[1:], strict=False)]
    label = f"step (one {parameters[1]} between two dotted lines, {parameters[0]} falling within)"
    return PathAxis(np.array([row["step"] for row in steps], dtype=float), label, False, False, groups, [])


def need_matplotlib():
    """Return matplotlib, or raise an error that says how to install it."""
    hint = "pip install 'screenpath[plot]' (or matplotlib); the command plot needs none with `terminal`"
    with needed("pictures need matplotlib, which is not installed", hint):
        import matplotlib
    return matplotlib


def new_figure(width: float = 7.0, height: float = 4.0, rows: int = 1, columns: int = 1, **options):
    """Return a figure (inches) and its axes as an array of shape (rows, columns), without a window or global state."""
    need_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def to_bytes(figure, kind: str, **style) -> bytes:
    """Return a figure as PNG, SVG or PDF, the same bytes for the same picture; ``style`` has further settings."""
    matplotlib = need_matplotlib()
    out = io.BytesIO()
    with matplotlib.rc_context({**STYLE, **style}):
        figure.savefig(out, format=kind, metadata=UNDATED.get(kind))
    return out.getvalue()


def spread(positions, distance: float) -> np.ndarray:
    """Move positions as little as possible so that neighbours keep a distance; their order stays."""
    order = np.argsort(positions, kind="stable")
    moved = np.asarray(positions, dtype=float)[order]
    for _ in range(200):
        overlap = distance - np.diff(moved)
        if not np.any(overlap > 1e-9 * distance):
            break
        push = np.where(overlap > 0, overlap / 2, 0.0)
        moved[:-1] -= push
        moved[1:] += push
    out = np.empty_like(moved)
    out[order] = moved
    return out


def seconds_text(seconds: float) -> str:
    if seconds <= 0 or not math.isfinite(seconds):
        return "0 s"
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} µs"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
