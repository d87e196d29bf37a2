"""The records of a benchmark run as Markdown tables."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from adapters import OURS

import screenpath

PACKAGES = ("rehline", "scikit-learn", "liblinear-official", "skglm", "numpy", "scipy", "numba")


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "screenpath": screenpath.__version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"


def cell(record: dict) -> str:
    """What a rival's cell says: its seconds and ratio, or why there is none."""
    if record["status"] == "reached" and "ratio" in record:
        return f"{seconds(record['cpu'])} s ({record['ratio']:.1f}×)"
    if record["status"] == "reached":
        return f"{seconds(record['seconds'])} s"
    if record["status"] == "over the cap":
        least = f" (> {record['ratio_at_least']:.0f}×)" if "ratio_at_least" in record else ""
        return f"> {seconds(record['seconds'])} s{least}"
    if record["status"] == "never reached":
        return f"never ({record['worst']:.0e})"
    return f"failed: {record['detail']}"


def shares(ours: dict) -> str:
    """Where the seconds of our grid points went, by the step records."""
    phases = [ours[phase] for phase in ("screen_s", "solve_s", "certify_s")]
    return ", ".join(f"{phase / sum(phases):.0%}" for phase in phases)


def one_line(record: dict) -> str:
    return f"{record['solver']}: {cell(record)} at tolerance {record['tolerance']}"


def best_rival(rivals: list[dict]) -> str:
    """The least ratio among the rivals that reached the target; a bound where all were stopped."""
    timed = [record for record in rivals if "ratio" in record]
    if timed:
        best = min(timed, key=lambda record: record["ratio"])
        return f"**{best['ratio']:.1f}×** ({best['solver']})"
    stopped = [record["ratio_at_least"] for record in rivals if "ratio_at_least" in record]
    return f"> {min(stopped):.0f}× (stopped)" if stopped else "–"


def table(records: list[dict], target: float) -> list[str]:
    """One table: a row for each problem, a column for each rival."""
    chosen = [record for record in records if record["target"] == target]
    rivals = list(dict.fromkeys(record["solver"] for record in chosen if record["solver"] != OURS))
    lines = [
        f"### Relative suboptimality ≤ {target:.0e} at every grid point",
        "",
        f"| problem | n × d | screenpath | screen, solve, certify | passes a point | certified | best rival / ours "
        f"| {' | '.join(rivals)} |",
        f"|---|---|---:|---|---:|---:|---:|{'---:|' * len(rivals)}",
    ]
    for name in dict.fromkeys(record["problem"] for record in chosen):
        rows = {record["solver"]: record for record in chosen if record["problem"] == name}
        first = next(iter(rows.values()))
        ours = rows.get(OURS)
        shown = ["–", "–", "–", "–"]
        if ours is not None:
            shown = [f"{seconds(ours['cpu'])} s", shares(ours), f"{ours['passes_per_point']:.1f}",
                     f"{ours['certified']}/{ours['points']}"]  # fmt: skip
        others = [rows[rival] for rival in rivals if rival in rows]
        cells = [cell(rows[rival]) if rival in rows else "no such model" for rival in rivals]
        head = [f"{name} ({first['model']})", f"{first['n']} × {first['d']}", *shown, best_rival(others)]
        lines.append(f"| {' | '.join(head + cells)} |")
    return [*lines, ""]


def markdown(records: list[dict], absent: list[str], elapsed: float) -> str:
    """All tables, the data sets left out, and the versions."""
    lines = ["## Paths at equal certified accuracy, one thread", ""]
    lines += ["CPU seconds for the whole path; in brackets the median ratio to screenpath of alternating runs.", ""]
    for target in dict.fromkeys(record["target"] for record in records):
        lines += table(records, target)
    lines += [f"- left out: {reason}" for reason in absent]
    lines += [f"- versions: {', '.join(f'{name} {value}' for name, value in versions().items())}"]
    lines += [f"- whole benchmark: {elapsed:.0f} s", ""]
    return "\n".join(lines)
