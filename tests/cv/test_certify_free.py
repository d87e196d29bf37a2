"""Certified bounds of cross-validation with a free intercept: never above the true error, and not without content."""

import functools

import numpy as np
import pytest

from screenpath.catalogue.losses import SVM
from screenpath.cv.certify import ErrorBounds, FreeLine, HeldOut, certified_line
from screenpath.cv.folds import draw_folds
from screenpath.problem.grid import log_grid
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve.newton import Newton
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk.loop import PathOptions, walk
from tests.conftest import two_classes
from tests.cv.test_certify import bound_at
from tests.kernel_problems import kernel_svm_model

SURE = 1e-5  # of the size of a linear form: an optimum is known to less than that


def fold_of(X, signs, split, grid, tol, kernel):
    """Return certificates, linear forms of the held-out samples, and the record of one fold."""
    training, test = split.training(signs.size), X[split.held_out]
    if kernel:
        rows = GramRows(X[training], KernelFunction("rbf", gamma=0.2), signs[training])
        model, solver, test = kernel_svm_model(rows, None, "free"), make_kernel_solver("auto"), rows.held_out(test)
    else:
        model, solver = SVM.model(MemoryRows(X[training]), signs[training], None, "free"), Newton()
        test = np.column_stack([test, np.ones(len(test))])
    options, forms = PathOptions(tol=tol), []
    fold = HeldOut.of(test, signs[split.held_out], [])
    found = []
    for step, certificate in walk(model, grid, parse_rule("dvi+gap"), solver, options):
        forms.append(test @ step.coefficients)
        fold.lines.append(certified_line(certificate, test, forms[-1], fold, model))
        found.append(certificate)
    return found, np.array(forms), fold


def problem(seed, n=60):
    X, signs = two_classes(n=n, d=3, seed=seed)
    signs[: n // 4] = -1.0  # more of one class
    return X + 1.0, signs


FINE = log_grid(0.01, 10.0, 70)


@functools.cache
def true_errors(kernel: bool, seed: int) -> np.ndarray:
    """Return the largest and the smallest cross-validation error that the optima at each C of FINE can have."""
    X, signs = problem(seed)
    shares = []
    for split in draw_folds(60, 3, 1, seed, signs):
        found, forms, record = fold_of(X, signs, split, FINE, 1e-11, kernel)
        # All best intercepts count, and what the optimum may still differ by.
        low = np.array([c.low - c.intercept for c in found])[:, None] - SURE
        high = np.array([c.high - c.intercept for c in found])[:, None] + SURE
        worst = np.where(record.signs > 0.0, forms + low, -(forms + high))
        best = np.where(record.signs > 0.0, forms + high, -(forms + low))
        shares.append([(worst <= 0.0).mean(axis=1), (best < 0.0).mean(axis=1)])
    return np.mean(shares, axis=0)


@pytest.mark.covering(1)
@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize("tol", [0.1, 1e-6])
def test_the_bound_never_exceeds_the_true_error(kernel, tol):
    for seed in range(1 if kernel else 2):
        X, signs = problem(seed)
        most, least = true_errors(kernel, seed)
        splits = draw_folds(60, 3, 1, seed, signs)
        certified = ErrorBounds([fold_of(X, signs, s, log_grid(0.01, 10.0, 25), tol, kernel)[2] for s in splits])
        bounds = np.array([bound_at(certified, C) for C in FINE])
        assert np.all(bounds[:, 0] <= most + 1e-12) and np.all(bounds[:, 1] >= least - 1e-12)
        if tol == 1e-6:
            assert bounds[:, 0].max() > 0.0 and bounds[:, 1].min() < 0.5


@pytest.mark.parametrize("kernel", [False, True])
def test_single_signs_are_certain_over_a_range_and_a_smaller_radius_is_caught(kernel, monkeypatch):
    decided = 0

    def wrong(share):
        nonlocal decided
        with monkeypatch.context() as patch:
            plain = FreeLine.radius
            patch.setattr(FreeLine, "radius", lambda self, C: share * plain(self, C))
            count = decided = 0
            for seed in range(3 if kernel else 8):
                X, signs = problem(seed)
                split = draw_folds(60, 3, 1, seed, signs)[0]
                grid = log_grid(0.02, 5.0, 12)
                lines = fold_of(X, signs, split, grid, 1e-2, kernel)[2]
                fine = log_grid(0.02, 5.0, 60)
                found, forms, _ = fold_of(X, signs, split, fine, 1e-11, kernel)
                for line in lines.lines:
                    for side in (-1.0, 1.0):
                        low, high = 0.7 * line.C, 1.4 * line.C
                        sure = line.certain(lines, low, high, np.full(forms.shape[1], side))
                        decided += int(sure.sum())
                        for C, form, c in zip(fine, forms, found, strict=True):
                            if low <= C <= high:
                                away = c.high - c.intercept if side < 0.0 else c.intercept - c.low
                                count += int(np.count_nonzero(sure & (side * form - away < -SURE)))
            return count

    assert wrong(1.0) == 0 and decided > 100
    assert wrong(0.2) > 0


def test_the_bound_says_something():
    X, signs = problem(1, n=90)
    splits = draw_folds(90, 3, 1, 0, signs)
    certified = ErrorBounds([fold_of(X, signs, s, log_grid(1e-2, 10.0, 40), 1e-8, False)[2] for s in splits])
    assert certified.lower > 0 and certified.difference <= 5 / 90
