"""Flags: the options of :mod:`screenpath.catalogue.options` in the shell, exit codes, and printing."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from screenpath.catalogue.option import Option
from screenpath.catalogue.options import FORCE, QUIET
from screenpath.cli.help import GroupedOption
from screenpath.data.words.numerals import is_number
from screenpath.errors import UsageError, failures_named
from screenpath.errors import flags as shell

DONE, ERROR, USAGE, UNCERTIFIED = 0, 1, 2, 3  # exit codes; and 128 + signal number when stopped by a signal
# Entries of the context's object: the `time.monotonic()` value at which the command began, and the form of messages.
BEGAN, LOG_FORMAT = "began", "log_format"
# What stands in the help for a value of a kind of option.
NAMES = {"numbers": "NUMBERS", "size": "SIZE", "label": "LABEL"}
NAMES |= dict.fromkeys(("number", "positive", "share"), "NUMBER")


def stack(*decorators):
    """Join decorators into one; the options appear in --help in the given order."""

    def apply(function):
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


class Named(click.Path):
    """The name of a file or folder. An empty one, of a variable that the shell does not know, would be this folder."""

    def convert(self, value, param, ctx):
        if value == "":
            self.fail("the name is empty: is a variable of the shell not set?", param, ctx)
        return super().convert(value, param, ctx)


FILE: dict = {"metavar": "FILE", "type": Named()}


class Whole(click.IntRange):
    """A whole number; for click, a text is "not a valid integer range"."""

    def convert(self, value, param, ctx):
        try:
            return super().convert(int(value), param, ctx)
        except ValueError:
            self.fail(f"'{value}' is not a whole number", param, ctx)


class Checked(click.ParamType):
    """A value that the option itself checks; numbers are those of the files that are read."""

    def __init__(self, option: Option):
        self.option, self.name = option, NAMES.get(option.kind, "TEXT")

    def convert(self, value, param, ctx):
        if isinstance(value, str) and self.name in ("NUMBER", "NUMBERS"):
            tokens = value.split(",") if self.name == "NUMBERS" else [value]
            wrong = [token.strip() for token in tokens if not is_number(token)]
            if wrong:
                example = "; write for example 0.1,1,10" if self.name == "NUMBERS" else ""
                self.fail(f"'{wrong[0]}' is not a number{example}", param, ctx)
        try:
            return self.option.checked(value)
        except UsageError as error:
            self.fail(shell("; ".join(filter(None, (error.message, error.hint)))), param, ctx)


class Choice(click.Choice):
    """One of the choices of an option."""

    def __init__(self, option: Option):
        super().__init__(list(option.choices))
        self.option = option

    def convert(self, value, param, ctx):
        self.option.refuse(value)
        return super().convert(value, param, ctx)


def _type(option: Option):
    kinds: dict[str, Callable] = {
        "whole": lambda: Checked(option) if option.choices else Whole(option.least, option.most),
        "choice": lambda: Choice(option),
        "path": Named,
        **dict.fromkeys((*NAMES, "part", "choices", "constraint"), lambda: Checked(option)),
    }
    return kinds[option.kind]() if option.kind in kinds else None


def _remember(ctx, param, value):
    """Store the format of the log as soon as it is read, so that errors in other options use it."""
    ctx.find_root().ensure_object(dict)[LOG_FORMAT] = value
    return value


def flag(option: Option, *, help: str | None = None, **changed):
    """Return the decorator that adds an option to a command; keywords of ``click.option`` override its own."""
    name = option.name.replace("_", "-")
    names = [f"--{name}"] if option.short is None else [option.short, f"--{name}"]
    how: dict = {"help": shell(help or option.said)}
    if option.kind == "flag":
        how["is_flag"] = True
    elif option.kind == "switch":
        names, how["default"] = [f"--{name}/--no-{name}"], None
    elif option.kind == "texts":
        how.update(multiple=True, metavar=option.metavar)
    else:
        how.update(type=_type(option), metavar=option.metavar, default=option.default, show_default=option.stated)
    if option.name == LOG_FORMAT:
        how.update(is_eager=True, callback=_remember)
    return click.option(*names, cls=GroupedOption, group=option.group, everyday=option.everyday, **{**how, **changed})


def flags(options):
    return stack(*(flag(one) for one in options))


def say(text: str) -> None:
    """Print text for people to standard output; characters that its encoding lacks are escaped."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    with failures_named("standard output"):
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)


data_argument = click.argument("data", metavar="DATA", type=Named())
force_option = flag(FORCE)
quiet_option = flag(QUIET)
