"""Which steps of the folds are not certified, in one line: they make a cross-validation end with a warning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from screenpath.walk.step import BUDGET, CERTIFIED, FAILED, ROUNDING

# What helps, by the status of a step; the reason is that of the status, as folds keep no other.
ADVICE = {
    BUDGET: "the iterations or the time allowed were used up: raise `max_epochs`",
    ROUNDING: "rounding is in the way: raise `tol`, or scale the data with `scale`",
    FAILED: "no gap could be proven: scale the data with `scale`",
}


def unmet_line(rows: Sequence[Mapping], asked: int) -> str | None:
    """Return what is to be said of the rows of folds.csv, of which there should be ``asked``; None if all is well."""
    unmet = [row for row in rows if row["status"] != CERTIFIED]
    if not unmet:
        late = f"{asked - len(rows)} of {asked} steps of the folds were not reached in time: go on with `resume`"
        return late if len(rows) < asked else None
    first = unmet[0]
    repeat = f"repeat {first['repeat']}, " if any(int(row["repeat"]) for row in rows) else ""
    where = f"{repeat}fold {first['fold']}, step {first['step']}"
    more = f" and {len(unmet) - 1} more" if len(unmet) > 1 else ""
    why = f"{first['status']}: {ADVICE.get(first['status'], 'see folds.csv')}"
    return f"{len(unmet)} of {asked} steps of the folds are not certified ({where}{more}; {why})"
