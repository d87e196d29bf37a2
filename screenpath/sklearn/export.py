"""A step of a run as a fitted estimator of scikit-learn itself, which needs nothing of this package to predict."""

from __future__ import annotations

import os

import numpy as np
from sklearn.linear_model import QuantileRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC, LinearSVR

from screenpath.data.labels import NamedLabel, label_text
from screenpath.data.wide import spread
from screenpath.errors import UsageError
from screenpath.runs.open import Run
from screenpath.runs.stored import StoredPath, load_run


def fitted(path: StoredPath | str | os.PathLike[str], step: int | str = "best"):
    """Return a step of a run as a fitted scikit-learn estimator.

    Parameters
    ----------
    path : StoredPath or path-like
        A linear run, or its folder.
    step : int or str, default "best"
        As of :func:`screenpath.export_run`.

    Returns
    -------
    LinearSVC, LinearSVR or QuantileRegressor
        With the weights of the step; behind a ``Normalizer`` for a run with ``scale="l2"``.

    Raises
    ------
    UsageError
        For a kernel run.
    """
    run = path.run if isinstance(path, StoredPath) else load_run(path).run
    return estimator_of(run, run.choose(str(step)))


def estimator_of(run: Run, step: dict):
    """Return the row of a step table as a fitted estimator; see :func:`fitted`."""
    if run.kernel:
        raise UsageError(f"{run.path} is a kernel run: it has no weights of features", "export `to=onnx`")
    weights, intercepts = run.coefficients(step)
    if run.numbers is not None:
        weights = spread(weights, run.numbers - 1, run.n_features).toarray()
    estimator = _empty(run, step)
    estimator.n_iter_ = int(step.get("epochs") or 0)
    estimator.n_features_in_ = run.n_features
    if run.feature_names is not None:
        estimator.feature_names_in_ = np.array(run.feature_names, dtype=object)
    if run.labels is None:
        one_row = isinstance(estimator, LinearSVR)
        estimator.coef_, estimator.intercept_ = weights[0], intercepts if one_row else float(intercepts[0])
    else:
        estimator.coef_, estimator.intercept_ = weights, intercepts
        labels = run.classes or [run.labels["-1"], run.labels["+1"]]
        texts = any(isinstance(label, str | NamedLabel) for label in labels)
        estimator.classes_ = np.array([label_text(label) if texts else float(label) for label in labels])
    if run.record["preparation"].get("scaling") != "l2":
        return estimator
    first = Normalizer()
    first.n_features_in_ = run.n_features
    return make_pipeline(first, estimator)


def _empty(run: Run, step: dict):
    options = run.record["options"]
    if run.labels is not None:
        smooth = "squared_hinge" if run.model == "l1svm" else "hinge"
        return LinearSVC(C=step["C"], loss=smooth) if "C" in step else LinearSVC(loss=smooth)
    if run.model == "svr":
        return LinearSVR(C=step["C"], epsilon=options.get("epsilon", 0.0))
    return QuantileRegressor(quantile=options.get("tau") or 0.5, alpha=0.0)


def skops_bytes(run: Run, step: dict) -> bytes:
    """Return the estimator of a step as a skops file.

    Raises
    ------
    ImportError
        Without skops.
    UsageError
        For a kernel run.
    """
    import skops.io

    return skops.io.dumps(estimator_of(run, step))
