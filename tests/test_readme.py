"""The README's Python runs, and what it says about options and columns is true."""

import doctest
import re

import click

from screenpath.api import kernel as api_kernel
from screenpath.api import losses as api
from screenpath.cli.app import COMMANDS, cli
from screenpath.data import libsvm
from screenpath.rules import STATIC, parse_rule
from screenpath.solvers import NAMES
from screenpath.walk.step import COLUMNS
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()


def test_python_examples(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert doctest.testfile(str(ROOT / "README.md"), module_relative=False).failed == 0
    assert doctest.testmod(api).failed == 0
    assert doctest.testmod(api_kernel).failed == 0
    assert doctest.testmod(libsvm).failed == 0


def test_commands_rules_solvers_and_columns_are_documented():
    for name in COMMANDS:
        assert f"screenpath {name}" in README
    for name in (*STATIC, *NAMES, *COLUMNS):
        assert f"`{name}`" in README, name
    for rule in ("none", "gap", *STATIC, *(f"{name}+gap" for name in STATIC)):
        parse_rule(rule)


def test_options_of_the_readme_exist():
    known = {"--version", "--help", "--out"}
    with click.Context(cli) as context:
        commands = [cli.get_command(context, name) for name in COMMANDS]
        commands += [
            c.get_command(context, n) for c in commands if isinstance(c, click.Group) for n in c.list_commands(context)
        ]
        for command in commands:
            known |= {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", README))
    assert used <= known, used - known
