"""Reading run folders: whole, unfinished, damaged."""

import json
import shutil
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from screenpath.data.words.tables import CsvTable, JsonTable
from screenpath.errors import RunFolderError, UsageError
from screenpath.store.coefficients import WRITERS, Layout
from screenpath.store.open import open_run

COLUMNS = ["step", "C", "status", "primal", "nnz_w", "test_accuracy"]
WEIGHTS = np.array([[0.5, 0.0, -2.0], [0.0, 1.25, 3.0]])


def write_run(path, kind="csv", table=CsvTable, n_steps=2, **changes):
    """Write a run folder of two steps as version 0.1.0 did: without hashes."""
    path.mkdir()
    record = {
        "schema_version": 1, "model": "svm", "status": "complete", "labels": {"+1": 1.0, "-1": 0.0},
        "data": {"n_features": 3}, "preparation": {"scaling": "none", "scale": None, "shift": None},
        "parameters": ["C"], "columns": COLUMNS, "options": {}, "totals": {"n_steps": 2}, **changes,
    }  # fmt: skip
    (path / "run.json").write_text(json.dumps(record))
    table = table(COLUMNS)
    writer = WRITERS[kind](path, Layout(3))
    text = table.opening()
    for k in range(n_steps):
        row = {"step": k, "C": 10.0**k, "status": "certified", "primal": 1.0, "nnz_w": 2, "test_accuracy": 0.9 - k / 9}
        text += table.record(row, first=k == 0)
        where = np.flatnonzero(WEIGHTS[k])
        writer.add(k, np.append(0, where + 1), np.append(k + 0.5, WEIGHTS[k][where]))
    (path / f"steps{table.suffix}").write_text(text + table.closing())
    writer.finish(n_steps)
    (path / "coefficients.npz.records.partial").unlink(missing_ok=True)
    return path


@pytest.mark.parametrize("kind", ["csv", "npz"])
@pytest.mark.parametrize("table", [CsvTable, JsonTable])
def test_whole_runs(tmp_path, kind, table):
    run = open_run(write_run(tmp_path / "run", kind, table))
    assert run.notices == []
    for k, step in enumerate(run.steps):
        weights, intercepts = run.coefficients(step)
        assert weights.tolist() == [WEIGHTS[k].tolist()] and intercepts.tolist() == [k + 0.5]
    assert run.choose("best")["step"] == 0
    assert run.choose("C=10")["step"] == run.choose("1")["step"] == 1


def test_a_value_names_the_one_step_that_rounds_to_it(tmp_path):
    """Judged by decimals: half a unit of the last digit that was given on either side."""
    values = [0.0101, 0.0187382, 0.01875, 0.0206, 0.99951, 9.9, 12.3, 1234.0]
    run = open_run(write_run(tmp_path / "run"))
    run = replace(run, steps=[{**run.steps[0], "step": k, "C": value} for k, value in enumerate(values)])
    said = {1: None, 0: "no step is within", 2: "several steps are C="}
    seen = set()
    for text in (
        "0.0187", "0.019", "1.87e-2", "+.01874", "0.018738", "0.010", "9.9", "12", "1.2E3", "0.0210", "1.00", "13",
    ):  # fmt: skip
        half = Decimal(5).scaleb(Decimal(text).as_tuple().exponent - 1)
        right = [k for k, value in enumerate(values) if abs(Decimal(value) - Decimal(text)) <= half]
        seen.add(len(right))
        if len(right) == 1:
            assert run.choose(f"C={text}")["step"] == right[0], text
            continue
        with pytest.raises(UsageError, match=said[len(right)]) as raised:
            run.choose(f"C={text}")
        assert all(f"{values[k]:g}" in raised.value.hint for k in right)
    assert seen == {0, 1, 2}
    for text in ("0.02", "1e1"):  # one digit says too little
        with pytest.raises(UsageError, match="no step is within"):
            run.choose(f"C={text}")


@pytest.mark.parametrize("table", [CsvTable, JsonTable])
def test_a_run_that_was_killed(tmp_path, table):
    path = write_run(tmp_path / "run", table=table, status="running")
    whole = (path / f"steps{table.suffix}").read_text()
    tail = "1,10.0,certi" if table is CsvTable else ',\n{"step": 1, "C"'
    cut = whole.index("\n1,") + 1 if table is CsvTable else whole.index(",\n")
    (path / f"steps{table.suffix}").unlink()
    (path / f"steps{table.suffix}.partial").write_text(whole[:cut] + tail)
    text = (path / "coefficients.csv").read_text()
    (path / "coefficients.csv").rename(path / "coefficients.csv.partial")
    (path / "coefficients.csv.partial").write_text(text + "2,1,0.00")
    run = open_run(path)
    assert "unfinished run (running): 1 of 2 steps" in run.notices[0]
    assert run.coefficients(run.steps[0])[0].tolist() == [WEIGHTS[0].tolist()]


def test_steps_that_were_skipped_have_no_solution(tmp_path):
    path = write_run(tmp_path / "run", status="time-limit")
    with open(path / "steps.csv", "a") as file:
        file.write("2,100.0,skipped,,,\n")
    run = open_run(path)
    assert len(run.steps) == 2 and "2 of 2 steps" in run.notices[0]


def test_missing_files(tmp_path):
    with pytest.raises(RunFolderError, match="not a run folder"):
        open_run(tmp_path)
    path = write_run(tmp_path / "run")
    (path / "coefficients.csv").unlink()
    with pytest.raises(RunFolderError, match="has no coefficients"):
        open_run(path).coefficients({"step": 0, "nnz_w": 0})
    (path / "steps.csv").unlink()
    with pytest.raises(RunFolderError, match="no step table"):
        open_run(path)
    shutil.rmtree(path)
    with pytest.raises(RunFolderError, match="no finished step"):
        open_run(write_run(path, n_steps=0, status="time-limit"))


def test_other_kinds_of_model_have_no_weights(tmp_path):
    path = write_run(tmp_path / "run", model="ksvm")
    with pytest.raises(RunFolderError, match="another kind"):
        open_run(path).coefficients({"step": 0, "nnz_w": 0})
