"""Parts of a grid, for the tasks of a job array: where each begins and ends, and what cannot be divided."""

from __future__ import annotations

from itertools import groupby

from screenpath.catalogue.option import PART
from screenpath.errors import UsageError

# Options that exclude `part`, and why.
WHOLE = {
    "eps_path": "an eps-path finds each point from the one before",
    "reference": "`reference` is for a single problem",
    "chunk": "a chunk is one rule for several points of the grid",
    "certificate": "a certificate is of one run alone",
    "certify": "the certified bound is over all folds at once",
}


def check_part(options: dict) -> None:
    if options.get("part") is None:
        return
    for name, why in WHOLE.items():
        if options.get(name):
            raise UsageError(f"`part` and `{name}` do not go together: {why}", f"leave out `part` or `{name}`")


def is_part(value) -> bool:
    """Tell whether a value is a part I/K as the option accepts it."""
    if not (isinstance(value, str) and PART.fullmatch(value)):
        return False
    number, parts = numbers_of(value)
    return 1 <= number <= parts


def numbers_of(part: str) -> tuple[int, int]:
    found = PART.fullmatch(part)
    assert found is not None  # the option has been checked
    return int(found[1]), int(found[2])


def stretch(part: str, count: int, what: str) -> range:
    """Return the units, of ``count``, of a part: parts are consecutive and differ in size by at most one."""
    number, parts = numbers_of(part)
    if parts > count:
        raise UsageError(f"`part={part}`: {count} {what} make at most {count} parts", f"use `part=1/{count}` and so on")
    return range((number - 1) * count // parts, number * count // parts)


def points_of(part: str, grid) -> range:
    """Return the steps of a grid in a part; of a grid of (alpha, beta), whole values of beta.

    Values of beta do not depend on each other, so a part has the numbers of the whole grid.
    """
    if not isinstance(grid[0], tuple):
        return stretch(part, len(grid), "grid points")
    rows = [len(list(row)) for _, row in groupby(grid, key=lambda pair: pair[1])]
    chosen = stretch(part, len(rows), "values of beta")
    return range(sum(rows[: chosen.start]), sum(rows[: chosen.stop]))
