"""The problem that screening leaves: the contract between a model and every solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from screenpath.kernels.problem.box import Errors
from screenpath.kernels.rows.matrix import listed_products, matrix_of, products
from screenpath.problem.faces import Faces


@dataclass(frozen=True, slots=True)
class Freed:
    """What a free intercept adds to a reduced problem: the signed dual variables, times C, sum up to ``rest``."""

    signs: np.ndarray  # int8 of shape (N,): of all dual variables
    rest: float
    intercept: float  # to start from
    typical: float  # distance of a row from the middle of all rows, above 0
    rest_error: float = 0.0  # behind a kernel: what rounding may have done to the sum


@dataclass(slots=True)
class Reduced:
    """The reduced problem, with ``alpha = C theta``.

    ``min_w 1/2 ||w||^2 - base.w + offset + sum_i phi_i(c_i - g_i.w)`` against
    ``max_alpha c.alpha + offset - 1/2 ||base + G'alpha||^2``, ``lo <= alpha <= hi``; ``base`` is the sum of the fixed
    rows times their dual variables. Their gap is the full problem's as long as ``w`` leaves the screened rows on their
    side.
    """

    # ``take()`` returns the surviving rows ``g_i``: contiguous, float64, shape (k, d) or tuple (data, indices, indptr);
    # with a free intercept without their signs, as does ``fetch``
    take: Callable
    sparse: bool  # whether that is a tuple
    # (rows, where, signs): the data's own rows where compiled code can read them as they are, or a copy:
    # ``g_r = signs[r] * rows[where[r]]``; None where nobody has asked for a copy yet
    place: tuple | None
    index: np.ndarray  # int64 of shape (k,): their numbers in the full problem
    c: np.ndarray  # c, norms: shape (k,)
    lo: np.ndarray  # lo, hi: shape (k,): ends of the box, multiplied by C
    hi: np.ndarray
    norms: np.ndarray
    offset: float  # ``sum c_i alpha_i`` over the fixed rows
    errors: Errors  # what rounding may have done to its numbers: what a dynamic rule needs to know
    start_alpha: np.ndarray  # shape (k,)
    start_sum: np.ndarray  # shape (d,): ``base + G' start_alpha``
    start_w: np.ndarray  # shape (d,)
    # shape (k,): products of the survivors with ``start_w``, known from the reference's certificate
    start_margins: np.ndarray
    theta: np.ndarray  # shape (N,); dual variables (theta scale): of the fixed rows, and where the survivors start
    # shape (k,): what products with ``start_sum`` are foreseen to be, where the start is the line through two points;
    # nobody has formed them
    foreseen: np.ndarray | None = None
    # ``fetch(numbers)`` returns a copy of rows of the full problem, as ``take()`` does, and their norms
    fetch: Callable | None = None
    free: Freed | None = None
    faces: Faces | None = None  # what a solver knows of rows from steps that it took before
    _rows: np.ndarray | tuple | None = None

    @property
    def rows(self) -> np.ndarray | tuple:
        """Return a contiguous copy of the surviving rows, made when it is first asked for."""
        if self._rows is None:
            self._rows = self.take()
        return self._rows

    def copy(self) -> None:
        """Read the rows from a copy of their own."""
        signs = np.ones(self.size, dtype=np.int8) if self.free is None else self.free.signs[self.index]
        self.place = self.rows, np.arange(self.size), signs

    def stored(self) -> tuple:
        """Return (rows, where, signs): the data's own rows if they can be read in place, else a copy."""
        if self.place is None:
            self.copy()
        assert self.place is not None
        return self.place

    @property
    def size(self) -> int:
        return self.c.size

    def products(self, w: np.ndarray) -> np.ndarray:
        """Return the product of every surviving row with ``w``; reads each row once."""
        out = np.empty(self.size)
        if self.free is None and (self.place is None or self._rows is not None):
            products(matrix_of(self.rows), w, out, 0, out.size)
            return out
        rows, where, signs = self.stored()
        listed_products(matrix_of(rows), where, w, out)
        out *= signs
        return out
