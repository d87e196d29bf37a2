"""One-vs-one: what each pair of labels claims is checked as a run of its two labels, on their rows alone.

What the run folder says of a step are sums over the pairs, and the coefficients of each.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from screenpath.verify.file import CERTIFIED
from screenpath.verify.folds import Part
from screenpath.verify.products import check as check_steps


class ReadSource:
    """A source whose blocks have been read."""

    def __init__(self, source, blocks: list):
        self.source, self.blocks, self.n = source, blocks, source.n

    def __getattr__(self, name: str):
        return getattr(self.source, name)

    def passed(self, indices: bool):
        yield from self.blocks


class JoinedStep:
    """What was found about the pairs at one step; ``rows`` are those of each, of ``n``."""

    def __init__(self, parts: list, rows: list[np.ndarray], n: int):
        self.entries = [pair.entry for pair in parts]
        self.entry = joined(self.entries)
        self.nnz = sum(pair.nnz for pair in parts)
        self.counts = {name: [sum(pair.counts[name][k] for pair in parts) for k in (0, 1)] for name in parts[0].counts}
        self.solution = np.array([coefficients(*one, n) for one in zip(parts, rows, strict=True)])


def joined(entries: list[dict]) -> dict:
    """Return a step of all pairs from those of each; sums where it is certified."""
    shared = {name: entries[0][name] for name in ("step", "status", "C")}
    if shared["status"] != CERTIFIED:
        return shared
    return {**shared, **{name: sum(entry[name] for entry in entries) for name in ("primal", "primal_error", "gap")}}


def coefficients(pair, rows: np.ndarray, n: int) -> np.ndarray:
    """Return what the run reports of a pair: behind a kernel coefficients of all rows."""
    if not pair.model.kernel:
        return pair.solution
    found = np.append(np.zeros(n), pair.solution[rows.size :])
    found[rows] = pair.solution[: rows.size]
    return found


def check_pairs(header: dict, several: list[list], source, judge, proven) -> tuple[list[dict], dict]:
    """Return the steps of all pairs, and what was found of those that claim anything, by number; two passes.

    ``judge(name, pair)`` hears of each pair of labels, and of each step; ``proven`` is that of :func:`check_steps`.
    """
    held = ReadSource(source, list(source.passed(indices=True)))
    for _ in source.passed(indices=False):  # that these are the data of the certificate
        pass
    y = np.concatenate([block.labels for block in held.blocks])
    steps = [joined(list(entries)) for entries in zip(*several, strict=True)]
    found: dict[int, list] = {entry["step"]: [] for entry in steps if entry["status"] == CERTIFIED}
    places: list[np.ndarray] = []
    for (one, other), entries in zip(combinations(source.mapping()["classes"], 2), several, strict=True):
        rows = np.flatnonzero((y == one) | (y == other))
        own = {**header, "labels": {"+1": one, "-1": other}}
        own |= {"weights": header["weights"][rows]} if "weights" in header else {}
        if [(entry["status"], entry["C"]) for entry in entries] != [(step["status"], step["C"]) for step in steps]:
            raise ValueError("the pairs have not the same steps")
        claimed = [entry for entry in entries if entry["status"] == CERTIFIED]
        for pair in check_steps(own, claimed, Part(held, rows), proven):
            judge(len(places), pair)
            found[pair.entry["step"]].append(pair)
        places.append(rows)
    return steps, {k: JoinedStep(parts, places, source.n) for k, parts in found.items()}
