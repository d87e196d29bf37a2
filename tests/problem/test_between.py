"""The proven gap at any C between two solved steps, against exact arithmetic and against optima."""

import copy
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from screenpath import lad_path, load_run, quantile_path, svm_path, svr_path
from screenpath.errors import UsageError
from screenpath.problem.between import Between, Range, Solved
from tests.safety.problems import ACCURACIES, random_problem, random_scale, reference
from tests.safety.rational import Exact, dot
from tests.width import wide

PATHS = {
    "svm": (svm_path, {}, lambda y, form: np.maximum(0.0, 1.0 - y * form)),
    "lad": (lad_path, {}, lambda y, form: np.abs(y - form)),
    "quantile": (quantile_path, {"tau": 0.8}, lambda y, form: np.maximum(-0.2 * (y - form), 0.8 * (y - form))),
    "svr": (svr_path, {"epsilon": 0.3}, lambda y, form: np.maximum(0.0, np.abs(y - form) - 0.3)),
}


def of_certificate(one) -> Solved:
    return Solved(one.C, one.primal, one.dual, one.gap, one.point.vector)


def exact_gap(exact: Exact, first, second, s: Fraction) -> tuple[Fraction, Fraction]:
    """Return the C at a share ``s`` of the way, and the gap of the mean there, in fractions."""

    def mean(a, b):
        return [(1 - s) * Fraction(float(p)) + s * Fraction(float(q)) for p, q in zip(a, b, strict=True)]

    C = mean([first.C], [second.C])[0]
    alpha = [
        (1 - s) * Fraction(first.C) * Fraction(float(p)) + s * Fraction(second.C) * Fraction(float(q))
        for p, q in zip(first.theta, second.theta, strict=True)
    ]
    there = copy.copy(exact)
    there.C = C
    total = [sum(a * g[j] for a, g in zip(alpha, exact.G, strict=True)) for j in range(len(exact.G[0]))]
    return C, there.primal(mean(first.point.vector, second.point.vector)) - dot(exact.c, alpha) + dot(total, total) / 2


def pairs(seed: int):
    """Yield models with certificates of every quality at two values of C."""
    rng = np.random.default_rng(seed)
    while True:
        model, words = random_problem(rng)
        C = random_scale(rng, model)
        ends = [reference(rng, model, at, str(rng.choice(ACCURACIES))) for at in (C, C * 10.0 ** rng.uniform(0.001, 1))]
        if ends[0].C < ends[1].C and all(math.isfinite(end.gap) for end in ends):
            yield model, ends, words


def test_the_bound_holds_in_exact_arithmetic():
    rng, source, met = np.random.default_rng(7), pairs(1), 0
    for _ in range(wide(25, 300)):
        model, (first, second), words = next(source)
        between, exact = Between.of(of_certificate(first), of_certificate(second)), Exact(model, first.C)
        worst_C, worst = between.worst
        for share in (0.5, between.share(worst_C), *rng.random(wide(1, 8))):
            C, gap = exact_gap(exact, first, second, Fraction(float(share)))
            assert gap <= between.gap(float(C)) * (1 + 1e-15) <= worst * (1 + 1e-12), words
            back = Between.of(between.second, between.first)
            assert back.bend == pytest.approx(between.bend, rel=1e-9) and gap <= back.gap(float(C)) * (1 + 1e-15)
            met += gap > 0.5 * between.gap(float(C))
    assert met > 5  # it is no wild guess


