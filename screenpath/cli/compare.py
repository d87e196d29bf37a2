"""``screenpath compare``: the papers' speed-up tables."""

from __future__ import annotations

import csv
import io
import json
import sys
from importlib import import_module
from pathlib import Path

import click

from screenpath.cli import kernel
from screenpath.cli import options as shared
from screenpath.errors import UsageError

MODELS = ("svm", "lad", "quantile", "svr")


STUDIES = {"l1svm": "compare_l1", "sparse-svm": "compare_sparse"}


class Comparison(click.Command):
    """The comparison of rules; the models of ``STUDIES`` have options of their own."""

    def make_context(self, info_name, args, parent=None, **extra):
        """Hand a model of ``STUDIES`` and what follows it to its own command."""
        if args and args[0] in STUDIES:
            study = import_module(f"screenpath.cli.{STUDIES[args[0]]}").command
            return study.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


repeats_option = click.option(
    "--repeats", default=3, show_default=True, type=click.IntRange(min=1), help="Runs of each variant."
)
solving_options = shared.stack(
    click.option(
        "--tol",
        default=1e-6,
        show_default=True,
        type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
        help="Relative duality gap of every grid point, on the full data.",
    ),
    click.option("--max-epochs", default=100_000, show_default=True, type=click.IntRange(min=1), help="A grid point."),
    click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of the random order."),
)
table_options = shared.stack(
    click.option(
        "--format", "kind", type=click.Choice(["markdown", "csv", "json"]), default="markdown", show_default=True,
        help="Of the table.",
    ),
    click.option("-o", "--out", metavar="FILE", default="-", help="File of the table.  [default: stdout]"),
    click.option("--quiet", is_flag=True, help="Nothing on stderr but errors."),
)  # fmt: skip


@click.command("compare", cls=Comparison)
@click.argument("model", type=click.Choice(MODELS))
@shared.data_argument
@click.option(
    "--rules", default="none,dvi", show_default=True, help="Comma-separated; the first is what speed-ups refer to."
)
@click.option(
    "--shrinking",
    type=click.Choice(["on", "off", "both"]),
    default="on",
    show_default=True,
    help="Shrinking of the solvers cd and smo.",
)
@repeats_option
@click.option("--solver", help="The same for all rules.  [default: cd; smo with --kernel]")
@solving_options
@click.option("--threads", default=1, show_default=True, type=click.IntRange(min=1), help="For passes over all rows.")
@click.option("--tau", default=0.5, show_default=True, type=shared.Finite(), help="Level of the quantile model.")
@click.option("--epsilon", default=0.1, show_default=True, type=shared.Finite(), help="Tube of the svr model.")
@click.option("--positive", metavar="LABEL", type=shared.Finite(), help="svm: this label against all others.")
@shared.class_weight_option
@shared.weights_option
@shared.reading_options
@shared.preparation_options
@shared.c_grid_options
@kernel.kernel_options
@table_options
def command(model, rules, shrinking, repeats, kind, out, quiet, **options):
    """Walk the path of MODEL on DATA under each of several rules, in alternation, and print one table.

    All variants must certify the same optimal values; the exit code is 3 if some grid point is not certified. For the
    configurations of the L1-regularised model see: screenpath compare l1svm --help; for grids of (alpha, beta):
    screenpath compare sparse-svm --help.
    """
    from screenpath.cli.load import load_training
    from screenpath.cli.warm import warm_model
    from screenpath.compare import compare
    from screenpath.report.console import Console

    names = listed(rules, "--rules", "none,dvi,dvi+gap")
    if options["chunk"] is None and options["chunk_form"] is not None:
        raise UsageError("--chunk-form needs chunks", "add --chunk M")
    console = Console(quiet, None)
    spec = import_module(f"screenpath.cli.{model}").SPEC
    if model == "svm":
        spec = kernel.spec_of(spec, options)
    elif options["kernel"] is not None:
        raise UsageError(f"{model} has no kernel", "use compare svm, or leave out --kernel")
    solver = options["solver"] or ("smo" if spec is kernel.SPEC else "cd")
    own = {"parse": kernel.rule, "make": kernel.solver} if spec is kernel.SPEC else {}
    with console.compiling():
        data = load_training(spec, options, console.say)
        for name in names:
            warm_model(spec, {**options, "rule": name, "solver": solver, "chunk": None}, data.rows)
    settings = {"on": (True,), "off": (False,), "both": (True, False)}[shrinking]
    rows = compare(
        lambda: spec.build(data.rows, data.targets, data.weights, options),
        lambda built: spec.grid(built, options),
        names,
        shrinking=settings,
        solver=solver,
        tol=options["tol"],
        max_epochs=options["max_epochs"],
        seed=options["seed"],
        repeats=repeats,
        chunk=options["chunk"],
        chunk_form=options["chunk_form"] or "C",
        **own,
        progress=console.say,
    )
    return write_table(rows, kind, out)


def listed(text: str, option: str, example: str) -> list[str]:
    """Return the names of a comma-separated option.

    Raises
    ------
    UsageError
        If there is none.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"{option} is empty", f"give for example {option} {example}")
    return names


def write_table(rows, kind: str, out: str) -> int:
    """Write the table to stdout (``-``) or a file; return the exit code."""
    from screenpath.cli.app import DONE, UNCERTIFIED

    text = _render(rows, kind)
    if out == "-":
        sys.stdout.write(text)
    else:
        from screenpath.write.atomic import replacing

        with replacing(Path(out)) as file:
            file.write(text.encode())
    return DONE if all(row["certified"] == row["points"] for row in rows) else UNCERTIFIED


def _render(rows, kind: str) -> str:
    from screenpath.compare import to_markdown

    if kind == "markdown":
        return to_markdown(rows)
    if kind == "json":
        return json.dumps(rows, indent=1, allow_nan=False) + "\n"
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
