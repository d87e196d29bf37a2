"""The scripts of the benchmarks run on small sets, judge both sides, and say what they leave out."""

import gzip
import os
import re
import runpy
import subprocess
import sys

import pytest

from tests.cli.conftest import clouds, libsvm_text
from tests.conftest import HANGS, ROOT

pytest.importorskip("sklearn")
SAMPLES = ROOT / "data_samples"
TOY = SAMPLES / "wang_toy1.libsvm"


def script(name, *words, code=0, **variables):
    """Run a script of the benchmarks; return what it says."""
    command = [sys.executable, "-W", "ignore", ROOT / "examples" / "benchmarks" / name, *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run(map(str, command), env=environment, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def cells(line) -> list[str]:
    """Return the cells of a line of a table."""
    return [cell.strip() for cell in line.strip("|").split("|")]


def row(done, start) -> list[str]:
    return cells(next(line for line in done.stdout.splitlines() if line.startswith(f"| {start}")))


def put(folder, name, text: bytes) -> None:
    """Put a compressed set where scripts look for it."""
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / f"{name}.libsvm.gz").write_bytes(gzip.compress(text))


@pytest.mark.wide_only
def test_cross_validation():
    done = script("cv.py", "--data", TOY, "--folds", 3, "--grid", 6, "--every", 2, "--jobs", 1)
    assert "GridSearchCV, 3 of 6 C, x 2" in done.stdout
    assert float(re.search(r"difference of the mean accuracies: (\S+)", done.stdout)[1]) <= 0.01


def test_missing_data():
    assert "none.libsvm is not here" in script("cv.py", "--data", "none.libsvm", code=1).stderr


@pytest.mark.wide_only
def test_the_search_of_scikit_learn():
    done = script("sklearn_cv.py", TOY, "none", "--folds", 3, "--grid", 4, "--repeats", 1)
    found = row(done, "wang_toy1")
    assert abs(float(found[4]) - float(found[5])) <= 3 * float(found[6]) + 0.01 and float(found[4]) > 0.8
    assert "none.libsvm.gz is not here" in done.stdout


@pytest.mark.wide_only
def test_a_single_fit():
    done = script("sklearn_single.py", TOY, "none", "--repeats", 1)
    assert -1e-6 < float(row(done, "wang")[4]) < 0.1 and "none.libsvm.gz is not here" in done.stdout


@pytest.mark.wide_only
def test_probabilities():
    found = row(script("brier.py", SAMPLES / "breast_cancer.libsvm.gz", "none"), "breast")
    assert float(found[3]) < 0.1 and abs(float(found[3]) - float(found[4])) < 3 * float(found[6]) + 1e-5  # 5 digits


@pytest.mark.wide_only
def test_the_exact_hinge():
    pytest.importorskip("rehline")
    pytest.importorskip("clarabel")
    few = ("--only", "60x50", "--betas", 2, "--alphas", 4, "--runs", 1, "--rivals", "rehline,clarabel")
    said = script("exact_hinge.py", *few).stdout
    assert "8 pairs, all certified: True" in said
    ratios = re.findall(r"(rehline|clarabel): [0-9.]+ s \(tol 1e-[0-9]+\), ([0-9.]+) x", said)
    assert [who for who, _ in ratios] == ["rehline", "clarabel"], said
    assert all(float(ratio) > 0.0 for _, ratio in ratios)


@pytest.mark.wide_only
def test_the_sparse_svm():
    pytest.importorskip("skglm")
    said = script("sparse_svm.py", "--only", "100x100", "--betas", 3, "--alphas", 5, "--runs", 1).stdout
    assert "all certified: True" in said
    gaps = [float(gap) for gap in re.findall(r"worst gap ([0-9.e-]+)", said)]
    assert len(gaps) == 2 and max(gaps) <= 1e-6
    assert float(re.search(r"ratio ([0-9.]+)", said).group(1)) > 0.0


@pytest.mark.wide_only
def test_free_intercepts(tmp_path):
    pytest.importorskip("clarabel")
    for kind, name in (("binary", "breast_cancer"), ("regression", "diabetes")):
        put(tmp_path, f"{kind}/{name}", (SAMPLES / f"{name}.libsvm").read_bytes())
    done = script("intercept.py", tmp_path, "--rows", 60, "--sets", "breast_cancer,diabetes,dna")
    assert "dna: left out" in done.stderr
    rows = [cells(line) for line in done.stdout.splitlines()[2:6]]
    assert [found[2] for found in rows] == ["svm", "svm, RBF", "svr", "lad"] and {r[3] for r in rows} == {"4 of 4"}


def test_rejection_of_the_rule_of_free_intercepts(tmp_path, capsys):
    put(tmp_path, "regression/diabetes", (SAMPLES / "diabetes.libsvm").read_bytes())
    functions = runpy.run_path(str(ROOT / "examples" / "benchmarks" / "intercept.py"))
    assert functions["rejections"](tmp_path, None) == 0
    name, model, share = cells(capsys.readouterr().out.splitlines()[2])
    assert (name, model) == ("diabetes", "quantile") and 0.9 < float(share) < 1.0


def test_kernel_objectives_are_those_of_another_program(tmp_path, capsys):
    for name in ("binary/breast_cancer", "regression/diabetes"):
        put(tmp_path, name, (SAMPLES / f"{name.split('/')[1]}.libsvm").read_bytes())
    runpy.run_path(str(ROOT / "examples" / "benchmarks" / "same_objective.py"))["main"](tmp_path, 60)
    rows = [cells(line) for line in capsys.readouterr().out.splitlines()[2:4]]
    assert [row[0] for row in rows] == ["breast_cancer", "diabetes"]
    assert all(len(row) == 9 and max(map(float, row[1:])) < 1e-6 for row in rows)


@pytest.mark.wide_only
def test_the_kernel_model(tmp_path):
    put(tmp_path, "binary/breast_cancer", (SAMPLES / "breast_cancer.libsvm").read_bytes())
    done = script("kernel_svm.py", tmp_path, "--points", 4, "--repeats", 1, "--sets", "breast_cancer,dna")
    assert "dna: left out" in done.stderr
    found = cells(done.stdout.splitlines()[2])
    assert found[:4] == ["breast_cancer", "569", "30", "4 of 4"] and float(found[-1]) > 0.0


@pytest.mark.wide_only
def test_the_l1_model(tmp_path):
    pytest.importorskip("cyanure")
    pytest.importorskip("liblinear")
    put(tmp_path, "binary/toy", libsvm_text(*clouds()).encode())
    few = ("toy:standard", "absent", "--repeats", 1, "--cap", 20)
    said = script("l1svm.py", *few, SCREENPATH_DATA=str(tmp_path)).stdout
    assert "absent" in said and "left out" in said
    for who in ("screenpath", "liblinear"):
        found = re.search(rf"toy:standard +{who} +tol +\S+ +worst +(\S+)", said)
        assert found and float(found[1]) <= 1e-6
