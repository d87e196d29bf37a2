"""Data whose scales leave nothing to certify end where progress does, not by a clock or at the last epoch allowed."""

import numpy as np
import pytest

from screenpath.sklearn import SparseSVMClassifier, SVMClassifier
from screenpath.solve.base import Progress
from screenpath.walk.step import EXACT, STUCK
from tests.plain import kernel_svm_path, sparse_svm_path

ALLOWED = 3000  # epochs


def scales(seed):
    """Return a few rows of three classes whose features differ by up to 18 orders of magnitude."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 9)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-9, 9, size=d)
    return X, np.arange(n) % 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [pytest.param(10, marks=pytest.mark.wide_only), 13])
def test_a_kernel_solve_that_no_longer_gets_on_ends_and_says_why(seed):
    fitted = SVMClassifier(kernel="linear", max_epochs=ALLOWED).fit(*scales(seed))
    steps = [path.steps[-1] for path in fitted.path_]
    assert all(step.epochs < ALLOWED // 2 for step in steps)
    assert any(step.status == "rounding" and step.reason == STUCK for step in steps)
    assert all(step.status in ("certified", "rounding") for step in steps)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
def test_the_scale_of_features_is_no_advice_where_there_are_none(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) * [1.0, 1e5, 1e7]
    X, y = X @ X.T if kernel == "precomputed" else X, np.where(rng.random(20) > 0.5, 1.0, -1.0)
    path = kernel_svm_path(X, y, kernel=kernel, grid=[1e-3, 1e4], tol=1e-13, intercept="free")
    assert {step.reason for step in path.steps} == {EXACT if kernel == "precomputed" else STUCK}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [2, 3, 4, 5, 9, 13])
def test_a_sparse_solve_of_classes_that_no_longer_gets_on_ends_and_says_why(seed):
    step = SparseSVMClassifier(max_epochs=ALLOWED).fit(*scales(seed)).path_.steps[-1]
    assert step.epochs < ALLOWED // 2 and (step.status, step.reason) in (("certified", ""), ("rounding", STUCK))
    assert step.status == "rounding" or seed not in (5, 13)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [2, 5, 10, 13])
def test_the_advice_works(seed):
    X, y = scales(seed)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert SparseSVMClassifier(max_epochs=ALLOWED).fit(X, y).path_.steps[-1].status == "certified"
    assert all(
        p.steps[-1].status == "certified" for p in SVMClassifier(kernel="linear", max_epochs=ALLOWED).fit(X, y).path_
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_sparse_solves_of_tiny_rows_end_before_their_epochs_do(smoothing):
    path = sparse_svm_path(*scales(14), betas=[0.01], alphas=[1e-3], smoothing=smoothing, max_epochs=20_000)
    assert all(step.epochs < 5000 and step.status in ("certified", "rounding") for step in path.steps)


def test_a_solve_stalls_where_neither_gap_nor_objective_gets_on():
    progress = Progress(2)
    assert not any(progress.stalls(gap) for gap in (1.0, 0.9, 0.8, 0.4, 0.3, 0.3))
    assert progress.stalls(0.3) and not progress.stalls(0.1)
    assert not any(Progress(2).stalls(1.0, value, 0.1) for value in (5.0, 4.0, 3.0, 2.0))
