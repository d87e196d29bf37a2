"""The problem that screening leaves: the contract between a model and every solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from screenpath.kernels.matrix import matrix_of, products


@dataclass(slots=True)
class Reduced:
    r"""What screening left to solve, with ``alpha = C theta``.

    ``min_w 1/2 ||w||^2 - base.w + offset + sum_i phi_i(c_i - g_i.w)`` against
    ``max_alpha c.alpha + offset - 1/2 ||base + G'alpha||^2``, ``lo <= alpha <= hi``; ``base`` is the sum of the fixed
    rows times their dual variables. Their gap is the full problem's as long as ``w`` leaves the screened rows on their
    side.

    Parameters
    ----------
    take : callable
        Returns the surviving rows ``g_i``: contiguous, float64, shape (k, d) or tuple (data, indices, indptr).
    sparse : bool
        Whether that is a tuple.
    place : tuple (rows, where, signs) or None
        The data's own rows, where compiled code can read them as they are: ``g_r = signs[r] * rows[where[r]]``.
    index : ndarray of int64 of shape (k,)
        Their numbers in the full problem.
    c, norms : ndarray of shape (k,)
    lo, hi : ndarray of shape (k,)
        Ends of the box, multiplied by C.
    offset : float
        ``sum c_i alpha_i`` over the fixed rows.
    start_alpha : ndarray of shape (k,)
    start_sum : ndarray of shape (d,)
        ``base + G' start_alpha``.
    start_w : ndarray of shape (d,)
    start_margins : ndarray of shape (k,)
        Products of the survivors with ``start_w``, known from the reference's certificate.
    theta : ndarray of shape (N,)
        Dual variables (theta scale): of the fixed rows, and where the survivors start.
    """

    take: Callable
    sparse: bool
    place: tuple | None
    index: np.ndarray
    c: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    norms: np.ndarray
    offset: float
    start_alpha: np.ndarray
    start_sum: np.ndarray
    start_w: np.ndarray
    start_margins: np.ndarray
    theta: np.ndarray
    _rows: np.ndarray | tuple | None = None

    @property
    def rows(self) -> np.ndarray | tuple:
        """Return a contiguous copy of the surviving rows, made when it is first asked for."""
        if self._rows is None:
            self._rows = self.take()
        return self._rows

    def stored(self) -> tuple:
        """Return (rows, where, signs): the data's own rows if they can be read in place, else the copy."""
        if self.place is not None and self._rows is None:
            return self.place
        return self.rows, np.arange(self.size), np.ones(self.size, dtype=np.int8)

    @property
    def size(self) -> int:
        """Return the number of surviving rows."""
        return self.c.size

    def products(self, w: np.ndarray) -> np.ndarray:
        """Return the product of every surviving row with ``w``; touches each row once."""
        out = np.empty(self.size)
        products(matrix_of(self.rows), w, out, 0, out.size)
        return out
