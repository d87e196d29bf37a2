"""The benchmark of the L1 model runs on a small set and says what it leaves out."""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import clouds, libsvm_text
from tests.conftest import HANGS

pytest.importorskip("sklearn")
pytest.importorskip("cyanure")
pytest.importorskip("liblinear")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.wide_only
def test_small_run(tmp_path):
    folder = tmp_path / "binary"
    folder.mkdir()
    (folder / "toy.libsvm.gz").write_bytes(gzip.compress(libsvm_text(*clouds()).encode()))
    command = [sys.executable, str(ROOT / "examples" / "benchmarks" / "l1svm.py"), "toy:standard", "absent"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SCREENPATH_DATA": str(tmp_path)}
    done = subprocess.run(
        [*command, "--repeats", "1", "--cap", "20"], env=environment, capture_output=True, text=True, timeout=HANGS
    )
    assert done.returncode == 0, done.stderr
    assert "absent" in done.stdout and "left out" in done.stdout
    for who in ("screenpath", "liblinear"):
        found = re.search(rf"toy:standard +{who} +tol +\S+ +worst +(\S+)", done.stdout)
        assert found and float(found[1]) <= 1e-6
