"""The benchmark of cross-validation runs on a small set and both sides agree."""

import os
import re
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
    command = [sys.executable, str(ROOT / "examples" / "benchmarks" / "cv.py"), "--data", str(sample)]
    options = ["--folds", "3", "--grid", "6", "--every", "2", "--jobs", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, *options], env=environment, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    assert "GridSearchCV, 3 of 6 C, x 2" in done.stdout
    difference = re.search(r"difference of the mean accuracies: (\S+)", done.stdout)
    assert float(difference[1]) <= 0.01


def test_missing_data():
    command = [sys.executable, str(ROOT / "examples" / "benchmarks" / "cv.py"), "--data", "none.libsvm"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 1 and "none.libsvm is not here" in done.stderr
