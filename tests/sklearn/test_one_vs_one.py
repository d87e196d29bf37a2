"""``multi_class="ovo"`` beside scikit-learn's SVC: labels, ties, both shapes of decisions, folds and weights."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from screenpath.catalogue.scores import votes
from screenpath.errors import UsageError
from screenpath.sklearn import SVMClassifier, SVMClassifierCV
from tests.reference.test_one_vs_one import load

OVO = {"multi_class": "ovo", "tol": 1e-9, "max_epochs": 10**6}
KERNELS = {"linear": {}, "rbf": {"kernel": "rbf", "gamma": 0.5}}


def pair_of(kernel, X, y, **options):
    rival = SVC(C=2.0, kernel=kernel, gamma=0.5, tol=1e-9, decision_function_shape="ovo").fit(X, y)
    return SVMClassifier(C=2.0, **OVO, **KERNELS[kernel], **options).fit(X, y), rival


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["iris", "wine", "digits", "noise"])
def test_labels_and_decisions_are_those_of_svc(name, kernel):
    X, y = load(name)
    y = np.array([f"label {9 - code:.0f}" for code in y])  # texts, in another order than their numbers
    model, rival = pair_of(kernel, X, y)
    new = np.concatenate([X, X + 0.1 * np.random.default_rng(0).normal(size=X.shape)])
    wanted, size = rival.decision_function(new), max(1.0, np.abs(rival.decision_function(new)).max())
    sure = np.abs(wanted).min(axis=1) > 2e-4 * size
    assert sure.mean() > 0.9
    np.testing.assert_array_equal(model.predict(new)[sure], rival.predict(new)[sure])
    np.testing.assert_array_equal(model.path_.predict(new), model.predict(new))
    rival.decision_function_shape = "ovr"
    assert np.abs(model.decision_function(new) - rival.decision_function(new))[sure].max() < 1e-3
    model.set_params(decision_function_shape="ovo")
    assert np.abs(model.decision_function(new) - wanted).max() < 2e-4 * size
    if name == "noise":
        found = np.sort(votes(wanted[sure]), axis=1)
        assert np.count_nonzero(found[:, -1] == found[:, -2]) > 2  # ties that were decided alike
        rest = clone(model).set_params(multi_class="ovr").fit(X, y)
        assert np.any(rest.predict(new)[sure] != rival.predict(new)[sure])


@pytest.mark.parametrize("kernel", KERNELS)
def test_attributes_have_a_row_for_each_pair_and_survive_a_pickle(kernel):
    X, y = load("wine")
    model, rival = pair_of(kernel, X, y)
    with pytest.raises(UsageError, match="name a step"):
        model.path_.at(2.0)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert clone(again).get_params() == model.get_params()
    np.testing.assert_allclose(model.intercept_, rival.intercept_, atol=1e-4)
    if kernel == "linear":
        np.testing.assert_allclose(model.coef_, rival.coef_, atol=1e-4)
    else:
        assert model.dual_coef_.shape == (3, model.support_.size)
        np.testing.assert_array_equal(model.support_, np.sort(rival.support_))
        # A pair's sums over the support vectors of its two classes, as SVC's layout has them.
        np.testing.assert_allclose(np.abs(model.dual_coef_).sum(), np.abs(rival.dual_coef_).sum(), rtol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scoring", [None, "f1_macro"])
def test_folds_are_scored_by_votes(kernel, scoring):
    X, y = load("noise")
    folds = StratifiedKFold(3)
    model = SVMClassifierCV(grid=[0.1, 2.0], cv=folds, scoring=scoring, **OVO, **KERNELS[kernel]).fit(X, y)
    rivals = [SVC(C=C, kernel=kernel, gamma=0.5, tol=1e-9) for C in (0.1, 2.0)]
    wanted = [cross_val_score(one, X, y, cv=folds, scoring=scoring).mean() for one in rivals]
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], wanted, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), rivals[[0.1, 2.0].index(model.C_)].fit(X, y).predict(X))


@pytest.mark.parametrize("kernel", KERNELS)
def test_weights_of_classes_and_samples_are_those_of_svc(kernel):
    X, y = load("wine")
    weights = np.arange(y.size) % 3 + 1.0
    rival = SVC(kernel=kernel, gamma=0.5, tol=1e-9, class_weight="balanced", decision_function_shape="ovo")
    model = SVMClassifier(class_weight="balanced", decision_function_shape="ovo", **OVO, **KERNELS[kernel])
    rival.fit(X, y)
    assert np.abs(model.fit(X, y).decision_function(X) - rival.decision_function(X)).max() < 1e-4
    model.set_params(class_weight={0.0: 2.0}).fit(X, y, weights)
    rival.set_params(class_weight={0.0: 2.0}).fit(X, y, weights)
    assert np.abs(model.decision_function(X) - rival.decision_function(X)).max() < 1e-4


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_class_without_weight_is_never_predicted(kernel):
    X, y = load("digits")
    X, y = X[y < 4], y[y < 4]
    kept = y != 1.0
    model = SVMClassifier(**OVO, **KERNELS[kernel]).fit(X, y, kept.astype(float))
    alone = SVMClassifier(**OVO, **KERNELS[kernel]).fit(X[kept], y[kept])
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    forms = model.decision_function(X)
    assert forms.shape == (y.size, 4)
    np.testing.assert_allclose(forms[:, [0, 2, 3]], alone.decision_function(X), atol=1e-4)
    assert np.all(forms[:, 1] < forms[:, [0, 2, 3]].min(axis=1))


def test_two_classes_are_those_of_one_against_the_rest():
    X, y = load("iris")
    X, y = X[y > 0], y[y > 0]
    one, other = (SVMClassifier(multi_class=name).fit(X, y) for name in ("ovo", "ovr"))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"multi_class": "pairs"}, "multi_class"), ({"decision_function_shape": "pairs"}, "decision_function_shape"),
        ({"multi_class": "ovo", "calibration": "sigmoid"}, "multi_class='ovr'"),
        ({"multi_class": "ovo", "certify": True}, "two classes"),
    ],
)  # fmt: skip
def test_what_pairs_do_not_have_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        SVMClassifierCV(grid=3, **options).fit(*load("iris"))
