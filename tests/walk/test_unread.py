"""Walks that read only the rows near their kinks: what they do not read is where they say, by exact arithmetic."""

import io
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from screenpath.catalogue.losses import LAD, QUANTILE, SVM
from screenpath.kernels.problem import box
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.walk import deadlines as kernels
from screenpath.kernels.walk import lazy
from screenpath.kernels.walk.compiled_types import Problem
from screenpath.numbers import rounding
from screenpath.problem import unread
from screenpath.problem.box import BoxModel
from screenpath.problem.free import FreeModel
from screenpath.problem.grid import log_grid
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve import make_solver
from screenpath.walk import compiled
from screenpath.walk.loop import PathOptions, as_grid, restore_walk, walk, walk_state
from tests.safety.rational import integers, losses_of, signed_rows
from tests.width import wide

GRID = log_grid(1e-2, 10.0, 24)
SECONDS = ("screen_s", "solve_s", "certify_s", "init_s")


# -- moves of w, against exact arithmetic -----------------------------------------------------------------------------


def attacked(seed: int, free: bool, weaker=lambda problem, known: (problem, known), form=np.asarray) -> tuple[int, int]:
    """Move ``w`` about among rows near their kinks; return wrong sides of unread rows, and rows looked at.

    With a ``free`` intercept that moves as well. ``weaker`` may change what the kernels are given; ``form`` is that of
    the rows.
    """
    rng = np.random.default_rng(seed)
    n, d = 40, int(rng.integers(1, 5))
    size = 10.0 ** rng.integers(-12, 13)
    X = rng.normal(size=(n, d)) * size * 10.0 ** rng.integers(-3, 4, (n, 1) if rng.random() < 0.5 else (1, d))
    if rng.random() < 0.3:
        X = np.round(X / size) * size
    X[::7] = X[0]  # duplicates
    X[3] = 0.0
    if form is not np.asarray:
        X[rng.random(X.shape) < 0.4] = 0.0
    if free and rng.random() < 0.5:  # far from the origin
        X += size * 10.0 ** rng.integers(0, 7) * rng.normal(size=d)
    if d > 1 and rng.random() < 0.2:  # columns that are nearly the same: the metric is far from round
        X[:, -1] = X[:, 0] * (1.0 + 10.0 ** rng.uniform(-16, -3) * rng.normal(size=n))
    place, level = rng.normal(size=d) / size, free * rng.choice([0.0, 1.0, 1e6]) * rng.normal()
    if d > 1:  # products whose terms cancel, which are far less certain than they are large
        X[20:30, -1] -= X[20:30] @ place / place[-1] * (1.0 + 1e-15 * rng.normal(size=10))
    signs, lo = rng.choice(np.array([-1, 1], dtype=np.int8), n), -rng.integers(0, 2, n).astype(float)
    # Kinks at or next to where w is, or will be: exactly, by a few roundings, or by more.
    c = signs * (X @ place + level) * (1.0 + rng.choice([0.0, 1e-16, -3e-16, 1e-12, 1e-3, 1.0], n) * rng.normal(size=n))
    hi = lo + 1.0
    hi[5] = lo[5]  # no weight
    model = (FreeModel if free else BoxModel)(MemoryRows(form(X)), c, lo, hi, signs)
    stored = matrix_of(model.rows.stored)
    problem = Problem(np.array([0, n]), c, lo, hi, model.norms, model.signs, model.bounds)
    reference = model.certify(1.0, place * rng.choice([0.0, 0.5, 1.0]), np.zeros(n))
    right = np.where(c > reference.point.products + signs * (reference.intercept or 0.0), hi, lo)
    reference = model.certify(1.0, reference.point.vector, right)
    problem, known = weaker(problem, unread.begun(model, reference))
    rows, kinks, w = signed_rows(model), losses_of(model)[0], reference.point.vector
    b = first = reference.intercept or 0.0
    whole, bits = integers(rows)
    wrong, held = 0, 0
    for k in range(wide(30, 60)):
        step = rng.normal(size=d) * 10.0 ** rng.uniform(-17, 0.5) / size
        ways = w + step, 0.5 * (w + place), place, w * (1.0 + 1e-3 * rng.normal()), reference.point.vector, w
        w = ways[k % 6].copy()
        b = (b + (X[0] @ step), 0.5 * (b + level), level, b * (1.0 + 1e-3 * rng.normal()), first, b)[k % 6] * free
        kernels.new_version(w, b, problem, known)
        near, _ = kernels.look(stored, problem, w, 0.0, 0.0, 0, known)
        exact_w, more = integers(w)
        exact = [Fraction(int(v), 1 << (bits + more)) for v in whole @ exact_w]
        exact = [one + int(sign) * Fraction(float(b)) for one, sign in zip(exact, signs, strict=True)]
        for i in range(n):
            if lo[i] < hi[i] and known.deadlines[i] >= known.state[kernels.ODOMETER]:
                held += 1
                wrong += (kinks[i] - exact[i]) * int(known.sides[i]) < 0
        for i in known.near[:near]:  # a solver would move their dual variables to the other end
            known.sides[i] = 1 if kinks[i] > exact[i] else -1
        if known.state[kernels.VERSIONS] + lazy.ROOM > len(known.points):
            lazy.renew(stored, problem, w, known)
    return wrong, held


