"""Numbers of the problem that are computed from the data: their rounding is counted, and its control must fail."""

from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.catalogue import losses
from screenpath.catalogue.losses import QUANTILE, SVM, SVR
from screenpath.data.files.prepare import Preparation
from screenpath.rows.memory import MemoryRows
from screenpath.verify import model
from tests.safety import fuzz_data, fuzz_rounding

FALSE = "certified, but"
BY_BOTH = "proven by the checker, but false"


def far_targets(seed: int):
    """Walk a path of a regression on targets that are far from 0 beside epsilon, judged in fractions."""
    return fuzz_data.check_data(seed)


def test_random_problems_are_certified_for_the_numbers_of_the_data():
    statuses, found = fuzz_rounding.fuzz(120, 0, check=far_targets)
    assert found == []
    assert statuses["certified, proven"] > 80 and statuses["certified, not proven"] < 2


def scaled(seed: int):
    """Walk a path on columns that are scaled, judged in fractions."""
    return fuzz_data.check_data(seed, ("maxabs", "standard"))


def scaled_rows(seed: int):
    """The same on rows that are divided by their norms, of data that are read from text."""
    return fuzz_data.check_data(seed, ("l2",), text=True)


@pytest.mark.parametrize("check", [scaled, scaled_rows])
def test_random_scaled_problems_are_certified_for_the_numbers_of_the_data(check):
    statuses, found = fuzz_rounding.fuzz(80, 0, check=check)
    assert found == []
    assert statuses["certified, proven"] > 60 and statuses["certified, not proven"] == 0


@pytest.mark.parametrize("check", [scaled, scaled_rows])
def test_values_that_scaling_rounds_too_much_are_noticed(monkeypatch, check):
    apply = Preparation.apply
    monkeypatch.setattr(Preparation, "apply", lambda made, X, _=None: apply(made, X).astype(np.float32).astype(float))
    assert fuzz_rounding.finds(lambda claim: FALSE in claim, 80, 0, check)


@pytest.mark.parametrize("seed", [43, 73, 157, 299, 525, 7057])
def test_the_checker_proves_honest_steps_at_the_ends_of_the_range(seed):
    """An intercept far beyond the losses, targets that it hits, gaps of 1e-15, a sum that a short row takes."""
    certified = [status for status, _, _ in fuzz_data.check_data(seed) if status.startswith("certified")]
    assert certified and set(certified) == {"certified, proven"}


@pytest.mark.parametrize("seed", [73, 127, 380])
def test_a_far_intercept_is_no_value_that_scaling_has_rounded(seed):
    certified = [status for status, _, _ in scaled(seed) if status.startswith("certified")]
    assert certified and set(certified) == {"certified, proven"}


def test_without_the_tails_of_the_kinks_false_certificates_are_found(monkeypatch):
    def dropped(a, b):
        return a + b, np.zeros(np.shape(a))

    monkeypatch.setattr("screenpath.numbers.accurate.two_sum", dropped)
    assert fuzz_rounding.finds(lambda claim: FALSE in claim, 3, 1038, far_targets)
    monkeypatch.setattr(model, "two_sum", dropped)
    assert any(fuzz_rounding.finds(lambda claim: BY_BOTH in claim, 3, seed, far_targets) for seed in (1038, 1405))


def test_the_checker_refuses_what_the_tails_of_the_kinks_refute(monkeypatch):
    monkeypatch.setattr("screenpath.numbers.accurate.two_sum", lambda a, b: (a + b, np.zeros(np.shape(a))))
    assert not any(fuzz_rounding.finds(lambda claim: BY_BOTH in claim, 3, seed, far_targets) for seed in (1038, 1405))


def test_kinks_are_carried_in_two_doubles():
    y = np.array([1e9, -3e9, 0.3, 5.0])
    model = SVR.model(MemoryRows(np.ones((4, 1))), y, epsilon=0.1)
    exact = fuzz_data.exact_losses("svr", y, None, None, {"epsilon": 0.1})[0]
    assert [fuzz_data.F(float(c)) + fuzz_data.F(float(t)) for c, t in zip(model.c, model.tail, strict=True)] == exact
    assert SVR.model(MemoryRows(np.ones((4, 1))), np.round(y), epsilon=0.5).tail == 0.0


@pytest.mark.parametrize(
    ("tau", "weights", "none"), [(0.5, None, True), (0.75, None, True), (0.1, None, False), (0.5, [0.3], False)]
)
def test_the_rounding_of_slopes_is_counted(tau, weights, none):
    model = QUANTILE.model(MemoryRows(np.ones((1, 1))), np.ones(1), weights, tau=tau)
    assert (model.inexact == 0.0) == none
    exact = QUANTILE.slopes(SimpleNamespace(tau=tau))
    assert losses._inexact(*exact, weights) == model.inexact < 1e-14
    assert SVM.model(MemoryRows(np.ones((1, 1))), np.ones(1)).inexact == 0.0
