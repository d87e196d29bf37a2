"""``--nonnegative`` with every command, in Python and of estimators."""

import json

import numpy as np
import pytest

import screenpath
from screenpath.errors import DataError
from screenpath.verify.file import NAME, read_certificate
from tests.cli.conftest import clouds, libsvm_text, read_csv
from tests.cli.test_huber import targets

GRID = ("--betas", 2, "--alphas", 4, "--scale", "standard", "--quiet")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with data files, and a run of each model with an intercept of each kind."""
    folder = tmp_path_factory.mktemp("signs")
    (folder / "huber").write_text(libsvm_text(*targets()))
    X, y = clouds(60, 4, seed=5)
    (folder / "sparse-svm").write_text(libsvm_text(X * [1.0, -1.0, 1.0, -1.0], y))
    for model, kind in ((model, kind) for model in ("huber", "sparse-svm") for kind in ("none", "free", "penalised")):
        screenpath.run(
            model, folder / model, intercept=kind, betas=2, alphas=4, scale="standard", audit=True, certificate=True,
            nonnegative=True, out=folder / f"{model}-{kind}",
        )  # fmt: skip
    return folder


@pytest.mark.parametrize("kind", ["none", "free", "penalised"])
@pytest.mark.parametrize("model", ["huber", "sparse-svm"])
def test_no_feature_has_a_weight_below_0(runs, call, model, kind):
    folder = runs / f"{model}-{kind}"
    table, found = read_csv(folder / "steps.csv"), read_csv(folder / "coefficients.csv")
    assert all(row["status"] == "certified" and row["unsafe"] == "0" for row in table)
    assert min(float(one["value"]) for one in found if one["feature"] != "0") >= 0.0 and int(table[-1]["nnz_w"]) > 0
    if kind == "penalised":  # which is a feature, and may have any sign
        assert (min(float(one["value"]) for one in found if one["feature"] == "0") < 0.0) == (model == "sparse-svm")
    assert json.loads((folder / "run.json").read_text())["objective"].endswith("; w_j >= 0")
    for command in (("verify",), ("report", "-o", "page.html"), ("show", "--step", 7)):
        done = call(command[0], folder, *command[1:])
        assert done.code == 0, done.err
    assert call("predict", folder, runs / model, "-o", "-", "--step", 7).code == 0


def test_a_certificate_of_other_signs_is_rejected(runs):
    header, steps = read_certificate(runs / "huber-none" / NAME)
    with pytest.raises(DataError, match="another sign than the certificate asks for"):
        screenpath.verify.check({**header, "signs": -header["signs"]}, steps, runs / "huber")
    with pytest.raises(DataError, match="a value that none has"):
        screenpath.verify.check({**header, "signs": 0.5 * header["signs"]}, steps, runs / "huber")
    del header["signs"]  # without signs the same weights are not optimal
    assert screenpath.verify.check(header, steps, runs / "huber").faults


def test_python_folds_comparisons_and_resume(runs, call):
    X, y = targets()
    path = screenpath.huber_path(X, y, betas=2, alphas=4, scale="standard", intercept="free", nonnegative=True)
    np.testing.assert_array_equal(path.coefficients, screenpath.load_run(runs / "huber-free").coefficients)
    own = ("huber", runs / "huber", "--intercept", "free", "--nonnegative", *GRID)
    assert call("cv", *own, "--folds", 3, "-o", "cv").code == 0
    assert min(float(one["value"]) for one in read_csv("cv/coefficients.csv") if one["feature"] != "0") >= 0.0
    rules = ("--rules", "none,iss,ifs,sifs,sifs+gap", "--repeats", 1, "--format", "csv", "-o", "t.csv")
    assert call("compare-rules", *own, *rules).code == 0
    assert [row["certified"] for row in read_csv("t.csv")] == ["8"] * 5
    assert call(*own, "--jobs", 2, "-o", "run").code == 0
    done = call(*(word for word in own if word != "--nonnegative"), "--resume", "-o", "run")
    assert done.code != 0 and "nonnegative" in done.err
