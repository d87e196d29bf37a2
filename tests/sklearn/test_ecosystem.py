"""Estimators among the tools of scikit-learn, and with data frames."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from screenpath import kernel_svm_path, load_run, run, svm_path
from screenpath.errors import DataError, UsageError
from screenpath.sklearn import LADRegressorCV, SparseSVMClassifierCV, SVMClassifier, SVMClassifierCV, fitted

MODELS = [
    SVMClassifier(0.1), SVMClassifier(kernel="rbf", scale="standard"),
    SVMClassifierCV(5, calibration="sigmoid", certify=True, scale="standard", bias=1.0),
    SparseSVMClassifierCV(2, 3, scale="standard"), LADRegressorCV(5, scale="standard"),
]  # fmt: skip
FRAMES = ("pandas", "polars", "pyarrow")


def frame(library, X, names):
    """Return rows as a table of some library."""
    module = pytest.importorskip(library)
    columns = dict(zip(names, X.T, strict=True))
    return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)


@pytest.mark.parametrize("model", MODELS, ids=lambda one: f"{type(one).__name__}-{getattr(one, 'kernel', None)}")
def test_copies_decide_the_same(cancer, model):
    X, y = cancer
    fitted = clone(model).fit(X, y)
    stored = pickle.dumps(fitted)
    again = pickle.loads(stored)
    assert np.array_equal(again.predict(X), fitted.predict(X)) and again.path_.certified
    assert again.get_params() == model.get_params() and not hasattr(clone(fitted), "path_")
    if getattr(model, "kernel", None) is None:
        assert len(stored) < X.nbytes  # the training data is not among what is kept
    else:
        assert len(stored) < 3 * X.nbytes < 8 * y.size**2  # its rows are, and the kernel matrix is not


def test_in_a_pipeline_and_under_a_search(cancer):
    X, y = cancer
    names = np.where(y == 1.0, "good", "bad")
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SVMClassifier(bias=1.0)), {"svmclassifier__C": [0.01, 0.1]}, cv=3
    )
    search.fit(X, names)
    alone = SVMClassifierCV([0.01, 0.1], scale="standard", bias=1.0, cv=3).fit(X, names)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], rtol=1e-12)
    assert search.best_params_["svmclassifier__C"] == alone.C_
    scores = cross_validate(SVMClassifierCV(5, scale="standard", bias=1.0), X, names, cv=3, scoring="roc_auc")
    assert scores["test_score"].min() > 0.97


def test_metadata_routing(cancer):
    X, y = cancer
    weights = np.arange(y.size) % 3.0
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVMClassifier(0.1, bias=1.0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), model)
        routed = pipe.fit(X, y, sample_weight=weights)
        direct = SVMClassifier(0.1, bias=1.0, scale="standard").fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(routed.decision_function(X), direct.decision_function(X), rtol=1e-3, atol=1e-3)
        scores = cross_validate(model, X, y, cv=3, params={"sample_weight": weights})
        assert scores["test_score"].min() > 0.85
        grouped = SVMClassifierCV([0.1]).set_fit_request(groups=True, sample_weight=False)
        assert grouped.get_metadata_routing().fit.requests == {"groups": True, "sample_weight": False}


@pytest.mark.parametrize("library", FRAMES)
def test_data_frames(cancer, library):
    X, y = cancer
    names = [f"feature {k}" for k in range(X.shape[1])]
    table = frame(library, X, names)
    plain = SVMClassifierCV(5, scale="standard").fit(X, y)
    model = SVMClassifierCV(5, scale="standard").fit(table, y)
    if not hasattr(model, "feature_names_in_"):
        pytest.skip(f"scikit-learn {sklearn.__version__} does not see the names of these tables")
    assert model.path_.feature_names == tuple(names)
    assert model.feature_names_in_.tolist() == names and np.array_equal(model.coef_, plain.coef_)
    assert np.array_equal(model.predict(table), plain.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(library, X, names[::-1]))


def test_output_of_a_pipeline_as_a_frame(cancer):
    pandas = pytest.importorskip("pandas")
    X, y = cancer
    table = pandas.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])])
    pipe = make_pipeline(StandardScaler(), SVMClassifier()).set_output(transform="pandas").fit(table, y)
    assert pipe[-1].feature_names_in_.tolist() == list(table.columns)


def test_a_path_in_memory_is_no_run_yet(cancer):
    with pytest.raises(UsageError, match="1 of 1 steps certified.* is no run") as found:
        fitted(svm_path(*cancer, grid=[0.1]))
    assert "path.save(DIR)" in found.value.hint


def test_a_kernel_run_of_arrays_becomes_an_estimator(cancer, tmp_path):
    X, y = cancer
    kernel_svm_path(X, y, grid=[1.0], scale="standard", kernel="rbf").save(tmp_path / "run")
    path = load_run(tmp_path / "run", (X, y))
    expected = path.predict(X)
    assert np.array_equal(fitted(path, 0).predict(X), expected)
    assert np.array_equal(fitted(tmp_path / "run", 0, (X, y)).predict(X), expected)
    with pytest.raises(DataError, match="computed from arrays"):
        fitted(tmp_path / "run", 0)


def test_no_estimator_of_scikit_learn_takes_the_votes_of_pairs(cancer, tmp_path):
    """Three labels have three pairs: their forms would be taken for those of the labels."""
    X, y = cancer[0][:90], np.arange(90) % 3
    for name, more in (("pairs", {"one_vs_one": True}), ("rest", {"one_vs_rest": True, "kernel": "rbf"})):
        path = run("svm", (X, y), **more, c=1.0, scale="standard", out=tmp_path / name, quiet=True)
        with pytest.raises(UsageError, match="`to=sklearn` has no (votes of pairs of|models of several) labels"):
            fitted(path, 0)
