"""Exact leave-one-out of stored runs: what each model without one row says about this row, proven."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from screenpath.catalogue.losses import LOSSES
from screenpath.catalogue.option import Option
from screenpath.data.files.arrays import new_rows
from screenpath.data.files.prepare import Preparation
from screenpath.data.words.labels import label_text
from screenpath.data.words.tables import csv_text, finite
from screenpath.engine.path import Path
from screenpath.engine.run_problem import problem_of_run
from screenpath.errors import DataError, UsageError
from screenpath.inputs.run_data import of_width
from screenpath.kernels.compilation import ensure_compiled
from screenpath.numbers import sparse as sp
from screenpath.solve.polish import polished
from screenpath.solve.removal import AT_ONCE, BOUND, LOCAL, NOTHING, OPEN, Removed, Solution, leave_out
from screenpath.store.certificates import header_of, removals_bytes
from screenpath.store.open import Run

TOL = 1e-8  # from which the rows on their kinks are seen
ROWS = 1024  # new rows at once
VALUES = 10**6  # predictions of all models for some new rows that are held at once
WIDER = 1e-9  # part by which a tolerance is larger than its gap, for the rounding of the checker
SLOW = 10.0  # seconds from which the cost is said beforehand
LEVEL = Option("level", 0.9, "share", hint="write for example 0.9")


@dataclass(frozen=True, repr=False)
class LeaveOneOut(Removed):
    """Leave-one-out at one step. Arrays have the shape (m,), one entry for each row left out, in the file's order.

    ``samples``, ``values``, ``low``, ``high`` and ``distance`` are those of :class:`screenpath.solve.removal.Removed`:
    the rows left out, their forms, and how far ``w`` moves.
    """

    run: Run
    step: dict
    targets: np.ndarray  # signs of a classifier (+1 is the larger label), targets of a regression
    weights: np.ndarray | None
    scores: dict[str, float]  # of these values; rows weigh as in training
    training: dict[str, float]  # scores of the model of all rows on the same rows
    solution: Solution
    preparation: Preparation
    ids: tuple[str, ...] | None
    seconds: float
    header: dict  # the problem of a certificate

    def __repr__(self) -> str:
        said = ", ".join(f"{name} {value:.6g}" for name, value in self.scores.items())
        return f"<LeaveOneOut: {self.run.describe(self.step)}, {self.samples.size} of {self.n} rows, {said}>"

    @property
    def n(self) -> int:
        """Return how many rows the training data have."""
        return self.solution.model.rows.n

    @property
    def open(self) -> np.ndarray:
        """Tell which rows are left open: the label, or the value of a regression, is not proven."""
        return self.unproven(self.run.labels is not None)

    @property
    def errors(self) -> int:
        """Return how many rows of a classifier are certainly on the wrong side."""
        return int(np.count_nonzero(np.where(self.targets > 0.0, self.high < 0.0, self.low > 0.0)))

    @property
    def counts(self) -> dict[str, int]:
        """Return how many rows have no part in the weights, were decided by a bound, locally solved, or are open."""
        still = self.open
        names = ((NOTHING, "nothing"), (BOUND, "bound"), (LOCAL, "local"))
        found = {name: int(np.count_nonzero((self.how == code) & ~still)) for code, name in names}
        return {**found, "open": int(np.count_nonzero(still))}

    @property
    def exact(self) -> float:
        """Return by how much a value may be off, where one was formed."""
        return float(self.error[~self.open & (self.how != BOUND)].max(initial=0.0))

    def record(self) -> dict:
        """Return the numbers for JSON."""
        kind = {"errors": self.errors} if self.run.labels is not None else {}
        return finite({
            "model": self.run.model, **{name: self.step[name] for name in ("step", *self.run.parameters)},
            "rows": self.n, "left_out": int(self.samples.size), **kind, "scores": self.scores,
            "training_scores": self.training, "decided": self.counts, "largest_gap": self.gap.max(initial=0.0),
            "largest_error": self.exact, "seconds": self.seconds,
        })  # fmt: skip

    def csv(self) -> str:
        """Return the table of held-out predictions, in the order of the data, under the names of the rows if any."""
        head, columns = self._named()
        if self.run.labels is None:
            head.append("predicted")
        else:
            head += ["predicted", "decision"]
            found = zip(self._labels(self.low), self.open, strict=True)
            columns.append(["" if still else label for label, still in found])
        columns += [self.values.tolist(), self.low.tolist(), self.high.tolist()]
        return csv_text([*head, "low", "high"], zip(*columns, strict=True))

    def certificate(self) -> bytes:
        """Return the certificate of all values of a linear run, for ``screenpath verify``.

        Its tolerance is the gap that the solution of all rows has, where that is larger than the run's.
        """
        pair, gap = self.solution.certificate, self.solution.whole_gap
        least = pair.primal - pair.primal_error
        relative = gap / least * (1.0 + WIDER) if least > 0.0 else np.inf if gap else 0.0
        if not relative < 1.0:
            raise DataError("the gap is as large as the objective: there is nothing to certify", "scale the data")
        return removals_bytes({**self.header, "tol": max(self.header["tol"], relative)}, self)

    def _named(self) -> tuple[list, list]:
        """Return the heads and the columns that tell rows: number or name, and label or target."""
        name, what = "row" if self.ids is None else self.run.form.id, "target" if self.run.labels is None else "label"
        rows: list = (self.samples + 1).tolist() if self.ids is None else [self.ids[k] for k in self.samples.tolist()]
        return [name, what], [rows, self.targets.tolist() if what == "target" else self._labels(self.targets)]

    def _labels(self, forms: np.ndarray) -> list[str]:
        names = [label_text(self.run.labels[side]) for side in ("-1", "+1")]
        return [names[int(one)] for one in (forms > 0.0)]

    # -- what follows from all of the models ---------------------------------------------------------------------

    @cached_property
    def moves(self):
        """Return by how much each row's absence moves the weights of the prepared features, shape (m, d); behind a
        kernel those of the rows.
        """
        if self.solution.kernel:
            return self.changes
        rows = self.solution.model.rows
        X = rows.whole()
        return self.changes @ (sp.csr_array(X, shape=(rows.n, rows.d)) if isinstance(X, tuple) else X)

    def flips(self) -> np.ndarray:
        """Return how many labels of the other rows are different without each row."""
        out, forms = np.zeros(self.samples.size, dtype=np.int64), self.solution.forms[: self.n]
        for near, some, flipped in self._flipped(self.solution.rows, forms, self.solution.model.norms[: self.n]):
            out[some] = np.count_nonzero(flipped & (near[:, None] != self.samples[some]), axis=0)
        return out

    def removals(self, X) -> np.ndarray:
        """Return how many training rows change the label of each new row by being left out alone, shape (m,).

        ``X`` is in the units of the data.
        """
        return self.removals_of(self._new(X))

    def removals_of(self, X) -> np.ndarray:
        """Return the same for rows with the columns of the run."""
        out = np.zeros(X.shape[0], dtype=np.int64)
        for start in range(0, out.size, ROWS):
            rows, norms = self._prepared(X[start : start + ROWS])
            for near, _, flipped in self._flipped(lambda index, rows=rows: rows[index], self._forms(rows), norms):
                out[start + near] += np.count_nonzero(flipped, axis=1)
        return out

    def _new(self, X) -> sp.csr_array:
        """Return new rows that a user gives with the columns of the run; refuse what predictions refuse."""
        form = None if self.run.form is None or self.run.form.plain else self.run.form
        return sp.csr_array(new_rows(X, self.run.preparation, self.run.feature_names, form))

    def _prepared(self, X) -> tuple[Any, np.ndarray]:
        """Return new rows, with the columns of the run, as :attr:`moves` has them multiplied, and their norms."""
        of, rows = self.solution.model.rows, self.preparation.apply(X)
        if self.solution.kernel:
            held_out = of.held_out(rows)
            return held_out.blocks.block(slice(None), None, held_out.X), held_out.norms
        rows = rows[:, : of.d]  # a free intercept is no column
        return rows, np.sqrt(sp.row_squares(rows))

    def _forms(self, rows) -> np.ndarray:
        """Return the linear forms of rows of :meth:`_prepared` by the model of all rows."""
        pair, of = self.solution.certificate, self.solution
        w = of.model.rows.folded(pair.point.vector) if of.kernel else pair.point.vector
        return np.asarray(rows @ w).ravel() + (pair.intercept or 0.0)

    def _flipped(self, rows, forms: np.ndarray, norms: np.ndarray) -> Iterator[tuple]:
        """Yield numbers of rows, numbers of removals, and whether each of these labels is different without it.

        A form changes by at most the row's norm times the move of the weights, and by that of the intercept: rows whose
        forms are larger are not looked at. ``rows(index)`` returns them, prepared.
        """
        ratio = np.abs(forms) / (norms + 1.0)
        order, reach = np.argsort(ratio, kind="stable"), np.maximum(self.distance, np.abs(self.offsets))
        ratio, by = ratio[order], np.argsort(reach, kind="stable")[np.count_nonzero(~(reach > 0.0)) :]
        for start in range(0, by.size, AT_ONCE):
            some = by[start : start + AT_ONCE]
            near = order[: np.searchsorted(ratio, reach[some[-1]] * (1.0 + 1e-9), side="right")]
            moved = rows(near) @ self.moves[some].T
            moved = (moved.toarray() if sp.issparse(moved) else moved) + self.offsets[some]
            yield near, some, (forms[near, None] > 0.0) != (forms[near, None] + moved > 0.0)

    def influence(self, top: int | None = None) -> tuple[list[str], list[list]]:
        """Return the heads and the lines of a table of rows, those first without which the weights move most.

        The columns are number or name, label or target, decision value or prediction by all rows (``all``) and by the
        others (``others``), the norm of the move, and of a classifier how many labels of other rows change.
        """
        head, columns = self._named()
        columns += [self.solution.forms[self.samples].tolist(), self.values.tolist(), self.distance.tolist()]
        head += ["all", "others", "moved"]
        if self.run.labels is not None:
            head, columns = [*head, "flips"], [*columns, self.flips().tolist()]
        order = np.argsort(-self.distance, kind="stable")[:top].tolist()
        return head, [[column[k] for column in columns] for k in order]

    def intervals(self, X, level: float = 0.9) -> np.ndarray:
        """Return jackknife+ prediction intervals for new rows, shape (m, 2).

        Each model without one row predicts the new row; its error for the row left out is added and subtracted (Barber,
        Candes, Ramdas, Tibshirani 2021). Of rows like those of the training data, at least the part ``2 level - 1`` is
        inside, and usually about ``level``. ``X`` is in the units of the data.

        Of a classifier, tell instead which of the two labels, -1 first, are in a set of labels that promises the same
        (Romano, Sesia, Candes 2020): those that fit the new row better than enough training rows fit their own label.
        """
        return self.intervals_of(self._new(X), LEVEL.checked(level))

    def intervals_of(self, X, level: float) -> np.ndarray:
        """Return the same for rows with the columns of the run."""
        check_intervals(self.run)
        check_alike(self.weights)
        if self.open.any() or self.samples.size < self.n:
            raise UsageError("intervals need every row left out", "leave out `rows`")
        ends, errors = ends_of, np.abs(self.targets - self.values)
        if self.run.labels is not None:
            ends, errors = sets_of, -self.targets * self.values
        out, size = [np.empty((0, 2))], 1 + VALUES // self.n
        for start in range(0, X.shape[0], size):
            rows, _ = self._prepared(X[start : start + size])
            moved = rows @ self.moves.T
            moved = moved.toarray() if sp.issparse(moved) else moved
            out.append(ends(self._forms(rows)[:, None] + self.offsets + moved, errors, level))
        return np.concatenate(out[X.shape[0] > 0 :])

    def __str__(self) -> str:
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
        ways = {"nothing": "no support vectors", "bound": "by a bound", "local": "by a local solution"}
        lines.append(("decided", ", ".join(f"{counts[name]:,} {how}" for name, how in ways.items() if counts[name])))
        exact = self.exact
        proof = "every label" if self.run.labels is not None else f"every value, to {exact:.1e}"
        lines.append(("proven", f"all but {counts['open']:,} rows" if counts["open"] else proof))
        lines += without_threshold(self.run)
        return "".join(f"{name:<20}{text}\n" for name, text in lines)


def intervals(run: Run, step, X, level: float, training: str | tuple | None = None) -> tuple[np.ndarray, str]:
    """Return the intervals of :meth:`LeaveOneOut.intervals_of` by a step of a run, and what they promise."""
    check_intervals(run)
    found = next(leave_one_out(run, [check_step(step)], training))
    what = "targets" if run.labels is None else "labels"
    least = f"at least {max(2.0 * level - 1.0, 0.0):.0%} of {what} like those of training are inside"
    return found.intervals_of(X, level), f"jackknife+ by {found.n:,} models: {least}"


def removals(run: Run, step, X, training: str | tuple | None = None) -> tuple[np.ndarray, str]:
    """Return how many training rows change the label of each new row by being left out, and what that says."""
    if run.labels is None:
        raise UsageError(f"{run.model} is a regression: it has no labels to change", "leave out `removals`")
    check_left_out(run)
    if "threshold" in run.record["columns"]:
        raise UsageError("the threshold of the run was chosen with all rows", "leave out `removals`")
    found = next(leave_one_out(run, [check_step(step)], training))
    counts = found.removals_of(of_width(run, X))
    kept, still = int(np.count_nonzero(counts == 0)), found.counts["open"]
    rest = f"; {still:,} training rows could not be left out" if still else ""
    return counts, f"{kept:,} of {counts.size:,} labels stay whichever training row is left out{rest}"


def ends_of(values: np.ndarray, errors: np.ndarray, level: float) -> np.ndarray:
    """Return both ends of the intervals of m rows, shape (m, 2), by the models that have not seen each of n rows.

    ``values``, shape (m, n), are the predictions by the model without each training row, whose own error by it is
    ``errors``, (n,). An end for which there are too few rows is infinite.
    """
    n = errors.size
    last = int(np.ceil(level * (n + 1)))
    out = np.tile([-np.inf, np.inf], (values.shape[0], 1))
    if last <= n:
        out[:, 0] = np.partition(values - errors, n - last, axis=1)[:, n - last]
        out[:, 1] = np.partition(values + errors, last - 1, axis=1)[:, last - 1]
    return out


def sets_of(values: np.ndarray, errors: np.ndarray, level: float) -> np.ndarray:
    """Return which of the labels -1 and +1 are in the sets of m rows, shape (m, 2), arguments as of :func:`ends_of`.

    An error is how far a decision value is on the other side of 0 than the label.
    """
    most = level * (errors.size + 1)
    return np.stack([np.count_nonzero(-side * values > errors, axis=1) < most for side in (-1.0, 1.0)], axis=1)


def leave_one_out(
    run: Run, steps: list[dict], training: str | tuple | None = None, rows: int | None = None, seed: int = 0,
    values: bool = True, tell: Any = None,
) -> Iterator[LeaveOneOut]:  # fmt: skip
    """Leave out each row of the training data in turn, at some steps of a run, given as rows of the step table.

    ``rows`` draws so many rows at random. Unless ``values`` are asked for, a classifier's rows whose label a bound
    decides are not solved. The data are prepared (scaled, weighted) as for all rows. ``tell`` hears of a long wait.
    """
    check_left_out(run)
    with problem_of_run(run, training, TOL) as (spec, asked, data):
        way = Path.of(spec, asked, data, [step["C"] for step in steps])
        n = way.model.rows.n
        drawn = n if rows is None else min(rows, n)
        samples = np.sort(np.random.default_rng(seed).permutation(n)[:drawn]) if drawn < n else np.arange(n)
        weights, targets = data.sample_weights, data.targets
        weights = None if weights is None else weights[samples]
        for step, (_, pair) in zip(steps, way.walk(), strict=False):
            ensure_compiled("removal_proof")
            began = time.process_time()
            say_cost(Solution(way.model, pair), samples, tell, "`rows=N` takes N rows drawn at random")
            solution = Solution(way.model, polished(way.model, pair))
            removed = leave_out(solution, samples, run.labels is not None and not values)
            spent, options, sure = time.process_time() - began, run.record["options"], removed.how != OPEN
            held = None if weights is None else weights[sure]
            scores, trained = (
                spec.scores_of(forms[sure], targets[samples][sure], options, held)
                for forms in (removed.values, solution.forms[samples])
            )
            yield LeaveOneOut(
                **vars(removed), run=run, step=step, targets=targets[samples], weights=weights, scores=scores,
                training=trained, solution=solution, preparation=data.preparation, ids=data.ids, seconds=spent,
                header=header_of(run.model, asked, data),
            )  # fmt: skip


def say_cost(solution: Solution, samples: np.ndarray, tell, advice: str) -> None:
    """Tell what the removals will take, where it is long, with an advice; ``tell`` may be None."""
    members = int(np.count_nonzero(solution.inside))
    d = 4 * members if solution.kernel else solution.model.rows.d  # of rows in the span of those that are followed
    local = int(np.count_nonzero(solution.alpha[samples]))
    seconds = local * (8.0 + 0.06 * members) * members * (4.0 * members + 2.0 * d) / 3e9
    if tell is not None and seconds > SLOW:
        what = f"{local:,} rows with {members:,} rows between the ends of their boxes"
        tell(f"{what}: up to about {seconds:,.0f} s a step; {advice}")


def without_threshold(run: Run) -> list[tuple[str, str]]:
    """Return the line about labels that are not those of the run's threshold; none where it has none."""
    why = "decisions above 0 are +1: the threshold of the run was chosen with all rows"
    return [("threshold", why)] if "threshold" in run.record["columns"] else []


