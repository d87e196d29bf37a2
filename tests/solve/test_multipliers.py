"""Wide sparse rows with a free intercept: box problems around a multiplier lead where Newton's method does."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.errors import UsageError
from screenpath.kernels.solve.multiplier import next_multiplier
from screenpath.solve import make_free_solver, multipliers
from screenpath.solve.auto import Auto
from screenpath.solve.base import Budget
from tests import plain

GRID = np.geomspace(0.05, 5.0, 6)


def text(seed, n=60, d=700):
    """Sparse rows far from the origin in one column, and labels or targets that lie off it."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, d)) * (rng.random((n, d)) < 0.03)
    X[:, 0] = 3.0 + rng.random(n)
    t = X[:, 1:40].sum(axis=1) - 1.0 + 0.3 * rng.normal(size=n)
    return sp.csr_array(X), t


PATHS = {
    "svm": lambda X, t, **more: plain.svm_path(X, np.where(t > 0.0, 1.0, -1.0), grid=GRID, **more),
    "weighted": lambda X, t, **more: plain.svm_path(
        X, np.where(t > 0.0, 1.0, -1.0), grid=GRID, sample_weight=1.0 + np.arange(t.size) % 3, **more
    ),
    "lad": lambda X, t, **more: plain.lad_path(X, t, grid=GRID, **more),
    "svr": lambda X, t, **more: plain.svr_path(X, t, grid=GRID, epsilon=0.1, **more),
}


@pytest.mark.parametrize("name", PATHS)
def test_both_ways_lead_to_the_same_value(name):
    X, t = text(3)
    mine, newton = (PATHS[name](X, t, intercept="free", tol=1e-8, solver=solver) for solver in ("auto", "newton"))
    assert mine.certified and newton.certified
    assert [s.primal for s in mine.steps] == pytest.approx([s.primal for s in newton.steps], rel=2e-8)
    assert any(s.solver == "cd+cg" for s in mine.steps) and {s.solver for s in newton.steps} <= {"newton", "constant"}
    unscreened = PATHS[name](X, t, intercept="free", tol=1e-8, rule="none")
    assert unscreened.certified
    assert [s.primal for s in unscreened.steps] == pytest.approx([s.primal for s in mine.steps], rel=2e-8)


def test_the_order_of_sweeps_is_that_of_the_seed():
    X, t = text(4)
    found = [PATHS["svm"](X, t, intercept="free", seed=seed).coefficients for seed in (0, 0, 1)]
    assert found[0].tobytes() == found[1].tobytes() != found[2].tobytes()


def problems(X, t, **more):
    """Return the problems of a path, as their solver gets them, and the path."""
    kept, solve = [], Auto.solve

    def keep(self, reduced, **how):
        kept.append(reduced)
        return solve(self, reduced, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Auto, "solve", keep)
        return kept, PATHS["svm"](X, t, intercept="free", rule="none", **more)


def reduced_problem(seed):
    return problems(*text(seed))[0][1]


def test_intercept_begins_on_the_line_through_the_last_two(monkeypatch):
    monkeypatch.setattr("tests.solve.test_multipliers.GRID", np.geomspace(0.5, 0.6, 20))
    kept, path = problems(*text(3, n=800), tol=1e-9)
    begun, found = np.array([one.free.intercept for one in kept]), path.intercepts[: len(kept)]
    assert len(kept) > 15 and np.ptp(found) > 1e-3
    assert np.sum(np.abs(begun - found)[2:]) < 0.5 * np.sum(np.abs(np.diff(found))[1:])


def test_a_path_copies_its_rows_once(monkeypatch):
    copied, longer = [], multipliers.longer
    monkeypatch.setattr(multipliers, "longer", lambda *how: copied.append(how[1].size) or longer(*how))
    kept, _ = problems(*text(3, n=400))
    assert len(kept) > 1 and copied == [400]


