"""Running a solver's path: searching its tolerance under a cap, and timing two solvers in alternation."""

from __future__ import annotations

import multiprocessing
import statistics
import time
import traceback
from dataclasses import dataclass

import numpy as np
from suboptimality import check_bounds, path_suboptimality

SLACK = 1.01  # a stop at exactly the target counts as reaching it


@dataclass(frozen=True)
class Setting:
    """Outcome of the search for the loosest tolerance that reaches a target.

    Attributes
    ----------
    status : {'reached', 'never reached', 'over the cap', 'failed'}
    tolerance : float or None
        The setting that reached the target, else the tightest that was finished.
    worst : float or None
        Its worst relative suboptimality over the grid.
    seconds : float
        CPU seconds of that setting; the cap, for 'over the cap'.
    detail : str
        The last line of the error, for 'failed'.
    """

    status: str
    tolerance: float | None
    worst: float | None
    seconds: float
    detail: str = ""


def run_path(adapter, data, grid, tolerance) -> tuple[np.ndarray, float, float]:
    """One timed path: (coefficients of shape (n_C, d), CPU seconds, wall seconds)."""
    cpu, wall = time.process_time(), time.perf_counter()
    path = list(adapter.solve_path(data, grid, tolerance))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return np.array(path), cpu, wall


def _trial(pipe, adapter, data, problem, bounds, tolerance):
    try:
        path, cpu, _ = run_path(adapter, data, problem.grid, tolerance)
        pipe.send(("done", path_suboptimality(problem, path, bounds), cpu))
    except Exception as error:
        pipe.send(("failed", traceback.format_exception_only(error)[-1].strip(), 0.0))


def try_tolerance(adapter, data, problem, bounds, tolerance, cap):
    """One path in a forked process that is killed at the cap; compiled code cannot be stopped otherwise.

    Returns ('done', suboptimality of shape (n_C,), CPU seconds), ('failed', message, 0) or ('killed', None, cap).
    """
    fork = multiprocessing.get_context("fork")
    receive, send = fork.Pipe(duplex=False)
    child = fork.Process(target=_trial, args=(send, adapter, data, problem, bounds, tolerance))
    child.start()
    send.close()
    try:
        if not receive.poll(cap):
            return "killed", None, cap
        return receive.recv()
    except EOFError:  # the child died without a word, for example out of memory
        child.join()
        return "failed", f"the process ended with exit code {child.exitcode}", 0.0
    finally:
        if child.is_alive():
            child.kill()
        child.join()
        receive.close()


def find_setting(adapter, data, problem, bounds, target, cap) -> Setting:
    """The loosest tolerance of the adapter's ladder whose whole path reaches the target.

    The cap bounds each trial: where a looser setting already needs longer, so does a tighter one.
    """
    last = Setting("never reached", None, None, 0.0)
    for tolerance in adapter.ladder(target):
        outcome, found, seconds = try_tolerance(adapter, data, problem, bounds, tolerance, cap)
        if outcome == "killed":
            return Setting("over the cap", last.tolerance, last.worst, cap)
        if outcome == "failed":
            return Setting("failed", tolerance, None, 0.0, found)
        check_bounds(found, adapter.name)
        worst = float(found.max())
        status = "reached" if worst <= target * SLACK else "never reached"
        last = Setting(status, tolerance, worst, seconds)
        if status == "reached":
            break
    return last


def alternate(ours, theirs, grid, budget, least=3, most=15) -> dict:
    """Time two solvers A B A B ... in this process until the budget is used.

    Parameters
    ----------
    ours, theirs : (adapter, data, tolerance)
    budget : float
        Wall seconds after which no new round starts, once there are enough: `least` rounds, or one where a
        single round takes more than half the budget.

    Returns
    -------
    dict
        Medians of CPU and wall seconds of both, and the median, least and largest of the CPU-time ratios.
    """
    seconds = {"ours_cpu": [], "ours_wall": [], "cpu": [], "wall": []}
    began = time.perf_counter()
    while len(seconds["cpu"]) < most:
        elapsed = time.perf_counter() - began
        rounds = len(seconds["cpu"])
        if rounds and elapsed > budget and (rounds >= least or elapsed > rounds * budget / 2):
            break
        for side, (adapter, data, tolerance) in (("ours_", ours), ("", theirs)):
            _, cpu, wall = run_path(adapter, data, grid, tolerance)
            seconds[f"{side}cpu"].append(cpu)
            seconds[f"{side}wall"].append(wall)
    ratios = [b / a for a, b in zip(seconds["ours_cpu"], seconds["cpu"], strict=True)]
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return medians | {
        "ratio": statistics.median(ratios),
        "ratio_least": min(ratios),
        "ratio_most": max(ratios),
        "rounds": len(ratios),
    }
