"""The parts that need rich; imported only where stderr is a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text


class Bar:
    """Progress bar on stderr.

    Parameters
    ----------
    title : str
    total, done : int
    """

    def __init__(self, title: str, total: int, done: int):
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
        )
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(title, total=total, completed=done, note="")
        self._progress.start()

    def advance(self, step) -> None:
        """Count a step and show its number, its parameters and its gap."""
        where = " ".join(f"{name}={value:.3g}" for name, value in step.parameters.items())
        self._progress.update(self._task, advance=1, note=f"step {step.step} {where} gap {step.rel_gap:.0e}")

    def stop(self) -> None:
        """Remove the bar."""
        self._progress.stop()


def start_bar(title: str, total: int, done: int) -> Bar:
    """Show a progress bar."""
    return Bar(title, total, done)


def print_table(lines) -> None:
    """Print (what, value) pairs as a table on stderr."""
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for what, value in lines:
        table.add_row(what, Text(value))  # no markup: a folder may be called [red]
    Console(stderr=True).print(table)
