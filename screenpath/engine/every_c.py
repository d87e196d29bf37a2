"""Leave-one-out for every C of a run's range: where each row's held-out label is proven."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from screenpath.data.words.labels import label_text
from screenpath.data.words.tables import csv_text, finite
from screenpath.engine.again import problem_again
from screenpath.engine.every_value import EveryValue, every_value
from screenpath.engine.leave_out import TOL, check_left_out, say_cost
from screenpath.engine.path import Path
from screenpath.errors import UsageError
from screenpath.inputs.run_data import training_path
from screenpath.kernels.compilation import ensure_compiled
from screenpath.solve.polish import polished
from screenpath.solve.removal import Solution
from screenpath.solve.sides import Held, held
from screenpath.store.open import Run

UNPROVEN = 0.01  # share of (row, logarithm of C) above which values of C are added
ROUNDS, NARROW = 6, 1e-3  # in which they are, each in the middle of a segment of at least this width in log C


@dataclass(frozen=True, repr=False)
class EveryC:
    """Proven labels of held-out rows for every C between the ends of a run."""

    run: Run
    C: np.ndarray  # shape (k,): of the steps, and of further solutions that too coarse a grid has needed; increasing
    trained: np.ndarray  # shape (k,): errors of the models of all rows there
    signs: np.ndarray  # shape (n,): of the labels; +1 is the larger one
    held: Held
    ids: tuple[str, ...] | None
    seconds: float

    def __repr__(self) -> str:
        low, high = self.errors
        return f"<EveryC: {self.run.path}, C from {self.C[0]:g} to {self.C[-1]:g}, {low} to {high} errors at best>"

    @cached_property
    def curve(self) -> np.ndarray:
        """Return ranges of C with bounds on the number of errors, shape (m, 4): from, to, at least, at most."""
        parts, whole = self.held.parts, self.held.whole
        cuts = np.unique(np.concatenate([self.C, parts[:, 3], parts[:, 4]]))
        segment = np.clip(np.searchsorted(self.C, cuts[:-1], side="right") - 1, 0, self.C.size - 2)
        counts = []
        for side in (-1.0, 1.0):
            wrong = parts[parts[:, 2] == side * self.signs[parts[:, 0].astype(np.int64)]]
            steps = np.zeros(cuts.size, dtype=np.int64)
            for at, sign in ((3, 1), (4, -1)):
                np.add.at(steps, np.searchsorted(cuts, wrong[:, at]), sign)
            counts.append(np.count_nonzero(whole == side * self.signs, axis=1)[segment] + np.cumsum(steps)[:-1])
        wrong, right = counts
        same = np.append(False, (np.diff(wrong) == 0) & (np.diff(right) == 0))
        starts = np.flatnonzero(~same)
        ends = np.append(cuts[starts[1:]], cuts[-1])
        return np.column_stack([cuts[starts], ends, wrong[starts], self.signs.size - right[starts]])

    @property
    def measure(self) -> str:
        """Return what the curve has."""
        return f"errors of {self.signs.size:,} rows"

    @property
    def errors(self) -> tuple[int, int]:
        """Return the fewest errors of any C, at least and at most."""
        return int(self.curve[:, 2].min()), int(self.curve[:, 3].min())

    @property
    def unproven(self) -> float:
        """Return the share of (row, logarithm of C) for which no label is proven."""
        return float(np.average(self.held.unproven, weights=np.diff(np.log(self.C))))

    @property
    def at_steps(self) -> np.ndarray:
        """Return bounds on the number of errors at the steps themselves, shape (k, 2)."""
        wrong, right = (np.count_nonzero(self.held.at == side * self.signs, axis=1) for side in (-1, 1))
        return np.column_stack([wrong, self.signs.size - right])

    def intervals(self) -> list[list[tuple[int, float, float]]]:
        """Return for each row where its held-out label is proven: sign of the label, from C, to C."""
        found: list[list] = [[] for _ in range(self.signs.size)]
        same = self.held.whole[0] * (self.held.whole == self.held.whole[0]).all(axis=0)
        parts = self.held.parts[np.lexsort((self.held.parts[:, 3], self.held.parts[:, 0]))].tolist()
        own: dict[int, list] = {}
        for row, _, side, low, high in parts:
            own.setdefault(int(row), []).append((int(side), low, high))
        ends = list(pairwise(self.C.tolist()))
        for row, intervals in enumerate(found):
            if same[row]:
                intervals.append((int(same[row]), float(self.C[0]), float(self.C[-1])))
                continue
            sides = self.held.whole[:, row].tolist()
            pieces = own.get(row, []) + [(side, *C) for side, C in zip(sides, ends, strict=True) if side]
            for side, low, high in sorted(pieces, key=lambda piece: piece[1:]):
                if intervals and intervals[-1][0] == side and intervals[-1][2] == low:
                    low = intervals.pop()[1]
                intervals.append((side, low, high))
        return found

    def csv(self) -> str:
        """Return the intervals as a table, a line each."""
        names = {sign: label_text(self.run.labels[f"{sign:+d}"]) for sign in (-1, 1)}
        lines = [
            [row + 1 if self.ids is None else self.ids[row], names[int(self.signs[row])], names[side], low, high]
            for row, intervals in enumerate(self.intervals())
            for side, low, high in intervals
        ]
        name = "row" if self.ids is None else self.run.form.id
        return csv_text([name, "label", "predicted", "C_from", "C_to"], lines)

    def record(self) -> dict:
        """Return the numbers for JSON."""
        steps = zip(self.C.tolist(), self.trained.tolist(), self.at_steps.tolist(), strict=True)
        return finite({
            "model": self.run.model, "rows": self.signs.size, "C_from": self.C[0], "C_to": self.C[-1],
            "errors": self.errors, "unproven": self.unproven, "local_solutions": self.held.solved,
            "curve": self.curve, "seconds": self.seconds,
            "steps": [{"C": C, "training": own, "errors": bounds} for C, own, bounds in steps],
        })  # fmt: skip

    def __str__(self) -> str:
        """Return a line for each thing to know."""
        n, (least, most), curve = self.signs.size, self.errors, self.curve
        best = curve[curve[:, 3] == most]
        whole = int(np.count_nonzero((self.held.whole[0] != 0) & (self.held.whole == self.held.whole[0]).all(axis=0)))
        exact = int(np.count_nonzero(self.at_steps[:, 0] == self.at_steps[:, 1]))
        between = "" if least == most else f": the fewest are proven to be {least:,} to {most:,}"
        lines = [
            ("left out", f"{n:,} rows, one at a time: {self.run.model}, every C from {self.C[0]:g} to {self.C[-1]:g}"),
            ("fewest errors", f"{most:,} ({100.0 * most / n:.2f} %) from C = {best[0, 0]:.6g} to {best[0, 1]:.6g}"),
            ("no C has fewer than", f"{least:,}{between}"),
            ("proven", f"{100.0 * (1.0 - self.unproven):.2f} % of all (row, C); {whole:,} rows have one label"),
            ("at the steps", f"the errors of {exact} of {self.C.size} are exact"),
        ]
        return "".join(f"{name:<20}{text}\n" for name, text in lines)


def every_c(run: Run, training: str | tuple | None = None, tell: Any = None) -> EveryC | EveryValue:
    """Leave out each row of the training data in turn, at every C between the steps of a run.

    The steps are solved again, to the accuracy that rounding allows. ``tell`` hears of a long wait.
    """
    check_left_out(run)
    if run.kernel:
        raise UsageError(f"{run.path} has a kernel: every C is for linear runs", "use its steps: `steps=all`")
    if len(run.steps) < 2:
        raise UsageError(f"every C needs a path: {run.path} has one step", "compute a grid of several values")
    with problem_again(run, training_path(run, training), tol=min(run.record["options"]["tol"], TOL)) as found:
        spec, asked, data = found
        way = Path.of(spec, asked, data, sorted(step["C"] for step in run.steps))
        ensure_compiled("removal_sides")
        began = time.process_time()
        certificates = _solved(way, way.grid)
        samples, middle = np.arange(way.model.rows.n), certificates[len(certificates) // 2]
        say_cost(Solution(way.model, middle), samples, tell, "for each of several steps; `steps=all` takes one of each")
        if run.labels is None:
            return every_value(run, spec, data, way.model, certificates, began)
        proven = held(certificates, way.model)
        for _ in range(ROUNDS):
            widths = np.diff(np.log(proven.C))
            if np.average(proven.unproven, weights=widths) <= UNPROVEN:
                break
            coarse = np.flatnonzero((proven.unproven > UNPROVEN) & (widths > NARROW))
            more = _solved(way, np.sqrt(proven.C[coarse] * proven.C[coarse + 1]).tolist())
            certificates = sorted([*certificates, *more], key=lambda pair: pair.C)
            proven = held(certificates, way.model)
        forms = np.array([way.model.signs * pair.point.products + (pair.intercept or 0.0) for pair in certificates])
        signs = np.where(data.targets > 0.0, 1, -1)
        trained = np.count_nonzero((forms > 0.0) != (signs > 0), axis=1)
        return EveryC(run, proven.C, trained, signs, proven, data.ids, time.process_time() - began)


def _solved(way: Path, grid: list) -> list:
    """Return the polished certificates of values of C."""
    return [polished(way.model, pair) for _, pair in replace(way, grid=grid).walk()] if grid else []