def halved(problem, known):
    return problem, known._replace(sizes=0.5 * known.sizes)


def unrounded(problem, known):
    bounds = np.zeros_like(problem.bounds)
    known.facts[:, kernels.ERROR_SLOPE], known.facts[:, kernels.ERROR_FLOOR] = 0.0, 0.0
    return problem._replace(bounds=bounds), known._replace(most=0.0)


def unmoved(problem, known):
    """Forget that the intercept moves with the mean."""
    return problem, known._replace(mean=0.0 * known.mean)


def baseless(problem, known):
    """Take the margins of the base for 0."""
    return problem, known._replace(base=0.0 * known.base)


@pytest.mark.parametrize("versions", [unread.VERSIONS, 1])  # the last of which are forgotten at each move
@pytest.mark.parametrize("dense", [unread.DENSE, 0])  # columns up to which there is a metric
@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("free", [False, True])
def test_no_unread_row_is_on_the_wrong_side(free, form, dense, versions, monkeypatch):
    """Scales of all sizes, near-ties, exact kinks, duplicates, moves to and fro; about 10^5 rows, wide 10^6."""
    monkeypatch.setattr(unread, "VERSIONS", versions)
    monkeypatch.setattr(unread, "DENSE", dense)
    found = [attacked(seed, free, form=form) for seed in range(wide(50, 1000))]
    assert sum(wrong for wrong, _ in found) == 0
    assert sum(held for _, held in found) > wide(15_000, 400_000)


@pytest.mark.parametrize("dense", [unread.DENSE, 0])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize(
    ("free", "weaker"),
    [(False, halved), (False, unrounded), (False, baseless), (True, halved), (True, unrounded), (True, unmoved)],
)
def test_attack_finds_distances_that_are_too_long(free, weaker, form, dense, monkeypatch):
    monkeypatch.setattr(unread, "DENSE", dense)
    assert sum(attacked(seed, free, weaker, form)[0] for seed in range(60)) > 0


@pytest.mark.parametrize("odometer", [0.1, np.inf, np.nan])
def test_rows_of_the_working_set_are_not_listed_again(odometer):
    model = models()["svm"]
    w = np.ones(model.rows.d)
    reference = model.certify(1.0, w, model.corner(model.margins(w))[0])
    X, known = matrix_of(model.rows.stored), unread.begun(model, reference)
    problem = Problem(np.array([0, model.size]), model.c, model.lo, model.hi, model.norms, model.signs, model.bounds)
    first, _ = kernels.look(X, problem, w, 0.1, 0.1, 0, known)
    lazy.enter(0, first, reference.theta, known)
    known.state[kernels.ODOMETER] = odometer
    near, _ = kernels.look(X, problem, w, 0.3, 0.3, first, known)
    assert 0 < first < near == len(set(known.near[:near]))


