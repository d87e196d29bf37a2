"""Leave-one-out for every C of a run's range: where each row's held-out label is proven, or of a regression between
which bounds it is predicted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from screenpath.catalogue.scores import REGRESSION, Score, choose_score, of_rows
from screenpath.data.words.labels import label_text
from screenpath.data.words.tables import csv_text, finite
from screenpath.engine.leave_out import TOL, check_left_out, say_cost, without_threshold
from screenpath.engine.path import Path
from screenpath.engine.run_problem import problem_of_run
from screenpath.errors import UsageError
from screenpath.kernels.compilation import ensure_compiled
from screenpath.solve.polish import polished
from screenpath.solve.removal import Solution
from screenpath.solve.sides import Held, held
from screenpath.solve.values import Without, between
from screenpath.store.open import Run

UNPROVEN = 0.01  # share of (row, logarithm of C) above which values of C are added
ROUNDS, NARROW = 6, 1e-3  # in which they are, each in the middle of a segment of at least this width in log C


@dataclass(frozen=True, repr=False)
class Every:
    """What is known of held-out rows for every C between the ends of a run, and at its steps, of increasing C."""

    run: Run
    C: np.ndarray  # shape (k,): of the steps, and of further solutions that too coarse a grid has needed
    trained: np.ndarray  # shape (k,): errors or scores of the models of all rows there
    ids: tuple[str, ...] | None
    seconds: float

    def _table(self, heads: tuple, lines: list) -> str:
        """Return as CSV the ``lines`` of each row, which begin with the name or the number of the row."""
        names = range(1, len(lines) + 1) if self.ids is None else self.ids
        told = ([name, *line] for name, own in zip(names, lines, strict=True) for line in own)
        return csv_text(["row" if self.ids is None else self.run.form.id, *heads], told)

    def _record(self: Any, rows: int, first: dict, then: dict) -> dict:
        steps = zip(self.C.tolist(), self.trained.tolist(), self.at_steps.tolist(), strict=True)
        return finite({
            "model": self.run.model, "rows": rows, "C_from": self.C[0], "C_to": self.C[-1], **first,
            "errors": self.errors, "unproven": self.unproven, **then, "curve": self.curve, "seconds": self.seconds,
            "steps": [{"C": C, "training": own, "errors": one} for C, own, one in steps],
        })  # fmt: skip

    def _said(self, rows: int, lines: dict[str, str]) -> str:
        ends = f"{self.run.model}, every C from {self.C[0]:g} to {self.C[-1]:g}"
        lines = {"left out": f"{rows:,} rows, one at a time: {ends}", **lines, **dict(without_threshold(self.run))}
        return "".join(f"{name:<20}{text}\n" for name, text in lines.items())


@dataclass(frozen=True, repr=False)
class EveryC(Every):
    """Proven labels of held-out rows for every C between the ends of a run."""

    signs: np.ndarray  # shape (n,): of the labels; +1 is the larger one
    held: Held

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
        each = zip(self.signs.tolist(), self.intervals(), strict=True)
        lines = [[[names[sign], names[side], *ends] for side, *ends in own] for sign, own in each]
        return self._table(("label", "predicted", "C_from", "C_to"), lines)

    def record(self) -> dict:
        """Return the numbers for JSON."""
        return self._record(self.signs.size, {}, {"local_solutions": self.held.solved})

    def __str__(self) -> str:
        n, (least, most), curve = self.signs.size, self.errors, self.curve
        best = curve[curve[:, 3] == most]
        whole = int(np.count_nonzero((self.held.whole[0] != 0) & (self.held.whole == self.held.whole[0]).all(axis=0)))
        exact = int(np.count_nonzero(self.at_steps[:, 0] == self.at_steps[:, 1]))
        between = "" if least == most else f": the fewest are proven to be {least:,} to {most:,}"
        return self._said(n, {
            "fewest errors": f"{most:,} ({100.0 * most / n:.2f} %) from C = {best[0, 0]:.6g} to {best[0, 1]:.6g}",
            "no C has fewer than": f"{least:,}{between}",
            "proven": f"{100.0 * (1.0 - self.unproven):.2f} % of all (row, C); {whole:,} rows have one label",
            "at the steps": f"the errors of {exact} of {self.C.size} are exact",
        })  # fmt: skip


@dataclass(frozen=True, repr=False)
class EveryValue(Every):
    """Bounds on held-out predictions of a regression for every C between the ends of a run."""

    score: Score  # a mean over rows, lower is better
    targets: np.ndarray  # shape (n,)
    weights: np.ndarray | None
    values: np.ndarray  # shape (k, n): held-out predictions at the steps
    low: np.ndarray  # low, high: shape (k - 1, n): every best model without the row predicts it between these
    high: np.ndarray

    def __repr__(self) -> str:
        (least, most), C = self.errors, self.C
        return f"<EveryValue: {self.run.path}, C from {C[0]:g} to {C[-1]:g}, {least:.6g} to {most:.6g} at best>"

    def _means(self, values: np.ndarray) -> np.ndarray:
        return np.average(of_rows(self.score, values, self.targets), axis=1, weights=self.weights)

    @property
    def measure(self) -> str:
        return self.score.name.replace("-", " ")

    @property
    def at_steps(self) -> np.ndarray:
        """Return the scores at the steps, shape (k,)."""
        return self._means(self.values)

    @property
    def curve(self) -> np.ndarray:
        """Return ranges of C with bounds on the score, shape (k - 1, 4): from, to, at least, at most."""
        least = self._means(np.clip(self.targets, self.low, self.high))
        rows = np.maximum(*(of_rows(self.score, end, self.targets) for end in (self.low, self.high)))
        return np.column_stack([self.C[:-1], self.C[1:], least, np.average(rows, axis=1, weights=self.weights)])

    @property
    def errors(self) -> tuple[float, float]:
        """Return the best score of any C, at least and at most."""
        return float(self.curve[:, 2].min()), float(self.at_steps.min())

    @property
    def unproven(self) -> float:
        """Return the share of (row, step to the next) without bounds."""
        return float(np.mean(~np.isfinite(self.high)))

    def csv(self) -> str:
        """Return the bounds as a table, a line for each row and each step to the next."""
        ends, bounds = list(pairwise(self.C.tolist())), np.stack([self.low, self.high], axis=2)
        rows = zip(self.targets.tolist(), bounds.transpose(1, 0, 2).tolist(), strict=True)
        lines = [[[y, *C, *one] for C, one in zip(ends, own, strict=True)] for y, own in rows]
        return self._table(("target", "C_from", "C_to", "low", "high"), lines)

    def record(self) -> dict:
        """Return the numbers for JSON."""
        return self._record(self.targets.size, {"score": self.score.name}, {})

    def __str__(self) -> str:
        (least, most), at = self.errors, self.at_steps
        half = np.median((self.high - self.low)[np.isfinite(self.high)])
        return self._said(self.targets.size, {
            f"smallest {self.measure}": f"{most:.6g} at C = {self.C[at.argmin()]:.6g}, of the steps",
            "no C has less than": f"{least:.6g}",
            "proven": f"{100.0 * (1.0 - self.unproven):.2f} % of all (row, C), half of them within {half:.2g}",
        })  # fmt: skip


def every_c(run: Run, training: str | tuple | None = None, tell: Any = None) -> EveryC | EveryValue:
    """Leave out each row of the training data in turn, at every C between the steps of a run.

    The steps are solved again, to the accuracy that rounding allows. ``tell`` hears of a long wait.
    """
    check_left_out(run)
    if run.kernel:
        raise UsageError(f"{run.path} has a kernel: every C is for linear runs", "use its steps: `steps=all`")
    if len(run.steps) < 2:
        raise UsageError(f"every C needs a path: {run.path} has one step", "compute a grid of several values")
    with problem_of_run(run, training, TOL) as (spec, asked, data):
        way = Path.of(spec, asked, data, sorted(step["C"] for step in run.steps))
        ensure_compiled("removal_sides")
        began = time.process_time()
        certificates = _solved(way, way.grid)
        samples, middle = np.arange(way.model.rows.n), certificates[len(certificates) // 2]
        say_cost(Solution(way.model, middle), samples, tell, "for each of several steps; `steps=all` takes one of each")
        if run.labels is None:
            return _values(run, spec, data, way.model, certificates, began)
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
        return EveryC(run, proven.C, trained, data.ids, time.process_time() - began, signs, proven)


def _solved(way: Path, grid: list) -> list:
    return [polished(way.model, pair) for _, pair in replace(way, grid=grid).walk()] if grid else []


def _values(run: Run, spec, data, model, certificates: list, began: float) -> EveryValue:
    """Return what polished certificates with increasing C say of a regression; ``began``: a ``process_time()``."""
    score = choose_score(None, spec, REGRESSION, 2, run.record["options"].get("tau"))
    steps, bounds, before = [], [], None
    for certificate in certificates:
        now = Without(Solution(model, certificate))
        if before is not None:
            bounds.append(between(before, now))
        before = now
        own = score.function(now.of.forms[: model.rows.n], data.targets, data.sample_weights)
        steps.append((certificate.C, own, now.values))
    C, trained, values = map(np.array, zip(*steps, strict=True))
    spent, rows = time.process_time() - began, (data.targets, data.sample_weights, values)
    return EveryValue(run, C, trained, data.ids, spent, score, *rows, *np.array(bounds).transpose(1, 0, 2))
