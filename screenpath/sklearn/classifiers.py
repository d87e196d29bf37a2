"""Classifiers at one value of their parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from screenpath.catalogue.option import Option
from screenpath.sklearn.base import C_VALUE, AtC, BoxEstimator, Classifier, Single

PENALTIES = (
    Option("alpha", kind="number", valid=lambda value: value >= 0.0, demand="must be 0 or a positive number"),
    Option("beta", kind="positive"),
)


@dataclass(eq=False, repr=False, kw_only=True)
class SVM(Classifier, BoxEstimator):
    """The hinge loss, with a kernel or without."""

    kernel: str | None = None
    gamma: float | str = "1/d"
    degree: int = 3
    coef0: float = 0.0

    _model = "svm"


@dataclass(eq=False, repr=False, kw_only=True)
class L1SVM(Classifier):
    """The squared hinge loss and the L1 norm, which has a free bias and nothing to draw."""

    rule: str = "vi+gap"
    threads: int = 1

    _model = "l1svm"

    def _fitted_parameter(self, name: str, value: float) -> tuple[str, float]:
        return "C_", 0.5 / value


@dataclass(eq=False, repr=False, kw_only=True)
class SparseSVM(Classifier):
    """The smoothed or the squared hinge loss and the elastic net."""

    loss: str = "hinge"
    smoothing: float = 0.5
    intercept: str | None = None
    bias: float = 0.0
    rule: str = "sifs+gap"
    first: str = "features"
    seed: int = 0

    _model = "sparse-svm"
    _joint = True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = not self.bias  # of classes that no hyperplane through the origin parts
        return tags

    def _free_by_default(self) -> bool:
        return self.classes_.size == 2  # of more, weights of samples far apart make Newton's steps crawl


@dataclass(eq=False, repr=False)
class SVMClassifier(AtC, SVM):
    """Certified support vector machine, ``min 1/2 ||w||^2 + C sum s_i max(0, 1 - y_i x_i.w)``, linear or with a kernel.

    Parameters
    ----------
    C : float, default 1
        Weight of the sum of losses.
    kernel : {"rbf", "linear", "poly"}, optional
        ``exp(-gamma ||x - z||^2)``, ``x.z``, ``(gamma x.z + coef0)^degree``; a linear model with ``coef_`` by default.
    gamma : float or str, default "1/d"
        A number, or ``NUMBER/d`` with the number of features ``d``.
    degree : int, default 3
    coef0 : float, default 0
    class_weight : dict or "balanced", optional
        Weight of each label in the loss.
    intercept : {"free", "penalised", "none"}, optional
        A free one by default, which is not penalised, as that of ``SVC``; with ``bias`` a penalised one.
    bias : float, default 0
        Value of a constant feature that makes the intercept a penalised one, 1 where ``intercept`` alone asks for it.
    scale : {"none", "maxabs", "standard", "l2"}
        Scaling before the model; ``coef_`` is in the units of the data all the same.
    rule : str, default "dvi+gap"
        Screening rule, as of :func:`screenpath.svm_path`.
    solver : str, default "auto"
    tol : float, default 1e-6
        Relative duality gap on the full data, every rounding error counted.
    max_epochs : int, default 100000
        Sweeps or Newton iterations.
    threads : int, default 1
        Results do not depend on it.
    seed : int, default 0
        Of the random order of ``solver="cd"``.

    Attributes
    ----------
    classes_ : ndarray
    coef_ : ndarray of shape (1, d), or (classes, d) with more than two
    intercept_ : ndarray of shape (1,) or (classes,)
    support_ : ndarray of int
        With a kernel: the support vectors among the samples.
    dual_coef_ : ndarray of shape (1, n_support) or (classes, n_support)
        With a kernel: ``y_i alpha_i``.
    n_iter_ : int
        Sweeps or Newton iterations; of several classes the most.
    dual_gap_ : float, or ndarray of shape (classes,)
        Upper bound of the exact duality gap.
    path_ : PathResult or KernelPathResult, or a list with one a class
    C_ : float
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the data have names.

    Examples
    --------
    >>> from screenpath.sklearn import SVMClassifier
    >>> model = SVMClassifier(C=0.1).fit([[2.0, 1.0], [1.5, 2.0], [-1.0, -2.0]], ["yes", "yes", "no"])
    >>> model.predict([[1.0, 1.0]]).tolist()
    ['yes']
    """


@dataclass(eq=False, repr=False)
class L1SVMClassifier(AtC, L1SVM):
    """Certified L1-regularised squared-hinge SVM, ``min ||w||_1 + C sum s_i max(0, 1 - y_i (x_i.w + b))^2``.

    The bias ``b`` is free: it is not penalised.

    Parameters
    ----------
    C : float, default 1
        As of scikit-learn's ``LinearSVC(penalty="l1")``; ``1 / (2 lambda)`` of :func:`screenpath.l1_svm_path`.
    class_weight, scale, solver, tol, max_epochs, threads
        As of :class:`SVMClassifier`.
    rule : {"vi+gap", "vi", "gap", "none"}

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, dual_gap_, path_, C_, n_features_in_, feature_names_in_
        As of :class:`SVMClassifier`.
    """

    def _grid_options(self) -> dict[str, Any]:
        return {"lambda_list": [0.5 / C_VALUE.checked(self.C)]}


@dataclass(eq=False, repr=False)
class SparseSVMClassifier(Single, SparseSVM):
    r"""Certified sparse SVM, ``min 1/s sum s_i l(1 - m) + alpha/2 ||W||^2 + beta ||W||_1``, ``l`` the smoothed hinge.

    ``m`` is the margin ``y_i x_i.w`` of two classes, or of more the margins ``x_i.(w_{y_i} - w_c)`` over the others;
    ``s`` is the sum of the weights ``s_i``, the number of samples where there are none.

    Parameters
    ----------
    alpha, beta : float, default 0.01
        Weights of the two penalties beside the *mean* loss; ``alpha`` may be 0.
    loss : {"hinge", "squared-hinge"}
        The latter is ``1/2 max(0, 1 - m)^2``, whose free intercept is for two labels.
    smoothing : float, default 0.5
        Width of the hinge's quadratic part, in [0, 1). 0 is the exact hinge; its free intercept is for two labels.
    intercept : {"free", "penalised", "none"}, optional
        As of :class:`SVMClassifier`, but that of more than two labels there is none by default; a free one for each has
        the sum 0, before scaling is undone.
    bias : float, default 0
        Value of a constant feature that makes the intercept a penalised one, 1 where ``intercept`` alone asks for it.
    class_weight, scale, solver, tol, max_epochs, seed
        As of :class:`SVMClassifier`; a free intercept is for the solvers ``auto`` and ``newton``.
    rule : str, default "sifs+gap"
        As of :func:`screenpath.sparse_svm_path`.
    first : {"features", "samples"}

    Attributes
    ----------
    alpha_, beta_ : float
    classes_, coef_, intercept_, n_iter_, dual_gap_, path_, n_features_in_, feature_names_in_
        As of :class:`SVMClassifier`.
    """

    alpha: float = 0.01
    beta: float = 0.01

    def _grid_options(self) -> dict[str, Any]:
        return {one.name: [one.checked(getattr(self, one.name))] for one in PENALTIES}
