"""``screenpath inspect``: what a data file holds, and everything that is wrong with it."""

from __future__ import annotations

import click

from screenpath.catalogue.options import ONE_HOT, TARGET
from screenpath.cli.codes import DONE, ERROR
from screenpath.cli.help import helped
from screenpath.cli.options import flag
from screenpath.errors import flags, shown

COLUMNS = 5  # columns named in the lists of widest ranges
CLASSES_SHOWN = 20
WIDEST_NAME = 40  # characters of a name up to which values stand below each other


@helped("inspect", "screenpath inspect data.libsvm", "screenpath inspect table.csv --target y --one-hot colour")
@click.argument("data")
@click.option("--zero-based", is_flag=True, help="Indices in the file start at 0.")
@click.option(
    "--max-faults", default=20, show_default=True, type=click.IntRange(min=1), help="Stop reading at this many faults."
)
@flag(TARGET)
@flag(ONE_HOT)
def command(data, zero_based, max_faults, target, one_hot):
    """Show shape, density, labels, column ranges and all faults of DATA (LIBSVM text, CSV, Parquet; '-' for stdin).

    DATA may be a folder of shards: every file in it is compared with what convert wrote, and shards with a fault are
    left out of the figures. The exit code is 1 if there is a fault or no sample.
    """
    from screenpath.inputs.inspect import inspect

    seen = inspect(data, max_faults=max_faults, zero_based=zero_based, target=target, one_hot=one_hot)
    if seen.data is not None:
        facts = list(_facts(seen))
        width = min(max(17, *(len(shown(name)) for name, _ in facts)), WIDEST_NAME)
        for name, value in facts:
            click.echo(shown(f"{name:<{width}} {value}"))
    for fault in seen.faults:
        click.echo(f"fault: {shown(str(fault))}\n  {shown(flags(fault.hint))}")
    if not seen.complete:
        click.echo(f"stopped at {len(seen.faults)} faults; --max-faults N shows more")
    if seen.data is None:
        click.echo("no sample without fault")
    return ERROR if seen.faults or seen.data is None else DONE


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
    widest = np.argsort(low / 2 - high / 2, kind="stable")[:COLUMNS]  # halves: the difference may not overflow
    for j in widest:
        column = columns[j] + (seen.zero_based is False) if data.names is None else data.names[columns[j]]
        yield f"  column {column}", f"{low[j]:g} to {high[j]:g}"
    if data.d > COLUMNS:
        numbered = "" if data.names is not None else "; numbered as in the file"
        yield "", f"({COLUMNS} widest of {data.d:,}{numbered})"
    for notice in data.notices:
        yield "notice", flags(notice)
