"""The options of a cross-validation. Nothing here imports numpy, as `--help` needs it."""

from __future__ import annotations

from dataclasses import replace

from screenpath.catalogue.options import CERTIFY, FOLDS, UNTIL_TURN
from screenpath.catalogue.spec import Spec
from screenpath.errors import UsageError

# Options of a path that make no sense on folds, and their value there.
WITHOUT = {"audit": False, "eps_path": None, "c": None, "reference": None, "certificate": False}
WITHOUT_MORE = {"certify": False, "certify_to": None, "certify_points": 0, "until_turn": False, "turn_points": 0}

# Options that bound the points to be added: the option that they serve, and their default.
SERVED = {"certify_points": "certify_to", "turn_points": "until_turn"}
BUDGETS = {one.name: (SERVED[one.name], one.usual) for one in (*CERTIFY, *UNTIL_TURN) if one.name in SERVED}


def cv_spec(spec: Spec) -> Spec:
    """Return the model with the options of its cross-validation."""
    added = (*FOLDS, *(UNTIL_TURN if spec.further else ()), *(CERTIFY if spec.name == "svm" else ()))
    left_out = {*WITHOUT, *(one.name for one in added)}
    options = tuple(one for one in spec.options if one.name not in left_out)
    return replace(spec, options=(*options, *added))


def cv_resolved(spec: Spec, options: dict) -> tuple[Spec, dict]:
    """Return the model that the options describe, and all options of the run, dependent defaults filled in."""
    options = {**WITHOUT_MORE, **WITHOUT, **counted(options), **dict(spec.fixed)}
    if options["fold_file"] is not None:
        for name in ("folds", "repeats", "stratify"):
            if options[name] is not None:
                raise UsageError("`fold_file` says which samples are held out together", f"leave out `{name}`")
    if options["out"] == "-":
        raise UsageError("cv writes several tables", "give a folder with `out=DIR`")
    options |= {one.name: options[one.name] or one.usual for one in FOLDS if one.usual is not None}
    if options["certify_to"] is not None:
        options["certify"] = True
    if options["certify"] and options["score"] not in (None, "accuracy"):
        raise UsageError("`certify` bounds the share of wrong decisions", "leave out `score`, or use `score=accuracy`")
    if options["until_turn"]:
        check_open_end(options)
    return spec.resolved(spec, options), options


def counted(options: dict) -> dict:
    """Fill in how many points may be added; such a number without the option that it serves is an error."""
    options = dict(options)
    for name, (serves, most) in BUDGETS.items():
        if name not in options:  # not an option of this model
            continue
        if options[name] is None:
            options[name] = most
        elif options[serves] is None or options[serves] is False:
            raise UsageError(f"`{name}` serves `{serves}` alone", f"add `{serves}`, or leave it out")
    return options


def check_open_end(options: dict) -> None:
    """Refuse ``until_turn`` with a fixed grid, or with some of the folds only."""
    for name in ("c_list", "lambda_list"):
        if options.get(name) is not None:
            raise UsageError(f"`{name}` is the whole grid, `until_turn` goes on as it is spaced", f"leave out `{name}`")
    if options["part"] is not None:
        raise UsageError("`until_turn` looks at all folds, `part` has some of them", "leave out one of the two")
