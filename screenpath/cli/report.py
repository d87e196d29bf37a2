"""``screenpath report``: a run as one HTML page."""

from __future__ import annotations

import click

from screenpath.cli.predict import run_argument, write_text


@click.command("report")
@run_argument
@click.option("-o", "--out", metavar="FILE", required=True, help="HTML file; - is standard output.")
@click.option("--quiet", is_flag=True, help="Nothing on stderr but errors.")
def command(run, out, quiet):
    """Write a page about the run folder RUN: problem, certificate, pictures, steps, and the command to repeat it.

    The page is one file and loads nothing. Needs matplotlib.
    """
    from screenpath.report.page import page
    from screenpath.runs import open_run

    run = open_run(run)
    write_text(out, page(run))
    if not quiet:
        for notice in run.notices:
            click.echo(notice, err=True)
        if out != "-":
            click.echo(f"wrote {out}", err=True)
