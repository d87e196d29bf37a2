"""Proximal SDCA, a plug-in of the pages of papers: the same optimum whichever of its loops the weights call for."""

import numpy as np
import pytest

from screenpath.data.safe.plugins import plugin_of
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk.loop import PathOptions, walk
from tests.sparse_problems import ACC_SDCA, SDCA, problem


@pytest.mark.parametrize("name", [SDCA, ACC_SDCA])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("share", [1e-4, 0.5])
def test_sdca_agrees_with_newton_whether_all_weights_are_active_or_few(dense, share, name):
    _, _, base = problem(2, n=50, d=8, dense=dense)
    model = base.at(share * base.beta_max)
    grid = model.alpha_max() * np.array([0.5, 0.2, 0.1])
    walks = [walk(model, grid, parse_sparse_rule("sifs"), make_sparse_solver(s), PathOptions(tol=1e-9))
             for s in (name, "newton")]  # fmt: skip
    for (ours, _), (theirs, _) in zip(*walks, strict=True):
        assert ours.status == theirs.status == "certified"
        assert (ours.nnz_w == 8) == (share < 0.1)
        np.testing.assert_allclose(ours.coefficients.dense(), theirs.coefficients.dense(), atol=1e-4)


def test_acceleration_is_for_weak_penalties():
    """Where alpha alone makes the problem convex enough, the method is proximal SDCA; elsewhere epochs are fewer."""
    _, _, base = problem(3, n=60, d=20)
    model = base.at(1e-3 * base.beta_max)
    limit = model.views.row_sqnorms.max() / (model.gamma * model.n)
    epochs = {}
    for alpha in (2.0 * limit, 1e-4 * limit):
        for name in (SDCA, ACC_SDCA):
            how = parse_sparse_rule("none"), make_sparse_solver(name, warm=False), PathOptions(tol=1e-9)
            step, _ = next(iter(walk(model, [alpha], *how)))
            assert step.status == "certified"
            epochs[alpha, name] = step.epochs
    strong, weak = {a: [epochs[a, name] for name in (SDCA, ACC_SDCA)] for a, _ in epochs}.values()
    assert strong[0] == strong[1] and weak[1] < weak[0]


def test_every_grid_point_and_seed_has_its_own_random_order():
    random_state = plugin_of(SDCA).found().solve.__globals__["random_state"]
    states = {int(random_state(seed, rank)[0]) for seed in range(20) for rank in range(20)}
    assert len(states) == 400 and 0 not in states


@pytest.mark.parametrize("rule", ["sifs", "sifs+gap", "ifs"])
@pytest.mark.parametrize("name", [SDCA, ACC_SDCA])
def test_a_walk_that_is_continued_has_the_same_bytes(name, rule):
    """A solver that comes new to a grid point does what one does that has been at all those before it."""
    _, _, base = problem(2, n=80, d=160, density=0.9, dense=True)
    model, betas = SparseGrid(base), base.beta_max * np.array([0.3, 0.2])
    grid = [(a * base.at(b).alpha_max(), b) for b in betas.tolist() for a in np.geomspace(0.9, 0.02, 8).tolist()]
    how = parse_sparse_rule(rule), PathOptions(tol=1e-5)
    whole = []
    for step, certificate in walk(model, grid, how[0], make_sparse_solver(name), how[1]):
        state = {part: np.array(value) for part, value in model.state(certificate).items()}  # the walk forms more sums
        whole.append((step.primal, step.dual, step.passes, certificate.w.tobytes(), state))
    for first in range(1, len(grid)):
        reference = model.restore(whole[first - 1][-1])
        step, certificate = next(walk(model, grid, how[0], make_sparse_solver(name), how[1], reference, first))
        assert (step.primal, step.dual, step.passes, certificate.w.tobytes()) == whole[first][:4], first
