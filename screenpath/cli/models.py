"""``screenpath svm``, ``lad``, ``l1svm`` ...: a path command for each model that is declared."""

from __future__ import annotations

import click

from screenpath.catalogue.specs import SPECS
from screenpath.cli.help import Helped, examples_of
from screenpath.cli.options import data_argument, flags, stack
from screenpath.errors import flags as flags_of


def command_of(name: str) -> click.Command:
    """Return the command that computes a path of a model."""
    spec = SPECS[name]

    def callback(**options):
        from screenpath.cli.job import run_job

        return run_job(*resolve(name, options))

    text = (
        f"Path of {spec.title} for DATA: LIBSVM text, CSV (plain, .gz, .bz2, .xz; - for stdin) or Parquet.\n\n"
        f"Minimises {spec.objective.removeprefix('min ')}, at every {spec.parameter} of the grid. "
        f"{flags_of(spec.about)}"
    )
    return click.command(name, cls=Helped, help=text, examples=examples_of(spec))(
        stack(data_argument, flags(spec.path_options))(callback)
    )


def resolve(name: str, options: dict) -> tuple:
    """Return the model that the options of its command describe, and the options of the job."""
    options = {**options, **dict(SPECS[name].fixed)}
    return SPECS[name].resolved(SPECS[name], options), options
