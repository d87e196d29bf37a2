"""``screenpath lad``, ``quantile``, ``svr`` ...: a path command for each loss that is declared."""

from __future__ import annotations

import click

from screenpath.cli import models
from screenpath.cli import options as shared


def number_option(one, help: str | None = None):
    """Return the flag of a number that a model has of its own."""
    return click.option(
        f"--{one.name}", default=one.default, show_default=True, type=shared.Finite(), help=help or one.help
    )


def path_command(loss) -> click.Command:
    """Return the command that computes a path of a loss with real targets."""

    def callback(**options):
        from screenpath.cli.job import run_job

        return run_job(*models.resolve(loss.name, options))

    stack = shared.stack(
        shared.path_options,
        *(number_option(one) for one in loss.options),
        shared.weights_option,
        shared.c_grid_options,
        shared.solving_options(),
        shared.certificate_option,
    )
    text = (
        f"Path of {loss.title} for the LIBSVM file DATA.\n\nMinimises {loss.objective} at every C of the grid. The "
        "labels of the file are real targets; they are not scaled, and without --bias there is no intercept."
    )
    return click.command(loss.name, help=text)(stack(callback))
