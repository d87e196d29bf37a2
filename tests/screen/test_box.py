"""The rules at exact references, and which rejects at least what which does: at every grid point of every sample."""

import functools

import numpy as np
import pytest

from screenpath.catalogue.losses import LAD, QUANTILE, SVM, SVR
from screenpath.data.files.libsvm import read_libsvm
from screenpath.data.files.prepare import prepare
from screenpath.problem.grid import log_grid
from screenpath.regions.geometry import Ball
from screenpath.rows.memory import MemoryRows
from screenpath.screen import STATIC, parse_rule
from screenpath.screen.box import guess_ball, pair_ball
from screenpath.solve import make_solver
from screenpath.walk.loop import PathOptions, far_end, walk
from tests.conftest import ROOT, two_classes

GRID = log_grid(1e-2, 10.0, 30)
SAMPLES = {
    "breast_cancer": "svm", "wang_toy1": "svm", "wang_toy2": "svm", "wang_toy3": "svm", "digits": "svm",
    "diabetes": "lad", "diabetes quantile": "quantile", "diabetes svr": "svr",
}  # fmt: skip


@functools.cache
def sample(name):
    """Return model, certificates along the grid and the far end's for a sample set."""
    data = read_libsvm(ROOT / "data_samples" / f"{name.split()[0]}.libsvm")
    X, _ = prepare(data.X, scale="standard", bias=1.0, storage="dense")
    rows, y = MemoryRows(X), data.y
    kind = SAMPLES[name]
    if kind == "svm":
        model = SVM.model(rows, np.where(y == np.unique(y)[-1], 1.0, -1.0))
    else:
        loss, values = {"lad": (LAD, {}), "quantile": (QUANTILE, {"tau": 0.9}), "svr": (SVR, {"epsilon": 20.0})}[kind]
        model = loss.model(rows, y, **values)
    options = PathOptions(tol=1e-8)
    found = [certificate for _, certificate in walk(model, GRID, parse_rule("dvi+gap"), make_solver("newton"), options)]
    return model, found, far_end(model, GRID, make_solver("newton"), options)[1]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_stronger_rule_rejects_at_least_what_the_weaker_does(name):
    model, found, far = sample(name)
    more, ahead = 0, 0
    for near, C in zip([model.start(GRID[0]), *found], GRID, strict=False):
        regions = {
            rule: STATIC[rule]().region(model, near, C, *((far,) if STATIC[rule].needs_far_end else ()))
            for rule in ("bt1", "bt2", "it", "ssnsv", "essnsv")
        }
        status = {rule: model.screen(region).status for rule, region in regions.items()}
        for strong, weak in (("it", "bt1"), ("it", "bt2"), ("essnsv", "ssnsv")):
            decided = status[weak] != 0
            np.testing.assert_array_equal(status[strong][decided], status[weak][decided])
            more += np.count_nonzero(status[strong]) > np.count_nonzero(decided)
        ahead += np.count_nonzero(status["bt1"]) - np.count_nonzero(status["ssnsv"])
    assert more > 0  # the comparison is not between equal rules
    assert ahead > 0  # Wang 2014, Fig. 2: DVI rejects far more than SSNSV


@pytest.mark.parametrize("name", SAMPLES)
def test_the_gap_ball_at_convergence_rejects_everything_strictly_inactive(name):
    model, found, _ = sample(name)
    solver, options = make_solver("newton"), PathOptions(tol=1e-12, max_epochs=500)
    for k in range(GRID.size):
        _, sharp = next(walk(model, GRID, parse_rule("gap"), solver, options, reference=found[k], first=k))
        ball = pair_ball(sharp, GRID[k])
        slack = np.abs(model.c - sharp.point.products)
        inactive = slack > 1e-3 * (np.abs(model.c) + model.norms * np.sqrt(sharp.point.sqnorm))
        status = model.screen(ball).status
        assert inactive.any() and np.all(status[inactive] != 0)
        np.testing.assert_array_equal(status[inactive], np.sign(model.c - sharp.point.products)[inactive])


def exact_pair(C=0.7, seed=5):
    X, y = two_classes(60, 4, seed)
    model = SVM.model(MemoryRows(X), y)
    step = list(walk(model, [C], parse_rule("none"), make_solver("newton"), PathOptions(tol=1e-14, max_epochs=500)))
    return model, step[0][1]


@pytest.mark.parametrize("C", [0.3, 0.7, 0.8, 3.0])
def test_an_exact_reference_gives_the_papers_balls(C):
    model, near = exact_pair()
    w, size = near.point.vector, np.sqrt(near.point.sqnorm)
    ball = pair_ball(near, C)
    np.testing.assert_allclose(ball.center.vector, (C + near.C) / (2 * near.C) * w, rtol=1e-12)
    assert ball.radius == pytest.approx(abs(C - near.C) / (2 * near.C) * size, rel=1e-5, abs=2e-6 * size)
    guess = (C + near.C) / (2 * near.C) * near.point.products < 1.0  # Ogawa 2014, Theorem 7, and Section IV-C
    center = 0.5 * (w + C * model.weighted_sum(guess.astype(float)))
    second = guess_ball(model, near, C)
    np.testing.assert_allclose(second.center.vector, center, rtol=1e-9, atol=1e-12)
    assert second.radius == pytest.approx(np.sqrt(center @ center + C * (near.xi - guess.sum())), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("enhanced", [False, True])
def test_an_exact_reference_gives_the_papers_dome(enhanced):
    model, near = exact_pair()
    _, far = exact_pair(5.0)
    dome = STATIC["essnsv" if enhanced else "ssnsv"]().region(model, near, 1.0, far)
    size, w = np.sqrt(far.point.sqnorm), near.point.vector
    share = 0.5 if enhanced else 0.0
    np.testing.assert_allclose(dome.center.vector, share * far.point.vector, rtol=1e-12)
    assert dome.radius == pytest.approx((0.5 if enhanced else 1.0) * size, rel=1e-5)
    np.testing.assert_allclose(dome.normal.vector, -w / np.linalg.norm(w), rtol=1e-12)
    # w0.(x - w0) >= 0, measured from the centre
    expected = -(np.linalg.norm(w) - w @ dome.center.vector / np.linalg.norm(w))
    assert dome.offset == pytest.approx(expected, abs=1e-5 * size)


def test_a_reference_at_the_origin_has_no_half_space():
    X, y = two_classes(20, 3)
    model = SVM.model(MemoryRows(X), y)
    near = model.certify(1.0, np.zeros(3), np.zeros(20))
    _, far = exact_pair(2.0)
    assert isinstance(STATIC["ssnsv"]().region(model, near, 1.0, model.certify(2.0, None, np.full(20, 0.1))), Ball)
    assert far.C == 2.0
