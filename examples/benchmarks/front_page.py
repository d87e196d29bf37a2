"""The table and the picture of the README, from records of ``run.py``.

    python examples/benchmarks/run.py --tolerances 1e-6 --only breast_cancer --only ijcnn1 --json bench.json
    python examples/benchmarks/front_page.py bench.json [-o examples/guide/fast.svg]

A row is a data set, a column a solver: its processor seconds over those of screenpath, median of alternating runs. The
picture has the same numbers as bars on a logarithmic scale; hollow bars are of runs that were stopped.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from screenpath.report import figures

OURS = "screenpath"
NAMES = {"rehline": "rehline", "sklearn": "scikit-learn", "liblinear": "LIBLINEAR", "skglm": "skglm"}
COLOURS = dict(zip(NAMES, (figures.BLUE, figures.ORANGE, figures.GREEN, figures.PURPLE), strict=True))


def rows_of(records: list[dict]) -> dict[str, dict[str, dict]]:
    """Return the records by data set, then by solver."""
    found: dict[str, dict[str, dict]] = {}
    for record in records:
        found.setdefault(record["problem"], {})[record["solver"]] = record
    return found


def ratio(record: dict | None) -> tuple[float, bool]:
    """Return how many times our seconds a rival took, and whether it was stopped; NaN where it never gets there."""
    if record is None or record["status"] == "never reached":
        return float("nan"), False
    if record["status"] == "over the cap":
        return record["ratio_at_least"], True
    return record["ratio"], False


def cell(record: dict | None) -> str:
    value, stopped = ratio(record)
    if value != value:
        return "–" if record is None else "never"
    return f"{'> ' if stopped else ''}{value:.1f}" if value < 10.0 else f"{'> ' if stopped else ''}{value:.0f}"


def table(found: dict[str, dict[str, dict]]) -> str:
    """Return the rows of the README, with data passes of the whole path."""
    lines = [
        f"| data | samples × features | passes | screenpath | {' | '.join(NAMES.values())} |",
        f"|---|---|---:|---:|{'---:|' * len(NAMES)}",
    ]
    for name, solvers in found.items():
        ours = solvers[OURS]
        passes = ours["passes_per_point"] * ours["points"]
        head = f"| {name} | {ours['n']:,} × {ours['d']:,} | {passes:.0f} | {ours['cpu']:.3f} s |"
        lines.append(f"{head} {' | '.join(cell(solvers.get(rival)) for rival in NAMES)} |")
    return "\n".join(lines)


def draw(found: dict[str, dict[str, dict]], path: Path) -> None:
    """Draw the ratios as bars, a group for each data set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(figures.STYLE):
        figure, axes = plt.subplots(figsize=(7.0, 0.62 * len(found) + 0.8), layout="constrained")
        height = 0.8 / len(NAMES)
        for place, solvers in enumerate(found.values()):
            for k, rival in enumerate(NAMES):
                value, stopped = ratio(solvers.get(rival))
                at = place + (k - (len(NAMES) - 1) / 2.0) * height
                look = {"facecolor": "none" if stopped else COLOURS[rival], "edgecolor": COLOURS[rival]}
                if value == value:
                    axes.barh(at, value, 0.86 * height, left=0.0, **look)
                axes.text(value * 1.06 if value == value else 1.06, at, cell(solvers.get(rival)), va="center", size=7.0)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlim(1.0, axes.get_xlim()[1] * 1.6)
        axes.set_yticks(range(len(found)), list(found))
        axes.invert_yaxis()
        axes.set_xlabel("processor seconds of a path of 100 values of C, over those of screenpath (1 = equal)")
        handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[rival]) for rival in NAMES]
        axes.legend(handles, NAMES.values(), ncols=len(NAMES), loc="lower center", bbox_to_anchor=(0.5, 1.0))
        figure.savefig(path, metadata=figures.UNDATED["svg"])
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path)
    parser.add_argument("-o", "--out", type=Path, help="the picture, .svg")
    options = parser.parse_args()
    found = rows_of(json.loads(options.records.read_text(encoding="utf-8"))["records"])
    print(table(found))
    if options.out:
        draw(found, options.out)


if __name__ == "__main__":
    main()
