"""The comparison of free intercepts with other solvers agrees on small sets and says what it leaves out."""

import gzip
import os
import runpy
import subprocess
import sys

import pytest

from tests.conftest import HANGS, ROOT

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")


@pytest.mark.wide_only
def test_small_run(tmp_path):
    for kind, name in (("binary", "breast_cancer"), ("regression", "diabetes")):
        (tmp_path / kind).mkdir()
        text = (ROOT / "data_samples" / f"{name}.libsvm").read_bytes()
        (tmp_path / kind / f"{name}.libsvm.gz").write_bytes(gzip.compress(text))
    command = [sys.executable, str(ROOT / "examples" / "benchmarks" / "intercept.py"), str(tmp_path)]
    done = subprocess.run(
        [*command, "--rows", "60", "--sets", "breast_cancer,diabetes,dna"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=HANGS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "dna: left out" in done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[2:6]]
    assert [row[2] for row in rows] == ["svm", "svm, RBF", "svr", "lad"] and {row[3] for row in rows} == {"4 of 4"}


def test_rejection_of_the_rule(tmp_path, capsys):
    (tmp_path / "regression").mkdir()
    text = (ROOT / "data_samples" / "diabetes.libsvm").read_bytes()
    (tmp_path / "regression" / "diabetes.libsvm.gz").write_bytes(gzip.compress(text))
    script = runpy.run_path(str(ROOT / "examples" / "benchmarks" / "intercept.py"))
    assert script["rejections"](tmp_path, None) == 0
    _, _, row = capsys.readouterr().out.splitlines()
    name, model, share = [cell.strip() for cell in row.strip("|").split("|")]
    assert (name, model) == ("diabetes", "quantile") and 0.9 < float(share) < 1.0
