"""The penalised weights of a step of a run folder as the model saw them, and the step with a wanted nu."""

from __future__ import annotations

import numpy as np

from screenpath.errors import UsageError
from screenpath.numbers.rounding import gamma


def stored_weights(run, weights: np.ndarray, intercepts: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the penalised weights of a step of a run folder as the model saw them, and their rounding error.

    ``weights``, shape (k, d), and ``intercepts``, (k,), are in the units of the data file.
    """
    p = run.record["preparation"]
    scale, shift, bias = p.get("scale"), p.get("shift"), p.get("bias") or 0.0
    w = weights if scale is None else weights * np.array(scale)
    off = 0.0 if scale is None else gamma(4) * float(np.linalg.norm(w))
    if not bias or run.record["options"].get("intercept") == "free":
        return w.ravel(), off
    moved = np.zeros_like(weights) if shift is None else weights * np.array(shift)
    constant = (intercepts + moved.sum(axis=1)) / bias
    sizes = (np.abs(intercepts) + 2.0 * np.abs(moved).sum(axis=1)) / abs(bias)
    off += gamma(2 * weights.shape[1] + 16) * float(np.linalg.norm(sizes))
    return np.column_stack([w, constant]).ravel(), off


def nu_of(run, step: dict) -> float:
    """Return ``sum(alpha) / (n C)``, the nu of nu-SVC with the same decisions (Chang and Lin 2001, Theorem 5).

    With weights of features the sum is ``(P + ||w||^2 / 2) / C``, since ``alpha_i (1 - m_i)`` is C times the loss of
    row i in an optimum; with coefficients of samples it is the sum of their sizes.
    """
    weights, intercepts = run.coefficients(step)
    n, C = run.record["data"]["n_samples"], step["C"]
    if run.kernel:
        return float(np.abs(weights).sum()) / (n * C)
    w, _ = stored_weights(run, weights, intercepts)
    return float(step["primal"] + 0.5 * (w @ w)) / (n * C)


def step_of_nu(run, nu: float) -> dict:
    """Return the step whose nu is nearest in proportion, with its ``nu``, which falls along the path: nu-SVC by C."""
    weighted = any(run.record["options"].get(name) for name in ("weights", "weight_column", "class_weight"))
    if run.model != "svm" or run.classes or weighted:
        raise UsageError("nu belongs to runs of svm with two labels and without weights", "name a step by its C")
    rows = [row for row in run.steps if row["primal"] is not None]
    low, high = 0, len(rows) - 1
    ends = [nu_of(run, rows[low]), nu_of(run, rows[high])]
    if not ends[1] * (1.0 - 1e-9) <= nu <= ends[0] * (1.0 + 1e-9):
        span = f"nu of its steps goes from {ends[0]:.3g} down to {ends[1]:.3g}"
        hint = "a smaller `cmin` has larger ones" if nu > ends[0] else "a larger `cmax` has smaller ones"
        raise UsageError(f"{run.path} has no step with nu near {nu:g}", f"{span}; {hint}")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if nu_of(run, rows[middle]) >= nu else (low, middle)
    found = [{**row, "nu": nu_of(run, row)} for row in (rows[low], rows[high])]
    return min(found, key=lambda row: abs(np.log(max(row["nu"], 1e-300) / nu)))