def test_length_of_a_move_is_rounded_up():
    rng, bounds = np.random.default_rng(0), np.zeros(box.TINY + 1)
    bounds[box.FEATURE_SUM], bounds[box.HIDDEN] = rounding.gamma(11), 2.0**-530
    for _ in range(wide(200, 5000)):
        w, point = rng.normal(size=(2, 3)) * 10.0 ** rng.integers(-150, 150)
        point = w * (1.0 + 1e-15 * rng.normal(size=3)) if rng.random() < 0.5 else point
        scale, share, base = rng.choice([1.0, 0.3, -2.0, 1.0 + 1e-15]), rng.choice([0.0, 0.5, -1e3]), point[::-1].copy()
        way, (a, b) = (scale, point, share, base), map(Fraction, (float(scale), float(share)))
        three = list(zip(w.tolist(), point.tolist(), base.tolist(), strict=True))
        metric = np.triu(rng.normal(size=(3, 3))) if rng.random() < 0.5 else np.empty((0, 0))
        known = kernels.nothing(3, 16, 3, (np.ones(3), np.ones(3), np.empty(0), np.ones(3, np.float32), metric, 1e-14))
        moves = [Fraction(one) - a * Fraction(other) - b * Fraction(last) for one, other, last in three]
        steps = moves
        if metric.size:
            moves = [sum(Fraction(float(r)) * m for r, m in zip(row, moves, strict=True)) for row in metric]
        exact = sum(move**2 for move in moves)
        assert Fraction(float(kernels.distance(w, *way, known, bounds))) ** 2 >= exact
        bounds[box.TINY] = 4 * 2.0**-1074
        (along, error), mean = kernels.along(w, *way, w[::-1], bounds), map(Fraction, w[::-1].tolist())
        exact = sum(one * step for one, step in zip(mean, steps, strict=True))
        assert not np.isfinite(error) or abs(Fraction(float(along)) - exact) <= Fraction(float(error))


# -- paths ------------------------------------------------------------------------------------------------------------


