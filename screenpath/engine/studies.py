"""Comparisons by the name of a model: the data are read once, and every variant walks the same path on them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from screenpath.catalogue import options as o
from screenpath.catalogue.losses import LOSSES
from screenpath.catalogue.option import Option
from screenpath.catalogue.spec import FORM
from screenpath.catalogue.specs import L1_SVM, SPARSE_SVM, SPECS
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.safe.needs import SCREEN_MORE
from screenpath.data.safe.plugins import find_plugins
from screenpath.errors import UsageError

if TYPE_CHECKING:
    from screenpath.inputs.load import Training

# The one definition of a speed-up, in the words of every help text and page.
SPEEDUP = (
    "A speed-up is the ratio of CPU seconds of the process for a whole path, screening and certificates included. The "
    "variants take turns (A B C A B C ...): it is the median over the repeats of the first variant's seconds over the "
    "variant's own in the same repeat."
)
SOLVING = "screening and solver"
REPEATS = Option("repeats", 3, group=SOLVING, help="Runs of each variant.", stated=True, **o.POSITIVE_COUNT)
AUDIT = replace(
    o.AUDIT, help="Walk once more with each rule, solve each step unscreened too, and count unsafe decisions."
)
ATTACK = Option(
    "attack", 0, "whole", least=0, metavar="N", group=SOLVING,
    help="Attack each rule on N random hostile problems (copies, zeros, bad scales, inexact references) in place of "
    "DATA, and count unsafe decisions.",
)  # fmt: skip
CHECKS = (AUDIT, ATTACK)
LIMITS = (o.TOL, replace(o.MAX_EPOCHS, help="A grid point."))
SOLVER = Option("solver", group=SOLVING, help="The same for all rules.  [default: auto, as of a run]")
RULES = Option(
    "rules", "none,dvi,dvi+gap", group=SOLVING, stated=True,
    help="Comma-separated; the first is what speed-ups refer to.",
)  # fmt: skip
START = Option(
    "start", "warm", stated=True, group=SOLVING,
    help="Where the solver begins at each grid point, with and without rules: warm, at the previous point; cold, at "
    "theta = 0; or both, as warm,cold.",
)  # fmt: skip
BOX = (
    RULES, replace(START, help=f"{START.help} cold: solver cd only."),
    Option(
        "shrinking", "on", "choice", "Shrinking of the solvers cd and smo.", choices=("on", "off", "both"), stated=True,
        group=SOLVING,
    ),
    REPEATS, SOLVER, *CHECKS, *LIMITS, o.SEED, replace(o.THREADS, help="For passes over all rows."),
    *(replace(one, help=f"{loss.name}: {one.help}") for loss in LOSSES.values() for one in loss.options),
    replace(o.POSITIVE, help="svm: this label against all others."), o.INTERCEPT, o.CLASS_WEIGHT,
    o.WEIGHTS, *o.READING, *o.PREPARATION, *o.C_GRID, *o.KERNEL,
)  # fmt: skip
PAIRS = (
    replace(
        RULES, default="none,iss,ifs,sifs,sifs+gap",
        help="Comma-separated, of none, iss, ifs, sifs, gap, and these with +gap; speed-ups refer to the first.",
    ),
    replace(START, help=f"{START.help} cold: a solver of yours alone. Speed-ups refer to the same start."),
    REPEATS,
    SOLVER,
    *CHECKS, *LIMITS, o.SEED, o.POSITIVE, o.INTERCEPT, *o.READING, *o.PREPARATION, *o.PAIR_GRID, o.LOSS, o.SMOOTHING,
    o.FIRST,
)  # fmt: skip
FEATURES = (
    Option(
        "configurations", "org,warm,shr,warm+shr,scr,warm+scr,scr+shr,warm+scr+gap,default", stated=True, group=SOLVING,
        help="Some of these, joined by commas. warm+scr+gap: the dynamic rule besides; default: also working sets and "
        "Newton steps. Speed-ups refer to the first.",
    ),
    REPEATS, *CHECKS, *LIMITS, replace(o.TIME_LIMIT, help="For each run of a configuration."),
    Option("steps", False, "flag", "One row a configuration and grid point instead of the totals.", group="output"),
    o.THREADS, o.POSITIVE, *o.READING, *(one for one in o.PREPARATION if one is not o.BIAS), *o.LAMBDA_GRID,
)  # fmt: skip


def study_options(model: str) -> tuple:
    """Return the options of a model's comparison."""
    return {L1_SVM.name: FEATURES, SPARSE_SVM.name: PAIRS}.get(model, BOX)


def study(model: str, options: dict, console) -> tuple[list[dict], bool]:
    """Compare the rules, or the configurations, of a model, by all options of :func:`study_options` and ``data``.

    Returns a row for each variant, see :mod:`screenpath.engine.compare`, :mod:`screenpath.engine.compare_l1` and
    :func:`screenpath.engine.attack.attack`, and whether every variant certified every grid point and was found safe.
    """
    if options["attack"]:
        return _attacks(model, options)
    found = {L1_SVM.name: _configurations, SPARSE_SVM.name: _pairs}.get(model, partial(_rules, model))
    return found(options, console)


