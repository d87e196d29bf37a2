"""Arguments of the screening of a sparse SVM, see ``kernels/screen/sifs.py``. This module holds no kernel."""

from typing import NamedTuple

import numpy as np


class Constants(NamedTuple):
    """What a model and its data have in common for every pair.

    Attributes
    ----------
    columns, rows : tuple of ndarray
        Both views of the data. Columns on disk that were not read look empty in both.
    u_ones : ndarray
        ``X' psi(1)/n``.
    row_sq, row_norm, col_sq, col_norm : ndarray
        Squared norms of samples and of (class, feature) columns of the dual (weighted), unconditioned; ``row_norm`` and
        ``n col_norm`` are their roots.
    twice : ndarray of shape (d,)
        Twice the point from which the distances of the rows are measured; ``row_part`` has ``x^2 - twice x``.
    column_ends, row_ends : ndarray of int64 of shape (d + 1,), (n + 1,)
        Running totals of the lengths of the lines, unread ones included: costs are computed from these.
    """

    columns: tuple
    rows: tuple
    u_ones: np.ndarray
    row_sq: np.ndarray
    row_norm: np.ndarray
    col_sq: np.ndarray
    col_norm: np.ndarray
    twice: np.ndarray
    column_ends: np.ndarray
    row_ends: np.ndarray


class Reference(NamedTuple):
    """The pair that is screened from; variables decided on entry must have their value in ``theta`` and ``w``.

    Attributes
    ----------
    scores, w, theta, psi, u, u_slack : ndarray
        ``X w``, ``w``, ``theta``, ``psi(theta)``, ``X' psi(theta)/n``, bounds on the latter's errors; entries of ``u``
        with an error are recomputed where needed.
    formed : ndarray of int64
    room : float
        No dual point within ``room`` of ``theta`` gives a feature outside ``formed`` a weight.
    level : float
        Size of the free intercept in ``scores``.
    w_norm : float
    """

    scores: np.ndarray
    w: np.ndarray
    theta: np.ndarray
    psi: np.ndarray
    u: np.ndarray
    u_slack: np.ndarray
    formed: np.ndarray
    room: float
    level: float
    w_norm: float


class Regions(NamedTuple):
    """The optimum's regions: centres as multiples of the reference, squared radii.

    Attributes
    ----------
    scale, primal_sq : float
        Primal ball: centre ``scale w`` and squared radius.
    ones_part, theta_part, first_sq : float
        The paper's dual ball: centre ``ones_part 1 + theta_part theta``, squared radius. Used only if ``paper``.
    second_sq : float
        Squared radius of the gap ball around ``theta``.
    between_sq : float
        Lower bound of the squared distance of the two dual centres.
    theta_norm : float
        Largest norm of a dual point.
    budget : float
        See ``kernels/screen/sparse_box.py``.
    worth : float
        The box is used only if it promises to zero this share of the features left: 0 for always, infinite for never.
    """

    scale: float
    primal_sq: float
    ones_part: float
    theta_part: float
    first_sq: float
    second_sq: float
    between_sq: float
    theta_norm: float
    budget: float
    paper: bool
    worth: float


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
