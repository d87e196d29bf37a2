"""``screenpath show``: a run and one of its steps in words."""

from __future__ import annotations

import click

from screenpath.cli.help import helped
from screenpath.cli.options import force_option, quiet_option, say
from screenpath.cli.predict import STEP_HELP, run_argument, say_choice, training_option
from screenpath.errors import UsageError, tell


@helped("show", "screenpath show runs/svm-data", "screenpath show runs/svm-data --step C=0.1 --top 5 --duals duals.csv")
@run_argument
@click.option("--step", metavar="STEP", help=f"{STEP_HELP}  [default: best where steps have scores, else the last]")
@click.option(
    "--top", default=20, show_default=True, type=click.IntRange(min=0), help="Features shown, the largest first."
)
@click.option("--duals", metavar="FILE", help="Write the dual variable of every row as CSV; - is standard output.")
@force_option
@training_option
@quiet_option
def command(run, step, top, duals, force, training, quiet):
    """Show what the run folder RUN holds: model, certificate, scores, and one step in detail.

    Features are ordered by scaled size; those of sparse models say where on the path they enter.

    --duals writes row, label, value, side, certified: the value is the row's part in the weights (y alpha, of a
    regression alpha); the side is R (lower end), L (upper end) or E (between); certified is 1 where the row is proven
    to be on that side in the optimum. They come from the certificate of the run, else the step's problem is solved
    again. For svm (also with a kernel), lad, quantile, svr and sparse-svm of two labels.
    """
    from screenpath.engine.duals import duals_of
    from screenpath.report.show import default_step, summary_of
    from screenpath.store.open import open_run
    from screenpath.store.outputs import Output

    if training is not None and duals is None:
        raise UsageError("--training serves --duals alone here", "leave it out, or add --duals FILE")
    run = open_run(run)
    inputs = [run.path, training or run.record["data"].get("path")]
    output = None if duals is None else Output(duals, force, inputs)
    step = step or default_step(run)
    summary = summary_of(run, step, top)
    page = str(summary)  # which finds what is damaged, before anything is said
    if not quiet:
        for notice in run.notices:
            tell(notice)
        say_choice(run, step)
    if output is None:
        say(page)
        return
    found = duals_of(run, summary.step, training)
    output.write(found.csv())
    if output.stdout:  # which is for the table alone
        return
    say(page)
    if not quiet:
        sure = f"{int(found.certified.sum()):,} of {found.values.size:,} sides certified"
        tell(f"wrote {output.name}: {sure}, {found.support.size:,} rows with a part in the weights ({found.source})")
