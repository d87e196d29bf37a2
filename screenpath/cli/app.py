"""Entry point: the group of commands, error messages and exit codes."""

from __future__ import annotations

import difflib
import errno
import logging
import os
import sys
import textwrap
import time
import warnings
from functools import partial
from importlib import import_module
from itertools import pairwise

import click

from screenpath import __version__
from screenpath.catalogue.specs import SPECS
from screenpath.cli.help import Suggesting, is_long
from screenpath.cli.models import command_of, option_of_others
from screenpath.cli.options import BEGAN, DONE, ERROR, LOG_FORMAT, USAGE, say
from screenpath.errors import ScreenpathError, fitted, flags, shown, shown_lines, unheard
from screenpath.report.console import Console

NEAR = 0.76  # likeness from which one option may be meant by another: by less, click takes --overwrite for --solver
# Sections of the help. Command: its place below screenpath.cli (None for a model) and the line that --help shows.
SECTIONS: dict[str, dict[str, tuple]] = {
    "Fit a path": {
        **{name: (None, f"Path of {spec.title.partition(' over ')[0]}.") for name, spec in SPECS.items()},
        "merge": ("results:merge", "Join the runs of a job array: parts of a grid or of folds."),
    },
    "Choose and use": {
        "cv": ("models:cv", "Cross-validate a path, choose a step, and fit it to all data."),
        "show": ("results:show", "Describe a run and one of its steps: scores, features, proof."),
        "runs": ("results:runs", "List the runs below this folder, or compare some by their scores."),
        "loo": ("loo:loo", "Leave out each training row in turn: exact errors, without a refit."),
        "influence": ("loo:influence", "Show which training rows move the model most, exactly."),
        "predict": ("predict:predict", "Predict labels, decision values or regression values of new data."),
        "export": ("export:export", "Write a step as a model file: LIBLINEAR, ONNX, scikit-learn, JSON."),
        "reduce": ("export:reduce", "Write small data with the optimum of a run at all C of a range."),
        "plot": ("results:plot", "Draw pictures of a run: PNG, SVG, PDF, or on the terminal."),
        "report": ("results:report", "Write one self-contained HTML page about a run."),
    },
    "Trust and study": {
        "certify": ("certify:certify", "Prove how far a model made elsewhere is from the optimum."),
        "verify": ("results:verify", "Check a run's certificate by code that did not make it."),
        "compare-rules": ("rules:compare_rules", "Walk a path by several rules and print their speed-ups."),
        "rules": ("rules:rules", "List the screening rules of each model, a line each."),
    },
    "Data and set-up": {
        "inspect": ("files:inspect", "Show what a data file holds, and all that is wrong with it."),
        "convert": ("files:convert", "Turn data files into binary shards, for data larger than memory."),
        "generate": ("files:generate", "Write one of the papers' synthetic data sets as LIBSVM text."),
        "cache": ("cache:cache", "Compile the numerical kernels ahead of time."),
        "info": ("cache:info", "Show versions, processor, threads, and the cache of kernels."),
        "completion": ("help:completion", "Make bash, zsh or fish complete commands and options."),
        "help": ("help:command", "Show the page of a command: screenpath help svm."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}

ALIASES = {"compare": "compare-rules"}  # names of earlier versions, not listed

# Hints for errors of the operating system without a message of their own.
FREE_SPACE = "free some space and run it again, with --resume where the command has it"
CHECK_NAME = "check the name, and that the folders above it are there"
CHECK_RIGHTS = "choose another place, or ask for the right to read or write there"
SYSTEM_HINTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), FREE_SPACE),
    errno.EFBIG: "allow larger files (ulimit -f) and run it again, with --resume where the command has it",
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP), CHECK_NAME),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), CHECK_RIGHTS),
}

EPILOG = """\b
Exit codes:
  0    every step is certified
  1    data or runtime error
  2    wrong usage
  3    written, but a step, or row of loo, is not certified (--audit: unsafe)
  130  stopped by Ctrl-C; finished steps are kept, --resume continues
  143  stopped by SIGTERM; finished steps are kept, --resume continues
"""

FRONT = """screenpath computes whole regularization paths of large-margin models, with a proof for every step.

Try first:
  screenpath svm data.csv --scale standard       SVMs at 100 values of C; results in runs/svm-data
  screenpath show                                what the newest run fitted and proved
  screenpath cv svm data.csv --scale standard    choose C by cross-validation

{}
screenpath --help describes each command, screenpath COMMAND --help its options.
The pages: README.md and examples/guide/ of the source.
"""


class LazyGroup(Suggesting):
    """Group whose commands are imported when used; the list of commands needs no import."""

    def list_commands(self, ctx):
        return list(COMMANDS)

    def get_command(self, ctx, name):
        name = ALIASES.get(name, name)
        if name not in COMMANDS:
            return None
        if name in SPECS:
            return command_of(name)
        module, _, command = COMMANDS[name][0].partition(":")
        return getattr(import_module(f"screenpath.cli.{module}"), command)

    def format_commands(self, ctx, formatter):
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in section.items()])


