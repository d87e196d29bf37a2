"""Leave-one-out of a regression for every C of a run's range: bounds on what is predicted of each row without it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from screenpath.catalogue.scores import REGRESSION, Score, choose_score, of_rows
from screenpath.data.words.tables import csv_text, finite
from screenpath.solve.removal import Solution
from screenpath.solve.values import Without, between
from screenpath.store.open import Run


@dataclass(frozen=True, repr=False)
class EveryValue:
    """Bounds on held-out predictions for every C between the ends of a run.

    Attributes
    ----------
    C, trained : ndarray of shape (k,)
        Of the steps, increasing; the scores of the models of all rows there.
    targets : ndarray of shape (n,)
    values : ndarray of shape (k, n)
        Held-out predictions at the steps.
    low, high : ndarray of shape (k - 1, n)
        Between which every best model without the row predicts it, from a step to the next.
    score : Score
        A mean over rows, lower is better.
    """

    run: Run
    score: Score
    C: np.ndarray
    trained: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ids: tuple[str, ...] | None
    seconds: float

    def __repr__(self) -> str:
        (least, most), C = self.errors, self.C
        return f"<EveryValue: {self.run.path}, C from {C[0]:g} to {C[-1]:g}, {least:.6g} to {most:.6g} at best>"

    def _means(self, values: np.ndarray) -> np.ndarray:
        return np.average(of_rows(self.score, values, self.targets), axis=1, weights=self.weights)

    @property
    def measure(self) -> str:
        """Return what the curve has."""
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
        names = np.arange(1, self.targets.size + 1).tolist() if self.ids is None else self.ids
        ends, bounds = list(pairwise(self.C.tolist())), np.stack([self.low, self.high], axis=2)
        rows = zip(names, self.targets.tolist(), bounds.transpose(1, 0, 2).tolist(), strict=True)
        lines = [[name, y, *C, *own] for name, y, all_of in rows for C, own in zip(ends, all_of, strict=True)]
        name = "row" if self.ids is None else self.run.form.id
        return csv_text([name, "target", "C_from", "C_to", "low", "high"], lines)

    def record(self) -> dict:
        """Return the numbers for JSON."""
        steps = zip(self.C.tolist(), self.trained.tolist(), self.at_steps.tolist(), strict=True)
        return finite({
            "model": self.run.model, "rows": self.targets.size, "C_from": self.C[0], "C_to": self.C[-1],
            "score": self.score.name, "errors": self.errors, "unproven": self.unproven, "curve": self.curve,
            "seconds": self.seconds,
            "steps": [{"C": C, "training": own, "errors": one} for C, own, one in steps],
        })  # fmt: skip

    def __str__(self) -> str:
        """Return a line for each thing to know."""
        (least, most), n, at = self.errors, self.targets.size, self.at_steps
        widths = (self.high - self.low)[np.isfinite(self.high)]
        proven = f"{100.0 * (1.0 - self.unproven):.2f} % of all (row, C), half of them within {np.median(widths):.2g}"
        lines = [
            ("left out", f"{n:,} rows, one at a time: {self.run.model}, every C from {self.C[0]:g} to {self.C[-1]:g}"),
            (f"smallest {self.measure}", f"{most:.6g} at C = {self.C[at.argmin()]:.6g}, of the steps"),
            ("no C has less than", f"{least:.6g}"),
            ("proven", proven),
        ]
        return "".join(f"{name:<20}{text}\n" for name, text in lines)


def every_value(run: Run, spec, data, model, certificates: list, began: float) -> EveryValue:
    """Return what polished certificates with increasing C say; ``began`` is a ``time.process_time()``."""
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
    low, high = np.array(bounds).transpose(1, 0, 2)
    rows = data.targets, data.sample_weights, values, low, high, data.ids
    return EveryValue(run, score, C, trained, *rows, time.process_time() - began)
