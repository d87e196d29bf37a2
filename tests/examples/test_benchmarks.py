"""The benchmark's judge, and a small run of each driver in a process of its own."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import HANGS

pytest.importorskip("sklearn")
ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "examples" / "benchmarks"


@pytest.fixture
def judge(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import problems
    import suboptimality

    yield problems, suboptimality
    for name in ("problems", "suboptimality"):
        sys.modules.pop(name)


def test_primal_and_dual_meet_at_the_closed_form_optimum(judge):
    """One sample x=2, y=1: for C < 1/4 the optimum is theta = 1, w = 2C (hinge), P = D = C - 2 C^2."""
    problems, suboptimality = judge
    problem = problems.Problem("one", "svm", np.array([[2.0]]), np.array([1.0]), np.array([0.1]))
    assert suboptimality.primal(problem, np.array([0.2]), 0.1) == pytest.approx(0.08)
    assert suboptimality.dual(problem, np.array([1.0]), 0.1) == pytest.approx(0.08)


@pytest.mark.parametrize("model", ["svm", "lad"])
def test_dual_is_below_primal(judge, model):
    problems, suboptimality = judge
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 5))
    y = np.sign(X[:, 0]) if model == "svm" else rng.standard_normal(40)
    problem = problems.Problem("random", model, X, y, np.array([0.5]))
    for _ in range(50):
        theta, w = rng.uniform(-2, 2, 40), rng.standard_normal(5)
        assert suboptimality.dual(problem, theta, 0.5) <= suboptimality.primal(problem, w, 0.5)


def test_a_broken_bound_stops_the_run(judge):
    _, suboptimality = judge
    with pytest.raises(suboptimality.BoundBroken, match="rival is 1.0e-05"):
        suboptimality.check_bounds(np.array([1e-7, -1e-5]), "rival")


def test_a_path_that_is_not_finite_never_counts_as_reached(judge):
    problems, suboptimality = judge
    problem = problems.Problem("one", "svm", np.array([[2.0]]), np.array([1.0]), np.array([0.1]))
    assert suboptimality.path_suboptimality(problem, np.array([[np.nan]]), np.array([0.08])) == np.inf


@pytest.mark.wide_only
def test_runs_and_writes_json_and_markdown(tmp_path):
    pytest.importorskip("rehline")
    json_file, markdown_file = tmp_path / "b.json", tmp_path / "b.md"
    command = [sys.executable, str(BENCHMARKS / "run.py"), "--rivals-only", "--quick", "--only", "toy1"]
    command += ["--points", "5", "--rivals", "rehline,sklearn"]
    command += ["--json", str(json_file), "--markdown", str(markdown_file)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    records = json.loads(json_file.read_text())["records"]
    assert {(record["solver"], record["target"]) for record in records} == {
        (solver, target) for solver in ("rehline", "sklearn") for target in (1e-3, 1e-6)
    }
    assert all(record["status"] == "reached" and record["worst"] <= 1.01 * record["target"] for record in records)
    assert "| toy1 (svm) | 2000 × 2 |" in markdown_file.read_text(encoding="utf-8")


@pytest.mark.wide_only
def test_a_rival_is_timed_beside_screenpath(tmp_path):
    file = tmp_path / "b.json"
    command = [sys.executable, str(BENCHMARKS / "run.py"), "--quick", "--only", "toy1", "--points", "5"]
    command += ["--rivals", "sklearn", "--tolerances", "1e-3", "--json", str(file)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    ours, rival = json.loads(file.read_text())["records"]
    assert ours["status"] == rival["status"] == "reached" and ours["certified"] == 5
    assert rival["ratio_least"] <= rival["ratio"] <= rival["ratio_most"]


@pytest.mark.wide_only
def test_the_logistic_path_is_within_its_target_or_left_out(tmp_path):
    command = [sys.executable, str(BENCHMARKS / "glmnet.py"), "--only", "toy1", "--points", "5", "--rounds", "1"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    if done.stdout.startswith("left out:"):
        pytest.skip(done.stdout.strip())
    cells = done.stdout.splitlines()[-1].split("|")
    assert cells[1].strip() == "toy1" and float(cells[6]) <= 1.01e-6


@pytest.mark.wide_only
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_small_run_of_converting_tables(kind):
    pytest.importorskip("pyarrow")
    command = [sys.executable, str(BENCHMARKS / "tables.py"), "--mb", "0.1", "--columns", "3", "--kind", kind]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"| {kind}, 3 columns | ")


SETS = [pytest.param("binary", "breast_cancer", marks=pytest.mark.wide_only), ("regression", "diabetes")]


@pytest.mark.parametrize("kind, name", SETS)
def test_gaps_of_other_solvers(kind, name, tmp_path):
    """The table of the guide's page, of a small set: what is installed has a gap, whatever else is named."""
    (tmp_path / kind).mkdir()
    lines = (ROOT / "data_samples" / f"{name}.libsvm").read_text().splitlines()[:60]
    (tmp_path / kind / f"{name}.libsvm.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    words = [sys.executable, str(BENCHMARKS / "how_exact.py"), str(tmp_path), "--sets", name, "--seconds", str(HANGS)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=4 * HANGS)
    assert done.returncode == 0, done.stderr
    rows = dict(line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| "))
    cells = [cell for solver, cell in rows.items() if solver != kind and not solver.startswith("skglm")]
    gaps = [float(cell.split()[0]) for cell in cells if cell != "not installed"]
    assert len(cells) == (6 if kind == "binary" else 4) and gaps and all(0.0 <= gap < 1.0 for gap in gaps)
