"""What is compiled before the clock of a run starts."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.catalogue.specs import LINEAR_SVM
from screenpath.engine import warm
from screenpath.kernels.problem import partition
from screenpath.kernels.solve import newton
from screenpath.rows.memory import MemoryRows
from screenpath.walk import point


@pytest.mark.parametrize("rows", [np.ones((3, 5000)), sp.csr_array(np.ones((3, 600)))], ids=["dense", "csr"])
def test_on_wide_rows_both_solvers_have_their_turn(monkeypatch, rows):
    solved, minimise = [], newton.minimise
    monkeypatch.setattr(newton, "minimise", lambda *arrays: solved.append(1) or minimise(*arrays))
    options = LINEAR_SVM.completed({"intercept": "none"})
    warm.warm_model(LINEAR_SVM.resolved(LINEAR_SVM, options), options, MemoryRows(rows))
    assert solved


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_the_loop_has_its_turn_beside_the_compiled_walk(monkeypatch, intercept):
    """A step that a compiled walk refuses is the loop's: its kernels must not compile under that step's clock."""
    called, box_part, best_of = [], partition.box_part, warm.best_of
    monkeypatch.setattr(partition, "box_part", lambda *arrays: called.append("part") or box_part(*arrays))
    monkeypatch.setattr(warm, "best_of", lambda *ends: called.append("best") or best_of(*ends))
    monkeypatch.setattr(warm, "_warmed", set())
    options = LINEAR_SVM.completed({"intercept": intercept})
    warm.warm_model(LINEAR_SVM.resolved(LINEAR_SVM, options), options, MemoryRows(np.ones((3, 5))))
    assert set(called) == {"part", *(["best"] if intercept == "free" else [])}


def test_a_compilation_under_way_is_no_time_of_a_step(monkeypatch):
    """Whatever kernel nobody foresaw: `compilation.clock` stands still meanwhile."""
    monkeypatch.setattr(point, "clock", iter((5.0, 5.0, 7.0)).__next__)
    one = point._Clock(MemoryRows(np.ones((3, 5))))
    one.enter("solve")
    one.enter("certify")
    assert one.seconds == {"screen": 0.0, "solve": 2.0, "certify": 0.0}
