"""The estimators: at one value of their parameters, and with parameters chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.metaestimators import available_if

from screenpath.catalogue.option import Option
from screenpath.catalogue.options import CERTIFY
from screenpath.catalogue.scores import Sigmoid, pairs_of, votes
from screenpath.cv.certify import ErrorBounds
from screenpath.cv.choice import refine
from screenpath.engine.problem import Problem, Targets
from screenpath.sklearn.base import C_VALUE, AtC, Classifier, Regressor, Single, estimator
from screenpath.sklearn.crossval import CrossValidated, OpenEnded, SearchedC, held_out_forms

PENALTIES = tuple(
    Option(
        name, 0.01, "number", f"Weight of the {norm} penalty, added to the *mean* loss; it may be 0.",
        valid=lambda value: value >= 0.0, demand="must be 0 or a positive number",
    )
    for name, norm in (("alpha", "L2"), ("beta", "L1"))
)  # fmt: skip
TARGET = next(one for one in CERTIFY if one.name == "certify_to")
POINTS = next(one for one in CERTIFY if one.name == "certify_points").keyword
METHODS = ("sigmoid", "isotonic")
SHAPES = ("ovr", "ovo")
PAIRS = (
    Option(
        "multi_class", "ovr", "choice", choices=SHAPES,
        help="More than two classes: each against the rest, or each pair of them on their samples, as ``SVC`` has it: "
        "most votes win, of equally many the first class. Coefficients then have a row for each pair.",
    ),
    Option(
        "decision_function_shape", "ovr", "choice", choices=SHAPES,
        help="Of pairs of classes, as of ``SVC``: the votes for each class, to which the sum of its forms adds less "
        "than a third; or the forms of the pairs, of shape (m, pairs), above 0 for the first class of the pair.",
    ),
)  # fmt: skip
CALIBRATION = Option(
    "calibration", kind="choice", choices=METHODS,
    help="Map from the forms of held-out samples to probabilities; only with one is there a ``predict_proba``. Near a "
    "decision it may favour another class than ``predict``, which uses the forms.",
)  # fmt: skip


class SVM(Classifier):
    """The hinge loss, linear or behind a kernel.

    Attributes
    ----------
    support_ : ndarray of int
        With a kernel: the support vectors among the samples.
    dual_coef_ : ndarray of shape (1, n_support) or (classes, n_support)
        With a kernel: ``y_i alpha_i``. With ``multi_class="ovo"`` this, ``coef_`` and ``intercept_`` have a row for
        each pair of classes, (0, 1), (0, 2), ..., (1, 2), ..., positive for the first; ``path_`` is one of all pairs.
    """

    @classmethod
    def _further(cls) -> tuple[Option, ...]:
        return (*super()._further(), *PAIRS)

    def _given(self, width: int) -> dict[str, Any]:
        return {**super()._given(width), "one_vs_one": self._voting}

    def _targets(self, codes: np.ndarray, classes: np.ndarray) -> Targets:
        several, _ = (one.checked(getattr(self, one.name)) for one in PAIRS)
        self._voting = several == "ovo" and classes.size > 2
        return super()._targets(codes, classes)

    def decision_function(self, X) -> np.ndarray:
        forms = super().decision_function(X)
        if not self._voting or self.decision_function_shape == "ovo":
            return forms
        each = np.eye(self._learned.size)
        first, second = np.array(pairs_of(self._learned.size)).T
        sums = forms @ (each[first] - each[second])
        found = np.full((len(forms), self.classes_.size), -1.0)  # also of classes without weight
        found[:, self._learned] = votes(forms) + sums / (3.0 * (np.abs(sums) + 1.0))
        return found

    decision_function.__doc__ = Classifier.decision_function.__doc__


class L1SVM(Classifier):
    """The squared hinge loss and the L1 norm, with a free bias."""

    def _fitted_parameter(self, name: str, value: float) -> tuple[str, float]:
        return "C_", 0.5 / value


class SparseSVM(Classifier):
    """The smoothed or the squared hinge loss and the elastic net.

    Attributes
    ----------
    alpha_, beta_ : float
    """

    _joint = True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = not self.bias  # a hyperplane through the origin may not separate classes
        return tags


@estimator("svm")
class SVMClassifier(AtC, SVM):
    """Certified support vector machine, ``min 1/2 ||w||^2 + C sum s_i max(0, 1 - y_i x_i.w)``, linear or with a kernel.

    Examples
    --------
    >>> from screenpath.sklearn import SVMClassifier
    >>> model = SVMClassifier(C=0.1).fit([[2.0, 1.0], [1.5, 2.0], [-1.0, -2.0]], ["yes", "yes", "no"])
    >>> model.predict([[1.0, 1.0]]).tolist()
    ['yes']
    """


@estimator("l1svm")
class L1SVMClassifier(AtC, L1SVM):
    """Certified L1-regularised squared-hinge SVM, ``min ||w||_1 + C sum s_i max(0, 1 - y_i (x_i.w + b))^2``.

    The bias ``b`` is free: it is not penalised. ``C`` is that of scikit-learn's ``LinearSVC(penalty="l1")``,
    ``1 / (2 lambda)`` of :func:`screenpath.l1_svm_path`.
    """

    def _grid_options(self) -> dict[str, Any]:
        return {"lambda_list": [0.5 / C_VALUE.checked(self.C)]}


class AtPair(Single):
    """A fit at one value of both penalties."""

    @classmethod
    def _first(cls) -> tuple[Option, ...]:
        return PENALTIES

    def _grid_options(self) -> dict[str, Any]:
        return {one.name: [replace(one, default=None).checked(getattr(self, one.name))] for one in PENALTIES}


@estimator("sparse-svm")
class SparseSVMClassifier(AtPair, SparseSVM):
    r"""Certified sparse SVM, ``min 1/s sum s_i l(1 - m) + alpha/2 ||W||^2 + beta ||W||_1``, ``l`` the smoothed hinge.

    ``m`` is the margin ``y_i x_i.w`` of two classes, or of more the margins ``x_i.(w_{y_i} - w_c)`` over the others;
    ``s`` is the sum of the weights ``s_i``, the number of samples where there are none. A free intercept is for two
    labels and the solvers ``auto`` and ``newton``.
    """


@estimator("svm")
class SVMClassifierCV(SearchedC, SVM):
    """:class:`SVMClassifier` with C chosen by cross-validation.

    It computes one certified path for every fold and one on all data, warm-started and screened.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from screenpath.sklearn import SVMClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVMClassifierCV(grid=10, calibration="sigmoid").fit(X, y)
    >>> bool(model.best_score_ > 0.9), model.predict_proba(X[:1]).shape
    (True, (1, 3))
    """

    _searches = (*SearchedC._searches, *(one.keyword for one in CERTIFY), CALIBRATION)

    def _kept(self, problem: Problem) -> dict[str, Any]:
        if self.calibration not in (None, *METHODS):
            raise ValueError(f"calibration must be one of {', '.join(METHODS)} or None, not {self.calibration!r}")
        if self.calibration is not None and self._voting:
            raise ValueError("calibration maps forms of classes, not of pairs: leave it out, or use multi_class='ovr'")
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


@estimator("l1svm")
class L1SVMClassifierCV(OpenEnded, L1SVM):
    """:class:`L1SVMClassifier` with C chosen by cross-validation, like :class:`SVMClassifierCV`."""

    def _grid_options(self) -> dict[str, Any]:
        given = super()._grid_options()
        if np.ndim(self.grid) > 0:
            given["grid"] = [0.5 / C_VALUE.checked(value) for value in self.grid]
        return given


@estimator("sparse-svm")
class SparseSVMClassifierCV(CrossValidated, SparseSVM):
    """:class:`SparseSVMClassifier` with both penalties chosen by cross-validation, like :class:`SVMClassifierCV`."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # The held-out score ignores class weights, and the bias is penalised: the most regularised of equal scores
        # need not favour the class with nearly all the weight.
        tags.classifier_tags.poor_score = True
        return tags


