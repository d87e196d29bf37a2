"""A step of a run as a fitted estimator of scikit-learn itself, which predicts without this package."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import QuantileRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, Normalizer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from screenpath.data.files.dataset import Form
from screenpath.data.files.prepare import Preparation
from screenpath.data.words.labels import in_python
from screenpath.engine.stored import StoredPath, load_run
from screenpath.errors import UsageError, needed
from screenpath.export.export import check_holds
from screenpath.inputs.run_data import Support, support_of
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import spread
from screenpath.store.open import Run


def fitted(path: StoredPath | str | os.PathLike[str], step: int | str = "best", training: str | tuple | None = None):
    """Return a step of a run as a fitted scikit-learn estimator.

    Parameters
    ----------
    path : StoredPath or path-like
        A run, or its folder.
    step : int or str, default "best"
        As of :func:`screenpath.export_run`.
    training : str or tuple of arrays (X, y), optional
        Training data of a kernel run, if they have moved or were arrays; by default those of ``load_run``.

    Returns
    -------
    LinearSVC, LinearSVR, QuantileRegressor or Pipeline
        With the weights of the step; after a ``SimpleImputer`` for a run that fills in missing values, and a
        ``Normalizer`` for one with ``scale="l2"``. For a kernel run a pipeline of the scaling, the kernel's values at
        the support vectors (``Nystroem``) and a ``LinearSVC`` that adds them up. Of a table with encoded columns it
        begins with a ``ColumnTransformer``, for data frames with the columns of the table.
    """
    if not isinstance(path, StoredPath | str | os.PathLike):
        raise UsageError(f"{path!r} is no run, nor the folder of one", "write a path to a folder first: path.save(DIR)")
    opened = path if isinstance(path, StoredPath) else load_run(path, training)
    check_holds(opened.run, "sklearn")
    return estimator_of(opened.run, opened.run.choose(str(step)), training or opened.training)


def estimator_of(run: Run, step: dict, training: str | tuple | None = None):
    """Return the row of a step table as a fitted estimator; see :func:`fitted`."""
    if run.kernel:
        dense = run.record["data"]["storage"] == "dense"
        parts = _kernel_parts(run, step, support_of(run, step, training, dense))
    else:
        parts = [_linear(run, step, *run.deciding(step))]
        if run.record["preparation"].get("scaling") == "l2":
            parts.insert(0, Normalizer())
    if run.fill is not None:
        values = _of_all(run, run.fill, 0.0)
        parts.insert(0, SimpleImputer(keep_empty_features=True).fit(values[None, :]))  # the mean of one row is the row
        if run.form is not None and run.form.cells.codes.size:
            what = "scikit-learn's imputer knows no numbers that stand for a missing value, as this run with `na` does"
            raise UsageError(what, "export `to=onnx`")
    if run.form is not None and not run.form.plain:
        return make_pipeline(_encoder(run.form), *parts)
    first = parts[0]
    first.n_features_in_ = run.n_features
    if run.feature_names is not None:
        first.feature_names_in_ = np.array(run.feature_names, dtype=object)
    return first if len(parts) == 1 else make_pipeline(*parts)


def _linear(run: Run, step: dict, weights, intercepts):
    """Return an estimator with weights of shape (classes, d)."""
    if run.numbers is not None and not run.kernel:
        weights = spread(weights, run.numbers - 1, run.n_features).toarray()
    estimator = _empty(run, step)
    estimator.n_iter_ = int(step.get("epochs") or 0)
    estimator.n_features_in_ = weights.shape[1]
    if run.labels is None:
        one_row = isinstance(estimator, LinearSVR)
        estimator.coef_, estimator.intercept_ = weights[0], intercepts if one_row else float(intercepts[0])
        return estimator
    estimator.coef_, estimator.intercept_ = weights, intercepts
    estimator.classes_ = np.array(in_python(run.sides))
    return estimator


def _encoder(form: Form) -> ColumnTransformer:
    """Return what makes the features of a table from the columns of a data frame, found by their names."""
    with needed("columns of a table that are encoded take pandas to export", "pip install 'screenpath[skops]'"):
        import pandas
    parts, content = [], {}
    for name in form.columns:
        texts, base = form.one_hot.get(name), form.base.get(name)
        content[name] = [0.0] if texts is None else [next(iter(texts), "")]
        if texts is None:
            parts.append((name, "passthrough", [name]))
        elif texts:
            known = [*([] if base is None else [base]), *texts]
            hot = OneHotEncoder(
                categories=[np.array(known, dtype=object)], drop=None if base is None else [base],
                handle_unknown="warn", sparse_output=False,
            )  # fmt: skip
            parts.append((name, hot, [name]))
        if name in (form.indicated or ()):
            parts.append((f"{name} is missing", MissingIndicator(features="all"), [name]))
    return ColumnTransformer(parts, verbose_feature_names_out=False).fit(pandas.DataFrame(content))


def _kernel_parts(run: Run, step: dict, support: Support) -> list:
    """Return the scaling, if any, the sum of kernel values times coefficients, and a linear model of the sum.

    All attributes are documented by scikit-learn; an ``SVC`` would need private ones.
    """
    function, rows, coefficients = support.function, support.rows, support.coefficients
    if coefficients.size == 0:  # the kernel needs a row: one of weight 0
        rows, coefficients = np.zeros((1, rows.shape[1])), np.zeros(1)
    if run.numbers is not None:
        rows = sp.csr_array(rows)
        places = run.numbers[rows.indices] - 1
        rows = sp.csr_array((rows.data, places, rows.indptr), shape=(rows.shape[0], run.n_features))
    chosen = {name: value for name, value in function.describe().items() if name != "constant"}
    values = Nystroem(**chosen, n_components=coefficients.size)
    values.components_, values.component_indices_ = rows, np.arange(coefficients.size)
    values.normalization_ = coefficients[None, :]  # the sum, not its terms
    values.n_features_in_ = run.n_features
    constant = np.array([function.constant * float(coefficients.sum()) + support.intercept])
    return [*_scaling(run, support.preparation), values, _linear(run, step, np.ones((1, 1)), constant)]


def _scaling(run: Run, preparation: Preparation) -> list:
    """Return a list with the fitted scaler of a run, or an empty one."""
    if preparation.kind == "l2":
        return [Normalizer()]
    if preparation.scale is None:
        return []
    scaler: Any = MaxAbsScaler() if preparation.shift is None else StandardScaler()
    scaler.scale_ = _of_all(run, preparation.scale, 1.0)
    if preparation.shift is None:
        scaler.max_abs_ = scaler.scale_
    else:
        scaler.mean_, scaler.var_ = _of_all(run, preparation.shift, 0.0), np.square(scaler.scale_)
    return [scaler]


def _of_all(run: Run, values: np.ndarray, other: float) -> np.ndarray:
    """Return numbers of all features: ``values`` where they have a column, else ``other``."""
    if run.numbers is None:
        return values
    every = np.full(run.n_features, other)
    every[run.numbers - 1] = values
    return every


def _empty(run: Run, step: dict):
    options = {**run.record["options"], **{name: step[name] for name in run.parameters}}
    if run.labels is not None:
        smooth = "squared_hinge" if run.model == "l1svm" else "hinge"
        return LinearSVC(C=step["C"], loss=smooth) if "C" in step else LinearSVC(loss=smooth)
    if run.model == "svr":
        return LinearSVR(C=step.get("C", options["c"]), epsilon=options.get("epsilon", 0.0))
    return QuantileRegressor(quantile=options.get("tau") or 0.5, alpha=0.0)


def skops_bytes(run: Run, step: dict, training: str | tuple | None = None) -> bytes:
    """Return the estimator of a step as a skops file; an ImportError without skops."""
    import skops.io

    return skops.io.dumps(estimator_of(run, step, training))
