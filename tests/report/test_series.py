"""The numbers behind the pictures are those of the run."""

import json

import numpy as np
import pytest

from screenpath.cv.choice import folds_of
from screenpath.errors import RunFolderError, UsageError
from screenpath.report import series
from screenpath.report.figures import path_axis, seconds_text, spread
from screenpath.store.record import damaged
from tests.report.conftest import write_cv


def test_rejection_agrees_with_the_step_table(runs):
    found = series.rejection(runs["path"])
    assert np.allclose(found.R + found.L, series.column(runs["path"], "rejection_ratio"))
    assert (found.R + found.L)[1:].max() > 0.5 and np.all(found.at_end + 1e-12 >= found.R + found.L)
    assert found.features is None
    features = series.rejection(runs["features"]).features
    assert np.allclose(features, series.column(runs["features"], "rejection_ratio")) and features.max() > 0


def test_feature_paths_are_scaled_sorted_weights(runs):
    run = runs["path"]
    (path,) = series.feature_paths(run)
    scale = np.array(run.record["preparation"]["scale"])
    for k, step in enumerate(run.steps):
        assert np.allclose(path.values[k], (run.coefficients(step)[0][0] * scale)[path.features - 1])
    largest = np.abs(path.values).max(axis=0)
    assert np.all(np.diff(largest) <= 0) and path.nonzero == 5
    assert [p.title for p in series.feature_paths(runs["classes"])] == ["class 0", "class 1", "class 2"]


def test_grid_holds_each_step_once(runs):
    run = runs["grid"]
    grid = series.grid(run)
    assert grid.rows == sorted({row["beta"] for row in run.steps}, reverse=True)
    assert grid.values["scaling ratio"].shape == (3, 5)
    assert np.array_equal(grid.values["scaling ratio"].ravel(), series.column(run, "scaling_ratio"))
    assert grid.columns[0] == "1" and "largest alpha" in grid.label


def test_an_unfinished_grid_leaves_holes():
    steps = [{"a": a * b, "b": b} for b in (2.0, 1.0) for a in (1.0, 0.5)][:3]
    grid = series.fold_grid(steps, ["a", "b"], {"v": np.arange(3.0)})
    assert np.isnan(grid.values["v"][1, 1]) and grid.columns == ["1", "0.5"]
    uneven = [{"a": a, "b": b} for b, a in ((2.0, 1.0), (2.0, 0.5), (1.0, 1.0), (1.0, 0.1))]
    assert series.fold_grid(uneven, ["a", "b"], {"v": np.arange(4.0)}).columns == ["0", "1"]


def test_cross_validation_is_read(runs, tmp_path):
    run, mean = write_cv(runs["path"], tmp_path / "cv")
    cv = series.read_cv(run)
    assert np.allclose([row["mean"] for row in cv.steps], mean) and cv.bounds.shape == (11, 3)
    assert series.available(run)[0] == "cv"


@pytest.mark.parametrize(
    "name, text, word",
    [
        ("cv.json", "{", "cv.json"), ("cv.json", "{}", "no 'parameters'"), ("cv.csv", "step,C\n0,1\n", "no 'mean'"),
        ("cv.csv", "step,C,mean,se\n0,1,x,0\n", "'x'"), ("cv.csv", "step,C,mean,se\n", "not numbered"),
        ("bounds.csv", "C_from,C_to\n1,2\n", "no 'lower'"),
    ],
)  # fmt: skip
def test_a_damaged_cross_validation(runs, tmp_path, name, text, word):
    run, _ = write_cv(runs["path"], tmp_path / "cv")
    (run.path / name).write_text(text)
    with pytest.raises(RunFolderError, match="is damaged") as caught:
        series.read_cv(run)
    assert word in str(caught.value)


def test_a_file_that_may_not_be_read_is_not_damaged():
    found = damaged("run.json", PermissionError(13, "Permission denied"))
    assert str(found) == "run.json cannot be read: Permission denied\n  ask for the right to read it"
    assert str(damaged("a", OSError(5, "Input/output error"))).startswith("a is damaged: Input/output error\n")


