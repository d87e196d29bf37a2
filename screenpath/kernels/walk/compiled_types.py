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
    """A box model on its rows."""

    edges: np.ndarray  # int64: borders of the blocks in which sums over rows are computed, as in ``rows.memory``
    c: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    norms: np.ndarray
    signs: np.ndarray
    bounds: np.ndarray  # on rounding, see ``box``


class Points(NamedTuple):
    """The steps of a walk and their reference."""

    grid: np.ndarray  # shape (k + 1,): the reference's parameter, then those of the steps
    w: np.ndarray  # w, total: shape (k + 1, d): a row for the reference and one for each step, which is written
    total: np.ndarray
    # shape (k + 1, n) or (1, n): the same; or one row for all, which ends as that of the last step that is done
    theta: np.ndarray
    margins: np.ndarray  # shape (k + 1, n) or (2, n): the same; or two rows used in turn
    # shape (k + 1, len(FIELDS)): a row for the reference and one for each step, which is written; if decisions are
    # given, their counts
    numbers: np.ndarray
    # int8 of shape (n,): what the static rule has fixed at the last step that was begun: written, or given for the only
    # one. 0 before
    decided: np.ndarray


class Settings(NamedTuple):
    """How the steps are walked."""

    tol: float  # tol, aim: relative gap on all rows, and that of the reduced problem
    aim: float
    limit: int  # Newton iterations of a step
    region: int  # what screens before each solve: ``NOTHING``, ``PAIR_BALL`` or ``GIVEN``
    dynamic: bool  # screen with the gap ball while solving
    few: float  # a smaller share of rows is not screened, see ``problem.box.FEW``
    fresh_every: int  # updates of the sum over rows after which it is computed anew
    rounding: float  # rounding, relative: slacks of a comparison and of a squared radius, those of the model
    relative: float
    slice_s: float  # seconds after which no further step is begun
    marked: bool  # write to ``decided`` also what the dynamic rule has fixed
    lever: float  # with a free intercept: relative rounding of a lever's centre
    # dual variables between their ends up to which a walk had better not read all rows, see ``lazy``; one that does not
    # goes on up to twice as many. Below 0: it always reads them
    between: float
    steep: float  # of Newton's first sigma, see ``newton.How``


class Changes(NamedTuple):
    """Work space for a step's changes."""

    ends: np.ndarray  # ends (int8), listed, held: shape (n,): the open rows, and their values
    listed: np.ndarray
    held: np.ndarray
    sums: np.ndarray  # shape (2, blocks, d): over rows


class Free(NamedTuple):
    """What a free intercept needs in addition to :class:`Problem`: the rows without their signs."""

    # kinks, lo, hi, width, spread: shape (n,): as in ``problem.intercept.Signless``; and at least the distance of each
    # row from ``mean``
    kinks: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    width: np.ndarray
    spread: np.ndarray
    mean: np.ndarray  # shape (d,)
    level: float  # level, slack: ``sum hi``, and the rounding error of a sum of widths
    slack: float
    typical: float  # a typical distance of the rows from ``mean``, above 0
    largest: float  # largest, largest_kink: of the ends of the boxes, and of the kinks
    largest_kink: float
