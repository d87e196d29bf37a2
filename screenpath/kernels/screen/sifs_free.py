"""SIFS with free intercepts: signatures in addition to those of ``sifs``. This module holds no kernel."""

import numpy as np

from screenpath.kernels.problem.sparse_samples import Samples
from screenpath.kernels.screen import sifs
from screenpath.kernels.screen.sparse_levers import decide_levels


def warm_up():
    sifs.warm_up(np.empty((4, 1)))
    view = np.ones(3), np.zeros(3, dtype=np.int32), np.arange(4)
    samples = Samples(np.array([0, 1, 2], dtype=np.int64), np.ones(3), 3, 3, 0.5)
    a, status, keep = np.full(9, 0.5), np.zeros(9, dtype=np.int8), np.ones(3, dtype=np.int8)
    decide_levels(view, samples, a, a, status, keep, np.zeros(1), 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, a, np.ones(3),
                  np.ones(3), (1e-12,) * 6, np.empty(9, dtype=np.int64))  # fmt: skip
