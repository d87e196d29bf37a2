"""Objective equal to LIBLINEAR's L1-regularised L2-loss solver with an unpenalised bias (-s 5 -B 1 -R)."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath import l1_svm_path
from tests.conftest import two_classes

liblinear = pytest.importorskip("liblinear.liblinearutil")


@pytest.mark.parametrize("balanced", [True, False])
def test_objective_equals_liblinear(balanced):
    X, y = two_classes(n=80, d=15, seed=3)
    X += 0.3
    if not balanced:
        y[:30] = 1.0
    path = l1_svm_path(X, y, grid=6, tol=1e-9)
    data = liblinear.problem(y, sp.csr_matrix(X))
    for step in path.steps:
        lam = step.parameters["lambda"]
        # LIBLINEAR's ||w||_1 + C sum max(0, .)^2 is ours over lambda with C = 1 / (2 lambda).
        options = liblinear.parameter(f"-s 5 -c {0.5 / float(lam)!r} -B 1 -R -e 1e-8 -q")
        model = liblinear.train(data, options)
        w, b = model.get_decfun()
        margins = y * (X @ np.asarray(w) + b) * (1 if model.get_labels()[0] == 1 else -1)
        theirs = 0.5 * np.sum(np.maximum(0.0, 1.0 - margins) ** 2) + lam * np.abs(w).sum()
        assert step.primal == pytest.approx(theirs, rel=1e-6)
