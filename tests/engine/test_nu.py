"""The step with a wanted nu is nu-SVC: nu is the mean of the dual variables, and scikit-learn's NuSVC decides alike."""

import numpy as np
import pytest

import screenpath
from screenpath.errors import UsageError
from screenpath.store.coefficients import nu_of

KINDS = {"none": {"intercept": "none"}, "free": {}, "penalised": {"bias": 2.0}, "rbf": {"kernel": "rbf", "gamma": 0.5}}


def problem():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 4)) * [1.0, 3.0, 0.2, 1.0] + 5.0
    return X, np.sign(X[:, 0] - 5.0 + 0.7 * rng.normal(size=80))


def stored(folder, kind, **more):
    options = {"grid": 25, "tol": 1e-10, "scale": "standard", **KINDS[kind], **more}
    walk = screenpath.kernel_svm_path if kind == "rbf" else screenpath.svm_path
    walk(*problem(), **options).save(folder)
    return screenpath.load_run(folder, problem())


@pytest.mark.parametrize("kind", KINDS)
def test_nu_is_the_mean_of_the_dual_variables(tmp_path, kind):
    path = stored(tmp_path / "run", kind)
    for place in (0, 12, 24):
        step = path.run.steps[place]
        alpha = np.abs(path.duals(place).values)
        assert nu_of(path.run, step) == pytest.approx(alpha.sum() / (80 * step["C"]), rel=1e-6)


@pytest.mark.parametrize("kind", ["free", "rbf"])
def test_nu_svc_decides_alike(tmp_path, kind):
    svm = pytest.importorskip("sklearn.svm")
    path = stored(tmp_path / "run", kind)
    X, y = problem()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for place in (16, 22):
        nu = nu_of(path.run, path.run.steps[place])
        assert path.position(f"nu={nu:.9g}") == place
        given = {"kernel": "linear"} if kind == "free" else {"kernel": "rbf", "gamma": 0.5}
        theirs = svm.NuSVC(nu=nu, tol=1e-9, **given).fit(Z, y).decision_function(Z)
        ours = path.decision_function(X, place)
        np.testing.assert_allclose(ours / np.abs(ours).max(), theirs / np.abs(theirs).max(), atol=1e-4)


def test_the_nearest_step_in_proportion_is_taken(tmp_path):
    path = stored(tmp_path / "run", "free")
    nus = np.array([nu_of(path.run, step) for step in path.run.steps])
    assert (np.diff(nus) <= 1e-9).all()
    for wanted in np.geomspace(nus[-1] * 1.001, nus[0] * 0.999, 9):
        at = path.position(f"nu={wanted:.12g}")
        assert abs(np.log(nus[at] / wanted)) == pytest.approx(np.abs(np.log(nus / wanted)).min())


def test_what_has_no_nu_says_so(tmp_path):
    path = stored(tmp_path / "run", "free")
    for nu, hint in (("0.99", "a smaller `cmin` has larger ones"), ("1e-9", "a larger `cmax` has smaller ones")):
        with pytest.raises(UsageError, match="no step with nu near") as found:
            path.position(f"nu={nu}")
        assert hint in str(found.value.hint)
    weighted = stored(tmp_path / "weighted", "free", sample_weight=np.full(80, 2.0))
    with pytest.raises(UsageError, match="without weights"):
        weighted.position("nu=0.3")
    X, y = problem()
    screenpath.lad_path(X, X[:, 1], grid=3).save(tmp_path / "lad")
    with pytest.raises(UsageError, match="nu belongs to runs of svm"):
        screenpath.load_run(tmp_path / "lad").position("nu=0.3")
