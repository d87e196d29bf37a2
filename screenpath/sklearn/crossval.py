"""Cross-validation inside an estimator: one certified path for each fold, the choice, and the path on all data."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import LeaveOneOut, check_cv
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from screenpath.catalogue.keywords import keywords_of
from screenpath.catalogue.losses import LOSSES
from screenpath.catalogue.option import Option
from screenpath.catalogue.options import UNTIL_TURN, VALUES
from screenpath.catalogue.scores import ROW_PARTS, SCORES, Choice, Score, choose, choose_score
from screenpath.catalogue.specs import SPECS
from screenpath.cv import folds as drawing
from screenpath.cv.alone import row_scores, whole_fold
from screenpath.cv.choice import check_spacing, grown, turned
from screenpath.cv.folds import Split
from screenpath.cv.run import FoldPath, Processes, Task, fold_paths
from screenpath.data.safe.memory import free_memory
from screenpath.engine.problem import Problem
from screenpath.errors import UsageError
from screenpath.report.notebook import curve_of
from screenpath.sklearn.base import PathEstimator, value_errors
from screenpath.walk.step import CERTIFIED

# Scikit-learn's names of the library's own scores.
SCORERS = {
    "balanced_accuracy": "balanced-accuracy", "roc_auc": "auc", "neg_mean_absolute_error": "mae",
    "neg_mean_squared_error": "mse",
}  # fmt: skip
MOST = next(one for one in UNTIL_TURN if one.name == "turn_points").keyword
STEPS = ("best", "one-se")
SEARCH: tuple[Option, ...] = (
    Option(
        "cv", type="Any",
        help="A number of folds, a splitter or an iterable, as everywhere in scikit-learn; 5 folds by default, "
        "stratified for classifiers. ``LeaveOneOut()`` costs some paths, not n, for linear models of two labels or "
        "real targets, without ``scale`` and weights: exact models without each row follow from that of all.",
    ),
    Option(
        "scoring", type="str | Callable",
        help="Of held-out samples. Classifiers: ``accuracy`` (default), ``balanced_accuracy``, ``f1``, ``roc_auc``; "
        "regressions: ``neg_mean_absolute_error`` (default), ``neg_mean_squared_error``, ``pinball`` (at `tau`, the "
        "default of quantile regressions). Or any scorer of scikit-learn, or ``f(estimator, X, y)``, whose estimator "
        "knows the rows of one fold only.",
    ),
    Option(
        "step", "best", "choice", choices=STEPS,
        help="Best mean score, ties go to the more regularised; or the most regularised within one standard error.",
    ),
    Option(
        "n_jobs", type="int",
        help="Processes that share the folds; the results are the same. A script needs ``if __name__ == '__main__':``.",
    ),
)  # fmt: skip


class CrossValidated(PathEstimator):
    """The part of an estimator that chooses its parameters on a grid.

    Attributes
    ----------
    cv_results_ : dict of str to ndarray
        ``params``, ``param_NAME``, ``splitK_test_score``, ``mean_test_score``, ``std_test_score``, ``se_test_score``
        (standard error), ``rank_test_score``, and ``certified``: whether the fits of all folds are. Errors of
        regressions are negated: larger is better.
    best_index_ : int
    best_params_ : dict
    best_score_ : float
    n_splits_ : int
    """

    _searches = SEARCH

    @classmethod
    def _first(cls) -> tuple[Option, ...]:
        grid = [one for one in keywords_of(SPECS[cls._model], "models") if one.group == "grid"]
        return tuple(replace(one, type=VALUES) if one.name == "grid" else one for one in grid)

    @classmethod
    def _further(cls) -> tuple[Option, ...]:
        return (*cls._searches, *super()._further())

    def _grid_options(self) -> dict[str, Any]:
        given = {one.name: getattr(self, one.name) for one in self._first()}
        if getattr(given.get("grid"), "grows", False):
            raise ValueError("an EpsilonGrid grows with a single path, folds share theirs: give a number of points")
        return {name: value for name, value in given.items() if value is not None}

    def fit(self, X, y, sample_weight=None, groups=None):
        """Cross-validate, choose, and fit all data.

        Parameters
        ----------
        X, y, sample_weight
            As without cross-validation; the weights count in held-out parts too.
        groups : array_like of shape (n,), optional
            For splitters that keep groups together.

        Returns
        -------
        self
        """
        with value_errors():
            self._search(X, y, sample_weight, groups)
        return self

    def _search(self, X, y, sample_weight=None, groups=None) -> None:
        if self.step not in STEPS:
            raise ValueError(f"step must be one of {', '.join(STEPS)}, not {self.step!r}")
        self.__dict__.pop("certificate_", None)  # of an earlier fit
        problem = self._problem(X, y, sample_weight)
        scorer = self._scorer()
        score, grid = self._score_of(problem, scorer is not None), problem.grid()
        splits = self._splits(problem, groups, score)
        alone = isinstance(self.cv, LeaveOneOut) and scorer is None and self._leaves_out(problem, score)
        splits = whole_fold(self.n_splits_) if alone else splits
        jobs = min(effective_n_jobs(self.n_jobs), len(splits))
        options = problem.options
        if problem.spec.rows is not None and jobs > 1:  # each process has a kernel matrix
            options = {**options, "matrix_memory": free_memory() // 2 // jobs}
        kept = {**self._kept(problem), **({} if scorer is None else {"keep": True})}
        kept |= {"alone": partial(warnings.warn, stacklevel=4)} if alone else {}
        known, balance, storage = problem.targets.known, problem.class_weight, problem.storage
        task = Task(problem.spec, options, score, known, balance, storage, inf, **kept)
        higher = score.higher or scorer is not None
        # Processes of one problem stay for all rounds; those of several problems would be too many at once.
        processes = Processes(problem.parts[0], task, jobs)
        at_work = processes if len(problem.parts) == 1 else jobs

        def walk(points, tol: float, begun=None) -> list[list[FoldPath]]:
            begun = [None] * len(problem.parts) if begun is None else begun
            parts = zip(problem.parts, begun, strict=True)
            return [list(fold_paths(part, task, splits, points, tol, at_work, begun=b)) for part, b in parts]

        def scored(folds) -> np.ndarray:
            return self._scored(scorer, score, problem, folds, splits)

        def ended(folds) -> bool:
            return turned(choose(scored(folds), higher), higher)

        with processes:
            folds, grid = self._grown(problem, walk(grid, self.tol), grid, walk, ended)
            folds, grid = self._refined(folds, grid, walk)
        self._warn([row for part in folds for fold in part for row in fold.rows], "cross-validation", 4)
        scores = scored(folds)
        choice = choose(scores, higher)
        at = choice.best if self.step == "best" else choice.one_se
        self._note(problem, grid, scores, higher, choice, at, folds)
        self._take(problem.paths(grid), at, 5)
        self._after(problem, folds, splits)

    def plot(self, kind: str = "cv"):
        """Return a picture of the cross-validation, which notebooks show; needs matplotlib.

        Parameters
        ----------
        kind : {"cv", "rejection", "coefficients", "gap", "time", "grid"}, default "cv"
            The mean score over the grid with its standard error and both choices; or a picture of ``path_``.

        Returns
        -------
        Picture
            ``figure`` is matplotlib's, ``save(FILE)`` writes it.
        """
        check_is_fitted(self)
        if kind != "cv":
            if isinstance(self.path_, list):
                raise ValueError(f"there is a path for each class: draw one, path_[0].plot({kind!r})")
            return self.path_.plot(kind)
        found, scoring = self.cv_results_, self.scoring or SPECS[self._model].chosen_by or SPECS[self._model].score
        name = getattr(scoring, "__name__", "score") if callable(scoring) else scoring.replace("_", " ")
        name = f"-{name}" if name in SCORES and not SCORES[name].higher else name  # as ``cv_results_`` has it
        record = {"model": self._model, "folds": self.n_splits_, "score": name}
        record |= {"certified": self.certificate_} if hasattr(self, "certificate_") else {}
        return curve_of(found["params"], found["mean_test_score"], found["se_test_score"], record)

    def _kept(self, problem: Problem) -> dict[str, Any]:
        """Return which results the folds keep (fields of Task): held-out forms where several problems decide."""
        return {"keep": len(problem.targets.parts) > 1}

    def _grown(self, problem: Problem, folds: list, grid, walk: Callable, ended: Callable) -> tuple[list, Any]:
        """Return the folds of every problem and the grid, extended after its end where asked for."""
        return folds, grid

    def _refined(self, folds: list, grid, walk: Callable) -> tuple[list, Any]:
        """Return the folds of every problem and the grid, refined where asked for."""
        return folds, grid

    def _after(self, problem: Problem, folds: list, splits: list) -> None:
        """Use the held-out forms that the folds have kept."""

    def _scorer(self) -> Callable | None:
        """Return the scorer of scikit-learn or the user's function; None for a score of the library's own."""
        if self.scoring is None or self.scoring in SCORES or self.scoring in SCORERS:
            return None
        if callable(self.scoring):
            return self.scoring
        if self.scoring not in get_scorer_names():
            own = ", ".join((*SCORERS, *SCORES))
            raise ValueError(f"there is no score {self.scoring!r}; use one of {own}, or a scorer of scikit-learn")
        return get_scorer(self.scoring)

    def _score_of(self, problem: Problem, other: bool) -> Score:
        """Return the score of the folds; with an ``other`` scorer the default one, which is not used."""
        own = None if other or callable(self.scoring) else self.scoring
        classes = len(np.unique(problem.targets.codes))
        return choose_score(SCORERS.get(own, own), problem.spec, problem.kind, classes, problem.options.get("tau"))

    def _leaves_out(self, problem: Problem, score: Score) -> bool:
        """Tell whether the fits without each row follow, exactly, from a single path on all of them."""
        ordinary = problem.samples.weights is None and problem.class_weight != "balanced"
        drawn = problem.options.get("scale") not in (None, "none") or getattr(self, "_certifies", False)
        one = len(problem.targets.parts) == 1 and problem.spec.rows is None and not problem.spec.votes
        return ordinary and one and not drawn and self._model in LOSSES and score.name in ROW_PARTS

    def _scored(
        self, scorer: Callable | None, score: Score, problem: Problem, folds: list[list[FoldPath]], splits: list[Split]
    ) -> np.ndarray:
        """Return the scores, shape (folds, steps): a scorer's if there is one, else those of the decisions of all
        problems.
        """
        if scorer is None and len(folds) == 1:
            if len(folds[0]) < self.n_splits_:  # each row is left out
                return row_scores(score, folds[0][0].products, problem.targets.parts[0])
            return np.array([[row["score"] for row in fold.rows] for fold in folds[0]])
        samples, codes, classes, rows = problem.samples, problem.targets.codes, None, []
        if isinstance(self, ClassifierMixin):
            classes = self.classes_[self._learned]
        takes_weights = scorer is not None and "sample_weight" in inspect.signature(scorer).parameters
        for k, split in enumerate(splits):
            truth = codes[split.held_out]
            weights = None if samples.weights is None else samples.weights[split.held_out]
            steps = [np.column_stack(forms) for forms in zip(*(part[k].products for part in folds), strict=True)]
            if scorer is None:
                rows.append([score.function(forms, truth, weights) for forms in steps])
                continue
            X, y = samples.X[split.held_out], truth if classes is None else classes[truth.astype(np.int64)]
            more = {"sample_weight": weights} if weights is not None and takes_weights else {}
            try:
                forms = map(problem.spec.of_each_class, steps)
                rows.append([float(scorer(Decided(one, classes), X, y, **more)) for one in forms])
            except AttributeError as error:
                if "predict_proba" not in str(error):
                    raise
                raise ValueError(
                    f"scoring={self.scoring!r} needs probabilities, which held-out decisions do not have; use one of "
                    "predictions or decisions, such as accuracy or roc_auc"
                ) from None
        return np.array(rows)

    def _splits(self, problem: Problem, groups, score: Score) -> list[Split]:
        """Return the checked folds of scikit-learn's splitter."""
        codes, weights, n = problem.targets.codes, problem.samples.weights, problem.samples.y.size
        classifier = isinstance(self, ClassifierMixin)
        labels = codes.astype(np.int64) if classifier else codes
        splitter, found = check_cv(self.cv, labels, classifier=classifier), []
        for k, (trained, held_out) in enumerate(splitter.split(problem.samples.X, labels, groups)):
            trained, held_out = (np.sort(np.arange(n)[part]) for part in (trained, held_out))
            rest = np.setdiff1d(np.arange(n), held_out)
            found.append(Split(0, k, held_out, None if np.array_equal(rest, trained) else trained))
        if not found:
            raise UsageError("the splitter of cv gives no split", "use for example cv=5")
        if classifier:
            everywhere = score.name in drawing.ALL_CLASSES
            names = self.classes_[self._learned].tolist()
            advice = "use stratified folds, as those of cv=2"
            drawing.check_classes(codes, found, everywhere, lambda code: str(names[int(code)]), weights, advice)
        if weights is not None:
            drawing.check_weights(weights, found)
        self.n_splits_ = len(found)
        return found

    def _note(self, problem: Problem, grid, scores, higher: bool, choice: Choice, at: int, folds: list) -> None:
        """Set the results of the search; larger scores are better."""
        scores = scores if higher else -scores
        points = [self._named(problem, parameter) for parameter in grid]
        mean = choice.mean if higher else -choice.mean
        met = [[row["status"] == CERTIFIED for row in fold.rows] for part in folds for fold in part]
        self.cv_results_ = {
            "params": points, **{f"param_{name}": np.array([point[name] for point in points]) for name in points[0]},
            **{f"split{k}_test_score": row for k, row in enumerate(scores)}, "mean_test_score": mean,
            "std_test_score": scores.std(axis=0), "se_test_score": choice.se,
            "rank_test_score": rankdata(-mean, method="min").astype(np.int32), "certified": np.all(met, axis=0),
        }  # fmt: skip
        self.best_index_, self.best_params_, self.best_score_ = at, points[at], float(mean[at])

    def _named(self, problem: Problem, parameter) -> dict[str, float]:
        """Return a grid point by the names of the estimator's parameters."""
        names = ("alpha", "beta") if np.ndim(parameter) else (problem.spec.parameter,)
        pairs = zip(names, np.ravel(parameter).tolist(), strict=True)
        return {name.removesuffix("_"): value for name, value in (self._fitted_parameter(*pair) for pair in pairs)}


