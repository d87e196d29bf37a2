"""Attacks on rules: unsafe decisions along a path, and on random hostile problems with references of every quality.

A decision is unsafe where an accurate solution, whatever its gap, proves the row or feature to be on the other side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from screenpath.catalogue.losses import LOSSES
from screenpath.data.safe.memory import MemoryLimit
from screenpath.engine.path import Path
from screenpath.numbers import sparse as sp
from screenpath.problem.grid import explicit_grid
from screenpath.rows.memory import MemoryRows
from screenpath.walk.audit import Audit, added
from screenpath.walk.loop import PathOptions

POINTS = 5  # grid points of a problem
ACCURATE = PathOptions(tol=1e-10, max_epochs=3000)  # of the solutions that decisions are judged by
LOG = {"grid": POINTS, "log": True, "lambda_min_ratio": 0.02, "lambda_list": None}
PAIRS: dict[str, Any] = {"betas": 2, "beta_min_ratio": 0.2, "alphas": POINTS, "alpha_min_ratio": 0.02, "beta": None,
                         "alpha": None, "references": 0}  # fmt: skip


def audited(path: Path, contradicted: Callable) -> int | None:
    """Return the unsafe decisions of a whole path; None where a step could not be looked at and no other has any."""
    limits = replace(path.limits, audit=Audit(path.solver, path.limits, contradicted))
    return added([step.extras["unsafe"] for step, _ in replace(path, limits=limits).walk()])


def attack(spec, options: dict, rules: dict[str, Callable], count: int) -> list[dict]:
    """Attack each rule on so many random problems of a model.

    Parameters
    ----------
    spec : Spec
        As the options make it.
    options : dict
        Of a comparison; ``seed`` draws the problems.
    rules : dict of str to callable
        ``make() -> screening``.
    count : int

    Returns
    -------
    list of dict
        A row a rule: how many checks (a reference and a parameter each) and decisions there were, how many of these are
        unsafe, on how many problems, and the number of the first such problem (None: no decision is unsafe).
    """
    names = "checks", "decisions", "unsafe", "unsafe_problems"
    rows: list[dict[str, Any]] = [
        {"rule": rule, "problems": count, **dict.fromkeys(names, 0), "first_unsafe": None} for rule in rules
    ]
    for number in range(count):
        rng = np.random.default_rng([options["seed"], number])
        with np.errstate(over="ignore", invalid="ignore"), MemoryLimit().in_force():
            model = _hostile(rng, spec, options)
            points, pairs = _solved(spec, options, model, rng)
            cases = list(_cases(model, points, pairs, rng))
            for row, make in zip(rows, rules.values(), strict=True):
                found = [_decisions(model, make(), points, pairs, *case) for case in cases]
                unsafe = sum(
                    spec.contradicted(model, pairs[k], points[k], status)
                    for (k, _), several in zip(cases, found, strict=True) for status in several
                )  # fmt: skip
                row["checks"] += len(found)
                row["decisions"] += sum(int(np.count_nonzero(status)) for several in found for status in several)
                row["unsafe"] += unsafe
                row["unsafe_problems"] += unsafe > 0
                if unsafe and row["first_unsafe"] is None:
                    row["first_unsafe"] = number
    return rows


def _hostile(rng, spec, options: dict):
    """Return a model of few rows with duplicates, a row of zeros and, often, columns of very different scales."""
    n, d = int(rng.integers(8, 40)), int(rng.integers(2, 9))
    signs = rng.permutation(np.where(np.arange(n) % 3, 1.0, -1.0))
    X = rng.normal(size=(n, d)) + rng.uniform(0.0, 2.0) * signs[:, None] * (rng.random(d) < 0.5)
    if rng.random() < 0.5:
        X *= 10.0 ** rng.uniform(-3.0, 3.0, d)
    if rng.random() < 0.3:
        X += 10.0 ** rng.uniform(-1.0, 3.0)  # all rows nearly parallel
    copies = rng.integers(0, n, n // 4)
    X[: copies.size] = X[copies]
    X[n - 1] = 0.0
    loss = LOSSES.get(spec.name)
    y = signs if loss is None or loss.signed else X @ (rng.normal(size=d) / np.abs(X).max(axis=0)) + rng.normal(size=n)
    weights = [None, rng.uniform(0.1, 3.0, n), rng.integers(0, 3, n) + (np.arange(n) % 3 == 0.0)][rng.integers(3)]
    if spec.rows is not None:
        return spec.build(spec.rows(X, y, options, None, 0.0), y, weights, options)
    return spec.build(MemoryRows(sp.csr_array(X) if rng.random() < 0.5 else X), y, weights, options)


def _solved(spec, options: dict, model, rng) -> tuple:
    """Return grid points where the solution changes, and accurate pairs there, unscreened."""
    if spec.parameter == "C":
        limit = model.closed_form()[2]
        low = limit if 0.0 < limit < np.inf else 1e-3
        points = explicit_grid(low * 10.0 ** np.sort(rng.uniform(-0.3, 3.5, POINTS)))
    else:
        points = spec.grid(model, {**options, **(LOG if spec.parameter == "lambda" else PAIRS)})
    path = Path(model, points, spec.rule("none"), spec.solver("auto", int(rng.integers(100))), ACCURATE)
    return points, [pair for _, pair in path.walk()]


def _cases(model, points, pairs: list, rng):
    """Yield the number of a grid point, and a reference at an earlier one: accurate, rough on one side, rough."""
    for k in range(1, len(pairs)):
        near = k - 1
        yield k, pairs[near]
        far = int(rng.integers(0, near + 1)) if near else k
        rough = model.fallbacks(points[near], pairs[far])[-1]
        for reference in (
            rough,
            model.combined(points[near], pairs[near], rough),
            model.combined(points[near], rough, pairs[near]),
        ):
            if np.isfinite(reference.primal) and np.isfinite(reference.gap):
                yield k, reference


def _decisions(model, screening, points, pairs: list, k: int, reference) -> list[np.ndarray]:
    """Return what a rule decides at a grid point: before the solve, and by a rough pair while it solves."""
    if screening.needs_far_end:
        screening.begin(points, pairs[-1], False)
    found = [screening.before(model, reference, points[k]).status]
    if screening.dynamic:
        rough = model.fallbacks(points[k], reference)[-1]
        found.append(screening.again(model, rough, points[k]).status)
    return found
