"""Steps on the face, kept for those of the next step of the path: which rows were free, and what is known of these."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from screenpath.numbers import states

ROWS, PROX = "faces", "faces_prox"  # of a checkpoint


@dataclass(slots=True)
class Faces:
    """The last steps on the face, oldest first, and what a solver has computed from them.

    That depends only on these steps, to the last bit. So a resumed path computes it again, and continues with the same
    numbers.

    Parameters
    ----------
    rows : ndarray of uint8 of shape (steps, N / 8)
        Rows of each step: a bit for each dual variable of the full problem.
    prox : ndarray of shape (steps,)
        Ridge of its system, divided by the squared norms.
    made : optional
        Arrays, which the next step uses up.
    """

    rows: np.ndarray = field(default_factory=lambda: np.empty((0, 0), dtype=np.uint8))
    prox: np.ndarray = field(default_factory=lambda: np.empty(0))
    made: Any = None

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
