"""What solvers decide on their way is right, for every kind of model; decisions of regions too small are noticed."""

from functools import partial

import numpy as np
import pytest

from screenpath.kernels.problem import box
from screenpath.kernels.problem.box import Errors
from screenpath.problem.reduced import Reduced
from screenpath.screen import sparse as rules
from screenpath.solve import make_solver, smo
from screenpath.solve.base import Budget
from screenpath.solve.face import FaceDescent
from tests.safety.fuzz_dynamic import ATTACKS
from tests.width import wide

SMALL = 0.1  # of a radius


@pytest.mark.parametrize("kind", ATTACKS)
def test_no_decision_is_wrong(kind):
    made, wrong = ATTACKS[kind](range(wide(3, 10)))
    assert made > 80 and wrong == 0


@pytest.mark.parametrize("kind", ATTACKS)
def test_regions_that_are_too_small_are_noticed(monkeypatch, kind):
    errors, radius, ball, regions = box.errors_of, box.radius_around, smo.Run.radius, rules.regions_of

    def less(*given, **more):
        found = regions(*given, **more)
        names = "primal_sq", "first_sq", "second_sq"
        return found._replace(**{name: SMALL**2 * getattr(found, name) for name in names})

    monkeypatch.setattr(box, "errors_of", lambda *given: errors(*given)._replace(rounding=-0.3))
    monkeypatch.setattr(box, "radius_around", lambda *given: SMALL * radius(*given))
    monkeypatch.setattr(smo.Run, "radius", lambda run, gap: SMALL * ball(run, gap))
    monkeypatch.setattr(rules, "regions_of", less)
    assert any(ATTACKS[kind](range(seed, seed + 2))[1] for seed in range(0, 20, 2))


def off_by(delta: float, seed: int):
    """Return a problem of rows that are their own columns, the sum over fixed ones being off, and its exact optimum.

    Dual variables, of the loss ``|c - g w|``, are near the ends of their box.
    """
    rng, k = np.random.default_rng(seed), 40
    base, g = rng.normal(size=k), rng.uniform(0.5, 2.0, k)
    alpha = rng.choice([-1.0, 1.0], k) + rng.uniform(-delta, delta, k)
    c = g * (base + alpha * g)
    w = base + delta / np.sqrt(k) * rng.choice([-1.0, 1.0], k)
    best = np.clip((c - g * w) / g**2, -1.0, 1.0)
    w += best * g  # optimal for the sum as it is known
    rows, none = np.diag(g), np.zeros(k)

    def problem(known: float) -> Reduced:
        return Reduced(
            take=lambda: rows, sparse=False, place=None, index=np.arange(k), c=c, lo=none - 1.0, hi=none + 1.0, norms=g,
            offset=0.0, errors=Errors(1e-12, 1e-15, known, 0.0), start_alpha=best, start_sum=w, start_w=w,
            start_margins=g * w, theta=none,
        )  # fmt: skip

    return problem, np.clip(alpha, -1.0, 1.0)


@pytest.mark.parametrize("make", [partial(make_solver, "cd"), partial(make_solver, "newton"), FaceDescent])
def test_what_the_sum_over_fixed_rows_is_off_by_counts(make):
    delta, wrong = 1e-3, {0.0: 0, 1e-3: 0}
    for seed in range(10):
        problem, alpha = off_by(delta, seed)
        for known in wrong:
            found = make().solve(problem(known), tol=-1.0, budget=Budget(1, np.inf), dynamic=True)
            wrong[known] += int(np.count_nonzero(found.decided() * (found.decided() - alpha) > 1e-12))
    assert wrong[0.0] > 0 == wrong[delta]
