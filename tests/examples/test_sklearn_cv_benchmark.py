"""The comparison with scikit-learn's search runs on a small set, and names what is not there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import HANGS

pytest.importorskip("sklearn")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.wide_only
def test_small_run():
    sample = ROOT / "data_samples" / "wang_toy1.libsvm"
    command = [sys.executable, str(ROOT / "examples" / "benchmarks" / "sklearn_cv.py"), str(sample), "none"]
    options = ["--folds", "3", "--grid", "4", "--repeats", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, *options], env=environment, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("| wang_toy1"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert abs(float(cells[4]) - float(cells[5])) <= 3 * float(cells[6]) + 0.01 and float(cells[4]) > 0.8
    assert "none.libsvm.gz is not here" in done.stdout


@pytest.mark.wide_only
def test_small_run_of_a_single_fit():
    sample = ROOT / "data_samples" / "wang_toy1.libsvm"
    command = [sys.executable, str(ROOT / "examples" / "benchmarks" / "sklearn_single.py"), str(sample), "none"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, "--repeats", "1"], env=environment, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    cells = [c.strip() for c in next(r for r in done.stdout.splitlines() if r.startswith("| wang")).split("|")]
    assert -1e-6 < float(cells[5]) < 0.1 and "none.libsvm.gz is not here" in done.stdout


@pytest.mark.wide_only
def test_small_run_of_the_probabilities():
    sample = ROOT / "data_samples" / "breast_cancer.libsvm.gz"
    command = [sys.executable, str(ROOT / "examples" / "benchmarks" / "brier.py"), str(sample), "none"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    cells = [c.strip() for c in next(r for r in done.stdout.splitlines() if r.startswith("| breast")).split("|")]
    assert float(cells[4]) < 0.1 and abs(float(cells[4]) - float(cells[5])) < 3 * float(cells[7])
