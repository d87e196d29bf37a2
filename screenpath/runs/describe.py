"""What a model file says about the step that it holds."""

from __future__ import annotations

from screenpath.data.tables import SCHEMA_VERSION
from screenpath.runs.open import Run


def description(run: Run, step: dict) -> dict:
    """Return what model files say about a step besides the numbers."""
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
