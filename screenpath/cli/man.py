"""The manual pages, one for each command, made of what click knows of it; ``setup.py`` puts them into the wheel."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from screenpath import __version__
from screenpath.cli.app import COMMANDS, cli


def pages() -> Iterator[tuple[str, str]]:
    """Yield names, such as ``screenpath-svm``, and texts for ``man``."""
    top = click.Context(cli, info_name="screenpath")
    yield "screenpath", _page(cli, top, cli.help or "")
    for name, (_, line) in COMMANDS.items():
        command = cli.get_command(top, name)
        assert command is not None
        yield f"screenpath-{name}", _page(command, click.Context(command, info_name=name, parent=top), line)


def _page(command: click.Command, ctx: click.Context, line: str) -> str:
    name = ctx.command_path.replace(" ", "-")
    usage = f"{ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}"
    parts = [f'.TH "{name.upper()}" 1 "" "screenpath {__version__}"', ".SH NAME", _text(f"{name} - {line}")]
    parts += [".SH SYNOPSIS", _text(usage), ".SH DESCRIPTION", _text(command.help or ""), _text(command.epilog or "")]
    if isinstance(command, click.Group):
        parts += [".SH COMMANDS", ", ".join(map(_text, command.list_commands(ctx)))]
    examples = getattr(command, "examples", ())
    parts += [".SH EXAMPLES", ".nf", *map(_text, examples), ".fi"] if examples else []
    records = (one.get_help_record(ctx) for one in command.get_params(ctx) if isinstance(one, click.Option))
    parts += [".SH OPTIONS", *(f".TP\n\\fB{_text(names)}\\fR\n{_text(said)}" for names, said in filter(None, records))]
    return "\n".join(filter(None, parts)) + "\n"


def _text(text: str) -> str:
    """Return text as troff has it: hyphens that can be copied, paragraphs, and lines that are left as they are."""
    found = inspect.cleandoc(text).replace("\\", "\\e").replace("-", "\\-")
    blocks = [f".nf\n{one[2:].strip(chr(10))}\n.fi" if one[:1] == "\b" else one for one in re.split(r"\n\s*\n", found)]
    lines = "\n.PP\n".join(blocks).splitlines()
    return "\n".join(line if line in (".PP", ".nf", ".fi") else re.sub(r"^\s*([.'])", r"\\&\1", line) for line in lines)
