"""``screenpath export``: one step of a run as a model file."""

from __future__ import annotations

import click

from screenpath.cli.help import helped
from screenpath.cli.options import force_option, quiet_option
from screenpath.cli.results import say_step, step_option, training_option, usual_step
from screenpath.errors import tell
from screenpath.export.export import FORMATS, SUFFIXES, exported, kind_of


@helped(
    "export",
    "screenpath export runs/svm-data --step best --to liblinear -o svm.model",
    "screenpath export runs/svm-data --step C=0.1 -o svm.onnx",
)
@click.argument("run", metavar="RUN", type=click.Path())
@step_option
@click.option(
    "--to", "kind", type=click.Choice(list(FORMATS)),
    help="Model file of LIBLINEAR, or of LIBSVM (kernel models); JSON, NumPy arrays, ONNX, skops file of scikit-learn "
    f"(the last two of kernel models too).  [default: by the end of FILE: {', '.join(SUFFIXES)}]",
)  # fmt: skip
@click.option("-o", "--out", metavar="FILE", required=True, help="File to write; - is standard output.")
@force_option
@training_option
@quiet_option
def export(run, step, kind, out, force, training, quiet):
    """Write a step of the run folder RUN as a model file; the weights are in the units of the data file.

    The files of --to liblinear and --to libsvm give the same decisions in LIBLINEAR's predict and in svm-predict; so do
    those for ONNX runtimes (float64 rows in, labels and decision values out) and for scikit-learn.
    """
    from screenpath.store.open import open_run
    from screenpath.store.outputs import Output

    run = open_run(run)
    kind = kind or kind_of(run, out)
    output = Output(out, force, [run.path, training])
    step = step or usual_step(run)
    chosen = run.choose(step)
    output.write(exported(run, chosen, kind, training))
    if not quiet:
        say_step(run, chosen, step)
        if kind in ("liblinear", "libsvm") and run.labels and run.labels.get("-1") == "rest":
            tell("the labels other than --positive are one label of the model file, the second")
