"""``screenpath cv``: cross-validation of a model's path; the options are those of the model and of the folds."""

from __future__ import annotations

import click

from screenpath.catalogue.specs import SPECS
from screenpath.cli import options as shared
from screenpath.cli.help import Helped, Suggesting
from screenpath.cv.options import cv_resolved, cv_spec


class CvGroup(Suggesting):
    """One command a model, made of the model's own options when it is used."""

    def parse_args(self, ctx, args):
        """Say in a few lines how it is used where nothing is named."""
        if not args:
            raise click.UsageError(MISSING, ctx)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx):
        """Return the models."""
        return list(SPECS)

    def get_command(self, ctx, name):
        """Return the command of a model."""
        return make_command(name) if name in SPECS else None

    def format_commands(self, ctx, formatter):
        """Write the list of models without importing them."""
        with formatter.section("Models"):
            formatter.write_dl([(name, f"Paths of {spec.title}.") for name, spec in SPECS.items()])


def make_command(name: str) -> click.Command:
    """Return ``cv NAME``: the options of the model's command and those of the folds."""
    spec = cv_spec(SPECS[name])

    def callback(**options):
        from screenpath.cli.job import run_job
        from screenpath.cv.session import CvSession

        return run_job(*cv_resolved(spec, options), CvSession)

    summary = f"Cross-validate the path of {name} on DATA, choose a step, and compute the path on all data."
    examples = (
        f"screenpath cv {name} data.libsvm --folds 10 --jobs 2",
        f"screenpath cv {name} data.libsvm --repeats 3",
    )
    made = click.command(name, cls=Helped, help=f"{summary}\n\n{DETAILS}", examples=examples)
    return made(shared.stack(shared.data_argument, shared.flags(spec.path_options))(callback))


DETAILS = """All folds share one grid, made from all data; every fold is a warm-started, screened path. The run folder
(default runs/cv-MODEL-DATA) holds the path on all data with the scores beside it, for predict and export (--step best
or one-se), and cv.csv, cv.json and folds.csv. Of equal scores the most regularised is the best; one-se is the most
regularised within one standard error of it. Folds and steps that are done survive a crash: --resume continues. The exit
code is 3 if some step of a fold or of the path on all data is not certified."""


MISSING = f"""Missing model.
  screenpath cv MODEL DATA [OPTIONS]
  MODEL: {", ".join(SPECS)}
  for example: screenpath cv svm data.libsvm --folds 5"""


@click.group(
    "cv",
    cls=CvGroup,
    examples=("screenpath cv svm data.libsvm --scale standard", "screenpath cv l1svm data.libsvm --grid 50 --log"),
)
def command():
    """Cross-validate the path of a model: screenpath cv MODEL DATA.

    Mean and standard error over the folds at each grid point, the best step, the most regularised one within one
    standard error of it, and the path on all data.
    """
