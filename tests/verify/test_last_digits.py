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
