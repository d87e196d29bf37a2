"""Certificates and decisions of a box model (:mod:`screenpath.problem.box`)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from screenpath.numbers.rounding import Proven
from screenpath.problem.reduced import Faces
from screenpath.regions.geometry import GAP_ROUNDING, Point


class Unread(Point):
    """A primal point of a model whose products with the rows are computed when somebody asks for them: a data pass."""

    __slots__ = ("known", "model")

    def __init__(self, vector: np.ndarray, sqnorm: float, model):
        self.model, self.known = model, None
        super().__init__(vector, None, sqnorm)

    @property
    def products(self):
        if self.known is None:
            self.known = self.model.margins(self.vector)
        return self.known

    @products.setter
    def products(self, value):
        self.known = value


@dataclass(slots=True)
class Certificate(Proven):
    """What is known about one pair (w, theta) on the full data; the reference of the next step.

    Parameters
    ----------
    C : float
        Parameter at which the pair was certified.
    point : Point
        Primal point ``w`` with the margins ``g_i.w`` of all dual variables.
    theta : ndarray of shape (N,)
        Feasible dual point.
    total : ndarray of shape (d,)
        ``G'theta``; the primal point of the dual is ``C * total``.
    total_sq, inner : float
        ``||G'theta||^2`` and ``w . G'theta``.
    xi, ell : float
        ``sum phi_i(c_i - g_i.w)`` and ``c . theta``.
    slack : float
        Upper bound of ``sum (phi_i(t_i) - theta_i t_i)``, rounding counted.
    error : float
        Bound on the rounding error of ``xi - ell``.
    primal, primal_error, gap, rounding : float
        See :class:`rounding.Proven`.
    n_R, n_L : int
        Dual variables at their lower and upper end.
    updates : int
        Updates of ``total`` since it was last computed from all rows.
    sum_error : float, default 0
        Bound on the norm of the rounding error of ``total``.
    total_error : float, default 0
        Bound on the rounding error of ``total_sq`` beyond a tiny part of its own size. 0 for a linear model, whose
        ``w`` is a vector; a kernel model sums products that cancel.
    product_error : float, default 0
        Of a kernel model: each entry of ``total`` is off by at most this times the norm of its row.
    rough : ndarray of shape (N,), optional
        Of a kernel model: by how much more entries of ``total`` may be off, of rows whose dual variable is surely 0.
    shift, cost : float, default 0
        With a free intercept: difference of an exact dual point in the sum over rows, and in ``slack``, at most.
    intercept : float, optional
        The best free intercept for ``w``; None if the model has none.
    low, high : float, default 0
        Both ends of the interval of the best.
    residue : float, default 0
        Bound on the error of the signed sum of ``theta``: an exact dual point differs by this in one row.
    before : tuple (float, ndarray of shape (N,), ndarray of shape (N,), ndarray of shape (d,)), optional
        C, ``theta``, the products of the rows with ``w``, and ``total`` of the step before, if a solver starts
        from the line through both.
    faces : Faces, optional
        Steps that the solver has taken, for those of the next step of the path.
    memory : Lazy or callable, optional
        ``unread``, or a function that returns it.
    level : float, optional
        Of a path over a level of the loss: that level (:mod:`screenpath.problem.levels`).
    relative : float
        ``total_sq``, ``inner`` and ``||w||^2`` are off by at most this part of ``||w||^2 + ||C G'theta||^2``.
    """

    C: float
    point: Point
    theta: np.ndarray
    total: np.ndarray
    total_sq: float
    inner: float
    xi: float
    ell: float
    slack: float
    error: float
    primal: float
    primal_error: float
    gap: float
    rounding: float
    n_R: int
    n_L: int
    updates: int
    sum_error: float = 0.0
    _: KW_ONLY
    total_error: float = 0.0
    product_error: float = 0.0
    rough: np.ndarray | None = None
    shift: float = 0.0
    cost: float = 0.0
    intercept: float | None = None
    low: float = 0.0
    high: float = 0.0
    residue: float = 0.0
    before: tuple[float, np.ndarray, np.ndarray, np.ndarray] | None = None
    faces: Faces | None = None
    memory: Any = None
    relative: float = GAP_ROUNDING
    level: float | None = None

    @property
    def at(self) -> tuple:
        return (self.C if self.level is None else self.level,)

    @property
    def unread(self) -> Any:
        """What a walk that does not read all rows knows of them, see ``kernels.walk.deadlines``; None if it does."""
        if callable(self.memory):
            self.memory = self.memory()
        return self.memory


@dataclass(slots=True)
class Screened:
    """Decisions of a rule over all dual variables.

    Parameters
    ----------
    status : ndarray of int8 of shape (N,)
        -1: provably at the lower end (R); +1: provably at the upper end (L); 0: survives.
    n_R, n_L : int
        How many of each.
    """

    status: np.ndarray
    n_R: int
    n_L: int


def one_sided(model, theta: np.ndarray) -> np.ndarray:
    """Return a dual point with the same ``w`` in which only one of a row's two dual variables is not 0."""
    if not model.mirrored:
        return theta
    both = np.minimum(*np.split(theta, 2))
    return theta - np.concatenate([both, both]) if both.any() else theta
