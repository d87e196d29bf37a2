"""The parts of the console that need rich; imported only if stderr is a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
from rich.table import Column, Table
from rich.text import Text

from screenpath.report.activity import Activity, duration

NARROW = 70  # terminals with fewer columns have no room for a bar


class Times(ProgressColumn):
    """The time gone, and the time left if it is known."""

    def __init__(self, activity: Activity):
        super().__init__()
        self.activity = activity

    def render(self, task) -> Text:
        left = self.activity.left
        return Text(duration(self.activity.gone) + ("" if left is None else f", {duration(left)} left"))


class Bar:
    def __init__(self, activity: Activity):
        console = Console(stderr=True)
        words: list[ProgressColumn] = [
            TextColumn("{task.description}", markup=False),
            TextColumn("{task.fields[count]}", markup=False),
            TextColumn("{task.fields[note]}", table_column=Column(no_wrap=True, overflow="crop"), markup=False),
        ]
        if console.width >= NARROW:
            words.insert(1, BarColumn(bar_width=None))
        self._progress = Progress(*words, Times(activity), console=console, transient=True)
        self._task = self._progress.add_task(activity.title, total=None, count="", note="")
        self.show(activity)
        self._progress.start()

    def show(self, activity: Activity) -> None:
        """Show the progress: the number of the last step, or the gap of the one under way."""
        note, where = "", activity.under_way()
        if where is not None and where[1] > 1.0:
            parameters, _, gap, _ = where
            note = f"{_values(parameters)} gap {'?' if gap is None else f'{gap:.0e}'}"
        elif activity.step is not None:
            note = f"step {activity.step.step} {_values(activity.step.parameters)} gap {activity.step.rel_gap:.0e}"
        total = activity.total if activity.total and not activity.bound else None
        self._progress.update(
            self._task, description=activity.title, total=total, completed=activity.done, note=note,
            count=activity.count().removesuffix(" done"),
        )  # fmt: skip

    def stop(self) -> None:
        self._progress.stop()


def _values(parameters: dict) -> str:
    return " ".join(f"{name}={value:.3g}" for name, value in parameters.items())


def print_table(lines) -> None:
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for what, value in lines:
        table.add_row(what, Text(value))  # no markup: a folder may be called [red]
    Console(stderr=True).print(table)
