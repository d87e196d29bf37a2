"""The models by name: what is special about the SVM, and those that are no box losses."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial

from screenpath.catalogue import losses
from screenpath.catalogue import options as o
from screenpath.catalogue.elastic import NETS, SPARSE_SVM, signed, signs_of
from screenpath.catalogue.kernel_models import ABOUT, pair_rows, with_intercept_kernel
from screenpath.catalogue.option import usual
from screenpath.catalogue.spec import Later, Spec, chunked, class_targets, sign_targets
from screenpath.data.safe.memory import L1
from screenpath.errors import UsageError

# -- the linear SVM, of two classes or of each against the rest -------------------------------------------------------


ONE_OR_ALL = "`positive` is one class against the rest, `one_vs_rest` all of them", "use one of the two"


def _svm_targets(y, options, known=None):
    """Return signs and their map, or for models of several classes class numbers and the labels."""
    several = "classes" in known if known is not None else any(map(options.get, o.WAYS))
    return (class_targets if several else sign_targets)(y, options, known)


def _svm_build(rows, targets, weights, options):
    intercept, model = options.get("intercept"), partial(losses.SVM.model, smoothing=options.get("smoothing"))
    if targets.min() < 0:
        return model(rows, targets, weights, intercept)
    from screenpath.walk.one_vs_rest import OneVsOne, OneVsRest

    kind = OneVsOne if options.get("one_vs_one") else OneVsRest
    return kind(model, rows, targets, weights, intercept)


def _classes_walk(options):
    from screenpath.walk.one_vs_rest import walk_classes

    return walk_classes


def _svm_resolved(spec: Spec, options: dict) -> Spec:
    """Return the model of two classes, of each class against the rest or each other one, or with a kernel."""
    asked = [name for name in o.WAYS if options.get(name)]
    if len(asked) > 1:
        raise UsageError("`one_vs_rest` and `one_vs_one` are two ways to the same labels", "use one of the two")
    spec = with_intercept_kernel(spec, options)
    if not asked:
        return spec if options["kernel"] is not None else chunked(spec, options)
    (name,) = asked
    if options["positive"] is not None:
        raise UsageError(f"`positive` is one class against the rest, `{name}` all of them", "use one of the two")
    for other in ("eps_path", "chunk"):
        if options[other] is not None:
            raise UsageError(f"`{other}` follows a single path, `{name}` computes several", "use one of the two")
    if options.get("certify"):
        hint = f"leave it out, or use `positive=LABEL` in place of `{name}`"
        raise UsageError("`certify` bounds the error of two classes", hint)
    against = "for each class against the rest" if name == "one_vs_rest" else "for each pair of classes, on their rows"
    spec = replace(spec, objective=f"{against}: {spec.objective}", walk=_classes_walk, columns=())
    if options["kernel"] is None:
        spec = chunked(spec, options)
    if name == "one_vs_rest":  # the step table has no columns for the intervals of several intercepts
        return spec
    needs = replace(spec.needs, row_class=spec.needs.rows, copied=spec.needs.copied or "pairs")
    rows = None if spec.rows is None else pair_rows
    return replace(spec, votes=True, streams=False, needs=needs, rows=rows)


LINEAR_SVM = replace(
    losses.SVM.spec(),
    targets=_svm_targets,
    build=_svm_build,
    options=(
        o.POSITIVE, o.ONE_VS_REST, o.ONE_VS_ONE, o.PENALTY, o.INTERCEPT, o.CLASS_WEIGHT, o.WEIGHTS, *o.C_GRID,
        *o.KERNEL, *o.solving(), o.CERTIFICATE,
    ),
    resolved=_svm_resolved,
    example="`kernel=rbf` `gamma=1/d` `grid=20`",
    about="The results go to a run folder: run.json, steps.csv (or .json) and coefficients.csv (or .npz; feature 0 is "
    f"the intercept).\n\n{ABOUT}",
)  # fmt: skip


# -- L1-regularised squared hinge --------------------------------------------------------------------------------------


def l1_model(rows, labels, weights=None, threads: int = 1, options: dict | None = None):
    from screenpath.problem.l1svm import L1SVM
    from screenpath.rows.column_shards import columns_of

    columns = columns_of(rows, labels, threads, weights)
    return L1SVM(columns, signs_of(options or {}, columns.n))


def _l1_build(rows, targets, weights, options):
    if targets.min() < 0:
        return l1_model(rows, targets, weights, options["threads"], options)
    from screenpath.walk.one_vs_rest import OneVsRest

    return OneVsRest(l1_model, rows, targets, weights, options["threads"], options)


def _l1_grid(model, options):
    from screenpath.problem.grid import lambda_grid

    count, log, ratio, given = (options[one.name] for one in o.LAMBDA_GRID)
    if given is not None:
        if count is not None or log or ratio is not None:
            raise UsageError("`lambda_list` is the whole grid", "leave out `grid`, `log` and `lambda_min_ratio`")
        return lambda_grid(model, given)
    if ratio is not None and not log:
        raise UsageError("`lambda_min_ratio` is the end of the log-spaced grid", "add `log`")
    if model is None:
        return None
    many, least = usual(o.LAMBDA_GRID, "grid", "lambda_min_ratio")
    return lambda_grid(model, many if count is None else count, log, least if ratio is None else ratio)


def _l1_resolved(spec: Spec, options: dict) -> Spec:
    """Return the model without ``bias``, which has no meaning here."""
    if options["bias"] != 0.0:
        raise UsageError("l1svm has a free bias of its own", "leave out `bias`")
    if options.get("penalty_weights") is not None:
        if options["scale"] == "l2":
            raise UsageError("`penalty_weights` apply to features, `scale=l2` scales rows", "leave out one of the two")
        spec = replace(spec, objective=spec.objective.replace("||w||_1", "sum_j p_j |w_j|"))
    spec = signed(spec, options)
    if not options.get("one_vs_rest"):
        return spec
    if options["positive"] is not None:
        raise UsageError(*ONE_OR_ALL)
    return replace(spec, objective=f"for each class against the rest: {spec.objective}", walk=_classes_walk)


L1_SVM = Spec(
    name="l1svm",
    title="L1-regularised squared-hinge SVMs with a free bias",
    objective="min 1/2 sum_i s_i max(0, 1 - y_i (x_i.w + b))^2 + lambda ||w||_1",
    targets=_svm_targets,
    build=_l1_build,
    grid=_l1_grid,
    further=Later("problem.grid", "further_lambda"),
    score="accuracy",
    liblinear="L1R_L2LOSS_SVC",
    options=(
        o.POSITIVE, o.ONE_VS_REST, o.CLASS_WEIGHT, o.WEIGHTS, o.PENALTY_WEIGHTS, o.NONNEGATIVE, o.SIGNS, *o.LAMBDA_GRID,
        *o.solving(o.L1_RULE, ("auto", "newton", "cd"), seeded=False), o.CERTIFICATE,
    ),
    resolved=_l1_resolved,
    parameter="lambda",
    example="`grid=50` `log` `test=test.libsvm`",
    about="The grid goes from the largest lambda down. The bias b is free: it is not penalised, and `bias` does not "
    "apply. It is feature 0 of the coefficients.",
    fixed=(("seed", 0),),
    rule=Later("screen.l1svm", "parse_feature_rule"),
    solver=Later("solve.l1cd", "make_feature_solver"),
    contradicted=Later("screen.l1svm", "contradicted"),
    toy_grid=(1e3, 30.0, 25.0, 20.0, 16.0, 13.0, 10.0, 3.0, 0.3),
    kernel_modules=("l1svm", "dome", "l1newton"),
    free_bias=True,
    selects=True,
    streams=False,
    streams_columns=True,
    copies=True,
    needs=L1,
)  # fmt: skip


# Every model with a command, in the order of lists.
SPECS = {
    **{name: LINEAR_SVM if name == LINEAR_SVM.name else loss.spec() for name, loss in losses.LOSSES.items()},
    L1_SVM.name: L1_SVM, SPARSE_SVM.name: SPARSE_SVM, **{name: net.spec() for name, net in NETS.items()},
}  # fmt: skip


def spec_of(model: str, penalty: str | None = None) -> Spec:
    """Return the model of that name, with an L1 part of the ``penalty`` the one that has such a part.

    An unknown name is a :class:`UsageError` that lists the models.
    """
    if model not in list(SPECS):  # other types may have no hash
        raise UsageError(f"there is no model '{model}'", f"use one of {', '.join(SPECS)}")
    return SPECS[f"sparse-{model}" if model in losses.LOSSES and penalty in o.PENALTY.choices[1:] else model]


# -- the screening rules of each model in a line each ------------------------------------------------------------------

NONE = "No screening: every step is solved with all rows and features."
GAP = "Dynamic: ball of the current solution, by its duality gap, again and again while solving."
AUTO = "dvi+gap; where few rows are near their kinks, the others are left unread, and count as screened if known to be."
AUTO_BEHIND = "Nothing is screened: the solver's active set finds by sorting what a rule would prove."
FREE = {False: " Dual points bound the intercept.", True: " The intercept lies in an interval."}
SAID = {
    (True, True): "Samples and features in alternation, by balls of primal and dual (Hong 2019).",
    (True, False): "Samples alone, by the same balls.",
    (False, True): "Features alone, by the same balls.",
}


def rules_of(model: str, kernel: bool = False, free: bool = False) -> dict[str, str]:
    """Return the rules of a model, ``svm`` or another, by name, each with a line: with a kernel, where ``kernel``,
    and with a free intercept, where ``free``.

    Every static rule also combines with ``+gap``: alone before each solve, with the gap inside it.
    """
    spec_of(model)
    from screenpath.screen import STATIC
    from screenpath.screen.l1svm import VariationalInequality
    from screenpath.screen.pathwise import GUESSED
    from screenpath.screen.sparse import RULES

    found = {"none": NONE, "gap": GAP}
    if model == "l1svm":
        return {**found, VariationalInequality.name: _line(VariationalInequality)}
    if model == SPARSE_SVM.name or model in NETS:
        return {**found, **{name: SAID[what] for name, what in RULES.items()}}
    found = {"auto": AUTO_BEHIND if kernel else AUTO, **found}
    for name, rule in STATIC.items():
        more = FREE[rule.needs_far_end] if free else ""
        found[name] = _line(rule) + more if rule.name == name else f"Another name of {rule.name}."
    return found if kernel else {**found, **{name: _line(rule) for name, rule in GUESSED.items()}}


def _line(rule) -> str:
    return (inspect.getdoc(rule) or "").split("\n")[0].replace("``", "")
