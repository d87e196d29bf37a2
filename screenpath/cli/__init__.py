"""The command line. Commands are imported when they are called, so that ``--help`` stays quick."""

from screenpath.cli.app import main

__all__ = ["main"]
