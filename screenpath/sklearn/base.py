"""What all estimators share: checked data, the options of the model, and the attributes that a path sets.

Parameters are the declared options of the model that are for Python (``catalogue.option.Option.python``), and those of
a single fit or a search; :func:`estimator` makes ``__init__`` and its documentation from them.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from screenpath.catalogue.keywords import as_options, bound, documented, keywords_of, parameters
from screenpath.catalogue.option import Option
from screenpath.catalogue.options import CLASS_WEIGHT, ONE_HOT
from screenpath.catalogue.scores import votes
from screenpath.catalogue.specs import SPECS
from screenpath.catalogue.targets import checked_weights
from screenpath.data.files.arrays import canonical, filled, is_table, rows_of
from screenpath.data.files.dataset import Form
from screenpath.data.files.frame import encoded, encoded_like
from screenpath.engine.problem import Problem, Targets
from screenpath.engine.result import Result
from screenpath.errors import DataError, UsageError
from screenpath.numbers import sparse as sp
from screenpath.walk.step import CERTIFIED

C_VALUE = Option("C", 1.0, "positive", "Weight of the sum of losses.")
ESTIMATORS: dict[str, type] = {}  # by their names, all that :func:`estimator` has made
ATTRIBUTES = re.compile(r"Attributes\n-+\n(.*)", re.DOTALL)


def estimator(model: str):
    """Make an estimator of a declared model: ``_first()`` also by position, ``_further()`` by name only."""

    def made(cls):
        cls._model = model
        first, further = cls._first(), cls._further()
        me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        places = parameters(first, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        signature = inspect.Signature([me, *places, *parameters(further)])

        def __init__(self, *arguments, **given):
            found = bound(signature, cls.__name__, self, *arguments, **given)
            found.apply_defaults()
            for name in list(found.arguments)[1:]:
                setattr(self, name, found.arguments[name])

        __init__.__signature__ = signature  # type: ignore[attr-defined]  # where `inspect` looks for it
        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__ = __init__
        bases = [one for one in reversed(cls.__mro__[1:]) if one.__module__.startswith("screenpath")]
        parts = [ATTRIBUTES.search(inspect.cleandoc(one.__dict__.get("__doc__") or "")) for one in bases]
        found = "\n".join(one[1].rstrip() for one in parts if one)
        cls.__doc__ = documented(cls.__doc__, (*first, *further), behind=f"Attributes\n----------\n{found}")
        ESTIMATORS[cls.__name__] = cls
        return cls

    return made


@contextlib.contextmanager
def value_errors():
    """Turn the library's errors about data and parameters into ValueError, as scikit-learn's users expect."""
    try:
        yield
    except (DataError, UsageError) as error:
        raise ValueError(str(error)) from error


@contextlib.contextmanager
def _columns_named(X, gaps: bool):
    """Name the column of a data frame, and what reads it, where scikit-learn's error is about all of them."""
    try:
        yield
    except (TypeError, ValueError):
        if is_table(X):
            rows_of(X, gaps=gaps)
        raise


def _table(X):
    """Return a data frame; anything else has no columns to encode by name."""
    if not is_table(X):
        raise UsageError("`one_hot` names columns of a table, the data has no names", "pass a data frame")
    return X


