"""``screenpath lad``: paths of least absolute deviations."""

from __future__ import annotations

import click

from screenpath.cli import options as shared
from screenpath.cli.spec import C_GRID, ModelSpec, absolute_error, c_grid, chunked, real_targets


def build(rows, targets, weights, options):
    """Return the model."""
    from screenpath.models.builders import lad_model

    return lad_model(rows, targets, weights)


SPEC = ModelSpec(
    name="lad",
    objective="min 1/2 ||w||^2 + C sum_i s_i |y_i - x_i.w|",
    targets=real_targets,
    build=build,
    grid=c_grid,
    score=("test_mae", absolute_error),
    own_options=C_GRID,
)


def resolve(options):
    """Return the model and the options of a job."""
    return chunked(SPEC, options), options


@click.command("lad")
@shared.path_options
@shared.weights_option
@shared.c_grid_options
@shared.solving_options()
def command(**options):
    """Path of least-absolute-deviations regressions for the LIBSVM file DATA.

    Minimises 1/2 ||w||^2 + C sum_i s_i |y_i - x_i.w| at every C of the grid. The labels of the file
    are real targets; they are not scaled, and without --bias there is no intercept.
    """
    from screenpath.cli.job import run_job

    return run_job(*resolve(options))
