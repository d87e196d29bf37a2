"""One record per grid point: what is streamed, written, plotted and resumed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any

import numpy as np

from screenpath.numbers import rounding
from screenpath.problem import INTERVAL

LATE = "the time limit ended the path before this point"  # reason of a step that was skipped

OVERFLOW = "overflow: numbers of the solve exceed the range of floating point; scale the data"
INFEASIBLE = (
    "the solver's intercepts are not the best ones: no dual point next to its own is feasible, so no gap is proven"
)
STUCK = (
    "rounding is the limit: the solver has reached the accuracy of its arithmetic; where features differ in scale by "
    "many orders of magnitude, use --scale standard"
)
DISAGREE = "the solver's own gap met its target, the proven one did not: by rounding, or by a fault of the solver"

# The fixed status words. `rounding`: the gap would be met, but for what rounding may have added to it.
CERTIFIED, BUDGET, ROUNDING, SKIPPED, FAILED = "certified", "budget", "rounding", "skipped", "failed"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the step table."""

    name: str  # also the field of :class:`Step`
    # what stands there at a grid point that was not reached: nan for what is not known, 0 for work that was not done
    missing: object
    summed: bool = False  # whether one-vs-rest adds it up over the classes


# The columns behind `step` and the parameters, in this order.
TABLE = (
    Column("status", SKIPPED),
    *(Column(name, nan, name != "rel_gap") for name in ("primal", "dual", "gap", "rel_gap", "gap_target")),
    *(Column(name, nan, True) for name in ("n_R", "n_L", "n_E", "screened_R", "screened_L", "n_survivors")),
    *(Column(name, nan) for name in ("rejection_ratio", "screening_rate")),
    *(Column(name, nan, True) for name in ("n_features_screened", "nnz_w")),
    Column("solver", ""),
    Column("epochs", 0, True),
    Column("rounds", 0),
    *(Column(name, 0.0, True) for name in ("passes", "screen_s", "solve_s", "certify_s", "init_s")),
    Column("reason", ""),
)
COLUMNS = tuple(column.name for column in TABLE)
MOVED = "bytes_moved"  # further column on a cluster: bytes of the arrays sent to workers and received from them


@dataclass(slots=True)
class Step:
    """Result at one grid point.

    Parameters
    ----------
    step : int
        Number of the grid point, from 0.
    parameters : dict of str to float
        For example ``{"C": 0.1}``.
    status : str
        ``certified``, ``budget``, ``rounding``, ``skipped`` or ``failed``.
    primal, dual, gap, rel_gap, gap_target : float
        Objective on the full data; a lower bound of the exact dual value and an upper bound of the exact gap, rounding
        counted; the gap over the primal, and the gap that was asked for (``tol * primal``).
    n_R, n_L, n_E : int
        Dual variables at their lower end, at their upper end, and between.
    screened_R, screened_L : int
        Dual variables that the rule fixed before the solve.
    n_survivors : int
        Dual variables handed to the solver.
    rejection_ratio : float
        Screened over all dual variables (Wang 2014).
    screening_rate : float
        Screened over those truly at an end, ``n_R + n_L`` (Ogawa 2014).
    n_features_screened, nnz_w : int
        Features fixed to zero before the solve; coefficients that are not zero.
    solver : str
    epochs, rounds : int
        Sweeps or Newton iterations; solve-and-certify rounds.
    passes : float
        Rows touched over rows in the data: rule, solver and certificate together.
    screen_s, solve_s, certify_s : float
        Wall-clock seconds of the three phases.
    coefficients : ndarray of shape (d,)
        Weights as the model sees them: of the scaled features, the bias last. ``prepare.Preparation`` turns them
        into the units of the data file.
    init_s : float
        Seconds spent before the first step on a solution at the far end of the path, where the rule needs one; its data
        passes count as the first step's.
    reason : str
        Why the step is not certified; empty where it is. A step ``skipped`` has nan for what is not known.
    extras : dict
        Further columns (audit counts, test scores).
    """

    step: int
    parameters: dict
    status: str
    primal: float
    dual: float
    gap: float
    rel_gap: float
    gap_target: float
    n_R: int
    n_L: int
    n_E: int
    screened_R: int
    screened_L: int
    n_survivors: int
    rejection_ratio: float
    screening_rate: float
    n_features_screened: int
    nnz_w: int
    solver: str
    epochs: int
    rounds: int
    passes: float
    screen_s: float
    solve_s: float
    certify_s: float
    coefficients: np.ndarray = field(repr=False)
    init_s: float = 0.0
    reason: str = ""
    extras: dict = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Return the seconds of screening, solving and certifying together, and of the rule's far end."""
        return self.screen_s + self.solve_s + self.certify_s + self.init_s

    def record(self) -> dict:
        """Return the row of the step table: step, parameters, the fixed columns, extras."""
        row = {"step": self.step, **self.parameters}
        row.update((name, getattr(self, name)) for name in COLUMNS)
        row.update(self.extras)
        return row


