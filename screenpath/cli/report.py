"""``screenpath report``: a run as one HTML page."""

from __future__ import annotations

import click

from screenpath.cli.help import helped
from screenpath.cli.options import force_option, quiet_option
from screenpath.cli.predict import run_argument
from screenpath.errors import tell


@helped("report", "screenpath report runs/svm-data -o report.html", "screenpath report runs/cv-svm-data -o -")
@run_argument
@click.option("-o", "--out", metavar="FILE", required=True, help="HTML file; - is standard output.")
@force_option
@quiet_option
def command(run, out, force, quiet):
    """Write a page about the run folder RUN: problem, certificate, pictures, steps, and the command to repeat it.

    The page is one file and loads nothing. Needs matplotlib.
    """
    from screenpath.report.page import page
    from screenpath.store.open import open_run
    from screenpath.store.outputs import Output

    run = open_run(run)
    output = Output(out, force, [run.path])
    output.write(page(run))
    if not quiet:
        for notice in run.notices:
            tell(notice)
        if not output.stdout:
            tell(f"wrote {out}")
