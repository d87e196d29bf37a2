"""Search for unsafe decisions: of rules that screen while a solver runs, and of those under a free intercept.

Usage: python tests/safety/fuzz_dynamic.py --decisions 5000 [--seed 0] [--kinds dynamic]

``dynamic``: paths are walked with the dynamic rule, and each decision is judged by a ball around the optimum: that of a
pair solved without screening, whose gap is formed in fractions (sparse SVM) or in extended precision (box models).
``intercept``: a decision is one row that one region fixes, from a reference of any accuracy; it is wrong where an
optimum, known to 1e-10, has the row on the other side of its kink, for every intercept that may be meant.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import contextmanager
from functools import partial
from math import sqrt
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from screenpath.catalogue.losses import LOSSES
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.rows.views import Views
from screenpath.screen import parse_kernel_rule, parse_rule
from screenpath.screen import sparse as rules
from screenpath.solve import make_solver, sparse_newton
from screenpath.solve.smo import make_kernel_solver
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk.loop import PathOptions, solve_point, walk
from tests.free_problems import SHAPES, free_problem
from tests.safety import sparse_attack, test_intercept, test_intercept_chunks, test_intercept_kernel, test_kernel
from tests.safety.problems import UNSCREENED, dense_rows, judged, optimum, random_problem, random_scale
from tests.safety.rational_penalised import FreeSparse, Sparse

BATCH = 10  # problems of each kind in turn
NOISE = 1e-12  # of the size of a product in double precision

# -- the sparse SVM ----------------------------------------------------------------------------------------------------


@contextmanager
def watched():
    """Yield a list that gets the model, the parameter and all decisions of each time that a solver screens."""
    seen, honest = [], rules.tighten

    def tighten(model, at, point, alpha):
        found = honest(model, at, point, alpha)
        seen.append((model, alpha, at.copy()))
        return found

    sparse_newton.tighten = tighten
    try:
        yield seen
    finally:
        sparse_newton.tighten = honest


def three_or_more(rng) -> SparseModel:
    """Return a small model at ``beta = 0`` of 3 to 5 classes, mostly out of balance, far from 0; now and then
    weights.
    """
    classes, n, d = int(rng.integers(3, 6)), int(rng.integers(15, 60)), int(rng.integers(2, 15))
    y = np.concatenate([np.arange(classes), rng.choice(classes, n - classes, p=rng.dirichlet(2.0 * np.ones(classes)))])
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-0.5, 0.5, size=d) + 3.0 * rng.normal(size=d)
    X[rng.random((n, d)) < rng.choice([0.0, 0.6])] = 0.0
    X[:, : min(classes, d)] += (rng.uniform(0.0, 4.0) * np.eye(classes))[y][:, : min(classes, d)]
    weights = rng.integers(0, 4, size=n).astype(float) if rng.random() < 0.4 else None
    if weights is not None:
        weights[:classes] = 1.0
    views = Views(sp.csr_array(X) if rng.random() < 0.5 else X)
    return SparseModel(views, y.astype(np.int64), classes, 0.0, float(rng.choice([0.5, 0.1, 0.9])), weights)


def sparse_problem(rng, classes: bool, free: bool):
    """Return a model at ``beta = 0`` and its twin in fractions."""
    model = three_or_more(rng) if classes else sparse_attack.labelled(rng)
    X = np.zeros((model.n, model.d))
    data, indices, ends = model.views.by_row
    for i in range(model.n):
        s, e = ends[i], ends[i + 1]
        X[i, np.arange(model.d) if e - s == model.d else indices[s:e]] = data[s:e]
    labels, weights = np.asarray(model.labels), None if (model.weights == 1.0).all() else model.weights
    if free:
        return model, FreeSparse(X, labels, 1, model.gamma, weights)
    model = SparseModel(Views(X), labels.astype(np.int64), model.classes, 0.0, model.gamma, weights)
    return model, Sparse(X, labels, model.classes, model.gamma, weights)


def gap_of(exact, certificate, alpha: float) -> float:
    """Return the gap of a pair, formed in fractions; infinite where there is no dual point."""
    primal, dual = exact.gap_of(certificate, alpha)
    return float("inf") if dual is None else float(primal - dual)


def attack_sparse(seeds, solver: str, classes=False, free=False) -> tuple[int, int]:
    """Return the decisions that a solver makes on its way, and those that the optimum contradicts."""
    made = wrong = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        base, exact = sparse_problem(rng, classes, free)
        betas = base.beta_max * 10.0 ** rng.uniform(-1.5, -0.1, 2)
        pairs = [(base.at(b).alpha_max() * float(r), float(b)) for b in betas for r in 10.0 ** rng.uniform(-3, 0, 2)]
        rule, tol = str(rng.choice(["gap", "sifs+gap"])), float(rng.choice([1e-4, 1e-8, 1e-12]))
        how = rules.parse_sparse_rule(rule), make_sparse_solver(solver), options(tol)
        with watched() as seen:
            for _ in walk(SparseGrid(base), pairs, *how):
                pass
        known: dict = {}
        for model, alpha, at in seen:
            if (alpha, model.beta) not in known:
                best = sparse_attack.solved(model, alpha)
                gap = max(gap_of(exact, best, alpha), 0.0)
                known[alpha, model.beta] = best, sqrt(2.0 * gap / alpha), sqrt(2.0 * model.n * gap / model.gamma)
            best, far, off = known[alpha, model.beta]
            weights = np.tile(model.weights, model.classes)
            duals = (model.free == 0) & (at.duals != 0) & (weights > 0.0)
            end = np.where(at.duals > 0, 1.0, 0.0)
            made += int(np.count_nonzero(duals) + np.count_nonzero(at.keep == 0))
            wrong += int(np.count_nonzero(duals & (np.abs(best.theta - end) * np.sqrt(weights) > off * (1.0 + NOISE))))
            wrong += int(np.count_nonzero((at.keep == 0) & (np.abs(best.w) > far * (1.0 + NOISE))))
    return made, wrong


# -- box models --------------------------------------------------------------------------------------------------------


def options(tol: float, **more) -> PathOptions:
    """Return options of a path that need not converge."""
    return PathOptions(tol=tol, max_epochs=400, **more)


def attack_box(seeds, make, parse, solvers, judge) -> tuple[int, int]:
    """Return the decisions on paths with the gap rule, alone or after others, and those that the optimum contradicts.

    ``judge(model, C)`` returns what must not be: a function of decisions.
    """
    made = wrong = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        model, _ = make(rng)
        found: list = []

        def kept(model, C, rank, reference, certificate, decided, found=found):
            found.append((C, decided.copy()))
            return {}

        rule, solver = str(rng.choice(["gap", "gap", "dvi+gap"])), solvers(str(rng.choice(["newton", "auto", "first"])))
        grid = random_scale(rng, model) * np.array([0.3, 1.0, 1.2, 30.0])
        for _ in walk(model, grid, parse(rule), solver, options(float(10.0 ** rng.uniform(-13, -3)), audit=kept)):
            pass
        matters = model.lo < model.hi
        for C, decided in found:
            made += int(np.count_nonzero(decided))
            low, high = judge(model, C)
            wrong += int(np.count_nonzero(matters & np.where(decided < 0, high < 0.0, (decided > 0) & (low > 0.0))))
    return made, wrong


def free_rows(rng):
    name, shape, seed = str(rng.choice(list(LOSSES))), str(rng.choice(SHAPES[:3])), int(rng.integers(10**6))
    n, d = int(rng.integers(8, 40)), int(rng.integers(1, 6))
    return free_problem(name, shape, seed, n=n, d=d, weighted=bool(rng.random() < 0.3)), name


def of_rows(model, C: float) -> tuple:
    """Return the least and the most that each row's product may be above its kink, at the optimum."""
    truth = optimum(model, dense_rows(model), C)
    return truth.low - model.c, truth.high - model.c


