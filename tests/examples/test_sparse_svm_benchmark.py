"""The benchmark of the sparse SVM runs on a small set and judges both sides."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import HANGS

pytest.importorskip("skglm")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.wide_only
def test_small_run():
    command = [sys.executable, "-W", "ignore", str(ROOT / "examples" / "benchmarks" / "sparse_svm.py")]
    options = ["--only", "100x100", "--betas", "3", "--alphas", "5", "--runs", "1"]
    done = subprocess.run(
        [*command, *options], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=HANGS
    )
    assert done.returncode == 0, done.stderr
    assert "all certified: True" in done.stdout
    gaps = [float(gap) for gap in re.findall(r"worst gap ([0-9.e-]+)", done.stdout)]
    assert len(gaps) == 2 and max(gaps) <= 1e-6
    assert float(re.search(r"ratio ([0-9.]+)", done.stdout).group(1)) > 0.0
