"""Models with an elastic-net penalty, over a grid of (alpha, beta): the sparse SVM, and losses of real targets.

A loss of real targets is ``max theta t - gamma/2 theta^2`` over its ``ends``, of ``t = y - x.w``. An entry of ``NETS``
makes the command, cross-validation, compare, predict and export; besides it a Python function in ``api/paths.py`` names
the loss, and the independent checker (``verify/model.py``), which believes nobody. For the theory see
:mod:`screenpath.problem.sparse`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import inf
from types import SimpleNamespace

from screenpath.catalogue import options as o
from screenpath.catalogue.losses import LAD, LOSSES, SVR, Loss
from screenpath.catalogue.option import Option
from screenpath.catalogue.spec import Later, Spec, class_targets, real_targets, with_intercept
from screenpath.data.safe.memory import SPARSE
from screenpath.data.safe.plugins import plugin_of
from screenpath.errors import DataError, UsageError

# -- the sparse SVM ---------------------------------------------------------------------------------------------------
SMOOTHED = "l the hinge smoothed by gamma"
HINGES = {"smoothed": SMOOTHED, "exact": "l(t) = max(0, t)", "squared": "l(t) = 1/2 max(0, t)^2"}
SPARSE_RULE = Later("screen.sparse", "parse_sparse_rule")
SOLVING = o.solving(o.SPARSE_RULE, ("auto", "newton"), threaded=False)
PLANE = replace(
    next(one for one in o.C_GRID if one.name == "eps_path"),
    help="Choose the steps so that every (alpha, beta) of the rectangle is solved to the relative gap EPS.",
)
WALK = (PLANE, o.NET_PENALTY, o.NONNEGATIVE, o.SIGNS, o.FIRST, o.GRID_JOBS, *SOLVING, o.CERTIFICATE)
GROUPED = "((1 - tau) sum_g p_g ||w_g|| + tau ||w||_1)"
MEAN = "s = sum_i s_i (without weights the number of samples)"


def _sparse_build(rows, codes, weights, options):
    import numpy as np

    from screenpath.problem.sparse_grid import SparseGrid, sparse_model
    from screenpath.rows.views import check_not_zero, views_of

    views = views_of(rows)
    check_not_zero(views)
    codes = np.asarray(codes).astype(np.int64)
    classes = 1 if codes.min() < 0 else int(codes.max()) + 1
    if options.get("groups") is not None:
        return _grouped(views, codes, classes, weights, options)
    width, signs = hinge_width(options), signs_of(options, views.d)
    return SparseGrid(sparse_model(views, codes, classes, width, weights, options.get("intercept"), signs=signs))


def _grouped(views, codes, classes: int, weights, options: dict):
    """Return the model with groups, an array of shape (d, 2); a penalised intercept is a group of its own."""
    import numpy as np

    from screenpath.problem.groups import Groups, group_model
    from screenpath.problem.sparse_grid import SparseGrid

    if classes > 1:
        hint = "add `positive=LABEL`; in Python pass y == LABEL"
        raise UsageError(f"`groups` is for two labels, and there are {classes}", hint)
    given = np.asarray(options["groups"])
    if views.d > len(given):
        given = np.vstack([given, [[given[:, 0].max() + 1.0, 1.0]]])
    _, first, of = np.unique(given[:, 0], return_index=True, return_inverse=True)
    groups = Groups(of.ravel().astype(np.int64), given[first, 1], options["l1_share"])
    return SparseGrid(group_model(views, codes, hinge_width(options), weights, options.get("intercept"), groups))


def signs_of(options: dict, d: int):
    """Return the signs that the options ask for of ``d`` weights, int8; a penalised intercept may have any.

    Those of ``signs`` are an array of the features that have a column.
    """
    import numpy as np

    given, features = options.get("signs"), d - (options.get("bias", 0.0) != 0.0)
    if given is None and not options.get("nonnegative"):
        return None
    signs = np.zeros(d, dtype=np.int8)
    signs[:features] = 1 if given is None else given
    return signs


def _sparse_grid(model, options):
    from screenpath.problem.grid import beta_values, explicit_grid, grid_pairs

    if 0.0 in (options["alpha"] or ()) and 0.0 in (options["beta"] or ()):
        raise UsageError("`alpha` and `beta` are 0: there is no penalty", "leave out the 0 of one of them")

    for one, others in (("beta", ("betas", "beta_min_ratio")), ("alpha", ("alphas", "alpha_min_ratio"))):
        for name in others:
            if options[one] is not None and options[name] is not None:
                raise UsageError(f"`{one}` gives the values themselves", f"leave out `{name}`")
    if options["references"] and options["alpha"] is None:
        raise UsageError("`references` adds steps before given values of alpha", "add `alpha=VALUE`")
    if model is not None and model.base.regression and model.base.bend == 0.0:
        what = "all targets are the same: the intercept, or w = 0, fits them with no loss at every alpha and beta"
        raise DataError(what, "check the targets")
    given = {one.name: options[one.name] or one.usual for one in o.PAIR_GRID}
    if options.get("eps_path") is not None:
        return _plane(None if model is None else model.base, options, given)
    if model is None:
        for name in ("alpha", "beta"):
            explicit_grid(options[name] or [1.0], zero=True)
        return None
    betas = options["beta"] if options["beta"] is not None else given["betas"]
    values = beta_values(model.base, betas, given["beta_min_ratio"])
    alphas = options["alpha"] if options["alpha"] is not None else given["alphas"]
    return grid_pairs(model.base, values, alphas, given["alpha_min_ratio"], options["references"])


def _plane(base, options: dict, given: dict):
    """Return the grid that covers the rectangle of the ratios to within ``eps_path``."""
    from screenpath.problem.grid import alpha_tops, beta_values
    from screenpath.problem.plane import PlaneGrid

    epsilon = options["eps_path"]
    # The penalty first: it has set alpha or beta to 0.
    there = {"jobs": options.get("jobs", 1) > 1, "penalty": options["penalty"] != o.NET_PENALTY.default}
    if any(there.values()):
        named = " and ".join(f"`{name}`" for name in there if there[name])
        raise UsageError("`eps_path` covers a plane, point by point", f"leave out {named}")
    for name in ("alpha", "beta", "alphas", "betas", "scheduler"):
        if options.get(name) is not None:
            raise UsageError("`eps_path` finds its own grid points", f"leave out `{name}`")
    if not 10.0 * options["tol"] <= epsilon < 1.0:
        raise UsageError(f"`eps_path={epsilon:g}` must be below 1 and at least 10 times `tol`", "use `eps_path=0.01`")
    if base is None:
        return None
    betas = beta_values(base, 2, given["beta_min_ratio"])
    top = float(alpha_tops(base, betas).max())
    return PlaneGrid(base, (top, given["alpha_min_ratio"] * top), (float(betas[0]), float(betas[1])), epsilon)


LEFT_OUT = {"l1": "alpha", "l2": "beta"}  # the parameter of the other part, by the penalty


def leave_out(options: dict) -> None:
    """Set the parameter that ``penalty`` leaves out to 0; refuse other values."""
    name = LEFT_OUT.get(options.get("penalty", ""))
    for given in (name, f"{name}s", f"{name}_min_ratio") if name else ():
        if options[given] not in (None, [0.0]):
            kind = options["penalty"]
            raise UsageError(f"`penalty={kind}` leaves {name} out", f"leave out `{given}`, or `penalty={kind}`")
    if name:
        options[name] = [0.0]


def hinge_width(options: dict) -> float:
    """Return the width of the quadratic part of the loss, infinite for the squared hinge; refuse contradictions."""
    if options.get("loss", "hinge") == "hinge":
        return options["smoothing"]
    if options["smoothing"] != o.SMOOTHING.default:
        what = "`smoothing` applies to the hinge, and `loss=squared-hinge` is another loss"
        raise UsageError(what, "leave one of them out")
    return inf


def hinge_named(spec: Spec, options: dict) -> Spec:
    """Return the model with the loss of the options in its title and its objective."""
    kind = "squared" if options.get("loss", "hinge") != "hinge" else "smoothed"
    kind = "exact" if kind == "smoothed" and options.get("smoothing") == 0.0 else kind
    objective = spec.objective.replace(SMOOTHED, HINGES[kind])
    return signed(replace(spec, objective=objective, title=spec.title.replace("smoothed", kind)), options)


def signed(spec: Spec, options: dict) -> Spec:
    """Return the model with what the options ask of signs in its objective."""
    if options.get("signs") is None:
        return replace(spec, objective=f"{spec.objective}; w_j >= 0") if options.get("nonnegative") else spec
    if options.get("nonnegative"):
        raise UsageError("`signs` has the sign of every weight, `nonnegative` too", "leave out one of the two")
    return replace(spec, objective=f"{spec.objective}; signs_j w_j >= 0")


def _sparse_resolved(spec: Spec, options: dict) -> Spec:
    chosen = options.get("intercept") is not None
    leave_out(options)
    hinge_width(options)  # refuses contradictions
    plain = replace(hinge_named(spec, options), rule=partial(SPARSE_RULE, first=options["first"]))
    plain = grouped(plain, options)
    found = with_intercept(plain, options)
    return found if chosen or found is plain else replace(found, several=plain)


def grouped(spec: Spec, options: dict) -> Spec:
    """Return the model with the groups of the options, if any; refuse what they do not go with."""
    if options.get("groups") is None:
        if options.get("l1_share"):
            raise UsageError("`l1_share` is what groups leave of the L1 norm", "add `groups=FILE`")
        return spec
    refused = {
        "signs": options.get("signs") is not None, "nonnegative": options.get("nonnegative"),
        "smoothing=0": options["smoothing"] == 0.0 and options.get("loss", "hinge") == "hinge",
        "eps_path": options.get("eps_path") is not None, "penalty=l2": options.get("penalty") == "l2",
        "first": options["first"] != o.FIRST.default,
        "jobs": options.get("jobs", 1) > 1 and "folds" not in options,  # those share the folds
        "scheduler": options.get("scheduler") is not None,
    }  # fmt: skip
    for name in (name for name, given in refused.items() if given):
        raise UsageError(f"`groups` does not support `{name}`", "leave out one of the two")
    return replace(
        spec, title=f"{spec.title}, with groups of features",
        objective=spec.objective.partition("; more than two classes")[0].replace("||w||_1", GROUPED),
        rule=Later("screen.groups", "parse_group_rule"), solver=Later("solve.groups", "make_group_solver"),
        contradicted=Later("screen.groups", "contradicted"), streams_columns=False, walk=None,
        kernel_modules=(*spec.kernel_modules, "groups"), columns=(*spec.columns, "n_groups_screened", "nnz_groups"),
    )  # fmt: skip


def _sparse_in_memory(options: dict) -> str | None:
    """Return the option that needs whole rows, or divides the data among processes."""
    if plugin_of(options.get("solver")) is not None:  # it may need whole rows
        return f"solver={options['solver']}"
    if options.get("first") == "samples":
        return "first=samples"
    for name in ("scheduler", "jobs"):
        if options.get(name) not in (None, 1):
            return name
    return None


def _sparse_weights(step, labels):
    dense = step.coefficients.dense()
    return dense.reshape(len(labels["classes"]), -1) if "classes" in (labels or {}) else dense


def _sparse_walk(options):
    if options["jobs"] == 1 and options["scheduler"] is None:
        return None
    from screenpath.walk.workers import walk_grid

    answer = options["connect_timeout"], options.get("tell")
    return partial(walk_grid, jobs=options["jobs"], scheduler=options["scheduler"], answer=answer)


SPARSE_SVM = Spec(
    name="sparse-svm",
    title="sparse SVMs (smoothed hinge, elastic net) over a grid of (alpha, beta)",
    objective=f"min 1/s sum_i s_i l(1 - y_i x_i.w) + alpha/2 ||w||^2 + beta ||w||_1, {MEAN}, {SMOOTHED}; "
    "more than two classes: margins x_i.(w_yi - w_c) over all c != y_i, a weight for each feature and class",
    targets=class_targets,
    build=_sparse_build,
    grid=_sparse_grid,
    further=None,
    score="accuracy",
    liblinear="L2R_L1LOSS_SVC_DUAL",
    options=(o.POSITIVE, o.INTERCEPT, o.CLASS_WEIGHT, o.WEIGHTS, *o.PAIR_GRID, o.LOSS, o.SMOOTHING,
             o.GROUPS, o.L1_SHARE, *WALK),
    resolved=_sparse_resolved,
    parameter="pair (alpha, beta)",
    example="`betas=5` `alphas=20` `jobs=2`",
    about="Each beta starts at alpha_max(beta), whose solution is known (with a free intercept if both classes weigh "
    "the same). For more than two labels the default is no intercept.",
    fixed=(("threads", 1),),
    rule=SPARSE_RULE,
    solver=Later("solve.sparse_newton", "make_sparse_solver"),
    contradicted=Later("screen.sparse", "contradicted"),
    toy_grid=((3.0, 0.1), (1.0, 0.1), (0.1, 0.1), (0.01, 0.1)),
    kernel_modules=("sparse", "sifs", "move"),
    columns=("n_inactive_features", "feature_screening_rate", "scaling_ratio", "iss_found", "ifs_found"),
    weights=_sparse_weights,
    walk=_sparse_walk,
    selects=True,
    streams=False,
    streams_columns=True,
    in_memory=_sparse_in_memory,
    spreads=True,
    needs=SPARSE,
)


# -- losses of real targets -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Net:
    """A loss of real targets with an elastic net."""

    name: str  # name, title: see :class:`Spec`
    title: str
    loss: str  # the loss of a row in the objective
    formula: str  # what it is; empty if ``loss`` says it all
    box: Loss  # kinks, ends of a dual variable, and options: those of the loss that is not smoothed
    smoothing: Option  # gamma

    @classmethod
    def of(cls, box: Loss) -> Net:
        """Return the elastic net of a loss, which is smoothed on request."""
        loss, _, formula = box.objective.partition(" sum_i s_i ")[2].partition(", t_i")
        return cls(f"sparse-{box.name}", f"sparse {box.title}", loss, formula and f"t_i{formula}", box, EXACT)

    def spec(self) -> Spec:
        formula = f", {self.formula}" if self.formula else ""
        return replace(
            SPARSE_SVM,
            name=self.name,
            title=f"{self.title} (elastic net) over a grid of (alpha, beta)",
            objective=f"min 1/s sum_i s_i {self.loss} + alpha/2 ||w||^2 + beta ||w||_1, {MEAN}{formula}",
            targets=real_targets,
            build=partial(_net_build, self.name),
            score=self.box.score,
            chosen_by=self.box.chosen_by,
            liblinear=self.box.liblinear,
            options=(*self.box.options, o.INTERCEPT, o.WEIGHTS, *o.PAIR_GRID, self.smoothing, *WALK),
            resolved=partial(_net_resolved, self.name),
            about="The labels of the file are real targets; they are not scaled.",
            streams_columns=not self.box.mirrored,
            needs=replace(SPARSE, mirrored=self.box.mirrored),
        )


def _net_build(name: str, rows, targets, weights, options):
    """Return the model; of a mirrored loss each row is there twice, and then with the other sign."""
    import numpy as np

    from screenpath.numbers.accurate import two_sum
    from screenpath.problem.sparse_grid import SparseGrid, sparse_model
    from screenpath.rows.views import check_not_zero, views_of

    net = NETS[name]
    views, y = views_of(rows, 1 + net.box.mirrored), np.asarray(targets, dtype=np.float64)
    check_not_zero(views)
    with np.errstate(over="ignore"):
        if not np.isfinite(np.square(y).sum()):
            raise DataError("overflow: the squares of the targets exceed the range of floating point", "scale them")
    chosen = SimpleNamespace(**{one.name: options[one.name] for one in net.box.options})
    signs, kinks, tail = np.ones(views.n, dtype=np.int64), net.box.kinks(y, chosen), None
    if net.box.mirrored:
        *sides, shift = kinks
        signs[y.size :], weights = -1, None if weights is None else np.tile(weights, 2)
        kinks, tail = two_sum(np.concatenate(sides), shift)
    model = sparse_model(
        views, signs, 1, options["smoothing"], weights, options.get("intercept"), kinks, net.box.slopes(chosen),
        signs_of(options, views.d),
    )  # fmt: skip
    model.tail = tail
    return SparseGrid(model)


def _net_resolved(name: str, spec: Spec, options: dict) -> Spec:
    leave_out(options)
    spec = signed(with_intercept(spec, options), options)
    if NETS[name].smoothing is EXACT and options["smoothing"] > 0.0:
        spec = replace(spec, objective=f"{spec.objective}; the loss smoothed by gamma")
    return replace(spec, rule=partial(SPARSE_RULE, first=options["first"]))


EXACT = replace(
    SVR.options[0], name="smoothing", default=0.0, hint=None, metavar="GAMMA", everyday=False,
    help="How far around its kinks the loss is quadratic, in the units of the targets; 0 is the loss itself.",
)  # fmt: skip
HUBER = Net(
    name="huber",
    title="Huber regressions",
    loss="h(y_i - x_i.w)",
    formula="h(t) = t^2/(2 gamma) if |t| <= gamma, else |t| - gamma/2",
    box=LAD,
    smoothing=replace(
        o.SMOOTHING, default=1.0, kind="positive",
        help="Residual up to which the loss is quadratic, in the units of the targets.", ends=(), demand="",
        everyday=True,
    ),
)  # fmt: skip
NETS = {net.name: net for net in (HUBER, *(Net.of(loss) for loss in LOSSES.values() if not loss.signed))}
