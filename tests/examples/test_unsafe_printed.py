"""The count of unsafe decisions of the printed DVI formula runs, and finds none of ours."""

import os
import subprocess
import sys

from tests.conftest import HANGS, ROOT


def test_ours_makes_none(tmp_path):
    script = ROOT / "examples" / "papers" / "unsafe_printed.py"
    environment = {**os.environ, "SCREENPATH_DATA": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, script, "--points", "12"], env=environment, capture_output=True, text=True, timeout=HANGS
    )
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("| breast_cancer | 12 |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert int(cells[2].replace(",", "")) > 2000 and cells[5] == "0"
