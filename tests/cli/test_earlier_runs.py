"""Run folders of the first builds of 0.1.0 are read by today's commands.

``tests/fixtures/runs-0.1.0`` holds ten: five without hashes (schema version 1), five with (2), four of these with a
certificate. They are kept as they were written.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from screenpath.store import record as records
from tests.cli.conftest import ROOT, read_csv
from tests.conftest import HANGS

FOLDER = ROOT / "tests" / "fixtures" / "runs-0.1.0"
RUNS = sorted(file.parent for file in FOLDER.glob(f"*/{records.RUN}"))
NO_CERTIFICATE = 1  # exit code


def of(name: str) -> Path:
    return FOLDER / name


def data_of(run: Path) -> Path:
    """Return the data file that a run was made of, beside it."""
    return FOLDER / json.loads((run / records.RUN).read_text())["data"]["path"]


def test_the_folders_are_those_of_the_first_builds():
    found = [json.loads((run / records.RUN).read_text()) for run in RUNS]
    assert len(found) == 10
    assert {record["versions"]["screenpath"] for record in found} == {"0.1.0"}
    assert {record["schema_version"] for record in found} == {records.UNSEALED, 2}
    assert sum((run / "certificate.bin").exists() for run in RUNS) == 4
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) < 100_000


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_show_names_the_model_and_its_certified_steps(call, run):
    record = json.loads((run / records.RUN).read_text())
    result = call("show", run, "--step", 1)
    assert result.code == 0, result.err
    assert record["model"] in result.out and "certified" in result.out


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_predict_decides_as_the_coefficients_say(call, tmp_path, run):
    out = tmp_path / "predicted.csv"
    words = [] if run.name in ("lad", "svr") else ["--decision"]
    result = call("predict", run, data_of(run), "--step", 1, "-o", out, *words)
    assert result.code == 0, result.err
    found = read_csv(out)
    assert len(found) == 24
    file = run / "coefficients.csv"
    if not file.exists() or json.loads((run / records.RUN).read_text()).get("kernel"):
        return  # coefficients of samples, or in binary
    with open(file, newline="") as lines:
        w = {int(row["feature"]): float(row["value"]) for row in csv.DictReader(lines) if int(row["step"]) == 1}
    lines = [line.split()[1:] for line in data_of(run).read_text().splitlines()]
    X = np.zeros((len(lines), 4))
    for row, cells in zip(X, lines, strict=True):
        for index, value in (cell.split(":") for cell in cells):
            row[int(index) - 1] = float(value)
    forms = w.get(0, 0.0) + X @ [w.get(j + 1, 0.0) for j in range(4)]
    name = "decision" if "decision" in found[0] else "value"
    np.testing.assert_allclose([float(row[name]) for row in found], forms, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_verify_proves_what_has_a_certificate_and_says_what_has_none(call, run):
    result = call("verify", run, data_of(run))
    if (run / "certificate.bin").exists():
        assert result.code == 0, result.err
        assert "steps proven" in result.out
    else:
        assert result.code == NO_CERTIFICATE
        assert "certificate.bin: no such file\n  compute it with screenpath " in result.err
        assert "folds with a kernel" in result.err


@pytest.mark.parametrize("run", [run for run in RUNS if (run / "certificate.bin").exists()], ids=lambda run: run.name)
def test_the_checker_in_exact_fractions_agrees(run):
    words = [sys.executable, ROOT / "examples" / "certificate" / "check.py", run, data_of(run)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0 and done.stdout.endswith("holds\n"), done.stdout + done.stderr


def test_the_runs_stand_side_by_side(call):
    result = call("runs", of("svm"), of("l1svm"), of("cv"))
    assert result.code == 0, result.err