def in_units(row: dict, moved: float) -> dict:
    """Return the row of a step table with the ends of the intercepts where the units of the data move them to."""
    return {**row, **{name: row[name] + moved for name in INTERVAL if name in row}}


class Steps(Sequence[Step]):
    """The steps of a path in the order of its grid.

    Parameters
    ----------
    batches : list
        Lists of Step, or what iterates over steps and has their coefficients as one array (``compiled.Batch``): these
        are made when a step is first looked at, which takes a tenth as long as a path of little data.
    """

    def __init__(self, batches: list):
        self._batches = batches
        self._made: list | None = None

    def __len__(self) -> int:
        return sum(map(len, self._batches))

    def __getitem__(self, key):
        if self._made is None:
            self._made = [step for batch in self._batches for step in batch]
        return self._made[key]

    def __repr__(self) -> str:
        return f"Steps({self[:]!r})"

    @property
    def coefficients(self) -> np.ndarray:
        """Return the coefficients of all steps, shape (n_steps, d)."""
        found: list = []  # rows of single steps, and of batches: copied once
        for batch in self._batches:
            found += [step.coefficients for step in batch] if isinstance(batch, list) else [batch.coefficients]
        return np.concatenate([np.atleast_2d(np.asarray(rows)) for rows in found])


@dataclass(eq=False)
class Missing:
    """Steps of grid points that a walk did not reach, made when they are iterated over.

    What is not known is nan: objective, gap, counts, ratios, coefficients. The work is 0, as none was done.
    """

    rank: int  # number of the first one
    parameters: list[dict]
    blank: Any  # ndarray or SparseVector: coefficients of each; shared by all, so an array is made read-only
    reason: str

    def __post_init__(self):
        if isinstance(self.blank, np.ndarray):
            self.blank.flags.writeable = False

    def __len__(self) -> int:
        return len(self.parameters)

    def __iter__(self):
        cells: dict = {**{column.name: column.missing for column in TABLE}, "reason": self.reason}
        for rank, parameters in enumerate(self.parameters, self.rank):
            yield Step(step=rank, parameters=parameters, coefficients=self.blank, **cells)

    @property
    def coefficients(self) -> np.ndarray:
        """Return the coefficients of all steps."""
        return np.broadcast_to(self.blank, (len(self), *self.blank.shape))


def at_point(
    model, parameter, rank: int, certificate, screened, *, tol, broken, spent, settled, solver, epochs, rounds, touched,
    seconds, extras=None,
) -> Step:  # fmt: skip
    """Return the record of a grid point.

    Parameters
    ----------
    model : BoxModel or another model
    parameter : float or tuple
    certificate : Certificate
        Of the pair that is reported.
    screened : Screened
        What was fixed before the (first) solve.
    tol : float
        Relative gap asked for.
    broken : str
        Why the solve ended without a finite gap; empty where it has one.
    spent : bool
        Whether it ended because its iterations or its time were used up.
    settled : bool
        Whether the solver says that it has met its own target.
    solver : str
    epochs, rounds : int
    touched : float
        Rows touched.
    seconds : dict of str to float
        Of the phases ``screen``, ``solve`` and ``certify``.
    extras : dict, optional
        Further columns.
    """
    c = model.counts(certificate, screened)
    status, reason = verdict(certificate, tol, broken, spent, settled)
    if "extras" in c:
        extras = {**c["extras"], **(extras or {})}
    # By position: by name, the call would take longer than all the rest.
    return Step(
        rank,
        model.parameters(parameter),
        status,
        certificate.primal,
        certificate.dual,
        certificate.gap,
        certificate.rel_gap,
        tol * certificate.primal,
        c["n_R"],
        c["n_L"],
        c["n_E"],
        c["screened_R"],
        c["screened_L"],
        c["n_survivors"],
        c["rejection_ratio"],
        c["screening_rate"],
        c["n_features_screened"],
        c["nnz_w"],
        solver,
        epochs,
        rounds,
        touched / max(model.rows.n, 1),
        seconds["screen"],
        seconds["solve"],
        seconds["certify"],
        c["coefficients"],
        0.0,
        reason,
        extras or {},
    )


def broken_by(certificate) -> str:
    """Return why a certificate has no finite gap; nothing where it has one."""
    if isfinite(certificate.gap):
        return ""
    return INFEASIBLE if isfinite(certificate.primal) and not certificate.feasible else OVERFLOW


def verdict(certificate, tol: float, broken: str = "", spent: bool = False, settled: bool = False) -> tuple[str, str]:
    """Return the status of a certificate, and the reason where it is not ``certified``; see :func:`at_point`."""
    if rounding.meets(certificate, tol):
        return CERTIFIED, ""
    broken = broken or broken_by(certificate)
    if broken:
        return FAILED, broken
    if rounding.meets_but_for_rounding(certificate, tol):
        return ROUNDING, rounding.reason(certificate, tol)
    if not spent:
        return ROUNDING, DISAGREE if settled else STUCK
    return BUDGET, "the iterations or the time allowed were used up"