class OpenEnded(CrossValidated):
    """A search over a grid that may be extended until the mean score has turned."""

    _searches = (*SEARCH, *(one.keyword for one in UNTIL_TURN))

    def _kept(self, problem: Problem) -> dict[str, Any]:
        return {**super()._kept(problem), "grows": bool(self.until_turn)}

    def _grown(self, problem: Problem, folds: list, grid, walk: Callable, ended: Callable) -> tuple[list, Any]:
        if not self.until_turn:
            return folds, grid
        spec, o = problem.spec, problem.options
        if o.get("c_list") is not None or o.get("lambda_list") is not None:
            raise ValueError("until_turn goes on as a grid is spaced, and grid has its values: give their number")
        check_spacing(grid, spec.rule(o["rule"]), o["rule"], spec.default_rule)
        first = np.asarray(grid)
        found = grown(
            first, folds, MOST.checked(self.turn_points), partial(spec.further, o, first),
            lambda _, reached: ended(reached), lambda points, begun: walk(points, self.tol, begun),
        )  # fmt: skip
        return found[1], found[0]


class SearchedC(OpenEnded):
    """A search over a grid of C.

    Attributes
    ----------
    C_ : float
    """


class Decided(BaseEstimator):
    """The decisions of a step on some rows, as a fitted estimator for scorers; it ignores the X they pass.

    ``forms`` have the shape (m, problems); ``classes`` are None of a regression.
    """

    def __init__(self, forms, classes):
        self.forms = forms[:, 0] if forms.shape[1] == 1 else forms
        self.classes_ = classes

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.classes_ is None else "classifier"
        if self.classes_ is not None:
            tags.classifier_tags = ClassifierTags()
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @available_if(lambda self: self.classes_ is not None)
    def decision_function(self, X) -> np.ndarray:
        return self.forms

    def predict(self, X) -> np.ndarray:
        if self.classes_ is None:
            return self.forms
        return self.classes_[self.forms.argmax(axis=1) if self.forms.ndim == 2 else (self.forms > 0.0).astype(int)]


def held_out_forms(folds: list[list[FoldPath]], at: int) -> np.ndarray:
    """Return the forms of all held-out samples at one step, fold after fold, shape (m, problems)."""
    return np.column_stack([np.concatenate([fold.products[at] for fold in part]) for part in folds])
