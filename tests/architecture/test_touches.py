"""How many files a new rule, solver or column touches: each is added to a copy of the package, and used."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import clouds, libsvm_text
from tests.conftest import HANGS

ROOT = Path(__file__).resolve().parents[2]
# A region that contains the optimum because the ball of DVI does: twice its radius.
RULE = '''

class Wide(DVI):
    """The ball of DVI with twice its radius."""

    name = "wide"
    compiled = None

    def region(self, model, reference, C: float) -> Ball:
        """Return the ball of the reference's own pair, blown up."""
        ball = pair_ball(reference, C)
        return Ball(ball.center, 2.0 * ball.radius)
'''
SOLVER = '''"""Newton under another name."""

from screenpath.solve.newton import Newton


class Renamed(Newton):
    """Newton under another name."""

    name = "renamed"
'''
FORMAT = '''def words(run: Run, step: dict) -> str:
    """Return how many weights there are."""
    return f"{step['nnz_w']} weights"


'''


@pytest.fixture
def house(tmp_path):
    """A copy of the package, a function that changes a file of it, and one that runs a command of the copy."""
    shutil.copytree(ROOT / "screenpath", tmp_path / "screenpath", ignore=shutil.ignore_patterns("__pycache__"))
    X, y = clouds(60, 4, seed=1)
    (tmp_path / "data").write_text(libsvm_text(np.round(X, 6), y))
    touched = set()

    def change(name, old, new):
        file = tmp_path / "screenpath" / name
        text = file.read_text() if file.exists() else ""
        assert not text or text.count(old) >= 1, (name, old)
        file.write_text(text.replace(old, new, 1) if text else new)
        touched.add(name)

    def run(*arguments):
        command = [sys.executable, "-m", "screenpath", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HANGS)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return change, run, touched


def test_a_rule_touches_two_files(house):
    change, run, touched = house
    change("screen/box.py", "\n\nclass BT2", RULE + "\n\nclass BT2")
    change("screen/__init__.py", "BT2, DVI, ESSNSV", "BT2, DVI, ESSNSV, Wide")
    change("screen/__init__.py", '"bt2": BT2', '"wide": Wide, "bt2": BT2')
    assert len(touched) <= 2
    table = run("svm", "data", "--rule", "wide", "--grid", "6", "--audit", "-o", "-", "--quiet").splitlines()
    rows = [dict(zip(table[0].split(","), line.split(","), strict=True)) for line in table[1:]]
    assert {row["status"] for row in rows} == {"certified"} and {row["unsafe"] for row in rows} == {"0"}
    assert sum(int(row["screened_R"]) + int(row["screened_L"]) for row in rows) > 0
    assert "wide" in run("compare", "svm", "data", "--rules", "none,wide", "--grid", "3", "--repeats", "1", "--quiet")


def test_a_solver_touches_two_files(house):
    change, run, touched = house
    change("solve/renamed.py", "", SOLVER)
    change("solve/__init__.py", 'NAMES = ("auto", ', 'NAMES = ("auto", "renamed", ')
    change(
        "solve/__init__.py",
        '    if name == "newton":',
        '    if name == "renamed":\n        from screenpath.solve.renamed import Renamed\n\n'
        '        return Renamed()\n    if name == "newton":',
    )
    assert len(touched) <= 2
    table = run("lad", "data", "--solver", "renamed", "--grid", "3", "-o", "-", "--quiet")
    assert table.count("certified") == 3


def test_an_export_format_touches_one_file(house):
    change, run, touched = house
    change("export/export.py", "FORMATS: dict", f"{FORMAT}FORMATS: dict")
    change("export/export.py", '    "json": json_text,', '    "json": json_text,\n    "words": words,')
    assert len(touched) == 1
    run("svm", "data", "--grid", "3", "-o", "run", "--quiet")
    assert run("export", "run", "--step", "2", "--to", "words", "-o", "-", "--quiet") == "4 weights"
    assert "words" in run("export", "--help")


def test_a_column_touches_two_files(house):
    change, run, touched = house
    change("walk/step.py", '    Column("rounds"', '    Column("pairs", "half of the epochs", 0),\n    Column("rounds"')
    change("walk/step.py", '"epochs": epochs,', '"epochs": epochs, "pairs": epochs // 2,')
    half = '    columns |= {"pairs": columns["epochs"] // 2}\n'
    change("walk/compiled.py", '    columns |= {"gap_target"', f'{half}    columns |= {{"gap_target"')
    assert len(touched) <= 2
    for command in (
        ("svm", "data"),
        ("svm", "data", "--rule", "it"),
        ("l1svm", "data"),
        ("svm", "data", "--one-vs-rest"),
    ):
        table = run(*command, "--grid", "3", "-o", "-", "--quiet").splitlines()
        rows = [dict(zip(table[0].split(","), line.split(","), strict=True)) for line in table[1:]]
        assert len(rows) == 3 and all(int(row["pairs"]) == int(row["epochs"]) // 2 for row in rows)
    run("svm", "data", "--grid", "3", "-o", "run", "--quiet", "--test", "data")
    run("predict", "run", "data", "--step", "best", "--quiet")
