"""Pictures of the gallery that `screenpath plot` does not draw, from the tables that its commands write:

python examples/gallery/pictures.py labels LOO.CSV FLIPPED.LIBSVM TRUE.LIBSVM OUT.SVG
python examples/gallery/pictures.py intervals NEW.CSV INTERVALS.CSV OUT.SVG
python examples/gallery/pictures.py gaps FOLDER... OUT.SVG
"""

import csv
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gallery", "font.size": 9})
import matplotlib.pyplot as plt  # noqa: E402

BLUE, RED = "#0072b2", "#d55e00"


def rows_of(file: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file by column."""
    with open(file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def labels(loo: str, flipped: str, true: str) -> str:
    """Draw how the models without a row agree with its label, the most contradicted first; wrong labels in red."""
    given, right = ([line.split()[0] for line in Path(file).read_text().splitlines()] for file in (flipped, true))
    found = []
    for one, label, other in zip(rows_of(loo), given, right, strict=True):
        sign = 1.0 if float(label) > 0 else -1.0
        found.append((sign * float(one["decision"]), label != other))
    found.sort()
    for wrong, color, size in ((False, BLUE, 4), (True, RED, 16)):
        at = [k for k, (_, is_wrong) in enumerate(found) if is_wrong == wrong]
        plt.scatter([k + 1 for k in at], [found[k][0] for k in at], s=size, c=color,
                    label="label turned" if wrong else "label as measured")  # fmt: skip
    plt.axhline(0.0, color="grey", lw=0.5)
    plt.xlim(0, 60)
    plt.ylim(found[0][0] - 0.3, found[60][0] + 0.3)
    plt.legend(frameon=False)
    plt.xlabel("rows, the most contradicted first")
    return "label x held-out decision"


def intervals(new: str, predicted: str) -> str:
    """Draw interval and target of new rows, in the order of their predictions."""
    key = lambda pair: float(pair[1]["value"])  # noqa: E731
    both = sorted(zip(rows_of(new), rows_of(predicted), strict=True), key=key)
    low, value, high = ([float(one[name]) / 1000 for _, one in both] for name in ("low", "value", "high"))
    truth = [float(row["income"]) / 1000 for row, _ in both]
    inside = [a <= t <= b for a, t, b in zip(low, truth, high, strict=True)]
    plt.fill_between(range(len(both)), low, high, color=BLUE, alpha=0.2, lw=0, label="interval of level 0.9")
    plt.plot(value, color=BLUE, lw=1, label="prediction")
    for kept, color in ((True, BLUE), (False, RED)):
        at = [k for k, one in enumerate(inside) if one == kept]
        plt.scatter(at, [truth[k] for k in at], s=5, c=color, label=f"income, {'in' if kept else 'out'}side")
    plt.legend(frameon=False)
    plt.xlabel("people, by prediction")
    return "income, thousands of dollars"


def gaps(*folders: str) -> str:
    """Draw the proven relative gap of a model in each folder."""
    found = [json.loads((Path(folder) / "steps.json").read_text()) if (Path(folder) / "steps.json").exists()
             else rows_of(str(Path(folder) / "steps.csv")) for folder in folders]  # fmt: skip
    values = [float(steps[0]["rel_gap"]) for steps in found]
    plt.barh([Path(folder).name for folder in folders][::-1], values[::-1], color=BLUE, height=0.5)
    plt.xscale("log")
    plt.axvline(1e-6, color=RED, lw=1)
    plt.xlabel("relative gap: how far the model may be from the optimum; red: the 1e-6 of screenpath")
    return ""


def main(kind: str, *files: str) -> None:
    """Draw one picture."""
    plt.figure(figsize=(6.4, 3.2), layout="constrained")
    plt.ylabel({"labels": labels, "intervals": intervals, "gaps": gaps}[kind](*files[:-1]))
    plt.savefig(files[-1], metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
