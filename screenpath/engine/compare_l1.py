"""The seven configurations of Zhao 2014's study, in alternation on one grid: time, sweeps and over hits per step."""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from screenpath.data.safe.plugins import plugin_of
from screenpath.engine.alternate import Variant, alternate
from screenpath.engine.attack import audited
from screenpath.engine.path import Path, limits_of
from screenpath.errors import UsageError
from screenpath.problem.l1svm import L1SVM
from screenpath.screen.l1svm import contradicted, parse_feature_rule
from screenpath.solve.l1cd import FeatureDescent
from screenpath.walk.loop import PathOptions
from screenpath.walk.step import SKIPPED

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
MEASURED = ("points", "certified", "total_s", "cpu_s", "rule_s", "solve_s", "certify_s", "epochs", "over_hits")
COLUMNS = ("configuration", *MEASURED, "speedup")


def configured(name: str) -> tuple:
    """Return the screening and the solver of a configuration."""
    if name == DEFAULT:
        return parse_feature_rule("vi+gap"), FeatureDescent()
    if plugin_of(name) is not None:
        return parse_feature_rule(name), FeatureDescent()
    if name not in STUDY:
        raise UsageError(f"unknown configuration '{name}'", f"use some of {', '.join(CONFIGURATIONS)}")
    rule, shrinking, warm = STUDY[name]
    return parse_feature_rule(rule), FeatureDescent(shrinking=shrinking, working_sets=False, warm=warm)


def compare(model: L1SVM, values: np.ndarray, names, *, repeats: int = 3, progress=None, **options) -> list[Variant]:
    """Run configurations in alternation; a short run of each before all keeps compilation out of the times.

    Parameters
    ----------
    model : L1SVM
    values : ndarray
        Decreasing lambdas.
    names : sequence of str
        Some of :data:`CONFIGURATIONS`.
    repeats : int
    progress : callable, optional
        Called with a line of text before each run.
    **options
        ``tol``, ``max_epochs`` and ``time_limit`` of :func:`screenpath.engine.result.run_l1_path`.

    Returns
    -------
    list of Variant
        What each run measured, with its steps under ``steps``.

    Raises
    ------
    UsageError
        For an unknown name.
    DisagreementError
    """
    variants = [Variant(name) for name in names]
    for variant in variants:
        _run(Variant(variant.rule), model, values[:4], {**options, "max_epochs": 5})
    alternate(variants, repeats, partial(_run, model=model, values=values, options=options), progress)
    return variants


def _run(variant: Variant, model: L1SVM, values: np.ndarray, options: dict) -> None:
    screening, solver = configured(variant.rule)
    model.rows.forget()
    since = time.process_time()
    limits = limits_of({"tol": 1e-6, "max_epochs": 100_000, **options})
    found = Path(model, values, screening, solver, limits).steps(np.full(model.size + 1, np.nan))
    cpu_s = time.process_time() - since
    reached = [step for step in found if step.status != SKIPPED]
    for step in found:
        step.coefficients = None  # of many configurations they would be many times the data
    hits = sum(over_hits(model, step) for step in reached)
    variant.note(reached, cpu_s, points=len(found), steps=reached, over_hits=hits)


def over_hits(model: L1SVM, step) -> int:
    """Return the inactive features that screening kept at a step (Fig. 2)."""
    return model.size - step.n_features_screened - step.nnz_w


def audits(model: L1SVM, values: np.ndarray, names, options: dict) -> dict[str, int | None]:
    """Return the unsafe decisions of each configuration, see :func:`screenpath.engine.attack.audited`."""
    limits = PathOptions(options["tol"], options["max_epochs"])
    return {name: audited(model, values, configured(name), limits, contradicted) for name in names}


def finished(variant: Variant) -> bool:
    """Tell whether every run certified every grid point."""
    return all(run["certified"] == run["points"] for run in variant.runs)


def totals(variants: list[Variant]) -> list[dict]:
    """Return one row a configuration with the columns ``COLUMNS``: Tables 2, 3 and 4 of the paper.

    The paper's run time is ``rule_s + solve_s``; ``speedup`` is that of every comparison
    (:data:`screenpath.engine.studies.SPEEDUP`), None where the configuration or the first one stopped early.
    """
    base = variants[0]
    rows = []
    for variant in variants:
        row = {"configuration": variant.rule, **variant.row(MEASURED)}
        row["speedup"] = variant.speedup(base) if finished(base) and finished(variant) else None
        rows.append(row)
    return rows


def per_step(model: L1SVM, variants: list[Variant]) -> list[dict]:
    """Return one row a configuration and grid point: Fig. 2's run time, iterations and over hits, of the last run."""
    return [
        {
            "configuration": variant.rule,
            "step": step.step,
            "lambda": step.parameters["lambda"],
            "status": step.status,
            "seconds": step.screen_s + step.solve_s,
            "epochs": step.epochs,
            "active": step.nnz_w,
            "over_hits": over_hits(model, step),
        }
        for variant in variants
        for step in variant.runs[-1]["steps"]
    ]
