"""``screenpath rules``: the screening rules."""

from __future__ import annotations

import textwrap

import click

from screenpath.catalogue.losses import LOSSES
from screenpath.catalogue.specs import SPECS
from screenpath.cli.help import helped
from screenpath.cli.options import say

WIDTH, NAMES = 60, 12  # characters of a line, and of a name in it


@helped("rules", "screenpath rules", "screenpath rules l1svm")
@click.argument("model", required=False, type=click.Choice(list(SPECS)))
def command(model):
    """List the screening rules of MODEL, or of all models, with a line each.

    They are what --rule takes; each but none, heuristic and sieve also goes with +gap.
    """
    from screenpath.catalogue.rules import rules_of

    losses = ", ".join(LOSSES) if model is None else model
    pages = [] if model not in (None, *LOSSES) else [(losses, "svm", False, False)]
    pages += [(f"{losses} --intercept free", "svm", False, True)] if pages else []
    pages += [("svm --kernel", "svm", True, False)] if model in (None, "svm") else []
    pages += [("svm --kernel --intercept free", "svm", True, True)] if model in (None, "svm") else []
    pages += [(name, name, False, False) for name in SPECS if name not in LOSSES and model in (None, name)]
    lines = []
    for title, name, kernel, free in pages:
        lines.append(f"{title} (default {SPECS[name].default_rule})")
        for rule, text in rules_of(name, kernel, free).items():
            head = f"  {rule:<{NAMES - 2}}"
            lines += textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=" " * NAMES)
    lines += textwrap.wrap("X+gap (in either order, but for sparse-svm): X before each solve, gap inside it.", WIDTH)
    say("\n".join(lines) + "\n")
