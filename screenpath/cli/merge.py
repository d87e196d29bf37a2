"""``screenpath merge``: runs of a job array as one run."""

from __future__ import annotations

import sys

import click

from screenpath.cli.codes import DONE, UNCERTIFIED
from screenpath.cli.help import helped
from screenpath.cli.options import quiet_option
from screenpath.errors import tell


@helped(
    "merge",
    "screenpath merge parts/1 parts/2 parts/3 -o runs/whole",
    "screenpath merge folds/1 folds/2 -o runs/cv-whole --force",
)
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--out", required=True, metavar="DIR", type=click.Path(), help="Run folder to make.")
@click.option("--force", is_flag=True, help="Replace the run in the folder.")
@quiet_option
def command(runs, out, force, quiet):
    """Put the runs in several folders RUN together into one run folder.

    The runs are the parts of a grid that --part I/K has cut, the parts of the folds of cv, or runs that differ in the
    values of their grid alone (--c-list, --lambda-list, --beta). The folder is that of one run, for show, predict, plot
    and all others. Runs that are not parts of one are refused, with all that differs.
    """
    from screenpath.cv.merge import merge_runs
    from screenpath.engine.circumstances import all_good
    from screenpath.engine.tally import not_solved

    record = merge_runs(runs, out, force, ["screenpath", *sys.argv[1:]])
    if not quiet:
        totals = record["totals"]
        unsafe = f", {totals['unsafe']} unsafe decisions" if totals["unsafe"] else ""
        unsafe += f", audit {not_solved(totals['unaudited'])}" if totals.get("unaudited") else ""
        good = f"{totals['certified']} of {totals['n_steps']} steps certified{unsafe}"
        tell(f"{out}: {good}, put together from {len(runs)} runs")
    return DONE if all_good(record) else UNCERTIFIED
