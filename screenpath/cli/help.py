"""Help pages: examples first, the everyday options of long commands or all of them in groups; suggestions for unknown
commands.
"""

from __future__ import annotations

import difflib
import os
from itertools import groupby
from typing import Any

import click
from click.shell_completion import get_completion_class

from screenpath.catalogue.option import GROUPS
from screenpath.catalogue.specs import SPECS, spec_of
from screenpath.errors import shown

OTHER = "other"
NAMES = 18  # characters of a short page for the names of options; longer ones have a line of their own
WHOLE = "screenpath.whole_page"  # key of a context that shows all options
SAID = 3  # most suggestions for an unknown command


class GroupedOption(click.Option):
    """An option with its group, one of ``catalogue.options.GROUPS``; everyday ones are on the short page."""

    def __init__(self, *arguments, group: str, everyday: bool = False, **more):
        super().__init__(*arguments, **more)
        self.group, self.everyday = group, everyday


class WithExamples:
    """A page that begins with examples, which are whole commands."""

    def __init__(self, *arguments, examples=(), **more):
        super().__init__(*arguments, **more)
        self.examples = tuple(examples)

    def format_examples(self, formatter):
        """Write the examples, one per line, not wrapped."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")

    def format_options(self, ctx, formatter):
        self.format_examples(formatter)
        super().format_options(ctx, formatter)  # type: ignore[misc]  # that of a command


def is_long(command: click.Command) -> bool:
    """Tell whether all options of a command have groups: then ``--help`` shows the everyday ones alone."""
    options = [one for one in command.params if isinstance(one, click.Option)]
    return bool(options) and all(isinstance(one, GroupedOption) for one in options)


def whole_page(ctx) -> str:
    ctx.meta[WHOLE] = True
    return ctx.command.get_help(ctx)


def _show_whole_page(ctx, param, value) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(whole_page(ctx))
        ctx.exit()


class Helped(WithExamples, click.Command):
    """A command whose page has examples, and options in groups if they have any."""

    def get_params(self, ctx):
        """Return the parameters; those of long commands end in ``--help-all``."""
        return [*super().get_params(ctx), HELP_ALL] if is_long(self) else super().get_params(ctx)

    def format_help(self, ctx, formatter):
        """Write the page: of a long command the everyday options, unless ``WHOLE`` asks for all."""
        if not is_long(self) or WHOLE in ctx.meta:
            return super().format_help(ctx, formatter)
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(" ".join(self.help.partition("\n\n")[0].split()))
        self.format_examples(formatter)
        with formatter.section("Everyday options"):
            records = (one.get_help_record(ctx) for one in self._options(ctx) if getattr(one, "everyday", True))
            formatter.write_dl([(names, _brief(text)) for names, text in records], NAMES)

    def format_options(self, ctx, formatter):
        """Write the examples, and the options as one list, or group by group if they have groups."""
        if not is_long(self):
            return super().format_options(ctx, formatter)
        self.format_examples(formatter)
        for name, several in groupby(self._options(ctx), _group):
            with formatter.section(f"{name[0].upper()}{name[1:]}"):
                formatter.write_dl([one.get_help_record(ctx) for one in several])

    def _options(self, ctx) -> list:
        options = (one for one in self.get_params(ctx) if isinstance(one, click.Option))
        return sorted(options, key=lambda one: (*GROUPS, OTHER).index(_group(one)))


def _group(option) -> str:
    return getattr(option, "group", OTHER)


def _brief(text: str) -> str:
    """Return the first sentence of an option's help, and its default without the range of values."""
    said, mark, default = text.partition("  [default: ")
    first = said.partition(". ")[0].rstrip(".")
    return f"{first}.{mark}{default.partition(']')[0].partition('; x>=')[0]}]" if mark else f"{first}."


HELP_ALL = click.Option(
    ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_whole_page,
    help="Show all options, in groups, and exit.",
)  # fmt: skip


def helped(name: str, *examples: str, group: Any = click):
    """Return the decorator of a command, of a group or by itself, with these examples on its page."""
    return group.command(name, cls=Helped, examples=examples)


class Suggesting(WithExamples, click.Group):
    """A group that suggests the nearest commands for an unknown one."""

    def resolve_command(self, ctx, args):
        name = args[0]
        if name in SPECS:
            name = spec_of(name, penalty_in(args)).name
            args = [name, *args[1:]]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise click.UsageError(self.no_such(ctx, name), ctx)
        return super().resolve_command(ctx, args)

    def no_such(self, ctx, name: str) -> str:
        name = shown(name)
        near = difflib.get_close_matches(name, self.list_commands(ctx), SAID)
        if near:
            return f"No such command '{name}'. Did you mean {' or '.join(repr(one) for one in near)}?"
        if os.path.exists(name):
            return f"No such command '{name}'. A command comes before the file: {ctx.command_path} svm {name}"
        return f"No such command '{name}'."


def penalty_in(args) -> str | None:
    """Return the penalty that the words of a command name, the last one of several."""
    text = " ".join(args).replace("--penalty=", "--penalty ")
    return (text.split("--penalty ")[1:] or [""])[-1].partition(" ")[0] or None


@helped("help", "screenpath help svm", "screenpath help cache warm")
@click.argument("names", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def command(ctx, names):
    """Show the page of a command, as COMMAND --help does; without a command, the list of all."""
    here = ctx.find_root()
    for name in names:
        if not isinstance(here.command, click.Group):
            raise click.UsageError(f"{here.command_path} has no commands of its own", ctx)
        _, found, _ = here.command.resolve_command(here, [name])
        here = click.Context(found, info_name=name, parent=here)
    click.echo(here.command.get_help(here))


@helped("completion", "screenpath completion bash >> ~/.bashrc", "screenpath completion fish")
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx, shell):
    """Print what makes SHELL complete commands, options and their values when Tab is pressed.

    Append it to the file that the shell reads at its start: ~/.bashrc, ~/.zshrc, or ~/.config/fish/config.fish.
    """
    click.echo(completion_of(shell, ctx.find_root().command))


def completion_of(shell: str, command: click.Command) -> str:
    """Return the script that makes a shell complete a command; ``setup.py`` puts those of all shells into the wheel."""
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(command, {}, "screenpath", "_SCREENPATH_COMPLETE").source()
