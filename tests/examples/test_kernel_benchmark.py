"""The benchmark of the kernel model runs on a small set and says what it leaves out."""

import os
import subprocess
import sys

import pytest

from tests.conftest import HANGS, ROOT

pytest.importorskip("sklearn")


@pytest.mark.wide_only
def test_small_run(tmp_path):
    folder = tmp_path / "binary"
    folder.mkdir()
    (folder / "breast_cancer.libsvm.gz").write_bytes((ROOT / "data_samples" / "breast_cancer.libsvm.gz").read_bytes())
    command = [sys.executable, str(ROOT / "examples" / "benchmarks" / "kernel_svm.py"), str(tmp_path)]
    done = subprocess.run(
        [*command, "--points", "4", "--repeats", "1", "--sets", "breast_cancer,dna"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=HANGS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "dna: left out" in done.stderr
    cells = [cell.strip() for cell in done.stdout.splitlines()[2].strip("|").split("|")]
    assert cells[:4] == ["breast_cancer", "569", "30", "4 of 4"] and float(cells[-1]) > 0.0
