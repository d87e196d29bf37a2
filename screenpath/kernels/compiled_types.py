"""What a compiled walk is given, see ``kernels/compiled.py``. This module holds no kernel."""

from typing import NamedTuple

import numpy as np


class Problem(NamedTuple):
    """A box model on its rows.

    Attributes
    ----------
    edges : ndarray of int64
        Of the blocks in which sums over rows are formed, as ``rows.memory`` forms them.
    c, lo, hi, norms : ndarray of shape (n,)
    signs : ndarray of int8 of shape (n,)
    bounds : ndarray
        On rounding, see ``box``.
    """

    edges: np.ndarray
    c: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    norms: np.ndarray
    signs: np.ndarray
    bounds: np.ndarray


class Points(NamedTuple):
    """The points of a walk and their reference.

    Attributes
    ----------
    grid : ndarray of shape (k + 1,)
        The reference's parameter, then those of the points.
    w, total : ndarray of shape (k + 1, d)
        A row for the reference and one for each point, which is written.
    theta : ndarray of shape (k + 1, n) or (1, n)
        Likewise; or one row for all, which is left as of the last point that is done.
    margins : ndarray of shape (k + 1, n) or (2, n)
        Likewise; or two rows used in turn.
    numbers : ndarray of shape (k + 1, len(FIELDS))
        A row for the reference and one for each point, which is written; where decisions are given, their counts.
    decided : ndarray of int8 of shape (n,)
        What the static rule has fixed at the last point that was begun: written, or given for the only one. 0 before.
    """

    grid: np.ndarray
    w: np.ndarray
    total: np.ndarray
    theta: np.ndarray
    margins: np.ndarray
    numbers: np.ndarray
    decided: np.ndarray


class Settings(NamedTuple):
    """How points are walked.

    Attributes
    ----------
    tol, aim : float
        Relative gap on all rows, and that of the reduced problem.
    limit : int
        Newton iterations of a point.
    region : int
        What screens before each solve: ``NOTHING``, ``PAIR_BALL`` or ``GIVEN``.
    dynamic : bool
        Screen with the gap ball while solving.
    few : float
        A smaller share of rows is not screened, see ``models.box.FEW``.
    fresh_every : int
        Updates of the sum over rows after which it is formed anew.
    rounding, gap_rounding : float
    slice_s : float
        Seconds after which no further point is begun.
    marked : bool
        Write to ``decided`` also what the dynamic rule has fixed.
    """

    tol: float
    aim: float
    limit: int
    region: int
    dynamic: bool
    few: float
    fresh_every: int
    rounding: float
    gap_rounding: float
    slice_s: float
    marked: bool


class Changes(NamedTuple):
    """Room for what a point changes: rows at their ends and rows that are open, and sums over rows.

    Attributes
    ----------
    ends : ndarray of int8 of shape (n,)
    listed : ndarray of int64 of shape (n,)
    held : ndarray of shape (n,)
    sums : ndarray of shape (2, blocks, d)
    """

    ends: np.ndarray
    listed: np.ndarray
    held: np.ndarray
    sums: np.ndarray
