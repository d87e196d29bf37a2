"""``screenpath sparse-svm``: grid of sparse SVMs, binary and multi-class."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import click

from screenpath.cli import options as shared
from screenpath.cli.spec import ModelSpec, accuracy, class_targets
from screenpath.errors import UsageError

RULE_HELP = "Screening rule: sifs, iss (samples) or ifs (features), each also with +gap (dynamic); gap or none."
GRID = ("betas", "alphas", "beta_min_ratio", "alpha_min_ratio", "beta", "alpha", "references")
RATIO = click.FloatRange(0.0, 1.0, min_open=True)


def build(rows, codes, weights, options):
    """Return the model over pairs (alpha, beta)."""
    import numpy as np

    from screenpath.models.sparse import SparseModel
    from screenpath.models.sparse_grid import SparseGrid
    from screenpath.rows.views import Views

    views = Views.of_rows(rows)
    views.check_not_zero()
    codes = np.asarray(codes).astype(np.int64)
    classes = 1 if codes.min() < 0 else int(codes.max()) + 1
    return SparseGrid(SparseModel(views, codes, classes, 0.0, options["smoothing"]))


def grid(model, options):
    """Return the pairs (alpha, beta): counts and ratios, or the values of ``--alpha`` and ``--beta``."""
    from screenpath.api_sparse import grid_pairs
    from screenpath.grid import beta_grid

    for one, others in (("beta", ("betas", "beta_min_ratio")), ("alpha", ("alphas", "alpha_min_ratio"))):
        for name in others:
            if options[one] is not None and options[name] is not None:
                raise UsageError(f"--{one} gives the values themselves", f"leave out --{name.replace('_', '-')}")
    if options["references"] and options["alpha"] is None:
        raise UsageError("--references leads up to given values of alpha", "add --alpha VALUE")
    betas = options["beta"] or options["betas"] or 10
    values = beta_grid(betas, model.base.beta_max, options["beta_min_ratio"] or 0.05)
    alphas = options["alpha"] or options["alphas"] or 100
    return grid_pairs(model.base, values, alphas, options["alpha_min_ratio"] or 0.01, options["references"])


def solver(name: str, seed: int):
    """Return the solver."""
    from screenpath.solvers.sparse import make_sparse_solver

    return make_sparse_solver(name, seed)


def contradicted(model, accurate, parameter, decided) -> int:
    """Return how many screening decisions an unscreened solution disproves."""
    from screenpath.rules.sparse import contradicted

    return contradicted(model, accurate, parameter, decided)


def rule(text: str, first: str = "features"):
    """Return the screening."""
    from screenpath.rules.sparse import parse_sparse_rule

    return parse_sparse_rule(text, first)


def weights(step, labels):
    """Return the weights of a step, one row a class where there are more than two."""
    dense = step.coefficients.dense()
    return dense.reshape(len(labels["classes"]), -1) if "classes" in labels else dense


def walk(options):
    """Return the walk over the grid in ``--jobs`` processes, or on a cluster."""
    from screenpath.parallel import walk_grid

    return partial(walk_grid, jobs=options["jobs"], cluster=(options["scheduler"], options["local_cluster"]))


SPEC = ModelSpec(
    name="sparse-svm",
    objective="min 1/n sum_i l(1 - y_i x_i.w) + alpha/2 ||w||^2 + beta ||w||_1, l the hinge smoothed by gamma; "
    "more than two classes: margins x_i.(w_yi - w_c) over all c != y_i, a weight for each feature and class",
    targets=class_targets,
    build=build,
    grid=grid,
    score=("test_accuracy", accuracy),
    own_options=("positive", *GRID, "smoothing", "first"),
    rule=rule,
    solver=solver,
    contradicted=contradicted,
    toy_grid=((3.0, 0.1), (1.0, 0.1), (0.1, 0.1), (0.01, 0.1)),
    columns=("n_inactive_features", "feature_screening_rate", "scaling_ratio", "iss_found", "ifs_found"),
    weights=weights,
    walk=walk,
    streams=False,
    spreads=True,
)

grid_options = shared.stack(
    click.option(
        "--betas", metavar="N", type=click.IntRange(min=1), help="Values of beta, from beta_max down.  [default: 10]"
    ),
    click.option(
        "--alphas", metavar="N", type=click.IntRange(min=1), help="Values of alpha for each beta.  [default: 100]"
    ),
    click.option("--beta-min-ratio", type=RATIO, help="Last beta over beta_max.  [default: 0.05]"),
    click.option("--alpha-min-ratio", type=RATIO, help="Last alpha over alpha_max(beta).  [default: 0.01]"),
    click.option("--beta", type=shared.NumberList(), help="The values of beta themselves, for example 0.1,0.01."),
    click.option("--alpha", type=shared.NumberList(), help="The values of alpha themselves, the same for each beta."),
    click.option(
        "--references",
        metavar="M",
        default=0,
        show_default=True,
        type=click.IntRange(min=0),
        help="With --alpha: further grid points, log-spaced, before each value; screening needs near ones.",
    ),
    click.option(
        "--smoothing",
        metavar="GAMMA",
        default=0.5,
        show_default=True,
        type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
        help="Width of the hinge's quadratic part.",
    ),
    click.option(
        "--first",
        default="features",
        show_default=True,
        type=click.Choice(["features", "samples"]),
        help="What sifs screens first; the decisions are the same.",
    ),
)

jobs_option = click.option(
    "--jobs",
    metavar="N",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Processes that share the values of beta; the results are the same.",
)


def resolve(options):
    """Return the model and the options of a job."""
    return replace(SPEC, rule=partial(rule, first=options["first"])), {**options, "threads": 1}


@click.command("sparse-svm")
@shared.path_options
@shared.label_options
@grid_options
@jobs_option
@shared.solving_options("sifs+gap", ("auto", "newton", "sdca"), RULE_HELP, threaded=False)
def command(**options):
    """Grid of sparse SVMs for the LIBSVM file DATA (plain, .gz, .bz2, .xz; - for stdin).

    Minimises 1/n sum_i l(1 - y_i x_i.w) + alpha/2 ||w||^2 + beta ||w||_1 at every pair of the grid, l the hinge
    smoothed over the width gamma. With more than two labels every class has its weights, and the loss sums over the
    margins x_i.(w_yi - w_c) to all other classes. Each beta starts at alpha_max(beta), whose solution is known.
    """
    from screenpath.cli.job import run_job

    return run_job(*resolve(options))
