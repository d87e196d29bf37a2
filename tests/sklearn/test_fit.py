"""Estimators at one value of their parameters: the numbers of the paths, labels of any type, weights, errors."""

import doctest
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

import screenpath
from screenpath.sklearn import (
    HuberRegressor,
    HuberRegressorCV,
    L1SVMClassifier,
    LADRegressor,
    QuantileRegressor,
    SparseSVMClassifier,
    SVMClassifier,
    SVMRegressor,
    estimators,
)

SCALED = {"scale": "standard", "bias": 1.0}


def same(model, path):
    """Assert that an estimator has the bits of a path's last step."""
    assert np.array_equal(model.coef_, np.reshape(path.coef(), model.coef_.shape))
    assert np.array_equal(model.intercept_, np.reshape(path.intercept(), np.shape(model.intercept_)))
    assert model.dual_gap_ == path[-1].gap and model.n_iter_ == path[-1].epochs
    assert model.path_.certified and len(model.path_) == len(path)


def test_the_numbers_are_those_of_the_paths(cancer):
    X, y = cancer
    weights = np.arange(y.size) % 3.0
    same(SVMClassifier(C=0.1).fit(X, y), screenpath.svm_path(X, y, grid=[0.1]))
    how = {"rule": "it", "solver": "cd", "tol": 1e-4, "seed": 3, **SCALED}
    weighted = SVMClassifier(C=0.1, class_weight={1: 2.0}, **how).fit(X, y, sample_weight=weights)
    same(weighted, screenpath.svm_path(X, y, grid=[0.1], class_weight={1: 2.0}, sample_weight=weights, **how))
    same(LADRegressor(**SCALED).fit(X, X[:, 0]), screenpath.lad_path(X, X[:, 0], grid=[1.0], **SCALED))
    quantile = QuantileRegressor(0.3, tau=0.8, **SCALED).fit(X, X[:, 0], sample_weight=weights)
    same(quantile, screenpath.quantile_path(X, X[:, 0], tau=0.8, grid=[0.3], sample_weight=weights, **SCALED))
    svr = SVMRegressor(0.3, epsilon=0.5, **SCALED).fit(X, X[:, 0])
    same(svr, screenpath.svr_path(X, X[:, 0], epsilon=0.5, grid=[0.3], **SCALED))
    same(L1SVMClassifier(0.1, scale="standard").fit(X, y), screenpath.l1_svm_path(X, y, grid=[5.0], scale="standard"))
    sparse = SparseSVMClassifier(0.1, 0.02, smoothing=0.3, **SCALED).fit(X, y)
    how = {"alphas": [0.1], "betas": [0.02], "smoothing": 0.3}
    same(sparse, screenpath.sparse_svm_path(X, y, **how, **SCALED))
    usual = SparseSVMClassifier(0.1, 0.02, smoothing=0.3, scale="standard").fit(X, y)
    same(usual, screenpath.sparse_svm_path(X, y, **how, scale="standard", intercept="free"))
    exact = SparseSVMClassifier(0.1, 0.02, smoothing=0, scale="standard").fit(X, y)
    how["smoothing"] = 0
    same(exact, screenpath.sparse_svm_path(X, y, **how, scale="standard", intercept="free"))
    assert exact.intercept_ not in (0.0, usual.intercept_)
    how = {"alphas": [0.1], "betas": [0.02], "loss": "squared-hinge", "scale": "standard", "intercept": "free"}
    squared = SparseSVMClassifier(0.1, 0.02, loss="squared-hinge", scale="standard").fit(X, y)
    same(squared, screenpath.sparse_svm_path(X, y, **how))
    assert usual.intercept_ != 0.0 == SparseSVMClassifier(0.1, 0.02, intercept="none").fit(X, y).intercept_
    assert (sparse.alpha_, sparse.beta_) == (0.1, 0.02)


def test_a_huber_regression_is_the_path_at_its_penalties(cancer):
    X, y = cancer[0][:, 1:], cancer[0][:, 0]
    how = {"smoothing": 0.3, "scale": "standard"}
    model = HuberRegressor(0.1, 0.02, **how).fit(X, y)
    same(model, screenpath.huber_path(X, y, alphas=[0.1], betas=[0.02], intercept="free", **how))
    assert (model.alpha_, model.beta_) == (0.1, 0.02) and 0 < np.count_nonzero(model.coef_) < X.shape[1]
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_)
    chosen = HuberRegressorCV(betas=2, alphas=3, cv=3, **how).fit(X, y)
    assert chosen.best_score_ == chosen.cv_results_["mean_test_score"].max() < 0.0
    assert (chosen.alpha_, chosen.beta_) == tuple(chosen.path_.grid[chosen.best_index_])


