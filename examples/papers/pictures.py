"""The papers' figures from step tables: stacked areas, lines over C, heat maps over (alpha, beta). By matplotlib."""

from __future__ import annotations

import math
import re

try:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "papers", "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot
except ImportError:  # a page without pictures
    pyplot = None

LONG = re.compile(r"(\d\.\d\d)\d+")  # a number with more than two decimals
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def grid(rows: int, columns: int, width: float = 2.7, height: float = 2.1, **more):
    """Return a figure and its panels, shape (rows, columns)."""
    return pyplot.subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained", **more
    )


def saved(figure, folder, name: str) -> str:
    """Write a figure and return the name of its file; a vector's numbers have two decimals, which no eye misses."""
    target = folder / name
    figure.savefig(target, metadata={"Date": None} if name.endswith(".svg") else None, dpi=90)
    pyplot.close(figure)
    if name.endswith(".svg"):
        text = target.read_text(encoding="utf-8")
        target.write_text(LONG.sub(r"\1", text), encoding="utf-8")
    return name


def stacked(folder, name: str, panels, columns: int = 3, clouds=()):
    """Draw the shares of the samples that a rule fixes in R and L, stacked over C (Wang 2014, Figs. 1-3).

    Parameters
    ----------
    panels : list of (str, list of dict)
        Title and step table of each panel.
    clouds : list of (X, signs, list of w)
        For a first row: samples in the plane and decision functions.
    """
    if pyplot is None:
        return None
    first = 1 if clouds else 0
    figure, axes = grid(first + math.ceil(len(panels) / columns), columns)
    for panel, (X, signs, weights) in zip(axes[0], clouds, strict=False):
        for sign, colour in ((1, COLOURS[1]), (-1, COLOURS[0])):
            panel.scatter(*X[signs == sign][::4].T, s=1, color=colour, rasterized=True)
        for w, style in zip(weights, (":", "--"), strict=True):
            span = (-4.0, 4.0)
            panel.plot(span, [-w[0] / w[1] * x for x in span], "k" + style, linewidth=1)
        panel.set(xlim=(-4, 4), ylim=(-4, 4))
    flat = axes[first:].ravel()
    for panel, (title, steps) in zip(flat, panels, strict=False):
        n = steps[0]["n_R"] + steps[0]["n_L"] + steps[0]["n_E"]
        C, shares = [s["C"] for s in steps], [[s[k] / n for s in steps] for k in ("screened_R", "screened_L")]
        panel.stackplot(C, shares, colors=COLOURS, labels=("R", "L"), linewidth=0)
        panel.set(xscale="log", ylim=(0, 1), title=title, xlabel="C", xlim=(C[0], C[-1]))
    for panel in flat[len(panels) :]:
        panel.set_axis_off()
    flat[0].legend(loc="lower left")
    return saved(figure, folder, name)


def lines(
    folder, name: str, panels, columns: int = 3, ylabel: str = "", xlabel: str = "C", logx=True, logy=False, top=1.0
):
    """Draw curves over C.

    Parameters
    ----------
    panels : list of (str, dict of str to (x, y))
    top : float or None
        Of the vertical axis.
    """
    if pyplot is None:
        return None
    figure, axes = grid(math.ceil(len(panels) / columns), columns)
    for panel, (title, curves) in zip(axes.ravel(), panels, strict=False):
        for colour, (label, (x, y)) in zip(COLOURS, curves.items(), strict=False):
            panel.plot(x, y, color=colour, label=label, linewidth=1, marker="." if len(x) < 25 else None)
        panel.set(title=title, xlabel=xlabel, ylabel=ylabel)
        if logx:
            panel.set_xscale("log")
        if logy:
            panel.set_yscale("log")
        elif top:
            panel.set_ylim(0, top)
        panel.legend(fontsize=6)
    for panel in axes.ravel()[len(panels) :]:
        panel.set_axis_off()
    return saved(figure, folder, name)


def rows_by_beta(steps: list[dict]) -> dict[float, list[dict]]:
    """Return the steps of each beta, over the largest one."""
    most = max(step["beta"] for step in steps)
    found: dict[float, list[dict]] = {}
    for step in steps:
        found.setdefault(step["beta"] / most, []).append(step)
    return found


def heat_maps(folder, name: str, runs: dict[str, list[dict]]):
    """Draw the scaling ratio over (alpha / alpha_max, beta / beta_max), a panel a rule (Hong 2019, Figs. 1 and 5)."""
    if pyplot is None:
        return None
    figure, axes = grid(1, len(runs), sharey=True)
    for panel, (rule, steps) in zip(axes[0], runs.items(), strict=True):
        table = rows_by_beta(steps)
        values = [[s["scaling_ratio"] for s in row] for row in table.values()]
        mesh = panel.pcolormesh(values, vmin=0.0, vmax=1.0, cmap="viridis")
        ticks = range(0, len(table), max(1, len(table) // 4))
        panel.set(title=rule, xlabel="alpha, from alpha_max down")
        panel.set_yticks([k + 0.5 for k in ticks], [f"{list(table)[k]:.2f}" for k in ticks])
    axes[0, 0].set_ylabel("beta / beta_max")
    figure.colorbar(mesh, ax=axes[0, -1])
    return saved(figure, folder, name)


def triggerings(folder, name: str, steps: list[dict], betas=(0.05, 0.1, 0.5, 0.9)):
    """Draw what each triggering of IFS and ISS finds of all that is inactive, stacked over alpha (Figs. 2-4, 6-16)."""
    if pyplot is None:
        return None
    table = rows_by_beta(steps)
    inside = [ratio for ratio in table if ratio < 1.0] or list(table)  # at beta_max all weights are 0
    near = [min(inside, key=lambda known, wanted=wanted: abs(known - wanted)) for wanted in betas]
    figure, axes = grid(2, len(near), 2.1, 1.8, sharey=True)
    for column, ratio in enumerate(near):
        row = table[ratio]
        x = [step["alpha"] / row[0]["alpha"] for step in row]
        for panel, found, whole in (
            (axes[0, column], "ifs_found", lambda s: s["n_inactive_features"]),
            (axes[1, column], "iss_found", lambda s: s["n_R"] + s["n_L"]),
        ):
            parts = [[float(part) for part in str(step[found]).split(";") if part] for step in row]
            most = max(1, *(len(part) for part in parts))
            shares = [
                [
                    (part[k] if k < len(part) else 0.0) / max(whole(step), 1.0)
                    for part, step in zip(parts, row, strict=True)
                ]
                for k in range(most)
            ]
            panel.stackplot(x, shares, colors=COLOURS, labels=[f"triggering {k + 1}" for k in range(most)], linewidth=0)
            panel.set(xscale="log", ylim=(0, 1.02))
        axes[0, column].set_title(f"beta / beta_max = {ratio:.2f}")
        axes[1, column].set_xlabel("alpha / alpha_max")
    axes[0, 0].set_ylabel("features")
    axes[1, 0].set_ylabel("samples")
    axes[1, 0].legend(fontsize=6, loc="lower left")
    return saved(figure, folder, name)
