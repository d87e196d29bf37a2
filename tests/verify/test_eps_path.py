"""What an eps-path promises between its steps, with a free intercept too: checked, and never wrongly believed."""

from fractions import Fraction as F

import numpy as np
import pytest

from screenpath import verify_certificate
from tests import plain
from tests.certificates.compare import exact
from tests.cli.conftest import libsvm_text

PATHS = {
    "svm": {}, "svm-free": {"intercept": "free"}, "svm-weights": {"intercept": "free", "class_weight": {1: 3.0}},
    "svm-rbf-free": {"intercept": "free", "kernel": "rbf", "gamma": "0.5"}, "lad-free": {"intercept": "free"},
    "quantile-free": {"intercept": "free", "tau": 0.25}, "svr-free": {"intercept": "free", "epsilon": 0.25},
}  # fmt: skip


@pytest.fixture(scope="module", params=list(PATHS))
def checked(request, tmp_path_factory):
    """Return what the checker finds out about an eps-path, the exact steps, and the promise."""
    model, folder = request.param.split("-")[0], tmp_path_factory.mktemp("eps")
    rng = np.random.default_rng(len(request.param))
    X = np.round(rng.normal(size=(14, 2)), 2)
    X[X == 0.0] = 0.5
    y = np.where(X[:, 0] + rng.normal(size=14) > 0.0, 1.0, -1.0)
    y = y if model == "svm" else np.round(3.0 * X[:, 0] + rng.normal(size=14), 2)
    (data := folder / "data").write_text(libsvm_text(X, y))
    more = {"eps_path": 0.2, "tol": 0.02, "cmin": 0.2, "cmax": 2.0, "certificate": True, "quiet": True}
    run = plain.run(model, data, **PATHS[request.param], **more, out=folder / "run")
    found = verify_certificate(run.folder, data)
    return found, exact.certified((run.run.path / "certificate.bin").read_bytes(), data)[2]


def holds(step, C, epsilon) -> bool:
    """Tell in fractions whether the pair of a step has a gap of at most epsilon times its dual value at C."""
    there = exact.Step(step.problem, {**step.entry, "C": C})
    gap = min(exact.ends(there.gap(theta))[1] for theta in there.completed())
    if step.problem.kernel:  # w stays what it is, and is not that of the dual point at C
        x = F(C) / step.W
        slack = step.W * sum(loss - y * t for loss, y, t in zip(step.losses, step.theta, step.t, strict=True))
        gap = (1 - x) ** 2 * step.square / 2 + x * slack
        P = exact.ends(step.square)[1] / 2 + F(C) * exact.ends(sum(step.losses))[0]
        return exact.ends(gap)[1] <= F(epsilon) * (P - exact.ends(gap)[1])
    return gap <= F(epsilon) * (exact.ends(there.P)[0] - gap)


def test_the_promise_is_covered(checked):
    found, steps = checked
    assert found.holds and len(steps) > 2
    assert "run.json: guarantee.epsilon" in found.covered
    for k in list(steps)[:-1]:
        assert found.pairs[k].serves(float(steps[k + 1].W), 0.2)


def test_it_is_believed_only_where_it_is_true(checked):
    """And not beyond: some of these parameters are further than the pair serves."""
    found, steps = checked
    believed = []
    for k, step in steps.items():
        for factor in (1.0, 1.05, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 4.0):
            for epsilon in (0.2, 0.05):
                C = float(step.W) * factor
                if found.pairs[k].serves(C, epsilon):
                    assert holds(step, C, epsilon)
                believed.append(found.pairs[k].serves(C, epsilon))
    assert any(believed) and not all(believed)
