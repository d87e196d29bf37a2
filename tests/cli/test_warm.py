"""What is compiled before the clock of a run starts."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.catalogue.specs import LINEAR_SVM
from screenpath.engine.warm import warm_model
from screenpath.kernels.solve import newton
from screenpath.rows.memory import MemoryRows


@pytest.mark.parametrize("rows", [np.ones((3, 5000)), sp.csr_array(np.ones((3, 600)))], ids=["dense", "csr"])
def test_on_wide_rows_both_solvers_have_their_turn(monkeypatch, rows):
    solved, minimise = [], newton.minimise
    monkeypatch.setattr(newton, "minimise", lambda *arrays: solved.append(1) or minimise(*arrays))
    options = LINEAR_SVM.completed({"intercept": "none"})
    warm_model(LINEAR_SVM.resolved(LINEAR_SVM, options), options, MemoryRows(rows))
    assert solved
