"""Columns with a role: weights, groups and folds, and predictions beside the columns of the data."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import screenpath
from screenpath.cv.folds import draw_groups
from screenpath.errors import UsageError
from tests.cli.conftest import ROOT, read_csv, without_times

CLINIC = ROOT / "data_samples" / "clinic.csv"
LEARN = ("--target", "returned", "--columns", "age,weight_kg,blood", "--one-hot", "blood", "--missing", "mean")
GRID = ("--grid", "3", "--scale", "standard", "--intercept", "free", "--quiet")


@pytest.mark.parametrize("repeats", [1, 3])
def test_folds_cut_no_group_and_are_even(repeats):
    groups = np.repeat([f"g{k}" for k in range(40)], np.arange(40) % 7 + 1)
    splits = draw_groups(groups, 4, repeats, seed=3)
    assert len(splits) == 4 * repeats
    for repeat in range(repeats):
        parts = [set(groups[split.held_out]) for split in splits if split.repeat == repeat]
        assert sum(map(len, parts)) == 40 == len(set.union(*parts))
        sizes = [split.held_out.size for split in splits if split.repeat == repeat]
        assert sum(sizes) == groups.size and max(sizes) - min(sizes) <= 7
    assert repeats == 1 or not np.array_equal(splits[0].held_out, splits[4].held_out)
    with pytest.raises(UsageError, match="41` is more than the 40 groups"):
        draw_groups(groups, 41, 1, 0)


def test_folds_by_patient_and_by_site(call):
    """Folds of a column are those of a fold file, and a group is held out whole."""
    rows = read_csv(CLINIC)
    sites = sorted({row["site"] for row in rows})
    Path("folds").write_text("".join(f"{sites.index(row['site'])}\n" for row in rows))
    assert call("cv", "svm", CLINIC, *LEARN, *GRID, "--fold-file", "folds", "-o", "file").code == 0
    assert call("cv", "svm", CLINIC, *LEARN, *GRID, "--fold-column", "site", "-o", "column").code == 0
    assert without_times("file/folds.csv") == without_times("column/folds.csv")
    assert call("cv", "svm", CLINIC, *LEARN[:2], "--drop", "visit,seen,site", *LEARN[4:], "--one-hot", "smoker", *GRID,
                "--group-column", "patient", "--folds", "4", "-o", "groups").code == 0  # fmt: skip
    record = json.loads(Path("groups/cv.json").read_text())
    assert record["group_column"] == "patient" and record["folds"] == 4 and not record["stratified"]
    features = screenpath.load_run("groups").run.feature_names
    assert not any(name.startswith("patient") for name in features)
    path = screenpath.cross_validate(
        "svm", str(CLINIC), target="returned", columns="age,weight_kg,blood", one_hot="blood", missing="mean", grid=3,
        scale="standard", intercept="free", fold_column="site", quiet=True, out="python",
    )  # fmt: skip
    assert path.certified and without_times("python/folds.csv") == without_times("column/folds.csv")


def test_a_weight_column_is_a_file_of_weights(call):
    rows = read_csv(CLINIC)
    Path("t.csv").write_text(CLINIC.read_text().replace("seen", "w", 1))
    lines = Path("t.csv").read_text().splitlines()
    weights = [f"{k % 3 + 0.5}" for k in range(len(rows))]
    for k, weight in enumerate(weights):
        cells = lines[k + 1].split(",")
        lines[k + 1] = ",".join([*cells[:3], weight, *cells[4:]])
    Path("t.csv").write_text("\n".join(lines) + "\n")
    Path("w").write_text("\n".join(weights) + "\n")
    assert call("svm", "t.csv", *LEARN, *GRID, "--weights", "w", "-o", "file").code == 0
    assert call("svm", "t.csv", *LEARN, *GRID, "--weight-column", "w", "--certificate", "-o", "column").code == 0
    assert without_times("file/steps.csv") == without_times("column/steps.csv")
    found = call("verify", "column", "t.csv")
    assert found.code == 0 and "weights" in found.out
    assert call("predict", "column", CLINIC, "--step", "C=10", "-q").code == 0  # new data have no weights
    both = call("svm", "t.csv", *LEARN, *GRID, "--weight-column", "w", "--weights", "w", "-o", "x")
    assert both.code == 2 and "use one of them" in both.err
    Path("t.csv").write_text(Path("t.csv").read_text().replace(",1.5,", ",,", 1))
    gap = call("svm", "t.csv", *LEARN, *GRID, "--weight-column", "w", "-o", "x")
    assert gap.code == 1 and "column 'w': the row has no weight" in gap.err
    Path("t.csv").write_text(Path("t.csv").read_text().replace(",,", ",-1.5,", 1))
    below = call("svm", "t.csv", *LEARN, *GRID, "--weight-column", "w", "-o", "x")
    assert below.code == 1 and "t.csv, line 3, column 'w': a weight is negative: '-1.5'" in below.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--group-column", "ptient"), "has no column 'ptient'"),
        (("--group-column", "patient", "--fold-column", "site"), "leave out --group-column"),
        (("--fold-column", "site", "--folds", "3"), "leave out --folds"),
        (("--group-column", "patient", "--stratify"), "would cut groups"),
        (("--group-column", "patient", "--folds", "100"), "use --folds 58 or fewer"),
    ],
)
def test_what_is_wrong_and_what_to_type(call, options, words):
    found = call("cv", "svm", CLINIC, *LEARN, *GRID, *options, "-o", "r")
    assert found.code == 2 and words in found.err and len(found.err.splitlines()) == 2


def test_predictions_beside_the_columns_of_the_data(call):
    assert call("svm", CLINIC, *LEARN, *GRID, "--id", "visit", "-o", "r").code == 0
    new = ROOT / "data_samples" / "clinic_new.csv"
    found = call("predict", "r", new, "--step", "C=10", "--append", "--decision", "-q")
    rows, alone = list(csv.DictReader(io.StringIO(found.out))), call("predict", "r", new, "--step", "C=10", "-q").out
    assert [{name: row[name] for name in read_csv(new)[0]} for row in rows] == read_csv(new)
    assert [row["label"] for row in rows] == [line.split(",")[1] for line in alone.splitlines()[1:]]
    assert list(rows[0])[-2:] == ["label", "decision"]
    Path("label.csv").write_text("label,age,weight_kg,blood\n007,50,60,A\n")
    named = call("predict", "r", "label.csv", "--step", "C=10", "--append", "-q").out.splitlines()
    assert named[0] == "label,age,weight_kg,blood,predicted_label" and named[1].startswith("007,50,60,A,")
    Path("text").write_text("1 1:2\n")
    refused = call("predict", "r", "text", "--step", "C=10", "--append")
    assert refused.code != 0 and "Traceback" not in refused.err