def check_intervals(run: Run) -> None:
    if run.labels is not None:
        check_left_out(run)
    if "threshold" in run.record["columns"]:
        raise UsageError("the threshold of the run was chosen with all rows", "leave out `interval`")
    if run.model not in LOSSES and not run.cross_validated:
        what = f"intervals without folds are for {', '.join(LOSSES)}, not for {run.model}"
        raise UsageError(what, f"cross-validate it: screenpath cv {run.model}")


def check_alike(weights: np.ndarray | None) -> None:
    """Refuse rows that do not weigh alike."""
    if weights is not None and np.ptp(weights):
        raise UsageError("intervals need rows that weigh alike", "compute the path without weights")


def check_step(step) -> dict:
    """Return a step of the run; refuse a model between steps."""
    if isinstance(step, dict):
        return step
    where, *steps = step.words.partition(",")[0], *(str(one.step) for one in step.steps)
    hint = f"name one of them: `step={steps[-1]}`" if steps[1:] else "leave out `exact`"
    raise UsageError(f"rows are left out at a step of the run: C = {step.C:g} is {where}", hint)


def check_left_out(run: Run) -> None:
    command = f"screenpath {'cv ' if run.cross_validated else ''}{run.model} DATA"
    two = f"fit again with {command} `positive=LABEL`"
    check_removal(run.model, run.record["options"], len(run.classes or ()), "use folds: screenpath cv", two)


def check_removal(model: str, options: dict, classes: int, advice: str, two: str) -> None:
    """Refuse problems whose rows cannot be left out; advice for another model, and to have ``two`` labels."""
    if model not in LOSSES:
        raise UsageError(f"leave-one-out is for {', '.join(LOSSES)}, not for {model}", advice)
    if options.get("smoothing") is not None:
        raise UsageError("leave-one-out is for losses with kinks, and this one is smoothed", advice)
    if classes > 2:
        raise UsageError(f"leave-one-out is for two labels, and this run has {classes}", two)
