"""``screenpath compare``: the papers' speed-up tables."""

from __future__ import annotations

import csv
import io
import json
from importlib import import_module

import click

from screenpath.cli import kernel
from screenpath.cli import options as shared
from screenpath.cli.losses import number_option
from screenpath.errors import UsageError
from screenpath.models.losses import LOSSES
from screenpath.models.specs import KERNEL_SVM, SPECS

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
    shared.force_option,
    click.option("--quiet", is_flag=True, help="Nothing on stderr but errors."),
)  # fmt: skip


@click.command("compare", cls=Comparison)
@click.argument("model", type=click.Choice(list(LOSSES)))
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
@shared.stack(*(number_option(one, f"{loss.name}: {one.help}") for loss in LOSSES.values() for one in loss.options))
@click.option("--positive", metavar="LABEL", type=shared.Finite(), help="svm: this label against all others.")
@shared.class_weight_option
@shared.weights_option
@shared.reading_options
@shared.preparation_options
@shared.c_grid_options
@kernel.kernel_options
@table_options
def command(model, rules, shrinking, repeats, kind, out, force, quiet, **options):
    """Walk the path of MODEL on DATA under each of several rules, in alternation, and print one table.

    All variants must certify the same optimal values; the exit code is 3 if some grid point is not certified. For the
    configurations of the L1-regularised model see: screenpath compare l1svm --help; for grids of (alpha, beta):
    screenpath compare sparse-svm --help.
    """
    from screenpath.cli.load import load_training
    from screenpath.cli.warm import warm_model
    from screenpath.data.memory import MemoryLimit
    from screenpath.data.needs import SCREEN_MORE
    from screenpath.report.console import Console
    from screenpath.runs.compare import compare
    from screenpath.runs.outputs import Output

    output = Output(out, force, [options["data"], options["weights"]])
    names = listed(rules, "--rules", "none,dvi,dvi+gap")
    if options["chunk"] is None and options["chunk_form"] is not None:
        raise UsageError("--chunk-form needs chunks", "add --chunk M")
    console, limit = Console(quiet, None), MemoryLimit(options["max_memory"])
    spec = SPECS[model]
    if model == "svm":
        spec = kernel.spec_of(spec, options)
    elif options["kernel"] is not None:
        raise UsageError(f"{model} has no kernel", "use compare svm, or leave out --kernel")
    solver = options["solver"] or ("smo" if spec is KERNEL_SVM else "cd")
    own = {"parse": spec.rule, "make": spec.solver} if spec is KERNEL_SVM else {}
    with limit.in_force(), console.compiling(limit.check_compiling):
        data = load_training(spec, options, console.say)
        for name in names:
            warm_model(spec, {**options, "rule": name, "solver": solver, "chunk": None}, data.rows)
    settings = {"on": (True,), "off": (False,), "both": (True, False)}[shrinking]
    with limit.in_force(), limit.kept("the comparison", SCREEN_MORE, mapped=data.mapped_bytes):
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
    return write_table(rows, kind, output)


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


def write_table(rows, kind: str, output) -> int:
    """Write the table; return the exit code."""
    from screenpath.cli.app import DONE, UNCERTIFIED

    output.write(_render(rows, kind))
    return DONE if all(row["certified"] == row["points"] for row in rows) else UNCERTIFIED


def _render(rows, kind: str) -> str:
    from screenpath.runs.compare import to_markdown

    if kind == "markdown":
        return to_markdown(rows)
    if kind == "json":
        return json.dumps(rows, indent=1, allow_nan=False) + "\n"
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
