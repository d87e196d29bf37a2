"""lad, quantile and svr with --kernel: run folders, proofs, predictions, folds, rows left out, estimators."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import screenpath
from screenpath.sklearn import LADRegressor, QuantileRegressor, SVMRegressor, SVMRegressorCV
from tests.cli.conftest import libsvm_text, read_csv

MODELS = {"lad": (), "quantile": ("--tau", "0.3"), "svr": ("--epsilon", "0.2")}
KERNEL = ("--kernel", "rbf", "--gamma", "0.4", "--quiet")


def problem(n=60):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_t(3, n) + 2.0


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text(libsvm_text(*problem()))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("intercept", ["free", "none"])
def test_a_run_is_proven_and_predicts_as_its_coefficients_say(call, model, intercept):
    X, y = problem()
    words = (*MODELS[model], *KERNEL, "--intercept", intercept, "--grid", 4, "--tol", "1e-5", "--certificate")
    assert call(model, "data", *words, "--test", "data", "-o", "run").code == 0
    done = call("verify", "run")
    assert done.code == 0 and "4 of 4 steps proven" in done.out, done.out
    beta = np.zeros(y.size + 1)
    for row in read_csv("run/coefficients.csv"):
        if row["step"] == "2":
            beta[int(row["sample"])] = float(row["value"])
    assert (beta[0] != 0.0) == (intercept == "free")
    values = rbf_kernel(X, gamma=0.4) @ beta[1:] + beta[0]
    predicted = [float(line) for line in call("predict", "run", "data", "--step", 2).out.split()[1:]]
    np.testing.assert_allclose(predicted, values, rtol=1e-9, atol=1e-9)
    assert float(read_csv("run/steps.csv")[2]["test_mae"]) == pytest.approx(np.abs(values - y).mean(), rel=1e-4)
    text = Path("run/coefficients.csv").read_text()
    line = next(line for line in text.splitlines() if line.startswith("2,"))
    Path("run/coefficients.csv").write_text(text.replace(line, line[:-1] + str((int(line[-1]) + 1) % 10)))
    assert call("verify", "run").code != 0


@pytest.mark.parametrize("model", MODELS)
def test_rows_left_out_are_as_when_fitted_again(call, model):
    X, y = problem(30)
    Path("few").write_text(libsvm_text(X, y))
    assert call(model, "few", *MODELS[model], *KERNEL, "--c", 1, "--tol", "1e-9", "-o", "run").code == 0
    assert call("loo", "run", "-o", "left.csv").code == 0
    path = getattr(screenpath, f"kernel_{model}_path")
    own = {"quantile": {"tau": 0.3}, "svr": {"epsilon": 0.2}}.get(model, {})
    for i, row in enumerate(read_csv("left.csv")):
        rest = np.arange(30) != i
        again = path(X[rest], y[rest], gamma=0.4, grid=[1.0], tol=1e-9, **own)
        found = float(again.predict(X[i : i + 1])[0])
        assert float(row["low"]) - 1e-4 <= found <= float(row["high"]) + 1e-4
        assert float(row["predicted"]) == pytest.approx(found, abs=2e-4)


def test_folds_choose_gamma_and_c(call):
    words = ("--kernel", "rbf", "--gammas", "0.01,0.3,30", "--grid", 5, "--cmax", "50", "--tol", "1e-4", "--folds", 4)
    assert call("cv", "svr", "data", *words, "--epsilon", "0.1", "--quiet", "-o", "run").code == 0
    found = json.loads(Path("run/cv.json").read_text())
    assert found["tuned"]["gamma"] == 0.3 and any(one["dropped"] for one in found["tuned"]["gammas"])
    table = read_csv("run/gammas.csv")
    whole = [row for row in table if row["n_folds"] == "4"]
    assert min(float(row["mean"]) for row in whole) == pytest.approx(found["best"]["mean"])
    assert all(float(row["mean"]) >= found["best"]["mean"] for row in whole)


def test_estimators_are_the_paths():
    X, y = problem()
    for kind, path, own in (
        (LADRegressor, screenpath.kernel_lad_path, {}),
        (QuantileRegressor, screenpath.kernel_quantile_path, {"tau": 0.8}),
        (SVMRegressor, screenpath.kernel_svr_path, {"epsilon": 0.3}),
    ):
        model = kind(C=2.0, kernel="rbf", gamma=0.4, **own).fit(X, y)
        found = path(X, y, gamma=0.4, grid=[2.0], **own)
        np.testing.assert_allclose(model.predict(X), found.predict(X), rtol=1e-12)
        assert isinstance(model.intercept_, float) and model.dual_coef_.shape == (1, model.support_.size)
        np.testing.assert_array_equal(model.dual_coef_[0], found.dual_coefficients[0][model.support_])
    chosen = SVMRegressorCV(grid=[0.01, 1.0, 10.0], kernel="rbf", gamma=0.4, cv=3).fit(X, y)
    assert chosen.C_ > 0.01 and chosen.score(X, y) > 0.5


def test_a_smoothed_loss_is_solved_again(call):
    words = ("lad", "data", *KERNEL, "--smoothing", 0.5, "--grid", 3)
    assert call(*words, "-o", "run").code == call("cv", *words, "--folds", 3, "-o", "cv").code == 0
    done = call("show", "run", "--duals", "duals.csv")
    assert done.code == 0 and "0 of 60 sides certified" in done.err, done.err
    values, weights = ({row["row" if "row" in row else "sample"]: float(row["value"]) for row in rows} for rows in (
        read_csv("duals.csv"), [row for row in read_csv("run/coefficients.csv") if row["step"] == "2"]
    ))  # fmt: skip
    assert all(abs(value - weights.get(row, 0.0)) < 1e-3 for row, value in values.items())
    done = call("predict", "cv", "data", "--interval", 0.9, "-o", "found.csv")
    assert done.code == 0 and "CV+ by the models of 3 folds" in done.err, done.err


def test_what_is_refused(call):
    done = call("svr", "data", "--kernel", "rbf", "--epsilon", 0, "-o", "r")
    assert done.code == 2 and "use the model lad" in done.err
    assert "needs a kernel" in call("lad", "data", "--gamma", 1, "-o", "r").err
    assert "has no degree" in call("svr", "data", "--kernel", "rbf", "--degree", 2, "-o", "r").err
    assert "--certify" not in call("cv", "svr", "--help").out


@pytest.mark.parametrize("kernel", [(), KERNEL])
def test_a_tube_that_holds_all_rows_is_proven_and_left_out(call, kernel):
    words = ("svr", "data", "--epsilon", 100, *kernel, "--grid", 3, "--quiet")
    assert call(*words, "--certificate", "-o", "run").code == 0
    done = call("verify", "run")
    assert done.code == 0 and "3 of 3 steps proven" in done.out, done.out + done.err
    if not kernel:
        assert call("cv", *words, "--folds", "loo", "-o", "folds").code == 0
        assert {row["status"] for row in read_csv("folds/folds.csv")} == {"certified"}
