"""Both views of columns on shards give what those of data in memory give, and of the columns asked for alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.data.files.prepare import prepare
from screenpath.data.safe.memory import MemoryLimit
from screenpath.errors import ResourceError
from screenpath.problem.grid import beta_grid, grid_pairs
from screenpath.problem.sparse_grid import SparseGrid, sparse_model
from screenpath.rows.column_shards import ColumnShards
from screenpath.rows.memory import prepared_rows
from screenpath.rows.views import ShardViews, Views, views_of
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk.loop import PathOptions, walk
from tests.rows.test_shards import make_folder, random_rows
from tests.rows.test_views import matrix

same = np.testing.assert_array_equal
D = 40


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders by columns of dense and sparse data, and what their text holds."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for density in (1.0, 0.1):
            X, y = random_rows(n=120, d=D, density=density)
            X = sp.lil_array(X)
            X[:, [3]] = np.linspace(1.0, 2.0, 120)[:, None]  # a full column
            path = tmp_path_factory.mktemp("folders") / "s"
            found[density] = make_folder(path, sp.csr_array(X), y, patch, by="columns")
    return found


def both(folder, data, scale="none", storage="auto", bias=0.0):
    """Return the views on disk and in memory."""
    X, preparation = prepare(data.X, scale, bias, storage)
    return views_of(ColumnShards(folder, scale, storage, bias=bias)), views_of(prepared_rows(X, preparation))


@pytest.mark.parametrize(
    ("density", "scale", "storage"),
    [(1.0, "none", "auto"), (1.0, "standard", "auto"), (0.1, "maxabs", "auto"), (0.1, "none", "dense")],
)
def test_operations_agree_with_memory(folders, density, scale, storage):
    folder, data = folders[density]
    assert folder.count > 3
    ours, theirs = both(folder, data, scale, storage)
    assert isinstance(ours, ShardViews) and isinstance(theirs, Views) and theirs.whole and not ours.whole
    assert (ours.n, ours.d, ours.size, ours.dense) == (theirs.n, theirs.d, theirs.size, theirs.dense)
    for name in ("row_sqnorms", "column_sqnorms", "row_ends", "column_ends"):
        same(getattr(ours, name), getattr(theirs, name))
    X = matrix(theirs.by_row, 120, D)
    mark = np.zeros((2, D))
    for classes, index in ((0, [3, 7]), (1, [5, 39]), (0, [0, 1, 2, 3])):
        mark[:] = 0.0
        mark[classes, index] = -0.5
        for view, whole in ((ours.columns(mark), X.T), (ours.rows(mark), X)):
            found = matrix(view, *whole.shape)
            held = np.unique(found.nonzero()[whole.shape[0] == 120])
            assert set(index) <= set(held) and held.size <= 8
            here = np.isin(np.arange(D), held)
            same(found, whole * (here[:, None] if whole.shape[0] == D else here))
        for i in (0, 77):
            values, places = ours.row(i, mark)
            line = np.zeros(D)
            line[places] = values
            same(line[index], X[i, index])
    for j in (0, 3, 22):
        for one, other in zip(ours.column(j), theirs.column(j), strict=True):
            same(one, other)


def test_a_constant_column_stands_behind_the_others(folders):
    for folder, data in folders.values():
        ours, theirs = both(folder, data, "maxabs", bias=0.7)
        assert ours.d == theirs.d == D + 1 and ours.size == theirs.size
        for name in ("row_sqnorms", "column_sqnorms", "row_ends", "column_ends"):
            same(getattr(ours, name), getattr(theirs, name))
        same(ours.column(D)[0], np.full(120, 0.7))
        mark = np.arange(D + 1) >= D - 1
        same(matrix(ours.rows(mark), 120, D + 1)[:, mark], matrix(theirs.by_row, 120, D + 1)[:, mark])
        assert sum(which.size for which, _ in ours.blocks()) == D + 1


def test_blocks_have_all_columns_or_those_that_are_marked(folders):
    for folder, data in folders.values():
        ours, theirs = both(folder, data)
        X, ((none, whole),) = matrix(theirs.by_row, 120, D), theirs.blocks()
        assert none is None and whole is theirs.by_column
        mark = np.arange(D) % 7 == 3
        for chosen, asked in ((np.arange(D), None), (np.flatnonzero(mark), mark)):
            blocks = list(ours.blocks(asked))
            same(np.concatenate([which for which, _ in blocks]), chosen)
            assert len(blocks) > 3
            for which, view in blocks:
                same(matrix(view, which.size, 120), X.T[which])
        ours.columns(mark)
        ((none, held),) = ours.blocks(mark)  # what is in memory is not read again
        assert none is None
        same(matrix(held, D, 120), X.T * mark[:, None])


def test_the_memory_limit_is_asked(folders):
    ours, _ = both(*folders[1.0])
    limit = MemoryLimit(1 << 20)
    with limit.in_force(), pytest.raises(ResourceError, match="20 columns of 40 needs"):
        ours.columns(np.arange(D) < 20)


class Poisoned(Views):
    """Views in memory of which kernels get nan in all columns but those that are asked for, and 0 in rows."""

    whole = False

    def __init__(self, X):
        super().__init__(X)
        self.asked = []  # shares of the columns

    def columns(self, mark=None):
        return self._spoilt(self.by_column, np.repeat(np.arange(self.d), np.diff(self.column_ends)), mark, np.nan)

    def rows(self, mark=None):
        data, indices, _ = self.by_row
        return self._spoilt(self.by_row, indices if indices.size else np.arange(data.size) % self.d, mark, 0.0)

    def _spoilt(self, view, of, mark, value):
        (data, indices, ends), wanted = view, (mark.reshape(-1, self.d) != 0).any(axis=0)
        self.asked.append(wanted.mean())
        return np.where(wanted[of], data, value), indices, ends


@pytest.mark.compiled_only
@pytest.mark.covering(2)
@pytest.mark.parametrize("rule", ["sifs", "sifs+gap", "ifs", "gap"])
@pytest.mark.parametrize(("classes", "intercept"), [(1, "none"), (1, "free"), (3, "none")])
def test_what_is_not_asked_for_is_not_read(rule, classes, intercept):
    """A path whose kernels would find nan in every other column is the path itself, and asks for few columns."""
    rng = np.random.default_rng(0)
    for dense, size in ((False, 1.0), (True, 1.0), (True, 1e3)):
        n, d = 50, 80
        X = size * rng.normal(size=(n, d)) * (rng.random(size=(n, d)) < (1.0 if dense else 0.3))
        scores = X[:, :3] @ rng.normal(size=(3, max(classes, 2))) + 0.5 * rng.normal(size=(n, max(classes, 2)))
        codes = scores.argmax(axis=1) if classes > 1 else np.where(scores[:, 0] > scores[:, 1], 1, -1)
        given, weights = X if dense else sp.csr_array(X), rng.uniform(0.5, 2.0, size=n) if dense else None
        found = []
        for kind in (Views, Poisoned):
            views = kind(given)
            base = sparse_model(views, codes.astype(np.int64), classes, 0.5, weights, intercept)
            pairs = grid_pairs(base, beta_grid(2, base.beta_max, 0.5), 12, 0.2)
            how = parse_sparse_rule(rule), make_sparse_solver("auto", 0), PathOptions(tol=1e-9)
            found.append(list(walk(SparseGrid(base), pairs, *how)))
        for (step, one), (other, two) in zip(*found, strict=True):
            assert (step.status, step.gap, step.passes, step.n_survivors) == (
                other.status, other.gap, other.passes, other.n_survivors,
            )  # fmt: skip
            for name in ("w", "theta", "u", "u_slack"):
                same(getattr(one, name), getattr(two, name))
        assert min(views.asked) < 0.5 or rule == "gap"