class PathEstimator(BaseEstimator, ABC):
    """Base of the estimators.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d), or (classes, d) with more than two; (d,) of a regression
        Sparse where the data are, with many times more columns than stored values; none with a kernel.
    intercept_ : ndarray of shape (1,) or (classes,); float of a regression
    n_iter_ : int
        Sweeps or Newton iterations; of several classes the most.
    dual_gap_ : float, or ndarray of shape (classes,)
        Upper bound of the exact duality gap.
    path_ : PathResult or KernelPathResult, or list of them with one a class
        The path on all data; predictions use its step ``best_index_``, or its only one.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the data have names. With `one_hot`, the features of ``coef_`` are ``path_.feature_names``.
    """

    _model = ""
    _form: Form | None = None  # of the columns of a data frame, if they are encoded

    @classmethod
    @abstractmethod
    def _first(cls) -> tuple[Option, ...]:
        """Return the parameters that can be given by position."""

    @classmethod
    def _further(cls) -> tuple[Option, ...]:
        """Return the parameters that are given by name: by default those of the model without its grid."""
        return tuple(one for one in keywords_of(SPECS[cls._model], "models") if one.group != "grid")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        tags.input_tags.allow_nan = self.missing not in ("error", "drop")
        return tags

    @property
    def _accepted(self) -> dict[str, Any]:
        """Return what rows may be, as scikit-learn's checks take it."""
        finite = "allow-nan" if filled(self.missing) else True
        return {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": finite}

    # -- from parameters and data to a problem --

    def _given(self, width: int) -> dict[str, Any]:
        spec = SPECS[self._model]
        options = {one.name for one in spec.path_options if one.group != "grid"} - {CLASS_WEIGHT.name, ONE_HOT.name}
        given = {name: value for name, value in self.get_params(deep=False).items() if name in options}
        return as_options(spec, {**given, **self._grid_options()}, width)

    @abstractmethod
    def _grid_options(self) -> dict[str, Any]:
        """Return the options, or keywords, of the grid."""

    @abstractmethod
    def _encoded(self, y, weights) -> tuple[Targets, Any]:
        """Return the targets of the problems, and the weights of the samples."""

    def _class_weight(self) -> Any:
        return None

    def _problem(self, X, y, sample_weight=None) -> Problem:
        """Check data and parameters."""
        how = {**self._accepted, "y_numeric": isinstance(self, RegressorMixin)}
        self._form = None
        if self.one_hot:
            validate_data(self, X, skip_check_array=True)  # names and number of the columns
            X, self._form = encoded(_table(X), self.one_hot, None, None, self.missing)
            X, y = check_X_y(X, y, **how)
        else:
            with _columns_named(X, filled(self.missing)):
                X, y = validate_data(self, X, y, **how)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weights is not None and not weights.any():
            raise ValueError("all sample weights are zero: no sample is left")
        weights = checked_weights(y, weights)
        targets, weights = self._encoded(y, weights)
        return Problem(self._model, self._given(X.shape[1]), X, targets, weights, self._class_weight())

    # -- from paths to attributes --

    def _take(self, paths: Sequence[Result], at: int, level: int = 4) -> None:
        """Set the attributes of step ``at`` of the paths; see :meth:`_warn`."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            known = tuple(names.tolist()) if self._form is None else self._form.names
            paths = [replace(path, feature_names=known, form=self._form) for path in paths]
        steps = [path.solved(at) for path in paths]
        self.path_ = paths[0] if len(paths) == 1 else list(paths)
        self._at = at
        self.n_iter_ = int(max(step.epochs for step in steps))
        gaps = np.array([step.gap for step in steps])
        self.dual_gap_ = float(gaps[0]) if gaps.size == 1 else gaps
        for name in ("coef_", "intercept_", "support_", "dual_coef_"):  # those of an earlier fit with another kernel
            self.__dict__.pop(name, None)
        if getattr(self, "kernel", None) is None:
            weights = [path.coef(at) for path in paths]
            if sp.issparse(weights[0]):  # many features, few with a column
                self.coef_: Any = sp.csr_array(sp.vstack(weights))
            else:
                self.coef_ = np.concatenate([np.atleast_2d(one) for one in weights])
        else:
            alphas = np.concatenate([np.atleast_2d(path.coef(at)) for path in paths])
            self.support_ = np.flatnonzero(alphas.any(axis=0))
            self.dual_coef_ = alphas[:, self.support_]
        self.intercept_: Any = np.concatenate([np.atleast_1d(path.intercept(at)) for path in paths]).astype(np.float64)
        for name, value in steps[0].parameters.items():
            setattr(self, *self._fitted_parameter(name, value))
        self._warn([step.record() for step in steps], "the fit", level)

    def _fitted_parameter(self, name: str, value: float) -> tuple[str, float]:
        """Return name and value of the attribute for a parameter of the path."""
        return f"{name}_", value

    def _warn(self, rows: Sequence[dict], what: str, level: int) -> None:
        """Warn of steps that are not certified, with the largest gap; ``level`` is the stack level."""
        left = [row for row in rows if row["status"] != CERTIFIED]
        if not left:
            return
        worst = max(left, key=lambda row: row["rel_gap"])
        many = f" at {len(left)} of {len(rows)} solutions" if len(rows) > 1 else ""
        why = ": ".join(filter(None, (worst["status"], worst.get("reason"))))
        warnings.warn(
            f"{what} is not certified{many}: the relative duality gap is {worst['rel_gap']:.2e}, tol={self.tol:g} was "
            f"asked for ({why}); raise max_epochs or tol, or scale the data",
            ConvergenceWarning,
            stacklevel=level,
        )

    # -- predictions --

    def predict(self, X) -> np.ndarray:
        """Return the labels or values of rows.

        Parameters
        ----------
        X : array_like, sparse matrix or data frame of shape (m, d)

        Returns
        -------
        ndarray of shape (m,)
        """
        return self._decided(self._forms(X))

    def _decided(self, forms: np.ndarray) -> np.ndarray:
        """Return the predictions of linear forms."""
        return forms

    def _forms(self, X) -> np.ndarray:
        """Return the linear forms of new rows, of shape (m,), or (m, classes)."""
        check_is_fitted(self)
        if self._form is None:
            with value_errors(), _columns_named(X, filled(self.missing)):
                X = validate_data(self, X, **self._accepted, reset=False)
        else:
            with value_errors():
                validate_data(self, _table(X), skip_check_array=True, reset=False)
                X = encoded_like(X, self._form)
            X = check_array(X, **self._accepted)
        X, paths = canonical(X), self.path_ if isinstance(self.path_, list) else [self.path_]
        forms = np.column_stack([path.decision_function(X, self._at) for path in paths])
        return forms.ravel() if forms.shape[1] == 1 else forms


class Single(PathEstimator):
    """A fit at one value of the parameters."""

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array_like, sparse matrix or data frame of shape (n, d)
        y : array_like of shape (n,)
            Targets; of a classifier labels of any type.
        sample_weight : array_like of shape (n,), optional
            How often each sample stands in the data.

        Returns
        -------
        self
        """
        with value_errors():
            self._take(self._problem(X, y, sample_weight).paths(), 0)
        return self


class AtC(Single):
    """A fit at one value of C.

    Attributes
    ----------
    C_ : float
    """

    @classmethod
    def _first(cls) -> tuple[Option, ...]:
        return (C_VALUE,)

    def _grid_options(self) -> dict[str, Any]:
        return {"c": C_VALUE.checked(self.C)}


class Classifier(ClassifierMixin, PathEstimator):
    """Labels of any type, class weights, decisions.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; of two, the second is +1. A label whose samples all have weight 0 has coefficients 0 and is
        never predicted.
    """

    _joint = False  # whether the model learns more than two classes jointly
    _voting = False  # whether it learns each pair of them

    def _encoded(self, y, weights) -> tuple[Targets, Any]:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            only = self.classes_.tolist()[0]
            raise ValueError(f"a classifier needs samples of two classes, all of these are of 1 class: {only!r}")
        codes, given = codes.ravel(), self.class_weight if isinstance(self.class_weight, Mapping) else {}
        counted = np.ones(codes.size, dtype=bool) if weights is None else weights > 0.0
        counted &= ~np.isin(self.classes_, [label for label, weight in given.items() if weight == 0])[codes]
        self._learned = np.unique(codes[counted])
        if self._learned.size < 2:
            raise ValueError("a classifier needs samples of two classes with a weight above 0, these are of 1 class")
        self._sides: Any = None  # (classes, problems): forms of classes from those of problems; None: the same
        if self._learned.size < self.classes_.size:  # some classes have no weight: learn the others
            self._sides = np.eye(self.classes_.size)[:, self._learned]
            if self._learned.size == 2:
                self._sides = self._sides[:, 1:] - self._sides[:, :1]
            there = np.isin(codes, self._learned)
            weights = np.where(there, 1.0 if weights is None else weights, 0.0)
            codes = np.where(there, np.searchsorted(self._learned, codes), 0)
        return self._targets(codes, self.classes_[self._learned]), weights

    def _targets(self, codes: np.ndarray, classes: np.ndarray) -> Targets:
        """Return the targets of one problem, or of one problem for each class against the rest."""
        numbers, labels, signs = codes.astype(np.float64), tuple(classes.tolist()), {"+1": 1.0, "-1": 0.0}
        if classes.size == 2:
            return Targets(numbers, [2.0 * numbers - 1.0], [labels], signs)
        if self._joint or self._voting:
            return Targets(numbers, [codes], [labels], {"classes": list(range(classes.size))})
        parts = [np.where(codes == k, 1.0, -1.0) for k in range(classes.size)]
        return Targets(numbers, parts, [(False, True)] * classes.size, signs)

    def _take(self, paths: Sequence[Result], at: int, level: int = 4) -> None:
        super()._take(paths, at, level + 1)
        if self._sides is None or self._voting:
            return
        for name in {"coef_", "dual_coef_"} & self.__dict__.keys():
            rows = getattr(self, name)
            setattr(self, name, (sp.csr_array(self._sides) if sp.issparse(rows) else self._sides) @ rows)
        learned = self._sides.any(axis=1)
        self.intercept_ = np.where(learned, self._sides @ self.intercept_, -1.0)

    def _forms(self, X) -> np.ndarray:
        forms = super()._forms(X)
        if self._sides is None or self._voting:
            return forms
        forms = forms.reshape(len(forms), -1) @ self._sides.T
        learned = self._sides.any(axis=1)
        forms[:, ~learned] = forms[:, learned].min(axis=1, keepdims=True) - 1.0  # classes without weight
        return forms

    def _class_weight(self) -> Any:
        given = self.class_weight
        if not isinstance(given, Mapping):  # what is no weights at all is refused by the path
            return given
        known = self.classes_.tolist()
        strange = [label for label in given if label not in known]
        if strange:
            raise ValueError(f"class_weight names {strange[0]!r}; the classes are {known[:20]}")
        numbers = {known[code]: k for k, code in enumerate(self._learned.tolist())}
        return {numbers[label]: weight for label, weight in given.items() if label in numbers}

    def decision_function(self, X) -> np.ndarray:
        """Return the linear forms of rows: above 0 means the second of two classes; of more, the largest decides.

        Parameters
        ----------
        X
            As of :meth:`predict`.

        Returns
        -------
        ndarray of shape (m,), or (m, classes) with more than two
        """
        return self._forms(X)

    def _decided(self, forms: np.ndarray) -> np.ndarray:
        if self._voting:
            return self.classes_[self._learned[votes(forms).argmax(axis=1)]]
        return self.classes_[forms.argmax(axis=1) if forms.ndim == 2 else (forms > 0.0).astype(np.int64)]


class Regressor(RegressorMixin, PathEstimator):
    def _encoded(self, y, weights) -> tuple[Targets, Any]:
        y = np.asarray(y, dtype=np.float64)
        return Targets(y, [y], [None]), weights

    def _take(self, paths: Sequence[Result], at: int, level: int = 4) -> None:
        super()._take(paths, at, level + 1)
        self.intercept_ = float(self.intercept_[0])
        if hasattr(self, "coef_"):
            self.coef_ = self.coef_[0]