def listed(text: str, option: str, example: str) -> list[str]:
    """Return the names of a comma-separated option."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"`{option}` is empty", f"give for example `{option}={example}`")
    return names


def _starts(text: str) -> list[str]:
    from screenpath.engine.compare import STARTS

    names = listed(text, "start", "warm,cold")
    wrong = [name for name in names if name not in STARTS]
    if wrong:
        raise UsageError(f"unknown start '{wrong[0]}'", "use `start=warm`, cold or warm,cold")
    return names


def _read(spec, options: dict, console, limit, rules) -> Training:
    """Return the training data, with the kernels of every rule compiled."""
    from screenpath.engine.warm import warm_model
    from screenpath.inputs.load import load_training

    with limit.in_force(), console.compiling(limit.check_compiling):
        data = load_training(spec, options, console.say)
        for name in rules:
            how = {**options, "rule": name, "chunk": None}
            find_plugins(how)
            warm_model(spec, how, data.rows)
    return data


def _certified(rows: list[dict]) -> bool:
    return all(row["certified"] == row["points"] and row.get("unsafe", 0) == 0 for row in rows)


def _attacks(model: str, options: dict) -> tuple[list[dict], bool]:
    """Attack the rules of a model; the others of the options say what problem it is."""
    from screenpath.engine.attack import attack
    from screenpath.engine.compare_l1 import configured

    if options["data"] is not None:
        raise UsageError("`attack` makes problems of its own", "leave out DATA or `attack`")
    options = {**SPECS[model].completed({}), **options, "solver": "auto", "chunk": None, "chunk_form": None}
    spec = SPECS[model].resolved(SPECS[model], options)
    if model == L1_SVM.name:
        rules = {name: lambda name=name: configured(name)[0] for name in options["configurations"].split(",")}
    else:
        rules = {name: partial(spec.rule, name) for name in listed(options["rules"], "rules", "none,dvi,dvi+gap")}
    rows = attack(spec, options, rules, options["attack"])
    return rows, all(row["unsafe"] == 0 for row in rows)


def _rules(model: str, options: dict, console) -> tuple[list[dict], bool]:
    from screenpath.engine.compare import compare

    names = listed(options["rules"], "rules", "none,dvi,dvi+gap")
    if model != "svm" and options["kernel"] is not None:
        raise UsageError(f"{model} has no kernel", "use compare-rules svm, or leave out `kernel`")
    kernel = options["kernel"] is not None
    spec = SPECS[model].resolved(SPECS[model], options)  # makes `intercept` and `bias` agree
    free = options["intercept"] == "free"
    if not kernel:  # chunks are for those of the rules that can
        spec = replace(spec, rule=partial(spec.rule, chunk=None))
    begin = _starts(options["start"])
    options = {**options, "solver": options["solver"] or ("auto" if kernel or free or "cold" not in begin else "cd")}
    limit = MemoryLimit(options["max_memory"])
    data = _read(spec, options, console, limit, names)
    with limit.in_force(), limit.kept("the comparison", SCREEN_MORE):
        rows = compare(
            lambda: spec.build(data.rows, data.targets, data.weights, options),
            lambda built: spec.grid(built, options),
            names,
            shrinking={"on": (True,), "off": (False,), "both": (True, False)}[options["shrinking"]],
            starts=begin,
            chunk=options["chunk"],
            chunk_form=options["chunk_form"] or FORM,
            parse=spec.rule,
            make=spec.solver,
            **_shared(spec, options, console),
        )
    data.check()
    return rows, _certified(rows)


def _shared(spec, options: dict, console) -> dict:
    names = ("solver", "tol", "max_epochs", "seed", "repeats")
    audit = {"contradicted": spec.contradicted} if options["audit"] else {}
    return {**{name: options[name] for name in names}, "progress": console.say, **audit}


def _pairs(options: dict, console) -> tuple[list[dict], bool]:
    from screenpath.engine.compare import compare_sparse

    names = listed(options["rules"], "rules", "none,sifs")
    begin = _starts(options["start"])
    solver = options["solver"] or "auto"
    options, limit = {**options, "threads": 1, "solver": solver}, MemoryLimit(options["max_memory"])
    spec = SPARSE_SVM.resolved(SPARSE_SVM, options)  # makes `intercept` and `bias` agree
    spec.solver(solver)  # one that a free intercept does not have is refused before the data are read
    data = _read(spec, options, console, limit, names)
    with limit.in_force(), limit.kept("the comparison"):
        model = spec.build(data.rows, data.targets, data.weights, options)
        rows = compare_sparse(
            lambda: type(model)(model.base),  # both views of the data are built once
            partial(spec.grid, options=options),
            names,
            starts=begin,
            first=options["first"],
            make=spec.solver,
            **_shared(spec, options, console),
        )
    return rows, _certified(rows)


def _configurations(options: dict, console) -> tuple[list[dict], bool]:
    from screenpath.engine.compare_l1 import audits, compare, finished, per_step, totals

    names = listed(options["configurations"], "configurations", "org,default")
    options = {**options, "bias": 0.0, "solver": "auto"}
    limit = MemoryLimit(options["max_memory"])
    data = _read(L1_SVM, options, console, limit, ["vi+gap"])
    with limit.in_force():
        model = L1_SVM.build(data.rows, data.targets, None, options)
        data = data.without_rows()  # the model has its columns
        more = {name: options[name] for name in ("repeats", "tol", "max_epochs", "time_limit")}
        with limit.kept("the comparison"):
            found = compare(model, L1_SVM.grid(model, options), names, progress=console.say, **more)
            unsafe = audits(model, L1_SVM.grid(model, options), names, options) if options["audit"] else None
        data.check()
    rows = per_step(model, found) if options["steps"] else totals(found)
    rows = rows if unsafe is None else [{**row, "unsafe": unsafe[row["configuration"]]} for row in rows]
    return rows, all(finished(one) for one in found) and (unsafe is None or not any(unsafe.values()))
