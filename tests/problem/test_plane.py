"""A grid that covers the plane of (alpha, beta): no point of the rectangle is worse than promised."""

import json
from pathlib import Path

import numpy as np
import pytest

import screenpath
from screenpath.data.files.libsvm import read_libsvm
from screenpath.problem.plane import PlaneGrid, serving
from screenpath.problem.sparse_grid import SparseGrid, sparse_model
from screenpath.rows.views import Views
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.solve.sparse_newton import make_sparse_solver
from screenpath.walk.loop import PathOptions, walk
from tests.run_folders import reseal
from tests.sparse_problems import dual_rows, objectives, problem
from tests.width import wide

ROOT = Path(__file__).resolve().parents[2]
HOW = parse_sparse_rule("sifs+gap"), make_sparse_solver("auto")
POINTS = 10_000


def covered(base, epsilon, ratios=(0.1, 0.15), **limits):
    """Return grid, walked steps, and 10,000 random points of the rectangle with the place of the step that serves."""
    top = base.beta_max
    alphas = tuple(base.at(ratios[1] * top).alpha_max() * np.array([1.0, ratios[0]]))
    grid = PlaneGrid(base, alphas, (top, ratios[1] * top), epsilon)
    found = list(walk(SparseGrid(base), grid, *HOW, PathOptions(tol=epsilon / 50, **limits)))
    rng, said = np.random.default_rng(0), grid.guarantee(len(found))
    points = np.exp(
        [rng.uniform(*np.log([said[name]["to"], said[name]["from"]]), POINTS) for name in ("alpha", "beta")]
    )
    rows = [step.cells for step, _ in found]
    betas = -np.unique([-row["beta"] for row in rows])[::-1]  # rising
    ends = {beta: [(row["alpha"], row["step"]) for row in rows if row["beta"] == beta][::-1] for beta in betas}
    places = []
    for alpha, beta in points.T:
        row = ends[betas[np.searchsorted(betas, beta)]]
        places.append(row[int(np.searchsorted([end for end, _ in row], alpha))][1])
    assert all(serving(rows, said, *points[:, k])["step"] == places[k] for k in range(20))
    return grid, found, points, np.array(places)


def gaps(X, y, classes, gamma, found, points, places):
    """Return, from the definitions, gap over primal value of the pair that serves each point, and both values."""
    rows, where = dual_rows(X, y, classes)
    out = np.empty((3, places.size))
    for k in np.unique(places):
        w, theta = found[k][1].w, found[k][1].theta[where]
        for point in np.flatnonzero(places == k):
            primal, dual = objectives(rows, X.shape[0], w, theta, *points[:, point], gamma)
            out[:, point] = (primal - dual) / primal, primal, dual
    return out


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("epsilon", [0.05, 0.02])
def test_ten_thousand_points_are_within_epsilon(classes, epsilon):
    X, y, base = problem(classes, n=40, d=12, seed=classes)
    _, found, points, places = covered(base, epsilon)
    relative, primal, dual = gaps(X, y, classes, base.gamma, found, points, places)
    assert (
        relative.max() <= epsilon and np.mean(relative > 0.25 * epsilon) > 0.1
    )  # none outside, and it is no wild guess
    moved = np.minimum(places + 1, len(found) - 1)  # the next pair does not serve them all
    assert gaps(X, y, classes, base.gamma, found, points, moved)[0].max() > epsilon
    row = base.at(points[1, 0])
    for alpha, beta, value, low in zip(*points[:, : wide(15, 200)], primal, dual, strict=False):
        row = base.at(beta)
        ((_, best),) = walk(row, [alpha], *HOW, PathOptions(tol=1e-9))
        assert low <= best.highest and best.dual <= value <= best.highest / (1.0 - epsilon)


def test_real_data_with_a_free_intercept():
    data = read_libsvm(ROOT / "data_samples" / "breast_cancer.libsvm")
    X = data.X.toarray()
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), np.where(data.y > 0.0, 1, -1)
    base = sparse_model(Views(X), y.astype(np.int64), 1, 0.5, None, "free")
    _, found, points, places = covered(base, 0.03)
    worst = 0.0
    for k in np.unique(places):
        pair = found[k][1]
        t, u = 1.0 - y * (X @ pair.w + pair.intercept), X.T @ (y * pair.theta) / y.size
        assert abs(float(y @ pair.theta)) < 1e-9
        loss = np.where(t < 0.0, 0.0, np.where(t <= 0.5, t * t, t - 0.25)).mean()
        lin = (pair.theta - 0.25 * pair.theta**2).mean()
        alpha, beta = points[:, places == k]
        shrunk = np.square(np.maximum(np.abs(u)[:, None] - beta, 0.0)).sum(axis=0)
        primal = loss + 0.5 * alpha * (pair.w @ pair.w) + beta * np.abs(pair.w).sum()
        worst = max(worst, float(((primal - lin + 0.5 / alpha * shrunk) / primal).max()))
    assert 0.02 < worst <= 0.03


def test_a_path_that_stops_early_promises_whole_rows_alone():
    X, y, base = problem(2, n=40, d=12, seed=5)
    grid, found, points, places = covered(base, 0.05)
    for done in range(1, len(found)):
        said = grid.guarantee(done)["beta"]["to"]
        whole = [step.beta for step, _ in found[:done]]
        assert said == whole[-1] or (found[done][0].beta == said and found[done][0].alpha == grid.alphas[0])
    assert grid.guarantee(len(found))["beta"]["to"] == grid.betas[1]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    how = {"scale": "standard", "eps_path": 0.1, "tol": 1e-3, "alpha_min_ratio": 0.2, "beta_min_ratio": 0.4}
    data = ROOT / "data_samples" / "breast_cancer.libsvm"
    screenpath.run("sparse-svm", data, **how, certificate=True, quiet=True, out="run")
    return tmp_path / "run"


def test_the_checker_believes_what_is_true_alone(run):
    found = screenpath.verify_certificate(run)
    assert found.holds and {"run.json: guarantee.epsilon", "run.json: guarantee.beta.to"} <= set(found.covered)

    def less(record):
        record["guarantee"]["epsilon"] = record["options"]["eps_path"] = record["identity"]["eps_path"] = 0.06

    def further(record):
        record["guarantee"]["beta"]["to"] *= 0.9

    for change, said in ((less, "does not serve"), (further, "another guarantee")):
        kept = (run / "run.json").read_bytes()
        reseal(run, change)
        changed = screenpath.verify_certificate(run)
        assert not changed.holds and any(said in text for _, text in changed.faults)
        (run / "run.json").write_bytes(kept)


def test_predictions_are_by_the_step_that_serves(run):
    rows = screenpath.load_run(run).table()
    said = json.loads((run / "run.json").read_text())["guarantee"]
    alpha, beta = 0.5 * said["alpha"]["from"], 0.6 * said["beta"]["from"]
    assert serving(rows, said, alpha, beta)["beta"] >= beta
    assert serving(rows, said, alpha, 0.99 * said["beta"]["to"]) is None
    assert serving(rows, said, 1.01 * said["alpha"]["from"], beta) is None
