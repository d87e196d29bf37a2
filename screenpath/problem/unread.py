"""What a compiled walk knows of rows that it does not read (``kernels.walk.lazy``): begun, handed on, kept on disk."""

from __future__ import annotations

import numpy as np

from screenpath.kernels.problem.box import ALL_KINKS, ALL_ONES, HIDDEN, KINK, PRODUCT, ROW_SUM, SLOPE
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.walk import deadlines as kernels
from screenpath.kernels.walk.compiled_types import Problem
from screenpath.numbers import sparse as sp
from screenpath.numbers import states
from screenpath.numbers.rounding import DIGITS, UNIT
from screenpath.problem.box_types import Unread
from screenpath.rows.memory import MemoryRows

MOST_EXPONENT = 300  # of a unit
MANY = 1000  # rows: fewer are read as fast as looked over
VERSIONS, MEMORY = 256, 1 << 21  # of w, and numbers that they may take
STEP = 0.02  # part of w that the working set of the first step reaches
ROWS = ("margins", "deadlines", "version")  # what changes from step to step: for each row,
STAGED = ("deadlines", "sizes", "units", "mean", "ratios", "metric", "lost", "most", "state")
CHANGES = (*ROWS, "points", "placed", "facts", "state", "firsts")  # and for each version
# Of a certificate: what is not computed anew from its pair. Sums over all rows would differ in their last digits.
NUMBERS = ("total_sq", "inner", "xi", "ell", "slack", "error", "primal", "primal_error", "gap", "rounding")
ENDS = "low", "high"
BOUNDS = "error", "primal_error"  # which grow with a walk, and may be larger than those that are formed again
INTERCEPT = ("intercept", *ENDS, "residue", "shift", "cost")  # and, where it is free, of that
NONE, NOTHING = np.zeros(1, dtype=np.int64), np.empty(0)
DENSE = 64  # columns, up to which moves are measured by second moments
GROUP, GROUPS = 32, 128  # rows that these are of: 64 and more for each column
PART = 0.25  # of the tolerance: what rounding may take of the primal value
ALIKE = 1e-6  # relative difference of a certificate's numbers, at most


def begun(model, reference, move=None) -> kernels.Lazy:
    """Return what the margins of a reference say of the rows; ``move``: how far its ``w`` may be from the optimum."""
    lazy = _begun(model, reference, move)
    return without_margins(lazy) if model.rows.staged else lazy


def _begun(model, reference, move=None) -> kernels.Lazy:
    w = reference.point.vector
    most = 0.0 if model.free is None else model.largest_kink
    lazy = kernels.nothing(model.size, room_of(w.size), w.size, measured(model), most)
    lazy.margins[:] = reference.point.products
    move = STEP * w if move is None else move
    lazy.state[kernels.REACH] = kernels.distance(move, 0.0, w, 0.0, w, lazy, model.bounds)
    kernels.set_deadlines(_problem(model), w, reference.intercept or 0.0, reference.theta, lazy)
    return lazy


def blurred(model, C, sqnorm, sum_error, primal, tol: float):
    """Return whether rounding may be too much for a primal value that is a difference of larger sums, not of losses.

    ``C``, ``sqnorm``, ``sum_error``, ``primal``: of a certificate, or arrays of those of several.
    """
    b = model.bounds
    off = (b[ROW_SUM] + b[SLOPE]) * b[ALL_KINKS] + b[KINK] * b[ALL_ONES] + np.sqrt(sqnorm) * sum_error
    return np.logical_not(C * off <= PART * max(tol, DIGITS) * primal)


