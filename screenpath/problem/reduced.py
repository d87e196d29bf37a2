"""The problem that screening leaves, the contract between a model and every solver; and what its last solves knew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from screenpath.kernels.problem.box import Errors
from screenpath.kernels.rows.matrix import listed_products, matrix_of, products
from screenpath.numbers import states

ROWS, PROX = "faces", "faces_prox"  # of a checkpoint


@dataclass(slots=True)
class Faces:
    """The last steps on the face, oldest first, and what was made of them: a resumed path makes the same again."""

    # uint8 of shape (steps, N / 8). Rows of each step: a bit for each dual variable of the full problem
    rows: np.ndarray = field(default_factory=lambda: np.empty((0, 0), dtype=np.uint8))
    # shape (steps,). Ridge of its system, divided by the squared norms
    prox: np.ndarray = field(default_factory=lambda: np.empty(0))
    made: Any = None  # arrays, which the next step uses up

    def take(self):
        """Return the arrays, which the caller uses up; None if they must be computed again."""
        made, self.made = self.made, None
        return made

    def steps(self, size: int):
        """Yield the numbers of the rows of each step, of ``size`` dual variables, and its ``prox``."""
        for rows, prox in zip(self.rows, self.prox.tolist(), strict=True):
            yield np.flatnonzero(np.unpackbits(rows, count=size)), prox

    def state(self) -> dict:
        """Return the arrays from which :meth:`restored` makes the same steps again; empty without steps."""
        return {ROWS: self.rows, PROX: self.prox} if self.prox.size else {}

    @classmethod
    def restored(cls, state, size: int) -> Faces | None:
        """Return the steps of a checkpoint of ``size`` dual variables; None if it has none."""
        if PROX not in state:
            return None
        prox = states.matrix(state, PROX, np.shape(state[PROX])[:1], np.finfo(np.float64).tiny)
        return cls(states.marks(state, ROWS, prox.size, size), prox)


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
