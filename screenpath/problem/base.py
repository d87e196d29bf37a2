"""The contracts of models: what the walk, the rules and the solvers may ask of them.

A model is the full problem over its data. It states its objective, its dual and its stopping rule in its docstring, and
knows pairs of a primal and a dual point by their certificates, each a :class:`numbers.rounding.Proven`. Decisions have
a ``status`` of each dual variable (or feature), int8: 0 if undecided. The parameter of a step (a ``C``, a ``lambda``, a
pair ``(alpha, beta)``) is the first argument of a method, under its name in the model's literature. Methods of the
models that these contracts describe have docstrings only for what they add.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from screenpath.rows.base import Counted


@runtime_checkable
class Region(Protocol):
    """A set that provably contains an optimum (``regions.geometry``)."""

    @property
    @abstractmethod
    def points(self) -> tuple:
        """Return the points whose products with the rows the bounds need."""

    @property
    @abstractmethod
    def extent(self) -> float:
        """Return the largest norm a point of the region can have (scale of the rounding error)."""

    @abstractmethod
    def bounds(self, products, norms: np.ndarray, sizes=None) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and largest ``v.x`` over the region for every row ``v``."""

    @abstractmethod
    def decide(self, products, norms, c, extent, rounding, status) -> tuple[int, int]:
        """Write to ``status`` on which side of its kink ``c`` each row is throughout the region; return the counts."""


@runtime_checkable
class PathModel(Protocol):
    """What the walk asks of a model."""

    rows: Counted  # the data
    refines: bool = False  # whether a solver that goes on from a sharpened certificate sees more than it did
    free: Any = None  # `kernels.walk.compiled_types.Free` for a compiled walk, where the intercept is free

    @property
    def compiled(self) -> bool:
        """Tell whether a compiled walk (``walk.compiled``) supports this problem; its rows are ``rows.Rows``."""
        return False

    @property
    def parts(self) -> tuple:
        """Return the models that are walked in step instead of this one; its certificates are then theirs."""
        return ()

    def bound(self, reference, parameter) -> tuple:
        """Return model, reference and parameter of one step; of a :class:`Family` those of one of its models."""
        return self, reference, parameter

    # -- where a path begins -------------------------------------------------------------------------------------

    @abstractmethod
    def start(self, parameter) -> Any:
        """Return the first reference: a closed form, at the nearest parameter where it is optimal."""

    @abstractmethod
    def exact_until(self, reference, parameter) -> bool:
        """Tell whether the closed form is still optimal at the parameter: then no solve is needed."""

    def held(self, reference, parameter) -> tuple[Any, str] | None:
        """Return a certificate known at the parameter without a solve, and its name in the step table; else None."""
        return None

    def polished(self, reference, parameter, gap: float) -> Any:
        """Return a certificate at a larger parameter of a reference that :meth:`rests`, brought to ``gap``, or None."""
        return None

    def rests(self, certificate) -> bool:
        """Tell whether :meth:`held` will know the next steps, once the certificate's gap is small enough."""
        return False

    def after(self, certificate, reference, faces=None) -> Any:
        """Return the certificate of a step that is over, with what the next one begins with: a memory of reference and
        ``faces``, for a solver that predicts its start. Others give None for the reference.
        """
        return certificate

    # -- screening and the reduced problem -----------------------------------------------------------------------

    @abstractmethod
    def nothing_screened(self) -> Any:
        """Return decisions that leave everything to the solver."""

    @abstractmethod
    def reduce(self, parameter, screened, reference) -> Any:
        """Return the problem of what survives, with a start from the reference: what the model's solvers take."""

    @abstractmethod
    def lift(self, parameter, reduced, solution) -> tuple:
        """Return the pair (w, theta) of the full problem, either None if the other one determines it."""

    # -- certificates --------------------------------------------------------------------------------------------

    @abstractmethod
    def certify(self, parameter, w, theta, reference) -> Any:
        """Return the certificate of a pair: both objectives on the full data, rounding counted."""

    @abstractmethod
    def sharpened(self, certificate, tol: float) -> Any:
        """Return a certificate of the same pair with a narrower bound on rounding, if more work can give one."""

    @abstractmethod
    def fallbacks(self, parameter, reference) -> list:
        """Return certificates of the pairs known without a solve: zero first, then the reference's."""

    @abstractmethod
    def no_worse(self, parameter, certificate, reference) -> Any:
        """Return a certificate with a known primal point if that has a smaller primal value."""

    @abstractmethod
    def combined(self, parameter, primal, dual) -> Any:
        """Return the certificate of the primal point of one and the dual point of another."""

    def goes_on(self, parameter, certificate, reference) -> bool:
        """Tell whether to solve a certified pair further; asked of models that ``refines``."""
        return False

    # -- records -------------------------------------------------------------------------------------------------

    @abstractmethod
    def parameters(self, parameter) -> dict:
        """Return the parameters as the step table names them."""

    @abstractmethod
    def counts(self, certificate, screened) -> dict:
        """Return the counts, ratios and coefficients of a step."""


@runtime_checkable
class Resumable(Protocol):
    """What a checkpoint asks of a model."""

    @abstractmethod
    def state(self, certificate) -> dict:
        """Return the arrays from which :meth:`restore` makes the same certificate again."""

    @abstractmethod
    def restore(self, state) -> Any:
        """Return the certificate of :meth:`state`, byte for byte; a ValueError if no walk can have left it."""


@runtime_checkable
class Family(Resumable, Protocol):
    """Models along one path, one for each value of a part of its parameter: a walk binds each step to its model."""

    rows: Counted  # the data, of all of them
    compiled, free, parts = False, None, ()  # see :class:`PathModel`

    @abstractmethod
    def start(self, parameter) -> Any:
        """Return the first reference, see :meth:`PathModel.start`."""

    @abstractmethod
    def bound(self, reference, parameter) -> tuple:
        """Return the model of a step, the reference as a pair of that model, and the parameter within it."""

    @abstractmethod
    def parameters(self, parameter) -> dict:
        """Return the parameters as the step table names them."""


@runtime_checkable
class RegionModel(PathModel, Protocol):
    """What the rules of the box models ask of a model in addition to the walk."""

    size: int  # dual variables N
    c: np.ndarray  # c, lo, hi, norms: shape (N,): kinks, ends of the box, and ``||g_i||``
    lo: np.ndarray
    hi: np.ndarray
    norms: np.ndarray

    @abstractmethod
    def screen(self, region) -> Any:
        """Decide what the region decides; one data pass for each of its points that was not multiplied yet."""

    @abstractmethod
    def losses(self, near) -> Callable:
        """Return a function of products: the loss of a point, and what an intercept adds to its rounding error."""

    @abstractmethod
    def corner(self, products: np.ndarray) -> tuple:
        """Return the dual point that products suggest, and how much a feasible one differs from it."""

    @abstractmethod
    def middle(self, reference, theta: np.ndarray, C: float) -> tuple:
        """Return the point halfway between the reference's w and the primal point of ``theta``, and its errors."""