class BoxRegressor(Regressor):
    """A piecewise linear loss, linear or behind a kernel.

    Attributes
    ----------
    support_ : ndarray of int
        With a kernel: the support vectors among the samples.
    dual_coef_ : ndarray of shape (1, n_support)
        With a kernel: ``C theta_i``; of two dual variables the difference, as in scikit-learn's ``SVR``.
    """


@estimator("lad")
class LADRegressor(AtC, BoxRegressor):
    """Certified least absolute deviations, ``min 1/2 ||w||^2 + C sum s_i |y_i - x_i.w|``.

    Examples
    --------
    >>> from screenpath.sklearn import LADRegressor
    >>> LADRegressor(C=10.0).fit([[1.0], [2.0], [3.0], [4.0]], [3.0, 5.0, 60.0, 9.0]).predict([[5.0]]).round(3).tolist()
    [11.0]
    """


@estimator("quantile")
class QuantileRegressor(AtC, BoxRegressor):
    """Certified quantile regression, loss ``max((tau - 1) t, tau t)`` of ``t = y - x.w``."""


@estimator("svr")
class SVMRegressor(AtC, BoxRegressor):
    """Certified support vector regression, loss ``max(0, |y - x.w| - epsilon)``."""


class Net(Regressor):
    """A loss of real targets and the elastic net.

    Attributes
    ----------
    alpha_, beta_ : float
    """