def test_without_its_bend_or_with_a_longer_way_the_bound_fails():
    source, broken, wrong_sign = pairs(2), 0, 0
    for _ in range(wide(25, 100)):
        model, (first, second), _ = next(source)
        between, exact = Between.of(of_certificate(first), of_certificate(second)), Exact(model, first.C)
        C, gap = exact_gap(exact, first, second, Fraction(1, 2))
        broken += gap > replace(between, bend=0.0).gap(float(C))
        moved = float(np.linalg.norm(first.point.vector - second.point.vector))
        wrong_sign += gap > replace(between, bend=max(between.bend - 0.5 * moved * moved, 0.0)).gap(float(C))
    assert broken > 2 and wrong_sign > 2


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("options", [{}, {"bias": 1.0, "scale": "standard"}, {"intercept": "free"}], ids=str)
def test_no_solution_is_better_by_more_than_the_gap(name, options):
    """The objective of the mean, evaluated here, against that of accurate paths over many more values of C."""
    function, own, loss = PATHS[name]
    claims = 0
    for seed in range(wide(2, 12)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 4)) * [1.0, 2.0, 0.5, 1.0] + [0.0, 3.0, 0.0, -1.0]
        y = X @ [1.0, 0.5, 0.0, 0.2] + rng.normal(size=40)
        y = np.where(y > np.median(y), 1.0, -1.0) if name == "svm" else y
        path = function(X, y, grid=int(rng.integers(2, 8)), tol=10.0 ** -rng.integers(2, 9), **own, **options)
        values = np.geomspace(0.0101, 9.9, wide(12, 80))
        accurate = function(X, y, grid=values, tol=1e-9, **own, **options)
        rows = (X - X.mean(axis=0)) / X.std(axis=0) if "scale" in options else X
        worst, _ = path.worst_between
        for C, step in zip(values, accurate.steps, strict=True):
            found = path.at(C)
            w, b = found.coef * (X.std(axis=0) if "scale" in options else 1.0), found.intercept
            form = X @ found.coef + b
            constant = 0.0
            if "bias" in options:
                constant = float(np.mean(form - rows @ w))
            primal = 0.5 * (w @ w + constant * constant) + C * loss(y, form).sum()
            assert primal - step.primal <= found.gap + 1e-11 * primal, (seed, C)
            assert found.rel_gap <= worst * (1 + 1e-12)
            assert found.gap <= (1 + 1e-9) * found.rel_gap * (primal + found.gap)
            np.testing.assert_array_equal(path.coef(C=C), found.coef)
            claims += 1
    assert claims == wide(2, 12) * wide(12, 80)


def test_at_a_step_it_is_that_step():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.tile([1.0, -1.0], 15)
    path = svm_path(X, y, grid=[0.1, 1.0, 10.0])
    found = path.at(1.0)
    assert found.steps == (path[1],) and (found.gap, found.rel_gap) == (path[1].gap, path[1].rel_gap)
    np.testing.assert_array_equal(found.coef, path.coef(1))
    assert "step 1, relative gap" in repr(found) and "between steps 1 and 2" in repr(path.at(2.0))
    np.testing.assert_array_equal(path.predict(X, C=2.0), path.at(2.0).predict(X))
    with pytest.raises(UsageError, match="no steps of the path lie around C=11\n.*0.1 to 10"):
        path.at(11)
    with pytest.raises(UsageError, match="C is a number"):
        path.at("a")
    alone = svm_path(X, y, grid=[1.0])
    assert alone.worst_between == (pytest.approx(alone[0].rel_gap), 1.0)


def test_a_run_folder_proves_the_same(tmp_path):
    """Weights in the units of the data are taken back to those of the model, rounding counted."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 4)) * [1.0, 100.0, 1e-3, 1.0] + [0.0, 1e4, 0.0, -1.0]
    y = np.where(rng.random(50) < 0.5, 1.0, -1.0)
    for options in ({}, {"scale": "maxabs", "intercept": "free"}, {"scale": "standard", "bias": 2.0}):
        path = svm_path(X, y, grid=6, tol=1e-8, **options)
        path.save(tmp_path / "run", force=True)
        stored = load_run(tmp_path / "run")
        for C in (0.013, 0.4, 7.0):
            here, there = path.at(C), stored.at(C)
            rounding = 1e-13 * here.gap / here.rel_gap  # of the objective, whose digits a gap of 1e-8 of it has lost
            assert here.gap <= there.gap * (1 + 1e-12) <= here.gap * (1 + 1e-6) + rounding
            np.testing.assert_array_equal(here.coef, there.coef)
            np.testing.assert_array_equal(here.predict(X), stored.predict(X, step=f"C={C}"))


def test_paths_without_a_c_of_features_are_refused():
    from screenpath import kernel_svm_path, l1_svm_path

    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.tile([1.0, -1.0], 15)
    for path in (kernel_svm_path(X, y, grid=3, kernel="rbf"), l1_svm_path(X, y, grid=3)):
        with pytest.raises(UsageError, match="only linear paths over C"):
            path.at(0.5)


def test_a_gap_that_is_not_known_spoils_the_range():
    first = Solved(1.0, 1.0, 0.9, 0.1, np.zeros(2))
    for gap in (math.inf, math.nan):
        found = Range()
        for step in (first, Solved(2.0, 2.0, -math.inf, gap, np.ones(2))):
            found.add(step)
        assert not math.isfinite(found.rel_gap)
