"""``screenpath export`` and ``reduce``: one step of a run as a model file, and small data for another solver."""

from __future__ import annotations

import click

from screenpath.cli.help import helped
from screenpath.cli.options import FILE, Named
from screenpath.cli.results import outputs_of, say_step, step_option, training_options, usual_step
from screenpath.errors import tell
from screenpath.export.export import FORMATS, SUFFIXES, exported, kind_of


@helped(
    "export",
    "screenpath export runs/svm-data --step best --to liblinear -o svm.model",
    "screenpath export runs/svm-data --step C=0.1 -o svm.onnx",
)
@click.argument("run", metavar="RUN", type=Named())
@step_option
@click.option(
    "--to", "kind", type=click.Choice(list(FORMATS)),
    help="Model file of LIBLINEAR, or of LIBSVM (kernel models); JSON, NumPy arrays, ONNX, skops file of scikit-learn "
    f"(all but the first of kernel models).  [default: by the end of FILE: {', '.join(SUFFIXES)}]",
)  # fmt: skip
@click.option("-o", "--out", **FILE, required=True, help="File to write; - is standard output.")
@click.option(
    "--compress", metavar="CHANGE", type=float,
    help="Kernel models: fewer support vectors, by which no decision changes by more than CHANGE, proven.",
)  # fmt: skip
@training_options
def export(run, step, kind, out, compress, force, training, quiet):
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
    said: list[str] = []
    output.write(exported(run, chosen, kind, training, compress, said.append))
    if not quiet:
        say_step(run, chosen, step)
        for line in said:
            tell(line)
        if kind in ("liblinear", "libsvm") and run.labels and run.labels.get("-1") == "rest":
            tell("the labels other than --positive are one label of the model file, the second")
        if not output.stdout:
            tell(f"wrote {output.name}")


@helped(
    "reduce",
    "screenpath reduce runs/svm-data -o small.libsvm --from 0.1 --to 1",
    "screenpath reduce runs/svm-data -o small.libsvm --weights small.txt",
)
@click.argument("run", metavar="RUN", type=Named())
@click.option("-o", "--out", **FILE, required=True, help="LIBSVM file to write; - is standard output.")
@click.option("--from", "low", metavar="C", type=float, help="Smallest C that it serves.  [default: that of the run]")
@click.option("--to", "high", metavar="C", type=float, help="Largest C.  [default: that of the run]")
@click.option("--weights", **FILE, help="File of the rows' weights, one a line.  [default: FILE.weights]")
@training_options
def reduce(run, out, low, high, weights, force, training, quiet):
    """Write small data that have the optimum of the run folder RUN at every C of a range, for any solver.

    The file holds the rows that may matter somewhere in the range, and a mean row for those of one side of their kink,
    proven at every C. Mean rows weigh as much as their rows: the solver must take the weights. Rows are in the units of
    the data; those of a run with --scale are scaled. For svm of two labels, lad, quantile and svr without a kernel.
    """
    from screenpath.data.files.write_libsvm import libsvm_lines
    from screenpath.engine.reduce import reduced
    from screenpath.report.console import Console
    from screenpath.store.open import open_run

    run = open_run(run)
    outputs = outputs_of(run, training, force, out, weights or f"{out}.weights", form="libsvm")
    with Console(quiet, None).busy("finding rows that never matter"):
        found = reduced(run, low, high, training)
    outputs[0].write("".join(libsvm_lines(found.X, found.y)))
    outputs[1].write("".join(f"{weight!r}\n" for weight in found.weights.tolist()))
    for line in () if quiet else (*found.statement, f"weights: {outputs[1].name}"):
        tell(line)
