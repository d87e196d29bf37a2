"""What cross-validation makes of a model's options. Nothing here imports numpy."""

from __future__ import annotations

from dataclasses import replace

from screenpath.errors import UsageError
from screenpath.models.options import CERTIFY, FOLDS
from screenpath.models.spec import Spec

# Options of a path that make no sense on folds, and what they are then.
WITHOUT = {"audit": False, "eps_path": None, "c": None, "reference": None, "certificate": False}
UNCERTIFIED = {"certify": False, "certify_to": None, "certify_points": 0}


def cv_spec(spec: Spec) -> Spec:
    """Return the model with the options of its cross-validation."""
    added = (*FOLDS, *CERTIFY) if spec.name == "svm" else FOLDS
    left_out = {*WITHOUT, *(one.name for one in added)}
    options = tuple(one for one in spec.options if one.name not in left_out)
    return replace(spec, options=(*options, *added))


def cv_resolved(spec: Spec, options: dict) -> tuple[Spec, dict]:
    """Return the model that the options describe, and all options of the run, those that depend on others filled in.

    Raises
    ------
    UsageError
        For options that contradict each other.
    """
    options = {**UNCERTIFIED, **WITHOUT, **options, **dict(spec.fixed)}
    if options["fold_file"] is not None:
        for name in ("folds", "repeats", "stratify"):
            if options[name] is not None:
                raise UsageError("`fold_file` says which samples are held out together", f"leave out `{name}`")
    if options["out"] == "-":
        raise UsageError("cv writes several tables", "give a folder with `out=DIR`")
    options["folds"] = options["folds"] or 5
    options["repeats"] = options["repeats"] or 1
    if options["certify_to"] is not None:
        options["certify"] = True
    if options["certify"] and options["score"] not in (None, "accuracy"):
        raise UsageError("`certify` bounds the share of wrong decisions", "leave out `score`, or use `score=accuracy`")
    return spec.resolved(spec, options), options
