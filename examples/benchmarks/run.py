"""Compare screenpath with its rivals at equal certified accuracy: ``python examples/benchmarks/run.py --help``."""

from __future__ import annotations

import one_thread  # isort: skip  (before numpy)

import argparse
import gc
import json
import sys
import time
from pathlib import Path

import reference
import report
from adapters import OURS, RIVALS, adapter
from problems import PROBLEMS, present, publish
from suboptimality import check_bounds, path_suboptimality
from timing import alternate, find_setting, run_path

CAP_FACTOR = 12.0  # a rival is stopped once it has taken this many times our seconds ...
CAP_FLOOR = 10.0  # ... but not before these seconds


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=list(PROBLEMS), metavar="NAME", help=", ".join(PROBLEMS))
    parser.add_argument("--rivals", default=",".join(RIVALS), help="comma-separated, of: %(default)s")
    parser.add_argument("--quick", action="store_true", help="the small sets, short timings")
    parser.add_argument("--points", type=int, default=100, help="values of C (default %(default)s)")
    parser.add_argument("--tolerances", default="1e-3,1e-6", help="targets (default %(default)s)")
    parser.add_argument("--cap-factor", type=float, default=CAP_FACTOR, help="stop rivals at this multiple of our time")
    parser.add_argument("--rivals-only", action="store_true", help="leave screenpath out (references from rehline)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the records")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    options = parser.parse_args(arguments)
    options.targets = [float(target) for target in options.tolerances.split(",")]
    options.rivals = options.rivals.split(",")
    unknown = set(options.rivals) - set(RIVALS)
    if unknown:
        parser.error(f"unknown rivals {', '.join(sorted(unknown))}; known: {', '.join(RIVALS)}")
    options.names = options.only or [name for name, (_, _, quick) in PROBLEMS.items() if quick or not options.quick]
    options.budget = 2.0 if options.quick else 6.0
    return options


def solvers(problem, names) -> dict:
    """The adapters that can solve the problem, with their data, each warmed up on a tiny problem."""
    ready = {}
    tiny = problem.head()
    for name in names:
        try:
            found = adapter(name)
        except ImportError as error:
            print(f"  {name}: left out, {error}", file=sys.stderr)
            continue
        if found.supports(problem):
            for _ in found.solve_path(found.prepare(tiny), tiny.grid, 1e-3):
                pass
            ready[name] = (found, found.prepare(problem))
    return ready


def lower_bounds(problem, rivals_only: bool):
    return reference.bounds_from_rehline(problem) if rivals_only else reference.bounds_from_screenpath(problem)


def compare(problem, target, ready, bounds, options) -> list[dict]:
    """The records of one problem and one target: ours first, then each rival."""
    head = {
        "problem": problem.name, "model": problem.model, "n": problem.X.shape[0], "d": problem.X.shape[1],
        "density": problem.density, "points": len(problem.grid), "target": target,
    }  # fmt: skip
    records = []
    cap = CAP_FLOOR if options.quick else 6 * CAP_FLOOR
    ours = ready.get(OURS)
    if ours is not None:
        path, cpu, wall = run_path(*ours, problem.grid, target)
        relative = path_suboptimality(problem, path, bounds)
        check_bounds(relative, OURS)
        cap = max(CAP_FLOOR, options.cap_factor * cpu)
        worst = float(relative.max())
        status = "reached" if worst <= target * 1.01 else "never reached"
        result = ours[0].run(ours[1], problem.grid, target)
        records.append(head | {"solver": OURS, "status": status, "tolerance": target, "worst": worst, "cpu": cpu,
                               "wall": wall} | our_work(result))  # fmt: skip
    for name, (rival, data) in ready.items():
        if name == OURS:
            continue
        setting = find_setting(rival, data, problem, bounds, target, cap)
        record = head | {"solver": name} | vars(setting)
        if setting.status == "reached" and ours is not None:
            record |= alternate((*ours, target), (rival, data, setting.tolerance), problem.grid, options.budget)
        elif setting.status == "over the cap" and ours is not None:
            record |= {"ratio_at_least": cap / records[0]["cpu"]}
        records.append(record)
        print(f"  {target:.0e} {report.one_line(record)}", file=sys.stderr, flush=True)
        gc.collect()
    return records


def our_work(result) -> dict:
    """Passes per grid point, and where our seconds went, from the step records."""
    steps = result.steps
    phases = {phase: sum(getattr(step, phase) for step in steps) for phase in ("screen_s", "solve_s", "certify_s")}
    return phases | {
        "passes_per_point": sum(step.passes for step in steps) / len(steps),
        "certified": sum(step.status == "certified" for step in steps),
    }


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    names = options.rivals if options.rivals_only else [OURS, *options.rivals]
    began = time.perf_counter()
    records, absent = [], []
    for name, problem in present(options.names, options.points, absent):
        ready = solvers(problem, names)
        if not options.rivals_only and OURS not in ready:
            absent.append(f"{name}: screenpath has no {problem.model} model")
            continue
        one_thread.require()  # here, since adapters have loaded their libraries by now
        bounds = lower_bounds(problem, options.rivals_only)
        for target in options.targets:
            records += compare(problem, target, ready, bounds, options)
    publish(report.markdown(records, absent, time.perf_counter() - began), options.markdown)
    if options.json:
        document = {"versions": report.versions(), "records": records, "absent": absent}
        options.json.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
