"""No decision behind a kernel with a free intercept is wrong, whatever the reference; the attack finds wrong radii."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from screenpath.errors import UsageError
from screenpath.regions.lever import LeverPencil
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.screen import Screening, parse_rule
from screenpath.screen.box import BT2, DVI, ESSNSV, IT, SSNSV
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk.loop import Audit, PathOptions, contradicted, solve_point, walk
from tests.kernel_problems import kernel_svm_model
from tests.safety.test_intercept import TIGHT, agreed, attack, less, tight_decisions
from tests.safety.test_kernel import FUNCTIONS, random_problem
from tests.width import wide

UNSCREENED = Screening(None, False, "none")
ACCURACIES = ("start", "arbitrary", "1 epoch", "1e-3", "1e-6", "1e-13")


def free_problem(rng, loss="svm"):
    """Return a model with a free intercept, and the words that describe it; both classes have weight."""
    while True:
        try:
            return random_problem(rng, loss, "free")
        except UsageError:
            continue


def reference(rng, model, C, accuracy):
    if accuracy == "start":
        return model.start(C)
    if accuracy == "arbitrary":
        return model.certify(C, None, rng.uniform(model.lo, model.hi) * rng.choice([0.01, 1.0]))
    limit, tol = (1, 1e-14) if accuracy == "1 epoch" else (200, float(accuracy))
    solver = make_kernel_solver("smo" if limit == 1 else "auto")
    return solve_point(model, C, 0, model.start(C), UNSCREENED, solver, PathOptions(tol=tol, max_epochs=limit))[1]


def drawn(seed: int, loss: str | None = "svm"):
    rng = np.random.default_rng(seed)
    model, _ = free_problem(rng, loss)
    return rng, model, float(10.0 ** rng.uniform(-2.0, 2.0) / np.median(model.norms) ** 2)


def accurate(model, C: float):
    return reference(None, model, C, "1e-13")


kernel_attack = partial(attack, draw=drawn, solve=accurate, pair=reference, accuracies=ACCURACIES)


def region_of(rule):
    """Return a function of model, reference and C that makes the region; a far end is a rough one at 3 C."""

    def made(model, near, C):
        far = [reference(None, model, 3.0 * C, "1 epoch")] if rule.needs_far_end else []
        return rule().region(model, near, C, *far)

    return made


@pytest.mark.parametrize("loss", ["svm", None])
@pytest.mark.parametrize("rule", [DVI, BT2, IT, SSNSV, ESSNSV])
def test_no_decision_is_wrong(rule, loss):
    count = wide(8, 40)
    made, wrong = kernel_attack(range(count), region_of(rule), draw=partial(drawn, loss=loss))
    assert made > {BT2: 12, SSNSV: 0, ESSNSV: 0}.get(rule, 30) * count and wrong == 0


@pytest.mark.parametrize("rule", ["ssnsv", "essnsv", "ball"])
def test_where_the_optimum_is_at_the_end_of_its_region_a_smaller_one_is_found(rule):
    def behind(X):
        return GramRows(X, KernelFunction("linear"), np.ones(X.shape[0]), 1 << 28)

    made, wrong = tight_decisions(TIGHT[rule], behind, accurate)
    assert made > 50 and wrong == 0
    assert tight_decisions(lambda *given: less(TIGHT[rule](*given)), behind, accurate)[1] > 0


@pytest.mark.parametrize("rule", [DVI, BT2, IT])
def test_the_attack_finds_a_radius_that_is_too_small(rule):
    def less(region):
        if isinstance(region, LeverPencil):
            return LeverPencil(less(region.first), less(region.second))
        return replace(region, ball=replace(region.ball, radius=0.9 * region.ball.radius))

    assert any(kernel_attack([seed], lambda *given: less(rule().region(*given)))[1] for seed in range(40))


@pytest.mark.parametrize("solver", ["auto", "smo"])
@pytest.mark.parametrize("rule", ["dvi", "gap", "dvi+gap", "it+gap", "essnsv+gap"])
def test_hostile_paths_are_safe_and_agree_with_unscreened_ones(rule, solver):
    solver, options = make_kernel_solver(solver), PathOptions(tol=1e-7, max_epochs=400)
    audit, decided = Audit(solver, options, contradicted), 0
    count = wide(5, 12)
    for seed in range(100, 100 + count):
        rng = np.random.default_rng(seed)
        model, words = free_problem(rng, "svm" if seed % 2 else None)
        C = float(10.0 ** rng.uniform(-2.0, 1.0) / np.median(model.norms) ** 2)
        grid = [0.8 * C, C, 1.1 * C, 3.0 * C]
        audited = PathOptions(tol=1e-7, max_epochs=400, audit=audit)
        found = list(walk(model, grid, parse_rule(rule), solver, audited))
        plain = list(walk(model, grid, UNSCREENED, solver, options))
        decided += agreed(found, plain, f"{seed}: {words}")
    assert decided > 8 * count or rule == "gap"


def test_what_the_dynamic_rule_fixes_while_solving_is_right():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=200) > 0.8, 1.0, -1.0)
    model = kernel_svm_model(GramRows(X, FUNCTIONS[0], y), None, "free")
    for C in (0.05, 1.0):
        ((_, best),) = walk(model, [C], UNSCREENED, make_kernel_solver("auto"), PathOptions(tol=1e-11))
        near = solve_point(model, C, 0, model.start(C), UNSCREENED, make_kernel_solver("smo"), PathOptions(tol=1e-3))[1]
        run = make_kernel_solver("smo").run(model.reduce(C, model.nothing_screened(), near))
        for _ in range(3):
            run.check(1e-12, True)
            run.epoch(0.0, True, False)
        t = model.c - best.point.products - model.signs * best.intercept
        assert run.screened > 0
        assert not np.any((run.decided < 0) & (t > 1e-6)) and not np.any((run.decided > 0) & (t < -1e-6))
        assert abs(float(model.signs @ run.alpha)) < 1e-12 * float(run.alpha.sum())


def test_a_linear_kernel_far_from_the_origin_still_decides():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) + 1e4
    y = np.where(X @ [1.0, 1.0] + 0.3 * rng.normal(size=120) > 2e4, 1.0, -1.0)
    model = kernel_svm_model(GramRows(X, KernelFunction("linear"), y), None, "free")
    steps = [
        s
        for s, _ in walk(
            model, np.geomspace(0.1, 10.0, 20), parse_rule("dvi"), make_kernel_solver("auto"), PathOptions()
        )
    ]
    assert all(s.status == "certified" for s in steps) and sum(s.screened_R + s.screened_L for s in steps) > 600
