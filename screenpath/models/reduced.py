"""The problem that screening leaves: the contract between a model and every solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from screenpath.kernels import rows as kernels


@dataclass(frozen=True, slots=True)
class Reduced:
    r"""What screening left to solve, with ``alpha = C theta``.

    ``min_w 1/2 ||w||^2 - base.w + offset + sum_i phi_i(c_i - g_i.w)`` against
    ``max_alpha c.alpha + offset - 1/2 ||base + G'alpha||^2``, ``lo <= alpha <= hi``. Their gap is the full problem's as
    long as ``w`` leaves the screened rows on their side.

    Parameters
    ----------
    rows : ndarray of shape (k, d), or tuple (data, indices, indptr)
        Surviving rows ``g_i``, contiguous, float64.
    index : ndarray of int64 of shape (k,)
        Their numbers in the full problem.
    c, norms : ndarray of shape (k,)
    lo, hi : ndarray of shape (k,)
        Ends of the box, multiplied by C.
    base : ndarray of shape (d,)
        Sum of the fixed rows times their dual variables.
    offset : float
        ``sum c_i alpha_i`` over the fixed rows.
    start_alpha : ndarray of shape (k,)
    start_sum : ndarray of shape (d,)
        ``base + G' start_alpha``.
    start_w : ndarray of shape (d,)
    start_margins : ndarray of shape (k,)
        Products of the survivors with ``start_w``, known from the reference's certificate.
    fixed : ndarray of shape (N,)
        Dual variables of the fixed rows (theta scale), 0 for survivors.
    """

    rows: np.ndarray | tuple
    index: np.ndarray
    c: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    norms: np.ndarray
    base: np.ndarray
    offset: float
    start_alpha: np.ndarray
    start_sum: np.ndarray
    start_w: np.ndarray
    start_margins: np.ndarray
    fixed: np.ndarray

    @property
    def sparse(self) -> bool:
        """Tell whether the rows are CSR arrays."""
        return isinstance(self.rows, tuple)

    @property
    def size(self) -> int:
        """Return the number of surviving rows."""
        return self.c.size

    def products(self, w: np.ndarray) -> np.ndarray:
        """Return the product of every surviving row with ``w``; touches each row once."""
        out = np.empty(self.size)
        if self.sparse:
            kernels.csr_products(*self.rows, w, out, 0, out.size)
        else:
            kernels.dense_products(self.rows, w, out, 0, out.size)
        return out


def row_sum(rows, weights: np.ndarray, d: int) -> tuple[np.ndarray, int]:
    """Return the weighted sum of rows as a :class:`Reduced` holds them, shape (d,), and the rows touched."""
    out = np.zeros(d)
    sum_rows = kernels.csr_sum if isinstance(rows, tuple) else kernels.dense_sum
    arrays = rows if isinstance(rows, tuple) else (rows,)
    return out, sum_rows(*arrays, weights, out, 0, weights.size)
