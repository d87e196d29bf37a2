"""A binary model for each class against the rest, on one grid: a joint model whose walk is one loop per class."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from screenpath.problem import INTERVAL
from screenpath.problem.base import Resumable
from screenpath.problem.l1svm import L1SVM
from screenpath.walk import step as steps
from screenpath.walk.loop import added, walk
from screenpath.walk.step import Step


class OneVsRest(Resumable):
    """Models ``binary(rows, signs, *more)`` of every class against the rest, on the same rows.

    The sum over the classes ``k`` of the objectives of ``binary``, with ``y_ik = +1`` where sample ``i`` is of class
    ``k`` and -1 elsewhere. The largest ``x.w_k`` decides. A sample's weight ``s_i`` is the same in all. ``codes``,
    shape (n,), are class numbers from 0.
    """

    def __init__(self, binary: Callable, rows, codes, *more):
        self.rows = rows
        self.parts = [binary(rows, np.where(codes == k, 1.0, -1.0), *more) for k in range(int(codes.max()) + 1)]
        first, *others = self.parts
        self.of_features = isinstance(first, L1SVM)  # whether the models screen features, not samples
        for model in others if not self.of_features else ():  # they differ in their signs alone
            model.c, model.lo, model.hi = first.c, first.lo, first.hi

    @property
    def lam_max(self) -> float:
        """Return the smallest lambda from which all weights of all classes are 0."""
        return max(part.lam_max for part in self.parts)

    def parameters(self, value: float) -> dict:
        return self.parts[0].parameters(value)

    def state(self, certificates: list) -> dict:
        parts = [model.state(c) for model, c in zip(self.parts, certificates, strict=True)]
        return {f"class_{k}_{name}": value for k, part in enumerate(parts) for name, value in part.items()}

    def restore(self, state) -> list:
        found = []
        for k, model in enumerate(self.parts):
            head = f"class_{k}_"
            found.append(model.restore({n.removeprefix(head): v for n, v in state.items() if n.startswith(head)}))
        return found


def walk_classes(model, grid, screening, solver, options, reference=None, first: int = 0):
    """Walk a grid as :func:`screenpath.walk.loop.walk` does, all classes of a :class:`OneVsRest` in step.

    A binary model is walked as it is. Every class has its own copy of the rule; ``reference`` has a certificate per
    class. Yields steps of sums over the classes, certified if all classes are, with a row of coefficients per class;
    and the certificates.
    """
    if not model.parts:
        yield from walk(model, grid, screening, solver, options, reference, first)
        return
    references = reference or [None] * len(model.parts)
    walks = [
        walk(one, grid, copy.deepcopy(screening), solver, options, start, first)
        for one, start in zip(model.parts, references, strict=True)
    ]
    while True:
        found = []
        for one, steps_of_one in zip(model.parts, walks, strict=True):
            step = next(steps_of_one, None)
            if step is None:  # the deadline ends the first walk that meets it, and so all
                return
            if not model.of_features:
                one.forget()  # a copy of all rows for each class would be many times the data
            found.append(step)
        yield joined([step for step, _ in found], model.of_features), [certificate for _, certificate in found]


def joined(parts: list[Step], of_features: bool = False) -> Step:
    """Return one step for the classes' steps at the same grid point; ratios count what the models screen."""
    summed = [column.name for column in steps.TABLE if column.summed]
    sums = {name: sum(part.cells[name] for part in parts) for name in summed}
    screened, ends = sums["screened_R"] + sums["screened_L"], sums["n_R"] + sums["n_L"]
    size = ends + sums["n_E"]
    if of_features:
        screened, size = sums["n_features_screened"], sum(np.size(part.coefficients) - 1 for part in parts)
        ends = size - sums["nnz_w"]
    whole = all(part.status == steps.CERTIFIED for part in parts)
    worst = max(parts, key=lambda part: (part.status != steps.CERTIFIED, part.rel_gap))
    # Counts (unsafe decisions) add up; of accuracies (an audit's gap) the worst counts.
    extras = {
        name: (added if name == "unsafe" or isinstance(value, int) else max)([part.extras[name] for part in parts])
        for name, value in parts[0].extras.items()
        if name not in INTERVAL  # each class has its own
    }
    cells = {
        "step": parts[0].step,
        **parts[0].parameters,
        **{name: parts[0].cells[name] for name in steps.COLUMNS},
        **sums,
        "status": steps.CERTIFIED if whole else worst.status,
        "reason": "" if whole else worst.reason,
        "rel_gap": max(part.rel_gap for part in parts),
        "rejection_ratio": screened / max(size, 1),
        "screening_rate": screened / ends if ends else 0.0,
        "solver": "/".join(dict.fromkeys(part.solver for part in parts)),
        "rounds": max(part.rounds for part in parts),
        **extras,
    }
    return Step(cells, parts[0].names, np.array([part.coefficients for part in parts]))
