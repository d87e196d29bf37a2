"""``screenpath plot``: pictures of a run, as files or on the terminal."""

from __future__ import annotations

import click

from screenpath.cli.help import helped
from screenpath.cli.options import force_option, quiet_option
from screenpath.cli.predict import run_argument
from screenpath.errors import UsageError, tell

# As screenpath.report.series.KINDS; --help must not import numpy.
KINDS = ("rejection", "coefficients", "gap", "time", "cv", "grid")


@helped("plot", "screenpath plot runs/svm-data", "screenpath plot runs/svm-data --kind gap --terminal")
@run_argument
@click.option("--kind", type=click.Choice(KINDS), help="What to draw.  [default: cv where RUN has one, else rejection]")
@click.option("-o", "--out", metavar="FILE", help="Picture ending in .png, .svg or .pdf.  [default: RUN/KIND.png]")
@force_option
@click.option("--terminal", is_flag=True, help="Draw with characters on standard output; needs no matplotlib.")
@quiet_option
def command(run, kind, out, force, terminal, quiet):
    """Draw the run folder RUN.

    \b
    rejection     what the rule fixed at each step, stacked
    coefficients  weights along the path, the largest named
    gap           duality gap against its target
    time          seconds of screening, solving, certifying
    cv            cross-validation curve, choices, certified bound
    grid          heat maps over (alpha, beta) of sparse-svm
    """
    from screenpath.report import series
    from screenpath.store.open import open_run

    if terminal and out:
        raise UsageError("--terminal writes no file", "leave out --out, or leave out --terminal")
    series.picture_form(out)  # before anything is read
    run = open_run(run)
    kind = kind or series.available(run)[0]
    series.check_kind(run, kind)
    if not quiet:
        for notice in run.notices:
            tell(notice)
    if terminal:
        from screenpath.report.terminal import show

        show(run, kind)
        return
    from screenpath.report.plots import picture
    from screenpath.store.outputs import Output

    output = Output(out or str(run.path / f"{kind}.png"), force, [run.path])
    output.write(picture(run, kind, out)[1])
    if not quiet:
        tell(f"wrote {output.name}")
