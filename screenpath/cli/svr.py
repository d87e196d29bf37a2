"""``screenpath svr``: paths of epsilon-insensitive regressions."""

from __future__ import annotations

import click

from screenpath.cli import options as shared
from screenpath.cli.spec import C_GRID, ModelSpec, absolute_error, c_grid, chunked, real_targets


def build(rows, targets, weights, options):
    """Return the model."""
    from screenpath.models.builders import svr_model

    return svr_model(rows, targets, options["epsilon"], weights)


SPEC = ModelSpec(
    name="svr",
    objective="min 1/2 ||w||^2 + C sum_i s_i max(0, |y_i - x_i.w| - epsilon)",
    targets=real_targets,
    build=build,
    grid=c_grid,
    score=("test_mae", absolute_error),
    own_options=(*C_GRID, "epsilon"),
)


def resolve(options):
    """Return the model and the options of a job."""
    return chunked(SPEC, options), options


@click.command("svr")
@shared.path_options
@click.option(
    "--epsilon",
    default=0.1,
    show_default=True,
    type=shared.Finite(),
    help="Half width of the tube without loss, in the units of the targets.",
)
@shared.weights_option
@shared.c_grid_options
@shared.solving_options()
def command(**options):
    """Path of epsilon-insensitive support vector regressions for the LIBSVM file DATA.

    Minimises 1/2 ||w||^2 + C sum_i s_i max(0, |y_i - x_i.w| - epsilon) at every C of the grid. The labels of the file
    are real targets; they are not scaled, and without --bias there is no intercept.
    """
    from screenpath.cli.job import run_job

    return run_job(*resolve(options))
