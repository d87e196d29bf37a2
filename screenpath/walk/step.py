"""One record per step: what is streamed, written, plotted and resumed from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from math import isfinite, nan
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from screenpath.numbers import rounding
from screenpath.problem import INTERVAL

LATE = "the time limit ended the path before this point"  # reason of a step that was skipped

OVERFLOW = "overflow: numbers of the solve exceed the range of floating point; scale the data"
INFEASIBLE = (
    "the solver's intercepts are not the best ones: no dual point next to its own is feasible, so no gap is proven"
)
EXACT = "rounding is the limit: the solver has reached the accuracy of its arithmetic"
STUCK = f"{EXACT}; where features differ in scale by many orders of magnitude, scale=standard helps"
DISAGREE = "the solver's own gap met its target, the proven one did not: by rounding, or by a fault of the solver"

# The fixed status words. `rounding`: the gap would be met, but for what rounding may have added to it.
CERTIFIED, BUDGET, ROUNDING, SKIPPED, FAILED = "certified", "budget", "rounding", "skipped", "failed"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the step table."""

    says: str  # what stands there
    # what stands there at a grid point that was not reached: nan for what is not known, 0 for work that was not done
    missing: object = nan
    summed: bool = True  # whether one-vs-rest adds it up over the classes
    name: str = ""


class Step:
    """A row of the step table: its columns are attributes.

    Parameters
    ----------
    cells : dict
        By column: ``step`` (number of the grid point, from 0), the parameters, the columns below, and further ones of
        the model, an audit or test data.
    names : tuple of str
        Of the parameters.
    coefficients : ndarray of shape (d,), optional
        Weights as the model sees them: of the scaled features, the bias last. ``prepare.Preparation`` turns them
        into the units of the data file. None where the grid point was not reached.

    Attributes
    ----------
    """

    # The columns behind `step` and the parameters, in this order.
    status: Annotated[str, Column("certified, budget, rounding, skipped or failed", SKIPPED, False)]
    primal: Annotated[float, Column("objective on the full data")]
    dual: Annotated[float, Column("lower bound of the exact dual value, rounding counted")]
    gap: Annotated[float, Column("upper bound of the exact gap, rounding counted")]
    rel_gap: Annotated[float, Column("the gap over the primal value", summed=False)]
    gap_target: Annotated[float, Column("the gap that was asked for: tol times the primal value")]
    n_R: Annotated[int, Column("dual variables at their lower end")]
    n_L: Annotated[int, Column("dual variables at their upper end")]
    n_E: Annotated[int, Column("dual variables between their ends")]
    screened_R: Annotated[int, Column("dual variables that the rule fixed at their lower end before the solve")]
    screened_L: Annotated[int, Column("... and at their upper end")]
    n_survivors: Annotated[int, Column("dual variables handed to the solver")]
    rejection_ratio: Annotated[float, Column("screened over all dual variables (Wang 2014)", summed=False)]
    screening_rate: Annotated[float, Column("screened over those truly at an end (Ogawa 2014)", summed=False)]
    n_features_screened: Annotated[int, Column("features fixed to zero before the solve")]
    nnz_w: Annotated[int, Column("coefficients that are not zero")]
    solver: Annotated[str, Column("name of the solver, or of what made a solve unnecessary", "", False)]
    epochs: Annotated[int, Column("sweeps or Newton iterations", 0)]
    rounds: Annotated[int, Column("solve-and-certify rounds", 0, False)]
    passes: Annotated[float, Column("rows touched over rows in the data: rule, solver and certificate together", 0.0)]
    screen_s: Annotated[float, Column("wall-clock seconds of screening", 0.0)]
    solve_s: Annotated[float, Column("... of solving", 0.0)]
    certify_s: Annotated[float, Column("... of certifying", 0.0)]
    init_s: Annotated[float, Column("... before the first step, on the far end, for rules that need it", 0.0)]
    reason: Annotated[str, Column("why the step is not certified; empty where it is", "", False)]

    __slots__ = ("cells", "names", "coefficients")

    def __init__(self, cells: dict, names: tuple, coefficients: Any = None):
        self.cells, self.names, self.coefficients = cells, names, coefficients

    if not TYPE_CHECKING:  # which knows the columns above

        def __getattr__(self, name: str):
            cells = object.__getattribute__(self, "cells")
            if name not in cells:
                raise AttributeError(f"a step has no column '{name}'")
            return cells[name]

    @property
    def step(self) -> int:
        """Return the number of the grid point, from 0."""
        return self.cells["step"]

    def __repr__(self) -> str:
        return f"Step({', '.join(f'{name}={value!r}' for name, value in self.cells.items())})"

    @property
    def parameters(self) -> dict:
        """Return the parameters by name, for example ``{"C": 0.1}``."""
        return {name: self.cells[name] for name in self.names}

    @property
    def extras(self) -> dict:
        """Return the cells of further columns."""
        fixed = {"step", *self.names, *COLUMNS}
        return {name: value for name, value in self.cells.items() if name not in fixed}

    @property
    def seconds(self) -> float:
        """Return the seconds of screening, solving and certifying together, and of the rule's far end."""
        return self.screen_s + self.solve_s + self.certify_s + self.init_s

    def record(self) -> dict:
        """Return the row of the step table: step, parameters, the fixed columns, extras."""
        return dict(self.cells)


