"""A box loss is an entry of data: one file changes in a copy of the package, and all that takes models has it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from screenpath.catalogue.losses import LOSSES
from tests.cli.conftest import libsvm_text, read_csv
from tests.conftest import HANGS

ROOT = Path(__file__).resolve().parents[2]
ENTRY = """

def _at_least_one(value) -> bool:
    return value >= 1.0


STEEP = Loss(
    name="steep",
    title="regressions whose overestimates cost more",
    objective="1/2 ||w||^2 + C sum_i s_i max(-factor t_i, t_i), t_i = y_i - x_i.w",
    kinks=lambda y, o: y,
    slopes=lambda o: (-o.factor, 1.0),
    options=(number("factor", 3.0, _at_least_one, "must be at least 1", "What an overestimate costs."),),
)
LOSSES[STEEP.name] = STEEP
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of the package with one more loss, and a function that runs its command."""
    folder = tmp_path_factory.mktemp("house")
    shutil.copytree(ROOT / "screenpath", folder / "screenpath")  # byte code too: times of files stay
    losses = folder / "screenpath" / "catalogue" / "losses.py"
    losses.write_text(losses.read_text() + ENTRY)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    (folder / "data").write_text(libsvm_text(X, np.round(X @ [1.0, -2.0, 0.5, 0.0] + rng.standard_t(3, size=60), 6)))

    def run(*arguments):
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        command = [sys.executable, "-m", "screenpath", *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=HANGS)

    return folder, run


def test_every_command_has_it(house):
    folder, run = house
    assert "steep" in run("--help").stdout and "steep" in run("cv", "--help").stdout
    assert all("--factor" in run(*names, "steep", "--help-all").stdout for names in ((), ("compare",)))
    done = run("steep", "data", "--grid", "4", "--factor", "5", "--bias", "1", "--audit", "--quiet", "-o", "run")
    assert done.returncode == 0, done.stderr
    done = run("predict", "run", "data", "--step", "0", "-o", "-")
    assert done.returncode == 0 and "mae: " in done.stderr, done.stderr
    done = run("cv", "steep", "data", "--grid", "3", "--folds", "3", "--jobs", "2", "--quiet", "-o", "cv")
    assert done.returncode == 0, done.stderr
    done = run("compare", "steep", "data", "--rules", "none,dvi", "--grid", "3", "--repeats", "1", "--quiet")
    assert done.returncode == 0, done.stderr
    done = run("export", "run", "--step", "0", "--to", "liblinear", "-o", "-", "--quiet")
    assert done.returncode == 0 and "L2R_L1LOSS_SVR_DUAL" in done.stdout, done.stderr
    done = run("steep", "data", "--factor", "0.5", "-o", "-")
    assert done.returncode == 2 and "factor must be at least 1, not 0.5" in done.stderr


def test_its_numbers_are_those_of_its_formula(house):
    folder, run = house
    done = run("steep", "data", "--c-list", "0.5", "--factor", "1", "--tol", "1e-9", "--quiet", "-o", "symmetric")
    assert done.returncode == 0, done.stderr
    done = run("lad", "data", "--c-list", "0.5", "--tol", "1e-9", "--quiet", "-o", "lad")
    assert done.returncode == 0, done.stderr
    one, other = (float(read_csv(folder / name / "steps.csv")[0]["primal"]) for name in ("symmetric", "lad"))
    assert one == pytest.approx(other, rel=1e-8)
    assert "steep" not in LOSSES  # the copy alone has it
