"""Comparisons of the rules of a model: options, variants and tables. The data are read once for all variants."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

from screenpath.catalogue import options as o
from screenpath.catalogue.elastic import NETS, SPARSE_SVM
from screenpath.catalogue.option import Option
from screenpath.catalogue.spec import FORM
from screenpath.catalogue.specs import L1_SVM, SPECS
from screenpath.data.safe.memory import MemoryLimit
from screenpath.data.safe.plugins import find_plugins, plugin_of, refuse_unaudited
from screenpath.errors import UsageError

# The one definition of a speed-up, quoted by every help text and page.
SPEEDUP = (
    "A speed-up is the ratio of CPU seconds of the process for a whole path, screening and certificates included. The "
    "variants take turns (A B C A B C ...): it is the median over the repeats of the first variant's seconds over the "
    "variant's own in the same repeat."
)
# The columns of a table, as its command's page has them.
COLUMNS = (
    "Columns: total_s and cpu_s are seconds of the whole path, by the clock and of the process. Of total_s, screening "
    "takes rule_s (search_s of it line searches of a chunk), solving solve_s (wasted_s of it solves that had to be "
    "repeated), certificates certify_s; the first step takes init_s of all three. passes_per_step are data passes "
    "(rows touched over rows in the data), epochs sweeps or Newton iterations of the whole path. mean_rejection is the "
    "share of samples, for l1svm of features, that the rule fixes before the solve, mean_scaling that of samples times "
    "features, both mean over the steps. solved steps are those without a closed form and not constant: "
    "solved_rejection and solved_rate are the means over them of screened over all samples (Wang 2014) and over the "
    "samples at an end (Ogawa 2014). over_hits counts features of weight 0 that were kept. shrinking tells whether "
    "the solvers cd and smo shrink, start where they begin at each step."
)
SOLVING = "screening and solver"
REPEATS = Option(
    "repeats", 3, metavar="N", group=SOLVING, help="Runs of each variant.", stated=True, everyday=True,
    **o.POSITIVE_COUNT,
)  # fmt: skip
AUDIT = replace(o.AUDIT, help="Solve each step of each rule again unscreened, and count unsafe decisions.")
ATTACK = Option(
    "attack", 0, "whole", least=0, metavar="N", group=SOLVING,
    help="Attack each rule on N random hostile problems (copies, zeros, bad scales, inexact references) in place of "
    "DATA, and count unsafe decisions.",
)  # fmt: skip
CHECKS = (AUDIT, ATTACK)
LIMITS = (o.TOL, replace(o.MAX_EPOCHS, help="Most sweeps or Newton iterations of a step."))
SOLVER = Option("solver", group=SOLVING, help="Solver of all rules.  [default: auto, as in a run]")
RULES = Option(
    "rules", "none,dvi,dvi+gap", "names", group=SOLVING, stated=True, everyday=True,
    help="Comma-separated; speed-ups refer to the first.",
)  # fmt: skip
START = Option(
    "start", "warm", "names", stated=True, group=SOLVING,
    help="Where the solver starts at each step, with and without rules: warm, at the previous solution; cold, at "
    "theta = 0; or both: warm,cold.",
)  # fmt: skip
LAST = (REPEATS, SOLVER, *CHECKS, *LIMITS, o.SEED)
BOX = (
    RULES, replace(START, help=f"{START.help} cold needs `solver=cd` `intercept=none`."),
    Option(
        "shrinking", "on", "choice", "Shrinking of the solvers cd and smo.", choices=("on", "off", "both"), stated=True,
        group=SOLVING,
    ),
    *LAST, replace(o.THREADS, help="Threads for passes over all rows."),
)  # fmt: skip
PAIRS = (
    replace(
        RULES, default="none,iss,ifs,sifs,sifs+gap",
        help="Comma-separated, of none, iss, ifs, sifs, gap, and these with +gap; speed-ups refer to the first.",
    ),
    replace(START, help=f"{START.help} cold needs your own solver. Speed-ups refer to the same start."), *LAST, o.FIRST,
)  # fmt: skip
FEATURES = (
    Option(
        "configurations", "org,warm,shr,warm+shr,scr,warm+scr,scr+shr,warm+scr+gap,default", "names", stated=True,
        group=SOLVING, everyday=True, help="Some of these, joined by commas. warm+scr+gap adds the dynamic rule; "
        "default adds working sets and Newton steps. Speed-ups refer to the first.",
    ),
    REPEATS, *CHECKS, *LIMITS, replace(o.TIME_LIMIT, help="Stop each run of a configuration after this time."),
    Option("steps", False, "flag", "Print a row for each configuration and step instead of totals.", group="output"),
    o.THREADS,
)  # fmt: skip
OWN = {L1_SVM.name: FEATURES, SPARSE_SVM.name: PAIRS, **dict.fromkeys(NETS, PAIRS)}  # other models: `BOX`
WHERE = ("problem", "data", "grid")  # groups of the options of a path that define the problem


def study_options(model: str) -> tuple:
    own = OWN.get(model, BOX)
    known = {"one_vs_rest", "one_vs_one", *(one.name for one in own), *(("bias",) if SPECS[model].free_bias else ())}
    problem = (one for one in SPECS[model].path_options if one.group in WHERE and one.name not in known)
    return (*own, o.MAX_MEMORY, *problem)


# Measured columns of the tables.
MEASURED = (
    "points", "certified", "total_s", "cpu_s", "rule_s", "init_s", "solve_s", "certify_s", "passes_per_step", "epochs",
    "mean_rejection", "solved", "solved_rejection", "solved_rate",
)  # fmt: skip
BOX_MEASURED, PAIRS_MEASURED = (*MEASURED, "search_s", "wasted_s"), (*MEASURED, "mean_scaling")
FEATURES_MEASURED = (
    "points", "certified", "total_s", "cpu_s", "rule_s", "solve_s", "certify_s", "epochs", "over_hits",
)  # fmt: skip
# Of what is compared; of box models:
EXAMPLES = {L1_SVM.name: "org,default", **dict.fromkeys((SPARSE_SVM.name, *NETS), "none,sifs")}
BOX_EXAMPLE = "none,dvi,dvi+gap"
SHRINKING = {"on": (True,), "off": (False,), "both": (True, False), None: (None,)}
STARTS = ("warm", "cold")  # of the solver at each grid point: at the previous one, or at the dual point nearest to zero

# The study of Zhao 2014: rule, shrinking, warm start. All sweep over every feature they are given, as the paper does.
STUDY = {
    "org": ("none", False, False),
    "warm": ("none", False, True),
    "shr": ("none", True, False),
    "warm+shr": ("none", True, True),
    "scr": ("vi", False, False),
    "warm+scr": ("vi", False, True),
    "scr+shr": ("vi", True, False),
    # Not in the paper: the gap ball of the current iterate too, while sweeping.
    "warm+scr+gap": ("vi+gap", False, True),
}
DEFAULT = "default"  # what l1_svm_path runs: vi+gap, warm starts, working sets, Newton finish


def study(model: str, options: dict, console) -> tuple[list[dict], bool]:
    """Compare, or attack, the rules or configurations of a model; ``options`` are :func:`study_options` and ``data``.

    Returns a row for each variant (:mod:`screenpath.engine.compare`), and whether every variant certified every grid
    point and made no unsafe decision.
    """
    from screenpath.engine.compare import compare
    from screenpath.engine.path import asked_grid, built, limits_of
    from screenpath.inputs.load import load_training, model_of
    from screenpath.problem.ends import CLOSED, CONSTANT

    if options["attack"]:
        return _attacks(model, options)
    spec, options, variants, measured = plan_of(model, options)
    asked_grid(spec, options)
    limit = MemoryLimit(options["max_memory"])
    with limit.in_force():
        with console.compiling(limit.check_compiling):
            data = load_training(spec, options, console.say)
            spec = spec if data.spec is spec else model_of(data, options, console.say)
            from screenpath.engine.warm import warm_model

            for rule in dict.fromkeys(one.cells.get("rule", "vi+gap") for one in variants):
                how = {**options, "rule": rule, "chunk": None}
                find_plugins(how)
                warm_model(spec, how, data.rows)
        once = built(spec, options, data) if spec.selects else None
        data = data.without_rows() if spec.copies else data

        def build():  # a model for one more run, without copying the data again
            if once is None:
                return built(spec, options, data)
            if hasattr(once, "base"):
                return type(once)(once.base)
            return once

        asked = console.say, spec.contradicted if options["audit"] else None
        with limit.kept("the comparison", spec.needs.hint):
            for one in variants if spec.copies else ():  # a short run of each keeps compilation out of the times
                brief = limits_of({**options, "max_epochs": 5})
                for _ in one.path(build(), spec.grid(once, options)[:4], brief).walk():
                    pass
            unsafe = compare(variants, build, lambda built: spec.grid(built, options), options, *asked)
        data.check()
    if all(step.solver in (CLOSED, CONSTANT) for one in variants for step in one.steps):
        console.say("all steps are in closed form: nothing was solved, and the speed-ups tell nothing of the rules")
    found = zip(variants, unsafe, strict=True)
    rows = [row | more for one, more in found for row in _rows(one, once, measured, options)]
    return rows, all(one.finished for one in variants) and all(more.get("unsafe", 0) == 0 for more in unsafe)


def plan_of(model: str, options: dict) -> tuple:
    """Return the resolved model, the options of its path, the variants, and the measured columns."""
    from screenpath.engine.compare import Variant

    option = "configurations" if model == L1_SVM.name else "rules"
    names = listed(options[option], option, EXAMPLES.get(model, BOX_EXAMPLE))
    refuse_unaudited(names, options["audit"])
    starts = listed(options["start"], "start", "warm,cold") if "start" in options else [None]
    if wrong := [name for name in starts if name not in (*STARTS, None)]:
        raise UsageError(f"unknown start '{wrong[0]}'", "use `start=warm`, cold or warm,cold")
    spec, options, make, measured = _ways(model, names, starts, options)
    variants: list[Variant] = []
    for start, on, name in product(starts, SHRINKING[options.get("shrinking")], names):
        cells = {option.removesuffix("s"): name, "shrinking": on, "start": start}
        marks = (*(("shrinking",) if on else ()), *(("cold",) if start == "cold" else ()))
        how = partial(make, name, on, start)
        how()  # a wrong name is found before the data are read
        alike = (one for one in variants if measured is not PAIRS_MEASURED or one.cells["start"] == start)
        told = {column: value for column, value in cells.items() if value is not None}
        variants.append(Variant(told, how, marks, next(alike, None)))
    return spec, options, variants, measured


def _rows(variant, model, measured: tuple, options: dict) -> list[dict]:
    """Return the row of a variant, or with ``steps`` one for each grid point of its last run (Zhao 2014, Fig. 2)."""
    from screenpath.engine.compare import over_hits

    if options.get("steps"):
        return [
            {
                **variant.cells, "step": step.step, "lambda": step.parameters["lambda"], "status": step.status,
                "seconds": step.screen_s + step.solve_s, "epochs": step.epochs, "active": step.nnz_w,
                "over_hits": over_hits(model, step),
            }
            for step in variant.steps
        ]  # fmt: skip
    base = variant.base or variant
    cut = "time_limit" in options and not (base.finished and variant.finished)  # an unfinished path has no speed-up
    return [{**variant.cells, **variant.row(measured), "speedup": None if cut else variant.speedup}]


def listed(text: str, option: str, example: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"`{option}` is empty", f"give for example `{option}={example}`")
    return names


def _attacks(model: str, options: dict) -> tuple[list[dict], bool]:
    from screenpath.engine.compare import attack

    if options["data"] is not None:
        raise UsageError("`attack` makes problems of its own", "leave out DATA or `attack`")
    options = {**SPECS[model].completed({}), **options, "solver": "auto", "chunk": None, "chunk_form": None}
    spec = SPECS[model].resolved(SPECS[model], options)
    if model == L1_SVM.name:
        rules = {name: lambda name=name: configured(name)[0] for name in options["configurations"].split(",")}
    else:
        rules = {name: partial(spec.rule, name) for name in listed(options["rules"], "rules", BOX_EXAMPLE)}
    rows = attack(spec, options, rules, options["attack"])
    return rows, all(row["unsafe"] == 0 for row in rows)


def _ways(model: str, names: list, starts: list, options: dict) -> tuple:
    """Return the resolved model, its options, what makes rule and solver of a variant, and the measured columns."""
    from screenpath.screen import takes_chunks

    options = {"bias": 0.0, "solver": None, **options, **dict(SPECS[model].fixed)}
    spec = SPECS[model].resolved(SPECS[model], options)  # makes `intercept` and `bias` agree
    if model == L1_SVM.name:
        return spec, {**options, "solver": "auto"}, lambda name, *_: configured(name), FEATURES_MEASURED
    linear, chunk = spec.rows is None and not spec.selects, options.get("chunk")
    if linear:  # chunks are for those of the rules that can
        spec = replace(spec, rule=partial(spec.rule, chunk=None))
    served = {} if chunk is None else {"chunk": chunk, "form": options["chunk_form"] or FORM}
    if served and not any(map(takes_chunks, names)):
        raise UsageError(f"none of the rules {', '.join(names)} can serve a chunk", "add ssnsv or essnsv")
    sweeps = linear and "cold" in starts and options["intercept"] != "free"
    options["solver"] = options["solver"] or ("cd" if sweeps else "auto")

    def make(rule: str, shrinking: bool | None, start: str) -> tuple:
        how = (start == "warm",) if shrinking is None else (shrinking, start == "warm")
        own = served if takes_chunks(rule) else {}
        return spec.rule(rule, **own), spec.solver(options["solver"], options["seed"], *how)

    return spec, options, make, PAIRS_MEASURED if spec.selects else BOX_MEASURED


def configured(name: str) -> tuple:
    """Return screening and solver of a configuration, or of a rule of the user's own."""
    from screenpath.screen.l1svm import parse_feature_rule
    from screenpath.solve.l1cd import FeatureDescent

    if name == DEFAULT or plugin_of(name) is not None:
        return parse_feature_rule("vi+gap" if name == DEFAULT else name), FeatureDescent()
    if name not in STUDY:
        raise UsageError(f"unknown configuration '{name}'", f"use some of {', '.join((*STUDY, DEFAULT))}")
    rule, shrinking, warm = STUDY[name]
    return parse_feature_rule(rule), FeatureDescent(shrinking=shrinking, working_sets=False, warm=warm)