TABLE = tuple(replace(one.__metadata__[0], name=name) for name, one in Step.__annotations__.items())
COLUMNS = tuple(column.name for column in TABLE)
COUNTS = COLUMNS[COLUMNS.index("n_R") : COLUMNS.index("nnz_w") + 1]  # what a model counts
# Further columns, and what of the rows counts them: bytes of the lines that a step reads from shards; on a cluster,
# bytes of the arrays sent to workers and received from them.
BYTES = {"bytes_read": "read", "bytes_moved": "moved"}
Step.__doc__ = f"{Step.__doc__}" + "\n".join(f"{column.name} : {column.says}" for column in TABLE)


def bytes_of(rows) -> dict[str, int]:
    """Return by column the bytes that ``rows`` have read and moved so far; empty for data in memory."""
    counts = {name: getattr(rows, of) for name, of in BYTES.items()}
    return {name: count for name, count in counts.items() if count is not None}


def in_units(row: dict, moved: float) -> dict:
    """Return the row of a step table with the ends of the intercepts moved to the units of the data."""
    return {**row, **{name: row[name] + moved for name in INTERVAL if name in row}}


class Steps(Sequence[Step]):
    """The steps of a path in the order of its grid, from lists of Step or Stretches; a row is made when it is read."""

    def __init__(self, batches: list):
        self._batches = batches
        self._made: list | None = None

    def __len__(self) -> int:
        return sum(map(len, self._batches))

    def _make(self) -> list:
        return [step for batch in self._batches for step in batch]

    def __getitem__(self, key):
        if self._made is None:
            self._made = self._make()
        return self._made[key]

    def __iter__(self):
        return iter(self[:])

    def __repr__(self) -> str:
        return f"Steps({self[:]!r})"


class Stretch(Steps):
    """Steps kept as columns, which saves a tenth of the time of a path of little data.

    ``columns`` has by name a list or an array with a cell per step, or one cell that all of them share; ``names`` are
    those of the parameters, ``coefficients`` an array of shape (k, d) or an iterable over the steps.
    """

    def __init__(self, names: tuple, columns: dict, coefficients):
        super().__init__([])
        self.names, self.columns, self.coefficients = names, columns, coefficients

    @classmethod
    def missing(cls, rank: int, parameters: list[dict], reason: str) -> "Stretch":
        """Return steps that a walk did not reach, from ``rank`` on: unknown cells are nan, work is 0."""
        names = tuple(parameters[0])
        places = {"step": list(range(rank, rank + len(parameters)))}
        places |= {name: [one[name] for one in parameters] for name in names}
        return cls(
            names, {**places, **{column.name: column.missing for column in TABLE}, "reason": reason}, repeat(None)
        )

    def __len__(self) -> int:
        return len(self.columns["step"])

    def _make(self) -> list:
        rows = zip(*map(_each, self.columns.values()), strict=False)  # what all rows share has no end
        cells = (dict(zip(self.columns, row, strict=False)) for row in rows)
        return list(map(Step, cells, repeat(self.names), self.coefficients))


def _each(cells):
    """Return the cells of a column one by one, as Python's numbers."""
    if isinstance(cells, np.ndarray):
        return cells.tolist()
    return cells if isinstance(cells, list) else repeat(cells)


def at_point(
    model, parameter, rank: int, certificate, screened, tol: float, judged: tuple, work: dict, touched, seconds, extras
) -> Step:
    """Return the record of a step whose reported pair has this certificate, and was ``judged`` by :func:`verdict`.

    ``screened`` was fixed before the (first) solve, which ``touched`` so many rows. ``work`` has the cells ``solver``,
    ``epochs`` and ``rounds``. ``seconds`` are those of the phases ``screen``, ``solve`` and ``certify``; ``extras`` are
    further columns.
    """
    c, parameters, (status, reason) = model.counts(certificate, screened), model.parameters(parameter), judged
    cells = {
        "step": rank, **parameters, "status": status,
        "primal": certificate.primal, "dual": certificate.dual, "gap": certificate.gap, "rel_gap": certificate.rel_gap,
        "gap_target": tol * certificate.primal,
        **{name: c[name] for name in COUNTS},
        **work, "passes": touched / max(model.rows.n, 1),
        **{f"{phase}_s": seconds[phase] for phase in ("screen", "solve", "certify")}, "init_s": 0.0,
        "reason": reason, **c.get("extras", {}), **extras,
    }  # fmt: skip
    return Step(cells, tuple(parameters), c["coefficients"])


def broken_by(certificate) -> str:
    """Return why a certificate has no finite gap; empty if it has one."""
    if isfinite(certificate.gap):
        return ""
    return INFEASIBLE if isfinite(certificate.primal) and not certificate.feasible else OVERFLOW


def verdict(
    certificate, tol: float, broken: str = "", spent: bool = False, settled: bool = False, features: bool = True
) -> tuple[str, str]:
    """Return the status of a certificate, and the reason if it is not ``certified``.

    ``broken`` is why the solve ended without a finite gap, ``spent`` whether its iterations or its time were used up,
    ``settled`` whether the solver reports that it has met its own target, ``features`` whether the data has some.
    """
    if rounding.meets(certificate, tol):
        return CERTIFIED, ""
    broken = broken or broken_by(certificate)
    if broken:
        return FAILED, broken
    if rounding.meets_but_for_rounding(certificate, tol):
        return ROUNDING, rounding.reason(certificate, tol)
    if not spent:
        return ROUNDING, DISAGREE if settled else STUCK if features else EXACT
    return BUDGET, "the iterations or the time allowed were used up"
