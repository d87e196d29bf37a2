"""What a result claims of a path that a time limit cut short: nothing about the points that are missing."""

import math
import time

import numpy as np
import pytest

from screenpath import EpsilonGrid, l1_svm_path
from screenpath.errors import UsageError
from screenpath.walk import compiled, loop
from screenpath.walk.step import LATE
from tests.conftest import two_classes
from tests.plain import kernel_svm_path, lad_path, quantile_path, sparse_svm_path, svm_path, svr_path

UNKNOWN = (  # at a point that was not reached
    "primal", "dual", "gap", "rel_gap", "gap_target", "n_R", "n_L", "n_E", "screened_R", "screened_L", "n_survivors",
    "rejection_ratio", "screening_rate", "n_features_screened", "nnz_w",
)  # fmt: skip
GRID = np.geomspace(1e-3, 10.0, 9)
PATHS = {
    "svm": (svm_path, {"grid": GRID, "bias": 1.0}), "far end": (svm_path, {"grid": GRID, "rule": "essnsv", "chunk": 3}),
    "cd": (svm_path, {"grid": GRID, "solver": "cd"}), "lad": (lad_path, {"grid": GRID}),
    "quantile": (quantile_path, {"grid": GRID, "tau": 0.3}), "svr": (svr_path, {"grid": GRID}),
    "kernel": (kernel_svm_path, {"grid": GRID, "gamma": 0.5}), "l1": (l1_svm_path, {"grid": 9}),
    "sparse": (sparse_svm_path, {"betas": 3, "alphas": 3}),
}  # fmt: skip


class Clock:
    """A clock that jumps behind every deadline when it has been asked a number of times."""

    def __init__(self, times):
        self.left = times

    def monotonic(self):
        self.left -= 1
        return time.monotonic() if self.left > 0 else math.inf

    perf_counter = staticmethod(time.perf_counter)


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("asked", [0, 4])
def test_missing_points_are_steps_and_not_certified(name, asked, monkeypatch):
    """The grid is kept; what was reached has the numbers of the whole path, and the rest its reason."""
    function, options = PATHS[name]
    X, y = two_classes(n=60, seed=3, noise=1.5)
    whole = function(X, y, **options)
    assert whole.certified and len(whole.steps) == 9
    monkeypatch.setattr(loop, "time", Clock(asked))
    monkeypatch.setattr(compiled, "POINTS", 2)
    found = function(X, y, **options, time_limit=1e6)
    assert not found.certified
    assert [step.step for step in found.steps] == list(range(9))
    assert [step.parameters for step in found.steps] == [step.parameters for step in whole.steps]
    reached = sum(step.status != "skipped" for step in found.steps)
    assert reached < 9 and (reached > 0) == (asked > 0)
    for step in found.steps[reached:]:
        assert (step.status, step.reason, step.seconds, step.epochs, step.passes) == ("skipped", LATE, 0.0, 0, 0.0)
        assert all(math.isnan(getattr(step, column)) for column in UNKNOWN)
    table = found.table()
    assert len(table) == 9 and table[-1]["status"] == "skipped" and set(table[-1]) <= set(whole.table()[0])
    rows = found.dual_coefficients if name == "kernel" else found.coefficients
    assert rows.shape == (whole.dual_coefficients if name == "kernel" else whole.coefficients).shape
    assert np.isnan(rows[reached:]).all() and np.isfinite(rows[:reached]).all()
    if found.preparation.has_intercept:
        assert np.isnan(found.intercepts[reached:]).all() and np.isfinite(found.intercepts[:reached]).all()


def test_no_time_at_all():
    X, y = two_classes()
    found = svm_path(X, y, grid=200, time_limit=1e-9)
    assert len(found.steps) == 200 and {step.status for step in found.steps} == {"skipped"}
    assert not found.certified and found.coefficients.shape == (200, X.shape[1])
    assert found.steps[-1].parameters == {"C": 10.0}
    with pytest.raises(UsageError, match=r"step 4 .* has no solution: the time limit"):
        found.solved(4)


def test_a_kernel_step_that_was_not_reached_decides_nothing():
    X, y = two_classes(n=30)
    found = kernel_svm_path(X, y, grid=GRID, time_limit=1e-9)
    for ask in (lambda: found.decision_function(X), lambda: found.support(0)):
        with pytest.raises(UsageError, match="has no solution"):
            ask()


@pytest.mark.parametrize("asked", [0, 9])
def test_an_eps_path_that_did_not_reach_its_end(asked, monkeypatch):
    X, y = two_classes(n=60, noise=1.5)
    grid = EpsilonGrid(0.01, 10.0, 1e-3)
    whole = svm_path(X, y, grid=grid)
    assert whole.certified and whole.steps[-1].parameters == {"C": 10.0}
    monkeypatch.setattr(loop, "time", Clock(asked))
    found = svm_path(X, y, grid=grid, time_limit=1e6)  # the grid knows the points of the path before
    assert not found.certified
    assert [step.status for step in found.steps[-1:]] == ["skipped"]
    assert len(found.steps) < len(whole.steps) and found.steps[-1].parameters["C"] < 10.0
    assert {step.status for step in found.steps[:-1]} <= {"certified"}


def test_an_eps_path_whose_last_solve_the_deadline_cut_short(monkeypatch):
    """It ends there, not certified; that the pair is too rough to go on from is not the user's error."""
    X, y = two_classes(n=60, noise=3.0)
    grid = EpsilonGrid(5.0, 10.0, 1e-7)
    options = {"rule": "none", "tol": 1e-8, "solver": "cd", "max_epochs": 1}
    with pytest.raises(UsageError, match="too large for an eps-path"):
        svm_path(X, y, grid=grid, **options)
    monkeypatch.setattr(loop, "time", Clock(2))
    found = svm_path(X, y, grid=grid, **options, time_limit=1e6)
    assert [step.status for step in found.steps] == ["budget"] and not found.certified
