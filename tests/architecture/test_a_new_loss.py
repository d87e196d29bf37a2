"""A loss is an entry of data: one file changes in a copy of the package, and all that takes models has it."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from screenpath.catalogue.losses import LOSSES
from tests.architecture.house import commands
from tests.cli.conftest import libsvm_text, read_csv

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
NET = """

SMOOTH = replace(
    HUBER,
    name="smooth",
    title="smoothed quantile regressions",
    loss="q(y_i - x_i.w)",
    formula="q(t) = max theta t - gamma/2 theta^2 over -0.25 <= theta <= 0.75",
    box=replace(LAD, slopes=lambda o: (-0.25, 0.75)),
)
NETS[SMOOTH.name] = SMOOTH
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of the package with one more loss of each kind."""
    folder = tmp_path_factory.mktemp("house")
    shutil.copytree(ROOT / "screenpath", folder / "screenpath")  # byte code too: times of files stay
    losses = folder / "screenpath" / "catalogue" / "losses.py"
    losses.write_text(losses.read_text() + ENTRY)
    nets = folder / "screenpath" / "catalogue" / "elastic.py"
    nets.write_text(nets.read_text() + NET)
    (folder / "data").write_text(libsvm_text(*_data()))
    return folder


def _data():
    """Return features and targets, which the text has with all their digits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    return X, np.round(X @ [1.0, -2.0, 0.5, 0.0] + rng.standard_t(3, size=60), 4)


def test_every_command_has_it(house):
    said = {
        "--help": "steep", "cv --help": "steep", "steep --help-all": "--factor", "compare steep --help-all": "--factor",
        "steep data --grid 4 --factor 5 --bias 1 --audit --quiet -o run": "",
        "predict run data --step 0 -o -": "mae: ",
        "cv steep data --grid 3 --folds 3 --jobs 2 --quiet -o cv": "",
        "compare steep data --rules none,dvi --grid 3 --repeats 1 --quiet": "",
        "export run --step 0 --to liblinear -o - --quiet": "L2R_L1LOSS_SVR_DUAL",
        "steep data --penalty l1 --betas 2 --factor 5 --quiet -o l1": "",
        "show l1 --quiet": "sparse-steep",
    }  # fmt: skip
    *found, refused = commands(house, *said, "steep data --factor 0.5 -o -")
    for (line, text), done in zip(said.items(), found, strict=True):
        assert done.code == 0 and text in done.out + done.err, (line, done)
    assert refused.code == 2 and "factor must be at least 1, not '0.5'" in refused.err


def test_its_numbers_are_those_of_its_formula(house):
    words = "data --c-list 0.5 --tol 1e-9 --quiet -o"
    found = commands(house, f"steep {words} symmetric --factor 1", f"lad {words} lad")
    assert [done.code for done in found] == [0, 0], found
    one, other = (float(read_csv(house / name / "steps.csv")[0]["primal"]) for name in ("symmetric", "lad"))
    assert one == pytest.approx(other, rel=1e-8)
    assert "steep" not in LOSSES  # the copy alone has it


def test_every_command_has_a_loss_with_a_quadratic_part(house):
    grid = "--betas 2 --alphas 3 --quiet"
    said = {
        "--help": "smooth", "cv --help": "smooth", "smooth --help-all": "--smoothing",
        f"smooth data {grid} --smoothing 0.5 --audit -o net": "",
        "predict net data --step 0 -o -": "mae: ",
        f"cv smooth data {grid} --folds 3 --jobs 2 -o netcv": "",
        f"compare-rules smooth data {grid} --rules none,sifs,ifs+gap --repeats 1": "",
        "compare-rules smooth --attack 10 --quiet": "| sifs | 10 |",
        "export net --step 0 --to liblinear -o - --quiet": "L2R_L1LOSS_SVR_DUAL",
    }  # fmt: skip
    for (line, text), done in zip(said.items(), commands(house, *said), strict=True):
        assert done.code == 0 and text in done.out + done.err, (line, done)
    rows = read_csv(house / "net" / "steps.csv")
    assert all(row["status"] == "certified" and row["unsafe"] == "0" for row in rows)
    X, y = _data()
    found = np.zeros((len(rows), X.shape[1] + 1))
    for row in read_csv(house / "net" / "coefficients.csv"):
        found[int(row["step"]), int(row["feature"])] = float(row["value"])
    for row, (b, *w) in zip(rows, found, strict=True):
        t, alpha, beta = y - X @ w - b, float(row["alpha"]), float(row["beta"])
        theta = np.clip(t / 0.5, -0.25, 0.75)
        value = np.mean(theta * t - 0.25 * theta**2) + 0.5 * alpha * np.dot(w, w) + beta * np.abs(w).sum()
        assert float(row["primal"]) == pytest.approx(value, rel=1e-9)
        assert abs(theta.mean()) < 1e-9  # the free intercept is the best
