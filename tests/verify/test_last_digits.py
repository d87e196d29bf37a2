"""The checker proves gaps of sparse SVMs to the last digits that they are claimed to."""

import numpy as np
import pytest

from screenpath import verify_certificate
from tests.cli.conftest import libsvm_text
from tests.plain import run
from tests.width import wide


@pytest.mark.parametrize("loss", [{"smoothing": 0.0}, {"smoothing": 0.5}, {"loss": "squared-hinge"}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_what_is_claimed_at_the_smallest_tolerances_is_proven(tmp_path, classes, loss):
    """Gaps of 1e-17 at kinks, and of 1e-30 where w = 0 is optimal."""
    certified = 0
    for seed in range(wide(4, 30)):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(7, 2)) * [1e-9, 1.0, 1e5][seed % 3], np.arange(7) % classes
        (tmp_path / "data").write_text(libsvm_text(X, y))
        scale, alphas = ("none", "l2", "standard", "maxabs")[seed % 4], [0.0, 0.01, 0.1]
        path = run(
            "sparse-svm", tmp_path / "data", **loss, scale=scale, betas=2, alpha=alphas, tol=1e-14, certificate=True,
            out=tmp_path / f"run{seed}",
        )  # fmt: skip
        certified += sum(step.status == "certified" for step in path.steps)
        found = verify_certificate(tmp_path / f"run{seed}")
        assert found.faults == [], (seed, scale)
    assert certified > 10


def test_weights_without_an_l1_penalty_are_as_good_as_with_one(tmp_path):
    """Weights of 1e4 beside a dual sum of 0.1: what is rounded is their multiple by alpha."""
    rng = np.random.default_rng(0)
    (tmp_path / "data").write_text(libsvm_text(rng.normal(size=(15, 2)), 1e6 * rng.choice([-1.0, 1.0], 15)))
    run(
        "huber", tmp_path / "data", penalty="l2", smoothing=1e5, alpha=[1.4e-6, 1e-4], bias=1.0, tol=1e-9,
        certificate=True, out=tmp_path / "run",
    )  # fmt: skip
    assert verify_certificate(tmp_path / "run").faults == []


@pytest.mark.parametrize("model", ["sparse-svr", "huber"])
def test_smoothed_losses_of_targets_far_from_0_beside_their_spread(tmp_path, model):
    rng = np.random.default_rng(0)
    rows = zip(5.0 + 1e-6 * rng.normal(size=27), *rng.normal(size=(2, 27)), strict=True)
    (tmp_path / "data").write_text("".join(f"{float(y)!r} 1:{a} 2:{b}\n" for y, a, b in rows))
    tube = {"epsilon": 3.6e-8} if model == "sparse-svr" else {}
    path = run(
        model, tmp_path / "data", smoothing=0.005, betas=2, alphas=2, beta_min_ratio=1e-3, tol=1e-9, intercept="free",
        scale="standard", certificate=True, out=tmp_path / "run", **tube,
    )  # fmt: skip
    assert path.certified and verify_certificate(tmp_path / "run").faults == []


@pytest.mark.parametrize("seed", [5, 7, 16])
def test_shares_of_heavy_rows_behind_a_kernel_are_known_to_their_last_digits(tmp_path, seed):
    """What is left of a kink and a product of 1 is a part of 1e-17 of them, and all of the gap."""
    X, weights = np.random.default_rng(seed).normal(size=(6, 2)), np.array([1e4, 3.0, 0.0, 0.0, 1e4, 1.0])
    (tmp_path / "data").write_text(libsvm_text(X, [-1, -1, 1, 1, 1, -1]))
    about = {"kernel": "linear", "bias": 1.0, "weights": weights, "c_list": [1.0, 50.0], "tol": 1e-9}
    path = run("svm", tmp_path / "data", **about, certificate=True, out=tmp_path / "run")
    assert path.certified and verify_certificate(tmp_path / "run").faults == []
