"""Reduced data have the optimum of the whole data at every C of their range, for solvers that know nothing of it."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
from sklearn.svm import LinearSVC, LinearSVR

import screenpath
from screenpath import load_run, reduce_run, write_libsvm
from screenpath.data.files.read import read_data
from screenpath.errors import UsageError
from tests.width import WIDE, wide

MODELS = {"svm": {}, "lad": {}, "quantile": {"tau": 0.7}, "svr": {"epsilon": 0.5}}
INTERCEPTS = ({"intercept": "none"}, {"bias": 2.0}, {"intercept": "free"})


def problem(name: str, seed: int, n: int = 150, d: int = 4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 3.0, 0.3, 1.0] + [0.0, 1.0, 0.0, -1.0]
    y = X @ [1.0, 0.3, 0.0, 0.5] + rng.standard_t(3, size=n)
    y = np.where(y > np.quantile(y, 0.6), 1.0, -1.0) if name == "svm" else y
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.0], n)


def written(folder, name: str, seed: int, how: dict, weighted: bool):
    X, y, s = problem(name, seed)
    write_libsvm(folder / "data", X, y)
    np.savetxt(folder / "weights", s)
    options = {"grid": 8, "cmin": 0.01, "cmax": 3.0, "force": True, **MODELS[name], **how}
    if weighted:
        options["weights"] = str(folder / "weights")
    screenpath.run(name, str(folder / "data"), out=str(folder / "run"), **options)
    return folder / "run", X, y, s if weighted else np.ones(y.size)


def solved(name: str, X, y, s, C: float, how: dict):
    """Return weights and intercept of an interior-point solver."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    r = y - X @ w - b
    losses = {
        "svm": cp.pos(1.0 - cp.multiply(y, X @ w + b)), "lad": cp.abs(r),
        "quantile": cp.maximum(-0.3 * r, 0.7 * r), "svr": cp.pos(cp.abs(r) - 0.5),
    }  # fmt: skip
    penalty, limits = cp.sum_squares(w), []
    if "bias" in how:
        penalty += cp.square(b / how["bias"])
    elif how["intercept"] == "none":
        limits = [b == 0.0]
    asked = cp.Problem(cp.Minimize(0.5 * penalty + C * (s @ losses[name])), limits)
    asked.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return w.value, float(b.value), asked.value


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("how", INTERCEPTS, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_an_interior_point_solver_finds_the_same_optimum(tmp_path, name, how, scale):
    for seed in range(wide(1, 4)):
        run, X, y, s = written(tmp_path, name, seed, {**how, "scale": scale}, weighted=seed % 2 == 0)
        found = reduce_run(run, 0.1, 1.0)
        assert 0 < found.kept.size < 0.7 * y.size and found.y.size <= found.kept.size + 2, found
        rows = X
        if scale == "standard":
            rows = (X - np.average(X, axis=0, weights=s)) / np.sqrt(np.cov(X.T, aweights=s, ddof=0).diagonal())
        np.testing.assert_allclose(found.X[: found.kept.size], rows[found.kept], rtol=1e-9, atol=1e-12)
        assert found.weights.sum() <= s.sum() * (1 + 1e-12)
        for C in np.geomspace(0.1, 1.0, wide(3, 12)):
            w, b, value = solved(name, rows, y, s, C, how)
            small_w, small_b, small = solved(name, found.X, found.y, found.weights, C, how)
            assert small == pytest.approx(value, rel=1e-8)
            size = max(1.0, np.linalg.norm(w))
            assert np.linalg.norm(small_w - w) <= 1e-6 * size, C
            assert how.get("intercept") == "free" or abs(small_b - b) <= 1e-6 * size


@pytest.mark.parametrize("name", ["svm", "svr"])
def test_scikit_learn_finds_the_same_optimum(tmp_path, name):
    run, X, y, _ = written(tmp_path, name, 5, {"intercept": "none"}, weighted=False)
    found = reduce_run(load_run(run), 0.02, 0.2)
    how = {"fit_intercept": False, "tol": 1e-10, "max_iter": 10**7, "random_state": 0}
    made = {"svm": lambda C: LinearSVC(loss="hinge", C=C, **how), "svr": lambda C: LinearSVR(epsilon=0.5, C=C, **how)}
    for C in (0.02, 0.07, 0.2):
        small = made[name](C).fit(found.X, found.y, sample_weight=found.weights).coef_.ravel()
        whole = getattr(screenpath, f"{name}_path")(X, y, grid=[C], tol=1e-12, intercept="none", **MODELS[name])
        assert np.linalg.norm(small - whole.coef()) <= 1e-6 * np.linalg.norm(whole.coef())


def test_every_part_of_it_is_needed(tmp_path):
    """Neither a row between its ends nor a mean row can be left out: what compares optima would notice."""
    run, X, y, s = written(tmp_path, "svm", 1, {"intercept": "none"}, weighted=False)
    found, C = reduce_run(run, 0.1, 1.0), 0.3
    w, _, _ = solved("svm", X, y, s, C, {"intercept": "none"})
    at_kink = np.flatnonzero(np.abs(1.0 - found.y * (found.X @ w)) < 1e-6)
    for left_out in (at_kink[0], found.kept.size):
        parts = (np.delete(part, left_out, axis=0) for part in (found.X, found.y, found.weights))
        other, _, _ = solved("svm", *parts, C, {"intercept": "none"})
        assert np.linalg.norm(other - w) > 1e-4


@pytest.mark.parametrize("how", INTERCEPTS, ids=str)
def test_rows_that_are_left_out_never_matter(tmp_path, how):
    """At many C of the range the accurate optimum of the whole data has them strictly on one side."""
    claims = 0
    for name, seed in itertools.product(MODELS, range(wide(1, 4))):
        run, X, y, s = written(tmp_path, name, seed, how, weighted=False)
        found = reduce_run(run, 0.03, 2.0)
        out = np.setdiff1d(np.arange(y.size), found.kept)
        path = getattr(screenpath, f"{name}_path")
        accurate = path(X, y, grid=np.geomspace(0.03, 2.0, wide(20, 60)), tol=1e-10, **MODELS[name], **how)
        forms = np.array([accurate.decision_function(X[out], step=k) for k in range(len(accurate))])
        t = 1.0 - y[out] * forms if name == "svm" else y[out] - forms
        sides = np.sign(t) if name != "svr" else np.sign(t - 0.5) + np.sign(t + 0.5)
        assert (sides == sides[0]).all()
        claims += sides.size
    assert claims > (20_000 if WIDE else 2_000)


def test_the_command(call, tmp_path):
    run, X, y, s = written(tmp_path, "svm", 2, {"bias": 1.0}, weighted=True)
    small = tmp_path / "small"
    found = call("reduce", run, "-o", small, "--from", 0.1, "--to", 1)
    assert found.code == 0 and "same optimum for every C from 0.1 to 1" in found.err and found.out == ""
    assert "constant feature 1" in found.err and "-1 is -1, +1 is 1" in found.err
    data, reduced = read_data(small), reduce_run(run, 0.1, 1.0)
    np.testing.assert_array_equal(data.X.toarray(), reduced.X)
    np.testing.assert_array_equal(np.loadtxt(f"{small}.weights"), reduced.weights)
    again = call("svm", small, "--weights", f"{small}.weights", "--bias", 1, "--c", 0.5, "--tol", 1e-10, "-o", "r")
    whole = screenpath.svm_path(X, y, grid=[0.5], bias=1.0, tol=1e-10, sample_weight=s)
    assert again.code == 0
    np.testing.assert_allclose(load_run("r").coef(0), whole.coef(0), rtol=1e-6, atol=1e-8)
    assert call("reduce", run, "-o", small).code == 2
    for options, words in (
        (("--from", 1, "--to", 0.1), "is no range"), (("--from", -1), "is no range"), (("--to", "inf"), "is no range")
    ):  # fmt: skip
        failed = call("reduce", run, "-o", small, "--force", *options)
        assert failed.code == 2 and words in failed.err


@pytest.mark.parametrize("how", INTERCEPTS, ids=str)
def test_a_run_of_few_steps_has_small_data_too(tmp_path, how):
    run, _, y, _ = written(tmp_path, "svm", 4, {**how, "grid": 2, "scale": "standard"}, weighted=False)
    assert reduce_run(run, 0.01, 3.0).kept.size < 0.8 * y.size


def test_sparse_rows_and_other_models(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30)) * (rng.random((200, 30)) < 0.2)
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=200) > 0.0, 1.0, -1.0)
    write_libsvm(tmp_path / "data", X, y)
    for options in ({"intercept": "none"}, {"intercept": "free"}):
        more = {"grid": 5, "force": True, "storage": "sparse", **options}
        screenpath.run("svm", str(tmp_path / "data"), out=str(tmp_path / "run"), **more)
        found = reduce_run(tmp_path / "run", 0.05, 0.5)
        assert hasattr(found.X, "indptr") and found.kept.size < 150
        for C in (0.05, 0.2, 0.5):
            paths = [
                screenpath.svm_path(*data, grid=[C], tol=1e-11, sample_weight=s, **options)
                for data, s in (((X, y), None), ((found.X.toarray(), found.y), found.weights))
            ]
            np.testing.assert_allclose(paths[0].coef(), paths[1].coef(), atol=1e-6)
    screenpath.run("l1svm", str(tmp_path / "data"), out=str(tmp_path / "l1"), grid=3)
    with pytest.raises(UsageError, match="only data of linear paths are reduced"):
        reduce_run(tmp_path / "l1")
