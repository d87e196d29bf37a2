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
        Whether :meth:`region` also takes, as last argument, a certificate at the largest parameter of the path.
    compiled : int
        The region of the reference that a compiled walk builds itself (``kernels.walk.compiled``). For other rules it
        gets the decisions.
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
            Of the previous step, at ``reference.C``. Of l1svm a ``problem.l1svm.L1Certificate``, at ``lam``.
        C : float
            New parameter; lambda for l1svm.
        *far : Certificate
            Where ``needs_far_end``: of the largest parameter.

        Returns
        -------
        Ball, Dome or Lens
            Of ``w``, shape (d,), in the units of the scaled features; for l1svm of ``theta``, shape (n,). With a free
            intercept also a ``LeverBall`` or ``LeverPencil``.
        """


@runtime_checkable
class PathScreening(Protocol):
    """What is screened when: the one seam between a walk and the rules of all families.

    The inherited methods suit a screening whose decisions are safe and depend only on the reference
    and the parameter. A plug-in that makes the decisions itself needs :meth:`before`, and :meth:`again` if ``dynamic``.

    Attributes
    ----------
    name : str
        As the user wrote it.
    dynamic : bool
        Whether the solver applies the gap ball of its current iterate while it solves.
    loose : float
        Relative gap at which :meth:`corrected` can already check the decisions; 0 if they need no check.
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
    def counts_all(self) -> bool:
        """Tell whether the decisions on all rows are asked for; else some rows may be left unread."""
        return True

    @property
    def needs_known_grid(self) -> bool:
        """Tell whether the whole grid must be known before the first step."""
        return False

    @property
    def compiled(self) -> int | None:
        """Return which region a compiled walk builds before each solve (``kernels.walk.compiled``).

        ``GIVEN``: it calls :meth:`before`, perhaps twice for a step. None: it leaves all steps to the loop.
        """
        return None

    def begin(self, grid, far, resumed: bool) -> None:
        """Receive the grid and the certificate at its largest parameter before a walk, see ``needs_far_end``."""
        return

    @abstractmethod
    def before(self, model, reference, parameter) -> Any:
        """Return the decisions from the previous step, before the solve.

        Parameters
        ----------
        model : problem.base.PathModel
        reference : Certificate
            Of the previous step.
        parameter : float, or tuple (alpha, beta)

        Returns
        -------
        Screened, KeptFeatures or SparseScreened
            What ``model.nothing_screened()`` returns, with ``status`` of shape (N,), int8: 0 if undecided.
        """

    @abstractmethod
    def again(self, model, certificate, parameter) -> Any:
        """Return the decisions of the gap ball of a certified pair at the same parameter; called if ``dynamic``."""

    def corrected(self, model, certificate, screened, rounds: int):
        """Return the decisions, or others if the certificate of a solve with them contradicts them.

        Parameters
        ----------
        certificate
            Of a pair that is not yet within tolerance.
        screened
            The decisions.
        rounds : int
            Solves so far at this step.
        """
        return screened

    def proven(self, model, certificate, screened, decided) -> tuple:
        """Return the decisions, and ``decided``, that a finished step may claim.

        Parameters
        ----------
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
        """Restore the state of an earlier walk of a model.

        Raises
        ------
        ValueError
            If no walk can have left it.
        """
        return


@dataclass(frozen=True, slots=True)
class Composed(PathScreening):
    """What is screened when."""

    static: StaticRule | None  # applied once before each solve, from the previous step
    dynamic: bool  # dynamic, name: see :class:`PathScreening`
    name: str
