"""Estimators and paths of data frames with texts and gaps, and the pictures of searches."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import screenpath
from screenpath.sklearn import (
    L1SVMClassifierCV,
    LADRegressor,
    LADRegressorCV,
    SparseSVMClassifierCV,
    SVMClassifier,
    SVMClassifierCV,
)
from tests.conftest import ROOT

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
COLUMNS = ["site", "age", "weight_kg", "blood", "smoker"]
HOW = {"one_hot": "auto", "missing": "median", "scale": "standard", "intercept": "free"}


@pytest.fixture(scope="module")
def clinic():
    """Columns with texts and gaps, and labels."""
    frame = pandas.read_csv(ROOT / "data_samples" / "clinic.csv", na_values="?")
    return frame[COLUMNS], frame["returned"].to_numpy(dtype=str)


def test_a_frame_is_read_as_the_file_is(clinic, tmp_path):
    X, y = clinic
    file = tmp_path / "t.csv"
    X.assign(y=y).to_csv(file, index=False)
    run = screenpath.run("svm", file, c=1.0, one_hot=("auto",), missing="median", scale="standard", intercept="free",
                         out=tmp_path / "r", quiet=True)  # fmt: skip
    path = screenpath.svm_path(X, y, grid=[1.0], **HOW)
    model = SVMClassifier(C=1.0, **HOW).fit(X, y)
    assert path.feature_names == run.feature_names == model.path_.feature_names
    for coef in (path.coef(), model.coef_[0]):
        np.testing.assert_array_equal(coef, run.coef())
    expected = [row.split(",")[-1] for row in _predicted(run.folder, file, tmp_path)]
    path.save(tmp_path / "saved")
    saved = screenpath.load_run(tmp_path / "saved")
    reordered = X[COLUMNS[::-1]].assign(more=1)
    for found in (path.predict(X), model.predict(X), run.predict(X), saved.predict(X)):
        assert found.tolist() == expected
    with pytest.warns(UserWarning, match="does not use are ignored: more"):
        assert path.predict(reordered).tolist() == expected
    assert _predicted(tmp_path / "saved", file, tmp_path)[5] == _predicted(run.folder, file, tmp_path)[5]
    how = {**HOW, "c_list": [1.0], "folds": 2, "test": (X, y), "out": tmp_path / "cv", "quiet": True}
    cv = screenpath.cross_validate("svm", (X, y), **how)
    np.testing.assert_array_equal(cv.coef(), run.coef())
    assert cv.predict(X).tolist() == expected and cv.table()[0]["test_accuracy"] == np.mean(cv.predict(X) == y)
    assert cv.loo(C=1).errors == run.loo(C=1).errors and cv.duals(C=1).labels.tolist() == y.tolist()
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(X).tolist() == clone(model).fit(X, y).predict(X).tolist() == expected
    assert model.n_features_in_ == 5 and model.feature_names_in_.tolist() == COLUMNS


def _predicted(folder, file, place):
    from screenpath.cli.app import run

    assert run(["predict", str(folder), str(file), "-q", "-o", str(place / "p.csv"), "--step", "0", "--force"]) == 0
    return (place / "p.csv").read_text().split()[1:]


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_other_libraries(clinic, library):
    module = pytest.importorskip(library)
    X, y = clinic
    table = module.from_pandas(X) if library == "polars" else module.Table.from_pandas(X, preserve_index=False)
    path = screenpath.svm_path(table, y, grid=[1.0], **HOW)
    np.testing.assert_array_equal(path.coef(), screenpath.svm_path(X, y, grid=[1.0], **HOW).coef())
    assert path.predict(table).tolist() == path.predict(X).tolist()
    if library == "polars":
        coded = table.with_columns(module.col("blood").cast(module.Categorical))
        assert path.predict(coded).tolist() == path.predict(X).tolist()


def test_gaps_are_learned_in_each_fold(clinic):
    """The scores of a search are those of fits to training parts, whose medians are their own."""
    X, y = clinic
    search = SVMClassifierCV(grid=[0.1, 1.0], cv=4, **HOW).fit(X, y)
    from sklearn.model_selection import StratifiedKFold

    for k, (trained, held_out) in enumerate(StratifiedKFold(4).split(X, y)):
        part = SVMClassifier(C=1.0, **HOW).fit(X.iloc[trained], y[trained])
        assert search.cv_results_[f"split{k}_test_score"][1] == part.score(X.iloc[held_out], y[held_out])
    numbers = X[["age", "weight_kg"]].to_numpy()
    assert np.isnan(numbers).any()
    filled = np.where(np.isnan(numbers), np.nanmedian(numbers, axis=0), numbers)
    target = np.arange(len(y)) % 7.0
    found, plain = (LADRegressor(missing="median").fit(numbers, target), LADRegressor().fit(filled, target))
    np.testing.assert_array_equal(found.coef_, plain.coef_)
    np.testing.assert_array_equal(found.predict(numbers), plain.predict(filled))
    behind = SVMClassifier(kernel="rbf", missing="median").fit(numbers, y)
    np.testing.assert_array_equal(
        behind.decision_function(numbers), SVMClassifier(kernel="rbf").fit(filled, y).decision_function(filled)
    )


def test_texts_that_are_new_and_what_is_refused(clinic):
    X, y = clinic
    model = SVMClassifier(**HOW).fit(X, y)
    strange, none = X.copy(), X.copy()
    strange.loc[3, "site"], none.loc[3, "site"] = "moon", None
    with pytest.warns(UserWarning, match="a value of 'site' that the training data does not have"):
        assert model.decision_function(strange)[3] == model.decision_function(none)[3]
    whole = X.dropna()
    plain = SVMClassifier(one_hot=["site", "blood", "smoker"]).fit(whole, y[X.notna().all(axis=1)])
    with pytest.raises(ValueError, match="row 4: a value is missing, and the model fills in none"):
        plain.predict(none)
    for how, words in (
        ({"one_hot": "auto"}, "row 6, column 'smoker': the value is missing"),
        ({"one_hot": "sit", "missing": 0}, "did you mean site"),
        ({"one_hot": "site", "missing": 0}, "leave the column out|encode its texts"),
        ({"missing": "drop"}, "leave out the rows"), ({"missing": "often"}, "is no treatment of missing values"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            SVMClassifier(**how).fit(X, y)
    with pytest.raises(ValueError, match="pass a data frame"):
        SVMClassifier(one_hot="site").fit(X[["age"]].to_numpy(), y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X[["age"]])
    mixed = X.assign(blood=[1, "A"] * (len(y) // 2))
    with pytest.raises(ValueError, match="a column of several types"):
        SVMClassifier(**HOW).fit(mixed, y)


def test_a_search_draws_itself(tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y, target = np.where(X[:, 0] + rng.normal(size=60) > 0, "a", "b"), X[:, 0] + rng.normal(size=60)
    search = SVMClassifierCV(grid=6, certify=True).fit(X, y)
    axes = search.plot().figure.axes[0]
    drawn = axes.containers[0].lines[0].get_ydata()
    np.testing.assert_array_equal(drawn, search.cv_results_["mean_test_score"])
    words = [text.get_text() for text in search.plot().figure.legends[0].get_texts()]
    assert any(word.startswith(f"best: step {search.best_index_} ") for word in words)
    assert any(word.startswith("certified: no C above this") for word in words)
    search.plot().save(tmp_path / "a.svg")
    assert "img" in search.plot("rejection")._repr_html_() and (tmp_path / "a.svg").stat().st_size > 0
    for other, label in (
        (LADRegressorCV(grid=6).fit(X, target), "-mae"),
        (LADRegressorCV(grid=6, scoring="neg_mean_squared_error").fit(X, target), "neg mean squared error"),
        (L1SVMClassifierCV(grid=4, scoring=lambda model, X, y: 1.0).fit(X, y), "<lambda>"),
    ):
        assert other.plot().figure.axes[0].get_ylabel() == label.replace("-", " ")
    assert SparseSVMClassifierCV(betas=2, alphas=3).fit(X, y).plot().figure.axes
    several = SVMClassifierCV(grid=3).fit(X, rng.integers(0, 3, 60))
    assert several.plot().figure.axes
    with pytest.raises(ValueError, match="a path for each class"):
        several.plot("gap")


def test_errors_name_the_column_and_what_reads_it(clinic):
    """scikit-learn's own are about all columns, and say neither how texts are encoded nor how gaps are filled in."""
    X, y = clinic
    days = X[["age"]].dropna().assign(day=pandas.Timestamp("2020-01-01"))
    for frame, words in (
        (X[["site"]], "'site' holds String, not numbers\n.*`one_hot=site` encodes"), (days, "'day' holds.*\n.*out$"),
        (X[COLUMNS[1:3]], "'age' has missing, nan.*\n.*`missing=median` does"),
        (pandas.concat([X[["age"]]] * 2, axis=1), "columns 1 and 2 .* have the name 'age'"),
    ):  # fmt: skip
        for estimator in (SVMClassifier(), LADRegressorCV()):
            with pytest.raises(ValueError, match=words):
                estimator.fit(frame, np.arange(len(frame)) % 2)
    numbers = X[["age"]].fillna(1.0)
    with pytest.raises(ValueError, match="'age' holds String"):
        SVMClassifier().fit(numbers, y).predict(numbers.astype(str) + "a")
    for given, targets in ((X[["age", "weight_kg"]].to_numpy(), y), (numbers, np.where(y == y[0], np.nan, 1.0))):
        with pytest.raises(ValueError, match="contains NaN(?![\\s\\S]*missing=)"):  # not of columns of a data frame
            LADRegressor().fit(given, targets)


def test_predictions_of_encoded_frames_refuse_other_rows_in_words(clinic):
    X, y = clinic
    model = SVMClassifier(one_hot="auto", missing="median").fit(X, y)
    with pytest.raises(ValueError, match="`one_hot` names columns of a table, the data has no names\n.*data frame"):
        model.predict(X.to_numpy())
    with pytest.raises(ValueError, match="column 'age': the column holds .*, not numbers"):
        model.predict(X.assign(age="old"))
