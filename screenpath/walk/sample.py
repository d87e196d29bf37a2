"""Where a walk begins that has no solution near its first parameter: at one of a sample of the rows.

A sample of one row in four, whose loss counts four times, begins at one of its own in turn. Only the smallest sample
is solved from nothing; each larger one reads its rows once, and solves for those near their kinks.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from screenpath.numbers import sparse as sp
from screenpath.problem import unread
from screenpath.problem.box import BoxModel
from screenpath.problem.free import FreeModel
from screenpath.rows.memory import MemoryRows
from screenpath.solve.base import Budget
from screenpath.solve.newton import Newton

GROWTH, VALUES = 4, 1 << 22  # rows for each of a sample: so many, or more where it would have more values
TOL = 1e-3  # relative gap of a sample's solution: a larger sample says more than further digits
# Of the way from the last sample's solution to this one's: how far the next may be; more where rows are copied for some
# steps, which go on from there.
REACH, STAGE = 0.31, 0.5
TIES = 0.1  # share of a sample's dual variables between their ends, from which the rest of the rows are like them


def near(walk, C: float, epochs: int) -> tuple:
    """Return a certificate at ``C`` to begin from, or None where too many rows are at their kinks.

    It knows of the rows what a walk needs that does not read all of them. Also returns Newton iterations and, of
    samples, the rows read; those of the model count there.
    """
    model = walk.model
    growth = max(GROWTH, model.rows.size // VALUES)
    blocks = np.arange(0, model.size - growth, growth)  # not every fourth row, which may be those of a season
    index = blocks + np.random.default_rng(0).integers(growth, size=blocks.size)
    before = model.rows.touched
    taken = model.rows.take(index, np.ones(index.size))
    taken = sp.csr_array(taken, shape=(index.size, model.rows.d)) if model.rows.sparse else taken
    rows = MemoryRows(taken, inexact=model.rows.inexact)
    model.rows.touched = before
    arrays = rows, model.c[index], model.lo[index], model.hi[index], model.signs[index]
    if model.free is None:
        sample = BoxModel(*arrays)
    elif _pulled_both_ways(*arrays[2:]):
        mean, spread, typical = model.around
        sample = FreeModel(*arrays, around=(mean, spread[index], typical))
    else:
        return None, 0, 0.0
    sizes, units, middle, ratios, *metric = unread.measured(model)
    sample.measure = sizes[index], units, middle, ratios[index], *metric
    larger, touched, w = C * model.size / index.size, float(index.size), np.zeros(rows.d)
    if sample.size < unread.MANY:
        start = sample.certify(larger, w, sample.corner(np.zeros(sample.size))[0])
        reduced = sample.reduce(larger, sample.nothing_screened(), start)
        solver = Newton()
        solver.steep = False
        found = solver.solve(reduced, tol=TOL, budget=Budget(epochs, inf, None, 0.0), dynamic=False)
        w, step, spent, between = found.w, found.w, found.epochs, 0.0
        touched += found.touched
        b = found.intercept
    else:
        options, aim = replace(walk.options, tol=TOL, certificates=True), TOL * walk.aim / walk.options.tol
        smaller = walk.smaller(sample, [larger], options, aim)
        smaller.between = walk.between * sample.size / model.size
        start, spent, more = near(smaller, larger, epochs)
        touched += more
        if start is None:
            return None, spent, touched + rows.touched
        steps, ends = smaller.points(start, 0)
        end = ends[0] if ends else start
        w, step, b = end.point.vector, end.point.vector - start.point.vector, end.intercept or 0.0
        spent, between = spent + sum(one.epochs for one in steps), 1.0 - (end.n_R + end.n_L) / sample.size
    if between > TIES:
        return None, spent, touched + rows.touched
    return beside(model, C, w, b, (STAGE if model.rows.staged else REACH) * step), spent, touched + rows.touched


def beside(model, C: float, w, b: float, step):
    """Return a certificate at ``C`` whose ``w`` is one next to the solution, which may be a ``step`` away; an intercept
    is about ``b``.
    """
    margins, near = model.cornered(w, b)
    reference = model.certify(C, w, model.corner(margins)[0], near, margins)
    reference.memory = unread.begun(model, reference, step)
    return reference


def _pulled_both_ways(lo, hi, signs) -> bool:
    """Tell whether the rows have a best intercept, see ``Signless``."""
    return bool(np.where(signs > 0, lo, -hi).sum() < 0.0 < np.where(signs > 0, hi, -lo).sum())
