"""The scripts of the papers' tables run on the toys alone, and their tables say what they have to."""

import csv
import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


def run_script(name, tmp_path, folder="no data", **settings):
    """Run a script of examples/papers without any data, or with a folder's; return its page as lines."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SCREENPATH": f"{sys.executable} -m screenpath"}
    environment |= {"PYTHON": sys.executable, "GRID": "5", "REPEATS": "1", **settings}
    done = subprocess.run(
        ["sh", str(ROOT / "examples" / "papers" / f"{name}.sh"), str(tmp_path / folder), str(tmp_path / "out")],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "left out" in done.stdout
    return (tmp_path / "out" / f"{name}.md").read_text().splitlines()


def cells(page, start):
    """Return the cells of the first line that starts so."""
    return [cell.strip() for cell in next(line for line in page if line.startswith(start)).strip("|").split("|")]


def test_wang2014(tmp_path):
    page = run_script("wang2014", tmp_path)
    assert cells(page, "| toy1 | dvi |")[2] == "5 of 5" and cells(page, "| toy1 | dvi |")[-1] == "59.15"
    assert float(cells(page, "| toy1 | dvi |")[3]) > 0.5
    assert float(cells(page, "| toy1 | none |")[6]) == 1.0
    with open(tmp_path / "out" / "toy1-rejection_ratio.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 5 and float(rows[-1]["C"]) == 10.0 and 0.0 < float(rows[-1]["dvi"]) <= 1.0


def test_ogawa2013(tmp_path):
    page = run_script("ogawa2013", tmp_path)
    heuristic, rule = (float(cells(page, f"| toy | {name} |")[3]) for name in ("heuristic", "essnsv"))
    assert heuristic > rule > 0.0


def test_ogawa2014_linear(tmp_path):
    page = run_script("ogawa2014_linear", tmp_path, CMAX="10", EPS="1e-2", POINTS="0.9")
    _, _, bt1, bt2, it = cells(page, "| toy | 0.9 |")
    assert float(it) >= float(bt1) and float(it) >= float(bt2)
    assert {cells(page, f"| toy | {name} |")[2] for name in ("none", "bt1", "it", "it+shrinking")} == {
        cells(page, "| toy | none |")[2]
    }
    assert cells(page, "| toy | 0.95 |")[-1] in ("more", "less", "the same")


@pytest.mark.parametrize("arguments", [[], ["nonsense"]])
def test_tables_explains_itself(arguments):
    script = ROOT / "examples" / "papers" / "tables.py"
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)
    assert done.returncode != 0 and "tables.py rows NAME" in done.stderr and "Traceback" not in done.stderr


def test_ogawa2014_kernel(tmp_path):
    folder = tmp_path / "data" / "binary"
    folder.mkdir(parents=True)
    (folder / "breast_cancer.libsvm.gz").write_bytes((ROOT / "data_samples" / "breast_cancer.libsvm.gz").read_bytes())
    settings = {"EPS": "1e-1", "TOL": "1e-3", "CMAX": "1", "POINTS": "0.9", "SETS": "bcd-1 digit1-1 bcd", "GAMMAS": "1"}
    page = run_script("ogawa2014_kernel", tmp_path, "data", **settings)
    variants = ("none", "bt1", "it", "none+shrinking", "bt1+shrinking", "it+shrinking")
    found = [cells(page, f"| bcd-1 | {name} |") for name in variants]
    assert len({line[2] for line in found}) == 1 and found[2][-1] == "5.88"
    assert float(found[2][3]) >= float(found[1][3]) > 0.0
    _, _, bt1, bt2, it = cells(page, "| bcd | 0.9 |")
    assert float(it) >= float(bt1) and float(it) >= float(bt2)
