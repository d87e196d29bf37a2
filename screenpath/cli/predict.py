"""``screenpath predict``: labels, decision values or regression values of a run on new data."""

from __future__ import annotations

import csv
import io
import warnings
from dataclasses import replace

import click

from screenpath.catalogue.options import TARGET
from screenpath.cli.help import helped
from screenpath.cli.options import flag, force_option, quiet_option
from screenpath.errors import UsageError, tell

STEP_HELP = (
    "best (by cross-validation, else on the --test data), one-se (of a cv run), the number of a step, or NAME=VALUE, "
    "for example C=0.1."
)
step_option = click.option("--step", "step", metavar="STEP", help=f"{STEP_HELP}  [default: best of a cv run]")
run_argument = click.argument("run", metavar="RUN", type=click.Path())
training_option = click.option(
    "--training", metavar="DATA", type=click.Path(), help="The training data of the run, if it has moved."
)


@helped(
    "predict",
    "screenpath predict runs/svm-data new.libsvm --step C=0.1",
    "screenpath predict runs/cv-svm-data new.libsvm --step one-se -o labels.csv",
)
@run_argument
@click.argument("data", metavar="DATA", type=click.Path())
@step_option
@click.option("--decision", is_flag=True, help="Write decision values next to the labels.")
@click.option("-o", "--out", metavar="FILE", default="-", show_default=True, help="File; - is standard output.")
@click.option(
    "--format", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True,
    help="Format of the predictions.",
)  # fmt: skip
@force_option
@click.option("--zero-based/--one-based", default=None, help="First index of DATA.  [default: as in the run]")
@click.option("--no-labels", is_flag=True, help="DATA has no labels, or none that count: no score.")
@flag(replace(TARGET, help="CSV, Parquet: column of labels, if its name differs from the run's."))
@training_option
@quiet_option
def predict(run, data, step, decision, out, format, force, zero_based, no_labels, target, training, quiet):
    """Predict DATA (LIBSVM text, CSV, Parquet; - for stdin) by a step of the run folder RUN, as CSV.

    Each row of DATA gives one line: the label as in the training file, or the value of a regression. Do not scale DATA:
    the run applies its own scaling. A kernel run reads its support vectors from its training data. If DATA has labels,
    the score is printed to stderr; write ? for an unknown label. Columns of a table are found by name, in any order.
    """
    from screenpath.data.words.tables import need_parquet, parquet_of
    from screenpath.engine.stored import decision_values, not_scored
    from screenpath.inputs.run_data import read_new, training_path
    from screenpath.store.open import open_run
    from screenpath.store.outputs import Output

    if format == "parquet":
        need_parquet()
    run = open_run(run)
    support = training_path(run, training) if run.kernel else training
    output = Output(out, force, [run.path, data, support])
    spec = run.declared()
    step = step or usual_step(run)
    chosen = run.choose(step)
    if training is not None and run.kernel is None:
        raise UsageError(f"{run.path} is a linear run: predict needs no training data", "leave out --training")
    if decision and run.labels is None:
        raise UsageError(f"{run.model} is a regression: its values are what predict writes", "leave out --decision")
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore")
        read = read_new(run, data, zero_based, labelled=not no_labels, target=target)
    values, notice = decision_values(run, chosen, read.X, training)
    # Before writing: wrong data must not leave a file.
    scores = [] if no_labels else [score_line(spec, run, values, read.y), not_scored(run, read.y)]
    text = table(run, values, decision)
    output.write(text if format == "csv" else parquet_of(text))
    if not quiet:
        say_step(run, chosen, step)
        for line in (*read.notices, notice, *scores):
            if line:
                tell(line)


def usual_step(run) -> str:
    """Return the step used by default: the choice of a cross-validation, or the only one."""
    if (run.score_column or "").startswith("cv_"):
        return "best"
    if len(run.steps) == 1:
        return str(run.steps[0]["step"])
    first, last = run.steps[0], run.steps[-1]
    scored = run.score_column
    best = f": best is the best by {scored}" if scored else "; a run of screenpath cv has a best one"
    raise UsageError(
        f"which step of {run.path}? It has {run.describe(first)} to {run.describe(last)}", f"name one with --step{best}"
    )


def say_choice(run, text: str) -> None:
    """Print a note if a step is the best on the test data, because that score is optimistic."""
    if text == "best" and run.score_column.startswith("test_"):
        tell("note: this step was chosen on the --test data, so its score there is optimistic")


def say_step(run, step, text: str) -> None:
    """Print the step that ``text`` has chosen, with its test score and the notices of the run, to stderr."""
    for notice in run.notices:
        tell(notice)
    column = run.score_column
    score = f", {column} {step[column]:.6g}" if column and step[column] is not None else ""
    tell(f"{run.model}: {run.describe(step)}, {step['status']}{score}")
    say_choice(run, text)


def score_line(spec, run, values, y) -> str:
    """Return the scores in words, or why there are none."""
    known = run.known(y)
    if not known.any():
        return "no score: the data has no labels"
    scores = spec.scores_of(values[known], run.targets(y[known]), run.record["options"])
    said = ", ".join(f"{name.replace('-', ' ')}: {score:.6g}" for name, score in scores.items())
    return f"{said} on {int(known.sum())} rows"


def table(run, values, decision: bool) -> str:
    from screenpath.data.words.labels import label_text
    from screenpath.engine.stored import predicted_labels

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if run.labels is None:
        writer.writerow(["value"])
        writer.writerows([repr(value)] for value in values.tolist())
        return text.getvalue()
    labels = predicted_labels(run, values).tolist()
    names = [f"decision_{label_text(label)}" for label in run.classes] if run.classes else ["decision"]
    writer.writerow(["label", *(names if decision else [])])
    if not decision:
        writer.writerows([label] for label in labels)
    else:
        forms = values.reshape(len(labels), -1).tolist()
        writer.writerows([label, *(repr(v) for v in row)] for label, row in zip(labels, forms, strict=True))
    return text.getvalue()
