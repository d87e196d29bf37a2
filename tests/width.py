"""How wide the tests go.

`make test`, and pytest by itself, check every behaviour with as many random problems and combinations of parameters as
most faults need. A wide run (``SCREENPATH_WIDE=1``; the first part of `make fuzz`) has all of them:

- ``wide(few, many)`` is the number of random problems;
- of a test marked ``covering(t)`` a narrow run takes so many combinations of parameters that any values of ``t`` of
  them meet at least once: 1 is every value, 2 every pair of values;
- a test marked ``wide_only`` is left out: it has a smaller sibling, or looks at how the program is packed.

Where kernels run as plain Python (``NUMBA_DISABLE_JIT``), which takes far longer and only looks at lines and
subscripts, a test marked ``covering`` has every value once, and those marked ``compiled_only`` or ``wide_only`` are
left out.

What a run leaves out is counted as deselected. A test that is named (``file.py::test``) is run as it is.
"""

from __future__ import annotations

import os
from collections import defaultdict
from itertools import combinations

WIDE = os.environ.get("SCREENPATH_WIDE", "") not in ("", "0")
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "") not in ("", "0")


def wide(few: int, many: int) -> int:
    """Return how many random problems to try."""
    return many if WIDE else few


def covering(rows: list[dict], strength: int) -> list[int]:
    """Return the places of rows in which any ``strength`` values meet that meet in one of the rows.

    Greedy: of the rows left the first is taken that brings together the most values which have not met.
    """
    meetings = [set(combinations(sorted(row.items()), min(strength, len(row)))) for row in rows]
    left, chosen = set().union(*meetings), []
    while left:
        best = max(range(len(rows)), key=lambda k: len(meetings[k] & left))
        left -= meetings[best]
        chosen.append(best)
    return sorted(chosen)


def narrowed(items: list, plain: bool = False) -> tuple[list, list]:
    """Return the tests of a narrow run, and those left out; ``plain`` where kernels run as plain Python."""
    strongest, marks = (1, ("compiled_only", "wide_only")) if plain else (9, ("wide_only",))
    groups = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("covering")
        if mark is not None and hasattr(item, "callspec"):
            groups[item.nodeid.partition("[")[0], mark.args[0]].append(item)
    left = {item for item in items if any(map(item.get_closest_marker, marks))}
    for (_, strength), group in groups.items():
        rows = [{name: repr(value) for name, value in item.callspec.params.items()} for item in group]
        kept = covering(rows, min(strength, strongest))
        left |= set(group) - {group[k] for k in kept}
    return [item for item in items if item not in left], [item for item in items if item in left]
