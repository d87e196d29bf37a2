"""svm --one-vs-rest behind a kernel: each label's model is that of another solver, and the largest value decides."""

import json

import numpy as np
import pytest

import screenpath
from screenpath.catalogue.losses import SVM
from screenpath.rows import gram
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.walk.one_vs_rest import OneVsRest
from tests.cli.conftest import out_of_time_at, read_csv
from tests.cli.test_one_vs_one import GRID, RBF

LABELS = "2", "5", "7"
KERNELS = {"rbf": RBF, "poly": ("--kernel", "poly", "--gamma", 0.5, "--degree", 2, "--coef0", 1)}


def table_of(found):
    """Return the labels and the decision values that a prediction has printed."""
    header, *lines = [line.split(",") for line in found.out.splitlines()]
    assert header == ["label", *(f"decision_{label}" for label in LABELS)]
    return [label for label, *_ in lines], np.array([line[1:] for line in lines], dtype=float)


@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("whole", [2048, 0])
def test_each_label_has_the_model_of_another_solver(call, three, tmp_path, monkeypatch, kernel, intercept, whole):
    """Whether the labels share a matrix, or the square of the rows in use."""
    svm = pytest.importorskip("sklearn.svm")
    monkeypatch.setattr(gram, "WHOLE", whole)
    words = ("svm", three, "--one-vs-rest", *GRID, *KERNELS[kernel], "--tol", 1e-9, "--intercept", intercept)
    assert call(*words, "--test", three, "-o", "run").code == 0
    labels, forms = table_of(call("predict", "run", three, "--step", 2, "--decision"))
    assert labels == [LABELS[k] for k in forms.argmax(axis=1)]
    data = screenpath.read_libsvm(tmp_path / three)
    X, C = data.X.toarray(), float(read_csv(tmp_path / "run" / "steps.csv")[2]["C"])
    how = {"rbf": {"gamma": 0.3}, "poly": {"gamma": 0.5, "degree": 2, "coef0": 1.0}}[kernel]
    for k, label in enumerate(LABELS):
        signs = np.where(data.y == float(label), 1.0, -1.0)
        if intercept == "free":
            other = svm.SVC(C=C, kernel=kernel, tol=1e-10, **how).fit(X, signs).decision_function(X)
        else:
            own = screenpath.kernel_svm_path(X, signs, grid=[C], kernel=kernel, intercept="none", tol=1e-9, **how)
            other = own.decision_function(X)
        np.testing.assert_allclose(forms[:, k], other, atol=2e-4)
    right = np.mean([float(label) == y for label, y in zip(labels, data.y, strict=True)])
    assert float(read_csv(tmp_path / "run" / "steps.csv")[2]["test_accuracy"]) == pytest.approx(right)


def test_folds_share_values_and_do_not_depend_on_processes(call, three, tmp_path):
    for name, jobs in (("one", 1), ("two", 2)):
        folds = ("--folds", 3, "--gammas", ".1,.5", "--jobs", jobs, "--predictions", f"{name}.csv", "-o", name)
        assert call("cv", "svm", three, "--one-vs-rest", *GRID, "--kernel", "rbf", *folds).code == 0
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()
    held_out = read_csv(tmp_path / "one.csv")
    assert {f"decision_{label}" for label in LABELS} < set(held_out[0])
    best = max(LABELS, key=lambda label: float(held_out[0][f"decision_{label}"]))
    assert held_out[0]["predicted"] == best
    assert call("predict", "one", three).code == 0


def test_a_run_that_was_cut_has_the_same_bytes(call, three, tmp_path, monkeypatch):
    words = ("svm", three, "--one-vs-rest", *GRID, *RBF)
    assert call(*words, "-o", "whole").code == 0
    with out_of_time_at(monkeypatch, 2):
        assert call(*words, "-o", "cut", "--time-limit", "1000").code == 3
    assert call(*words, "-o", "cut", "--resume", "--time-limit", "1000").code == 0
    whole, cut = ((tmp_path / name / "coefficients.csv").read_bytes() for name in ("whole", "cut"))
    assert whole == cut


def test_files_hold_the_models_of_all_labels_or_are_refused(call, three, tmp_path):
    assert call("svm", three, "--one-vs-rest", "--c", 1, *RBF, "-o", "run").code == 0
    for kind in ("onnx", "sklearn", "libsvm"):
        refused = call("export", "run", "--to", kind, "-o", "model")
        assert refused.code == 2 and "several labels behind one kernel" in refused.err and "--to json" in refused.err
    assert call("export", "run", "--to", "json", "-o", "model.json").code == 0
    model = json.loads((tmp_path / "model.json").read_text())
    _, forms = table_of(call("predict", "run", three, "--decision"))
    X, support = screenpath.read_libsvm(tmp_path / three).X.toarray(), np.zeros((len(model["support"]), 3))
    for row, one in zip(support, model["support"], strict=True):
        row[np.array(one["columns"]) - 1] = one["values"]
    K = np.exp(-0.3 * np.square(X[:, None] - support[None]).sum(axis=2))
    np.testing.assert_allclose(K @ np.array(model["coefficients"]) + model["intercept"], forms, atol=1e-9)
    refused = call("export", "run", "--to", "json", "-o", "small", "--compress", 0.1)
    assert refused.code == 2 and "a model for each label" in refused.err


def test_a_square_that_one_label_has_sharpened_is_not_read_as_the_one_before(monkeypatch):
    """There is memory for one square: without handing it on, the next label would read the bytes of another."""
    monkeypatch.setattr(gram, "WHOLE", 0)
    rng, few, every = np.random.default_rng(0), np.arange(50), np.arange(90)
    X, codes = rng.normal(size=(90, 3)), np.arange(90) % 3
    rows = gram.GramRows(X, KernelFunction("rbf", 0.3), codes)
    joint = OneVsRest(SVM.model, rows, codes, None, "free")
    K = np.exp(-0.3 * np.square(X[:, None] - X[None]).sum(axis=2))
    for k, some in ((1, few), (0, few), (1, every), (0, every[::-1]), (1, every)):
        part = joint.parts[k]
        joint.begin(part, 1e-6)
        part.rows.forget()
        for sharp in (False, True) if k == 0 else (False,):
            assert not sharp or part.rows.sharpen()
            square = part.rows.square
            found = square.part(square.slots(some))
            np.testing.assert_allclose(found, K[np.ix_(some, some)], rtol=1e-12 if sharp else 1e-5, atol=1e-6)
        joint.forget(part)
