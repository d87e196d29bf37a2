"""Descriptions of a run and its step for model files, pages and ``show``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from screenpath.catalogue.specs import KERNEL_SVM, SPARSE_SVM, SPECS, hinge_named
from screenpath.data.words.tables import SCHEMA_VERSION

if TYPE_CHECKING:
    from screenpath.store.open import Run


def description(run: Run, step: dict) -> dict:
    """Return the description of a step in model files, without its weights."""
    return {
        "schema_version": SCHEMA_VERSION,
        "model": run.model,
        "objective": run.record.get("objective"),
        "step": step["step"],
        "parameters": {name: step[name] for name in run.parameters},
        "status": step["status"],
        "rel_gap": step.get("rel_gap"),
        "n_features": run.n_features,
        "first_index": 0 if run.record["options"].get("zero_based") else 1,
        "rows": "l2" if run.record["preparation"].get("scaling") == "l2" else "as they are",
        "labels": run.labels,
        **({} if run.feature_names is None else {"feature_names": list(run.feature_names)}),
    }


def values_words(run: Run, name: str) -> str:
    """Return the requested values of a parameter and, for an unfinished run, those that are done."""
    asked, done = (_across([row[name] for row in rows]) for rows in (run.table, run.steps))
    return asked if done == asked else f"{asked}; done: {done}"


def _across(values: list) -> str:
    low, high = min(values), max(values)
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}, {len(set(values)):,} values"


def title_of(run: Run) -> str:
    """Return the name of a run's solutions, in the plural."""
    if run.model == SPARSE_SVM.name:
        return hinge_named(SPARSE_SVM, run.record["options"]).title
    return (KERNEL_SVM if run.kernel else SPECS[run.model]).title


def loss_values(run: Run) -> list:
    options, words = run.record["options"], re.split(r"\W+", str(run.record.get("objective")))
    letters = (("tau", "tau"), ("epsilon", "epsilon"), ("gamma", "smoothing"))
    found = [(letter, options.get(name)) for letter, name in letters if letter in words]
    return [(letter, value) for letter, value in found if isinstance(value, int | float)]


def kernel_words(record: dict) -> str:
    """Return the kernel of a run's record in words, and how much of its matrix was stored."""
    names = [name for name in ("gamma", "degree", "coef0") if record.get(name) is not None]
    names += ["constant"] if record.get("constant") else []
    words = ", ".join([record["kernel"], *(f"{name} {record[name]:.6g}" for name in names)])
    if record.get("rows_kept") is None:
        return words
    return f"{words}; {record['rows_kept']:,} rows of its matrix kept, {record['bytes'] / 1e6:.3g} MB"


def intercept_words(run: Run) -> str:
    """Return the kind of intercept of a linear model."""
    if SPECS[run.model].free_bias or run.record["options"].get("intercept") == "free":
        return "free"
    bias = run.record["preparation"].get("bias")
    return f"penalised (bias {bias:g})" if bias else "none"
