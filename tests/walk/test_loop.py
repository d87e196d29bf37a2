"""The loop: every point certified on the full data, screening changes nothing, runs can be continued."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.catalogue.losses import SVM
from screenpath.errors import DataError, UsageError
from screenpath.problem.grid import explicit_grid, log_grid
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve import make_solver
from screenpath.walk.loop import PathOptions, walk
from tests.conftest import two_classes
from tests.plain import svm_path

GRID = log_grid(1e-3, 10.0, 15)


@pytest.mark.parametrize(
    "rule", ["none", "gap", "dvi", "dvi+gap", "bt1", "bt2", "it", "ssnsv", "essnsv", "it+gap", "essnsv+gap"]
)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("solver", ["cd", "auto"])
def test_every_rule_gives_the_same_certified_path(rule, storage, solver):
    X, y = two_classes()
    path = svm_path(X, y, grid=GRID, rule=rule, storage=storage, solver=solver, tol=1e-8)
    plain = svm_path(X, y, grid=GRID, rule="none", storage="dense", solver="cd", tol=1e-8)
    assert path.certified and len(path.steps) == len(GRID)
    for a, b in zip(path.steps, plain.steps, strict=True):
        # Two certified values enclose the same optimum.
        assert a.dual <= b.primal * (1 + 1e-14) and b.dual <= a.primal * (1 + 1e-14)
    if rule != "none" and rule != "gap":
        assert path.steps[5].n_survivors < X.shape[0]
    if "ssnsv" in rule:  # the far end is paid by the first step
        assert path.steps[0].init_s > 0.0 and path.steps[1].init_s == 0.0


def test_gap_is_recomputed_from_the_coefficients():
    X, y = two_classes(seed=2)
    path = svm_path(X, y, grid=GRID, tol=1e-7, scale="maxabs", bias=1.0)
    peak = np.abs(X).max(axis=0)
    for C, step, w, b in zip(GRID, path.steps, path.coefficients, path.intercepts, strict=True):
        scaled = w * peak
        loss = np.maximum(0.0, 1.0 - y * (X @ w + b)).sum()
        primal = 0.5 * (scaled @ scaled + b * b) + C * loss
        assert step.primal == pytest.approx(primal, rel=1e-10)
        assert step.gap <= 1e-7 * primal


@pytest.mark.parametrize("solver", ["cd", "auto"])
def test_continued_walk_gives_the_same_bytes(solver):
    X, y = two_classes(seed=3)
    rows = MemoryRows(X)
    model = SVM.model(rows, y)
    options = PathOptions(tol=1e-7)
    full = list(walk(model, GRID, parse_rule("dvi+gap"), make_solver(solver), options))
    rest = list(walk(model, GRID, parse_rule("dvi+gap"), make_solver(solver), options, reference=full[6][1], first=7))
    for (a, _), (b, _) in zip(full[7:], rest, strict=True):
        assert a.coefficients.tobytes() == b.coefficients.tobytes()
        assert (a.step, a.primal, a.dual, a.epochs, a.passes) == (b.step, b.primal, b.dual, b.epochs, b.passes)


def test_seed_decides_the_bytes():
    X, y = two_classes(seed=4)
    first = svm_path(X, y, grid=GRID, solver="cd", seed=1)
    again = svm_path(X, y, grid=GRID, solver="cd", seed=1)
    other = svm_path(X, y, grid=GRID, solver="cd", seed=2)
    assert first.coefficients.tobytes() == again.coefficients.tobytes()
    assert first.coefficients.tobytes() != other.coefficients.tobytes()


def test_budget_that_runs_out_is_said_and_not_certified():
    X, y = two_classes(seed=5, noise=3.0)
    path = svm_path(X, y, grid=[10.0], solver="cd", max_epochs=1, tol=1e-9)
    assert [step.status for step in path.steps] == ["budget"]
    assert path.steps[0].gap > path.steps[0].gap_target
    assert not path.certified


def test_points_below_the_closed_form_need_no_solver():
    X, y = two_classes()
    step = svm_path(X, y, grid=[1e-9]).steps[0]
    assert (step.solver, step.epochs, step.status, step.n_L) == ("closed-form", 0, "certified", X.shape[0])


def test_degenerate_data():
    X, y = two_classes(n=20)
    X[3] = 0.0  # a row without features
    X[5] = X[7] = X[9]  # duplicate rows
    X = np.hstack([X, np.zeros((20, 1))])  # a feature that is never set
    for storage in ("dense", "sparse"):
        assert svm_path(X, y, grid=GRID, storage=storage).certified


def test_float32_storage_certifies_its_own_data():
    X, y = two_classes()
    assert svm_path(X, y, grid=GRID, dtype=np.float32).certified
    assert svm_path(sp.csr_array(X), y, grid=GRID, dtype=np.float32, storage="sparse").certified


def test_bad_input_is_named():
    X, y = two_classes(n=10)
    with pytest.raises(DataError, match="10 rows but 9 labels"):
        svm_path(X, y[:9])
    with pytest.raises(DataError, match="nan or infinite"):
        svm_path(X * np.nan, y)
    with pytest.raises(DataError, match="two dimensions"):
        svm_path(X[0], y)
    with pytest.raises(DataError, match="no rows"):
        svm_path(X[:0], y[:0])
    with pytest.raises(UsageError, match="unknown rule 'fast'"):
        svm_path(X, y, rule="fast")
    with pytest.raises(UsageError, match="unknown solver"):
        svm_path(X, y, solver="simplex")
    with pytest.raises(UsageError, match="`tol` must lie between 0 and 1"):
        svm_path(X, y, tol=0.0)
    with pytest.raises(UsageError, match="standard"):
        svm_path(sp.csr_array(X), y, scale="standard", storage="sparse")


def test_grids():
    grid = log_grid(1e-2, 10.0, 100)
    assert grid.size == 100 and grid[0] == 1e-2 and grid[-1] == 10.0
    np.testing.assert_allclose(np.diff(np.log(grid)), np.log(1000) / 99, rtol=1e-9)
    np.testing.assert_array_equal(explicit_grid([3, 1, 2]), [1.0, 2.0, 3.0])
    for bad in ((0.0, 1.0, 3), (2.0, 1.0, 3), (1.0, 1.0, 3), (1.0, np.inf, 3), (1.0, 2.0, 0)):
        with pytest.raises(UsageError):
            log_grid(*bad)
    wrong = ([], "empty"), ([1.0, 1.0], "1 appears twice"), ([2.0, -1.0], "; -1 is not"), ([np.nan], "; nan is not")
    for bad, said in wrong:
        with pytest.raises(UsageError, match=said) as found:
            explicit_grid(bad)
        assert found.value.hint
