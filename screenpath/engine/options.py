"""The options of a run as a whole: contradictions are refused, dependent defaults filled in, parts of a grid found.

Nothing here imports numpy, as `--help` needs it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path

from screenpath.catalogue.kernel_models import DEFAULTS, PARAMETERS
from screenpath.catalogue.option import RENAMED, part_numbers
from screenpath.catalogue.options import C_GRID, CERTIFY, EPSILONS, FOLDS, KERNEL, LOO, TUNING, UNTIL_TURN
from screenpath.catalogue.spec import Spec
from screenpath.catalogue.specs import SPECS
from screenpath.data.safe.plugins import find_plugins, refuse_unaudited
from screenpath.data.words.numerals import is_number
from screenpath.data.words.tables import need_parquet
from screenpath.errors import UsageError

# Options that name files which a run reads.
INPUTS = ("data", "test", "weights", "penalty_weights", "signs", "groups", "fold_file")
# Options that exclude `part`, and why.
WHOLE = {
    "eps_path": "an eps-path finds each point from the one before",
    "reference": "`reference` is for a single problem",
    "chunk": "a chunk is one rule for several points of the grid",
    "certify": "the certified bound is over all folds at once",
    "predictions": "the step whose predictions are written is chosen by all folds at once",
    "threshold": "the threshold is chosen by the rows of all folds",
    "calibrate": "the probabilities are fitted to the rows of all folds",
    "epsilons": "epsilon is chosen by all folds at once",
    "gammas": "gamma is chosen by all folds at once",
}


def check_options(options: dict) -> None:
    """Refuse options that contradict each other; fill in, in place, defaults that depend on others."""
    find_plugins(options)
    refuse_unaudited((options["rule"],), options.get("audit", False))
    if callable(options.get("kernel")):
        what = "a function that is a kernel cannot be written to a run folder"
        raise UsageError(what, "use a function of paths or an estimator, such as kernel_svm_path or SVMClassifierCV")
    if options["out"] == "-":
        for name in ("resume", "force", "keep_rows", "certificate"):
            if options.get(name):
                raise UsageError(f"`{name}` needs a run folder", "give one: `out=DIR`")
        if options["coefficients"] not in (None, "none"):
            raise UsageError("`out=-` writes the step table only", "give a folder with `out=DIR` to get coefficients")
        if options["format"] == "parquet":
            raise UsageError("`format=parquet` needs a run folder", "give one: `out=DIR`, or write csv or json")
        options["coefficients"] = "none"
    if options["format"] == "parquet":
        need_parquet()
    options["coefficients"] = options["coefficients"] or "csv"
    if options["resume"] and options["force"]:
        raise UsageError("`resume` continues a run and `force` replaces it", "use one of them")
    if options["quiet"] and options["progress"]:
        raise UsageError("`quiet` and `progress` contradict each other", "use one of them")
    for name, why in WHOLE.items() if options.get("part") is not None else ():
        if options.get(name):
            raise UsageError(f"`part` and `{name}` cannot be combined: {why}", f"leave out `part` or `{name}`")
    if options.get("certificate"):
        _check_certificate(options)
    if options["data"] == "-" and options["test"] == "-":
        raise UsageError("DATA and `test` cannot both be stdin")


def _check_certificate(options: dict) -> None:
    """Refuse a certificate that :mod:`screenpath.verify` could not check."""
    if options["dtype"] != "float64":
        raise UsageError("`certificate` proves the numbers of the file, `dtype=float32` rounds them", "leave one out")
    if not isinstance(options["data"], str):
        raise UsageError("`certificate` is checked against a file, the data are arrays", "name a file")
    if options.get("one_vs_one") and options.get("part"):
        raise UsageError("`certificate` of `one_vs_one` is of the whole grid", "leave out `part`")
    if options.get("one_vs_one") and "folds" in options:
        raise UsageError("`certificate` proves folds of two labels, not of `one_vs_one`", "leave out `certificate`")
    if options.get("one_vs_rest"):
        hint = "use `positive=LABEL` in its place"
        raise UsageError("`certificate` is of one path, `one_vs_rest` computes several", hint)


def default_folder(spec: Spec, options: dict, folds: bool) -> Path:
    """Return ``runs/NAME-STEM``, ``runs/cv-NAME-STEM`` with ``folds``; ``NAME-l1`` with a penalty that is not usual.

    The stem is the file's name without endings of compression and format.
    """
    data, usual = options["data"], next((one.default for one in spec.options if one.name == "penalty"), None)
    penalty = options.get("penalty", usual)
    name = "cv-" * folds + spec.name + ("" if penalty == usual else f"-{penalty}")
    path = Path("stdin" if data == "-" else data if isinstance(data, str) else "arrays")
    if path.suffix in (".gz", ".bz2", ".xz"):
        path = path.with_suffix("")
    return Path("runs") / f"{name}-{path.stem}"


# -- parts of a grid, for the tasks of a job array --------------------------------------------------------------------


def numbers_of(part: str) -> tuple[int, int]:
    found = part_numbers(part)
    assert found is not None  # the option has been checked
    return found


def stretch(part: str, count: int, what: str) -> range:
    """Return the units, of ``count``, of a part: parts are consecutive and differ in size by at most one."""
    number, parts = numbers_of(part)
    if parts > count:
        raise UsageError(f"`part={part}` has more parts than {what}: {count}", f"use `part=1/{count}` and so on")
    return range((number - 1) * count // parts, number * count // parts)


def points_of(part: str, grid) -> range:
    """Return the steps of a grid in a part; of a grid of (alpha, beta), whole values of beta.

    Values of beta do not depend on each other, so a part has the numbers of the whole grid.
    """
    if not isinstance(grid[0], tuple):
        return stretch(part, len(grid), "grid points")
    rows = [len(list(row)) for _, row in groupby(grid, key=lambda pair: pair[1])]
    chosen = stretch(part, len(rows), "values of beta")
    return range(sum(rows[: chosen.start]), sum(rows[: chosen.stop]))


# -- cross-validation ------------------------------------------------------------------------------------------------

# Options of a path that make no sense on folds, and their value there.
WITHOUT = {"audit": False, "eps_path": None, "c": None, "reference": None}
LEVELS = {"tau_list", "epsilon_list"}  # of which several losses have no common score
UNPROVEN = ("kernel", "until_turn")  # of folds no certificate is checked
# Of drawn folds, where each row is left out in its turn.
DRAWN = (
    "repeats", "stratify", "group_column", "until_turn", "certify", "certify_to", "certificate", "part", "gammas",
    "epsilons", "scheduler",
)  # fmt: skip
WITHOUT_MORE = {"certify": False, "certify_to": None, "certify_points": 0, "until_turn": False, "turn_points": 0,
                "gammas": None, "libsvm_grid": False, "epsilons": None}  # fmt: skip

# Options that bound the points to be added: the option that they serve, and their default.
SERVED = {"certify_points": "certify_to", "turn_points": "until_turn"}
BUDGETS = {one.name: (SERVED[one.name], one.usual) for one in (*CERTIFY, *UNTIL_TURN) if one.name in SERVED}


def cv_spec(spec: Spec) -> Spec:
    added = (*FOLDS, *(UNTIL_TURN if spec.further else ()), *(CERTIFY if spec.name == "svm" else ()))
    added += TUNING if KERNEL[0] in spec.options else ()
    added += EPSILONS if spec.name == "svr" else ()
    left_out = {*WITHOUT, *LEVELS, *(one.name for one in added)}
    options = tuple(one for one in spec.options if one.name not in left_out)
    return replace(spec, options=(*options, *added))


def cv_resolved(spec: Spec, options: dict) -> tuple[Spec, dict]:
    """Return the model that the options describe, and all options of the run, dependent defaults filled in."""
    options = {**WITHOUT_MORE, **WITHOUT, "certificate": False, **counted(options), **dict(spec.fixed)}
    for name in UNPROVEN if options["certificate"] else ():
        if options.get(name):
            raise UsageError(f"`certificate` of cross-validation does not cover `{name}`", "leave out one of the two")
    for given in ("fold_file", "fold_column"):
        for name in ("folds", "repeats", "stratify", "group_column", "fold_column"):
            if options[given] is not None and options[name] is not None and name != given:
                raise UsageError(f"`{given}` already defines the folds", f"leave out `{name}`")
    for name in DRAWN if options["folds"] == LOO else ():
        if options.get(name):
            hint = "; screenpath loo can prove a step" if name == "certificate" else ""
            what = f"`folds=loo` leaves out each row, and `{name}` is of drawn folds"
            raise UsageError(what, f"leave out `{name}`{hint}")
    if options["folds"] == LOO and options["jobs"] > 1:
        raise UsageError("`folds=loo` is one path, and `jobs` share several", "leave out `jobs`")
    if options["out"] == "-":
        raise UsageError("cv writes several tables", "give a folder with `out=DIR`")
    options |= {one.name: options[one.name] or one.usual for one in FOLDS if one.usual is not None}
    if options["certify_to"] is not None:
        options["certify"] = True
    if options["certify"] and (options["score"] or "accuracy").partition(",")[0] != "accuracy":
        raise UsageError("`certify` bounds the share of wrong decisions", "leave out `score`, or use `score=accuracy`")
    from screenpath.catalogue.scores import SCORES, choose_score  # here: it needs numpy

    for name in filter(None, (options["score"] or "").split(",")):
        choose_score(name, spec, SCORES[spec.score].task)
    if options["until_turn"]:
        check_open_end(options)
    if options["libsvm_grid"]:
        options |= _libsvm_grid(options)
    if options["epsilons"] is not None:
        options["gammas"] = _gammas_of_epsilons(options)
    if options["gammas"] is not None:
        _check_gammas(options)
    return spec.resolved(spec, options), options


def _libsvm_grid(options: dict) -> dict:
    for name in ("gammas", "gamma", "grid", "c_list", "cmin", "cmax"):
        if options[name] is not None:
            raise UsageError(f"`libsvm_grid` and `{name}` both choose the values to try", "use one of the two")
    found = {"c_list": [2.0**k for k in range(-5, 16, 2)], "gammas": ",".join(repr(2.0**k) for k in range(-15, 4, 2))}
    return {**found, "kernel": options["kernel"] or "rbf"}


def _gammas_of_epsilons(options: dict) -> str:
    """Return the values of gamma that several of epsilon are tried with: one if none are asked for."""
    values = options["epsilons"]
    if len(set(values)) < len(values) or not min(values) > 0.0:
        raise UsageError("`epsilons` needs different positive numbers", "for example `epsilons=0.01,0.1,1`")
    if options["gammas"] is None:
        _check_kernel_of_gammas("epsilons", options["kernel"])
    found = options["gammas"] or str(options["gamma"] or DEFAULTS["gamma"])
    options["gamma"] = options["gamma"] if options["gammas"] else None
    return found


def gammas_error(text: str) -> UsageError:
    return UsageError(f"`gammas={text}` needs different positive numbers", "for example 10, or .01,.1,1")


def _check_kernel_of_gammas(name: str, kernel: str | None) -> None:
    if "gamma" not in PARAMETERS.get(kernel, ()):
        hint = f"leave out `{name}`" if kernel == "precomputed" else "add `kernel=rbf`"  # those data have no features
        raise UsageError(f"`{name}` is for a kernel with a gamma", hint)


def _check_gammas(options: dict) -> None:
    _check_kernel_of_gammas("gammas", options["kernel"])
    if options["gamma"] is not None:
        raise UsageError("`gamma` is one value and `gammas` are several", "use one of the two")
    listed = [float(one) if is_number(one) else one.strip() for one in options["gammas"].split(",")]
    if len(set(listed)) < len(listed):
        raise gammas_error(options["gammas"])
    if options["until_turn"]:
        raise UsageError("`until_turn` extends one grid, and `gammas` compares several", "use one of the two")


def counted(options: dict) -> dict:
    """Fill in how many points may be added; such a number without the option that it serves is an error."""
    options = dict(options)
    for name, (serves, most) in BUDGETS.items():
        if name not in options:  # not an option of this model
            continue
        if options[name] is None:
            options[name] = most
        elif options[serves] is None or options[serves] is False:
            how = f"{serves}=DIFFERENCE" if serves == "certify_to" else serves
            raise UsageError(f"`{name}` is used only with `{serves}`", f"add `{how}`, or leave it out")
    return options


def check_open_end(options: dict) -> None:
    """Refuse ``until_turn`` with a fixed grid, or with some of the folds only."""
    for name in ("c_list", "lambda_list"):
        if options.get(name) is not None:
            raise UsageError(f"`{name}` is the whole grid, and `until_turn` would extend it", f"leave out `{name}`")
    if options["part"] is not None:
        raise UsageError("`until_turn` needs all folds, and `part` computes some", "leave out one of the two")


# -- models made elsewhere --------------------------------------------------------------------------------------------

# Of a path's options: those about data, problem and limits are taken, but for some, and a few others.
CERTIFIED = {"data", "problem", "limits"}, {"c", "alpha", "beta", "tol", "out", "force"}
NOT_CERTIFIED = {"groups", "l1_share", "penalty", "scale", "dtype", "jobs", "one_vs_rest", "one_vs_one"}


def certify_options(name: str) -> tuple:
    """Return the options of ``certify`` for a model; sample weights are ``sample_weight`` there."""
    (groups, names), known = CERTIFIED, {one.name: one for one in (*SPECS[name].path_options, *C_GRID)}
    own: dict[str, dict] = {
        "weights": {"name": RENAMED["weights"]},
        "intercept": {"help": "Its kind.  [default: as the model tells; else none, or penalised with `bias`]"},
        "c": {"help": "C of the model, as LIBLINEAR and LIBSVM count it.", "everyday": True},
        "tol": {"default": 1e-10, "help": "Relative gap of the dual point that is looked for."},
        "out": {"help": "Run folder to write, with the certificate of these weights.", "everyday": True},
    }
    kept = [one for one in known.values() if (one.group in groups or one.name in names) and one not in KERNEL]
    return tuple(replace(one, **own.get(one.name, {})) for one in kept if one.name not in NOT_CERTIFIED)
