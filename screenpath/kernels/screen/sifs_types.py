"""Arguments of the screening of a sparse SVM, see ``kernels/screen/sifs.py``. This module holds no kernel."""

from typing import NamedTuple

import numpy as np


class Constants(NamedTuple):
    """What a model and its data have in common for every pair."""

    columns: tuple  # columns, rows: both views of the data. Columns on disk that were not read look empty in both
    rows: tuple
    signs: np.ndarray  # int8, of weights; 0 for any
    u_kinks: np.ndarray  # ``X' psi(c)/n``, ``c`` the kinks
    # row_sq, row_norm, col_sq, col_norm: squared norms of samples and of (class, feature) columns of the dual
    # (weighted), unconditioned; ``row_norm`` and ``n col_norm`` are their roots
    row_sq: np.ndarray
    row_norm: np.ndarray
    col_sq: np.ndarray
    col_norm: np.ndarray
    # shape (d,): twice the point from which the distances of the rows are measured; ``row_part`` has ``x^2 - twice x``
    twice: np.ndarray
    # column_ends, row_ends: int64 of shape (d + 1,), (n + 1,). Running totals of the lengths of the lines, unread ones
    # included: costs are computed from these
    column_ends: np.ndarray
    row_ends: np.ndarray


class Reference(NamedTuple):
    """The pair that is screened from; variables decided on entry must have their value in ``theta`` and ``w``."""

    scores: np.ndarray  # ``X w``
    w: np.ndarray
    theta: np.ndarray
    psi: np.ndarray  # ``psi(theta)``
    u: np.ndarray  # ``X' psi(theta)/n``; entries with an error are recomputed where needed
    u_slack: np.ndarray  # bounds on the errors of ``u``
    formed: np.ndarray  # int64
    room: float  # no dual point within ``room`` of ``theta`` gives a feature outside ``formed`` a weight
    level: float  # size of the free intercept in ``scores``
    w_norm: float


class Regions(NamedTuple):
    """The optimum's regions: centres as multiples of the reference, squared radii."""

    scale: float  # scale, primal_sq: primal ball, centre ``scale w`` and squared radius
    primal_sq: float
    # kink_part, theta_part, first_sq: the paper's dual ball, centre ``kink_part c + theta_part theta``, squared
    # radius; only if ``paper``
    kink_part: float
    theta_part: float
    first_sq: float
    second_sq: float  # squared radius of the gap ball around ``theta``
    between_sq: float  # lower bound of the squared distance of the two dual centres
    theta_norm: float  # largest norm of a dual point
    paper: bool


class Found(NamedTuple):
    """Decisions so far and partial squared norms, updated.

    ``col_total``, of shape (classes * d,): with a free intercept, sums of the columns over the surviving dual variables
    of a class, with their weights. ``known_keep`` and ``known_part``: see ``kernels.screen.conditioning.keep_columns``.
    """

    status: np.ndarray
    keep: np.ndarray
    row_part: np.ndarray
    col_part: np.ndarray
    col_total: np.ndarray
    known_keep: np.ndarray
    known_part: np.ndarray
