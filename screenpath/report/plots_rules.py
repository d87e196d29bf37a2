"""The picture of a comparison of rules: what each decides, what that saves, and its unsafe decisions."""

from __future__ import annotations

from screenpath.report import figures as f

# Columns that are drawn, where a table has them: title, and the number that is written beside a bar.
PANELS = {
    "mean_rejection": ("share of the rows\ndecided before the solve", "{:.3f}"),
    "mean_scaling": ("scaling ratio", "{:.3f}"),
    "speedup": ("speed-up\n(CPU seconds of the path)", "{:.2f}"),
    "decisions": ("decisions", "{:,.0f}"),
    "unsafe": ("unsafe decisions", "{:,.0f}"),
}


def draw_rules(rows: list[dict]):
    """Draw a bar for each row of a comparison or of an attack in a panel for each column of ``PANELS``."""
    panels = {name: how for name, how in PANELS.items() if name in rows[0]}
    names = _names(rows)
    width = 2.4 * len(panels) + 0.07 * max(map(len, names)) + 0.3
    with f.need_matplotlib().rc_context(f.STYLE):
        figure, axes = f.new_figure(width, 0.26 * len(rows) + 0.9, 1, len(panels), sharey=True)
        for axis, (column, (title, form)) in zip(axes[0], panels.items(), strict=True):
            values = [row[column] or 0.0 for row in rows]
            bars = axis.barh(names, values, color=f.RED if column == "unsafe" else f.BLUE)
            axis.bar_label(bars, [_text(row[column], form) for row in rows], padding=3)
            axis.set_xlim(0.0, 1.35 * max(values) or 1.0)  # room for the numbers
            axis.set_title(title)
            axis.set_xticks([])
            axis.tick_params(left=False)
            axis.spines["bottom"].set_visible(False)
    axes[0, 0].yaxis.set_inverted(True)  # in the order of the table
    return figure


def _names(rows: list[dict]) -> list[str]:
    """Return what tells the rows apart: the rule or configuration, and what else differs between rows."""
    parts = [name for name in ("shrinking", "start") if len({row.get(name) for row in rows}) > 1]
    words = {True: "shrinking", False: "no shrinking"}
    further = [[str(words.get(row[part], row[part])) for part in parts] for row in rows]
    return [
        ", ".join([row.get("rule") or row["configuration"], *more]) for row, more in zip(rows, further, strict=True)
    ]


def _text(value: float | None, form: str) -> str:
    return "not known" if value is None else form.format(value)
