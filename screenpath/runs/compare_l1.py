"""The seven configurations of Zhao 2014's study, run on the same grid: time, iterations and over hits per step."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from screenpath.errors import UsageError
from screenpath.models.l1svm import L1SVM
from screenpath.rules.l1svm import parse_feature_rule
from screenpath.runs.result import run_l1_path
from screenpath.solvers.l1cd import FeatureDescent
from screenpath.walk.step import CERTIFIED, SKIPPED

# name: rule, shrinking, warm start. All sweep over every feature they are given, as the paper's solver does.
STUDY = {
    "org": ("none", False, False),
    "warm": ("none", False, True),
    "shr": ("none", True, False),
    "warm+shr": ("none", True, True),
    "scr": ("vi", False, False),
    "warm+scr": ("vi", False, True),
    "scr+shr": ("vi", True, False),
    # Not in the paper: the gap ball of the current iterate besides, while sweeping.
    "warm+scr+gap": ("vi+gap", False, True),
}
DEFAULT = "default"  # what l1_svm_path runs: vi+gap, warm starts, working sets, Newton finish
CONFIGURATIONS = (*STUDY, DEFAULT)


@dataclass(frozen=True)
class ConfigurationPath:
    """One configuration over one grid.

    Parameters
    ----------
    name : str
    steps : list of Step
        Those that were reached.
    seconds : float
        Wall-clock time of the whole path.
    finished : bool
        Whether every grid point was reached and certified.
    features : int
        Features of the data.
    """

    name: str
    steps: list
    seconds: float
    finished: bool
    features: int

    @property
    def iterations(self) -> int:
        """Return the sweeps and Newton steps of all grid points."""
        return sum(step.epochs for step in self.steps)

    @property
    def screening_seconds(self) -> float:
        """Return the seconds the rule took."""
        return sum(step.screen_s for step in self.steps)

    @property
    def training_seconds(self) -> float:
        """Return the seconds the solver took."""
        return sum(step.solve_s for step in self.steps)

    @property
    def over_hits(self) -> int:
        """Return the inactive features that screening kept, summed over the grid (Fig. 2)."""
        return sum(over_hits(self, step) for step in self.steps)


def run_configuration(model: L1SVM, values: np.ndarray, name: str, **options) -> ConfigurationPath:
    """Run one configuration.

    Parameters
    ----------
    model : L1SVM
    values : ndarray
        Decreasing lambdas.
    name : str
        One of :data:`CONFIGURATIONS`.
    **options
        ``tol``, ``max_epochs`` and ``time_limit`` of :func:`screenpath.api.l1svm.run_l1_path`.

    Returns
    -------
    ConfigurationPath

    Raises
    ------
    UsageError
        For an unknown name.
    """
    if name == DEFAULT:
        rule, solver = "vi+gap", FeatureDescent()
    elif name in STUDY:
        rule, shrinking, warm = STUDY[name]
        solver = FeatureDescent(shrinking=shrinking, working_sets=False, warm=warm)
    else:
        raise UsageError(f"unknown configuration '{name}'", f"use some of {', '.join(CONFIGURATIONS)}")
    model.rows.forget()
    since = time.perf_counter()
    steps = run_l1_path(model, values, parse_feature_rule(rule), solver, **options)
    seconds = time.perf_counter() - since
    finished = all(step.status == CERTIFIED for step in steps)
    for step in steps:
        step.coefficients = None  # of many configurations they would be many times the data
    return ConfigurationPath(name, [step for step in steps if step.status != SKIPPED], seconds, finished, model.size)


def compare(model: L1SVM, values: np.ndarray, names, **options) -> list[ConfigurationPath]:
    """Run configurations one after the other; a short run of each before it keeps compilation out of the times.

    Parameters
    ----------
    model, values, **options
        As for :func:`run_configuration`.
    names : sequence of str
    """
    runs = []
    for name in names:
        run_configuration(model, values[:4], name, **{**options, "max_epochs": 5})
        runs.append(run_configuration(model, values, name, **options))
    return runs


def over_hits(run: ConfigurationPath, step) -> int:
    """Return the inactive features that screening kept at a step."""
    return run.features - step.n_features_screened - step.nnz_w


def totals(runs: list[ConfigurationPath]) -> list[dict]:
    """Return one row a configuration: Tables 2, 3 and 4 of the paper.

    ``run_s`` is the paper's run time, screening and training; ``seconds`` also has the certificates. ``speedup`` and
    ``speedup_total`` compare them with those of ``org``, where that is among the runs; None where either stopped early.
    """
    org = next((run for run in runs if run.name == "org"), None)
    rows = []
    for run in runs:
        comparable = org is not None and org.finished and run.finished
        run_s = run.screening_seconds + run.training_seconds
        rows.append(
            {
                "configuration": run.name,
                "certified": sum(step.status == CERTIFIED for step in run.steps),
                "seconds": run.seconds,
                "run_s": run_s,
                "speedup": (org.screening_seconds + org.training_seconds) / run_s if comparable else None,
                "speedup_total": org.seconds / run.seconds if comparable else None,
                "iterations": run.iterations,
                "screen_s": run.screening_seconds,
                "train_s": run.training_seconds,
                "screen_ratio": run.screening_seconds / run.training_seconds if run.training_seconds else None,
                "over_hits": run.over_hits,
            }
        )
    return rows


def per_step(runs: list[ConfigurationPath]) -> list[dict]:
    """Return one row a configuration and grid point: Fig. 2's run time, iterations and over hits."""
    return [
        {
            "configuration": run.name,
            "step": step.step,
            "lambda": step.parameters["lambda"],
            "status": step.status,
            "seconds": step.screen_s + step.solve_s,
            "iterations": step.epochs,
            "active": step.nnz_w,
            "over_hits": over_hits(run, step),
        }
        for run in runs
        for step in run.steps
    ]
