"""Walks that copy the rows near their kinks for some steps: the others stay on their sides, and are not read."""

import io

import numpy as np
import pytest

from screenpath.catalogue.losses import SVM
from screenpath.kernels.walk import deadlines as kernels
from screenpath.numbers import rounding
from screenpath.problem import unread
from screenpath.problem.grid import log_grid
from screenpath.rows.memory import MemoryRows
from screenpath.rows.shards import ShardRows
from screenpath.screen import parse_rule
from screenpath.walk import sample, staged
from screenpath.walk.loop import restore_walk, walk_state
from tests.rows.test_shards import make_folder
from tests.walk.test_unread import GRID, NAMES, full_certificate, models, records, spoilt, walked


class Far(MemoryRows):
    """Rows that compiled code cannot read in place."""

    stored = compiled = None
    staged, taken = True, 0

    def take(self, index, signs):
        self.taken += index.size
        return super().take(index, signs)


def far_models(monkeypatch, n=3000):
    with monkeypatch.context() as patched:
        patched.setattr("tests.walk.test_unread.MemoryRows", Far)
        return models(n)


def meets(model, one) -> bool:
    return rounding.meets(full_certificate(model, one), 1e-7 * (1.0 + 1e-9))


def later(model, one) -> int:
    """Return how many deadlines are later than the rows allow."""
    left = one.unread.deadlines - one.unread.state[kernels.ODOMETER]
    forms = model.margins(one.point.vector) + model.signs * (one.intercept or 0.0)
    most = np.abs(model.c - forms) / unread.measured(model)[0] * (1.0 + 1e-9)
    right = one.theta == np.where(model.c > forms, model.hi, model.lo)
    return np.count_nonzero((left > np.where(right, most, 0.0)) & (left != np.inf))


@pytest.mark.parametrize("name", NAMES)
def test_certificates_are_true_of_all_rows(name, monkeypatch):
    model, memory = far_models(monkeypatch)[name], models()[name]
    path, other = walked(model), walked(memory)
    assert sum(one.unread is not None for _, one in path) >= len(GRID) - 3
    for (step, one), (like, _) in zip(path, other, strict=True):
        assert step.status == "certified" and meets(model, one)
        assert (step.n_R, step.n_L) == (one.n_R, one.n_L)
        assert one.n_L == np.count_nonzero((one.theta == model.hi) & (model.lo < model.hi))
        assert abs(step.primal - like.primal) <= 1e-7 * step.primal
        if one.unread is not None:
            assert later(model, one) == 0
    assert model.rows.taken < 6.0 * model.size  # units and sizes are of all rows


def test_sizes_without_a_metric(monkeypatch):
    monkeypatch.setattr(unread, "DENSE", 0)
    model = far_models(monkeypatch)["free sparse svm"]
    assert all(meets(model, one) and later(model, one) == 0 for _, one in walked(model)[1:])


@pytest.mark.parametrize("name", ["svm", "free svm"])
def test_numbers_are_those_of_rows_in_memory(name, monkeypatch):
    monkeypatch.setattr(sample, "REACH", sample.STAGE)
    for (step, _), (like, _) in zip(walked(far_models(monkeypatch)[name]), walked(models()[name]), strict=True):
        np.testing.assert_allclose(step.coefficients, like.coefficients, rtol=0, atol=1e-12)
        assert (step.epochs, step.rounds, step.n_E) == (like.epochs, like.rounds, like.n_E)


@pytest.mark.parametrize("name", ["svm", "free svm"])
def test_counts_are_decisions_of_the_rule(name, monkeypatch):
    fine = log_grid(1e-2, 10.0, 60)
    path = walked(far_models(monkeypatch)[name], grid=fine, tol=1e-10)
    for (step, _), (other, _) in zip(path, walked(models()[name], "dvi+gap", grid=fine, tol=1e-10), strict=True):
        assert step.screened_R <= other.screened_R and step.screened_L <= other.screened_L
        assert step.n_survivors == models()[name].size - step.screened_R - step.screened_L
    assert sum(step.screened_R for step, _ in path) > 0


def test_attack_finds_sizes_that_are_too_small(monkeypatch):
    model = far_models(monkeypatch)["svm"]
    sizes, *more = unread.measured(model)
    model.measure = 0.5 * sizes, *more
    path = walked(model)
    model.measure = sizes, *more
    assert sum(later(model, one) for _, one in path if one.unread is not None) > 0


