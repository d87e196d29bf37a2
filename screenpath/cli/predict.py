"""``screenpath predict``: labels, decision values and regression values of new data."""

from __future__ import annotations

import csv
import io
import warnings
from dataclasses import replace
from itertools import compress

import click

from screenpath.catalogue.option import Option
from screenpath.catalogue.options import TARGET
from screenpath.cli.help import helped
from screenpath.cli.options import FILE, Named, flag, force_option, quiet_option
from screenpath.cli.results import say_step, step_option, training_option, usual_step
from screenpath.errors import UsageError, tell


@helped(
    "predict",
    "screenpath predict runs/svm-data new.libsvm --step C=0.1",
    "screenpath predict runs/cv-svm-data new.libsvm --step one-se -o labels.csv",
)
@click.argument("run", metavar="RUN", type=Named())
@click.argument("data", metavar="DATA", type=Named())
@step_option
@click.option("--exact", is_flag=True, help="Solve a C that is between steps, from the training data.")
@click.option("--decision", is_flag=True, help="Write decision values next to the labels.")
@flag(Option("interval", None, "share", "Add intervals or sets of labels of this level, as 0.9.", metavar="LEVEL"))
@click.option("--stable", is_flag=True, help="Write for which C of the path each label is proven (svm).")
@click.option("--removals", is_flag=True, help="Write how many training rows each label hangs on (svm).")
@click.option("--append", is_flag=True, help="Write all columns of DATA, a table, before what is predicted.")
@click.option("-o", "--out", **FILE, default="-", show_default=True, help="File; - is standard output.")
@click.option(
    "--format", type=click.Choice(["csv", "parquet"]),
    help="Format.  [default: by the end of FILE; else csv]",
)  # fmt: skip
@force_option
@click.option("--zero-based/--one-based", default=None, help="First index of DATA.  [default: as in the run]")
@click.option("--no-labels", is_flag=True, help="DATA has no labels, or none that count: no score.")
@flag(replace(TARGET, help="CSV, Parquet: column of labels, if its name differs from the run's."))
@training_option
@quiet_option
def predict(
    run, data, step, exact, decision, interval, stable, removals, append, out, format, force, zero_based, no_labels,
    target, training, quiet,
):  # fmt: skip
    """Predict DATA (LIBSVM text, CSV, Parquet; - for stdin) by a step of the run folder RUN, as CSV.

    Each row of DATA gives one line: the label as in the training file, or the value of a regression. Do not scale DATA:
    the run applies its own scaling. A kernel run reads its support vectors from its training data. If DATA has labels,
    the score goes to stderr; write ? for an unknown label. Columns of a table are found by name, in any order;
    a row that lacks a value, which the run does not fill in, gets an empty label.

    --step C=VALUE takes a linear model at any C of the path. Between two steps it is their mean, with a proven gap;
    --exact solves there instead. --stable adds a column: the intervals of C, between steps too, on which a row
    surely has this label (svm; most read the training data). Without --step, labels are those of the last step;
    --interval asks for one.

    --interval 0.9, of regressions, adds the columns low and high: jackknife+ intervals by all models without one
    training row (lad, quantile, svr), or of a cv run CV+ intervals by the models of its folds. They hold about
    80 % (2 LEVEL - 1) of new targets like those of training at least, and usually about 90 %. Of an svm of two labels
    it adds the column set: none, one or both labels (LABEL;LABEL), which promise the same of labels.

    --removals, for an svm of two labels, adds how many training rows change the label by being left out, each
    alone. 0 says that no single training row decides it.
    """
    from screenpath.catalogue.scores import probability
    from screenpath.data.files.cells import USUAL
    from screenpath.data.files.read import columns_written
    from screenpath.data.words.labels import label_text
    from screenpath.data.words.tables import parquet_of
    from screenpath.engine.stable import reads_training
    from screenpath.engine.stored import decision_values, not_scored, stable_labels, step_or_between
    from screenpath.inputs.run_data import of_width, read_new, training_path
    from screenpath.store.open import open_run
    from screenpath.store.outputs import Output, form_of
    from screenpath.store.record import ROWS_FILE

    run = open_run(run)
    again = stable and reads_training(run)
    reads = (run.kernel and not run.has(ROWS_FILE)) or removals or interval is not None or again
    support = training_path(run, training) if reads else training
    output = Output(out, force, [run.path, data, support])
    format = form_of(out, ("csv", "parquet"), "csv", format)
    spec = run.declared()
    if interval is not None:
        from screenpath.cv.intervals import intervals_of  # which compute, and load numba
        from screenpath.engine.leave_out import check_intervals

        check_intervals(run)
    step = step or (str(run.steps[-1]["step"]) if stable and not run.cross_validated else usual_step(run))
    if training is not None and not (reads or exact or run.kernel):
        raise UsageError(f"{run.path} is a linear run: predict needs no training data", "leave out --training")
    chosen = step_or_between(run, step, exact, training)
    if exact and isinstance(chosen, dict):
        raise UsageError(f"{run.describe(chosen)} of the run is solved already", "leave out --exact")
    if decision and run.labels is None:
        raise UsageError(f"{run.model} is a regression: predict writes its values anyway", "leave out --decision")
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore")
        read = read_new(run, data, zero_based, labelled=not no_labels, target=target)
    values, notice = decision_values(run, chosen, read.X, training)
    own = run.form.id if run.form is not None and read.ids is None else None
    unnamed = f"{data} has no column '{own}' of names: rows are in its order" if own is not None else ""
    # Before writing: wrong data must not leave a file.
    scores = [] if no_labels else [score_line(spec, run, values, read.y, chosen), not_scored(run, read.y)]
    written = columns_written(data, read.form.cells if read.form else USUAL) if append else {}
    more, held = {}, []
    if isinstance(chosen, dict) and "sigmoid_slope" in run.record["columns"]:
        more["probability"] = probability(values, **run.sigmoid(chosen)).tolist()
    if interval is not None:
        ends, promise = intervals_of(run, chosen, of_width(run, read.X), interval, training)
        held.append(promise)
        more |= dict(zip(("low", "high"), ends.T.tolist(), strict=True)) if run.labels is None else {}
        if run.labels is not None:
            names = [label_text(one) for one in run.sides]
            more["set"] = [";".join(compress(names, inside)) for inside in ends.tolist()]
    if removals:
        from screenpath.engine import leave_out

        counts, says = leave_out.removals(run, chosen, read.X, training)
        held.append(says)
        more["removals"] = counts.tolist()
    if stable:
        labels = stable_labels(run, read.X, training)
        held.append(labels.statement)
        more["stable"] = labels.texts()
    text = table(run, values, decision, read, written, more)
    ids = [] if read.ids is None else [read.form.id] if append else next(csv.reader(io.StringIO(text)))[:1]
    output.write(text if format == "csv" else parquet_of(text, ids))
    if not quiet:
        say_step(run, chosen, step)
        for line in (*read.notices, unnamed, notice, lacking_words(read.lacking), *scores, *held):
            if line:
                tell(line)


