"""Screening rules: ``rules`` lists them, ``compare-rules`` makes the papers' speed-up tables."""

from __future__ import annotations

import json
import sys
import textwrap
from dataclasses import replace
from itertools import product

import click

from screenpath.catalogue.losses import LOSSES
from screenpath.catalogue.option import Option
from screenpath.catalogue.options import FORCE, LOG_FORMAT, QUIET
from screenpath.catalogue.specs import SPECS, rules_of
from screenpath.cli import options as shared
from screenpath.cli.help import Helped, helped
from screenpath.cli.models import ByModel
from screenpath.cli.options import DONE, UNCERTIFIED, Named, say
from screenpath.engine.studies import COLUMNS, SPEEDUP, study, study_options
from screenpath.errors import UsageError, flags

WIDTH, NAMES = 60, 12  # characters of a line, and of the name in it


@helped("rules", "screenpath rules", "screenpath rules l1svm")
@click.argument("model", required=False, type=click.Choice(list(SPECS)))
def rules(model):
    """List the screening rules of MODEL, or of all models, with a line each.

    These are the values of --rule; each except auto, none, heuristic and sieve can be combined with +gap.
    """
    losses = ", ".join(LOSSES) if model is None else model
    kinds = product((False, True), (False, True)) if model in (None, *LOSSES) else ()
    words = " --kernel", " --intercept free"
    pages = [(f"{losses}{words[0] * kernel}{words[1] * free}", "svm", kernel, free) for kernel, free in kinds]
    pages += [(name, name, False, False) for name in SPECS if name not in LOSSES and model in (None, name)]
    lines = []
    for title, name, kernel, free in pages:
        lines.append(f"{title} (default {SPECS[name].default_rule})")
        for rule, text in rules_of(name, kernel, free).items():
            head = f"  {rule:<{NAMES - 2}}"
            lines += textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=" " * NAMES)
    lines += textwrap.wrap("X+gap (in either order, except for sparse-svm): X before each solve, gap inside it.", WIDTH)
    say("\n".join(lines) + "\n")


# What a comparison does, where it is not to walk the path of a model by several rules.
DOES = {
    "l1svm": "Run the configurations of Zhao 2014 for L1-regularised SVMs on DATA",
    "sparse-svm": "Walk the grid of sparse SVMs on DATA under each of several rules",
}
WALK = "Walk the path of {} on DATA under each of several rules"
ABOUT = f"""{{}}, and print one table.

    {SPEEDUP}

    {COLUMNS}

    The solver is the default of a run, so the table describes your runs; examples/papers/ makes the papers' tables. To
    compare runs of different models, use screenpath runs.

    --audit and --attack N count unsafe decisions, also of a rule of your own: mine.py:MyRule.

    All variants must certify the same optimal values; the exit code is 3 if some grid point is not certified."""
FORMAT = Option(
    "format", None, "choice", "Format. markdown and the others have all columns, table a few that fit a "
    "terminal.  [default: by the end of FILE; else table on a terminal, or markdown]",
    choices=("table", "markdown", "csv", "json", "parquet"), group="output", everyday=True,
)  # fmt: skip
OUT = Option("out", "-", "path", "File of the table.  [default: stdout]", short="-o", metavar="FILE", group="output")
DRAWN = "Draw the table too: .png, .svg or .pdf. Needs matplotlib."
PLOT = Option("plot", None, "path", DRAWN, metavar="FILE", group="output")
SAID = (*(replace(one, everyday=True) for one in (OUT, PLOT)), FORCE, QUIET, LOG_FORMAT)


def study_command(model: str) -> click.Command:
    base = f"screenpath compare-rules {model} data.libsvm"
    first = f"{base} --scale standard"
    data = click.argument("data", metavar="[DATA]", required=False, type=Named())
    options = shared.stack(data, shared.flags((*study_options(model), FORMAT, *SAID)))
    text = ABOUT.format(DOES.get(model, WALK.format(model)))
    return click.command(model, cls=Helped, help=text, examples=(first, f"{base} --repeats 5"))(
        options(lambda **options: run_study(model, **options))
    )


compare_rules = ByModel(
    "compare-rules", make=study_command, line="Rules for {}.", help=ABOUT.format(WALK.format("MODEL")),
    examples=(
        "screenpath compare-rules svm data.libsvm --rules none,dvi,it",
        "screenpath compare-rules lad targets.libsvm --format csv -o table.csv",
    ),
)  # fmt: skip


def run_study(
    model: str, *, format: str | None, out: str, plot: str | None, force: bool, quiet: bool, log_format: str, **options
) -> int:
    from screenpath.report.console import Console
    from screenpath.report.figures import need_matplotlib, to_bytes
    from screenpath.report.plots import draw_rules
    from screenpath.report.series import picture_form
    from screenpath.store.outputs import Output, form_of

    format = form_of(out, sorted(FORMAT.choices), "", format)
    if options["data"] is None and not options["attack"]:
        raise UsageError("DATA is missing", "name a file to compare the rules on, or `attack=100` to attack them")
    if plot and options.get("steps"):
        raise UsageError("`plot` draws a bar for each configuration", "leave out `steps` or `plot`")
    inputs = [options[name] for name in ("data", "weights") if options.get(name)]
    output = Output(out, force, inputs)
    form = picture_form(plot, "plot") if plot else None  # refuses a wrong name early
    drawn = Output(plot, force, [*inputs, out]) if plot and need_matplotlib() else None
    rows, certified = study(model, options, Console(quiet, None, flags, log_format))
    output.write(_render(rows, format or ("table" if output.stdout and sys.stdout.isatty() else "markdown")))
    if drawn is not None:
        drawn.write(to_bytes(draw_rules(rows), form))
    return DONE if certified else UNCERTIFIED


def _render(rows, kind: str) -> str | bytes:
    from screenpath.data.words.tables import csv_text, parquet_of
    from screenpath.engine.compare import to_markdown, to_table

    if kind in ("markdown", "table"):
        return to_markdown(rows) if kind == "markdown" else to_table(rows)
    if kind == "json":
        return json.dumps(rows, indent=1, allow_nan=False) + "\n"
    text = csv_text(rows[0], (row.values() for row in rows))
    return text if kind == "csv" else parquet_of(text)