@pytest.mark.parametrize("heeded", [True, False])
def test_limit_of_a_stage_is_heeded(heeded, monkeypatch):
    """Stages that are far too short: a step that passes its limit is taken again; if it is not, certificates fail."""
    monkeypatch.setattr(staged, "SPAN", 0.02)
    monkeypatch.setattr(staged, "SOON", 0.0)
    monkeypatch.setattr(staged, "STAGES", 12)
    if not heeded:
        copied = staged.StagedWalk._copied

        def limitless(self, lazy, points):
            some = copied(self, lazy, points)
            some.state[kernels.LIMIT] = np.inf
            return some

        monkeypatch.setattr(staged.StagedWalk, "_copied", limitless)
    model = far_models(monkeypatch)["svm"]
    assert all(meets(model, one) for _, one in walked(model)) == heeded


@pytest.mark.parametrize("name", ["weighted", "free weighted"])
def test_interruption_changes_nothing(name, monkeypatch):
    whole = walked(far_models(monkeypatch)[name])
    for first in (2, 11):
        file = io.BytesIO()
        np.savez(file, **walk_state(far_models(monkeypatch)[name], parse_rule("auto"), whole[first - 1][1]))
        file.seek(0)
        state, fresh = dict(np.load(file)), far_models(monkeypatch)[name]
        reference = restore_walk(fresh, parse_rule("auto"), state, GRID[first - 1])
        assert reference.unread is not None
        assert records(walked(fresh, reference=reference, first=first)) == records(whole[first:])


@pytest.mark.parametrize(
    "spoil",
    [
        spoilt("unread_deadlines", lambda a: a.__iadd__(1e-9)),
        spoilt("unread_points", lambda a: a.__setitem__((0, 0), 0.5)),
        spoilt("unread_state", lambda a: a.__setitem__(kernels.VERSIONS, 2.0)),
        spoilt("unread_state", lambda a: a.__setitem__(kernels.ODOMETER, 0.0)),
        spoilt("unread_state", lambda a: a.__setitem__(kernels.LIMIT, np.nan)),
        spoilt("unread_numbers", lambda a: a.__imul__(1.001)),
    ],
)
def test_state_that_is_not_true_is_refused(spoil, monkeypatch):
    model = far_models(monkeypatch)["free svm"]
    state = walk_state(model, parse_rule("auto"), walked(model, grid=GRID[:4])[-1][1])
    spoil(state)
    with pytest.raises(ValueError, match="unread_"):
        restore_walk(model, parse_rule("auto"), state, GRID[3])


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_shards_without_a_near_row_are_not_opened(tmp_path, monkeypatch, intercept, storage):
    """Rows in the order of their distance from a rough plane: the walk opens few shards at a step."""
    rng = np.random.default_rng(2)
    X, plane = rng.normal(size=(3000, 4)), rng.normal(size=4)
    X[rng.random(X.shape) < 0.2] = 0.0
    X = X[np.argsort(np.abs(X @ plane))]
    y = np.where(X @ plane + 0.3 * rng.normal(size=3000) > 0, 1.0, -1.0)
    folder, _ = make_folder(tmp_path / "s", X, y, monkeypatch, storage=storage)
    rows, opened, shard = ShardRows(folder, "maxabs", storage=storage), [], folder.shard
    model = SVM.model(rows, y, None, intercept)
    monkeypatch.setattr(folder, "shard", lambda k: opened.append(k) or shard(k))
    reads, steps = [], 0
    for step, one in walked(model):
        assert step.status == "certified"
        steps += one.unread is not None
        reads.append(len(opened))
    assert folder.count > 20 and steps > 20 and rows.sparse == (storage == "sparse")
    assert reads[-1] - reads[2] < 0.1 * folder.count * (steps - 3)
    assert all(meets(model, one) for _, one in walked(model))


def test_fewer_rows_than_columns_have_work_space_for_a_move():
    """A stage may copy two rows of five columns: what a move of ``w`` is measured in has an entry for each column."""
    lazy = kernels.nothing(2, 16, 5)
    assert lazy.values.size == 5 and lazy.margins.size == 2


def test_the_closed_form_of_a_path_is_formed_once(monkeypatch):
    """The record of a run and the path's start both need it: two data passes, not four."""
    model = far_models(monkeypatch)["svm"]
    sums, formed = [], model.weighted_sum
    monkeypatch.setattr(model, "weighted_sum", lambda theta: sums.append(1) or formed(theta))
    assert model.closed_until > 0.0 and model.start(1e-2).C > 0.0 and len(sums) == 1
    assert model.start(1e-2).C > 0.0 and len(sums) <= 2