def lacking_words(lacking) -> str:
    """Return how many rows could not be predicted; an empty text if all could."""
    count = 0 if lacking is None else int(lacking.sum())
    rows = f"{count:,} rows lack" if count > 1 else "1 row lacks"
    return f"{rows} a value that the run does not fill in: no prediction, the cell is empty" if count else ""


def score_line(spec, run, values, y, step) -> str:
    """Return the scores in words, or why there are none."""
    from screenpath.catalogue.scores import votes

    known = run.known(y)
    if not known.any():
        return "no score: the data has no labels"
    at = {name: step[name] for name in run.parameters} if isinstance(step, dict) else {step.name: step.C}
    forms = votes(values[known]) if run.voting else values[known]
    scores = spec.scores_of(forms, run.targets(y[known]), {**run.record["options"], **at})
    said = ", ".join(f"{name.replace('-', ' ')}: {score:.6g}" for name, score in scores.items())
    return f"{said} on {int(known.sum())} rows"


def table(run, values, decision: bool, data, written: dict[str, list[str]], more: dict[str, list]) -> str:
    """Return the predictions as CSV, with ``more`` columns after them, below the ids or the columns ``written`` in the
    data.
    """
    from screenpath.data.words.labels import label_text
    from screenpath.data.words.tables import csv_text
    from screenpath.engine.stored import predicted_labels

    if run.labels is None:
        header, rows = ["value"], [[value] for value in values.tolist()]
    else:
        labels, header = predicted_labels(run, values).tolist(), ["label"]
        rows = [[label] for label in labels]
        if decision:
            header += [f"decision_{label_text(label)}" for label in run.blocks] if run.blocks else ["decision"]
            forms = values.reshape(len(labels), -1).tolist()
            rows = [[label, *row] for label, row in zip(labels, forms, strict=True)]
    header += more
    rows = [[*row, *cells] for row, *cells in zip(rows, *more.values(), strict=True)]
    for k in () if data.lacking is None else data.lacking.nonzero()[0].tolist():
        rows[k] = [""] * len(header)
    if written:
        header = [*written, *(f"predicted_{name}" if name in written else name for name in header)]
        rows = [[*cells, *row] for *cells, row in zip(*written.values(), rows, strict=True)]
    elif data.ids is not None:
        header = ["id" if data.form.id in header else data.form.id, *header]
        rows = [[text, *row] for text, row in zip(data.ids, rows, strict=True)]
    return csv_text(header, rows)
