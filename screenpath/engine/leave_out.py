"""Exact leave-one-out of stored runs: what each model without one row says about this row, proven."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from screenpath.catalogue.losses import LOSSES
from screenpath.data.words.labels import label_text
from screenpath.data.words.tables import csv_text, finite
from screenpath.engine.again import problem_again
from screenpath.engine.path import Path
from screenpath.errors import UsageError
from screenpath.inputs.run_data import training_path
from screenpath.kernels.compilation import ensure_compiled
from screenpath.solve.removal import BOUND, LOCAL, NOTHING, OPEN, Removed, Solution, leave_out, polished
from screenpath.store.open import Run

TOL = 1e-8  # from which the rows on their kinks are seen
SLOW = 10.0  # seconds from which the cost is said beforehand


@dataclass(frozen=True, repr=False)
class LeaveOneOut:
    """Leave-one-out at one step. Arrays have the shape (m,), one entry for each row left out, in the file's order.

    Attributes
    ----------
    samples : ndarray of int
        Numbers of the rows, from 0.
    values, low, high : ndarray
        ``x.w + b`` of the row by the model without it, and proven bounds. Where only the sign was asked for, a value
        that a bound decides is somewhere between both.
    targets : ndarray
        Signs of a classifier (+1 is the larger label), targets of a regression.
    scores, training : dict
        Scores of these values, and of the model of all rows on the same rows. Rows weigh as in training.
    counts : dict of str to int
        How many rows have no part in the weights, were decided by a bound, by a local solution, or are open.
    """

    run: Run
    step: dict
    removed: Removed
    targets: np.ndarray
    weights: np.ndarray | None
    scores: dict[str, float]
    training: dict[str, float]
    solution: Solution
    ids: tuple[str, ...] | None
    seconds: float

    def __repr__(self) -> str:
        said = ", ".join(f"{name} {value:.6g}" for name, value in self.scores.items())
        return f"<LeaveOneOut: {self.run.describe(self.step)}, {self.samples.size} of {self.n} rows, {said}>"

    @property
    def n(self) -> int:
        """Return how many rows the training data have."""
        return self.solution.model.rows.n

    @property
    def samples(self) -> np.ndarray:
        return self.removed.samples

    @property
    def values(self) -> np.ndarray:
        return self.removed.values

    @property
    def low(self) -> np.ndarray:
        return self.removed.low

    @property
    def high(self) -> np.ndarray:
        return self.removed.high

    @property
    def open(self) -> np.ndarray:
        """Tell which rows are left open: the label, or the value of a regression, is not proven."""
        if self.run.labels is None:
            return ~np.isfinite(self.removed.error)
        return ~((self.low > 0.0) | (self.high < 0.0))

    @property
    def errors(self) -> int:
        """Return how many rows of a classifier are certainly on the wrong side."""
        return int(np.count_nonzero(np.where(self.targets > 0.0, self.high < 0.0, self.low > 0.0)))

    @property
    def counts(self) -> dict[str, int]:
        how, still = self.removed.how, self.open
        names = ((NOTHING, "nothing"), (BOUND, "bound"), (LOCAL, "local"))
        found = {name: int(np.count_nonzero((how == code) & ~still)) for code, name in names}
        return {**found, "open": int(np.count_nonzero(still))}

    def record(self) -> dict:
        """Return the numbers for JSON."""
        kind = {"errors": self.errors} if self.run.labels is not None else {}
        return finite({
            "model": self.run.model, **{name: self.step[name] for name in ("step", *self.run.parameters)},
            "rows": self.n, "left_out": int(self.samples.size), **kind, "scores": self.scores,
            "training_scores": self.training, "decided": self.counts, "largest_gap": self.removed.gap.max(initial=0.0),
            "largest_error": self.removed.error[~self.open].max(initial=0.0), "seconds": self.seconds,
        })  # fmt: skip

    def csv(self) -> str:
        """Return the table of held-out predictions, in the order of the data, under the names of the rows if any."""
        head: list = ["row"] if self.ids is None else [self.run.form.id]
        columns = [(self.samples + 1).tolist() if self.ids is None else [self.ids[k] for k in self.samples.tolist()]]
        if self.run.labels is None:
            head, columns = [*head, "target", "predicted"], [*columns, self.targets.tolist()]
        else:
            head += ["label", "predicted", "decision"]
            names = [label_text(self.run.labels[side]) for side in ("-1", "+1")]
            labels, found = ([names[int(one)] for one in (form > 0.0)] for form in (self.targets, self.low))
            columns += [labels, ["" if still else label for label, still in zip(found, self.open, strict=True)]]
        columns += [self.values.tolist(), self.low.tolist(), self.high.tolist()]
        return csv_text([*head, "low", "high"], zip(*columns, strict=True))

    def __str__(self) -> str:
        """Return a line for each thing to know."""
        n, counts = self.samples.size, self.counts
        drawn = "" if n == self.n else f", drawn at random from {self.n:,}"
        lines = [("left out", f"{n:,} rows{drawn}, one at a time: {self.run.model}, {self.run.describe(self.step)}")]
        if self.run.labels is not None:
            most, share = f" to {self.errors + counts['open']:,}" if counts["open"] else "", 100.0 * self.errors / n
            own = int(np.count_nonzero((self.solution.forms[self.samples] > 0.0) != (self.targets > 0.0)))
            lines.append(("errors", f"{self.errors:,}{most} ({share:.2f} %); in training {own:,}"))
        if self.run.labels is None or self.weights is not None:
            lines += [(name.replace("-", " "), f"{value:.6g}; in training {self.training[name]:.6g}")
                      for name, value in self.scores.items()]  # fmt: skip
        ways = {"nothing": "without a part in the weights", "bound": "by a bound", "local": "by a local solution"}
        lines.append(("decided", ", ".join(f"{counts[name]:,} {how}" for name, how in ways.items() if counts[name])))
        exact = self.removed.error[~self.open].max(initial=0.0)
        proof = "every label" if self.run.labels is not None else f"every value, to {exact:.1e}"
        lines.append(("proven", f"all but {counts['open']:,} rows" if counts["open"] else proof))
        return "".join(f"{name:<20}{text}\n" for name, text in lines)


def leave_one_out(
    run: Run, steps: list[dict], training: str | None = None, rows: int | None = None, seed: int = 0,
    values: bool = True, tell: Any = None,
) -> Iterator[LeaveOneOut]:  # fmt: skip
    """Leave out each row of the training data in turn, at some steps of a run, given as rows of the step table.

    ``rows`` draws so many rows at random. Unless ``values`` are asked for, a classifier's rows whose label a bound
    decides are not solved. The data are prepared (scaled, weighted) as for all rows. ``tell`` hears of a long wait.
    """
    _check(run)
    tol = min(run.record["options"]["tol"], TOL)
    with problem_again(run, training_path(run, training), tol=tol) as (spec, asked, data):
        way = Path.of(spec, asked, data, [step["C"] for step in steps])
        n = way.model.rows.n
        drawn = n if rows is None else min(rows, n)
        samples = np.sort(np.random.default_rng(seed).permutation(n)[:drawn]) if drawn < n else np.arange(n)
        weights, targets = data.sample_weights, data.targets
        weights = None if weights is None else weights[samples]
        for step, (_, pair) in zip(steps, way.walk(), strict=False):
            ensure_compiled("removal_proof")
            began = time.process_time()
            solution = Solution(way.model, polished(way.model, pair))
            if tell is not None:
                _say_cost(solution, samples, tell)
            removed = leave_out(solution, samples, run.labels is not None and not values)
            spent, options, sure = time.process_time() - began, run.record["options"], removed.how != OPEN
            held = None if weights is None else weights[sure]
            scores, trained = (
                spec.scores_of(forms[sure], targets[samples][sure], options, held)
                for forms in (removed.values, solution.forms[samples])
            )
            yield LeaveOneOut(run, step, removed, targets[samples], weights, scores, trained, solution, data.ids, spent)


def _say_cost(solution: Solution, samples: np.ndarray, tell) -> None:
    """Tell what the removals will take, where it is long."""
    members, d = int(np.count_nonzero(solution.inside)), solution.model.rows.d
    local = int(np.count_nonzero(solution.alpha[samples]))
    seconds = local * (8.0 + 0.06 * members) * members * (4.0 * members + 6.0 * min(d, 4 * members)) / 5e9
    if seconds > SLOW:
        what = f"{local:,} rows with {members:,} rows between the ends of their boxes"
        tell(f"{what}: about {seconds:,.0f} s; `rows=N` takes N rows drawn at random")


def _check(run: Run) -> None:
    if run.model not in LOSSES or run.kernel:
        what = "a kernel" if run.kernel else run.model
        raise UsageError(f"leave-one-out is for linear {', '.join(LOSSES)}, not for {what}", "use folds: screenpath cv")
    if run.classes:
        raise UsageError("leave-one-out is for two labels; this run has more", "use a run with `positive=LABEL`")
