"""``--nonnegative`` and ``--signs`` with every command, and in Python."""

import json
from pathlib import Path

import numpy as np
import pytest

import screenpath
from screenpath.errors import DataError, UsageError
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


def test_a_file_of_signs(runs, call):
    X, y = targets()
    signs = [-1, 0, 1, 1, -1]
    (runs / "signs.txt").write_text("".join(f"{sign}\n" for sign in signs))
    own = ("huber", runs / "huber", "--intercept", "free", "--signs", runs / "signs.txt", *GRID)
    assert call(*own, "--certificate", "--audit", "-o", "run").code == 0
    assert json.loads(Path("run/run.json").read_text())["objective"].endswith("; signs_j w_j >= 0")
    found = screenpath.load_run("run").coefficients
    assert np.all(found * signs >= 0.0) and np.count_nonzero(found[-1]) > 1 and found[-1, 1] < 0.0
    path = screenpath.huber_path(X, y, betas=2, alphas=4, scale="standard", intercept="free", signs=signs)
    np.testing.assert_array_equal(path.coefficients, found)
    path.save("saved")
    assert np.array_equal(screenpath.load_run("saved").coefficients, found)
    flipped = screenpath.huber_path(X * [-1, 1, 1, 1, -1], y, betas=2, alphas=4, scale="standard", intercept="free",
                                    signs=[1, 0, 1, 1, 1])  # fmt: skip
    np.testing.assert_allclose(flipped.coefficients * [-1, 1, 1, 1, -1], found, atol=1e-4)
    assert call("verify", "run").code == 0 and call("cv", *own, "--folds", 3, "-o", "cv").code == 0
    assert np.all(screenpath.load_run("run").duals(7).values != 0.0)
    rules = ("--rules", "none,sifs", "--repeats", 1, "--format", "csv", "-o", "t.csv")
    assert call("compare-rules", *own, *rules).code == 0
    assert [row["certified"] for row in read_csv("t.csv")] == ["8", "8"]
    assert call("convert", runs / "huber", "shards", "--by", "columns").code == 0
    assert call("huber", "shards", *own[2:], "-o", "disk").code == 0
    np.testing.assert_allclose(screenpath.load_run("disk").coefficients, found, atol=1e-4)
    (runs / "signs.txt").write_text("1\n0\n1\n1\n-1\n")
    done = call("verify", "run")
    assert done.code == 1 and "signs are not those of the options" in done.out + done.err
    with pytest.raises(DataError, match="signs of the weights are not those of the run"):
        screenpath.load_run("run").duals(7)
    done = call(*own, "--certificate", "--audit", "--resume", "-o", "run")
    assert done.code != 0 and "signs" in done.err


@pytest.mark.parametrize(
    ("signs", "what"),
    [([1, 0, 2, 0, 0], "sign 3 is 2"), ([1, 0], "2 signs for 5 features"), (["a"] * 5, "signs are not all numbers")],
)
def test_signs_that_are_none(signs, what):
    with pytest.raises(UsageError, match=what):
        screenpath.huber_path(*targets(), signs=signs)


def test_signs_and_one_sign_contradict_each_other():
    with pytest.raises(UsageError, match="`nonnegative` too"):
        screenpath.huber_path(*targets(), signs=[1] * 5, nonnegative=True)
