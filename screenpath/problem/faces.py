"""What steps on the face leave for those of the next grid point: which rows were free, and what is known of these."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from screenpath.numbers import states

ROWS, PROX = "faces", "faces_prox"  # of a checkpoint


@dataclass(slots=True)
class Faces:
    """The last steps on the face, oldest first, and what a solver has made of them.

    What is made depends on these steps alone, to the last bit. So a path that is resumed makes it again, and goes on
    with the numbers that it would have had.

    Parameters
    ----------
    rows : ndarray of uint8 of shape (steps, N / 8)
        Rows of each step: a bit for each dual variable of the full problem.
    prox : ndarray of shape (steps,)
        What was added to the diagonal of its system, over the squared norms.
    made : optional
        Arrays, which the next step uses up.
    """

    rows: np.ndarray = field(default_factory=lambda: np.empty((0, 0), dtype=np.uint8))
    prox: np.ndarray = field(default_factory=lambda: np.empty(0))
    made: Any = None

    def take(self):
        """Return what has been made, for the one who uses it up; None where it is to be made again."""
        made, self.made = self.made, None
        return made

    def steps(self, size: int):
        """Yield the numbers of the rows of each step, of ``size`` dual variables, and its ``prox``."""
        for rows, prox in zip(self.rows, self.prox.tolist(), strict=True):
            yield np.flatnonzero(np.unpackbits(rows, count=size)), prox

    def state(self) -> dict:
        """Return the arrays from which :meth:`restored` makes the same steps again; nothing where there are none."""
        return {ROWS: self.rows, PROX: self.prox} if self.prox.size else {}

    @classmethod
    def restored(cls, state, size: int) -> Faces | None:
        """Return the steps of a checkpoint of ``size`` dual variables; None where it has none."""
        if PROX not in state:
            return None
        prox = states.matrix(state, PROX, np.shape(state[PROX])[:1], np.finfo(np.float64).tiny)
        return cls(states.marks(state, ROWS, prox.size, size), prox)