def models(n=3000, d=5):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(n, d)), np.ones(n)])
    y = np.where(X @ rng.normal(size=d + 1) + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    weights, target = rng.uniform(0.0, 3.0, n), X @ rng.normal(size=d + 1) + rng.normal(size=n)
    weights[::9] = 0.0
    rows, far = MemoryRows(X), MemoryRows(X[:, :-1] + 0.5)
    few = np.where(rng.random((n, d)) < 0.25, 0.0, X[:, :-1])
    return {
        "svm": SVM.model(rows, y, None, "none"), "weighted": SVM.model(rows, y, weights, "none"),
        "lad": LAD.model(rows, target, weights, "none"),
        "quantile": QUANTILE.model(rows, target, None, "none", tau=0.8), "free svm": SVM.model(far, y, None, "free"),
        "free weighted": SVM.model(far, y, weights, "free"), "free lad": LAD.model(far, target, weights, "free"),
        "free quantile": QUANTILE.model(far, target, None, "free", tau=0.8),
        "sparse svm": SVM.model(MemoryRows(csr_array(few)), y, weights, "none"),
        "free sparse svm": SVM.model(MemoryRows(csr_array(few)), y, weights, "free"),
    }  # fmt: skip


NAMES = list(models(100))


def walked(model, rule="auto", grid=GRID, reference=None, first=0, **more):
    options = PathOptions(**{"tol": 1e-7, **more})
    return list(walk(model, grid, parse_rule(rule), make_solver("auto"), options, reference, first))


def records(path) -> list:
    rows = ({k: v for k, v in step.record().items() if k not in SECONDS} for step, _ in path)
    return [(row, step.coefficients.tobytes()) for row, (step, _) in zip(rows, path, strict=True)]


def full_certificate(model, one):
    """Return the certificate of the same pair on all rows, which finds the best intercept anew."""
    full = model.certify(one.C, one.point.vector, one.theta)
    if one.intercept is not None:
        np.testing.assert_array_equal(full.theta, one.theta)  # it sums to 0 as it is
        for name in ("intercept", "low", "high"):
            assert abs(getattr(full, name) - getattr(one, name)) <= 1e-12 * (1.0 + abs(one.intercept))
    return full


@pytest.mark.parametrize("name", NAMES)
def test_certificates_are_true_of_all_rows(name):
    """All margins, read again, say what the walk has said of the rows that it has not read."""
    model = models()[name]
    path, every = walked(model), walked(model, "dvi+gap")
    assert all(step.status == "certified" for step, _ in path)
    assert sum(certificate.unread is not None for _, certificate in path) >= len(GRID) - 3
    assert sum(step.passes for step, _ in path[1:]) < 0.6 * sum(step.passes for step, _ in every[1:])
    for (step, one), (other, _) in zip(path, every, strict=True):
        full = full_certificate(model, one)
        assert rounding.meets(full, 1e-7 * (1.0 + 1e-9))
        assert abs(full.primal - one.primal) <= full.primal_error + one.primal_error
        assert abs(full.gap - one.gap) <= full.rounding + one.rounding + 1e-12 * one.gap
        assert abs(full.xi - one.xi) + abs(full.ell - one.ell) <= one.error + full.error
        assert (full.n_R, full.n_L) == (one.n_R, one.n_L) == (step.n_R, step.n_L)
        assert max(step.dual, other.dual) <= min(one.highest, other.primal * (1.0 + 1e-12))
        if one.unread is not None:
            left = one.unread.deadlines - one.unread.state[kernels.ODOMETER]
            forms = full.point.products + model.signs * (one.intercept or 0.0)
            most = np.abs(model.c - forms) / one.unread.sizes * (1.0 + 1e-9)
            assert np.all((left <= most) | (left == np.inf))
            blocks = np.arange(0, model.size, kernels.SCANNED)
            assert np.all(one.unread.firsts <= np.minimum.reduceat(one.unread.deadlines, blocks))
            linear, signed = one.unread.state[[kernels.LINEAR, kernels.SIGNED]]
            assert abs(linear - model.c @ one.theta) < 1e-12 * model.size
            assert abs(signed - model.signs @ one.theta) < 1e-12 * model.size


@pytest.mark.parametrize("name", ["svm", "free svm"])
def test_counts_of_a_lazy_walk_are_decisions_of_the_rule(name):
    """Fewer rows than the rule decides, which reads all of them."""
    model = models()[name]
    some, fine = 0, log_grid(1e-2, 10.0, 100)
    for (step, _), (other, _) in zip(
        walked(model, grid=fine, tol=1e-10), walked(model, "dvi+gap", grid=fine, tol=1e-10), strict=True
    ):
        assert step.screened_R <= other.screened_R and step.screened_L <= other.screened_L
        some += step.screened_R + step.screened_L
    assert some > len(fine) * 0.05 * model.size


@pytest.mark.parametrize("name", ["svm", "free svm"])
def test_passes_count_every_product_with_a_row(name):
    """A row that is read again, a row that is added to a sum: each counts once."""
    model = models()[name]
    path = walked(model)
    for (step, one), (_, before) in zip(path[2:], path[1:-1], strict=False):
        read = np.count_nonzero(one.unread.version != before.unread.version) / model.size
        changed = np.count_nonzero(one.theta != before.theta) / model.size
        assert step.passes >= max(read, changed)


@pytest.mark.parametrize("name", NAMES)
def test_first_step_begins_with_samples(name):
    """Solutions of a quarter, a sixteenth ... of the rows: fewer passes than from the closed form; as many where one
    set of rows that is solved roughly is nearly the right one.
    """
    model, share = models(9000)[name], 1.25 if name == "sparse svm" else 0.75
    (step, one), (other, _) = walked(model, grid=GRID[5:6])[0], walked(model, "dvi+gap", grid=GRID[5:6])[0]
    assert step.status == "certified" and step.passes < share * other.passes
    assert max(step.dual, other.dual) <= min(one.highest, other.primal * (1.0 + 1e-12))
    assert one.unread is not None


@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("order", ["sorted", "periodic", "equal", "rare"])
def test_samples_of_ordered_rows(order, intercept):
    """Whatever a sample says, the certificate is that of all rows."""
    rng = np.random.default_rng(3)
    X, place = np.column_stack([rng.normal(size=(6000, 4)), np.ones(6000)]), np.arange(6000)
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=6000) > 0, 1.0, -1.0)
    if order == "sorted":
        X, y = X[np.argsort(y)], np.sort(y)
    elif order == "periodic":
        y = np.where(place % 4 == 0, -y, y)
    elif order == "rare":  # a class that no sample has, perhaps
        y = np.where(place < 3, 1.0, -1.0)
    else:  # every row many times: most of the dual variables are between their ends
        X, y = X[place % 40], y[place % 40]
    model = SVM.model(MemoryRows(X), y, None, intercept)
    for step, one in walked(model, grid=GRID[:8]):
        full = model.certify(one.C, one.point.vector, one.theta)
        assert step.status == "certified" and rounding.meets(full, 1e-7 * (1.0 + 1e-9))


