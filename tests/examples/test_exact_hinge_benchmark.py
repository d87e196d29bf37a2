"""The benchmark of the exact hinge with elastic net runs on a small set and judges its rivals."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import HANGS

pytest.importorskip("rehline")
pytest.importorskip("clarabel")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.wide_only
def test_small_run():
    command = [sys.executable, "-W", "ignore", str(ROOT / "examples" / "benchmarks" / "exact_hinge.py")]
    options = ["--only", "60x50", "--betas", "2", "--alphas", "4", "--runs", "1", "--rivals", "rehline,clarabel"]
    done = subprocess.run(
        [*command, *options], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=HANGS
    )
    assert done.returncode == 0, done.stderr
    assert "8 pairs, all certified: True" in done.stdout
    ratios = re.findall(r"(rehline|clarabel): [0-9.]+ s \(tol 1e-[0-9]+\), ([0-9.]+) x", done.stdout)
    assert [who for who, _ in ratios] == ["rehline", "clarabel"], done.stdout
    assert all(float(ratio) > 0.0 for _, ratio in ratios)
