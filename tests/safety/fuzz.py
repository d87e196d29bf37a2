"""Search for unsafe decisions: rules x models x reference accuracies x weights x storage, at random.

Usage: python tests/safety/fuzz.py --checks 100000 [--seed 0]

A check is one region (one rule, one reference, one parameter) applied to all rows of one problem. It fails where the
ball of an accurate optimum proves a decision wrong, or proves that the optimum is not in the region.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from screenpath.regions.geometry import ROUNDING
from screenpath.screen import STATIC
from screenpath.screen.box import pair_ball
from screenpath.screen.pathwise import Dual, Pathwise, ball_floor, loss_floor, nearer_pair, primal_value
from screenpath.solve import make_solver
from screenpath.walk.loop import PathOptions, solve_point
from tests.safety.problems import ACCURACIES, dense_rows, judged, optimum, random_problem, random_scale, reference

TOLERANCES = (0.1, 1e-2, 1e-3, 1e-6)  # of the chunks' walks
STATICS = tuple({rule: name for name, rule in reversed(STATIC.items())}.values())  # one name of each rule
RULES = (*STATICS, "gap", "loss floor", "chunk C", "chunk s")


def check_problem(seed: int):
    """Check every rule with every accuracy on one random problem.

    Yields rule and accuracy, how many rows were decided, the faults that are proven, and what the problem was.
    """
    rng = np.random.default_rng(seed)
    model, words = random_problem(rng)
    G = dense_rows(model)
    C0 = random_scale(rng, model)
    parameters = C0 * np.array([0.5, 1.0, 1.0 + 1e-6, 1.07, 1.5, 4.0])
    exact = [optimum(model, G, C) for C in parameters]
    distant = [
        reference(rng, model, parameters[-1] * rng.uniform(1.0, 3.0), a)
        for a in ("arbitrary", "1 epoch", "1e-6", "1e-12")
    ]
    for accuracy in ACCURACIES:
        near = reference(rng, model, C0, accuracy)
        far = distant[rng.integers(len(distant))]
        for C, truth in zip(parameters, exact, strict=True):
            for name in STATICS:
                rule = STATIC[name]()
                region = rule.region(model, near, C, far) if rule.needs_far_end else rule.region(model, near, C)
                yield (name, accuracy, *judge(model, region, truth), words)
            yield ("loss floor", accuracy, 0, floor_fault(model, near, far, C, truth), words)
        yield ("gap", accuracy, *judge(model, pair_ball(near, near.C), optimum(model, G, near.C)), words)
        served = parameters[1:]  # a chunk is decided once, from the first
        for form in "Cs":
            yield from check_chunk(rng, model, near, far, served, exact[1:], form, accuracy, words)


def check_chunk(rng, model, near, far, parameters, exact, form, accuracy, words):
    """Walk a chunk and judge what its steps claim to have decided, proven or withdrawn, however the walk ended."""
    dynamic, solver = bool(rng.random() < 0.3), make_solver(str(rng.choice(["cd", "newton"])))
    screening = Pathwise(STATIC["essnsv"](), dynamic, "essnsv", chunk=len(parameters), form=form)
    screening.begin(parameters, far, resumed=False)
    claimed = []
    options = PathOptions(
        tol=float(rng.choice(TOLERANCES)), max_epochs=int(rng.choice([1, 5, 400])),
        audit=lambda *arguments: claimed.append(arguments[-1]) or {},
    )  # fmt: skip
    for rank, (C, truth) in enumerate(zip(parameters, exact, strict=True)):
        step, near = solve_point(model, C, rank, near, screening, solver, options)
        decided, faults = wrong_decisions(model, claimed[-1], truth)
        counted = (step.screened_R, step.screened_L) == tuple(np.count_nonzero(claimed[-1] == k) for k in (-1, 1))
        yield (f"chunk {form}", accuracy, decided, faults + int(not (counted or dynamic)), words)


def judge(model, region, truth):
    """Return how many rows the region decides and how many faults are proven."""
    screened = model.screen(region)
    products = tuple(p.products if p.products is not None else model.margins(p.vector) for p in region.points)
    lower, upper = region.bounds(products, model.norms)
    slack = ROUNDING * (model.norms * region.extent + np.abs(model.c))
    outside = np.any(truth.high < lower - slack) or np.any(truth.low > upper + slack)
    decided, faults = wrong_decisions(model, screened.status, truth)
    return decided, faults + int(outside)


def wrong_decisions(model, status, truth):
    """Return how many rows are decided and how many of them the accurate optimum contradicts."""
    wrong = np.where(status < 0, truth.high < model.c, (status > 0) & (truth.low > model.c))
    wrong &= model.lo < model.hi  # the dual variable of a row of weight 0 has one end only, which is right
    return int(np.count_nonzero(status)), int(np.count_nonzero(wrong))


def loss(model, truth):
    """Return the loss at the centre of the accurate optimum's ball."""
    t = model.c - truth.G @ truth.center
    return np.maximum(model.lo * t, model.hi * t).sum()


def loss_error(model, truth):
    """Return how much the loss can change within the ball of the accurate optimum."""
    return (np.maximum(np.abs(model.lo), np.abs(model.hi)) * (truth.high - truth.low)).sum() / 2


def floor_fault(model, near, far, C, truth) -> int:
    """Return 1 where the lower bound of the loss is proven to be above the loss."""
    primal = min(primal_value(near, C), primal_value(far, C))
    pair, further = nearer_pair(model, near, far, C)
    made = ball_floor(pair, further, Dual.of(near), Dual.of(far))
    floor = max(loss_floor(near, C, primal), loss_floor(far, C, primal), made)
    return int(floor > loss(model, truth) + loss_error(model, truth))


def fuzz(checks: int, seed: int = 0, report=None):
    """Run at least ``checks`` checks; return the counts by rule and a list of faults (seed, rule, accuracy, words)."""
    done, decided, faults, problem = Counter(), Counter(), [], seed
    while sum(done.values()) < checks:
        for rule, accuracy, rows, wrong, words in check_problem(problem):
            done[rule] += 1
            decided[rule] += rows
            if wrong:
                faults.append((problem, rule, accuracy, wrong, words))
        problem += 1
        if report and problem % 50 == 0:
            report(f"{sum(done.values())} checks, {sum(decided.values())} decisions, {len(faults)} faults")
    return done, decided, faults


def finds(rule: str, checks: int, seed: int = 0) -> bool:
    """Tell whether ``checks`` checks have a fault of a rule: a control needs to see no more than one."""
    done, problem = 0, seed
    while done < checks:
        for found, _, _, wrong, _ in check_problem(problem):
            done += 1
            if wrong and found == rule:
                return True
        problem += 1
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checks", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    done, decided, faults = fuzz(arguments.checks, arguments.seed, lambda text: print(text, file=sys.stderr))
    for rule in RULES:
        print(f"{rule:12s} {done[rule]:8d} checks {decided[rule]:10d} decisions")
    print(f"{'all':12s} {sum(done.values()):8d} checks {sum(decided.values()):10d} decisions, {len(faults)} faults")
    return judged(faults, "seed {}: {} from a reference of accuracy '{}': {} faults ({})")


if __name__ == "__main__":
    sys.exit(main())