@pytest.mark.parametrize(("points", "name"), [(1, "weighted"), (7, "weighted"), (1, "free weighted")])
def test_length_of_a_call_and_an_interruption_change_nothing(points, name, monkeypatch):
    model = models()[name]
    whole = walked(model, certificates=False)
    monkeypatch.setattr(compiled, "POINTS", points)
    assert records(walked(model, certificates=False)) == records(whole)
    path = walked(model)
    assert records(path) == records(whole)
    for first in (2, 11):
        file = io.BytesIO()
        np.savez(file, **walk_state(model, parse_rule("auto"), path[first - 1][1]))
        file.seek(0)
        state, fresh = dict(np.load(file)), models()[name]
        reference = restore_walk(fresh, parse_rule("auto"), state, GRID[first - 1])
        assert reference.unread is not None
        assert records(walked(fresh, reference=reference, first=first)) == records(whole[first:])


@pytest.mark.parametrize("name", ["svm", "free lad"])
def test_steps_that_are_far_apart_begin_alike_after_an_interruption(name):
    grid = [0.01, 0.02, 0.3, 0.4, 10.0]
    whole = walked(models()[name], grid=grid, tol=1e-3)
    for first in range(1, len(grid)):
        state, fresh = walk_state(models()[name], parse_rule("auto"), whole[first - 1][1]), models()[name]
        state = {key: np.asarray(value) for key, value in state.items()}
        reference = restore_walk(fresh, parse_rule("auto"), state, grid[first - 1])
        assert records(walked(fresh, grid=grid, reference=reference, first=first, tol=1e-3)) == records(whole[first:])


@pytest.mark.parametrize("name", ["svm", "free svm"])
def test_a_walk_does_not_know_what_its_steps_are_asked_for(name):
    """As by a file of certificates: a restored walk would go on without the products, with other passes and digits."""
    model = models()[name]
    how = model, GRID, parse_rule("auto"), make_solver("auto"), PathOptions(tol=1e-6, max_epochs=6)
    found = []
    for step, one in walk(*how):
        assert one.point.products is not None
        found.append((step, one))
    assert records(found) == records(walked(model, tol=1e-6, max_epochs=6))


