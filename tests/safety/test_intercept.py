"""No decision under a free intercept is wrong, whatever the reference; the attack finds rules that are nearly right."""

import numpy as np

from screenpath.models.geometry import Ball
from screenpath.models.lever import LeverBall
from screenpath.models.losses import LOSSES
from screenpath.rules.intercept import lever_ball
from screenpath.solvers.base import Budget
from screenpath.solvers.intercept import FreeNewton
from tests.free_problems import SHAPES, free_problem, free_walk

SURE = 1e-5  # of the sizes of rows and targets: an optimum is known to less than that


def reference(rng, model, C: float, accuracy: str):
    """Return a certificate at C: an arbitrary pair, one of a few Newton steps, or an accurate one."""
    if accuracy == "arbitrary":
        theta = rng.uniform(model.lo, model.hi)
        return model.certify(C, rng.normal(size=model.rows.d) * rng.choice([0.01, 1.0]), theta)
    start = model.start(C)
    limit, tol = {"2 steps": (2, 1e-12), "5 steps": (5, 1e-12), "1e-4": (200, 1e-4), "1e-11": (500, 1e-11)}[accuracy]
    reduced = model.reduce(C, model.nothing_screened(), start)
    solution = FreeNewton().solve(reduced, tol=tol, budget=Budget(limit, np.inf), dynamic=False)
    w, theta = model.lift(C, reduced, solution)
    return model.certify(C, w, theta, start)


ACCURACIES = ("arbitrary", "2 steps", "5 steps", "1e-4", "1e-11")


def attack(seeds, rule) -> tuple[int, int]:
    """Return decisions made, and decisions on the wrong side of their kink, over random problems and references."""
    made = wrong = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        name, shape = str(rng.choice(list(LOSSES))), str(rng.choice(SHAPES[:3]))
        model = free_problem(
            name, shape, seed, n=int(rng.integers(8, 40)), d=int(rng.integers(1, 6)), weighted=seed % 3 == 0
        )
        C0 = float(10.0 ** rng.uniform(-3.0, 1.5))
        C = C0 * float(rng.choice([0.5, 0.93, 1.0, 1.07, 1.5, 4.0]))
        ((step, best),) = free_walk(model, [C], "none", tol=1e-12)
        if best.rel_gap > 1e-10:
            continue
        # Of the optimal intercepts, any may be meant; all of them are between these two.
        beta = model.signless.kinks - model.signs * best.point.products
        size = SURE * (1.0 + np.abs(model.c) + model.norms * np.sqrt(best.point.sqnorm))
        for accuracy in ACCURACIES:
            found = model.screen(rule(reference(rng, model, C0, accuracy), C))
            signless = found.status * model.signs
            made += found.n_R + found.n_L
            matters = model.lo < model.hi
            wrong += int(np.count_nonzero((signless < 0) & (beta > best.high + size) & matters))
            wrong += int(np.count_nonzero((signless > 0) & (beta < best.low - size) & matters))
    return made, wrong


def test_no_decision_is_wrong():
    made, wrong = attack(range(60), lever_ball)
    assert made > 3000 and wrong == 0


def test_the_attack_finds_a_radius_that_is_too_small():
    def shrunk(found, C):
        right = lever_ball(found, C)
        return LeverBall(Ball(right.ball.center, 0.9 * right.ball.radius), C, right.theta, right.residue)

    assert attack(range(60), shrunk)[1] > 0
