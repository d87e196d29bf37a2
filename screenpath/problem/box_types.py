"""Certificates and decisions of a box model (:mod:`screenpath.problem.box`)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

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


class KnownSum(NamedTuple):
    """A dual point and what a certificate has of its sum over rows, for one of another point."""

    theta: np.ndarray
    total: np.ndarray
    updates: int
    sum_error: float


@dataclass(slots=True)
class Certificate(Proven):
    """What is known about one pair (w, theta) on the full data; the reference of the next step."""

    C: float  # parameter at which the pair was certified
    point: Point  # primal point ``w`` with the margins ``g_i.w`` of all dual variables
    theta: np.ndarray  # shape (N,): feasible dual point
    total: np.ndarray  # shape (d,): ``G'theta``; the primal point of the dual is ``C * total``
    total_sq: float  # total_sq, inner: ``||G'theta||^2`` and ``w . G'theta``
    inner: float
    xi: float  # xi, ell: ``sum phi_i(c_i - g_i.w)`` and ``c . theta``
    ell: float
    slack: float  # upper bound of ``sum (phi_i(t_i) - theta_i t_i)``, rounding counted
    error: float  # bound on the rounding error of ``xi - ell``
    primal: float  # primal, primal_error, gap, rounding: see :class:`rounding.Proven`
    primal_error: float
    gap: float
    rounding: float
    n_R: int  # n_R, n_L: dual variables at their lower and upper end
    n_L: int
    updates: int  # updates of ``total`` since it was last computed from all rows
    sum_error: float = 0.0  # bound on the norm of the rounding error of ``total``
    _: KW_ONLY
    # bound on the rounding error of ``total_sq`` beyond a tiny part of its own size. 0 for a linear model, whose ``w``
    # is a vector; a kernel model sums products that cancel
    total_error: float = 0.0
    # of a kernel model: each entry of ``total`` is off by at most this times the norm of its row
    product_error: float = 0.0
    # shape (N,): of a kernel model: by how much more entries of ``total`` may be off, of rows whose dual variable is
    # surely 0
    rough: np.ndarray | None = None
    # shift, cost: with a free intercept: difference of an exact dual point in the sum over rows, and in ``slack``, at
    # most
    shift: float = 0.0
    cost: float = 0.0
    intercept: float | None = None  # the best free intercept for ``w``; None if the model has none
    low: float = 0.0  # low, high: both ends of the interval of the best
    high: float = 0.0
    # bound on the error of the signed sum of ``theta``: an exact dual point differs by this in one row
    residue: float = 0.0
    # tuple (float, shape (N,), shape (N,), shape (d,)): C, ``theta``, the products of the rows with ``w``, and
    # ``total`` of the step before, if a solver starts from the line through both
    before: tuple[float, np.ndarray, np.ndarray, np.ndarray] | None = None
    faces: Faces | None = None  # steps that the solver has taken, for those of the next step of the path
    # ``unread``, or a function that returns it; of a kernel model what else the next step depends on
    memory: Any = None
    # ``total_sq``, ``inner`` and ``||w||^2`` are off by at most this part of ``||w||^2 + ||C G'theta||^2``
    relative: float = GAP_ROUNDING
    level: float | None = None  # of a path over a level of the loss: that level (:mod:`screenpath.problem.levels`)

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
    """Decisions of a rule over all dual variables."""

    # int8 of shape (N,): -1: provably at the lower end (R); +1: provably at the upper end (L); 0: survives
    status: np.ndarray
    n_R: int  # n_R, n_L: how many of each
    n_L: int

    @classmethod
    def of(cls, status: np.ndarray) -> Screened:
        return cls(status, int(np.count_nonzero(status < 0)), int(np.count_nonzero(status > 0)))


def one_sided(model, theta: np.ndarray) -> np.ndarray:
    """Return a dual point with the same ``w`` in which only one of a row's two dual variables is not 0."""
    if not model.mirrored:
        return theta
    both = np.minimum(*np.split(theta, 2))
    return theta - np.concatenate([both, both]) if both.any() else theta
