"""``sparse-svm --alpha 0``: the L1 penalty alone, its certificate, and the ways to a run."""

import numpy as np
import pytest

import screenpath
from tests.cli.conftest import libsvm_text, read_csv, without_times
from tests.sparse_problems import SDCA

GRID = ("--betas", 2, "--alpha", "0.1,0", "--quiet")
HOW = (
    ("--smoothing", 0),
    ("--smoothing", 0, "--intercept", "free"),
    ("--smoothing", 0.3, "--bias", 1, "--scale", "standard"),
    ("--loss", "squared-hinge", "--intercept", "free"),
)


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(4)
    y = np.arange(70) % 2
    X = rng.normal(size=(70, 8)) + 0.8 * np.eye(8)[y]
    path = tmp_path / "two.libsvm"
    path.write_text(libsvm_text(X, y + 1.0))
    return path


@pytest.mark.parametrize("how", HOW, ids=str)
def test_a_run_its_certificate_and_what_goes_on_from_it(call, data, how):
    own = ("sparse-svm", data, *GRID, *how)
    assert call(*own, "--certificate", "-o", "whole").code == 0
    found = call("verify", "whole")
    assert found.code == 0 and "4 of 4 steps proven" in found.out
    steps = read_csv("whole/steps.csv")
    assert [row["alpha"] for row in steps] == ["0.1", "0.0"] * 2
    assert {row["status"] for row in steps} == {"certified"}
    assert call(*own, "--time-limit", "1e-9", "-o", "part").code in (1, 3)
    assert call(*own, "-o", "part", "--resume").code == 0
    assert without_times("part/steps.csv") == without_times("whole/steps.csv")
    assert call("predict", "whole", data, "--step", 3, "-o", "labels.csv").code == 0


def test_python_and_an_estimator_have_the_same_point(call, data):
    from screenpath.sklearn import SparseSVMClassifier

    assert call("sparse-svm", data, "--beta", "0.05", "--alpha", "0", "--quiet", "--test", data, "-o", "run").code == 0
    loaded = screenpath.read_libsvm(data)
    path = screenpath.sparse_svm_path(loaded.X, loaded.y, betas=[0.05], alphas=[0])
    model = SparseSVMClassifier(alpha=0, beta=0.05).fit(loaded.X, loaded.y)
    [row] = read_csv("run/steps.csv")
    assert float(row["primal"]) == path.steps[0].primal == model.path_.steps[0].primal
    assert float(row["test_accuracy"]) == pytest.approx(model.score(loaded.X, loaded.y))
    with pytest.raises(ValueError, match="`alpha` must be 0 or a positive number"):
        SparseSVMClassifier(alpha=-0.1).fit(loaded.X, loaded.y)


def test_cross_validation_rules_pictures_and_audit(call, data):
    own = (data, *GRID, "--smoothing", 0)
    assert call("cv", "sparse-svm", *own, "--folds", 3, "-o", "cv").code == 0
    found = call("compare-rules", "sparse-svm", *own, "--rules", "none,iss,sifs+gap", "--repeats", 1)
    assert found.code == 0 and found.out.count("| warm | 4 | 4 |") == 3
    assert call("sparse-svm", *own, "--audit", "-o", "audited").code == 0
    assert {row["unsafe"] for row in read_csv("audited/steps.csv")} == {"0"}
    for kind in ("grid", "coefficients"):
        assert call("plot", "audited", "--kind", kind, "--terminal").code == 0


def test_what_is_not_possible_is_refused_by_name(call, data):
    for more, said in (
        (("--alpha", "0", "--intercept", "none", "--solver", SDCA), "values of --alpha above 0"),
        (("--alpha", "0,-1"), "every parameter of the list must be positive and finite, or 0"),
        (("--alpha", "0,0"), "the parameter 0 appears twice"),
        (("--alpha", "0", "--alpha-min-ratio", "0.1"), "--alpha gives the values themselves"),
    ):
        found = call("sparse-svm", data, *more, "-o", "refused")
        assert found.code == 2 and said in found.err, found.err
