"""Rows of the papers' tables and the data of their figures, from what the tool wrote. Standard library only.

tables.py header                                            # of the speed-up table
tables.py rows NAME COMPARISON.json [VARIANT=RATIO ...]     # with the published ratios of that set
tables.py curves COLUMN FILE.csv NAME=STEPS.csv ...         # one column of several runs over C, joined
tables.py about                                             # tool version and what the ratios mean
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import sys

COLUMNS = ("data", "variant", "points certified", "rejection", "passes", "passes saved", "speed-up", "published")


def line(cells) -> str:
    """Return a line of a Markdown table."""
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def rows(name: str, file: str, published: dict) -> None:
    """Print one line for each variant; ratios refer to ``none`` with the same shrinking."""
    with open(file, encoding="utf-8") as stream:
        found = json.load(stream)
    base = {row["shrinking"]: row for row in found if row["rule"] == "none"}
    for row in found:
        variant = row["rule"] + ("+shrinking" if row["shrinking"] and len(base) > 1 else "")
        reference = base[row["shrinking"]]
        print(
            line(
                (
                    name,
                    variant,
                    f"{row['certified']:.0f} of {row['points']:.0f}",
                    f"{row['mean_rejection']:.3f}",
                    f"{row['passes']:.1f}",
                    f"{reference['passes'] / row['passes']:.1f}",
                    f"{reference['cpu_s'] / row['cpu_s']:.2f}",
                    published.get(variant, ""),
                )
            )
        )


def curves(column: str, target: str, sources: dict) -> None:
    """Join a column of several runs over C, write it as CSV, and print each run's mean."""
    tables = {}
    for name, file in sources.items():
        with open(file, encoding="utf-8", newline="") as stream:
            tables[name] = list(csv.DictReader(stream))
    first = next(iter(tables.values()))
    with open(target, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["C", *tables])
        for k, row in enumerate(first):
            writer.writerow([row["C"], *(table[k][column] for table in tables.values())])
    means = {name: statistics.fmean(float(row[column]) for row in table) for name, table in tables.items()}
    print(", ".join(f"{name} {mean:.3f}" for name, mean in means.items()))


def about(tool: str) -> None:
    """Print what produced the tables."""
    version = subprocess.run([*tool.split(), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}. Speed-ups are ratios of CPU seconds within one process, the variants in alternation; passes are")
    print("rows touched over rows in the data, a grid point. Ours is warm-started with and without screening.")


def main(arguments: list) -> None:
    """Run one of the commands above."""
    command, rest = (arguments or [""])[0], arguments[1:]
    if command == "header":
        print(line(COLUMNS))
        print("|" + "---|" * len(COLUMNS))
    elif command == "rows":
        rows(rest[0], rest[1], dict(pair.rsplit("=", 1) for pair in rest[2:]))
    elif command == "curves":
        curves(rest[0], rest[1], dict(pair.split("=", 1) for pair in rest[2:]))
    elif command == "about":
        about(rest[0])
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