def test_the_intercept_is_free_unless_it_is_penalised_or_declined(cancer):
    X, y = cancer
    for model, path, targets in (
        (SVMClassifier, screenpath.svm_path, y), (LADRegressor, screenpath.lad_path, X[:, 0]),
        (QuantileRegressor, screenpath.quantile_path, X[:, 0]), (SVMRegressor, screenpath.svr_path, X[:, 0]),
    ):  # fmt: skip
        usual = model(C=0.1, scale="standard").fit(X, targets)
        same(usual, path(X, targets, grid=[0.1], scale="standard", intercept="free"))
        assert usual.intercept_ != 0.0
    penalised = SVMClassifier(C=0.1, intercept="penalised").fit(X, y)
    same(penalised, screenpath.svm_path(X, y, grid=[0.1], bias=1.0))
    # A shift of the features changes the free intercept alone.
    here, there = (SVMClassifier(C=0.1, tol=1e-12).fit(rows, y) for rows in (X / 100.0, X / 100.0 + 3.0))
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(there.decision_function(X / 100.0 + 3.0), here.decision_function(X / 100.0), atol=1e-4)


def test_kernels(cancer):
    X, y = cancer
    model = SVMClassifier(2.0, kernel="rbf", gamma="0.5/d", scale="standard").fit(X, y)
    path = screenpath.kernel_svm_path(X, y, grid=[2.0], gamma="0.5/d", scale="standard", intercept="free")
    assert np.array_equal(model.support_, path.support())
    assert np.array_equal(model.dual_coef_[0], path.coef()[model.support_])
    assert np.array_equal(model.decision_function(X), path.decision_function(X))
    assert not hasattr(model, "coef_") and model.intercept_.tolist() == path.intercepts.tolist() != [0.0]
    other = SVC(C=2.0, gamma=0.5 / X.shape[1], tol=1e-8).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=1e-3)
    poly = SVMClassifier(kernel="poly", degree=2, coef0=1.0, scale="standard").fit(X, y)
    path = screenpath.kernel_svm_path(
        X, y, kernel="poly", degree=2, coef0=1.0, grid=[1.0], scale="standard", intercept="free"
    )
    assert np.array_equal(poly.decision_function(X), path.decision_function(X))


def test_nothing_is_left_of_an_earlier_fit(cancer):
    X, y = cancer
    model = SVMClassifier(scale="standard").fit(X, y)
    linear = model.decision_function(X)
    model.set_params(kernel="rbf")
    assert np.array_equal(model.decision_function(X), linear)
    behind = model.fit(X, y).decision_function(X)
    assert not hasattr(model, "coef_") and not np.array_equal(behind, linear)
    assert np.array_equal(model.set_params(kernel=None).fit(X, y).decision_function(X), linear)
    assert not hasattr(model, "support_")


def test_rows_divided_by_their_norms(cancer):
    X, y = cancer
    path = screenpath.svm_path(X, y, grid=[1.0], scale="l2", intercept="free")
    for rows in (X, sp.csr_array(X)):
        model = SVMClassifier(scale="l2").fit(rows, y)
        np.testing.assert_allclose(model.decision_function(rows), path.decision_function(X), rtol=1e-9)


def test_sparse_rows(cancer):
    X, y = cancer
    dense = SVMClassifier(0.1).fit(X, y)
    for container in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        model = SVMClassifier(0.1).fit(container(X), y)
        assert np.array_equal(model.coef_, dense.coef_)
        np.testing.assert_allclose(model.decision_function(container(X)), dense.decision_function(X), rtol=1e-9)


def test_huge_indices_stay_cheap():
    X = sp.csr_array(([1.0, 2.0, -1.0], ([0, 1, 2], [5, 10**7, 10**7])), shape=(3, 10**7 + 1))
    model = SVMClassifier().fit(X, ["a", "a", "b"])
    assert model.coef_.shape == (1, 10**7 + 1) and model.coef_.nnz == 2
    assert model.predict(X).tolist() == ["a", "a", "b"]


