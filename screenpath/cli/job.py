"""A run from the command line: a session with signals, a console and an exit code."""

from __future__ import annotations

import sys
import warnings

import click

from screenpath.catalogue.spec import Spec
from screenpath.cli.codes import BEGAN, DONE, UNCERTIFIED
from screenpath.cli.signals import Signals
from screenpath.data.safe.memory import MemoryLimit
from screenpath.engine.interrupts import Stopped
from screenpath.errors import flags


def run_job(spec: Spec, options: dict, kind=None) -> int:
    """Compute a path by a session (of another ``kind`` where one is named), write it, and return the exit code.

    That is 0 if every step is certified (and safe, with ``--audit``), 3 if not, 128 + n when stopped by signal n.
    """
    from screenpath.engine.session import Session
    from screenpath.report.console import Console

    began = click.get_current_context().find_root().obj[BEGAN]
    if options["quiet"]:
        warnings.simplefilter("ignore")
    console = Console(options["quiet"], options["progress"], flags, options["log_format"])
    command = ["screenpath", *sys.argv[1:]]
    try:
        with Signals(console.tell) as signals, signals.cutting(), MemoryLimit(options["max_memory"]).in_force():
            session = (kind or Session)(spec, options, console, signals, began, command)
            session.run()
    except Stopped as stop:  # before the first step: nothing to keep
        return 128 + stop.number
    return 128 + session.stopped if session.stopped else DONE if session.good else UNCERTIFIED