def test_one_fold_alone_has_no_standard_error(runs, tmp_path):
    run, _ = write_cv(runs["path"], tmp_path / "cv")
    record = json.loads((run.path / "cv.json").read_text())
    record["best"]["se"] = record["one_se"]["se"] = None
    (run.path / "cv.json").write_text(json.dumps({**record, "fold_sizes": [12]}))
    assert folds_of(series.read_cv(run).record) == (1, 10)
    for sizes, why in (([12, 12], "there is no best.se"), ([12] * 11, "fold_sizes"), ("12", "fold_sizes")):
        record["best"]["se"] = record["one_se"]["se"] = 0.1 if why == "fold_sizes" else None
        (run.path / "cv.json").write_text(json.dumps({**record, "fold_sizes": sizes}))
        with pytest.raises(RunFolderError, match=why):
            series.read_cv(run)


def test_tables_beside_the_scores_are_checked(runs, tmp_path):
    run, _ = write_cv(runs["path"], tmp_path / "cv")
    record = json.loads((run.path / "cv.json").read_text())
    good = {"labels": ["1", "2"], "counts": [[3, 1], [0, 8]]}
    (run.path / "cv.json").write_text(json.dumps({**record, "confusion": good, "baselines": [0.5, 0.6]}))
    assert series.read_cv(run).record["confusion"] == good
    wrong = [("confusion", {**good, "labels": ["1"]}), ("confusion", {**good, "labels": [1, 2]}), ("confusion", []),
             ("confusion", {**good, "counts": [[3, 1], [0, -8]]}), ("confusion", {**good, "counts": [[3, 1], 4]}),
             ("baselines", [0.5, "x"]), ("baselines", 0.5)]  # fmt: skip
    for name, value in wrong:
        (run.path / "cv.json").write_text(json.dumps({**record, name: value}))
        with pytest.raises(RunFolderError, match="is damaged"):
            series.read_cv(run)


def test_kinds_that_a_run_lacks_are_named(runs):
    assert series.available(runs["grid"]) == ["rejection", "grid", "coefficients", "gap", "time"]
    for kind in ("grid", "cv"):
        with pytest.raises(UsageError):
            series.check_kind(runs["path"], kind)


def test_axis_of_a_path():
    down = path_axis([{"lambda": v} for v in (8.0, 4.0, 2.0, 1.0)], ["lambda"])
    assert down.reverse and down.log and not down.few
    assert path_axis([{"C": 1.0}], ["C"]).names == ["C = 1"]
    levels = (0.1, 0.3, 0.6, 0.9)
    assert [path_axis([{name: v} for v in levels], [name]).log for name in ("C", "tau")] == [True, False]
    pairs = [{"step": k, "alpha": 1.0, "beta": b} for k, b in enumerate((2.0, 2.0, 1.0, 1.0, 1.0))]
    assert path_axis(pairs, ["alpha", "beta"]).groups == [slice(0, 2), slice(2, 5)]


def test_parameters_far_from_1_stand_by_their_powers():
    axis = path_axis([{"C": v} for v in (1.0, 1e100, 1e200, 1e300)], ["C"])
    assert axis.powers and not axis.log and np.allclose(axis.x, [0.0, 100.0, 200.0, 300.0])
    assert axis.place(np.array([1e50])) == pytest.approx(50.0)
    assert not path_axis([{"C": v} for v in (1e-10, 1.0, 10.0, 1e10)], ["C"]).powers


def test_spread_keeps_order_and_distance():
    places = spread([0.5, 0.5, 0.49, 0.1, 0.9], 0.1)
    assert np.all(np.diff(np.sort(places)) > 0.0999) and places[2] < places[0] < places[1]
    assert np.allclose(spread([0.1, 0.5], 0.1), [0.1, 0.5])


def test_seconds_have_a_suitable_unit():
    assert [seconds_text(v) for v in (0.0, 2e-5, 0.0123, 3.5)] == ["0 s", "20 µs", "12.3 ms", "3.5 s"]