def of_kernel(model, C: float) -> tuple:
    """Return the same behind a kernel."""
    truth = test_kernel.optimum(model, kernel_matrix(model), C)
    return truth.low - model.c, truth.high - model.c


def kernel_matrix(model) -> np.ndarray:
    return np.array([model.rows.weighted_sum(e) for e in np.eye(model.size)]).astype(np.longdouble)


def of_free(model, C: float, solver, square) -> tuple:
    """Return the same with a free intercept, of which the one that suits the row is taken.

    ``square(model)`` returns ``G G'`` in extended precision.
    """
    best = solve_point(model, C, 0, model.start(C), UNSCREENED, solver("newton"), options(1e-13))[1]
    Q, signs = square(model), model.signs.astype(np.longdouble)
    alpha = np.longdouble(C) * best.theta
    products, norms = Q @ alpha, np.sqrt(np.diag(Q))
    kinks, size = signs * (model.c - products), float(np.sqrt(max(alpha @ products, 0.0)))

    def loss(b):
        t = model.c - products - signs * b
        return np.longdouble(C) * np.maximum(model.lo * t, model.hi * t).sum()

    losses = np.array([loss(b) for b in kinks])
    near = kinks[losses <= losses.min() * (1.0 + np.longdouble(1e-16))]
    # A dual point whose signed sum is 0 exactly is near this one: a row with room takes what is left.
    left = float(abs(signs @ alpha)) + 1e-18 * float(np.abs(alpha).sum())
    off = left * float(np.max(np.abs(kinks)) + np.max(norms) * (size + left * np.max(norms)))
    gap = float(alpha @ products + losses.min() - model.c @ alpha) + off
    far = float(np.sqrt(2.0 * max(gap, 0.0))) + left * float(norms.max())
    slack = far * (norms + norms.max()) + NOISE * (norms * size + np.abs(model.c))
    ends = signs * near.min(), signs * near.max()
    away = products - model.c
    return away + np.minimum(*ends) - slack, away + np.maximum(*ends) + slack


