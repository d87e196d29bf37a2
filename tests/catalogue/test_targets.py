"""The box models by name, and weights."""

from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.catalogue.losses import LAD, QUANTILE, SVM, SVR
from screenpath.catalogue.targets import row_weights, sign_targets
from screenpath.errors import DataError, UsageError
from screenpath.rows.memory import MemoryRows
from screenpath.verify.data_facts import DataFacts
from tests.conftest import two_classes
from tests.plain import lad_path, quantile_path, svm_path, svr_path

GRID = [0.003, 0.05, 0.7, 8.0]
LOSSES = {
    "svm": lambda t, _: np.maximum(0.0, t), "lad": lambda t, _: np.abs(t),
    "quantile": lambda t, tau: np.maximum((tau - 1.0) * t, tau * t),
    "svr": lambda t, eps: np.maximum(0.0, np.abs(t) - eps),
}  # fmt: skip


def regression(n=70, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + rng.standard_t(3, size=n)


def models(weights):
    X, signs = two_classes(70, 5)
    Z, y = regression()
    yield SVM.model(MemoryRows(X), signs, weights), X, signs, "svm", None
    yield LAD.model(MemoryRows(Z), y, weights), Z, y, "lad", None
    yield QUANTILE.model(MemoryRows(Z), y, weights, tau=0.8), Z, y, "quantile", 0.8
    yield SVR.model(MemoryRows(Z), y, weights, epsilon=0.3), Z, y, "svr", 0.3


@pytest.mark.parametrize("weighted", [False, True])
def test_primal_is_the_loss_written_out(weighted):
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.0, 3.0, 70) if weighted else None
    s = np.ones(70) if weights is None else weights
    for model, X, y, name, parameter in models(weights):
        w = rng.normal(size=5)
        t = 1.0 - y * (X @ w) if name == "svm" else y - X @ w
        expected = 0.5 * w @ w + 0.3 * np.sum(s * LOSSES[name](t, parameter))
        theta = np.clip(rng.normal(size=model.size), model.lo, model.hi)
        assert model.certify(0.3, w, theta).primal == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("path", [svm_path, lad_path, quantile_path, svr_path])
def test_an_integer_weight_is_the_row_repeated(path):
    X, y = two_classes(60, 4) if path is svm_path else regression(60, 4)
    counts = np.random.default_rng(2).integers(0, 4, size=60)
    weighted = path(X, y, grid=GRID, sample_weight=counts, tol=1e-10)
    repeated = path(np.repeat(X, counts, axis=0), np.repeat(y, counts), grid=GRID, tol=1e-10)
    assert weighted.certified and repeated.certified
    for a, b in zip(weighted.steps, repeated.steps, strict=True):
        assert a.primal == pytest.approx(b.primal, rel=1e-9)
    np.testing.assert_allclose(weighted.coefficients, repeated.coefficients, atol=1e-4)


@pytest.mark.parametrize("path", [lad_path, quantile_path, svr_path])
@pytest.mark.parametrize("rule", ["none", "dvi", "dvi+gap", "gap"])
def test_regressions_agree_with_and_without_screening(path, rule):
    X, y = regression()
    plain = path(X, y, grid=GRID, rule="none", solver="cd", tol=1e-9)
    for storage in ("dense", "sparse"):
        screened = path(X, y, grid=GRID, rule=rule, storage=storage, tol=1e-9)
        assert screened.certified and plain.certified
        for a, b in zip(screened.steps, plain.steps, strict=True):
            assert a.dual <= b.primal * (1 + 1e-12) and b.dual <= a.primal * (1 + 1e-12)


def test_half_quantile_and_zero_tube_are_lad():
    X, y = regression()
    lad = lad_path(X, y, grid=GRID, tol=1e-10)
    half = quantile_path(X, y, tau=0.5, grid=[2.0 * C for C in GRID], tol=1e-10)
    tube = svr_path(X, y, epsilon=0.0, grid=GRID, tol=1e-10)
    for a, b, c in zip(lad.steps, half.steps, tube.steps, strict=True):
        assert b.primal == pytest.approx(a.primal, rel=1e-9) and c.primal == pytest.approx(a.primal, rel=1e-9)


def test_class_weights():
    y = np.array([1.0, 1.0, 1.0, 2.0])
    np.testing.assert_allclose(row_weights(y, "balanced"), [2 / 3, 2 / 3, 2 / 3, 2.0])
    np.testing.assert_allclose(row_weights(y, {2: 5.0}, [1, 2, 3, 4]), [1, 2, 3, 20])
    assert row_weights(y) is None
    X, signs = two_classes(60, 4)
    by_class = svm_path(X, signs, grid=GRID, class_weight={1.0: 3.0}, tol=1e-9)
    by_sample = svm_path(X, signs, grid=GRID, sample_weight=np.where(signs > 0, 3.0, 1.0), tol=1e-9)
    assert by_class.coefficients.tobytes() == by_sample.coefficients.tobytes()


def test_bad_parameters_are_named():
    X, y = regression(10, 2)
    signs = np.where(y > 0, 1.0, -1.0)
    with pytest.raises(UsageError, match="`tau` must lie between 0 and 1, not 1.5"):
        quantile_path(X, y, tau=1.5)
    with pytest.raises(UsageError, match="`epsilon` must be a number of at least 0"):
        svr_path(X, y, epsilon=-0.1)
    with pytest.raises(UsageError, match="no sample has the label 7; the labels are -1, 1"):
        svm_path(X, signs, class_weight={7: 1.0})
    with pytest.raises(UsageError, match="no sample has the label z; the labels are -1, 1"):
        svm_path(X, signs, class_weight={"z": 1.0})
    with pytest.raises(UsageError, match="weight of label 1 must be from 0 to 1e.100, not -1.0"):
        svm_path(X, signs, class_weight={1: -1.0})
    with pytest.raises(UsageError, match="unknown class weight 'even'"):
        svm_path(X, signs, class_weight="even")
    with pytest.raises(UsageError, match="9 weights for 10 samples"):
        lad_path(X, y, sample_weight=np.ones(9))
    with pytest.raises(UsageError, match="weight 3 is -1.0"):
        lad_path(X, y, sample_weight=[1, 1, -1, 1, 1, 1, 1, 1, 1, 1])
    with pytest.raises(UsageError, match="weight 1 is nan"):
        lad_path(X, y, sample_weight=[np.nan] * 10)


def test_the_rest_of_two_labels_keeps_its_name():
    """Checkers accept the name, and ``rest``, which is what certificates of earlier runs say."""
    y = np.array([2.0, 5.0, 2.0])
    signs, labels = sign_targets(y, {"positive": 2.0})
    assert signs.tolist() == [1.0, -1.0, 1.0] and labels == {"+1": 2.0, "-1": 5.0}
    assert sign_targets(np.append(y, 7.0), {"positive": 2.0})[1] == {"+1": 2.0, "-1": "rest"}
    with pytest.raises(DataError, match="the test data has the label 7"):
        sign_targets(np.append(y, 7.0), {"positive": 2.0}, labels)
    fitting = DataFacts.mappings(SimpleNamespace(labels=y), 2.0, False)
    assert labels in fitting and {"+1": 2.0, "-1": "rest"} in fitting
    assert labels not in DataFacts.mappings(SimpleNamespace(labels=np.append(y, 7.0)), 2.0, False)