@click.group(
    cls=LazyGroup, epilog=EPILOG, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("-V", "--version", is_flag=True, help="Show the version and exit.")
@click.option("--json", "as_json", is_flag=True, help="With --version: as JSON, with all that screenpath info shows.")
@click.pass_context
def cli(ctx, version, as_json):
    """Certified regularization paths of large-margin models with safe screening."""
    if as_json and not version:
        raise click.UsageError("--json belongs to --version: screenpath --version --json", ctx)
    if version:
        if as_json:
            ctx.invoke(import_module("screenpath.cli.cache").info, as_json=True)
        else:
            say(f"screenpath, version {__version__}\n")
        ctx.exit()
    if ctx.invoked_subcommand is None:
        lines = (f"{title:<16} {', '.join(section)}" for title, section in SECTIONS.items())
        wrapped = (textwrap.fill(line, 80, subsequent_indent=" " * 17, break_on_hyphens=False) for line in lines)
        say(FRONT.format("".join(f"{line}\n" for line in wrapped)))


def run(arguments=None, began: float | None = None) -> int:
    """Run the command line, ``--time-limit`` counting from ``began``; errors become messages. Return the exit code."""
    known = {BEGAN: time.monotonic() if began is None else began, LOG_FORMAT: "text"}
    words = [str(word) for word in (sys.argv[1:] if arguments is None else arguments)]
    if "--log-format=json" in words or ("--log-format", "json") in pairwise(words):  # for messages before it is parsed
        known[LOG_FORMAT] = "json"
    logging.getLogger("screenpath").addHandler(logging.NullHandler())  # commands print their own messages
    with warnings.catch_warnings():
        warnings.showwarning = partial(_show_warning, known)
        code = _run(arguments, known)
    for number, stream in enumerate((sys.stdout, sys.stderr), 1):
        try:
            stream.flush()
        except OSError:  # reported already, or nobody reads it; the interpreter would try again and change the code
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    return code


def _run(arguments, known: dict) -> int:
    fail = partial(_failed, known)
    try:
        code = cli.main(args=arguments, prog_name="screenpath", standalone_mode=False, obj=known)
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        other, page = None, "help"
        if context and getattr(error, "option_name", None) == "--help-all":  # a page that has all options on --help
            say(f"{context.get_help()}\n")
            return DONE
        if isinstance(error, click.NoSuchOption) and context:
            page = "help-all" if is_long(context.command) else page
            other = option_of_others(error.option_name, context)
            near = difflib.get_close_matches(error.option_name, error.possibilities or (), 3, NEAR)
            error = click.NoSuchOption(error.option_name, possibilities=near, ctx=context)
        hint = f"see {context.command_path} --{page}" if context else None
        if isinstance(error, click.MissingParameter) and context and isinstance(error.param, click.Argument):
            hint = f"{' '.join(context.get_usage().split()).removeprefix('Usage: ')}; {hint}"
        return fail(other or error.format_message(), hint, USAGE)
    except (click.Abort, KeyboardInterrupt) as error:
        if isinstance(error.__cause__, EOFError):  # as of byte code that a full disk has cut off; click calls it a stop
            return fail(f"a file ends too early: {error.__cause__}", "delete the folders __pycache__ of the package")
        return fail("stopped by Ctrl-C", code=130)
    except ScreenpathError as error:
        message = "\n  ".join(shown(flags(line)) for line in (error.message, *error.more))
        return fail(message, error.hint and shown(flags(error.hint)), error.exit_code)
    except MemoryError:
        return fail("not enough memory", "try --storage sparse, --dtype float32, or a machine with more memory")
    except BrokenPipeError:  # the reader has gone (`| head`); click does the same
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # discards what is still buffered
        return ERROR
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return fail(shown(f"{where}{error.strerror or error}"), SYSTEM_HINTS.get(error.errno))


def _show_warning(known: dict, message, category, filename, lineno, file=None, line=None) -> None:
    if known[LOG_FORMAT] == "json":
        Console(False, None, flags, "json").tell(str(message), "warning", "warning")
        return
    _say(f"warning: {flags(str(message))}")


def _failed(known: dict, message: str, hint: str | None = None, code: int = ERROR) -> int:
    if known[LOG_FORMAT] == "json":
        Console(False, None, str, "json").tell(message, "error", "error", hint=hint, exit_code=code)
        return code
    _say(f"error: {message}" + (f"\n  {hint}" if hint else ""))
    return code


def _say(text: str) -> None:
    with unheard():
        click.echo("\n".join(fitted(line) for line in shown_lines(text).split("\n")), err=True)