@estimator("huber")
class HuberRegressor(AtPair, Net):
    r"""Certified Huber regression, ``min 1/s sum s_i h(y_i - x_i.w) + alpha/2 ||w||^2 + beta ||w||_1``.

    ``h(t) = t^2/(2 gamma)`` where ``|t| <= gamma`` (`smoothing`), else ``|t| - gamma/2``; ``s`` is the sum of the
    weights ``s_i``, the number of samples where there are none.
    """


@estimator("huber")
class HuberRegressorCV(CrossValidated, Net):
    """:class:`HuberRegressor` with both penalties chosen by cross-validation."""


@estimator("sparse-lad")
class SparseLADRegressor(AtPair, Net):
    """Certified least absolute deviations, ``min 1/s sum s_i |y_i - x_i.w| + alpha/2 ||w||^2 + beta ||w||_1``."""


@estimator("sparse-lad")
class SparseLADRegressorCV(CrossValidated, Net):
    """:class:`SparseLADRegressor` with both penalties chosen by cross-validation."""


@estimator("sparse-quantile")
class SparseQuantileRegressor(AtPair, Net):
    """Certified quantile regression with an elastic net, like :class:`SparseLADRegressor`."""


@estimator("sparse-quantile")
class SparseQuantileRegressorCV(CrossValidated, Net):
    """:class:`SparseQuantileRegressor` with both penalties chosen by cross-validation."""


@estimator("sparse-svr")
class SparseSVMRegressor(AtPair, Net):
    """Certified support vector regression with an elastic net, like :class:`SparseLADRegressor`."""


@estimator("sparse-svr")
class SparseSVMRegressorCV(CrossValidated, Net):
    """:class:`SparseSVMRegressor` with both penalties chosen by cross-validation."""


@estimator("lad")
class LADRegressorCV(SearchedC, BoxRegressor):
    """:class:`LADRegressor` with C chosen by cross-validation, like :class:`screenpath.sklearn.SVMClassifierCV`."""


@estimator("quantile")
class QuantileRegressorCV(SearchedC, BoxRegressor):
    """:class:`QuantileRegressor` with C chosen by cross-validation, like :class:`LADRegressorCV`."""


@estimator("svr")
class SVMRegressorCV(SearchedC, BoxRegressor):
    """:class:`SVMRegressor` with C chosen by cross-validation, like :class:`LADRegressorCV`."""


# -- from held-out decision values to probabilities ------------------------------------------------------------------


def calibrated(method: str, forms, positive, weights=None):
    """Return the map from decision values to probabilities of the positive class, by its ``predict(forms)``.

    ``forms``, decision values of held-out samples, ``positive``, bool, and ``weights`` have the shape (n,).
    """
    weights = np.ones(forms.size) if weights is None else weights
    if method == "isotonic":
        steps = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        return steps.fit(forms, positive.astype(np.float64), sample_weight=weights)
    return Sigmoid.fitted(forms, np.where(positive, 1.0, -1.0), weights)


def probabilities(maps: list, forms: np.ndarray) -> np.ndarray:
    """Return the probabilities of all classes, shape (m, classes), from a map for each class, or one map for two.

    ``forms`` has the shape (m,) for two classes, else (m, classes).
    """
    if forms.ndim == 1:
        p = maps[0].predict(forms)
        return np.column_stack([1.0 - p, p])
    each = np.column_stack([one.predict(form) for one, form in zip(maps, forms.T, strict=True)])
    total = each.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, each / np.where(total > 0.0, total, 1.0), 1.0 / len(maps))
