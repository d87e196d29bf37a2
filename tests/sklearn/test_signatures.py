"""The parameters of every estimator, as callers know them: names, defaults, and which may be given by position."""

import inspect
import pickle

import pytest
from sklearn.base import clone

from screenpath import sklearn as estimators

DATA = 'one_hot=None, missing="error"'
KERNEL = 'kernel=None, gamma="1/d", degree=3, coef0=0.0, smoothing=None'
BOX = (
    f'{DATA}, intercept=None, bias=0.0, scale="none", rule="auto", solver="auto", tol=1e-6, max_epochs=100_000, '
    "threads=1, seed=0"
)
L1 = (
    f'{DATA}, nonnegative=False, class_weight=None, scale="none", rule="vi+gap", solver="auto", tol=1e-6, '
    "max_epochs=100_000, threads=1"
)
SPARSE = (
    f'{DATA}, loss="hinge", smoothing=0.5, nonnegative=False, class_weight=None, intercept=None, bias=0.0, '
    'scale="none", rule="sifs+gap", first="features", solver="auto", tol=1e-6, max_epochs=100_000, seed=0'
)
HUBER = (
    f'{DATA}, smoothing=1.0, nonnegative=False, intercept=None, bias=0.0, scale="none", rule="sifs+gap", '
    'first="features", solver="auto", tol=1e-6, max_epochs=100_000, seed=0'
)
SEARCH = 'cv=None, scoring=None, step="best", n_jobs=None'
TURN = "until_turn=False, turn_points=100"
NET = HUBER.replace("smoothing=1.0", "smoothing=0.0")
CERTIFY = "certify=False, certify_to=None, certify_points=1000, calibration=None"
OVO = 'multi_class="ovr", decision_function_shape="ovr"'
C_GRID = "grid=100, cmin=1e-2, cmax=10.0"
PAIRS = "betas=10, alphas=100, beta_min_ratio=0.05, alpha_min_ratio=0.01"
SIGNATURES = {
    "SVMClassifier": f"C=1.0, *, {KERNEL}, class_weight=None, {BOX}, {OVO}",
    "SVMClassifierCV": f"{C_GRID}, *, {SEARCH}, {TURN}, {CERTIFY}, {KERNEL}, class_weight=None, {BOX}, {OVO}",
    "L1SVMClassifier": f"C=1.0, *, {L1}",
    "L1SVMClassifierCV": f"grid=20, log=False, lambda_min_ratio=0.05, *, {SEARCH}, {TURN}, {L1}",
    "SparseSVMClassifier": f"alpha=0.01, beta=0.01, *, {SPARSE}",
    "SparseSVMClassifierCV": f"{PAIRS}, *, {SEARCH}, {SPARSE}", "LADRegressor": f"C=1.0, *, {KERNEL}, {BOX}",
    "LADRegressorCV": f"{C_GRID}, *, {SEARCH}, {TURN}, {KERNEL}, {BOX}",
    "QuantileRegressor": f"C=1.0, *, tau=0.5, {KERNEL}, {BOX}",
    "QuantileRegressorCV": f"{C_GRID}, *, {SEARCH}, {TURN}, tau=0.5, {KERNEL}, {BOX}",
    "HuberRegressor": f"alpha=0.01, beta=0.01, *, {HUBER}", "HuberRegressorCV": f"{PAIRS}, *, {SEARCH}, {HUBER}",
    "SparseLADRegressor": f"alpha=0.01, beta=0.01, *, {NET}", "SparseLADRegressorCV": f"{PAIRS}, *, {SEARCH}, {NET}",
    "SparseQuantileRegressor": f"alpha=0.01, beta=0.01, *, tau=0.5, {NET}",
    "SparseQuantileRegressorCV": f"{PAIRS}, *, {SEARCH}, tau=0.5, {NET}",
    "SparseSVMRegressor": f"alpha=0.01, beta=0.01, *, epsilon=0.1, {NET}",
    "SparseSVMRegressorCV": f"{PAIRS}, *, {SEARCH}, epsilon=0.1, {NET}",
    "SVMRegressor": f"C=1.0, *, epsilon=0.1, {KERNEL}, {BOX}",
    "SVMRegressorCV": f"{C_GRID}, *, {SEARCH}, {TURN}, epsilon=0.1, {KERNEL}, {BOX}",
}  # fmt: skip


def parameters(of) -> tuple[list, dict]:
    """Return what may be given by position, in order, and what by name alone, in any order."""
    found = inspect.signature(of).parameters.values()
    places = [(one.name, one.default) for one in found if one.kind is one.POSITIONAL_OR_KEYWORD]
    names = {one.name: one.default for one in found if one.kind is one.KEYWORD_ONLY}
    assert len(places) + len(names) == len(found)
    return places, names


def test_every_estimator_is_here():
    assert set(SIGNATURES) == set(estimators.__all__) - {"fitted"}


@pytest.mark.parametrize("name", SIGNATURES)
def test_names_defaults_and_places_stay(name):
    wanted = parameters(eval(f"lambda {SIGNATURES[name]}: None"))
    assert parameters(getattr(estimators, name)) == wanted


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters_are_kept_by_clones_and_pickles(name):
    kind = getattr(estimators, name)
    places, names = parameters(kind)
    given = {parameter: object() for parameter in dict(places) | names}
    model = kind(*(given[parameter] for parameter, _ in places), **{parameter: given[parameter] for parameter in names})
    assert model.get_params() == given and vars(model) == given
    assert clone(kind(tol=0.5)).tol == pickle.loads(pickle.dumps(kind(tol=0.5))).tol == 0.5
    assert model != kind() and hash(model) == hash(model)


@pytest.mark.parametrize("name", SIGNATURES)
def test_every_parameter_is_documented(name):
    kind = getattr(estimators, name)
    text = inspect.getdoc(kind).partition("Parameters\n----------\n")[2].partition("\nAttributes\n")[0]
    lines = [line.partition(" : ")[0] for line in text.splitlines() if not line.startswith(" ")]
    places, names = parameters(kind)
    assert sorted(name for line in lines for name in line.split(", ")) == sorted(dict(places) | names)