def measured(model) -> tuple:
    """Return ``sizes``, ``units``, ``mean``, ``ratios``, ``metric`` and ``lost`` of ``Lazy``: the units are the powers
    of two next to the columns' root mean squares, around the mean where the intercept is free.
    """
    if model.measure is not None:
        return model.measure
    free, error = model.free, model.bounds[PRODUCT]
    rows, touched = model.rows, model.rows.touched
    mean, lengths, more = (NOTHING, model.norms, 0.0) if free is None else (free.mean, free.spread, 1.0)
    middle = np.zeros(rows.d) if free is None else mean
    wide = rows.sparse and rows.d > DENSE and rows.stored is not None  # copies without their zeros
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if rows.d <= DENSE or rows.stored is None:  # a pass more would make no better units
            sample = matrix_of(_sample(rows))
            squares = _squares(sample, middle) * (model.size / len(sample.dense))
        else:
            squares = _wide_squares(rows, middle) if wide else np.sum(rows.blockwise(_squares, middle), axis=0)
        exponents = np.round(0.5 * np.log2(squares / model.size))
        units = np.exp2(np.where(np.abs(exponents) <= MOST_EXPONENT, exponents, 0.0))
        apart = float(np.linalg.norm(middle / units))  # the rows themselves may be rounded
        metric, lost = np.empty((0, 0)), 4.0 * UNIT
        if units.size <= DENSE:
            metric = kernels.metric_of(sample, middle, 1.0 / units)
            lost = 4.0 * error * (float(np.linalg.norm(metric)) + apart)
        if wide:
            data, indices, indptr = rows.stored
            scaled = MemoryRows(sp.csr_array((data / units[indices], indices, indptr), shape=(rows.n, rows.d)))
            sizes = np.sqrt(square_distances(scaled, middle / units, error) + more)
        else:
            sizes = np.concatenate(rows.blockwise(_sizes, middle, 1.0 / units, more, metric))
        sizes = sizes * (1.0 + 2.0 * error) + 4.0 * error * apart + model.bounds[HIDDEN]
        ratios = np.nextafter((lengths / sizes).astype(np.float32), np.float32(np.inf))
    model.measure, rows.touched = (sizes, units, mean, ratios, metric, lost), touched
    return model.measure


def square_distances(rows, middle, product: float) -> np.ndarray:
    """Return at least the squared distances of all rows from a vector, by a pass of relative error ``product``."""
    length = float(np.sqrt(middle @ middle))
    square = np.square(rows.norms) - 2.0 * rows.margins(middle) + length * length
    return np.maximum(square, 0.0) + 4.0 * product * np.square(rows.norms + length)


def _wide_squares(rows, middle) -> np.ndarray:
    """Return about what :func:`_squares` does, of sparse rows without their zeros."""
    data, indices, _ = rows.stored
    return np.bincount(indices, data * (data - 2.0 * middle[indices]), rows.d) + rows.n * np.square(middle)


def _squares(X, middle) -> np.ndarray:
    """Return the sums of the squares of the columns, ``middle`` subtracted from the rows."""
    squares = np.zeros_like(middle)
    kernels.column_squares(X, middle, squares)
    return squares


def _sizes(X, middle, scales, more: float, metric) -> np.ndarray:
    sizes = np.empty(len(X.dense))
    if metric.size:
        kernels.measure_by(X, middle, scales, more, metric, sizes)
    else:
        kernels.measure(X, middle, scales, more, sizes)
    return sizes


