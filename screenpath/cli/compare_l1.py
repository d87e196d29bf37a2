"""``screenpath compare l1svm``: Zhao 2014's study of how much screening saves."""

from __future__ import annotations

import csv
import sys

import click

from screenpath.cli import options as shared


@click.command("l1svm")
@shared.data_argument
@shared.reading_options
@shared.label_options
@click.option("--scale", default="none", show_default=True, type=click.Choice(["none", "maxabs", "standard", "l2"]))
@click.option("--grid", default=20, show_default=True, type=click.IntRange(min=1), help="Points lambda_max / k.")
@click.option(
    "--configurations",
    default="org,warm,shr,warm+shr,scr,warm+scr,scr+shr,warm+scr+gap,default",
    show_default=True,
    help="Some of these, joined by commas. warm+scr+gap: the dynamic rule besides; default: also working sets and "
    "Newton steps.",
)
@click.option("--tol", default=1e-6, show_default=True, type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True))
@click.option("--max-epochs", default=100_000, show_default=True, type=click.IntRange(min=1), help="A grid point.")
@click.option("--time-limit", metavar="SECONDS", type=shared.Finite(positive=True), help="For each configuration.")
@click.option("--steps", is_flag=True, help="One row a configuration and grid point instead of the totals.")
def command(**options):
    """Compare the configurations of Zhao 2014 for L1-regularised SVMs on the LIBSVM file DATA; CSV on stdout.

    Exit code 3 if a configuration did not certify every grid point.
    """
    from screenpath.cli.app import DONE, UNCERTIFIED
    from screenpath.cli.load import load_training
    from screenpath.cli.warm import warm_model
    from screenpath.data.memory import MemoryLimit
    from screenpath.models.grid import lambda_grid
    from screenpath.models.specs import L1_SVM
    from screenpath.report.console import Console
    from screenpath.runs.compare_l1 import compare, per_step, totals

    o = {**options, "storage": "auto", "dtype": "float64", "bias": 0.0, "threads": 1, "rule": "vi+gap"}
    o["solver"] = "auto"
    names = [name.strip() for name in o["configurations"].split(",")]
    limits = {"tol": o["tol"], "max_epochs": o["max_epochs"], "time_limit": o["time_limit"]}
    limit = MemoryLimit(o["max_memory"])
    with limit.in_force(), Console(True, None).compiling(limit.check_compiling):
        data = load_training(L1_SVM, o)
        warm_model(L1_SVM, o, data.rows)
        model = L1_SVM.build(data.rows, data.targets, None, o)
        data = None  # the model has its columns
        with limit.kept("the comparison"):
            runs = compare(model, lambda_grid(model, o["grid"]), names, **limits)
    rows = per_step(runs) if o["steps"] else totals(runs)
    writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return DONE if all(run.finished for run in runs) else UNCERTIFIED
