"""A weight is a number of times that a row stands in the data, wherever data is looked at."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath import kernel_svm_path, lad_path, quantile_path, svm_path, svr_path
from screenpath.catalogue.targets import row_weights
from screenpath.cv.certify import ErrorBounds, HeldOut, whole_weights
from screenpath.cv.folds import draw_folds
from screenpath.cv.saved import _arrays, _held_out
from screenpath.errors import DataError, UsageError
from tests.cli.conftest import libsvm_text, read_csv
from tests.cv.test_certify import held_out

GRID = [0.01, 0.1, 1.0]
PLAIN = {"intercept": "none", "tol": 1e-8}
MODELS = {
    "svm": (svm_path, {}), "balanced svm": (svm_path, {"class_weight": "balanced"}),
    "svm with class weights": (svm_path, {"class_weight": {1: 3.0, 2: 0.5}}), "lad": (lad_path, {}),
    "quantile": (quantile_path, {"tau": 0.8}), "svr": (svr_path, {"epsilon": 0.3}),
    "kernel svm": (kernel_svm_path, {"kernel": "rbf"}),
    "balanced kernel svm": (kernel_svm_path, {"kernel": "poly", "degree": 2, "class_weight": "balanced"}),
}  # fmt: skip


def problem(n=60, d=4, labels=2, seed=0):
    """Return rows, labels that differ in number, and how often each row stands: some not at all."""
    rng = np.random.default_rng(seed)
    y = 1.0 + np.where(rng.random(n) < 0.25, 0, rng.integers(0, labels, size=n))
    X = rng.normal(size=(n, d)) * [1.0, 5.0, 0.2, 2.0][:d] + y[:, None] * [1.0, 0.0, 0.1, 1.0][:d] + 3.0
    times = rng.integers(0, 4, size=n)
    X[np.flatnonzero(times == 0)[0]] *= 50.0  # the largest values are in a row that is not there
    return X, y, times


@pytest.mark.parametrize("scale", ["none", "maxabs", "standard", "l2"])
@pytest.mark.parametrize("name", MODELS)
def test_paths(name, scale):
    X, y, times = problem()
    path, options = MODELS[name]
    options = {"grid": GRID, "scale": scale, "bias": 1.0, "tol": 1e-10, **options}
    for data in (X, sp.csr_array(X)) if scale != "standard" else (X,):
        weighted = path(data, y, sample_weight=times, **options)
        repeated = path(np.repeat(X, times, axis=0), np.repeat(y, times), **options)
        assert weighted.certified and repeated.certified
        for one, other in zip(weighted.steps, repeated.steps, strict=True):
            assert one.primal == pytest.approx(other.primal, rel=1e-9)
        if "kernel" in name:
            np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-4)
        else:
            np.testing.assert_allclose(weighted.coefficients, repeated.coefficients, rtol=1e-4, atol=1e-4)


def test_balanced_weights_count_as_scikit_learn_does():
    X, y, times = problem(labels=3)
    labels, counts = np.unique(np.repeat(y, times), return_counts=True)
    expected = dict(zip(labels, counts.sum() / (labels.size * counts), strict=True))
    assert row_weights(y, "balanced", times) == pytest.approx(np.array([expected[label] for label in y]) * times)
    gone = np.where(y == 2.0, 0.0, times)  # a label all of whose rows are gone does not share in the balance
    two = row_weights(y, "balanced", gone)
    assert two[y == 1.0].sum() == pytest.approx(two[y == 3.0].sum()) == pytest.approx(gone.sum() / 2)
    with pytest.raises(UsageError, match="all weights are 0"):
        svm_path(X, y, sample_weight=np.zeros(y.size), scale="standard")


# -- the command line: files with weights beside files that repeat their rows -----------------------------------------


def write(folder, X, y, times, folds):
    """Write the data with weights, and with its rows repeated, and which fold each row is in."""
    (folder / "weighted").write_text(libsvm_text(X, y))
    (folder / "repeated").write_text(libsvm_text(np.repeat(X, times, axis=0), np.repeat(y, times)))
    for name, values in (("weights", times), ("folds", folds), ("folds.repeated", np.repeat(folds, times))):
        (folder / name).write_text("".join(f"{value}\n" for value in values))


CASES = [
    *((("svm", "--class-weight", "balanced"), score) for score in ("accuracy", "balanced-accuracy", "f1", "auc")),
    (("svm", "--one-vs-rest"), "balanced-accuracy"), (("svm", "--kernel", "rbf"), "accuracy"),
    (("lad",), "mae"), (("lad",), "mse"), (("svr",), "mae"), (("quantile", "--tau", 0.3), "pinball"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "score"), CASES)
def test_cross_validation(call, tmp_path, model, score):
    """Copies of a row are in its fold: training parts, scaling, balance and scores are those of the repeated rows."""
    X, y, times = problem(n=90, labels=3 if "--one-vs-rest" in model else 2, seed=2)
    write(tmp_path, X, y, times, np.arange(90) % 3)
    rest = ("--score", score, "--c-list", "0.01,0.1,1", "--scale", "standard", "--bias", 1, "--tol", 1e-9, "--quiet")
    name, *own = model
    weighted = (name, "weighted", *own, *rest, "--weights", "weights", "--fold-file", "folds")
    assert call("cv", *weighted, "-o", "w").code == 0
    assert call("cv", name, "repeated", *own, *rest, "--fold-file", "folds.repeated", "-o", "r").code == 0
    for column in ("mean", "se", "best", "one_se"):
        one, other = ([float(row[column]) for row in read_csv(f"{run}/cv.csv")] for run in "wr")
        assert one == pytest.approx(other, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kernel", [(), ("--kernel", "rbf")])
def test_certified_bound(call, tmp_path, kernel):
    X, y, times = problem(n=90, seed=2)
    write(tmp_path, X, y, times, np.arange(90) % 3)
    rest = (*kernel, "--grid", 12, "--scale", "standard", "--bias", 1, "--tol", 1e-9, "--certify", "--quiet")
    assert call("cv", "svm", "weighted", *rest, "--weights", "weights", "--fold-file", "folds", "-o", "w").code == 0
    assert call("cv", "svm", "repeated", *rest, "--fold-file", "folds.repeated", "-o", "r").code == 0
    assert call("cv", "svm", "weighted", *rest, "--fold-file", "folds", "-o", "plain").code == 0
    found = [json.loads((tmp_path / name / "cv.json").read_text())["certified"] for name in ("w", "r", "plain")]
    numbers = [{name: value for name, value in one.items() if value is not None} for one in found]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-12) and found[0]["best_error"] != found[2]["best_error"]
    scores = [1.0 - float(row["mean"]) for row in read_csv("w/cv.csv")]
    assert found[0]["best_error"] == pytest.approx(min(scores), abs=1e-12) and found[0]["lower_bound"] <= min(scores)
    bounds = [[list(map(float, row.values())) for row in read_csv(f"{name}/bounds.csv")] for name in "wr"]
    np.testing.assert_allclose(*bounds, rtol=1e-12)


def test_folds_without_weight(call, tmp_path):
    X, y, times = problem(n=30)
    times[::3] = 0
    write(tmp_path, X, y, times, np.arange(30) % 3)
    result = call("cv", "lad", "weighted", "--weights", "weights", "--fold-file", "folds", "--quiet")
    assert result.code == 1 and "all samples of the held-out part of fold 0 have weight 0" in result.err
    times = np.where((y == 2.0) & (np.arange(30) % 3 != 1), 0, 1)  # of one class, all are in one fold
    write(tmp_path, X, y, times, np.arange(30) % 3)
    result = call("cv", "svm", "weighted", "--weights", "weights", "--fold-file", "folds", "--quiet")
    assert result.code == 1 and "the training part of fold 1 has no sample of the class 2" in result.err


# -- the certified bound counts weights in whole numbers, of whatever size ---------------------------------------------


def test_whole_weights_are_exact():
    assert whole_weights([2.0, 4.0, 0.0]).tolist() == [1, 2, 0]
    for weights in ([0.1, 0.2, 0.3], [1e-300, 1.0, 3.0], [1e300, 1.0], [0.5, 0.25], [0.0, 0.7]):
        whole = whole_weights(weights)
        scale = Fraction(int(whole[-1])) / Fraction(weights[-1])
        assert [Fraction(int(number)) for number in whole] == [Fraction(weight) * scale for weight in weights]
        assert whole.dtype == (np.int64 if sum(map(int, whole)) < 2**62 else object)


@pytest.mark.parametrize("weights", [np.arange(120) % 4 + 0.0, np.arange(120) % 4 + 0.1, 10.0 ** (np.arange(120) % 7)])
def test_bounds_hold_for_any_weights_and_survive_a_file(weights):
    X, y, _ = problem(n=120, seed=5)
    signs, grid = np.where(y == 2.0, 1.0, -1.0), np.geomspace(1e-2, 10.0, 15)
    folds, fine, exact = [], [], []
    for split in draw_folds(120, 4, 1, 0, signs):
        plain = held_out(X, signs, split, grid, 1e-8)
        given = HeldOut(plain.signs, plain.norms, whole_weights(weights[split.held_out]), [])
        share = weights[split.held_out] / weights[split.held_out].sum()
        path = svm_path(np.delete(X, split.held_out, axis=0), np.delete(signs, split.held_out), grid=100, **PLAIN)
        fine.append(((X[split.held_out] @ path.coefficients.T > 0.0) != (plain.signs[:, None] > 0.0)).T @ share)
        path = svm_path(np.delete(X, split.held_out, axis=0), np.delete(signs, split.held_out), grid=grid, **PLAIN)
        wrong = (X[split.held_out] @ path.coefficients.T > 0.0) != (plain.signs[:, None] > 0.0)
        exact.append(wrong.T @ share)
        lines = [replace(line, errors=given.weight(wrong[:, k])) for k, line in enumerate(plain.lines)]
        folds.append(replace(given, lines=lines))
    certified = ErrorBounds(folds)
    errors = [error / certified.denominator for error in certified.errors]
    assert errors == pytest.approx(np.mean(exact, axis=0), rel=1e-12)
    assert certified.lower / certified.denominator <= np.mean(fine, axis=0).min() + 1e-12
    assert certified.difference < 0.3 and certified.weak(0.001) is not None
    kept = [
        (_arrays(fold), [fold.weights.tolist(), [int(line.errors) for line in fold.lines]], fold.signs.size,
         [line.C for line in fold.lines], X.shape[1]) for fold in folds
    ]  # fmt: skip
    again = ErrorBounds([_held_out(*parts) for parts in kept])
    assert (again.errors, again.segments, again.denominator) == (
        certified.errors, certified.segments, certified.denominator
    )  # fmt: skip


def test_weights_of_a_wrong_length_are_named_before_scaling():
    X, y, _ = problem()
    for bad, words in ((np.ones(3), "3 weights for 60 samples"), (np.full(60, -1.0), "weight 1 is -1.0")):
        for path in (svm_path, kernel_svm_path, lad_path):
            with pytest.raises(UsageError, match=words):
                path(X, y, sample_weight=bad, scale="standard")
    with pytest.raises(DataError, match="10 rows but 9 targets"):
        lad_path(X[:10], y[:9], sample_weight=np.ones(9))
