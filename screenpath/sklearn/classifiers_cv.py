"""Classifiers whose parameters are chosen by cross-validation, whole paths at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from screenpath.catalogue.options import CERTIFY
from screenpath.cv.certify import ErrorBounds
from screenpath.cv.options import budget_of
from screenpath.cv.refine import refine
from screenpath.sklearn.base import C_VALUE
from screenpath.sklearn.calibration import METHODS, calibrated, probabilities
from screenpath.sklearn.classifiers import L1SVM, SVM, SparseSVM
from screenpath.sklearn.crossval import CrossValidated, OpenEnded, SearchedC, held_out_forms
from screenpath.sklearn.problem import Problem

TARGET = next(one for one in CERTIFY if one.name == "certify_to")
POINTS = budget_of(CERTIFY, "certify_points")


@dataclass(eq=False, repr=False)
class SVMClassifierCV(SearchedC, SVM):
    """:class:`SVMClassifier` with C chosen by cross-validation.

    One certified path for every fold and one on all data, warm-started and screened.

    Parameters
    ----------
    grid : int or sequence of float, default 100
        Number of log-spaced values of C from ``cmin`` to ``cmax``, or the values.
    cmin, cmax : float
        Ends of the log-spaced grid.
    cv : int, splitter or iterable, optional
        As everywhere in scikit-learn; 5 folds by default, of classifiers stratified.
    scoring : str or callable, optional
        ``accuracy`` (default), ``balanced_accuracy``, ``f1``, ``roc_auc``; of held-out samples.
        Or any scorer of scikit-learn, or ``f(estimator, X, y)``: the estimator knows the rows of a fold alone.
    step : {"best", "one-se"}
        Best mean score, of equal ones the most regularised; or the most regularised within one standard error of it.
    n_jobs : int, optional
        Processes that share the folds; the results are the same. A script needs ``if __name__ == "__main__":``.
    until_turn : bool, default False
        Go on behind the end of the grid, as it is spaced, until the mean score over the folds has turned.
    turn_points : int, default 100
        How many points may be added.
    certify : bool, default False
        Bound the cross-validation error at every C between the ends of the grid (two classes; Shibagaki et al. 2015).
    certify_to : float, optional
        Add values of C to the grid until none of the range can be better than the best found by more than this share.
    certify_points : int, default 1000
        How many may be added.
    calibration : {"sigmoid", "isotonic"}, optional
        What makes probabilities of the forms of held-out samples, which the folds have: ``predict_proba`` is there with
        one of them. Near a decision it may favour another class than ``predict``, which goes by the forms.
    kernel, gamma, degree, coef0, class_weight, intercept, bias, scale, rule, solver, tol, max_epochs, threads, seed
        As of :class:`SVMClassifier`.

    Attributes
    ----------
    cv_results_, best_index_, best_params_, best_score_, n_splits_
        See :class:`screenpath.sklearn.crossval.CrossValidated`.
    certificate_ : dict
        With ``certify``: ``best_error`` found at ``best_C``, ``lower_bound`` of the error at every C from ``cmin`` to
        ``cmax``, and their ``difference``: no C of the range is better by more.
    classes_, coef_, intercept_, support_, dual_coef_, n_iter_, dual_gap_, path_, C_, n_features_in_, feature_names_in_
        As of :class:`SVMClassifier`; ``path_`` has all steps of the grid.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from screenpath.sklearn import SVMClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVMClassifierCV(grid=10, calibration="sigmoid").fit(X, y)
    >>> bool(model.best_score_ > 0.9), model.predict_proba(X[:1]).shape
    (True, (1, 3))
    """

    _: KW_ONLY
    certify: bool = False
    certify_to: float | None = None
    certify_points: int = 1000
    calibration: str | None = None

    def _kept(self, problem: Problem) -> dict[str, Any]:
        if self.calibration not in (None, *METHODS):
            raise ValueError(f"calibration must be one of {', '.join(METHODS)} or None, not {self.calibration!r}")
        if self._certifies and (self.classes_.size > 2 or self.scoring not in (None, "accuracy")):
            raise ValueError("certify bounds the share of wrong decisions between two classes: leave it or scoring out")
        keep = self.calibration is not None or self.classes_.size > 2
        return {**super()._kept(problem), "keep": keep, "certify": self._certifies}

    @property
    def _certifies(self) -> bool:
        return bool(self.certify) or self.certify_to is not None

    def _refined(self, folds: list, grid, walk: Callable) -> tuple[list, Any]:
        if not self._certifies:
            return folds, grid
        if len(grid) < 2:
            raise ValueError("certify needs a range of C: a grid of 2 points or more")
        found = folds[0]
        certified = ErrorBounds([fold.held_out for fold in found])

        def solve(points: list, tol: float) -> bool:
            more = walk(np.array(points), tol)[0]
            found[:] = [fold.merged(other) for fold, other in zip(found, more, strict=True)]
            certified.update([fold.held_out for fold in found], again=points)
            return True

        if self.certify_to is not None:
            target = TARGET.checked(self.certify_to)
            refine(certified, target, POINTS.checked(self.certify_points), self.tol, solve)
        self.certificate_ = certified.record()
        return [found], np.array(certified.grid)

    def _after(self, problem: Problem, folds: list, splits: list) -> None:
        if self.calibration is None:
            return
        held_out = np.concatenate([split.held_out for split in splits])
        weights = None if problem.samples.weights is None else problem.samples.weights[held_out]
        parts = zip(held_out_forms(folds, self.best_index_).T, problem.targets.parts, strict=True)
        self._maps = [calibrated(self.calibration, forms, signs[held_out] > 0.0, weights) for forms, signs in parts]

    @available_if(lambda self: self.calibration is not None)
    def predict_proba(self, X) -> np.ndarray:
        """Return the probabilities of the classes, calibrated by the held-out samples of the folds.

        Parameters
        ----------
        X : array_like, sparse matrix or data frame of shape (m, d)

        Returns
        -------
        ndarray of shape (m, classes)
        """
        forms = self._forms(X)
        if self._sides is None:
            return probabilities(self._maps, forms)
        found = np.zeros(forms.shape)
        at = self._learned if len(self._maps) > 1 else self._learned[1]
        found[:, self._learned] = probabilities(self._maps, forms[:, at])
        return found


@dataclass(eq=False, repr=False)
class L1SVMClassifierCV(OpenEnded, L1SVM):
    """:class:`L1SVMClassifier` with C chosen by cross-validation, as of :class:`SVMClassifierCV`.

    Parameters
    ----------
    grid : int or sequence of float, default 20
        Number K of values ``lambda_max / k``, k = 1..K, with ``C = 1 / (2 lambda)``; or the values of C.
    log : bool, default False
        Space them evenly in the logarithm, from ``lambda_max`` to ``lambda_min_ratio * lambda_max``.
    lambda_min_ratio : float, default 0.05
        Used with ``log``.
    cv, scoring, step, n_jobs, until_turn, turn_points
        As of :class:`SVMClassifierCV`.
    class_weight, scale, rule, solver, tol, max_epochs, threads
        As of :class:`L1SVMClassifier`.

    Attributes
    ----------
    cv_results_, best_index_, best_params_, best_score_, n_splits_
        See :class:`screenpath.sklearn.crossval.CrossValidated`.
    classes_, coef_, intercept_, n_iter_, dual_gap_, path_, C_, n_features_in_, feature_names_in_
        As of :class:`L1SVMClassifier`; ``path_`` has all steps of the grid.
    """

    grid: Any = 20
    log: bool = False
    lambda_min_ratio: float = 0.05

    def _grid_options(self) -> dict[str, Any]:
        if np.ndim(self.grid) > 0:
            return {"lambda_list": [0.5 / C_VALUE.checked(value) for value in self.grid]}
        return {"grid": self.grid, **({"log": True, "lambda_min_ratio": self.lambda_min_ratio} if self.log else {})}


@dataclass(eq=False, repr=False)
class SparseSVMClassifierCV(CrossValidated, SparseSVM):
    """:class:`SparseSVMClassifier` with both penalties chosen by cross-validation, as of :class:`SVMClassifierCV`.

    Parameters
    ----------
    betas, alphas : int or sequence of float, default 10 and 100
        Numbers of values, or the values (0 may be one of ``alphas``), as of :func:`screenpath.sparse_svm_path`.
    beta_min_ratio, alpha_min_ratio : float, default 0.05 and 0.01
        Ends of the values from ``beta_max`` and, for each, ``alpha_max`` down.
    cv, scoring, step, n_jobs
        As of :class:`SVMClassifierCV`.
    loss, smoothing, class_weight, intercept, bias, scale, rule, first, solver, tol, max_epochs, seed
        As of :class:`SparseSVMClassifier`.

    Attributes
    ----------
    cv_results_, best_index_, best_params_, best_score_, n_splits_
        See :class:`screenpath.sklearn.crossval.CrossValidated`.
    alpha_, beta_, classes_, coef_, intercept_, n_iter_, dual_gap_, path_, n_features_in_, feature_names_in_
        As of :class:`SparseSVMClassifier`; ``path_`` has all steps of the grid.
    """

    betas: Any = 10
    alphas: Any = 100
    beta_min_ratio: float = 0.05
    alpha_min_ratio: float = 0.01

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # The held-out score does not know the weights of the classes, and the bias is penalised: of equal scores the
        # most regularised one need not favour the class that has nearly all the weight.
        tags.classifier_tags.poor_score = True
        return tags

    def _grid_options(self) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for one, values, ratio in (("beta", "betas", "beta_min_ratio"), ("alpha", "alphas", "alpha_min_ratio")):
            if np.ndim(getattr(self, values)) > 0:
                given[one] = [float(value) for value in getattr(self, values)]
            else:
                given |= {values: getattr(self, values), ratio: getattr(self, ratio)}
        return given
