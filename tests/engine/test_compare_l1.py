"""The study of Zhao 2014: seven configurations on one grid."""

import json

import pytest

from screenpath.cli.app import run
from screenpath.engine.compare_l1 import COLUMNS, CONFIGURATIONS, compare, finished, per_step, totals
from screenpath.errors import UsageError
from screenpath.problem.grid import lambda_grid
from tests.conftest import two_classes
from tests.l1_problems import l1_svm_model


def test_all_configurations_certify_and_screening_leaves_fewer_over_hits():
    X, y = two_classes(n=50, d=150, seed=1)
    model, _ = l1_svm_model(X, y)
    said = []
    found = compare(model, lambda_grid(model, 6), CONFIGURATIONS, repeats=2, progress=said.append)
    assert said[: len(CONFIGURATIONS) + 1][-2:] == ["run 1/2: default", "run 2/2: org"]  # in alternation
    rows = {row["configuration"]: row for row in totals(found)}
    assert all(tuple(row) == COLUMNS for row in rows.values())
    assert [row["certified"] for row in rows.values()] == [6] * len(CONFIGURATIONS)
    assert rows["org"]["speedup"] == 1.0
    assert rows["scr"]["over_hits"] < rows["org"]["over_hits"] == rows["warm"]["over_hits"]
    assert rows["default"]["epochs"] < rows["org"]["epochs"]
    assert rows["org"]["epochs"] != rows["warm"]["epochs"]  # the cold start is one
    assert len(per_step(model, found)) == 6 * len(CONFIGURATIONS)
    for row in per_step(model, found):
        assert row["over_hits"] + row["active"] <= 150


def test_no_speedup_is_claimed_for_unfinished_runs():
    X, y = two_classes(n=50, d=20, seed=2)
    model, _ = l1_svm_model(X, y)
    found = compare(model, lambda_grid(model, 4), ["org", "default"], repeats=1, max_epochs=2)
    assert not finished(found[0])
    assert [row["speedup"] for row in totals(found)] == [None, None]


def test_unknown_configuration():
    X, y = two_classes(n=20, d=3)
    model, _ = l1_svm_model(X, y)
    with pytest.raises(UsageError, match="warm\\+scr"):
        compare(model, lambda_grid(model, 2), ["fast"])


@pytest.mark.parametrize("kind", ["markdown", "csv", "json"])
def test_command_writes_as_the_other_comparisons(samples, tmp_path, kind):
    out = tmp_path / "table"
    command = ["compare-rules", "l1svm", str(samples / "breast_cancer.libsvm"), "--grid", "3", "--repeats", "1"]
    more = ["--configurations", "warm,default", "--scale", "standard", "--quiet"]
    form = [] if kind == "markdown" else ["--format", kind]
    assert run([*command, *more, *form, "-o", str(out)]) == 0
    text = out.read_text()
    if kind == "json":
        assert [row["configuration"] for row in json.loads(text)] == ["warm", "default"]
    else:
        assert text.count("\n") == (4 if kind == "markdown" else 3) and all(name in text for name in COLUMNS)
