"""``screenpath quantile``: paths of quantile regressions."""

from __future__ import annotations

import click

from screenpath.cli import options as shared
from screenpath.cli.spec import C_GRID, ModelSpec, absolute_error, c_grid, chunked, real_targets


def build(rows, targets, weights, options):
    """Return the model."""
    from screenpath.models.builders import quantile_model

    return quantile_model(rows, targets, options["tau"], weights)


SPEC = ModelSpec(
    name="quantile",
    objective="min 1/2 ||w||^2 + C sum_i s_i max((tau - 1) t_i, tau t_i), t_i = y_i - x_i.w",
    targets=real_targets,
    build=build,
    grid=c_grid,
    score=("test_mae", absolute_error),
    own_options=(*C_GRID, "tau"),
)


def resolve(options):
    """Return the model and the options of a job."""
    return chunked(SPEC, options), options


@click.command("quantile")
@shared.path_options
@click.option("--tau", default=0.5, show_default=True, type=shared.Finite(), help="Quantile level, between 0 and 1.")
@shared.weights_option
@shared.c_grid_options
@shared.solving_options()
def command(**options):
    """Path of quantile regressions for the LIBSVM file DATA.

    Minimises 1/2 ||w||^2 + C sum_i s_i max((tau - 1) t_i, tau t_i), t_i = y_i - x_i.w,
    at every C of the grid. The labels of the file
    are real targets; they are not scaled, and without --bias there is no intercept.
    """
    from screenpath.cli.job import run_job

    return run_job(*resolve(options))
