"""Several points in one call: what the loop finds point by point, whatever the length and the number of threads."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.catalogue.losses import LAD, QUANTILE, SVM, SVR
from screenpath.kernels.rows.barrier import can_share
from screenpath.problem.grid import EpsilonGrid, log_grid
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve import auto, make_free_solver, make_solver
from screenpath.walk import compiled, loop
from screenpath.walk.compiled import CompiledWalk, can_compile
from screenpath.walk.loop import Audit, PathOptions, as_grid, far_end, solve_point, walk
from tests.conftest import two_classes

GRID = log_grid(1e-3, 10.0, 12)
# Of balls that lie in each other, kernels without branches form what they do not use; only numpy would warn of it.
unused = pytest.mark.filterwarnings("ignore:invalid value encountered in scalar:RuntimeWarning")
FORMED = ("none", "gap", "dvi", "dvi+gap")  # screened by the compiled walk itself
GIVEN = ("bt2", "it", "it+gap", "ssnsv", "essnsv", "essnsv+gap")  # it is given the decisions
RULES = FORMED + GIVEN
FREE = (*FORMED, "bt2", "it+gap", "ssnsv", "essnsv+gap")
SECONDS = ("screen_s", "solve_s", "certify_s", "init_s")


def models(storage="dense", intercept="none"):
    X, y = two_classes(seed=7, noise=1.5)
    rng = np.random.default_rng(7)
    target, weights = X @ rng.normal(size=X.shape[1]) + rng.normal(size=y.size), rng.uniform(0.0, 3.0, y.size)
    weights[::9] = 0.0
    rows = MemoryRows(sp.csr_array(X) if storage == "sparse" else X)
    return {
        "svm": SVM.model(rows, y, None, intercept), "weighted": SVM.model(rows, y, weights, intercept),
        "lad": LAD.model(rows, target, weights, intercept),
        "quantile": QUANTILE.model(rows, target, None, intercept, tau=0.8),
    }  # fmt: skip


def rule_of(model, text):
    return parse_rule(text)


def solver_of(model, name):
    return (make_solver if model.free is None else make_free_solver)(name)


def options(**more):
    return PathOptions(tol=1e-8, **more)


def walked(model, rule="dvi+gap", solver="auto", grid=GRID, **more):
    return list(walk(model, grid, rule_of(model, rule), solver_of(model, solver), options(**more)))


@unused
@pytest.mark.covering(2)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("intercept", "rule"), [*(("none", rule) for rule in RULES), *(("free", rule) for rule in FREE)],
)  # fmt: skip
@pytest.mark.parametrize("name", ["svm", "weighted", "lad", "quantile"])
def test_point_of_a_stretch_is_that_of_the_loop(name, intercept, rule, storage):
    model = models(storage, intercept)[name]
    screening, solver = rule_of(model, rule), solver_of(model, "newton")
    if screening.needs_far_end:
        screening.begin(GRID, far_end(model, GRID, solver, options())[1], resumed=False)
    found = {}

    def keep(_model, _parameter, rank, _reference, _certificate, decided):
        found.setdefault(rank, []).append(decided.copy())
        return {}

    asked, reference, taken = options(audit=keep), model.start(GRID[0]), 0
    for rank, C in enumerate(GRID):
        made, certificates = CompiledWalk(model, as_grid(GRID), screening, asked, loop.MARGIN * asked.tol).points(
            reference, rank
        )
        step, reference = solve_point(model, C, rank, reference, screening, solver, asked)
        if not made:  # the closed form, or a second round; with a free intercept, the start or another way of solving
            assert intercept == "free" or step.solver == "closed-form" or step.rounds > 1
            continue
        taken += 1
        one, certificate = made[0], certificates[0]
        records = [{k: v for k, v in s.record().items() if k not in SECONDS} for s in (one, step)]
        assert records[0] == records[1] and one.parameters == step.parameters
        # The same bytes: a path on shards or on a cluster, which knows no stretches, has the numbers of one in memory.
        assert (one.passes, one.primal, one.dual) == (step.passes, step.primal, step.dual)
        assert one.coefficients.tobytes() == step.coefficients.tobytes()
        np.testing.assert_array_equal(*found[rank])  # what the rules decided
        for name, value in model.state(certificate).items():
            np.testing.assert_array_equal(value, model.state(reference)[name])
    assert taken >= 8


@pytest.mark.parametrize("rule", GIVEN)
def test_walk_with_given_decisions_is_that_of_the_loop_alone(rule, monkeypatch):
    """Also from the first point on, which pays for the far end."""
    found = []
    for compiles in (True, False):
        model = models()["weighted"]
        if not compiles:
            monkeypatch.setattr(loop, "can_compile", lambda *_: False)
        steps = walked(model, rule, grid=GRID[6:])
        records = [{k: v for k, v in step.record().items() if k not in SECONDS} for step, _ in steps]
        assert [step.init_s > 0.0 for step, _ in steps] == ["ssnsv" in rule, *[False] * (len(steps) - 1)]
        assert all(step.screen_s > 0.0 for step, _ in steps)
        found.append((records, bytes_of([(step, model.state(c)) for step, c in steps])))
    assert found[0] == found[1]


def test_sum_over_rows_stays_where_an_earlier_weight_vector_is_better():
    """The primal point of a pair is replaced, its dual point is not: the compiled walk keeps its sum, however old."""
    model = models()["svm"]
    reference, C = model.start(GRID[0]), 3.0 * GRID[0]
    rough = replace(model.certify(C, -5.0 * reference.point.vector, reference.theta), updates=model.fresh_every)
    better = model.no_worse(C, rough, reference)
    assert better is not rough and better.primal < rough.primal
    assert better.total is rough.total and better.updates == model.fresh_every


@pytest.mark.compiled_only
@pytest.mark.covering(9)
@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("name", ["svm", "lad"])
def test_length_changes_no_byte(name, intercept, monkeypatch):
    paths = []
    for length in (1, 3, 32):
        monkeypatch.setattr(compiled, "POINTS", length)
        paths.append(walked(models("dense", intercept)[name]))
    for one, *others in zip(*paths, strict=True):
        for other in others:
            assert one[0].coefficients.tobytes() == other[0].coefficients.tobytes()
            assert one[1].theta.tobytes() == other[1].theta.tobytes()
            assert (one[0].primal, one[0].passes) == (other[0].primal, other[0].passes)


@unused
@pytest.mark.parametrize(("rule", "share"), [("dvi+gap", 0.5), ("it+gap", 1.1)])  # of calls, to points
def test_walk_uses_it(rule, share, monkeypatch):
    asked = []
    points = CompiledWalk.points

    def counted(self, reference, rank):
        asked.append(rank)
        return points(self, reference, rank)

    monkeypatch.setattr(CompiledWalk, "points", counted)
    assert len(walked(models()["svm"], rule)) == len(GRID)
    assert 0 < len(asked) < share * len(GRID)


def test_point_that_is_not_solved_at_once_is_left_to_the_loop(monkeypatch):
    X, y = two_classes(seed=5, noise=3.0)
    model = SVM.model(MemoryRows(X), y)
    steps = [step for step, _ in walked(model, max_epochs=9)]
    assert {step.status for step in steps} == {"certified", "budget"}
    assert all(step.epochs <= 9 for step in steps)
    monkeypatch.setattr(loop, "can_compile", lambda *_: False)
    alone = [step for step, _ in walked(model, max_epochs=9)]
    assert [(step.status, step.epochs) for step in alone] == [(step.status, step.epochs) for step in steps]


def test_audit_and_eps_path_see_each_point_before_the_next():
    model, solver = models()["svm"], make_solver("auto")
    audited = walked(model, audit=Audit(solver, options()))
    plain = walked(models()["svm"])
    assert all(step.extras["unsafe"] == 0 for step, _ in audited)
    for (one, _), (other, _) in zip(audited, plain, strict=True):
        assert one.coefficients.tobytes() == other.coefficients.tobytes()
    grid = EpsilonGrid(1e-3, 1.0, 1e-2)
    steps = [step for step, _ in walked(models()["svm"], grid=grid)]
    assert len(steps) == len(grid) and all(step.status == "certified" for step in steps)


def test_stretch_takes_only_what_it_can(monkeypatch):
    X, y = two_classes()
    rows, rule, solver = MemoryRows(X), parse_rule("dvi"), make_solver("auto")
    assert all(can_compile(SVM.model(rows, y), parse_rule(text), solver) for text in RULES)
    wide = sp.random_array((20, 2000), density=0.01, rng=np.random.default_rng(0), format="csr")
    assert all(
        can_compile(SVM.model(rows, y, None, "free"), parse_rule(r), make_free_solver("auto")) for r in FREE
    )
    refused = [
        (SVR.model(rows, y, epsilon=0.1), rule, solver),
        (SVR.model(rows, y, None, "free", epsilon=0.1), parse_rule("dvi"), make_free_solver("auto")),
        (SVM.model(MemoryRows(wide), y[:20], None, "free"), parse_rule("dvi"), make_free_solver("auto")),
        (SVM.model(MemoryRows(X.astype(np.float32)), y), rule, solver),
        (SVM.model(rows, y), parse_rule("ssnsv", chunk=2), solver),
        (SVM.model(rows, y), parse_rule("heuristic"), solver), (SVM.model(rows, y), parse_rule("sieve"), solver),
        (SVM.model(rows, y), rule, make_solver("cd")),
    ]  # fmt: skip
    assert not any(can_compile(*one) for one in refused)
    assert can_compile(SVM.model(MemoryRows(wide), y[:20]), rule, solver)
    monkeypatch.setattr(auto, "LITTLE", wide.nnz - 1)
    assert not can_compile(SVM.model(MemoryRows(wide), y[:20]), rule, solver)
    csr = MemoryRows(sp.csr_array(X))
    assert can_compile(SVM.model(csr, y), rule, solver)
    csr.threads = 2  # which can share the passes over sparse rows, but not the rest
    assert not can_compile(SVM.model(csr, y), rule, solver)


def test_deadline_ends_a_stretch():
    found = walked(models()["svm"], deadline=time.monotonic() + 1e-9)
    assert len(found) <= 1


needs_threads = pytest.mark.skipif(not can_share(), reason="the jit is disabled")


@pytest.fixture
def shared(monkeypatch):
    """Make models whose stretches so many threads share, whatever their size and the processors."""
    monkeypatch.setattr(compiled, "SHARED", 0)
    pools = []

    def make(name, threads, n=5000, d=6):
        rng = np.random.default_rng(n)
        y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
        X = rng.normal(size=(n, d)) + 0.4 * y[:, None]
        rows = MemoryRows(X)
        if threads > 1:
            rows.threads, rows.pool = threads, ThreadPoolExecutor(threads - 1)
            pools.append(rows.pool)
        if name == "svm":
            return SVM.model(rows, y, rng.uniform(0.0, 2.0, n))
        return LAD.model(rows, X @ rng.normal(size=d) + rng.laplace(size=n))

    yield make
    for pool in pools:
        pool.shutdown()


def bytes_of(found):
    keep = "w", "theta", "total"
    return [(step.primal, step.dual, step.passes, *(model[name].tobytes() for name in keep)) for step, model in found]


def states(model, rule="dvi+gap"):
    return bytes_of([(step, model.state(certificate)) for step, certificate in walked(model, rule)])


@needs_threads
@pytest.mark.covering(1)
@pytest.mark.parametrize("rule", ["none", "dvi+gap", "it", "essnsv"])
@pytest.mark.parametrize("name", ["svm", "lad"])
def test_threads_change_no_byte(shared, name, rule):
    alone = states(shared(name, 1), rule)
    for threads in (2, 3, 9):  # the last with nothing to do in many a loop
        assert states(shared(name, threads), rule) == alone


@needs_threads
def test_threads_on_a_busy_machine(shared):
    stop = threading.Event()

    def spin():
        A = np.ones((60, 60))
        while not stop.is_set():
            A @ A

    busy = [threading.Thread(target=spin) for _ in range(3)]
    for thread in busy:
        thread.start()
    try:
        assert states(shared("svm", 2)) == states(shared("svm", 1))
    finally:
        stop.set()
        for thread in busy:
            thread.join()


@needs_threads
def test_wide_dense_rows_shared(shared):  # systems of few rows, and conjugate gradients
    for n, d in ((300, 40), (400, 610)):
        assert states(shared("lad", 2, n, d)) == states(shared("lad", 1, n, d))


@needs_threads
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("failing", [0, 1])
def test_thread_that_fails_holds_nobody(shared, monkeypatch, error, failing):
    model, walk_on, ended = shared("svm", 3), compiled.compiled.box_walk, []
    walked(model)

    def fails(*arguments):
        me = arguments[-1].me
        try:
            if me == failing:
                time.sleep(0.05)  # the others wait for it by now
                raise error
            return walk_on(*arguments)
        finally:
            ended.append(me)

    monkeypatch.setattr(compiled.compiled, "box_walk", fails)
    with pytest.raises(error):
        walked(model)
    assert sorted(ended) == [0, 1, 2]
    monkeypatch.setattr(compiled.compiled, "box_walk", walk_on)
    assert all(step.status == "certified" for step, _ in walked(model))  # and the threads are there again


@pytest.mark.parametrize("seed", [1, 5, 7, 12])
def test_no_dual_value_of_a_fine_path_is_above_the_primal_one_of_another(seed):
    """A certificate has the dual variables of its own step, however many digits are asked for."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(220, 8))
    X = X * 10.0 ** rng.integers(-3, 4, 8)
    y = np.round((X / np.abs(X).max(0)) @ rng.normal(size=8) + 0.1 * rng.normal(size=220), 1)
    model, grid = LAD.model(MemoryRows(X), y, None, "none"), log_grid(1e-3, 100.0, 12)
    fine, rough = (
        list(walk(model, grid, parse_rule("dvi"), make_solver("auto"), how))
        for how in (PathOptions(tol=1e-12, certificates=False), PathOptions(tol=1e-7))
    )
    for (one, _), (other, _) in zip(fine, rough, strict=True):
        assert one.dual <= other.primal * (1.0 + 1e-12) and one.primal >= other.dual * (1.0 - 1e-12), one.step
