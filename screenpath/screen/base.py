"""The contracts of rules: regions for a model, and what a walk asks of a screening, whatever its family."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from screenpath.kernels.walk.compiled_types import GIVEN


@runtime_checkable
class StaticRule(Protocol):
    """A rule that screens before a solve: reference and new parameter in, region out. No arithmetic over rows here.

    A plug-in (``--rule mine.py:MyRule``) needs :meth:`region` alone.

    Attributes
    ----------
    name : str
    needs_far_end : bool
        Whether :meth:`region` takes, behind the others, a certificate at the largest parameter of the path.
    compiled : int
        Which region of the reference a compiled walk forms itself (``kernels.walk.compiled``). For others, and that is
        all it asks of a rule, the decisions are given.
    """

    __slots__ = ()

    name: str
    needs_far_end: bool = False
    compiled: int = GIVEN

    @abstractmethod
    def region(self, model, reference, C: float, *far) -> Any:
        """Return a region that contains the optimum at ``C``, for any pair of points that the reference certifies.

        Parameters
        ----------
        model : problem.base.RegionModel
            The problem: ``c``, ``lo``, ``hi``, ``norms`` of shape (N,).
        reference : problem.box_types.Certificate
            Of the previous step, at ``reference.C``. Of l1svm a ``problem.l1_types.L1Certificate``, at ``lam``.
        C : float
            New parameter; lambda for l1svm.
        *far : Certificate
            Where ``needs_far_end``: of the largest parameter.

        Returns
        -------
        Ball, Dome or Lens
            Of ``w``, shape (d,), in the units of the scaled features; for l1svm of ``theta``, shape (n,). With a free
            intercept also a ``LeverBall`` or ``LeverPencil``, behind a kernel only these.
        """


@runtime_checkable
class PathScreening(Protocol):
    """What is screened when: the one seam between a walk and the rules of all families.

    What a screening inherits from here is that of one whose decisions are safe and depend on nothing but the reference
    and the parameter. A plug-in that makes the decisions itself needs :meth:`before`, and :meth:`again` if ``dynamic``.

    Attributes
    ----------
    name : str
        As the user wrote it.
    dynamic : bool
        Whether the solver applies the gap ball of its current iterate while it solves.
    loose : float
        Relative gap that is enough for a look at whether the decisions are right; 0 where they are.
    """

    __slots__ = ()

    name: str
    dynamic: bool
    loose: float = 0.0

    @property
    def needs_far_end(self) -> bool:
        """Tell whether :meth:`begin` must be called with the solution at the largest parameter of the path."""
        return False

    @property
    def needs_known_grid(self) -> bool:
        """Tell whether all grid points must be known before the first one is taken."""
        return False

    @property
    def compiled(self) -> int | None:
        """Return which region a compiled walk forms before each solve (``kernels.walk.compiled``).

        ``GIVEN``: it asks :meth:`before`, perhaps twice for a grid point. None: it leaves all points to the loop.
        """
        return None

    def begin(self, grid, far, resumed: bool) -> None:
        """Take the grid and the certificate at its largest parameter, before the first point; see ``needs_far_end``."""
        return

    @abstractmethod
    def before(self, model, reference, parameter) -> Any:
        """Return the decisions from the previous grid point, before the solve.

        Parameters
        ----------
        model : problem.base.PathModel
        reference : Certificate
            Of the previous step.
        parameter : float, or tuple (alpha, beta)

        Returns
        -------
        Screened, KeptFeatures or SparseScreened
            What ``model.nothing_screened()`` returns, with ``status`` of shape (N,), int8: 0 where nothing is decided.
        """

    @abstractmethod
    def again(self, model, certificate, parameter) -> Any:
        """Return the decisions of the gap ball of a certified pair at the same parameter; where ``dynamic``."""

    def corrected(self, model, certificate, screened, rounds: int):
        """Return the decisions, or others where the certificate of a solve with them does not bear them out.

        Parameters
        ----------
        model
        certificate
            Of a pair that is not yet within tolerance.
        screened
            The decisions.
        rounds : int
            Solves so far at this grid point.
        """
        return screened

    def proven(self, model, certificate, screened, decided) -> tuple:
        """Return what may be claimed of the decisions at a grid point that is done.

        Parameters
        ----------
        model
        certificate
            Of the pair that is reported.
        screened
            What was fixed before the solve.
        decided : ndarray of int8 or None
            That and what the dynamic rule fixed.
        """
        return screened, decided

    def state(self) -> dict:
        """Return the arrays that a resumed walk needs of the rule."""
        return {}

    def restore(self, state: dict, model) -> None:
        """Take up the state of an earlier walk of a model.

        Raises
        ------
        ValueError
            If no walk can have left it.
        """
        return


@dataclass(frozen=True, slots=True)
class Composed(PathScreening):
    """What is screened when.

    Parameters
    ----------
    static : rule or None
        Applied once before each solve, from the previous grid point.
    dynamic : bool
        Apply the gap ball of the current iterate while solving.
    name : str
        As the user wrote it.
    """

    static: Any
    dynamic: bool
    name: str
