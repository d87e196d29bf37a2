"""``screenpath l1svm``: path of L1-regularised squared-hinge SVMs with a free bias."""

from __future__ import annotations

import click

from screenpath.cli import options as shared
from screenpath.errors import UsageError
from screenpath.models.specs import L1_SVM

RULE_HELP = "Screening rule: none, vi (from the previous lambda), gap (dynamic), or vi+gap."

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
    return L1_SVM, {**options, "seed": 0}


@click.command("l1svm")
@shared.path_options
@shared.label_options
@grid_options
@shared.solving_options("vi+gap", ("auto", "newton", "cd"), RULE_HELP, seeded=False)
@shared.certificate_option
def command(**options):
    """Path of L1-regularised squared-hinge SVMs for the LIBSVM file DATA (plain, .gz, .bz2, .xz; - for stdin).

    Minimises 1/2 sum_i max(0, 1 - y_i (x_i.w + b))^2 + lambda ||w||_1 at every lambda of the grid, from the largest
    down. The bias b is free: it is not penalised, and --bias does not apply. It is feature 0 of the coefficients.
    """
    from screenpath.cli.job import run_job

    return run_job(*resolve(options))
