"""``screenpath loo``: leave-one-out of a run, exact and proven."""

from __future__ import annotations

import json

import click

from screenpath.cli import results
from screenpath.cli.help import helped
from screenpath.cli.options import DONE, FILE, UNCERTIFIED, Whole, say
from screenpath.errors import UsageError, flags, tell

HEADS = ("step", "C", "errors", "training", "nothing", "bound", "local", "open")


@helped("loo", "screenpath loo runs/svm-data --step C=0.1", "screenpath loo runs/svm-data --steps every-c -o loo.csv")
@results.run_argument
@results.step_option
@click.option("--steps", type=click.Choice(["all", "every-c"]), help="All steps, a line each; or every C between, too.")
@click.option("--rows", metavar="N", type=Whole(min=1), help="Leave out N rows drawn at random, not all.")
@click.option("--seed", default=0, show_default=True, type=Whole(min=0), help="Seed of the draw.")
@click.option("-o", "--out", **FILE, help="Write what is predicted of each row without it, as CSV.")
@click.option("--certificate", **FILE, help="Write the proof of every value, for screenpath verify FILE DATA.")
@results.format_option
@results.training_options
def loo(run, step, steps, rows, seed, out, certificate, format, force, training, quiet):
    """Leave out each row of a run's training data in turn, and predict it by the model of the others.

    The results are those of as many refits, without a refit: each is proven by its own duality gap, rounding counted.
    RUN, by default the newest, is a run of svm, lad, quantile or svr, with or without a kernel, with at most two
    labels. Data stay scaled and weighted as for all rows.

    -o writes the columns row (or the name of the row), label, predicted, decision (of a regression target, predicted),
    low and high: proven bounds of the decision value.

    --steps every-c finds for each row of a classifier on which intervals of C its label is proven, between the steps,
    too; -o then writes row, label, predicted, C_from and C_to, a line for each interval. Of a regression it bounds
    what is predicted: row, target, C_from, C_to, low and high, a line for each step to the next.

    The exit code is 3 if a row is left open: two intercepts are best, say, and they differ in its label.
    """
    from screenpath.engine.leave_out import check_left_out, leave_one_out

    if steps == "every-c" and (step or rows or certificate):
        hint = "leave out `step`, `rows` and `certificate`"
        raise UsageError("`steps=every-c` leaves out all rows at every C of the run", hint)
    if steps == "all" and (step or out or certificate):
        hint = "leave out `step`, `out` and `certificate`"
        raise UsageError("`steps=all` takes the place of a step, and writes no file", hint)
    opened = results.opened_run(run, quiet)
    check_left_out(opened)
    if certificate and opened.kernel:
        raise UsageError("`certificate` is of a linear run, and this one has a kernel", "leave out `certificate`")
    if steps == "every-c":
        return _every_c(opened, out, format, force, training, quiet)
    chosen = opened.steps if steps else [opened.choose(step or results.usual_step(opened))]
    output, proof = results.outputs_of(opened, training, force, out, certificate)
    hear = None if quiet else lambda text: tell(flags(text))
    found: list = []
    good = True
    for one in leave_one_out(opened, chosen, training, rows, seed, values=bool(out or certificate), tell=hear):
        good = good and not one.counts["open"]
        found.append(one.record() if format == "json" else _line(one) if steps else str(one))
        if output is not None:
            output.write(one.csv())
        if proof is not None:
            proof.write(one.certificate())
    if format == "json":
        text = json.dumps(found if steps else found[0], indent=1) + "\n"
    else:
        text = _table(opened, found) if steps else found[0]
    if output is None or not output.stdout:  # only the table goes there
        say(text)
    if not quiet and not steps:
        results.say_choice(opened, step or results.usual_step(opened))
    return DONE if good else UNCERTIFIED


@helped("influence", "screenpath influence runs/svm-data --step C=0.1", "screenpath influence runs/cv-svm -o rows.csv")
@results.run_argument
@results.step_option
@click.option("--top", default=10, show_default=True, type=Whole(min=1), help="Number of rows shown.")
@click.option("-o", "--out", **FILE, help="Write all rows, in the same order, as CSV.")
@results.format_option
@results.training_options
def influence(run, step, top, out, format, force, training, quiet):
    """Show which training rows move a run's model most: exact, by leaving out each of them.

    The columns are row (or its name), label or target, the decision value or prediction by the model of all rows (all)
    and by the model without the row (others), by how much the weights of the prepared features move (moved), and how
    many labels of other rows change (flips). Rows with a wrong label are often the first.
    """
    from screenpath.data.words.tables import aligned, csv_text, finite
    from screenpath.engine.leave_out import check_left_out, leave_one_out

    opened = results.opened_run(run, quiet)
    check_left_out(opened)
    chosen = opened.choose(step or results.usual_step(opened))
    (output,) = results.outputs_of(opened, training, force, out)
    for one in leave_one_out(opened, [chosen], training, tell=None if quiet else lambda text: tell(flags(text))):
        head, lines = one.influence()
        if output is not None:
            output.write(csv_text(head, lines))
        if output is None or not output.stdout:
            if format == "json":
                say(json.dumps(finite([dict(zip(head, line, strict=True)) for line in lines[:top]]), indent=1) + "\n")
            else:
                texts = [[f"{v:.6g}" if isinstance(v, float) else str(v) for v in line] for line in lines[:top]]
                say("".join(f"{line}\n" for line in aligned([head, *texts], 1)))
        still = one.counts["open"]
        if still and not quiet:
            tell(f"{still:,} rows are left open")
    return UNCERTIFIED if still else DONE


def _every_c(opened, out, format, force, training, quiet) -> int:
    from screenpath.engine.every_c import every_c

    (output,) = results.outputs_of(opened, training, force, out)
    found = every_c(opened, training, None if quiet else lambda text: tell(flags(text)))
    if output is not None:
        output.write(found.csv())
    if output is None or not output.stdout:
        say(json.dumps(found.record(), indent=1) + "\n" if format == "json" else str(found))
    return DONE


def _line(one) -> tuple:
    if one.run.labels is None:
        (value, *_), (own, *_) = one.scores.values(), one.training.values()
        score = f"{value:.6g}", f"{own:.6g}"
    else:
        own = (one.solution.forms[one.samples] > 0.0) != (one.targets > 0.0)
        score = str(one.errors), str(int(own.sum()))
    return str(one.step["step"]), f"{one.step['C']:.6g}", *score, *map(str, one.counts.values())


def _table(run, lines: list) -> str:
    from screenpath.data.words.tables import aligned

    heads = list(HEADS)
    if run.labels is None:
        heads[2] = run.declared().score
    return "".join(f"{line}\n" for line in aligned([heads, *lines], 0))
