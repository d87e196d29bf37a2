"""``screenpath l1svm``: path of L1-regularised squared-hinge SVMs with a free bias."""

from __future__ import annotations

import click

from screenpath.cli import options as shared
from screenpath.cli.spec import ModelSpec, accuracy, sign_targets
from screenpath.errors import UsageError

RULE_HELP = "Screening rule: none, vi (from the previous lambda), gap (dynamic), or vi+gap."


def build(rows, targets, weights, options):
    """Return the model; the columns are copied from the rows that were read."""
    from screenpath.models.l1svm import L1SVM
    from screenpath.rows.columns import Columns

    return L1SVM(Columns.of_rows(rows, targets, options["threads"]))


def grid(model, options):
    """Return the grid of lambda from ``--grid``, ``--log``, ``--lambda-min-ratio`` or ``--lambda-list``."""
    from screenpath.api_l1 import lambda_grid

    count, log, ratio, given = (options[name] for name in LAMBDA_GRID)
    if given is not None:
        if count is not None or log or ratio is not None:
            raise UsageError("--lambda-list is the whole grid", "leave out --grid, --log and --lambda-min-ratio")
        return lambda_grid(model, given)
    if ratio is not None and not log:
        raise UsageError("--lambda-min-ratio is the end of the log-spaced grid", "add --log")
    return lambda_grid(model, 20 if count is None else count, log, 0.05 if ratio is None else ratio)


def rule(text: str):
    """Return the feature screening."""
    from screenpath.rules.l1svm import parse_feature_rule

    return parse_feature_rule(text)


def solver(name: str, seed: int):
    """Return the solver; it draws no random numbers."""
    from screenpath.api_l1 import make_feature_solver

    return make_feature_solver(name)


def contradicted(model, accurate, parameter, decided) -> int:
    """Return how many screening decisions an unscreened solution disproves."""
    from screenpath.rules.l1svm import contradicted

    return contradicted(model, accurate, parameter, decided)


LAMBDA_GRID = ("grid", "log", "lambda_min_ratio", "lambda_list")
SPEC = ModelSpec(
    name="l1svm",
    objective="min 1/2 sum_i max(0, 1 - y_i (x_i.w + b))^2 + lambda ||w||_1",
    targets=sign_targets,
    build=build,
    grid=grid,
    score=("test_accuracy", accuracy),
    own_options=("positive", *LAMBDA_GRID),
    rule=rule,
    solver=solver,
    contradicted=contradicted,
    toy_grid=(1e3, 30.0, 25.0, 20.0, 16.0, 13.0, 10.0, 3.0, 0.3),
    free_bias=True,
    streams=False,
)

grid_options = shared.stack(
    click.option(
        "--grid", metavar="N", type=click.IntRange(min=1), help="Points lambda_max / k, k = 1..N.  [default: 20]"
    ),
    click.option("--log", is_flag=True, help="Space the points evenly in the logarithm instead."),
    click.option(
        "--lambda-min-ratio",
        type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
        help="With --log: last point over lambda_max.  [default: 0.05]",
    ),
    click.option("--lambda-list", type=shared.NumberList(), help="The grid itself, for example 10,5,1."),
)


def resolve(options):
    """Return the model and the options of a job."""
    if options["bias"] != 0.0:
        raise UsageError("l1svm has a free bias of its own", "leave out --bias")
    return SPEC, {**options, "seed": 0}


@click.command("l1svm")
@shared.path_options
@shared.label_options
@grid_options
@shared.solving_options("vi+gap", ("auto", "newton", "cd"), RULE_HELP, seeded=False)
def command(**options):
    """Path of L1-regularised squared-hinge SVMs for the LIBSVM file DATA (plain, .gz, .bz2, .xz; - for stdin).

    Minimises 1/2 sum_i max(0, 1 - y_i (x_i.w + b))^2 + lambda ||w||_1 at every lambda of the grid, from the largest
    down. The bias b is free: it is not penalised, and --bias does not apply. It is feature 0 of the coefficients.
    """
    from screenpath.cli.job import run_job

    return run_job(*resolve(options))