def test_a_wide_interval_of_best_intercepts_is_restored():
    """Beside a small objective it is wide: the ends are not where the reported intercept is."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1200, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=1200)
    path = walked(LAD.model(MemoryRows(X), y, None, "free"), grid=[0.001, 0.002])
    found = path[-1][1]
    assert found.unread is not None and found.high - found.intercept > unread.ALIKE * found.primal
    state = walk_state(LAD.model(MemoryRows(X), y, None, "free"), parse_rule("auto"), found)
    again = restore_walk(LAD.model(MemoryRows(X), y, None, "free"), parse_rule("auto"), state, 0.002)
    assert (again.low, again.intercept, again.high) == (found.low, found.intercept, found.high)
    with pytest.raises(ValueError, match="another high"):
        wrong = [*state["unread_numbers"]]
        wrong[unread._numbers(found).index("high")] += 1e-3
        fresh = LAD.model(MemoryRows(X), y, None, "free")
        restore_walk(fresh, parse_rule("auto"), {**state, "unread_numbers": np.array(wrong)}, 0.002)


def test_length_of_a_call_changes_nothing_where_rounding_is_the_limit(monkeypatch):
    rng = np.random.default_rng(0)
    X = 10.0 ** rng.integers(-3, 5, size=20) * (rng.normal(size=(1000, 20)) + 3.0)
    y = np.where(X @ (rng.normal(size=20) / X.max(axis=0)) + 0.3 * rng.normal(size=1000) > 0.0, 1.0, -1.0)
    model, grid = SVM.model(MemoryRows(X), y, None, "none"), np.geomspace(1e-4, 100.0, 12).tolist()
    whole = walked(model, grid=grid, tol=1e-9)
    monkeypatch.setattr(compiled, "POINTS", 1)
    assert records(walked(model, grid=grid, tol=1e-9)) == records(whole)


def test_bounds_that_have_grown_are_restored():
    path = walked(models()["svm"], grid=GRID[:6])
    found = path[-1][1]
    state = walk_state(models()["svm"], parse_rule("auto"), found)
    place = unread._numbers(found).index("error")
    for size, good in ((2e-5, True), (-2e-5, False)):
        numbers = np.array(state["unread_numbers"])
        numbers[place] += size * found.primal
        how = models()["svm"], parse_rule("auto"), {**state, "unread_numbers": numbers}, GRID[5]
        if good:
            assert restore_walk(*how).error == numbers[place]
        else:
            with pytest.raises(ValueError, match="another error"):
                restore_walk(*how)


def test_certificates_of_several_steps_come_with_one_call(monkeypatch):
    """What is known of the rows after a step between is found again, as one call for each step leaves it."""
    model, calls, call = models()["free sparse svm"], [], compiled.CompiledWalk._call
    monkeypatch.setattr(compiled.CompiledWalk, "_call", lambda *how: calls.append(how[1]) or call(*how))
    path = walked(model)
    assert len(calls) < 0.5 * len(GRID)
    asked, touched, between = len(calls), model.rows.touched, path[10][1]
    lazy = between.unread
    assert len(calls) > asked and model.rows.touched == touched and between.unread is lazy
    monkeypatch.setattr(compiled, "POINTS", 1)
    other = walked(model)[10][1].unread
    for name in unread.ROWS:
        np.testing.assert_array_equal(getattr(lazy, name), getattr(other, name))


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_number_of_threads_changes_nothing(form):
    X = models()["svm"].rows.X
    y = np.where(X[:, 0] > 0.3 * X[:, 1], 1.0, -1.0)
    one, two = (walked(SVM.model(MemoryRows(form(X), threads), y, None, "none")) for threads in (1, 2))
    assert records(one) == records(two) and one[-1][1].unread is not None


def spoilt(name, change):
    def spoil(state):
        state[name] = np.array(state[name])
        change(state[name])

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        spoilt("unread_margins", lambda a: a.__setitem__(5, a[5] + 1e-9)),
        spoilt("unread_deadlines", lambda a: a.__iadd__(1e-9)),
        spoilt("unread_version", lambda a: a.__setitem__(0, 99)),
        spoilt("unread_points", lambda a: a.__setitem__((-1, 0), 0.5)),
        spoilt("unread_points", lambda a: a.__setitem__((0, 0), 0.5)),
        spoilt("unread_state", lambda a: a.__setitem__(kernels.VERSIONS, 1.5)),
        spoilt("unread_state", lambda a: a.__setitem__(kernels.ODOMETER, 0.0)),
        spoilt("unread_numbers", lambda a: a.__imul__(1.001)),
        spoilt("unread_points", lambda a: a.__setitem__((-1, -1), a[-1, -1] + 1e-3)),
        lambda state: state.update(unread_deadlines=np.zeros(3)),
    ],
)
def test_state_that_is_not_true_is_refused(spoil):
    model = models()["free svm"]
    state = walk_state(model, parse_rule("auto"), walked(model, grid=GRID[:4])[-1][1])
    spoil(state)
    with pytest.raises(ValueError, match="unread_"):
        restore_walk(model, parse_rule("auto"), state, GRID[3])


@pytest.mark.parametrize("name", ["svm", "free svm"])
def test_versions_are_forgotten_when_there_is_no_room(name, monkeypatch):
    """With room for 16 versions, rows are read again in passing; the path stays true."""
    monkeypatch.setattr(unread, "VERSIONS", 1)
    model = models()[name]
    for step, one in walked(model):
        assert step.status == "certified"
        assert rounding.meets(model.certify(one.C, one.point.vector, one.theta), 1e-7 * (1.0 + 1e-9))


@pytest.mark.parametrize("name", ["lad", "free lad"])
def test_working_set_that_is_far_too_small_is_widened_before_rows_are_read(name):
    """As after steps that have hardly moved ``w``: solved for few rows, it would go past the kinks of most others."""
    model, usual, spoilt = models()[name], 0.0, 0.0
    path = walked(model, tol=1e-3)
    for k in range(2, 12, 3):
        state = path[k - 1][1].unread.state
        state[[kernels.REACH, kernels.MOVE]] *= 1e-9
        usual += path[k][0].passes
        spoilt += walked(model, grid=GRID[: k + 1], tol=1e-3, reference=path[k - 1][1], first=k)[0][0].passes
    assert 0.0 < spoilt < 2.0 * usual


@pytest.mark.parametrize("name", ["free svm", "free quantile"])
def test_rough_steps_with_a_free_intercept_are_not_left_to_the_loop(name):
    """Where hardly a dual variable is between its ends, another one takes what rounding leaves of their sum."""
    model = models()[name]
    for step, one in walked(model, grid=log_grid(1e-2, 10.0, 100), tol=1e-2):
        assert step.status == "certified" and one.unread is not None
        assert rounding.meets(full_certificate(model, one), 1e-2 * (1.0 + 1e-6))


@pytest.mark.parametrize("name", ["svm", "free svm"])
@pytest.mark.parametrize("tol", [1e-2, 1e-12])
def test_tolerances_at_both_ends(tol, name):
    """A better point is known than a rough solve finds, and rounding is too much for what is not read."""
    model = models()[name]
    fine = log_grid(0.1, 1.0, wide(40, 200))
    for step, one in walked(model, grid=fine, tol=tol):
        full = model.certify(one.C, one.point.vector, one.theta)
        assert step.status == "certified" and rounding.meets(full, tol * (1.0 + 1e-6))


@pytest.mark.parametrize("name", NAMES)
def test_polished_path_reads_hardly_more_rows(name, monkeypatch):
    """A gap is not the difference of two objectives, of which rounding hides what 1e-12 asks for."""
    model, grid = models()[name], log_grid(1e-2, 10.0, 100)
    usual, path = walked(model, grid=grid, tol=1e-6), walked(model, grid=grid, tol=1e-12)
    assert sum(step.passes for step, _ in path) < 2.0 * sum(step.passes for step, _ in usual)
    assert all(step.status == "certified" and rounding.meets(one, 1e-12) for step, one in path)
    for _, one in path[:: wide(49, 7)]:
        assert model.free is not None or exact_gap(model, one) <= Fraction(one.gap) <= Fraction(1e-12 * one.primal)
    monkeypatch.setattr(unread, "DIGITS", 0.0)
    assert sum(step.passes for step, _ in walked(model, grid=grid, tol=1e-12)) > 2.0 * sum(s.passes for s, _ in usual)


def exact_gap(model, one) -> Fraction:
    """Return the gap of a pair without a free intercept as a fraction."""
    (G, g), (w, p), (theta, q) = integers(signed_rows(model)), integers(one.point.vector), integers(one.theta)
    (c, lo, hi), C = losses_of(model), Fraction(one.C)
    t = [kink - Fraction(int(form), 1 << (g + p)) for kink, form in zip(c, G @ w, strict=True)]
    losses = sum(max(up * one, low * one) for up, low, one in zip(hi, lo, t, strict=True))
    linear = sum(kink * Fraction(int(one), 1 << q) for kink, one in zip(c, theta, strict=True))
    w_sq, total_sq = Fraction(int(w @ w), 1 << (2 * p)), Fraction(int((theta @ G) @ (theta @ G)), 1 << (2 * (q + g)))
    return w_sq / 2 + C * losses - C * linear + C * C * total_sq / 2


@pytest.mark.parametrize("name", ["svm", "free svm"])
def test_refused_step_leaves_the_dual_point_as_it_was(name):
    """The loop takes it from the same reference."""
    model = models()[name]
    *_, (_, reference) = walked(model, grid=GRID[:6])
    before = reference.theta.copy(), reference.unread.margins.copy(), reference.unread.deadlines.copy()
    options = PathOptions(tol=1e-7, max_epochs=1, certificates=False)
    stretches = compiled.CompiledWalk(model, as_grid(GRID), parse_rule("auto"), options, 1e-7)
    assert stretches.points(reference, 6) == ([], []) and stretches.spent > 0.0
    after = reference.theta, reference.unread.margins, reference.unread.deadlines
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["svm", "free svm"])
def test_step_that_is_refused_is_one_for_the_loop_whatever_the_length_of_a_call(name, monkeypatch):
    """Its passes count what was read in vain, and the margins that the loop needs."""
    model, found = models()[name], []
    for points in (1, 100):
        monkeypatch.setattr(compiled, "POINTS", points)
        for certificates in (True, False):
            how = {"max_epochs": 18, "certificates": certificates}
            found.append(records(walked(model, grid=GRID[:10], **how)))
            assert found[-1] == found[0]
    assert {row["status"] for row, _ in found[0]} == {"certified", "budget"}


def test_only_the_rule_auto_leaves_rows_unread():
    model = models()["svm"]
    for rule in ("none", "gap", "dvi", "dvi+gap", "it"):
        assert all(certificate.unread is None for _, certificate in walked(model, rule, grid=GRID[:4]))
    for count, intercept in ((unread.MANY - 1, "none"), (compiled.EACH * model.rows.d - 1, "free")):
        few = SVM.model(MemoryRows(model.rows.X[:count]), model.signs[:count].astype(float), None, intercept)
        assert records(walked(few)) == records(walked(few, "dvi+gap"))
