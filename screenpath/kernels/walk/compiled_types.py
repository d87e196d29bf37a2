"""Arguments of a compiled walk, see ``kernels/walk/compiled.py``. This module holds no kernel."""

from typing import NamedTuple

import numpy as np

# Columns of `numbers`, see `box_walk`.
FIELDS = (
    "w_sq", "total_sq", "inner", "xi", "ell", "slack", "error", "primal", "primal_error", "gap", "rounding",
    "sum_error", "updates", "n_R", "n_L", "n_E", "screened_R", "screened_L", "n_survivors", "nnz_w", "epochs",
    "rounds", "touched", "rejection_ratio", "screening_rate", "screen_s", "solve_s", "certify_s", "intercept", "low",
    "high", "residue", "shift", "cost",
)  # fmt: skip
XI, ELL, SLACK, ERROR, PRIMAL, GAP, ROUNDING = map(
    FIELDS.index, ("xi", "ell", "slack", "error", "primal", "gap", "rounding")
)
# What screens the points of a walk: nothing, the ball of the reference's pair, or decisions that the caller has made.
NOTHING, PAIR_BALL, GIVEN = range(3)
SUM_ERROR, UPDATES, COUNTS = FIELDS.index("sum_error"), FIELDS.index("updates"), FIELDS.index("n_R")
SCREENED = FIELDS.index("screened_R")  # and screened_L
NNZ, EPOCHS, RATIO, SECONDS = (FIELDS.index(name) for name in ("nnz_w", "epochs", "rejection_ratio", "screen_s"))
# Of a free intercept, else 0: see `problem.box_types.Certificate`.
INTERCEPT, LOW, HIGH, RESIDUE, SHIFT, COST = (FIELDS.index(name) for name in FIELDS[SECONDS + 3 :])


class Problem(NamedTuple):
    """A box model on its rows.

    ``edges`` (int64): borders of the blocks in which sums over rows are computed, as ``rows.memory`` does; ``bounds``:
    on rounding, see ``box``.
    """

    edges: np.ndarray
    c: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    norms: np.ndarray
    signs: np.ndarray
    bounds: np.ndarray


class Points(NamedTuple):
    """The steps of a walk and their reference.

    Attributes
    ----------
    grid : ndarray of shape (k + 1,)
        The reference's parameter, then those of the steps.
    w, total : ndarray of shape (k + 1, d)
        A row for the reference and one for each step, which is written.
    theta : ndarray of shape (k + 1, n) or (1, n)
        The same; or one row for all, which ends as that of the last step that is done.
    margins : ndarray of shape (k + 1, n) or (2, n)
        The same; or two rows used in turn.
    numbers : ndarray of shape (k + 1, len(FIELDS))
        A row for the reference and one for each step, which is written; if decisions are given, their counts.
    decided : ndarray of int8 of shape (n,)
        What the static rule has fixed at the last step that was begun: written, or given for the only one. 0 before.
    """

    grid: np.ndarray
    w: np.ndarray
    total: np.ndarray
    theta: np.ndarray
    margins: np.ndarray
    numbers: np.ndarray
    decided: np.ndarray


class Settings(NamedTuple):
    """How the steps are walked.

    Attributes
    ----------
    tol, aim : float
        Relative gap on all rows, and that of the reduced problem.
    limit : int
        Newton iterations of a step.
    region : int
        What screens before each solve: ``NOTHING``, ``PAIR_BALL`` or ``GIVEN``.
    dynamic : bool
        Screen with the gap ball while solving.
    few : float
        A smaller share of rows is not screened, see ``problem.box.FEW``.
    fresh_every : int
        Updates of the sum over rows after which it is computed anew.
    rounding, relative : float
        Slacks of a comparison and of a squared radius, those of the model.
    slice_s : float
        Seconds after which no further step is begun.
    marked : bool
        Write to ``decided`` also what the dynamic rule has fixed.
    lever : float
        With a free intercept: relative rounding of a lever's centre.
    between : float
        Dual variables between their ends up to which a walk had better not read all rows, see ``lazy``; one that does
        not goes on up to twice as many. Below 0: it always reads them.
    """

    tol: float
    aim: float
    limit: int
    region: int
    dynamic: bool
    few: float
    fresh_every: int
    rounding: float
    relative: float
    slice_s: float
    marked: bool
    lever: float
    between: float


class Changes(NamedTuple):
    """Work space for a step's changes: ``ends`` (int8), open rows (``listed``), their values (``held``), sums over
    rows.

    Each has the length n; ``sums`` has the shape (2, blocks, d).
    """

    ends: np.ndarray
    listed: np.ndarray
    held: np.ndarray
    sums: np.ndarray


class Free(NamedTuple):
    """What a free intercept needs in addition to :class:`Problem`: the rows without their signs.

    Attributes
    ----------
    kinks, lo, hi, width, spread : ndarray of shape (n,)
        As in ``problem.intercept.Signless``; and at least the distance of each row from ``mean``.
    mean : ndarray of shape (d,)
    level, slack : float
        ``sum hi``, and the rounding error of a sum of widths.
    typical : float
        A typical distance of the rows from ``mean``, above 0.
    largest, largest_kink : float
        Of the ends of the boxes, and of the kinks.
    """

    kinks: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    width: np.ndarray
    spread: np.ndarray
    mean: np.ndarray
    level: float
    slack: float
    typical: float
    largest: float
    largest_kink: float
