"""``screenpath sparse-svm``: grid of sparse SVMs, binary and multi-class."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import click

from screenpath.cli import options as shared
from screenpath.models.specs import SPARSE_SVM, sparse_rule

RULE_HELP = "Screening rule: sifs, iss (samples) or ifs (features), each also with +gap (dynamic); gap or none."
RATIO = click.FloatRange(0.0, 1.0, min_open=True)

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
    return replace(SPARSE_SVM, rule=partial(sparse_rule, first=options["first"])), {**options, "threads": 1}


@click.command("sparse-svm")
@shared.path_options
@shared.label_options
@grid_options
@jobs_option
@shared.solving_options("sifs+gap", ("auto", "newton", "sdca"), RULE_HELP, threaded=False)
@shared.certificate_option
def command(**options):
    """Grid of sparse SVMs for the LIBSVM file DATA (plain, .gz, .bz2, .xz; - for stdin).

    Minimises 1/n sum_i l(1 - y_i x_i.w) + alpha/2 ||w||^2 + beta ||w||_1 at every pair of the grid, l the hinge
    smoothed over the width gamma. With more than two labels every class has its weights, and the loss sums over the
    margins x_i.(w_yi - w_c) to all other classes. Each beta starts at alpha_max(beta), whose solution is known.
    """
    from screenpath.cli.job import run_job

    return run_job(*resolve(options))
