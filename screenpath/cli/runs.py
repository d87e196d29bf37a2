"""``screenpath runs``: runs side by side."""

from __future__ import annotations

import click

from screenpath.cli.help import helped
from screenpath.cli.options import quiet_option, say
from screenpath.errors import tell


@helped(
    "runs",
    "screenpath runs runs/cv-svm-data runs/cv-l1svm-data",
    "screenpath runs runs/svm-data runs/l1svm-data --step best --test new.libsvm",
)
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True, type=click.Path())
@click.option("--step", metavar="STEP", default="best", show_default=True, help="Of every run: best, one-se, a number.")
@click.option("--test", metavar="FILE", type=click.Path(), help="Score all of them on this data file.")
@click.option(
    "--target", metavar="COLUMN", help="CSV, Parquet: column of labels in --test FILE, if not as in training."
)
@quiet_option
def command(runs, step, test, target, quiet):
    """Compare the runs in several folders RUN: models, scores, sizes and times, in words.

    They are scored on the folds that they share, else on the test data that they share, or on --test FILE. Differences
    are paired, fold by fold or row by row, and come with their standard error. Runs that have nothing in common, or
    decide between other labels, are refused.
    """
    from screenpath.report.side_by_side import compare_runs
    from screenpath.store.open import open_run

    opened = [open_run(run) for run in runs]
    found = compare_runs(opened, step, test, target)
    if not quiet:
        for run in opened:
            for notice in run.notices:
                tell(notice)
    say(str(found))
