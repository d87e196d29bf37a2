"""Runs side by side: their best steps on the same folds or the same test data, and how sure the differences are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from screenpath.catalogue.scores import SCORES, Score, choose_score, levelled, of_rows, votes
from screenpath.catalogue.specs import SPECS
from screenpath.cv.choice import folds_of
from screenpath.data.safe.values import is_number
from screenpath.data.words.labels import label_text
from screenpath.engine.options import stretch
from screenpath.engine.stored import decision_values, not_scored
from screenpath.errors import DataError, RunFolderError, UsageError, shown
from screenpath.inputs.load import ARRAYS
from screenpath.inputs.run_data import digests_of, found_path, read_new
from screenpath.report.figures import seconds_text
from screenpath.report.series import chosen_by, read_cv, read_folds
from screenpath.report.show import folded, scaled_weights, support_vectors
from screenpath.store.open import Run

FITTED = "its score there is too good, and so may a difference be"
CLEAR = 2.0  # standard errors above which a difference is called clear


@dataclass(frozen=True, repr=False)
class Side:
    """One run of a comparison."""

    run: Run
    step: dict  # row of the step table that is compared
    score: float
    features: int | None  # with a weight; None for a kernel model
    support: int | None  # support vectors; None if the model has none
    seconds: float  # of the run on the clock, including folds, without compiling
    parts: np.ndarray | None  # the score of each fold, or the part of each row of the test data; None if unknown

    def __repr__(self) -> str:
        return f"<Side: {self.name}, {self.run.describe(self.step)}, {self.score:.6g}>"

    @property
    def name(self) -> str:
        return str(self.run.path)


@dataclass(frozen=True)
class Difference:
    """How much better the best run is than another."""

    other: int  # its place
    mean: float  # in favour of the best run, never negative
    error: float | None  # standard error of the mean, from paired parts; None if there are none

    @property
    def clear(self) -> bool | None:
        """Tell whether the difference exceeds ``CLEAR`` standard errors; None if these are unknown."""
        return None if self.error is None else self.mean > CLEAR * self.error


@dataclass(frozen=True, repr=False)
class RunComparison(Sequence):
    """Runs side by side, in the given order; ``str()`` of it describes them."""

    sides: list  # of Side
    score: str
    basis: str  # what all of them were scored on, in words
    best: int  # place of the best one; ties go to the first
    differences: list  # of Difference, from the best to each of the others
    notes: list  # sentences that one should know about the numbers

    def __getitem__(self, place):
        return self.sides[place]

    def __len__(self) -> int:
        return len(self.sides)

    def __repr__(self) -> str:
        return f"<RunComparison: {len(self)} runs, best {self.score} {self.sides[self.best].score:.6g}>"

    def __str__(self) -> str:
        lines = folded(f"{len(self.sides)} runs on {self.basis}")
        for side in self.sides:
            kernel = f" ({side.run.kernel} kernel)" if side.run.kernel else ""
            score = f"{side.run.model}{kernel}, {side.run.describe(side.step)}: {self.score} {side.score:.6g}"
            lines += ["", *folded(side.name), *folded(score, "  "), *folded(_size(side), "  ")]
        best = self.sides[self.best]
        lines += ["", *folded(f"{best.name} has the best {self.score}:")]
        for difference in self.differences:
            lines += folded(self._words(difference), "  ")
        for note in self.notes:
            lines += folded(f"note: {note}")
        return "\n".join(lines) + "\n"

    def _words(self, difference: Difference) -> str:
        other = self.sides[difference.other].name
        if difference.mean == 0.0 and not difference.error:
            return f"the same as {other}"
        way = "higher" if SCORES[self.score].higher else "lower"
        error = "" if difference.error is None else f" +- {difference.error:.2g}"
        verdict = {None: "", True: ": a clear difference", False: ": no clear difference"}[difference.clear]
        return f"{difference.mean:.4g}{error} {way} than {other}{verdict}"


def _size(side: Side) -> str:
    parts = [] if side.features is None else [f"{side.features:,} features"]
    parts += [] if side.support is None else [f"{side.support:,} support vectors"]
    return ", ".join([*parts, f"{seconds_text(side.seconds)} for path{' and folds' * side.run.has('cv.json')}"])


def compare_runs(
    runs: Sequence[Run], step: str = "best", test: str | None = None, target: str | None = None
) -> RunComparison:
    """Compare a step of each of several runs on what they have in common, as :func:`screenpath.compare_runs`."""
    _check(runs)
    rows = [run.choose(step) for run in runs]
    if test is not None:
        return _on_rows(runs, rows, test, step, target)
    if target is not None:
        raise UsageError("`target` names a column of the data that all runs are scored on", "name them: `test=FILE`")
    why_not = _no_common_folds(runs)
    if why_not is None:
        return _on_folds(runs, rows, step)
    tests = [run.record.get("test") or {} for run in runs]
    if all(tests) and len({one.get("sha256") for one in tests}) == 1:
        return _on_rows(runs, rows, None, step)
    lacking = [str(run.path) for run, one in zip(runs, tests, strict=True) if not one]
    no_tests = f"{lacking[0]} has no test data" if lacking else "their test data differ"
    parts = all(run.record["options"].get("part") for run in runs)
    first = "put the parts of each cross-validation together with screenpath merge, or " if parts else ""
    what = f"these runs share nothing to compare them on: {why_not}, and {no_tests}"
    raise UsageError(what, f"{first}score all of them on one file with `test=FILE`")


def _check(runs) -> None:
    """Refuse runs whose scores do not mean the same."""
    if len(runs) < 2:
        raise UsageError("a comparison needs two runs or more", "name their folders")
    places = [run.path.resolve() for run in runs]
    if len(set(places)) < len(places):
        twice = next(place for place in places if places.count(place) > 1)
        raise UsageError(f"{twice} is named twice", "name each run once")
    for run in runs:
        if run.model not in SPECS:
            raise RunFolderError(f"{run.path} holds a run of the model '{run.model}'", f"one of {', '.join(SPECS)}")
    first = runs[0]
    for run in runs[1:]:
        if (run.labels is None) != (first.labels is None):
            one, other = (run, first) if run.labels is None else (first, run)
            raise UsageError(f"{one.path} is a regression, {other.path} a classifier", "compare runs of one task")
        if _named(run) != _named(first):
            what = f"{first.path} and {run.path} decide between different labels: {_named(first)}, and {_named(run)}"
            raise UsageError(what, "compare runs that decide between the same labels")


def _named(run) -> str:
    names = [label_text(label) for label in run.sides]
    return " and ".join(names if len(names) == 2 else sorted(names))  # pairs have them in the order of their data


def _side(run, step: dict, score: float, parts) -> Side:
    features = None
    if not run.kernel and run.stored is not None:
        features = int(np.count_nonzero(scaled_weights(run, run.coefficients(step)[0])[1]))
    phases = (run.record.get("totals") or {}).get("seconds") or {}
    spent = [seconds for name, seconds in phases.items() if name != "compiling"]  # once for all runs, not this run's
    spent += [read_cv(run).record.get("seconds")] if run.has("cv.json") else []
    seconds = float(sum(one for one in spent if is_number(one)))
    return Side(run, step, score, features, support_vectors(run, step), seconds, parts)


def _compared(sides, score: str, basis: str, factor: float, notes) -> RunComparison:
    """Return the comparison; ``factor`` times the spread of paired differences is the standard error of their mean."""
    sign = 1.0 if SCORES[score].higher else -1.0
    values = [sign * side.score for side in sides]
    best = int(np.argmax(levelled(values)))  # of equal ones the first that was named
    found = []
    for place, side in enumerate(sides):
        if place == best:
            continue
        error = None
        if side.parts is not None and sides[best].parts is not None and side.parts.size > 1:
            error = factor * float(np.std(sides[best].parts - side.parts, ddof=1))
        found.append(Difference(place, values[best] - values[place], error))
    return RunComparison(sides, score, basis, best, found, notes)


# -- on the same folds -------------------------------------------------------------------------------------------------


def _no_common_folds(runs) -> str | None:
    """Return why the folds of the runs differ; None if they do not."""
    without = [str(run.path) for run in runs if not run.has("cv.json")]
    if without:
        return f"{without[0]} is no cross-validation"
    identities = [run.record.get("identity") or {} for run in runs]
    for name, what in (("data_sha256", "data"), ("folds_sha256", "folds")):
        if len({str(one.get(name)) for one in identities}) > 1:
            features = _other_features(runs) if what == "data" else None
            return features or f"the {what} of their cross-validations differ"
    if len(scores := {str(chosen_by(run)) for run in runs}) > 1:
        return f"the scores of their cross-validations differ ({', '.join(sorted(scores))})"
    options = [run.record["options"] for run in runs]
    alike = len({str(one.get("class_weight")) for one in options}) == 1  # weights of classes count in no score
    whether = [any(one.get(name) is not None for name in ("weights", "weight_column")) for one in options]
    if len({one.get("weights_sha256") for one in identities} if alike else set(whether)) > 1:
        return "their cross-validations count the rows by other weights"
    first = _own_folds(runs[0])
    for run in runs[1:]:
        if (own := _own_folds(run)) != first:
            how = "have not the same folds" if set(own) & set(first) else "share no fold"
            return f"{runs[0].path} and {run.path} {how}"
    return None


def _other_features(runs) -> str | None:
    """Return which feature is one in some of the runs only, by name; None if there is none, or none has names."""
    for run in runs[1:]:
        for one, other in ((runs[0], run), (run, runs[0])):
            known = set(other.feature_names or one.feature_names or ())
            more = [name for name in one.feature_names or () if name not in known]
            if more:
                return f"their features differ ({shown(more[0])} is one in {one.path}, not in {other.path})"
    return None


def _own_folds(run) -> range:
    """Return the numbers of the folds that a run has walked: all, or those of its part."""
    whole, part = folds_of(read_cv(run).record)[1], run.record["options"].get("part")
    return range(whole) if part is None else stretch(part, whole, "folds")


def _on_folds(runs, rows, step: str) -> RunComparison:
    records = [read_cv(run).record for run in runs]
    folds, repeats, whole = records[0]["folds"], records[0].get("repeats") or 1, folds_of(records[0])[1]
    scores = [
        np.array([fold["score"] for fold in read_folds(run) if fold["step"] == row["step"]])
        for run, row in zip(runs, rows, strict=True)
    ]
    count = scores[0].size
    if any(parts.size != count or not np.isfinite(parts).all() for parts in scores):
        raise UsageError("some folds did not reach the steps that are compared", "continue the runs with `resume`")
    sides = [_side(run, row, float(parts.mean()), parts) for run, row, parts in zip(runs, rows, scores, strict=True)]
    name = PurePath(runs[0].record["data"].get("path", "data")).name
    times = f", {repeats} times" if repeats > 1 else ""
    those = f"{folds} folds{times}" if count == whole else f"{count} of {whole} folds"
    # Nadeau and Bengio 2003: folds share training rows, which the plain standard error does not know.
    factor = math.sqrt(1.0 / count + 1.0 / (folds - 1))
    notes = ["+- is one standard error over paired folds, corrected for the rows they share (Nadeau and Bengio 2003)"]
    notes = notes if count > 1 else ["no uncertainty: it takes two folds or more"]
    basis, these = f"the same {those} of {name}", "folds"
    if records[0].get("leave_one_out"):
        basis, these = f"the same {folds:,} rows of {name}, each left out", "rows"
        notes = ["no uncertainty: run folders have the mean over the rows, not the score of each"]
    if step == "best":
        notes.append(f"the steps were chosen on these {these}, which flatters all scores a little")
    return _compared(sides, records[0]["score"], basis, factor, notes)


# -- on the same test data ---------------------------------------------------------------------------------------------


def _on_rows(runs, rows, test: str | None, step: str, target: str | None = None) -> RunComparison:
    score = _shared_score(runs, rows)
    notes: list[str] = []
    parts: list = [None] * len(runs)
    try:
        found = [_row_parts(run, row, test, score, target) for run, row in zip(runs, rows, strict=True)]
        every = np.array([scores for scores, _ in found])
        shared, some = (one(np.isfinite(every), axis=0) for one in (np.all, np.any))
        if int(shared.sum()) < 2:
            raise DataError("the runs predict no two labelled rows in common")
        parts = list(every[:, shared])
        notes += dict.fromkeys(note for _, said in found for note in said)
        if left := int(np.count_nonzero(some & ~shared)):
            notes.append(f"left out: {left:,} of the rows, which lack a value that not all of the runs fill in")
    except DataError as error:
        if test is not None:
            raise
        notes.append(f"no uncertainty: {error.message}")
    column = f"test_{score.column}"
    scored = [float(part.mean()) if part is not None else row[column] for part, row in zip(parts, rows, strict=True)]
    if any(value is None for value in scored):
        raise UsageError("some of the steps have no score on the test data", "compare other steps with `step`")
    sides = [_side(*one) for one in zip(runs, rows, scored, parts, strict=True)]
    name = PurePath(test or runs[0].record["test"].get("path", "data")).name
    count = parts[0].size if parts[0] is not None else runs[0].record["test"].get("n_samples", 0)
    if parts[0] is not None:
        notes.insert(0, "+- is one standard error of the paired differences over the rows")
    if test is None and step == "best" and any((run.score_column or "").startswith("test_") for run in runs):
        notes.append("the steps were chosen on these test data: their scores are too good, and so may a difference be")
    factor = 1.0 / math.sqrt(count) if count else math.nan
    return _compared(sides, score.name, f"the same {count:,} rows of {name}", factor, notes)


def _shared_score(runs, rows) -> Score:
    """Return the score by which the models of all runs choose a step; where these differ, that of all regressions."""
    steps = [(SPECS[run.model], {**run.record["options"], **row}) for run, row in zip(runs, rows, strict=True)]
    found = {choose_score(None, spec, SCORES[spec.score].task, tau=step.get("tau")) for spec, step in steps}
    return found.pop() if len(found) == 1 else SCORES[steps[0][0].score]


def _row_parts(run, row: dict, test: str | None, score: Score, target: str | None) -> tuple[np.ndarray, list[str]]:
    """Return the part of every row of the test data in the score of a step, nan where it has no label or lacks a value
    that the run does not fill in; and notes on these data.
    """
    path = test
    if path is None:
        named = run.record["test"].get("path", ARRAYS)
        if named in (ARRAYS, "-"):
            raise DataError("the test data of a run were arrays, or standard input")
        path = found_path(run, named)
    data = read_new(run, path, target=target)
    digests = digests_of(run, path, data, target)
    if test is None and run.record["test"].get("sha256") not in digests:
        raise DataError(f"{path} is not the test data of {run.path} any more")
    values = decision_values(run, row, data.X)[0]
    values = votes(values) if run.voting else values
    known = run.known(data.y)
    if int(known.sum()) < 2:
        raise DataError(f"{path} has no labels", "name data with labels")
    seen = run.record["data"]["sha256"] in digests and f"{run.path} was fitted to these very rows: {FITTED}"
    notes = [note for note in (seen, not_scored(run, data.y)) if note]
    scores = np.full(known.size, np.nan)
    scores[known] = of_rows(score, values[known], run.targets(data.y[known]))
    return scores, notes
