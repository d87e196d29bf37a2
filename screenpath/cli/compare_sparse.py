"""``screenpath compare sparse-svm``: Hong 2019's tables of what screening saves."""

from __future__ import annotations

import click

from screenpath.cli import options as shared
from screenpath.cli.compare import listed, repeats_option, solving_options, table_options, write_table
from screenpath.cli.sparse_svm import grid_options
from screenpath.errors import UsageError

STARTS = ("warm", "cold")


@click.command("sparse-svm")
@shared.data_argument
@click.option(
    "--rules",
    default="none,iss,ifs,sifs",
    show_default=True,
    help="Comma-separated, of none, iss, ifs, sifs, gap, and these with +gap; speed-ups refer to the first.",
)
@click.option(
    "--starts",
    default="warm",
    show_default=True,
    help="warm, cold or both: begin at the previous grid point, or at theta = 0 (sdca only), with and without rules.",
)
@repeats_option
@click.option("--solver", default="sdca", show_default=True, help="sdca, newton or auto; the same for all rules.")
@solving_options
@shared.label_options
@shared.reading_options
@shared.preparation_options
@grid_options
@table_options
def command(rules, starts, solver, repeats, kind, out, force, quiet, **options):
    """Walk the grid of sparse SVMs on DATA under each of several rules, in alternation, and print one table.

    The defaults are Hong 2019's comparison: proximal SDCA without screening, with ISS, with IFS and with SIFS. All
    variants must certify the same optimal values; the exit code is 3 if some grid point is not certified.
    """
    from functools import partial

    from screenpath.cli.load import load_training
    from screenpath.cli.warm import warm_model
    from screenpath.data.memory import MemoryLimit
    from screenpath.models.specs import SPARSE_SVM
    from screenpath.report.console import Console
    from screenpath.runs.compare import compare_sparse
    from screenpath.runs.outputs import Output

    output = Output(out, force, [options["data"]])
    names, begin = listed(rules, "--rules", "none,sifs"), listed(starts, "--starts", "warm,cold")
    wrong = [start for start in begin if start not in STARTS]
    if wrong:
        raise UsageError(f"unknown start '{wrong[0]}'", "use --starts warm, cold or warm,cold")
    options.update(threads=1, solver=solver)
    console, limit = Console(quiet, None), MemoryLimit(options["max_memory"])
    with limit.in_force(), console.compiling(limit.check_compiling):
        data = load_training(SPARSE_SVM, options)
        for name in names:
            warm_model(SPARSE_SVM, {**options, "rule": name}, data.rows)
    with limit.in_force(), limit.kept("the comparison"):
        model = SPARSE_SVM.build(data.rows, data.targets, data.weights, options)
        rows = compare_sparse(
            lambda: type(model)(model.base),  # both views of the data are built once
            partial(SPARSE_SVM.grid, options=options),
            names,
            starts=begin,
            solver=solver,
            first=options["first"],
            tol=options["tol"],
            max_epochs=options["max_epochs"],
            seed=options["seed"],
            repeats=repeats,
            progress=console.say,
        )
    return write_table(rows, kind, output)
