"""Steps on the face hand on what they know of rows: a path that is resumed anywhere has the numbers of the path."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from numba import config

from screenpath.catalogue.losses import SVM, SVR
from screenpath.kernels.solve import descent
from screenpath.kernels.solve import face as kernels
from screenpath.kernels.solve.pool import STEPS
from screenpath.kernels.walk import face_walk
from screenpath.problem.box import BoxModel
from screenpath.problem.grid import log_grid
from screenpath.problem.reduced import PROX, ROWS, Faces
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve import make_free_solver, make_solver
from screenpath.solve.face import begun
from screenpath.walk import loop
from screenpath.walk.loop import PathOptions, restore_walk, walk, walk_state

GRID = log_grid(0.02, 20.0, 24)
OPTIONS = PathOptions(tol=1e-6)


def texts(n=160, d=900, seed=0):
    """Return rows of which some columns are in many, and labels."""
    rng = np.random.default_rng(seed)
    G = (rng.random((n, d)) < np.minimum(0.6, 6.0 / (1.0 + np.arange(d)))) * rng.random((n, d))
    G[np.arange(n), rng.integers(0, d, n)] = 0.5
    G[1::9] = G[0 : G[1::9].shape[0] * 9 : 9]  # some stand twice
    return sp.csr_array(G / np.linalg.norm(G, axis=1)[:, None]), np.where(rng.random(n) < 0.5, -1.0, 1.0)


def model_of(kind="svm"):
    X, y = texts()
    if kind == "svr":
        return SVR.model(MemoryRows(X), y + X[:, [0]].toarray().ravel())
    return SVM.model(MemoryRows(X), y, intercept="free" if kind == "free" else "none")


def rule_of(model):
    return parse_rule("dvi+gap")


def solver_of(model):
    return (make_solver if model.free is None else make_free_solver)("auto")


def walked(model, reference=None, first=0):
    return list(walk(model, GRID, rule_of(model), solver_of(model), OPTIONS, reference, first))


def numbers(found):
    step, _ = found
    row = {name: value for name, value in step.record().items() if not name.endswith("_s")}
    return repr(row), step.coefficients.tobytes()


def stored(state: dict) -> dict:
    """Return a state as a file gives it back."""
    file = io.BytesIO()
    np.savez(file, **state)
    file.seek(0)
    with np.load(file) as arrays:
        return {name: arrays[name] for name in arrays.files}


@pytest.mark.parametrize("off", [0.0, 1e6, np.inf])
def test_what_is_foreseen_saves_passes_and_decides_nothing(monkeypatch, off):
    """Each point is certified, with fewer looks at the gap; also where what is foreseen is beside all truth."""
    monkeypatch.setattr(loop, "can_compile", lambda *_: False)
    model, reduce, paths, seen = model_of(), BoxModel.reduce, [], []

    def reduced(self, *known):
        made = reduce(self, *known)
        if made.foreseen is not None:
            wrong = off * np.cos(np.arange(made.size)) if off else 0.0
            made.foreseen = None if paths else made.foreseen + wrong
            seen.append(made.foreseen is not None)
        return made

    monkeypatch.setattr(BoxModel, "reduce", reduced)
    paths.append(walked(model))
    paths.append(walked(model))  # nothing is foreseen
    assert sum(seen) > 8
    for (one, _), (other, certificate) in zip(*paths, strict=True):
        assert one.status == other.status == "certified"
        assert abs(one.primal - other.primal) <= one.gap + other.gap
        assert one.screened_L + one.screened_R <= certificate.n_L + certificate.n_R
    # Of the first points: later ones take tens of products, whose number differs by more than a look.
    saved = sum(other.passes - one.passes for (one, _), (other, _) in zip(paths[0][:16], paths[1][:16], strict=True))
    assert off or saved > 4.0


@pytest.mark.parametrize("kind", ["svm", "svr", "free"])
def test_a_path_resumed_anywhere_has_the_numbers_of_the_path(kind):
    model = model_of(kind)
    whole = walked(model)
    faces = [certificate.faces for _, certificate in whole]
    assert sum(step.solver.startswith("cd+cg") for step, _ in whole) > 12
    assert max(len(one.rows) for one in faces if one is not None) > 8  # more than one point's
    for first in (2, 9, 15, 20):
        state = stored(walk_state(model, rule_of(model), whole[first - 1][1]))
        fresh = model_of(kind)
        reference = restore_walk(fresh, rule_of(model), state, GRID[first - 1])
        assert reference.faces is None or reference.faces.made is None
        rest = walked(fresh, reference, first)
        assert [numbers(one) for one in rest] == [numbers(one) for one in whole[first:]]


def test_without_the_steps_before_they_are_others():
    """What is handed on matters: else there was nothing to be resumed."""
    model = model_of()
    whole = walked(model)
    first = max(range(1, len(GRID)), key=lambda k: len(getattr(whole[k - 1][1].faces, "rows", ())))
    state = {k: v for k, v in walk_state(model, parse_rule("dvi+gap"), whole[first - 1][1]).items() if k != PROX}
    rest = walked(model, restore_walk(model, parse_rule("dvi+gap"), state, GRID[first - 1]), first)
    assert all(step.status == "certified" for step, _ in rest)
    assert [numbers(one) for one in rest] != [numbers(one) for one in whole[first:]]


def test_a_point_may_be_solved_twice(monkeypatch):
    """What a first solve has used up is made again for the second one."""
    model, taken = model_of(), []
    whole = walked(model)
    recalled = kernels.recalled
    monkeypatch.setattr(kernels, "recalled", lambda *a: taken.append(1) or recalled(*a))
    for first in (10, 14):
        reference = whole[first - 1][1]
        assert reference.faces.made is None  # the walk above has used it up
        for _ in range(2):
            found = loop.solve_point(
                model, GRID[first], first, reference, parse_rule("dvi+gap"), make_solver("auto"), OPTIONS
            )
            assert numbers(found) == numbers(whole[first])
    assert len(taken) == 2 * sum(len(whole[first - 1][1].faces.rows) for first in (10, 14))


def steps_on(names, size, prox, made=None):
    """Return steps on some rows each."""
    log = begun(None, size, len(names))
    for rows, one in zip(names, prox, strict=True):
        descent.noted(log, np.arange(100), np.array(rows), one)
    used = int(log.used[0])
    assert used == len(names)
    return Faces(log.marks[:used], log.prox[:used], made)


def test_a_mark_for_every_row():
    made, prox = object(), [0.1 * (k + 1) for k in range(2, 5)]
    faces = steps_on([[k, 12 - k] for k in range(2, 5)], 13, prox, made)
    assert faces.take() is made and faces.take() is None
    restored = Faces.restored(stored(faces.state()), 13)
    for one in (faces, restored):
        found = [(rows.tolist(), prox) for rows, prox in one.steps(13)]
        assert found == [([k, 12 - k], 0.1 * (k + 1)) for k in (2, 3, 4)]
    assert Faces().state() == {} and Faces.restored({}, 13) is None


@pytest.mark.parametrize(
    "change",
    [
        {PROX: np.array([0.1, -0.1])}, {PROX: np.array([0.1])}, {PROX: np.array(0.1)}, {PROX: np.array([0.1, np.nan])},
        {PROX: np.array([[0.1], [0.1]])},
        {ROWS: np.zeros((2, 2), dtype=np.uint8)}, {ROWS: np.ones((2, 3), dtype=np.uint8)},
        {ROWS: np.ones((2, 2), dtype=np.int64)}, {ROWS: np.ones(4, dtype=np.uint8)}, {PROX: np.array(["a", "b"])},
        {ROWS: np.array([[255, 255], [0, 7]], dtype=np.uint8)},
    ],
)  # fmt: skip
def test_steps_that_cannot_have_been(change):
    """... such as on rows that there are not: 13 of 16 bits count."""
    good = steps_on([[3], [4]], 13, [0.1, 0.1]).state()
    with pytest.raises(ValueError, match="faces"):
        Faces.restored({**good, **change}, 13)
    with pytest.raises(ValueError, match="there is no faces"):
        Faces.restored({PROX: good[PROX]}, 13)


def test_memory_is_handed_on_in_one_place_at_a_time():
    model = model_of()
    *_, (_, last) = walked(model)
    certificates = [certificate for _, certificate in walked(model)[:-1]]
    assert last.faces is None or last.faces.made is not None
    solved = [one.faces for one in certificates if one.faces is not None]
    assert solved and all(one.made is None for one in solved[:-1])
    assert all(len(one.rows) == len(one.prox) > 0 for one in solved)
    if last.faces is not None:
        assert last.faces.made[1][-1][STEPS] == len(last.faces.rows)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_a_resumed_path_compiles_nothing_that_warming_up_has_not():
    for module in (kernels, descent, face_walk):
        module.warm_up()
    asked = kernels.recalled, kernels.face_step, descent.descend, face_walk.face_walk
    known = {kernel: len(kernel.signatures) for kernel in asked}
    model = model_of()
    certificate = walked(model)[9][1]
    state = stored(walk_state(model, rule_of(model), certificate))
    walked(model, restore_walk(model, rule_of(model), state, GRID[9]), 10)
    assert known == {kernel: len(kernel.signatures) for kernel in known}
