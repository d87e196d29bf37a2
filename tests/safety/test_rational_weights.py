"""Weights of samples times those of classes, rounded: proofs hold for the exact products, and the checker agrees."""

from fractions import Fraction as F

import numpy as np
import pytest

from screenpath.catalogue.targets import row_weights
from screenpath.numbers.rounding import UNIT, WEIGHTS_ERROR
from screenpath.problem.l1svm import L1SVM
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.rows.columns import Columns
from screenpath.rows.views import Views
from screenpath.screen.l1svm import parse_feature_rule
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.l1cd import FeatureDescent
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.verify.file import BETWEEN, HIGH, LOW, pack
from screenpath.verify.products import check
from screenpath.walk.loop import PathOptions, walk
from tests.safety.fuzz_data import Held
from tests.safety.rational_penalised import L1, Sparse, fractions

SEEDS = range(12)


def exact_balanced(y, own) -> list[F]:
    """Return the weights of samples times those that make the classes count alike."""
    sums = {label: sum(fractions(own[y == label])) for label in (-1.0, 1.0)}
    return [s * sum(sums.values()) / (2 * sums[label]) for s, label in zip(fractions(own), y.tolist(), strict=True)]


def problem(seed: int):
    """Return rows, labels, weights as computed and as fractions, and a random generator."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 7)), int(rng.integers(1, 4))
    X, y = rng.normal(size=(n, d)), np.where(np.arange(n) % 2, 1.0, -1.0)
    own, classes = np.round(rng.uniform(0.1, 3.0, n), 1), np.round(rng.uniform(0.1, 3.0, 2), 2)
    if seed % 3 == 0:
        return rng, X, y, row_weights(y, "balanced", own), exact_balanced(y, own)
    named = dict(zip((-1.0, 1.0), classes.tolist(), strict=True))
    exact = [F(s) * F(named[label]) for s, label in zip(own.tolist(), y.tolist(), strict=True)]
    return rng, X, y, row_weights(y, named, own), exact


@pytest.mark.parametrize("n", [10, 1000, 20_000])
def test_balanced_weights_of_many_samples_are_within_their_error(n):
    """A sum of n numbers, added one after the other, is off by up to n units."""
    rng = np.random.default_rng(n)
    y, own = np.where(rng.random(n) < 0.3, 1.0, -1.0), rng.uniform(0.1, 3.0, n) * 10.0 ** rng.uniform(-3.0, 3.0, n)
    found = row_weights(y, "balanced", own)
    for value, exact in zip(found.tolist(), exact_balanced(y, own), strict=True):
        assert abs(F(value) / exact - 1) <= F(2.01 * UNIT) < F(WEIGHTS_ERROR)


def checked(model: str, X, y, weights, entry: dict, **more):
    """Return what the checker finds out about a step."""
    header = {
        "model": model, "tol": 1e-9, "bias": 0.0, "scaling": "none", "weights": weights,
        "labels": {"+1": 1.0, "-1": -1.0},
        "data": {"n_samples": len(y), "n_features": X.shape[1]}, **more,
    }  # fmt: skip
    source = Held(X, y, header)
    (pair,) = check(header, [{"step": 0, "status": "certified", **entry}], source)
    return pair


def sparse_faults(seed: int, gamma: float = 0.5) -> list[str]:
    """Walk a path of a sparse SVM; return what its certificates and the checker claim and fractions deny."""
    rng, X, y, weights, fine = problem(seed)
    exact, rounded = Sparse(X, y.astype(int), 1, gamma, fine), Sparse(X, y.astype(int), 1, gamma, weights)
    model, found = SparseModel(Views(X), y.astype(np.int64), 1, 0.0, gamma, weights), []
    beta = 0.3 * model.beta_max
    pairs = [(share * model.at(beta).alpha_max(), beta) for share in (0.5, 0.1, 0.01)]
    walked = walk(SparseGrid(model), pairs, parse_sparse_rule("none"), make_sparse_solver("auto"), PathOptions(1e-14))
    for step, c in walked:
        # Of the exact parts of the sum of the weights the dual point is this one, one factor taking it into its box.
        ratios = [a / b for a, b in zip(rounded.weights, exact.weights, strict=True)]
        theta = [r / max(ratios) * v for r, v in zip(ratios, fractions(c.theta), strict=True)]
        primal, dual = exact.objectives(c.w, theta, c.alpha, c.beta)
        states = np.where(c.theta == 0.0, LOW, np.where(c.theta == 1.0, HIGH, BETWEEN)).astype(np.uint8)
        index = np.flatnonzero(c.w)
        entry = {"alpha": c.alpha, "beta": c.beta, "index": index, "values": c.w[index], "states": pack(states)}
        entry["between"] = c.theta[states == BETWEEN]
        pair = checked("sparse-svm", X, y, weights, entry, smoothing=gamma)
        for who, gap, (value, error) in (
            ("certificate", step.gap, (step.primal, c.primal_error)), ("checker", pair.gap, pair.primal),
        ):  # fmt: skip
            found += [f"{who}: gap"] * (F(gap) < primal - dual)
            found += [f"{who}: primal"] * (abs(F(float(value)) - primal) > F(float(error)))
        assert pair.gap <= step.gap and step.status in ("certified", "rounding", "budget")
    return found


def test_a_sparse_svm_counts_the_rounding_of_its_weights():
    assert [sparse_faults(seed) for seed in SEEDS] == [[] for _ in SEEDS]


def test_without_that_count_gaps_are_too_small(monkeypatch):
    monkeypatch.setattr("screenpath.problem.sparse.SHARES_ERROR", 0.0)
    monkeypatch.setattr("screenpath.verify.model.weights_error", lambda header: 0.0)
    found = [claim for seed in SEEDS for claim in sparse_faults(seed)]
    assert "certificate: gap" in found and "checker: gap" in found


def test_an_l1_svm_counts_the_rounding_of_its_weights():
    proven = 0
    for seed in SEEDS:
        rng, X, y, weights, fine = problem(seed)
        exact, model = L1(X, y, fine), L1SVM(Columns(X, y, 1, weights))
        lams = model.lam_max * np.array([0.5, 0.1, 0.01])
        for step, c in walk(model, lams, parse_feature_rule("none"), FeatureDescent(newton=True), PathOptions(1e-13)):
            primal, _ = exact.objectives(c.w, c.bias, c.lam)
            best, index = exact.optimum(c.w, c.bias, c.lam), np.flatnonzero(c.w)
            if best is None:
                continue
            entry = {"lambda": c.lam, "index": index, "values": c.w[index], "b": float(c.bias)}
            pair = checked("l1svm", X, y, weights, entry, bias=1.0)
            for gap, (value, error) in ((step.gap, (step.primal, c.primal_error)), (pair.gap, pair.primal)):
                assert F(gap) >= primal - exact.dual(best, F(c.lam)), (seed, step)
                assert abs(F(float(value)) - primal) <= F(float(error)), (seed, step)
            proven += 1
    assert proven > 20
