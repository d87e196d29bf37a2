"""A run with leave-one-out in place of drawn folds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from screenpath.catalogue.options import LOO
from screenpath.catalogue.scores import Choice, Score, averaged
from screenpath.cv.alone import check_task, row_scores, whole_fold
from screenpath.cv.session import CvSession


def session_of(options: dict) -> type[CvSession]:
    """Return the kind of session that the options of ``cv`` ask for."""
    return LooSession if options["folds"] == LOO else CvSession


class LooSession(CvSession):
    """A run whose steps carry the scores of each row by the model of the others: one fold that holds out all rows."""

    warned = False
    counted = "paths with each row left out"

    def alone(self, text: str) -> None:
        """Say of a long wait for a step; later ones are not shorter."""
        if not self.warned:
            self.console.say(f"a step leaves out {text}")
        self.warned = True

    def draw(self, task: str, groups: np.ndarray | None) -> list:
        classes = len((self.data.labels or {}).get("classes", (-1, 1)))
        check_task(self.spec, self.options, classes, (self.score, *self.further))
        self.stratified = False
        return whole_fold(self.count)

    @property
    def count(self) -> int:
        return self.samples.y.size

    def fold_scores(self) -> np.ndarray:
        return self.row_scores(self.score)

    def row_scores(self, score: Score) -> np.ndarray:
        """Return scores of shape (n, steps); nan at steps that were not reached."""
        fold, samples = self.folds[0], self.samples
        scores = np.full((self.count, len(self.grid)), np.nan)
        if fold.rows:
            scores[:, : len(fold.rows)] = row_scores(score, fold.products, samples.targets, samples.weights)
        return scores

    def further_scores(self, names: list) -> dict[str, tuple]:
        return {one.column: averaged(self.row_scores(one)) for one in self.further}

    def identity(self) -> dict:
        return {**super().identity(), "folds": LOO}

    def choose(self) -> Choice:
        return replace(super().choose(), optimism=None)  # a row's own best step says nothing

    def cv_record(self) -> dict:
        return {**super().cv_record(), "fold_seed": None, "fold_sizes": [1] * self.count, "leave_one_out": True}
