"""The estimators that cross-validate: scores, choice, certified bound and probabilities."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score, make_scorer, mean_absolute_error, mean_pinball_loss, roc_auc_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)

import screenpath
from screenpath.cv.alone import whole_fold
from screenpath.sklearn import (
    L1SVMClassifierCV,
    LADRegressor,
    LADRegressorCV,
    QuantileRegressor,
    QuantileRegressorCV,
    SparseSVMClassifierCV,
    SVMClassifier,
    SVMClassifierCV,
    SVMRegressor,
    SVMRegressorCV,
)
from screenpath.sklearn.estimators import calibrated

SCALED = {"scale": "standard", "bias": 1.0}
GRID = [0.001, 0.01, 0.1, 1.0]


def test_scores_are_those_of_single_fits(cancer):
    X, y = cancer
    weights = 1.0 + np.arange(y.size) % 3
    model = SVMClassifierCV(GRID, class_weight="balanced", **SCALED).fit(X, y, sample_weight=weights)
    for k, (train, test) in enumerate(StratifiedKFold(5).split(X, y)):
        for j, C in enumerate(GRID):
            one = SVMClassifier(C, class_weight="balanced", **SCALED).fit(X[train], y[train], weights[train])
            assert model.cv_results_[f"split{k}_test_score"][j] == one.score(X[test], y[test], weights[test])
    results = model.cv_results_
    assert results["param_C"].tolist() == GRID and results["params"][1] == {"C": 0.01} and results["certified"].all()
    assert model.best_score_ == results["mean_test_score"].max() and results["rank_test_score"][model.best_index_] == 1
    refit = SVMClassifier(model.C_, class_weight="balanced", **SCALED).fit(X, y, weights)
    np.testing.assert_allclose(model.coef_, refit.coef_, rtol=1e-3, atol=1e-6)
    assert model.best_params_ == {"C": model.C_} and model.path_.grid.tolist() == GRID and model.path_.certified


def test_the_library_chooses_the_same(cancer, tmp_path):
    X, y = cancer
    folds = np.arange(y.size) % 4
    (tmp_path / "folds").write_text("\n".join(map(str, folds)) + "\n")
    how = {"fold_file": tmp_path / "folds", "certify": True, "quiet": True, **SCALED}
    run = screenpath.cross_validate("svm", (X, y), grid=20, out=tmp_path / "run", **how)
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(4)]
    for step in ("best", "one-se"):
        model = SVMClassifierCV(20, cv=splits, step=step, certify=True, **SCALED).fit(X, y)
        assert model.best_index_ == run.best(one_se=step == "one-se")
        assert np.array_equal(model.cv_results_["mean_test_score"], [one.cv_accuracy for one in run])
    recorded = json.loads((tmp_path / "run" / "cv.json").read_text())["certified"]
    assert model.certificate_ == {name: recorded[name] for name in model.certificate_}
    assert (
        model.certificate_["lower_bound"]
        <= model.certificate_["best_error"]
        == pytest.approx(1.0 - model.cv_results_["mean_test_score"].max())
    )


def test_the_bound_is_refined_as_by_the_library(cancer, tmp_path):
    X, y = cancer
    folds = np.arange(y.size) % 3
    (tmp_path / "folds").write_text("\n".join(map(str, folds)) + "\n")
    how = {"cmin": 0.01, "cmax": 1.0, "certify_to": 0.005, **SCALED}
    run = screenpath.cross_validate(
        "svm", (X, y), grid=3, out=tmp_path / "run", quiet=True, fold_file=tmp_path / "folds", **how
    )
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]
    model = SVMClassifierCV(3, cv=splits, calibration="sigmoid", **how).fit(X, y)
    recorded = json.loads((tmp_path / "run" / "cv.json").read_text())["certified"]
    assert recorded["added_points"] > 0 and model.certificate_["difference"] <= 0.005
    assert model.certificate_ == {name: recorded[name] for name in model.certificate_}
    assert np.array_equal(model.path_.grid, run.grid) and model.best_index_ == run.best()
    kernel = SVMClassifierCV([0.1, 1.0, 10.0], kernel="rbf", scale="standard", certify=True, cv=3).fit(X, y)
    assert 0.0 <= kernel.certificate_["lower_bound"] <= kernel.certificate_["best_error"] < 0.1
    few = SVMClassifierCV(3, cv=splits, certify_points=1, **how).fit(X, y)
    assert len(few.path_) == 4 and few.certificate_["difference"] > 0.005
    assert model.predict_proba(X).shape == (y.size, 2)
    with pytest.raises(ValueError, match="`certify_to` must lie between 0 and 1"):
        SVMClassifierCV(3, certify_to=2.0, bias=1.0).fit(X, y)
    with pytest.raises(ValueError, match="range of C"):
        SVMClassifierCV([1.0], certify=True, bias=1.0).fit(X, y)
    free = SVMClassifierCV([0.1, 1.0, 10.0], certify=True, scale="standard", cv=3).fit(X, y)
    assert 0.0 <= free.certificate_["lower_bound"] <= free.certificate_["best_error"] < 0.1


def test_dense_and_sparse_rows_and_processes_give_the_same(cancer):
    X, y = cancer
    X = np.where(np.abs(X) > np.median(np.abs(X), axis=0), X, 0.0)
    model = SVMClassifierCV(GRID, calibration="sigmoid").fit(X, y)
    for other in (
        SVMClassifierCV(GRID, calibration="sigmoid", n_jobs=2).fit(X, y),
        SVMClassifierCV(GRID, calibration="sigmoid", n_jobs=2).fit(sp.csr_array(X), y),
    ):
        assert np.array_equal(other.coef_, model.coef_)
        assert np.array_equal(other.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"])
        assert np.array_equal(other.predict_proba(X), model.predict_proba(X))


def test_any_splitter(cancer):
    X, y = cancer
    groups = np.arange(y.size) // 100
    for cv in (3, KFold(4), ShuffleSplit(3, train_size=0.3, random_state=0), TimeSeriesSplit(3)):
        model = SVMClassifierCV([0.1, 1.0], cv=cv, **SCALED).fit(X, y)
        splits = list((StratifiedKFold(3) if cv == 3 else cv).split(X, y))
        assert model.n_splits_ == len(splits)
        train, test = splits[-1]
        expected = SVMClassifier(1.0, **SCALED).fit(X[train], y[train]).score(X[test], y[test])
        assert model.cv_results_[f"split{len(splits) - 1}_test_score"][1] == expected
    assert SVMClassifierCV([1.0], cv=GroupKFold(), **SCALED).fit(X, y, groups=groups).n_splits_ == 5
    assert SVMClassifierCV([1.0], cv=[(np.arange(300), np.arange(300, 569))], **SCALED).fit(X, y).n_splits_ == 1
    with pytest.raises(ValueError, match="gives no split"):
        SVMClassifierCV([1.0], cv=[]).fit(X, y)
    with pytest.raises(ValueError, match="has no sample of the class b[^`]*use stratified folds, as those of cv=2"):
        halves = [(np.arange(200), np.arange(200, 569)), (np.arange(200, 569), np.arange(200))]
        SVMClassifierCV([1.0], cv=halves).fit(X, np.where(np.arange(569) < 200, "a", "b"))


def test_scores_by_name(cancer):
    X, y = cancer
    train, test = next(iter(StratifiedKFold(5).split(X, y)))
    one = SVMClassifier(0.1, **SCALED).fit(X[train], y[train])
    for scoring, function, values in (
        ("roc_auc", roc_auc_score, one.decision_function(X[test])), ("f1", f1_score, one.predict(X[test])),
    ):  # fmt: skip
        model = SVMClassifierCV([0.1], scoring=scoring, **SCALED).fit(X, y)
        assert model.cv_results_["split0_test_score"][0] == pytest.approx(function(y[test], values), rel=1e-12)
    for scoring in ("mae", "gini"):
        with pytest.raises(ValueError, match="score"):
            SVMClassifierCV([0.1], scoring=scoring).fit(X, y)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score"])
def test_scorers_of_probabilities(cancer, scoring):
    """The error was of a class that nobody has heard of, and has no such attribute."""
    with pytest.raises(ValueError, match=f"scoring='{scoring}' needs probabilities"):
        SVMClassifierCV([0.1], cv=2, scoring=scoring, **SCALED).fit(*cancer)


def balance(model, X, y):
    """Score by predictions and decisions."""
    return float(np.mean(model.predict(X) == y)) + 0.01 * float(np.mean(model.decision_function(X) > 0.0))


@pytest.mark.parametrize("scoring", ["average_precision", "matthews_corrcoef", make_scorer(f1_score), balance])
def test_scorers_of_scikit_learn_and_functions(cancer, scoring):
    X, y = cancer
    grid = [0.01, 1.0]
    model = SVMClassifierCV(grid, cv=3, scoring=scoring, **SCALED).fit(X, y)
    for j, C in enumerate(grid):
        expected = cross_val_score(SVMClassifier(C, **SCALED), X, y, cv=3, scoring=scoring)
        found = [model.cv_results_[f"split{k}_test_score"][j] for k in range(3)]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()
    weights = 1.0 + np.arange(y.size) % 2
    assert np.isfinite(SVMClassifierCV(grid, cv=3, scoring=scoring, **SCALED).fit(X, y, weights).best_score_)


def test_scorers_of_several_classes_and_of_regressions():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = SVMClassifierCV([0.1], cv=3, scoring="f1_macro", **SCALED).fit(X, names)
    expected = cross_val_score(SVMClassifier(0.1, **SCALED), X, names, cv=3, scoring="f1_macro")
    np.testing.assert_allclose([model.cv_results_[f"split{k}_test_score"][0] for k in range(3)], expected)
    model = LADRegressorCV([0.1, 1.0], cv=3, scoring="r2", **SCALED).fit(X[:, :3], X[:, 3])
    expected = cross_val_score(LADRegressor(1.0, **SCALED), X[:, :3], X[:, 3], cv=3, scoring="r2")
    found = [model.cv_results_[f"split{k}_test_score"][1] for k in range(3)]
    np.testing.assert_allclose(found, expected, atol=1e-3)  # both within their gaps
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()


@pytest.mark.parametrize(
    ("kind", "single", "own", "loss"),
    [
        (LADRegressorCV, LADRegressor, {}, mean_absolute_error),
        (SVMRegressorCV, SVMRegressor, {"epsilon": 0.2}, mean_absolute_error),
        (QuantileRegressorCV, QuantileRegressor, {"tau": 0.9}, lambda y, p: mean_pinball_loss(y, p, alpha=0.9)),
    ],
    ids=["lad", "svr", "quantile"],
)
def test_regressions_are_scored_so_that_more_is_better(cancer, kind, single, own, loss):
    X, y = cancer[0][:, 1:], cancer[0][:, 0]
    model = kind(GRID, **own, **SCALED).fit(X, y)
    train, test = next(iter(KFold(5).split(X)))
    one = single(model.C_, **own, **SCALED).fit(X[train], y[train])
    expected = -loss(y[test], one.predict(X[test]))
    assert model.cv_results_["split0_test_score"][model.best_index_] == pytest.approx(expected, rel=1e-3)
    assert model.best_score_ == model.cv_results_["mean_test_score"].max() < 0.0


def test_three_classes(three):
    X, y = three
    train, test = next(iter(StratifiedKFold(5).split(X, y)))
    model = SVMClassifierCV(GRID, **SCALED).fit(X, y)
    one = SVMClassifier(1.0, **SCALED).fit(X[train], y[train])
    assert model.cv_results_["split0_test_score"][3] == one.score(X[test], y[test])
    assert len(model.path_) == 3 and model.coef_.shape == (3, 29) and model.dual_gap_.shape == (3,)
    behind = SVMClassifierCV([0.1, 1.0], kernel="rbf", scale="standard", cv=3).fit(X, y)
    assert behind.best_score_ > 0.8 and behind.decision_function(X).shape == (y.size, 3)
    with pytest.raises(ValueError, match="certify"):
        SVMClassifierCV(GRID, certify=True).fit(X, y)


def test_grids_of_the_other_models(cancer, three):
    X, y = cancer
    path = screenpath.l1_svm_path(X, y, grid=6, scale="standard")
    model = L1SVMClassifierCV(6, scale="standard", cv=3).fit(X, y)
    assert np.array_equal(model.path_.grid, path.grid)
    np.testing.assert_allclose(model.cv_results_["param_C"], 0.5 / path.grid)
    assert L1SVMClassifierCV([0.01, 0.1], cv=3, scale="standard").fit(X, y).C_ in (0.01, 0.1)
    log = L1SVMClassifierCV(4, log=True, lambda_min_ratio=0.1, cv=3, scale="standard").fit(*three)
    ratios = log.path_[0].grid[:-1] / log.path_[0].grid[1:]
    np.testing.assert_allclose(ratios, 10.0 ** (1 / 3))
    pairs = SparseSVMClassifierCV(2, 3, cv=3, scale="standard").fit(*three)
    grid = screenpath.sparse_svm_path(three[0], np.unique(three[1], return_inverse=True)[1], betas=2, alphas=3,
                                      scale="standard").grid  # fmt: skip
    assert np.array_equal(pairs.path_.grid, grid) and set(pairs.best_params_) == {"alpha", "beta"}
    assert (pairs.alpha_, pairs.beta_) == tuple(grid[pairs.best_index_])
    given = SparseSVMClassifierCV([0.01], [0.1, 1.0], cv=3, scale="standard").fit(X, y)
    assert given.path_.grid.tolist() == [[1.0, 0.01], [0.1, 0.01]]


def test_folds_that_are_not_certified_warn(cancer):
    with pytest.warns(ConvergenceWarning) as caught:
        model = SVMClassifierCV([0.1, 10.0], max_epochs=1, cv=3).fit(*cancer)
    said = [str(one.message) for one in caught]
    assert said[0].startswith("cross-validation is not certified at ") and "of 6 solutions" in said[0]
    assert said[1].startswith("the fit is not certified: ") and {one.filename for one in caught} == {__file__}
    assert not model.cv_results_["certified"].all()


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities(cancer, three, method):
    for X, y in (cancer, three):
        train, test = next(iter(StratifiedKFold(3).split(X, y)))
        model = SVMClassifierCV(GRID, calibration=method, **SCALED).fit(X[train], y[train])
        found = model.predict_proba(X[test])
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        other = CalibratedClassifierCV(SVMClassifier(model.C_, **SCALED), method=method, ensemble=False)
        # The same folds, the same scores, the same likelihood.
        np.testing.assert_allclose(found, other.fit(X[train], y[train]).predict_proba(X[test]), atol=1e-2)
        truth = (y[test][:, None] == model.classes_).astype(float)
        assert np.square(found - truth).sum(axis=1).mean() < 0.3


def test_probabilities_only_on_request(cancer):
    assert not hasattr(SVMClassifierCV(), "predict_proba")
    with pytest.raises(ValueError, match="calibration must be one of sigmoid, isotonic or None"):
        SVMClassifierCV([1.0], calibration="beta").fit(*cancer)


def test_the_sigmoid_is_the_most_likely_one():
    rng = np.random.default_rng(0)
    forms = rng.normal(size=400) * 1e3
    positive = rng.random(400) < 1.0 / (1.0 + np.exp(-0.002 * forms + 0.5))
    weights = rng.integers(1, 4, 400).astype(float)
    found = calibrated("sigmoid", forms, positive, weights)
    repeated = calibrated("sigmoid", np.repeat(forms, weights.astype(int)), np.repeat(positive, weights.astype(int)))
    np.testing.assert_allclose([found.slope, found.offset], [repeated.slope, repeated.offset], rtol=1e-9)
    many, few = weights[positive].sum(), weights[~positive].sum()
    targets = np.where(positive, (many + 1) / (many + 2), 1 / (few + 2))
    left = weights * (found.predict(forms) - targets)
    np.testing.assert_allclose([left.sum(), left @ forms / 1e3], 0.0, atol=1e-8)
    flat = calibrated("sigmoid", np.zeros(400), positive, weights)
    assert flat.predict(np.zeros(1))[0] == pytest.approx(weights @ targets / weights.sum())


def test_a_grid_goes_on_as_by_the_library(cancer, tmp_path):
    X, y = cancer
    folds = np.arange(y.size) % 3
    (tmp_path / "folds").write_text("\n".join(map(str, folds)) + "\n")
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]
    how = {"until_turn": True, "scale": "standard"}
    for kind, name, small in (
        (SVMClassifierCV, "svm", {"grid": 3, "cmin": 1e-4, "cmax": 1e-3, "bias": 1.0}),
        (L1SVMClassifierCV, "l1svm", {"grid": 3}),
    ):  # fmt: skip
        file = {"fold_file": tmp_path / "folds", "out": tmp_path / name, "quiet": True}
        run = screenpath.cross_validate(name, (X, y), **how, **small, **file)
        model = kind(cv=splits, **how, **small).fit(X, y)
        assert len(model.path_) == len(run) > 3
        assert np.array_equal(model.cv_results_["mean_test_score"], [one.cv_accuracy for one in run])
        # With a scorer the forms of the held-out samples are kept, from the first point on.
        other = kind(cv=splits, scoring="balanced_accuracy", **how, **small).fit(X, y)
        scorer = make_scorer(lambda truth, found: np.mean([(found[truth == c] == c).mean() for c in (0, 1)]))
        same = kind(cv=splits, scoring=scorer, **how, **small).fit(X, y)
        assert len(same.path_) == len(other.path_) > 3
        np.testing.assert_allclose(
            same.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], rtol=1e-12
        )
    few = SVMClassifierCV(3, cmin=1e-6, cmax=1e-5, turn_points=2, bias=1.0, **how).fit(X, y)
    assert len(few.path_) == 5
    several = SVMClassifierCV(4, cmin=1e-4, cmax=1e-3, cv=3, bias=1.0, **how).fit(*load_iris(return_X_y=True))
    assert len(several.cv_results_["params"]) > 4
    for wrong, said in (
        ({"grid": GRID}, "give their number"), ({"rule": "ssnsv"}, "`rule=ssnsv` needs"),
        ({"turn_points": None}, "`turn_points` must be a whole number"), ({"grid": 1}, "2 or"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            SVMClassifierCV(until_turn=True, bias=1.0, **wrong).fit(X, y)


def test_leave_one_out_is_that_of_as_many_fits(cancer, monkeypatch):
    X, y = cancer
    X, y = ((X - X.mean(axis=0)) / X.std(axis=0))[:80], y[:80]
    n, walked = np.arange(80), []
    fits = [(np.delete(n, k), [k]) for k in n]
    for kind, targets in ((SVMClassifierCV, y), (QuantileRegressorCV, X[:, 0] + np.sin(n))):
        slow = kind(GRID, bias=1.0, cv=fits, tol=1e-9).fit(X[:, 1:], targets)
        with monkeypatch.context() as patch:
            patch.setattr("screenpath.sklearn.crossval.whole_fold", lambda m: walked.append(m) or whole_fold(m))
            quick = kind(GRID, bias=1.0, cv=LeaveOneOut(), tol=1e-9).fit(X[:, 1:], targets)
        assert walked.pop() == 80 and quick.n_splits_ == 80 and set(quick.cv_results_) == set(slow.cv_results_)
        for name in ("split7_test_score", "mean_test_score", "std_test_score", "se_test_score"):
            np.testing.assert_allclose(quick.cv_results_[name], slow.cv_results_[name], rtol=1e-5, atol=1e-6)
        assert quick.C_ == slow.C_ and quick.cv_results_["certified"].all()
    scaled = SVMClassifierCV(GRID[:2], scale="standard", cv=LeaveOneOut()).fit(X[:30], y[:30])  # its own in each fold
    one = SVMClassifier(GRID[1], scale="standard").fit(X[1:30], y[1:30]).predict(X[:1]) == y[0]
    assert scaled.cv_results_["split0_test_score"][1] == one


def test_calibration_takes_the_rows_left_out(cancer):
    X, y = cancer
    X, y = ((X - X.mean(axis=0)) / X.std(axis=0))[:80], y[:80]
    n = np.arange(80)
    how = {"bias": 1.0, "calibration": "sigmoid", "tol": 1e-9}
    quick = SVMClassifierCV(GRID, cv=LeaveOneOut(), **how).fit(X, y)
    slow = SVMClassifierCV(GRID, cv=[(np.delete(n, k), [k]) for k in n], **how).fit(X, y)
    np.testing.assert_allclose(quick.predict_proba(X), slow.predict_proba(X), atol=1e-4)
