"""Scores against their definitions and against scikit-learn."""

import math

import numpy as np
import pytest

from screenpath.errors import UsageError
from screenpath.scores import SCORES, choose_score, higher_is_better


def forms(seed=0, m=200):
    rng = np.random.default_rng(seed)
    targets = np.where(rng.random(m) < 0.3, 1.0, -1.0)
    return np.round(rng.normal(size=m) + 0.5 * targets, 1), targets  # rounded: ties, and products of 0


def test_two_classes_as_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    products, targets = forms()
    found = np.where(products > 0.0, 1.0, -1.0)
    expected = {
        "accuracy": metrics.accuracy_score(targets, found),
        "balanced-accuracy": metrics.balanced_accuracy_score(targets, found),
        "f1": metrics.f1_score(targets, found),
        "auc": metrics.roc_auc_score(targets, products),
    }
    for name, value in expected.items():
        assert SCORES[name].function(products, targets) == pytest.approx(value, abs=1e-12), name


def test_several_classes_as_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, size=150)
    products = rng.normal(size=(150, 4)) + np.eye(4)[codes]
    found = products.argmax(axis=1)
    assert SCORES["accuracy"].function(products, codes) == pytest.approx(metrics.accuracy_score(codes, found))
    balanced = metrics.balanced_accuracy_score(codes, found)
    assert SCORES["balanced-accuracy"].function(products, codes) == pytest.approx(balanced)
    assert SCORES["f1"].function(products, codes) == pytest.approx(metrics.f1_score(codes, found, average="macro"))


def test_regression_scores():
    products, targets = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 1.0])
    assert SCORES["mae"].function(products, targets) == pytest.approx(1.0)
    assert SCORES["mse"].function(products, targets) == pytest.approx(5.0 / 3.0)
    pinball = choose_score(None, "quantile", "regression", tau=0.9)
    assert pinball.function(products, targets) == pytest.approx((0.9 * 1.0 + 0.1 * 2.0) / 3.0)


def test_ends_of_the_scores():
    assert math.isnan(SCORES["auc"].function(np.array([1.0, 2.0]), np.array([1.0, 1.0])))
    assert SCORES["f1"].function(np.array([-1.0, -2.0]), np.array([-1.0, -1.0])) == 0.0
    assert SCORES["accuracy"].function(np.array([0.0]), np.array([-1.0])) == 1.0  # 0 counts as negative


@pytest.mark.parametrize(("model", "task", "name"), [
    ("svm", "classification", "accuracy"), ("quantile", "regression", "pinball"), ("svr", "regression", "mae"),
])  # fmt: skip
def test_each_model_has_a_score_of_its_own(model, task, name):
    assert choose_score(None, model, task).name == name


def test_scores_that_do_not_fit():
    with pytest.raises(UsageError, match="--score mae is for regression, and svm"):
        choose_score("mae", "svm", "classification")
    with pytest.raises(UsageError, match="--score auc needs two classes; there are 10"):
        choose_score("auc", "svm", "classification", classes=10)


def test_columns_know_their_direction():
    assert higher_is_better("test_accuracy")
    assert higher_is_better("cv_balanced_accuracy")
    assert not higher_is_better("cv_pinball")
