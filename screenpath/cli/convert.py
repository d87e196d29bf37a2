"""``screenpath convert``: data files to binary shards."""

from __future__ import annotations

import click

from screenpath.catalogue.options import DTYPE, LOG_FORMAT, MAX_MEMORY, ONE_HOT, QUIET, STORAGE, TARGET
from screenpath.cli import options as shared
from screenpath.cli.help import helped
from screenpath.errors import UsageError, flags


@helped(
    "convert",
    "screenpath convert data.libsvm data.shards",
    "screenpath convert day1.libsvm.gz day2.libsvm.gz days --jobs 2 --resume",
)
@click.argument("data", metavar="DATA...", nargs=-1, required=True, type=click.Path())
@click.argument("out", metavar="OUT", type=click.Path())
@click.option(
    "--block-mb",
    default=32.0,
    show_default=True,
    type=shared.Between(1.0, 2048.0),
    help="Megabytes of text, or of a table's numbers, that make a shard; memory is about 8 times this for each job.",
)
@click.option(
    "--by",
    default="rows",
    show_default=True,
    type=click.Choice(["rows", "columns"]),
    help="What a shard has whole: columns for l1svm, rows for svm, lad, quantile and svr.",
)
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(min=1), help="Threads that parse and write.")
@shared.flag(MAX_MEMORY)
@click.option("--n-features", type=click.IntRange(min=1), help="Number of features, where the files show fewer.")
@click.option("--zero-based", is_flag=True, help="Feature indices start at 0 instead of 1.")
@shared.flag(STORAGE, help="Form of the shards; auto decides by density.")
@shared.flag(DTYPE, help="Type of the stored values; float32 halves them.")
@shared.flag(TARGET)
@shared.flag(ONE_HOT)
@click.option("--resume", is_flag=True, help="Keep the shards that a stopped conversion has made (or start it).")
@click.option("--force", is_flag=True, help="Replace an older folder.")
@shared.flag(QUIET)
@shared.flag(LOG_FORMAT)
def command(data, out, quiet, log_format, **options):
    """Turn LIBSVM text, CSV (both plain, .gz, .bz2, .xz) or Parquet into a folder of binary shards.

    Several files DATA follow one another. They are read in blocks, so they may be larger than memory. OUT appears when
    it is complete: after a crash repeat the command with --resume. All path commands take OUT in place of a file; svm,
    lad, quantile and svr leave its rows on disk, l1svm and sparse-svm the columns of a folder that was made with --by
    columns. Such a folder can be made of one by rows, too.
    """
    from screenpath.data.files.source import reading
    from screenpath.data.shards.convert import convert
    from screenpath.report.console import Console

    if options["resume"] and options["force"]:
        raise UsageError("--resume continues a conversion and --force replaces a folder", "use one of them")
    console = Console(quiet, None, flags, log_format)
    with console.busy("converting", reading):
        folder = convert(data, out, **options)
    for notice in folder.meta["notices"]:
        console.say(f"{folder.path}: {notice}")
    shape = f"{folder.n:,} rows, {folder.d:,} features, {folder.nnz:,} values"
    console.say(f"{folder.path}: {shape} in {folder.count} shard{'s' * (folder.count != 1)}")
