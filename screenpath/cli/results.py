"""Commands on finished runs: ``show``, ``runs``, ``report``, ``plot``, ``merge``, ``verify``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shutil import get_terminal_size

import click

from screenpath.cli import options as shared
from screenpath.cli.help import helped
from screenpath.cli.options import DONE, ERROR, FILE, UNCERTIFIED, Named, force_option, quiet_option, say, stack
from screenpath.errors import ScreenpathError, UsageError, flags, shown, tell

STEP_HELP = (
    "best (by cross-validation, else on the --test data), one-se (of a cv run), the number of a step, or NAME=VALUE, "
    "for example C=0.1; of an svm also nu=0.1."
)
step_option = click.option("--step", "step", metavar="STEP", help=f"{STEP_HELP}  [default: best of a cv run]")
training_option = click.option(
    "--training", metavar="DATA", type=Named(), help="The training data of the run, if it has moved."
)
training_options = stack(force_option, training_option, quiet_option)  # of what reads these data, and writes a file
format_option = click.option(
    "--format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Result format."
)
run_argument = click.argument("run", metavar="[RUN]", required=False, type=Named())


def _opened(name: str | None):
    from screenpath.store.open import open_run
    from screenpath.store.record import run_folders

    return open_run(run_folders(Path())[0] if name is None else name)


def _tell_of(run, name: str | None, quiet: bool) -> None:
    for notice in () if quiet else (*([f"the newest run is {run.path}"] if name is None else []), *run.notices):
        tell(notice)


def opened_run(name: str | None, quiet: bool):
    run = _opened(name)
    _tell_of(run, name, quiet)
    return run


def outputs_of(run, training: str | None, force: bool, *names: str | None, form: str = "csv") -> list:
    """Return the files to write, the first in ``form``, None where there is no name; never the run or its data."""
    from screenpath.store.outputs import Output, form_of

    inputs = [run.path, training or run.record["data"].get("path")]
    outputs = [None if name is None else Output(name, force, inputs) for name in names]
    form_of(names[0], (form,), form)
    return outputs


def _listed() -> str:
    """Return a table of the runs below the current folder, the newest first, and below it what is damaged."""
    from screenpath.store.record import read_record, run_folders

    records, lost = {}, []
    for path in run_folders(Path()):
        try:
            record = read_record(path)
            _line_of(path, record)
        except ScreenpathError as error:
            lost.append(error.message)
        except (KeyError, TypeError, FileNotFoundError):  # emptied, removed, or of the first version
            lost.append(f"{path} holds no run with totals")
        else:
            records[path] = record
    return _lines_of(records) + "".join(f"{shown(line)}\n" for line in lost)


def _lines_of(records: dict) -> str:
    from screenpath.data.words.tables import aligned

    heads = ["run", "model", "rule", "certified", "rejection", "passes", "CPU"]
    return "".join(f"{line}\n" for line in aligned([heads, *(_line_of(*one) for one in records.items())], 3))


def _line_of(path, record: dict) -> list[str]:
    from screenpath.report.figures import seconds_text
    from screenpath.store.record import COMPLETE

    totals = record["totals"]
    spent = seconds_text(totals["cpu_seconds"]) if "cpu_seconds" in totals else "unknown"
    kind = "cv " * any(name.startswith("cv_") for name in record["columns"]) + record["model"]
    state = "" if record["status"] == COMPLETE else f" {record['status']}"
    state += " in the folds" if state and record.get("folds_certified", True) is None else ""
    good, rule = f"{totals['certified']}/{totals['n_steps']}{state}", shown(str(record["options"].get("rule")))
    return [
        shown(str(path)), kind, rule, good,
        f"{totals['mean_rejection_ratio'] or 0:.3g}", f"{totals['passes']:.3g}", spent,
    ]  # fmt: skip


@helped("show", "screenpath show", "screenpath show runs/svm-data --step C=0.1 --top 5 --duals duals.csv")
@run_argument
@click.option("--step", metavar="STEP", help=f"{STEP_HELP}  [default: best if steps have scores, else the last]")
@click.option(
    "--top", default=20, show_default=True, type=shared.Whole(min=0),
    help="Number of features shown, the largest first.",
)  # fmt: skip
@click.option("--details", is_flag=True, help="Show how many dual variables are at their bounds, too.")
@click.option("--duals", **FILE, help="Write the dual variable of every row as CSV; - is standard output.")
@training_options
def show(run, step, top, details, duals, force, training, quiet):
    """Show what the run folder RUN, or the newest, holds: scores, one step and its features, certificate, model.

    Features are ordered by scaled size; sparse models also show at which step each one enters.

    --duals writes the columns row, label, value, side, certified. The value is the row's factor in the weights: y
    alpha, or alpha in a regression. The side is R (at the lower bound), L (at the upper bound) or E (between).
    certified is 1 if the row is proven to be on that side in the optimum. Dual variables come from the certificate of
    the run; without one, the step's problem is solved again. For svm (also with a kernel), lad, quantile, svr and
    sparse-svm of two labels.
    """
    from screenpath.report.show import default_step, summary_of

    if training is not None and duals is None:
        raise UsageError("--training is used only with --duals here", "leave it out, or add --duals FILE")
    name, run = run, _opened(run)
    (output,) = outputs_of(run, training, force, duals)
    step = step or default_step(run)
    summary = summary_of(run, step, top, details)
    page = str(summary)  # finds damage before anything is printed
    _tell_of(run, name, quiet)
    if not quiet:
        say_choice(run, step)
    if output is None:
        say(page)
        return
    from screenpath.engine.duals import duals_of  # it loads numba, which only this needs

    found = duals_of(run, summary.step, training)
    output.write(found.csv())
    if output.stdout:  # only the table goes there
        return
    say(page)
    if not quiet:
        sure = f"{int(found.certified.sum()):,} of {found.values.size:,} sides certified"
        tell(f"wrote {output.name}: {sure}, {found.support.size:,} rows with a part in the weights ({found.source})")


@helped("runs", "screenpath runs", "screenpath runs runs/cv-svm-data runs/cv-l1svm-data")
@click.argument("runs", metavar="[RUN RUN...]", nargs=-1, type=Named())
@click.option("--step", metavar="STEP", help="Step of every run: best, one-se, a number.  [default: best]")
@click.option("--test", **FILE, help="Score all of them on this data file.")
@click.option(
    "--target",
    metavar="COLUMN",
    help="CSV, Parquet: column of labels in --test FILE, if its name differs from training.",
)
@quiet_option
def runs(runs, step, test, target, quiet):
    """List the runs below the current folder, or compare those in several folders RUN.

    The list has a line for each run, the newest first. Named runs have a line each, too, scored or not. If they share
    folds or test data, or --test FILE names some, a comparison of their scores follows: differences are paired, fold by
    fold or row by row, and have a standard error. With --step or --test, runs that share no data or decide between
    other labels are refused.

    CPU is the processor time of the run. A comparison has the time on the clock of path, or path and folds.
    Neither counts compiling.
    """
    if not runs:
        if step or test or target:
            raise UsageError("`step`, `test` and `target` compare runs", "name the folders of two runs or more")
        say(_listed())
        return
    from screenpath.report.side_by_side import compare_runs
    from screenpath.store.open import open_run

    opened, found, why_not = [open_run(run) for run in runs], None, None
    try:
        found = compare_runs(opened, step or "best", test, target)
    except UsageError as error:
        if step or test or target:
            raise
        why_not = f"no comparison of scores: {error.message}; {error.hint}" if len(opened) > 1 else None
    lines = _lines_of({run.path: run.record for run in opened})
    for notice in () if quiet else (*(one for run in opened for one in run.notices), why_not):
        if notice:
            tell(flags(notice))
    say(lines if found is None else f"{lines}\n{found}")


@helped("report", "screenpath report", "screenpath report runs/cv-svm-data -o report.html")
@run_argument
@click.option("-o", "--out", **FILE, help="HTML file; - is standard output.  [default: RUN/report.html]")
@click.option("--loo", is_flag=True, help="Add pictures of leave-one-out and influence, from the training data.")
@force_option
@quiet_option
def report(run, out, loo, force, quiet):
    """Write a page about the run folder RUN, or the newest.

    It has problem, certificate, pictures, steps, and the command to repeat the run. The page is one file and loads
    nothing. Needs matplotlib.
    """
    from screenpath.report import series
    from screenpath.report.page import page
    from screenpath.store.outputs import Output, form_of

    run = opened_run(run, quiet)
    output = Output(out or str(run.path / "report.html"), force, [run.path])
    form_of(out, ("html",), "html")
    output.write(page(run, series.LEFT_OUT if loo else ()))
    if not quiet and not output.stdout:
        tell(f"wrote {output.name}")


# As screenpath.report.series.KINDS; --help must not import numpy.
KINDS = ("rejection", "coefficients", "gap", "time", "cv", "gammas", "grid", "loo", "influence")


@helped("plot", "screenpath plot", "screenpath plot runs/dvi runs/gap --kind time -o time.svg")
@click.argument("runs", metavar="[RUN...]", nargs=-1, type=Named())
@click.option(
    "--kind", type=click.Choice(KINDS), help="What to draw.  [default: gammas, cv, rejection or gap, as RUN has it]"
)
@click.option(
    "-o", "--out", **FILE,
    help="Picture ending in .png, .svg or .pdf.  [default: RUN/KIND.png; of several runs KIND.png here]",
)  # fmt: skip
@force_option
@click.option(
    "--terminal", is_flag=True,
    help="Draw with characters on standard output, without matplotlib: all kinds but loo and influence.",
)  # fmt: skip
@quiet_option
def plot(runs, kind, out, force, terminal, quiet):
    """Draw the run folder RUN, or the newest; of several one picture, with a line for each.

    \b
    rejection     what the rule screened before each solve, stacked
    coefficients  weights along the path, the largest named
    gap           duality gap against its target
    time          seconds of screening, solving, certifying
    cv            cross-validation curve, choices, certified bound
    gammas        mean score over (gamma, C) of a cv run with --gammas
    grid          heat maps over (alpha, beta) of sparse-svm
    loo           errors in training and with each row left out, at every C;
                  scores at the steps of a regression or behind a kernel
    influence     each row predicted with and without itself (best or last step)

    loo and influence are computed from the training data of RUN, as by the commands of these names.
    Several runs with the same parameter can be compared by rejection, gap, time and cv.
    """
    from screenpath.report import series

    if terminal and kind in series.LEFT_OUT:
        raise UsageError(f"--kind {kind} is drawn by matplotlib alone", "leave out --terminal")
    if terminal and out:
        raise UsageError("--terminal writes no file", "leave out --out, or leave out --terminal")
    series.picture_form(out)  # refuses a wrong name early
    opened = [_opened(name) for name in runs or (None,)]
    kinds = [series.available(run) for run in opened]
    kind = kind or next(one for one in kinds[0] if all(one in own for own in kinds))
    for run in opened:
        series.check_kind(run, kind)
    lines = series.lines(opened, kind) if len(opened) > 1 else None  # refuses what does not fit together
    for run, name in zip(opened, runs or (None,), strict=True):
        _tell_of(run, name, quiet)
    if terminal:
        from screenpath.report import terminal as characters

        form = get_terminal_size().columns, getattr(sys.stdout, "encoding", None) or "utf-8"
        say(characters.drawn(opened[0], kind, *form) if lines is None else characters.drawn_together(lines, *form))
        return
    from screenpath.report.plots import picture, picture_together
    from screenpath.store.outputs import Output

    place = f"{kind}.png" if lines else str(opened[0].path / f"{kind}.png")
    output = Output(out or place, force, [run.path for run in opened])
    output.write(picture(opened[0], kind, out)[1] if lines is None else picture_together(lines, out))
    if not quiet:
        tell(f"wrote {output.name}")


@helped(
    "merge",
    "screenpath merge parts/1 parts/2 parts/3 -o runs/whole",
    "screenpath merge folds/1 folds/2 -o runs/cv-whole --force",
)
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True, type=Named())
@click.option("-o", "--out", required=True, metavar="DIR", type=Named(), help="Run folder to make.")
@click.option("--force", is_flag=True, help="Replace the run in the folder.")
@quiet_option
def merge(runs, out, force, quiet):
    """Join the runs in several folders RUN into one run folder.

    The runs are the parts of a grid that --part I/K computes, the parts of the folds of cv, or runs that differ only in
    the values of their grid (--c-list, --lambda-list, --beta). The new folder is that of one run, for show, predict,
    plot and all other commands. Runs that do not belong together are refused; the error lists all differences.
    """
    from screenpath.cv.merge import merge_runs
    from screenpath.engine.record import all_good, not_solved

    record = merge_runs(runs, out, force, ["screenpath", *sys.argv[1:]])
    if not quiet:
        totals = record["totals"]
        unsafe = f", {totals['unsafe']} unsafe decisions" if totals["unsafe"] else ""
        unsafe += f", audit {not_solved(totals['unaudited'])}" if totals.get("unaudited") else ""
        good = f"{totals['certified']} of {totals['n_steps']} steps certified{unsafe}"
        tell(f"{out}: {good}, put together from {len(runs)} runs")
    return DONE if all_good(record) else UNCERTIFIED


SHOWN = 20  # most faults listed


@helped("verify", "screenpath verify runs/svm-data", "screenpath verify runs/svm-data data.libsvm")
@click.argument("run", type=Named())
@click.argument("data", required=False, type=Named())
@format_option
@click.option("--explain", is_flag=True, help="With --step: print the inequality of this step with its numbers.")
@click.option("--step", metavar="K", type=shared.Whole(min=0), help="With --explain: the number of the step.")
def verify(run, data, format, explain, step):
    """Check the certificate of the run folder RUN against its data.

    The checker reads DATA (LIBSVM text, CSV, Parquet or a shard folder; by default what the run read) in two passes
    and computes every number again, without the code of the run and with all rounding counted against the claims: gap
    and primal of every step, and the rows claimed to be at a bound in the optimum. The run needs --certificate. RUN may
    also be a file of screenpath loo --certificate; it needs DATA.

    Everything else in the run folder (options, labels, weights, scaling, step table, totals, coefficients) must agree
    with certificate and data. What cannot be compared, such as times, is listed as not covered. --format json has the
    list of what was compared, too. --explain --step K prints the inequality of step K with its numbers instead.

    The exit code is 0 if every claim holds, 1 if one does not, and 3 if all hold but some steps claim nothing because
    the run itself does not call them certified.
    """
    from screenpath.verify import verify_certificate
    from screenpath.verify.explain import explained
    from screenpath.verify.run import how_much, not_covered

    if explain != (step is not None) or (explain and format == "json"):
        hint = "leave out `format`" if format == "json" else "add `step=K`" if explain else "add `explain`"
        raise UsageError("`explain` prints the inequality of one step as text", hint)
    found = verify_certificate(run, data)
    if format == "json":
        click.echo(json.dumps(found.record(), indent=1))
        return ERROR if found.faults else UNCERTIFIED if found.unclaimed else DONE
    covered = ([how_much(found.covered)] if found.covered else []) + not_covered(found.uncovered)
    click.echo("\n".join([str(found), *(explained(found, step) if explain else covered)]))
    for place, reason in found.faults[:SHOWN]:
        click.echo(reason if place is None else f"step {place}, {reason}", err=True)
    if len(found.faults) > SHOWN:
        click.echo(f"... and {len(found.faults) - SHOWN} more", err=True)
    return ERROR if found.faults else UNCERTIFIED if found.unclaimed else DONE


def usual_step(run) -> str:
    """Return the step used by default: the choice of a cross-validation, or the only one."""
    if (run.score_column or "").startswith("cv_"):
        return "best"
    if len(run.steps) == 1:
        return str(run.steps[0]["step"])
    first, last = run.steps[0], run.steps[-1]
    scored = run.score_column
    best = f": best is the best by {scored}" if scored else "; a run of screenpath cv has a best one"
    what = f"which step of {run.path}? It has {run.describe(first)} to {run.describe(last)}"
    raise UsageError(what, f"name one with --step{best}")


def say_choice(run, text: str) -> None:
    """Print a note if a step is the best on the test data, because that score is optimistic."""
    if text == "best" and run.score_column.startswith("test_"):
        tell("note: this step was chosen on the --test data, so its score there is optimistic")


def say_step(run, step, text: str) -> None:
    """Print the step that ``text`` has chosen, with its test score and the notices of the run, to stderr."""
    for notice in run.notices:
        tell(notice)
    if not isinstance(step, dict):
        tell(f"{run.model}: {step.name} = {step.C:.6g}, {step.words}")
        return
    column = run.score_column
    score = f", {column} {step[column]:.6g}" if column and step[column] is not None else ""
    nu = f", nu {step['nu']:.4g}" if "nu" in step else ""
    tell(f"{run.model}: {run.describe(step)}, {step['status']}{nu}{score}")
    if run.cross_validated and (part := run.record["options"].get("part")):
        tell(f"note: the score and the choice are of part {part} of the folds; screenpath merge joins all parts")
    say_choice(run, text)
