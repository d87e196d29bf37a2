"""Help pages: options in groups, examples at the end, and suggestions for unknown commands."""

from __future__ import annotations

import difflib
import os
from typing import Any

import click

from screenpath.catalogue.option import GROUPS
from screenpath.errors import flags, shown

OTHER = "other"
SAID = 3  # most suggestions for an unknown command


class GroupedOption(click.Option):
    """An option with its group, one of ``catalogue.options.GROUPS``."""

    def __init__(self, *arguments, group: str, **more):
        super().__init__(*arguments, **more)
        self.group = group


class WithExamples:
    """A page that ends in examples, which are whole commands."""

    def __init__(self, *arguments, examples=(), **more):
        super().__init__(*arguments, **more)
        self.examples = tuple(examples)

    def format_epilog(self, ctx, formatter):
        """Write the examples, one per line, not wrapped."""
        super().format_epilog(ctx, formatter)  # type: ignore[misc]  # that of a command
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


class Helped(WithExamples, click.Command):
    """A command whose page has examples, and options in groups if they have any."""

    def format_options(self, ctx, formatter):
        """Write the options group by group if each has one; else as one list."""
        if not all(isinstance(one, GroupedOption) for one in self.params if isinstance(one, click.Option)):
            super().format_options(ctx, formatter)
            return
        groups: dict[str, list] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and not isinstance(parameter, click.Argument):
                groups.setdefault(getattr(parameter, "group", OTHER), []).append(record)
        for name in (*GROUPS, OTHER):
            if name in groups:
                with formatter.section(f"{name[0].upper()}{name[1:]}"):
                    formatter.write_dl(groups[name])


def helped(name: str, *examples: str, group: Any = click):
    """Return the decorator of a command, of a group or by itself, with these examples on its page."""
    return group.command(name, cls=Helped, examples=examples)


class Suggesting(WithExamples, click.Group):
    """A group that suggests the nearest commands for an unknown one."""

    def resolve_command(self, ctx, args):
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise click.UsageError(self.no_such(ctx, name), ctx)
        return super().resolve_command(ctx, args)

    def no_such(self, ctx, name: str) -> str:
        """Return the message for an unknown command."""
        name = shown(name)
        near = difflib.get_close_matches(name, self.list_commands(ctx), SAID)
        if near:
            return f"No such command '{name}'. Did you mean {' or '.join(repr(one) for one in near)}?"
        if os.path.exists(name):
            return f"No such command '{name}'. A command comes before the file: {ctx.command_path} svm {name}"
        return f"No such command '{name}'."


def examples_of(spec) -> tuple:
    """Return two commands for the page of a model."""
    first = f"screenpath {spec.name} data.libsvm --scale standard" + ("" if spec.free_bias else " --bias 1")
    return first, f"screenpath {spec.name} data.libsvm {flags(spec.example)}"


@helped("help", "screenpath help svm", "screenpath help cache pack")
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
