"""A path over a level of the loss at one C: tau of quantile regressions, epsilon of a tube.

Every level has its own box model over the same rows; only kinks or boxes differ.
A reference is carried to the next level without a pass over the data: its ``w`` stays, its dual variables move with
their box, and ``G'theta`` by ``G'(hi - lo)``, which is known. So each rule for a pair serves, with C as it was. With a
free intercept the rows nearest to their kinks then take what is left of the signed sum.

Between two solved levels the means of both points are a pair again. In tau the primal value is convex in ``(w, b)`` and
linear in the level, the dual value concave and without it; in epsilon the primal value is convex in both, the dual
value linear in the level. Either way the gap of the mean exceeds the mean of the gaps by at most ``s (1 - s)`` times
the step times the change of the ``slope``, the derivative of the objective (:mod:`screenpath.problem.between`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from screenpath.kernels.problem import box as kernels
from screenpath.numbers import states
from screenpath.numbers.rounding import OUTWARD, UNIT
from screenpath.problem import LEVELS
from screenpath.problem.base import Family
from screenpath.problem.box_types import Certificate

UPDATES = 5  # of a sum over rows, as which a move to the next level counts: two, and bounds may differ by a factor of 2


class Levels(Family):
    """The box models of all levels of a loss.

    ``model``: ``model(**level, **known) -> BoxModel``; ``known`` may have what does not depend on the level. ``name``:
    of the level, as the step table has it. ``boxes``: whether boxes depend on the level, as those of quantiles do; else
    kinks do. ``first``: a level.
    """

    def __init__(self, model: Callable, name: str, C: float, boxes: bool, first: float):
        self.model, self.name, self.C, self.boxes = model, name, C, boxes
        self._known: dict[float, Any] = {}
        one = self.at(first)
        self.rows = one.rows
        self.whole = one.weighted_sum(one.hi - one.lo) if boxes else np.zeros(one.rows.d)
        self._below: np.ndarray | None = None  # forms of the rows at the level below

    def at(self, level):
        """Return the model at one level; the last two are kept."""
        if level not in self._known:
            last = list(self._known.items())[-1:]
            known = {"around": last[0][1].around} if last and hasattr(last[0][1], "around") else {}
            model = self.model(**{self.name: level}, **known)
            model.level, model.parameter, model.further = level, self.name, partial(self._further, model)
            self._known = {**dict(last), level: model}
        return self._known[level]

    def start(self, parameter: float) -> Certificate:
        return self.at(parameter).start(self.C)

    def bound(self, reference: Certificate, parameter: float) -> tuple:
        """Return the model of the level, the reference there, and C."""
        old, model = self.at(reference.level), self.at(parameter)
        if old is not model:
            self._below = forms(reference) if old.level < model.level else None
            reference = self._carried(old, model, reference)
        return model, reference, self.C

    def _carried(self, old, model, reference: Certificate) -> Certificate:
        """Return the certificate at another level of the reference's ``w`` and its dual point in the box there."""
        C, pair = self.C, reference
        if self.boxes:
            step, n = model.level - old.level, float(model.size)
            theta = np.clip(reference.theta + step * (model.hi - model.lo), model.lo, model.hi)
            theta = np.where(reference.theta == old.lo, model.lo, np.where(reference.theta == old.hi, model.hi, theta))
            error = kernels.sum_drift(kernels.sum_drift(reference.sum_error, n, old.bounds), n, old.bounds)
            pair = replace(
                reference, theta=theta, total=reference.total + step * self.whole, sum_error=error,
                updates=reference.updates + UPDATES,
            )  # fmt: skip
        near = None if pair.updates >= model.fresh_every else pair
        return model.certify(C, pair.point.vector, pair.theta, near, pair.point.products)

    def _further(self, model, certificate: Certificate) -> dict:
        """Return further columns: the derivative of the objective by the level, a bound on its error, crossings."""
        C, depth = certificate.C, 2.0 * UNIT * (model.size + 64) + model.inexact
        if not self.boxes:
            value = -C * float(certificate.theta.sum())
            off = C * certificate.residue + depth * abs(value)
            return dict(zip(LEVELS, (value, OUTWARD * off), strict=False))
        widths, here = model.hi - model.lo, forms(certificate)
        t, (slope, floor) = model.c - here, model.errors_of(certificate)
        off = float(widths @ (slope * model.norms + floor)) + depth * float(widths @ (np.abs(t) + np.abs(here)))
        crossed = 0 if self._below is None else int(np.count_nonzero(here < self._below))
        return dict(zip(LEVELS, (C * float(widths @ t), OUTWARD * C * off, crossed), strict=True))

    def parameters(self, parameter: float) -> dict:
        return {self.name: float(parameter)}

    def state(self, certificate: Certificate) -> dict:
        return {"level": certificate.level, **self.at(certificate.level).state(certificate)}

    def restore(self, state) -> Certificate:
        return self.at(states.number(state, "level")).restore(state)


def forms(certificate: Certificate) -> np.ndarray:
    """Return the linear forms of the rows, shape (N,), with a free intercept."""
    return certificate.point.products + (certificate.intercept or 0.0)
