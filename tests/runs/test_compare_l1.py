"""The study of Zhao 2014: seven configurations on one grid."""

import pytest

from screenpath.api.l1svm import l1_svm_model
from screenpath.errors import UsageError
from screenpath.models.grid import lambda_grid
from screenpath.runs.compare_l1 import CONFIGURATIONS, per_step, run_configuration, totals
from tests.conftest import two_classes


def test_all_configurations_certify_and_screening_leaves_fewer_over_hits():
    X, y = two_classes(n=50, d=150, seed=1)
    model, _ = l1_svm_model(X, y)
    values = lambda_grid(model, 6)
    runs = [run_configuration(model, values, name) for name in CONFIGURATIONS]
    rows = {row["configuration"]: row for row in totals(runs)}
    assert [row["certified"] for row in rows.values()] == [6] * len(CONFIGURATIONS)
    assert rows["org"]["speedup"] == 1.0
    assert rows["scr"]["over_hits"] < rows["org"]["over_hits"] == rows["warm"]["over_hits"]
    assert rows["default"]["iterations"] < rows["org"]["iterations"]
    assert rows["org"]["iterations"] != rows["warm"]["iterations"]  # the cold start is one
    assert len(per_step(runs)) == 6 * len(CONFIGURATIONS)
    for row in per_step(runs):
        assert row["over_hits"] + row["active"] <= 150


def test_no_speedup_is_claimed_for_unfinished_runs():
    X, y = two_classes(n=50, d=20, seed=2)
    model, _ = l1_svm_model(X, y)
    values = lambda_grid(model, 4)
    runs = [run_configuration(model, values, "org", max_epochs=2), run_configuration(model, values, "default")]
    assert [row["speedup"] for row in totals(runs)] == [None, None]


def test_unknown_configuration():
    X, y = two_classes(n=20, d=3)
    model, _ = l1_svm_model(X, y)
    with pytest.raises(UsageError, match="warm\\+scr"):
        run_configuration(model, lambda_grid(model, 2), "fast")
