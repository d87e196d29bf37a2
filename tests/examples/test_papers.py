"""The scripts of the papers on linear models run on what comes with the program, and say what they leave out."""

import os
import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT

LEFT_OUT = {
    "wang2014": ("ijcnn1: left out, binary/ijcnn1.libsvm.gz is not in the data folder", "cadata: left out"),
    "ogawa2013": (),
    "ogawa2014_linear": (),
}


def rows(page: str) -> list[list[str]]:
    """Return the rows of the tables of speed-ups."""
    return [line.strip("| ").split(" | ") for line in page.splitlines() if re.search(r"\| \d+ of \d+ \|$", line)]


@pytest.mark.parametrize("paper", LEFT_OUT)
def test_quick_run(paper, tmp_path):
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHON": sys.executable,
        "SCREENPATH": f"{sys.executable} -m screenpath",
        "QUICK": "1",
        "POINTS": "6",
        "CMAX": "0.01",
    }
    done = subprocess.run(
        ["sh", ROOT / "examples" / "papers" / f"{paper}.sh", tmp_path, tmp_path / "out"],
        env=environment, capture_output=True, text=True, cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# ")
    found = rows(done.stdout)
    assert len(found) >= 8
    for row in found:
        certified, points = row[-1].split(" of ")
        assert certified == points and float(row[3]) > 0.0
    assert all(line in done.stdout for line in LEFT_OUT[paper])
    assert list((tmp_path / "out").glob("*.csv"))


def test_single_sets_can_be_chosen(tmp_path):
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHON": sys.executable,
        "SCREENPATH": f"{sys.executable} -m screenpath",
        "POINTS": "6",
        "SETS": "toy1",
    }
    done = subprocess.run(
        ["sh", ROOT / "examples" / "papers" / "wang2014.sh", tmp_path, tmp_path / "out"],
        env=environment, capture_output=True, text=True, cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {row[0] for row in rows(done.stdout)} == {"toy1"}
    assert "left out" not in done.stdout
    published = [row[4] for row in rows(done.stdout) if row[2] == "dvi"]
    assert published == ["59.15"] * 3