def of_free_kernel(model, C: float) -> tuple:
    return of_free(model, C, make_kernel_solver, kernel_matrix)


def with_first(make, first: str):
    """Return what makes a solver, or the one that is only some models'."""
    return lambda name: make(first if name == "first" else name)


ATTACKS = {
    "newton": partial(attack_sparse, solver="newton"),
    "newton classes": partial(attack_sparse, solver="newton", classes=True),
    "newton free": partial(attack_sparse, solver="newton", free=True),
    "rows": partial(attack_box, make=random_problem, parse=parse_rule, solvers=with_first(make_solver, "cd"),
                    judge=of_rows),
    "kernel": partial(attack_box, make=test_kernel.random_problem, parse=parse_kernel_rule,
                      solvers=with_first(make_kernel_solver, "smo"), judge=of_kernel),
    "kernel free": partial(attack_box, make=test_intercept_kernel.free_problem, parse=parse_rule,
                           solvers=with_first(make_kernel_solver, "smo"), judge=of_free_kernel),
}  # fmt: skip


# Rules, models, references and weights under a free intercept; of sparse SVMs a decision may be a feature as well.
INTERCEPT = {
    **{name: partial(test_intercept.attack, rule=rule) for name, rule in test_intercept.RULES.items()},
    "range": test_intercept_chunks.attack_ranges,
    **{f"chunk {form}": partial(test_intercept_chunks.attack_walks, form=form) for form in "Cs"},
    "sparse-svm": sparse_attack.attack,
    "sparse-svm-exact": partial(sparse_attack.attack, make=sparse_attack.exact_hinge),
}
GROUPS = {"dynamic": ATTACKS, "intercept": INTERCEPT}


def fuzz(attacks: dict, decisions: int, seed: int = 0, report=None):
    """Make at least so many decisions of each kind; return those made, and wrong ones as (first seed, kind, how many).

    A kind of problem that decides nothing ends after as many problems.
    """
    made, faults = Counter(), []
    for kind, attack in attacks.items():
        for first in range(seed, seed + decisions, BATCH):
            if made[kind] >= decisions:
                break
            count, wrong = attack(range(first, first + BATCH))
            made[kind] += count
            faults += [(first, kind, wrong)] if wrong else []
        if report:
            report(f"{kind}: {made[kind]} decisions, {len(faults)} faults so far")
    return made, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="dynamic", choices=GROUPS)
    arguments = parser.parse_args()
    made, faults = fuzz(GROUPS[arguments.kinds], arguments.decisions, arguments.seed, partial(print, file=sys.stderr))
    print(f"{sum(made.values())} decisions, {sum(fault[2] for fault in faults)} wrong")
    return judged(faults, "from seed {}: {}, {} wrong decisions")


if __name__ == "__main__":
    sys.exit(main())