def test_what_is_missing_is_shared_by_the_free_ones():
    reduced = reduced_problem(5)
    stored, where, signs = reduced.stored()
    dense = signs[:, None] * sp.csr_array(stored, shape=(stored[2].size - 1, reduced.start_w.size)).toarray()[where]
    share = np.where(np.arange(reduced.size) % 5 == 0, 0.0, 0.5 + 0.1 * np.sin(np.arange(reduced.size)))
    before = reduced.lo + share * (reduced.hi - reduced.lo)
    reduced.start_alpha, reduced.start_sum = before, dense.T @ before
    run, free = multipliers.Augmented(reduced, multipliers.Multipliers()), (reduced.lo < before) & (before < reduced.hi)
    assert abs(signs @ before) > 1e-3 and free.any() and not free.all()
    moved = run.alpha - before
    assert not moved[~free].any() and np.all((run.reduced.lo <= run.alpha) & (run.alpha <= run.reduced.hi))
    assert signs @ run.alpha == pytest.approx(reduced.free.rest, abs=1e-12 * np.abs(run.alpha).sum())
    np.testing.assert_allclose(run.v[:-1], dense.T @ run.alpha, atol=1e-9)
    reduced.start_alpha, reduced.start_sum = reduced.lo, dense.T @ reduced.lo  # nobody can give anything
    assert np.array_equal(multipliers.Augmented(reduced, multipliers.Multipliers()).alpha, reduced.lo)


def test_newton_goes_on_where_multipliers_do_not_arrive(monkeypatch):
    monkeypatch.setattr(multipliers, "MOST", 1)
    monkeypatch.setattr(multipliers, "LOOSE", 1e6)
    X, t = text(6)
    path = PATHS["svm"](X, t, intercept="free")
    assert path.certified and any(s.solver == "cd+cg+newton" for s in path.steps)


@pytest.mark.parametrize("budget", [Budget(2, np.inf), Budget(1000, 0.0)])
def test_an_end_of_the_budget_is_noticed(budget):
    solution = make_free_solver("auto").solve(reduced_problem(7), tol=1e-12, budget=budget, dynamic=True)
    assert not solution.converged and np.all(np.isfinite(solution.w))


def test_a_multiplier_goes_where_the_line_through_two_ends():
    assert next_multiplier(1.0, 0.5, np.nan, 0.0, 1.2) == 1.2  # a single one
    assert next_multiplier(2.0, 0.25, 1.0, 0.5, 9.0) == pytest.approx(3.0)
    for now, before in (((2.0, 0.5), (1.0, 0.5)), ((1.0, 0.4), (1.0, 0.5)), ((2.0, 0.2), (1.0, 0.1))):
        assert next_multiplier(*now, *before, 2.1) == 2.1


def test_other_solvers_are_refused():
    with pytest.raises(UsageError, match="no solver 'cd'"):
        make_free_solver("cd")


def test_a_sum_that_hardly_changes_leads_no_multiplier_astray():
    """The line through two amounts that are nearly the same has its zero far away."""
    x = [0, 0, 0, 0, 0, 0.949, 0, -0.838, -0.838, 0, -0.891, 0, 0, 1.174, 1.161, 0]
    y = [394, 771, 1034, 789, 2632, 411, 1167, -441, 1023, 253, -1149, 1036, 473, -863, 1115, 796]
    for C in (26.0, 29.0, 32.0):
        path = plain.quantile_path(np.array(x)[:, None], 1e-3 * np.array(y), tau=0.2, grid=[C], intercept="free")
        assert path.certified, C


@pytest.mark.parametrize("seed", range(4))
def test_most_rows_may_be_next_to_their_mean(seed):
    """Of the distances from it, the median is then rounding."""
    rng, X = np.random.default_rng(seed), np.zeros((20, 2))
    X[:4] = rng.normal(size=(4, 2))
    X[4:8] = 1e-9 - X[:4]
    path = plain.lad_path(X, X @ [1.0, 2.0] + rng.normal(size=20), grid=[30.0], intercept="free")
    assert path.certified
