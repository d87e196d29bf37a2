"""A rule that combines others decides all that each of them decides, row by row and feature by feature."""

import itertools

import numpy as np
import pytest

from screenpath.catalogue.losses import SVM
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_free import FreeSparseModel
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.rows.memory import MemoryRows
from screenpath.rows.views import Views
from screenpath.screen import parse_kernel_rule, parse_rule
from screenpath.screen.sparse import RULES, screen
from screenpath.solve import make_solver
from screenpath.solve.base import Budget
from screenpath.solve.newton import Newton
from screenpath.solve.smo import make_kernel_solver
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk.loop import PathOptions, solve_point
from tests.kernel_problems import kernel_svm_model
from tests.sparse_problems import SDCA
from tests.width import wide


def solved(model, alpha, sweeps=None):
    """Return the optimum at ``alpha`` to a gap near rounding, or what some sweeps give."""
    reduced = model.reduce(alpha, model.nothing_screened(), model.start(alpha))
    name = SDCA if sweeps is not None and not model.intercept else "newton"
    budget = Budget(sweeps or 300, np.inf)
    got = make_sparse_solver(name).solve(reduced, tol=1e-14, budget=budget, dynamic=False)
    return model.certify(alpha, got.w, None if sweeps is None else got.alpha)


def models(seed, classes, kind=SparseModel):
    """Yield models of one random problem at several beta, and a few values of alpha."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 160)), int(rng.integers(5, 45))
    codes = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < rng.choice([0.3, 1.0]))
    strong = min(4, d)
    X[:, :strong] = 1.5 * (codes[:, None] - 0.5 * (classes - 1)) + 0.87 * rng.standard_normal((n, strong))
    labels = 2 * codes - 1 if classes == 2 else codes
    base = kind(Views(X), labels.astype(np.int64), classes if classes > 2 else 1, 0.0, float(rng.choice([0.05, 0.5])))
    for share in (0.05, 0.3, 0.7):
        model = base.at(share * base.beta_max)
        yield model, [place * model.alpha_max() for place in (0.5, 0.1, 0.02)]


@pytest.mark.parametrize(("classes", "kind"), [(2, SparseModel), (3, SparseModel), (2, FreeSparseModel)])
def test_sifs_decides_all_that_its_parts_decide(classes, kind):
    pairs, alone, wrong, seeds = 0, 0, 0, wide(6, 20)
    for seed in range(seeds):
        for model, alphas in models(seed, classes, kind):
            for start, ratio in itertools.product(alphas, (1.0, 0.9, 0.6)):
                best = solved(model, ratio * start)
                for sweeps in (None, 5):
                    reference = solved(model, start, sweeps)
                    for first in (True, False):
                        found = {
                            name: screen(model, reference, ratio * start, *what, first) for name, what in RULES.items()
                        }
                        both, rows, features = found["sifs"], found["iss"], found["ifs"]
                        assert np.all((rows.duals == 0) | (rows.duals == both.duals)), (seed, start, ratio, first)
                        assert np.all((features.keep != 0) | (both.keep == 0)), (seed, start, ratio, first)
                        alone += np.count_nonzero(features.keep == 0) + np.count_nonzero(rows.duals)
                        wrong += np.count_nonzero((both.keep == 0) & (np.abs(best.w) > 1e-7))
                        wrong += np.count_nonzero((both.duals < 0) & (model.free == 0) & (best.theta > 1e-5))
                        wrong += np.count_nonzero((both.duals > 0) & (model.free == 0) & (best.theta < 1.0 - 1e-5))
                        pairs += 1
    assert (pairs > 50 * seeds, alone > 500 * seeds, wrong) == (True, True, 0)


def box_models(seed):
    """Yield pairs of a linear or kernel model and how its rules are called, without and with a free intercept."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 120)), int(rng.integers(2, 12))
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    X = rng.standard_normal((n, d)) + rng.choice([0.3, 1.0]) * y[:, None] + rng.choice([0.0, 3.0])
    yield SVM.model(MemoryRows(X), y), parse_rule, make_solver("auto")
    yield SVM.model(MemoryRows(X), y, None, "free"), parse_rule, Newton()
    gram = GramRows(X, KernelFunction("rbf", 1.0 / d), y, 1 << 24)
    yield kernel_svm_model(gram), parse_kernel_rule, make_kernel_solver("auto")


CONTAINED = [("it", "bt1"), ("it", "bt2"), ("essnsv", "ssnsv")]


def test_box_rules_decide_all_that_their_parts_decide():
    """Theory: the lens lies in both balls (Ogawa 2014), the dome of ESSNSV in that of SSNSV (Wang 2014)."""
    counts = dict.fromkeys(CONTAINED, 0)
    for seed in range(12):
        for model, rule_of, solver in box_models(seed):
            for tol, start, ratio in itertools.product((1e-9, 1e-2), (0.01, 0.3, 5.0), (1.02, 1.3, 2.0)):
                options = PathOptions(tol=tol)
                reference, far = (
                    solve_point(model, C, 0, model.start(C), rule_of("none"), solver, options)[1]
                    for C in (start, 2.0 * start)
                )
                found = {}
                for name in sorted({name for pair in CONTAINED for name in pair}):
                    rule = rule_of(name)
                    if rule.needs_far_end:
                        rule.begin([start, 2.0 * start], far, resumed=True)
                    found[name] = rule.before(model, reference, ratio * start).status
                for whole, part in CONTAINED:
                    if whole in found:
                        decided = found[part] != 0
                        same = found[whole][decided] == found[part][decided]
                        assert same.all(), (seed, rule_of.__name__, tol, start, ratio, whole, part)
                        counts[whole, part] += np.count_nonzero(decided)
    assert all(count > 1000 for count in counts.values()), counts