@pytest.mark.parametrize(
    "model",
    [
        SVMClassifier(**SCALED), SVMClassifier(kernel="rbf", scale="standard"), L1SVMClassifier(scale="standard"),
        SparseSVMClassifier(0.001, 0.001, **SCALED),
    ],
    ids=["svm", "kernel", "l1", "sparse"],
)  # fmt: skip
def test_three_classes_by_name(three, model):
    X, y = three
    model.fit(X, y)
    forms = model.decision_function(X)
    assert model.classes_.tolist() == ["large", "middle", "small"] and forms.shape == (y.size, 3)
    assert np.array_equal(model.classes_[forms.argmax(axis=1)], model.predict(X)) and model.score(X, y) > 0.9


def test_the_joint_model_of_three_classes_has_no_free_intercept(three):
    X, y = three
    assert not SparseSVMClassifier(0.01, 0.01, scale="maxabs").fit(X, y).intercept_.any()  # the default
    with pytest.raises(ValueError, match="is for two labels, and there are 3\n.*pass y == LABEL"):
        SparseSVMClassifier(0.01, 0.01, intercept="free").fit(X, y)
    apart = OneVsRestClassifier(SparseSVMClassifier(0.001, 0.001, scale="standard")).fit(X, y)
    assert apart.score(X, y) > 0.9 and all(one.intercept_ != 0.0 for one in apart.estimators_)


def test_each_class_against_the_rest_has_the_weights_of_all_classes(three):
    X, y = three
    # Balanced over the three classes, and not over one of them and its rest.
    model = SVMClassifier(0.5, class_weight="balanced", **SCALED).fit(X, y)
    named = {label: y.size / (3.0 * np.sum(y == label)) for label in model.classes_}
    assert np.array_equal(SVMClassifier(0.5, class_weight=named, **SCALED).fit(X, y).coef_, model.coef_)
    weights = np.array([named[label] for label in y])
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = SVMClassifier(0.5, class_weight=named, bias=1.0).fit(Z, y)
    for label, coef in zip(model.classes_, model.coef_, strict=True):
        alone = screenpath.svm_path(Z, np.where(y == label, 1.0, -1.0), grid=[0.5], bias=1.0, sample_weight=weights)
        assert np.array_equal(alone.coef(), coef)


def test_a_fit_that_is_not_certified_warns_with_its_gap(cancer):
    X, y = cancer
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap is \d.*tol=1e-06.*budget") as caught:
        SVMClassifier(10.0, max_epochs=1).fit(X, y)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVMClassifier(10.0).fit(X, y)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (SVMClassifier(C=-1.0), "`C` must be a positive number, not -1.0"),
        (SVMClassifier(tol=2.0), "`tol` must lie between 0 and 1"), (SVMClassifier(rule="best"), "best"),
        (SVMClassifier(kernel="cosine"), "`kernel` must be one of rbf, laplacian, linear, poly"),
        (SVMClassifier(class_weight={7: 1.0}), "class_weight names 7"),
        (SVMClassifier(class_weight=[1.0, 2.0]), "`class_weight` must be balanced, or a weight for each label"),
        (SVMClassifier(scale="unit"), "`scale` must be one of"),
        (SVMClassifier(intercept="free", bias=1.0), "`bias` makes a penalised intercept"),
        (SVMClassifier(kernel="rbf", rule="sieve"), "a kernel model has no rule 'sieve'"),
        (SVMClassifier(rule="heuristic+gap"), "unknown rule 'heuristic.gap'"),
        (SparseSVMClassifier(beta=-1.0), "`beta` must be 0 or a positive number"),
        (QuantileRegressor(tau=1.0), "`tau` must lie between 0 and 1"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)  # fmt: skip
def test_wrong_parameters_are_value_errors(cancer, model, said):
    with pytest.raises(ValueError, match=said):
        model.fit(*cancer)


def test_wrong_data_are_value_errors(cancer):
    X, y = cancer
    with pytest.raises(ValueError, match="1 class: 1.0$"):
        SVMClassifier().fit(X, np.ones(y.size))
    with pytest.raises(ValueError, match="1 class"):
        SVMClassifier().fit(X, y, sample_weight=(y == 1.0).astype(float))
    with pytest.raises(ValueError, match="weight 2 is -1"):
        SVMClassifier().fit(X, y, sample_weight=np.where(np.arange(y.size) == 1, -1.0, 1.0))
    with pytest.raises(NotFittedError):
        SVMClassifier().predict(X)


def test_examples_of_the_docstrings():
    found = doctest.testmod(estimators)
    assert found.attempted > 0 and found.failed == 0
