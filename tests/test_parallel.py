"""Rows of a grid as they are walked by a worker of a cluster, in this process."""

import pickle

import numpy as np
import pytest

from screenpath import parallel
from screenpath.api_sparse import grid_pairs
from screenpath.grid import beta_grid
from screenpath.models.sparse import SparseModel
from screenpath.models.sparse_grid import SparseGrid
from screenpath.path import PathOptions, walk
from screenpath.prepare import prepare
from screenpath.rows.views import Views
from screenpath.rules.sparse import parse_sparse_rule
from screenpath.solvers.sparse import make_sparse_solver
from tests.conftest import two_classes


@pytest.fixture
def grid():
    """Return a model and two rows of its grid; the closed form is the solution all along the first."""
    X, signs = two_classes(n=60, d=5, seed=2)
    model = SparseModel(Views(prepare(X, "none", 0.0, "dense", np.float64)[0]), signs.astype(np.int64), 1, 0.0, 0.5)
    return SparseGrid(model), grid_pairs(model, beta_grid(2, model.beta_max, 0.1), 4, 0.01)


@pytest.mark.parametrize("done", [0, 1, 3, 4, 6])
def test_rows_that_were_sent(grid, done):
    """Continued behind any step, closed form or not, the rows of a worker are those of one process."""
    model, pairs = grid
    how = parse_sparse_rule("sifs+gap"), make_sparse_solver("auto", 0), PathOptions(tol=1e-8)
    whole = list(walk(model, pairs, *how))
    assert [step.solver for step, _ in whole][:4] == ["closed-form"] * 4
    state = model.state(whole[done - 1][1]) if done else None
    found = []
    for first in (0, 4):
        row = range(max(first, done), first + 4)
        if row:
            task = [pairs[rank] for rank in row], row[0], state if row[0] == done else None
            sent = pickle.loads(pickle.dumps(((parallel._arrays(model.base), how), task)))
            for array in sent[0][0].values():
                array.flags.writeable = False  # as it comes over the wire
            found += parallel._walk_sent_row(*sent, float("inf"))
    assert len(found) == len(pairs) - done
    for (step, kept), (expected, certificate) in zip(found, whole[done:], strict=True):
        for name in ("step", "parameters", "status", "primal", "dual", "solver", "epochs", "passes", "rejection_ratio"):
            assert getattr(step, name) == getattr(expected, name), name
        np.testing.assert_array_equal(step.coefficients.dense(), expected.coefficients.dense())
        np.testing.assert_array_equal(kept.theta, certificate.theta)
