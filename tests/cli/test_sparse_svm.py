"""The sparse-svm command: its files for two and for more classes, options, resume, exit codes."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import load_npz

from screenpath import read_libsvm, sparse_svm_path
from tests.cli.conftest import libsvm_text, read_csv

SHORT = ("--betas", 3, "--alphas", 4, "--quiet")


@pytest.fixture
def three(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 6)) + 2.0 * np.eye(6)[y]
    path = tmp_path / "three.libsvm"
    path.write_text(libsvm_text(X, np.array([1.0, 2.0, 5.0])[y]))
    return path


def test_several_classes(call, three):
    assert call("sparse-svm", three, *SHORT, "--test", three, "-o", "csv").code == 0
    assert call("sparse-svm", three, *SHORT, "-o", "npz", "--coefficients", "npz").code == 0
    data = read_libsvm(three)
    path = sparse_svm_path(data.X, data.y, betas=3, alphas=4)
    found, labels = np.zeros((12, 3, 7)), [1.0, 2.0, 5.0]
    for row in read_csv("csv/coefficients.csv"):
        found[int(row["step"]), labels.index(float(row["class"])), int(row["feature"])] = float(row["value"])
    np.testing.assert_array_equal(found[:, :, 1:], path.coefficients)
    stacked = load_npz("npz/coefficients.npz").toarray()
    np.testing.assert_array_equal(stacked.reshape(12, 3, 7), found)
    assert json.loads(Path("csv/run.json").read_text())["labels"] == {"classes": labels}
    last = read_csv("csv/steps.csv")[-1]
    predicted = np.array(labels)[(data.X @ path.coefficients[-1].T).argmax(axis=1)]
    assert float(last["test_accuracy"]) == pytest.approx(np.mean(predicted == data.y))


def test_one_label_against_the_rest_is_the_binary_model(call, three):
    assert call("sparse-svm", three, *SHORT, "--positive", 5, "-o", "r").code == 0
    assert json.loads(Path("r/run.json").read_text())["labels"] == {"+1": 5.0, "-1": "rest"}
    assert set(read_csv("r/coefficients.csv")[0]) == {"step", "feature", "value"}


def test_test_data_with_an_unknown_label(call, three, data):
    other = three.parent / "other.libsvm"
    other.write_text("3 1:1.0\n")
    result = call("sparse-svm", three, *SHORT, "--test", other)
    assert result.code == 1
    assert "label 3" in result.err


def test_single_pair_through_references(call, data):
    pair = ("--beta", "0.05", "--alpha", "0.1", "--references", 5)
    assert call("sparse-svm", data, *pair, "--quiet", "-o", "r").code == 0
    rows = read_csv("r/steps.csv")
    assert len(rows) == 6
    assert float(rows[-1]["alpha"]) == 0.1 and float(rows[-1]["beta"]) == 0.05
