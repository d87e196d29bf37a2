"""What steps on the face leave for those of the next grid point: which rows were free, and what is known of these."""

from __future__ import annotations

from dataclasses import dataclass
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
    rows : tuple of ndarray of uint8
        Rows of each step: a bit for each dual variable of the full problem.
    prox : tuple of float
        What was added to the diagonal of its system, over the squared norms.
    made : optional
        Arrays, which the next step uses up.
    """

    rows: tuple[np.ndarray, ...] = ()
    prox: tuple[float, ...] = ()
    made: Any = None

    def take(self):
        """Return what has been made, for the one who uses it up; None where it is to be made again."""
        made, self.made = self.made, None
        return made

    def steps(self, size: int):
        """Yield the numbers of the rows of each step, of ``size`` dual variables, and its ``prox``."""
        for rows, prox in zip(self.rows, self.prox, strict=True):
            yield np.flatnonzero(np.unpackbits(rows, count=size)), prox

    def then(self, names: np.ndarray, size: int, prox: float, last: int, made) -> Faces:
        """Return the ``last`` steps, of which the last one has been on these rows, and what was made of them."""
        marks = np.zeros(size, dtype=np.uint8)
        marks[names] = 1
        return Faces((*self.rows, np.packbits(marks))[-last:], (*self.prox, prox)[-last:], made)

    def state(self) -> dict:
        """Return the arrays from which :meth:`restored` makes the same steps again; nothing where there are none."""
        return {ROWS: np.array(self.rows), PROX: np.array(self.prox)} if self.rows else {}

    @classmethod
    def restored(cls, state, size: int) -> Faces | None:
        """Return the steps of a checkpoint of ``size`` dual variables; None where it has none."""
        if PROX not in state:
            return None
        prox = states.matrix(state, PROX, np.shape(state[PROX])[:1], np.finfo(np.float64).tiny)
        rows = states.marks(state, ROWS, prox.size, size)
        return cls(tuple(rows), tuple(prox.tolist()))