def _sample(rows) -> np.ndarray:
    """Return rows for second moments, groups of neighbours: any are as safe as any other."""
    starts = np.arange(0, rows.n, GROUP * max(1, rows.n // (GROUP * GROUPS)))
    index = (starts[:, None] + np.arange(GROUP)).ravel()
    index = index[index < rows.n]
    return rows.dense(index)


def copied(lazy: kernels.Lazy) -> kernels.Lazy:
    """Return a copy for a walk to change; of rows not in memory (``walk.staged``) the deadlines are kept alone."""
    return lazy._replace(**{name: getattr(lazy, name).copy() for name in CHANGES})


def state(certificate) -> dict:
    """Return the arrays of a checkpoint."""
    lazy = certificate.unread
    if lazy is None:
        return {}
    found = {f"unread_{name}": getattr(lazy, name) for name in ROWS if getattr(lazy, name).size}
    count, known = int(lazy.state[kernels.VERSIONS]), lazy.state[: _known(lazy.margins.size == 0)]
    numbers = np.array([getattr(certificate, name) for name in _numbers(certificate)])
    return {**found, "unread_points": lazy.points[:count], "unread_state": known, "unread_numbers": numbers}


def restore(model, certificate, stored) -> None:
    """Give a certificate what :func:`state` kept of unread rows, by three passes; a ValueError if it is not true."""
    if "unread_state" not in stored:
        return
    n, w, names = model.size, certificate.point.vector, _numbers(certificate)
    staged, numbers = model.rows.staged, states.vector(stored, "unread_numbers", len(names))
    known = states.vector(stored, "unread_state", _known(staged))
    count, room = int(known[kernels.VERSIONS]), 1 if staged else room_of(w.size)
    points = np.asarray(stored["unread_points"])
    if not (0 < count == known[kernels.VERSIONS] <= room and known[: kernels.LINEAR].min() >= 0.0):
        raise ValueError("unread_state is not that of a walk")
    if points.shape != (count, w.size + 1) or points.dtype != np.float64 or not np.array_equal(points[-1, :-1], w):
        raise ValueError("unread_points does not end with w")
    ends = certificate.low, certificate.high  # of the best intercepts: with one that is given, both are this one
    if model.free is not None:
        C, theta, margins = certificate.C, certificate.theta, certificate.point.products
        again = model.certify(C, w, theta, certificate, margins, float(points[-1, -1]))
        for name in (*NUMBERS, *INTERCEPT):
            setattr(certificate, name, getattr(again, name))
    lazy = _begun(model, certificate)
    fresh, fresh_state = lazy.deadlines.copy(), lazy.state.copy()
    deadlines = np.asarray(stored["unread_deadlines"])  # infinite for rows without weight
    if deadlines.shape != (n,) or deadlines.dtype != np.float64:
        raise ValueError("unread_deadlines is not a vector of the rows")
    if staged:
        slope, floor = lazy.facts[0, kernels.ERROR_SLOPE], lazy.facts[0, kernels.ERROR_FLOOR]
        lazy.held[:] = 2.0 * (slope * model.norms + floor) + 16.0 * UNIT * (np.abs(model.c) + np.abs(lazy.margins))
        lazy.state[: known.size] = known
    else:
        _restore_margins(model, points, known, stored, lazy)
    left = fresh + 2.0 * lazy.held / lazy.sizes + 64.0 * UNIT * np.abs(fresh)
    if not np.all((deadlines - known[kernels.ODOMETER] <= left) | (deadlines <= 0.0) | (fresh == np.inf)):
        raise ValueError("unread_deadlines are later than the rows allow")
    for place in (kernels.LINEAR, kernels.SIGNED):
        if not abs(known[place] - fresh_state[place]) <= known[place + 1] + fresh_state[place + 1]:
            raise ValueError("unread_state has another sum")
    lazy.deadlines[:] = deadlines
    lazy.firsts[:] = np.minimum.reduceat(deadlines, np.arange(0, n, kernels.SCANNED))
    lazy = without_margins(lazy) if staged else lazy
    for name, value in zip(names, numbers.tolist(), strict=True):
        known = min(max(value, ends[0]), ends[1]) if name in ENDS else getattr(certificate, name)
        off = ALIKE * max(abs(certificate.primal), abs(known))
        if not (known - off <= value and (value <= known + off or name in BOUNDS)):
            raise ValueError(f"unread_numbers has another {name}")
        setattr(certificate, name, value)
    certificate.memory, certificate.point = lazy, Unread(w, certificate.point.sqnorm, model)


def _restore_margins(model, points, known, stored, lazy) -> None:
    """Write the margins of rows in memory, each for its own version; the errors of two of them to ``held``."""
    n, version = model.size, np.asarray(stored["unread_version"])
    if version.shape != (n,) or version.dtype != np.int32 or version.min() < 0 or version.max() >= len(points):
        raise ValueError("unread_version names a row of unread_points that there is not")
    margins = states.vector(stored, "unread_margins", n)
    kernels.restore(matrix_of(model.rows.stored), _problem(model), points, known, version, lazy)
    if not np.all(np.abs(margins - lazy.margins) <= lazy.held):
        raise ValueError("unread_margins are not those of unread_points")
    lazy.margins[:], lazy.base[:] = margins, model.margins(points[0, :-1])


def without_margins(lazy) -> kernels.Lazy:
    """Return the deadlines alone, and what does not change: rows that are not in memory need no more."""
    none = kernels.nothing()
    return none._replace(**{name: getattr(lazy, name) for name in STAGED}, points=lazy.points[:1].copy())


def _known(staged: bool) -> int:
    """Return how many numbers of the state are kept."""
    return kernels.LIMIT + staged


def _numbers(certificate) -> tuple:
    return NUMBERS if certificate.intercept is None else NUMBERS + INTERCEPT


def room_of(d: int) -> int:
    """Return how many versions of ``w`` there is room for."""
    return max(16, min(VERSIONS, MEMORY // d))


def _problem(model) -> Problem:
    return Problem(NONE, model.c, model.lo, model.hi, model.norms, model.signs, model.bounds)
