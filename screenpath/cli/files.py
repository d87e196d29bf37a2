"""Commands on data files: ``inspect``, ``convert``, ``generate``."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from shutil import get_terminal_size

import click

from screenpath.catalogue import options as o
from screenpath.catalogue.option import Option
from screenpath.cli import options as shared
from screenpath.cli.help import helped
from screenpath.cli.options import DONE, ERROR, FILE, Named, Whole, force_option
from screenpath.errors import DataError, UsageError, flags, shown

WIDEST = 5  # columns listed by widest range
CLASSES_SHOWN = 20
WIDEST_NAME = 40  # names up to this many characters are aligned
NARROWEST = 12  # characters that a range has at least

NAMING = (o.TARGET, o.ONE_HOT, o.COLUMNS, o.DROP, o.ID)  # options that name columns of a table
KEEP = Option("resume", False, "flag", "Keep the shards of a stopped conversion (or start it).", group="output")
AGAIN = (replace(KEEP, everyday=True), replace(o.FORCE, help="Replace an older folder.", everyday=True))


@helped("inspect", "screenpath inspect data.libsvm", "screenpath inspect table.csv --target y --one-hot colour")
@click.argument("data")
@click.option("--zero-based", is_flag=True, help="Indices in the file start at 0.")
@click.option(
    "--max-faults", default=20, show_default=True, type=Whole(min=1), help="Stop reading at this many faults."
)
@shared.flags((*NAMING, *o.CELLS))
def inspect(data, **options):
    """Show shape, density, labels, column ranges and all faults of DATA (LIBSVM text, CSV, Parquet; '-' for stdin).

    Of a table there is a line for each column, with what to do, and at the end a command line that learns from it.
    DATA may be a folder of shards: every file in it is compared with what convert wrote, and shards with a fault are
    left out of the figures. The exit code is 1 if there is a fault or no sample.
    """
    from screenpath.data.files.table import TARGETS
    from screenpath.inputs.inspect import inspect

    seen = inspect(data, **options)
    if seen.data is not None:
        facts = list(_facts(seen))
        width = min(max(17, *(len(shown(name)) for name, _ in facts)), WIDEST_NAME)
        for name, value in facts:
            click.echo(shown(f"{name:<{width}} {value}"))
    if seen.data is None and not seen.faults:
        raise DataError(f"{data} holds no samples", "add a row for each sample")
    for hint, alike in groupby(seen.faults, lambda fault: fault.hint):
        lines = [f"fault: {shown(str(fault))}\n" for fault in alike]
        click.echo(f"{''.join(lines)}  {shown(flags(hint))}")
    if not seen.complete:
        click.echo(f"stopped at {len(seen.faults)} faults; --max-faults N shows more")
    if seen.data is None:
        click.echo("no sample without fault")
    for line in _column_lines(seen):
        click.echo(shown(line))
    if seen.command is not None:
        if options["target"] is None and seen.target.lower() not in TARGETS:
            click.echo("the target is a guess: --target COLUMN names another one, and rows that have")
            click.echo("  none are for screenpath predict")
        click.echo(f"to learn '{shown(seen.target)}', type\n  {_folded(shown(seen.command))}")
    return ERROR if seen.faults or seen.data is None else DONE


def _column_lines(seen):
    """Yield a heading and a line for each column of a table: what it holds, and what to do with it."""
    rows = [("column", "kind", "different", "missing", "range", "what to do")]
    for column in seen.columns:
        todo = "the target" if column.name == seen.target else flags(column.todo)
        rows.append((*column.words, todo))
    a, b, c, d, e, f = (min(max(map(len, cells)), WIDEST_NAME) for cells in zip(*rows, strict=True))
    e = min(e, max(_width() - sum((a, b, c, d, f, 10)), NARROWEST))
    for name, kind, different, missing, values, todo in rows if seen.columns else ():
        values = values if len(values) <= e else f"{values[: e - 3]}..."
        yield f"{name:{a}}  {kind:{b}}  {different:>{c}}  {missing:>{d}}  {values:{e}}  {todo}".rstrip()


def _width() -> int:
    """Return the columns of the terminal that standard output is; none of a pipe or a file is too long."""
    return get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def _folded(command: str) -> str:
    """Return a command line with breaks that a shell takes, before options, where a terminal is narrower."""
    lines = [""]
    for part in re.split(r" (?=--[a-z])", command):
        if lines[-1] and len(lines[-1]) + len(part) + 5 > _width():
            lines.append(f"  {part}")
        else:
            lines[-1] += f" {part}" if lines[-1] else part
    return " \\\n  ".join(lines)


def _facts(seen):
    import numpy as np

    from screenpath.data.files.prepare import column_names, nearly_constant
    from screenpath.data.words.labels import label_text

    data = seen.data
    yield "file", data.source
    yield "samples", f"{data.n:,}"
    yield "features", f"{data.d:,}"
    yield "stored values", f"{data.nnz:,} (density {data.density:.4g})"
    counts = seen.label_counts
    if counts is None:
        y = data.y
        yield "targets", f"regression: min {y.min():g}, median {np.median(y):g}, max {y.max():g}"
    else:
        names, first = data.label_names or data.spelled, list(counts.items())[:CLASSES_SHOWN]
        shown = ", ".join(f"{label_text(a, names)}: {c:,}" for a, c in first)
        yield "labels", f"{len(counts)} ({shown}{', ...' if len(counts) > CLASSES_SHOWN else ''})"
    norms = seen.row_norms()
    yield "row norms", f"{norms.min():.6g} to {norms.max():.6g}"
    columns, low, high = seen.column_ranges()
    if columns.size:
        yield "values", f"{low.min():g} to {high.max():g}"
    empty = data.d - columns.size
    yield "constant columns", f"{empty + int(np.count_nonzero(low == high)):,} ({empty:,} without a value)"
    nearly = columns[nearly_constant(low, high)]
    if nearly.size:
        yield "nearly constant", f"{column_names(nearly, data.names)} within rounding of one value"
    widest = np.argsort(low / 2 - high / 2, kind="stable")[:WIDEST]  # halves, so that the difference does not overflow
    for j in () if seen.columns else widest:
        column = columns[j] + (seen.zero_based is False) if data.names is None else data.names[columns[j]]
        yield f"  column {column}", f"{low[j]:g} to {high[j]:g}"
    if data.d > WIDEST and not seen.columns:
        numbered = "" if data.names is not None else "; numbered as in the file"
        yield "", f"({WIDEST} widest of {data.d:,}{numbered})"
    for notice in data.notices:
        yield "notice", flags(notice)


@helped(
    "convert",
    "screenpath convert data.libsvm data.shards",
    "screenpath convert day1.libsvm.gz day2.libsvm.gz days --jobs 2 --resume",
)
@click.argument("data", metavar="DATA...", nargs=-1, type=Named())
@click.argument("out", metavar="OUT", type=Named())
@shared.flag(Option(
    "block_mb", 32.0, "number", valid=lambda mb: 1.0 <= mb <= 2048.0, demand="must lie between 1 and 2048", stated=True,
    help="Megabytes of text, or of a table's numbers, that make a shard; memory is about 8 times this for each job.",
    group="output",
))  # fmt: skip
@shared.flag(Option(
    "by", "rows", "choice", "Contents of a shard: columns for l1svm, huber and sparse-svm, -lad, -quantile; else rows.",
    choices=("rows", "columns"), stated=True, group="output", everyday=True,
))  # fmt: skip
@shared.flag(replace(o.JOBS, help="Threads that parse and write.", everyday=True))
@shared.flag(o.MAX_MEMORY)
@shared.flag(Option("n_features", None, "whole", "Number of features, if the files show fewer.", least=1, group="data"))
@shared.flag(Option("zero_based", False, "flag", "Feature indices start at 0 instead of 1.", group="data"))
@shared.flag(o.STORAGE, help="Form of the shards; auto decides by density.")
@shared.flag(o.DTYPE, help="Type of the stored values; float32 halves them.")
@shared.flags((*NAMING, *o.SPELLED))
@shared.flags((*AGAIN, o.QUIET, o.LOG_FORMAT))
def convert(data, out, quiet, log_format, **options):
    """Turn LIBSVM text, CSV (both plain, .gz, .bz2, .xz) or Parquet into a folder of binary shards.

    The rows of several files DATA are concatenated. Files are read in blocks, so they may be larger than memory. OUT
    appears when complete; after a crash repeat the command with --resume. All path commands accept OUT instead of a
    file: svm, lad, quantile and svr leave its rows on disk; l1svm, huber and sparse-svm, -lad, -quantile the columns of
    a folder made with --by columns. DATA may also be a folder of shards by rows, to convert it --by columns.
    """
    from screenpath.data.files.source import reading
    from screenpath.data.shards.convert import convert
    from screenpath.report.console import Console

    if not data:  # the parser takes a single name for OUT
        shards = f"{Path(out).name.partition('.')[0].strip('-') or 'data'}.shards"
        what = "there is one name, and convert needs two: DATA, and OUT for the folder of shards"
        raise UsageError(what, f"name the folder last: screenpath convert {shlex.quote(out)} {shlex.quote(shards)}")
    if options["resume"] and options["force"]:
        raise UsageError("--resume continues a conversion and --force replaces a folder", "use one of them")
    console = Console(quiet, None, flags, log_format)
    with console.busy("converting", reading):
        folder = convert(data, out, **options)
    for notice in folder.meta["notices"]:
        console.say(f"{folder.path}: {notice}")
    shape = f"{folder.n:,} rows, {folder.d:,} features, {folder.nnz:,} values"
    console.say(f"{folder.path}: {shape} in {folder.count} shard{'s' * (folder.count != 1)}")


@helped(
    "generate",
    "screenpath generate wang-toy1 --seed 0 -o toy1.libsvm",
    "screenpath generate hong-syn1 --n 1000 --p 5000 -o syn1.libsvm.gz",
)
@click.argument("name")
@click.option("--seed", default=0, show_default=True, type=Whole(min=0), help="Seed of the random numbers.")
@click.option("--n", type=Whole(min=1), help="Number of samples.  [default: the paper's]")
@click.option("--p", type=Whole(min=1), help="Number of features.  [default: the paper's]")
@click.option(
    "-o", "--out", **FILE, default="-", help="File (.gz, .bz2, .xz are compressed).  [default: stdout]"
)
@force_option
def generate(name, seed, n, p, out, force):
    """Write the synthetic data set NAME of the papers as LIBSVM text. The same seed gives the same bytes.

    \b
    wang-toy1, wang-toy2, wang-toy3   two Gaussians in the plane (Wang 2014)
    ogawa-toy                         two Gaussians in the plane (Ogawa 2013)
    ogawa2014-toy                     two Gaussians in the plane (Ogawa 2014)
    hong-syn1, hong-syn2, hong-syn3   sparse, two classes (Hong 2019)
    hong-syn-multi1, hong-syn-multi2, hong-syn-multi3
                                      sparse, five classes (Hong 2019)
    big                               two classes, 20 million rows x 50: 10 GB
    """
    from screenpath.data.files.generate import BIG, NAMES, big_text, checked_name
    from screenpath.data.files.write_libsvm import compressed
    from screenpath.store.outputs import Output

    checked_name(name, (*NAMES, BIG))
    output = Output(out, force)
    blocks = big_text(seed, n, p) if name == BIG else small_text(name, seed, n, p)
    with output.open(parents=True) as file, compressed(file, output.path.suffix) as text:
        for block in blocks:
            text.write(block)


def small_text(name, seed, n, p):
    from screenpath.data.files.generate import generate
    from screenpath.data.files.write_libsvm import libsvm_lines

    X, y = generate(name, seed, n=n, p=p)
    return (line.encode() for line in libsvm_lines(X, y))
