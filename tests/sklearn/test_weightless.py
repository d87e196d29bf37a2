"""A class whose samples all have weight 0 is one of the classes, and is never predicted."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import PredefinedSplit, ShuffleSplit

from screenpath.sklearn import (
    L1SVMClassifier,
    L1SVMClassifierCV,
    SparseSVMClassifier,
    SparseSVMClassifierCV,
    SVMClassifier,
    SVMClassifierCV,
)

CV = {"cv": 3}
SMALL = {"grid": 4, **CV}
MODELS = [
    SVMClassifier(), SVMClassifier(kernel="rbf"), SVMClassifier(intercept="none"), L1SVMClassifier(),
    SparseSVMClassifier(), SVMClassifierCV(**SMALL), L1SVMClassifierCV(**SMALL),
    SVMClassifierCV(**SMALL, calibration="sigmoid"), SVMClassifierCV(**SMALL, scoring="precision_macro"),
    SparseSVMClassifierCV(betas=2, alphas=3, **CV),
]  # fmt: skip


def data(classes):
    """Return separate clusters, the last one rare and among the samples of the first."""
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c", "rare"])[rng.integers(0, classes - 1, 90)]
    X = rng.normal(size=(90, 4)) + 3.0 * (y[:, None] == np.array(["a", "b", "c", "d"]))
    y[:4] = "rare"
    return X, y


def decisions(model, X):
    """Return the decisions among the learned classes, of shape (m, classes)."""
    forms = model.decision_function(X)
    return forms if forms.ndim == 2 else np.column_stack([-forms, forms])


@pytest.mark.parametrize("classes", [3, 4])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_model_is_that_of_the_other_classes(model, classes):
    X, y = data(classes)
    rare = y == "rare"
    model.set_params(class_weight=None).fit(X, y, sample_weight=1.0 * ~rare)
    found, forms = model.predict(X), model.decision_function(X)
    assert model.classes_.tolist() == sorted(set(y)) and forms.shape == (90, classes)
    assert "rare" not in found and np.array_equal(model.classes_[forms.argmax(axis=1)], found)
    if hasattr(model, "coef_"):
        assert model.coef_.shape[0] == model.intercept_.size == classes and not model.coef_[-1].any()
    if getattr(model, "calibration", None):
        chances = model.predict_proba(X)
        assert not chances[:, -1].any() and chances.sum(axis=1) == pytest.approx(1.0)
    if "CV" in type(model).__name__:
        return  # its folds are drawn among other samples
    model.fit(X, y, sample_weight=1.0 * ~rare)
    without = type(model)(**model.get_params()).fit(X[~rare], y[~rare])
    assert decisions(without, X) == pytest.approx(decisions(model, X)[:, : classes - 1], rel=1e-3, abs=1e-3)
    model.set_params(class_weight={"rare": 0.0, "a": 1.0}).fit(X, y)
    assert decisions(without, X) == pytest.approx(decisions(model, X)[:, : classes - 1], rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("model", [MODELS[0], MODELS[1], MODELS[3], MODELS[4]], ids=str)
def test_bagging_goes_on_where_a_draw_leaves_a_class_without_weight(model):
    X, y = data(3)
    y[2:4] = "a"
    fitted = BaggingClassifier(model.set_params(class_weight=None), n_estimators=8, random_state=0).fit(X, y)
    assert any(one._sides is not None for one in fitted.estimators_)
    assert fitted.decision_function(X).shape == (90, 3) and fitted.score(X, y) > 0.9


def test_sparse_data_have_sparse_coefficients_of_the_same_rows():
    X, y = data(3)
    weights = 1.0 * (y != "rare")
    dense = SVMClassifier().fit(X, y, sample_weight=weights)
    sparse = SVMClassifier().fit(sp.csr_array(X), y, sample_weight=weights)
    assert np.array_equal(sparse.predict(X), dense.predict(X))


@pytest.mark.parametrize("step", ["best", "one-se"])
@pytest.mark.parametrize(
    "splitter", [ShuffleSplit(n_splits=1, random_state=0), PredefinedSplit(np.repeat([-1, 0], 45))], ids=str
)
def test_one_split_is_a_cross_validation_without_a_standard_error(splitter, step):
    X, y = data(3)
    two = y != "rare"
    X, y = np.concatenate([X[two]] * 2)[:90], np.concatenate([y[two]] * 2)[:90]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVMClassifierCV(grid=5, cv=splitter, step=step).fit(X, y)
    assert model.n_splits_ == 1 and np.isnan(model.cv_results_["se_test_score"]).all()
    scores = model.cv_results_["split0_test_score"]
    assert np.array_equal(scores, model.cv_results_["mean_test_score"])
    trained, held_out = next(splitter.split(X))
    alone = SVMClassifier(C=model.C_).fit(X[trained], y[trained])
    assert model.best_score_ == scores.max() == alone.score(X[held_out], y[held_out])
    assert model.best_index_ == scores.argmax()
