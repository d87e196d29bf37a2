"""Tables 1 and 2 of Wang et al. 2014: the same solver without and with DVI, at the same tolerance, in one run.

The published seconds are of another machine and solver; only the speed-ups are set side by side.
``python examples/benchmarks/wang_tables.py [--only NAME] [--solver cd] [--tol 1e-6] [--markdown FILE]``
"""

from __future__ import annotations

import one_thread  # isort: skip  (before numpy)

import statistics
import time

from adapters import OURS, adapter
from problems import arguments_of, present, publish

PUBLISHED = {"toy1": 59.15, "toy2": 26.31, "toy3": 25.16, "ijcnn1": 5.64, "winequality12": 6.59}
DEFAULT = ("toy1", "toy2", "toy3", "ijcnn1")


def timed_run(problem, rule: str, solver: str, tol: float):
    """One path under a rule: (PathResult, CPU seconds)."""
    ours = adapter(OURS)
    data = ours.prepare(problem)
    began = time.process_time()
    result = ours.run(data, problem.grid, tol, rule=rule, solver=solver)
    return result, time.process_time() - began


def measure(problem, solver: str, tol: float, rounds: int) -> dict:
    """Medians over alternating runs: none, dvi, none, dvi, ..."""
    tiny = problem.head()
    for rule in ("none", "dvi"):
        timed_run(tiny, rule, solver, tol)
    seconds = {"none": [], "dvi": []}
    results = {}
    for _ in range(rounds):
        for rule in seconds:
            results[rule], cpu = timed_run(problem, rule, solver, tol)
            seconds[rule].append(cpu)
    ratios = [a / b for a, b in zip(seconds["none"], seconds["dvi"], strict=True)]
    screened = results["dvi"].steps
    return {
        "without": statistics.median(seconds["none"]),
        "with": statistics.median(seconds["dvi"]),
        "rule": sum(step.screen_s for step in screened),
        "init": screened[0].seconds,
        "speedup": statistics.median(ratios),
        "rejection": statistics.mean(step.rejection_ratio for step in screened),
        "certified": {rule: sum(step.status == "certified" for step in found.steps) for rule, found in results.items()},
    }


def row(name: str, found: dict, points: int) -> str:
    paper = f"{PUBLISHED[name]:.1f}" if name in PUBLISHED else "–"
    certified = found["certified"]
    return (
        f"| {name} | {found['without']:.3f} | {found['with']:.3f} | {found['rule']:.3f} | {found['init']:.4f} "
        f"| {found['speedup']:.1f} | {paper} | {found['rejection']:.3f} "
        f"| {certified['none']}, {certified['dvi']} of {points} |"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = arguments_of(__doc__, DEFAULT)
    parser.add_argument("--solver", default="cd", help="cd, newton or auto (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="alternating runs of each side (default %(default)s)")
    options = parser.parse_args(arguments)
    one_thread.require()
    lines = [
        f"## Wang 2014, Tables 1–2: solver `{options.solver}`, relative gap ≤ {options.tol:.0e}, one thread",
        "",
        "| data | without screening, s | with DVI, s | rule, s | Init., s | speed-up | paper's | mean rejection "
        "| certified without, with |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, problem in present(options.only or DEFAULT, options.points):
        lines.append(row(name, measure(problem, options.solver, options.tol, options.rounds), len(problem.grid)))
    publish("\n".join([*lines, ""]), options.markdown)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
