"""Binary models of several classes on one grid: a joint model whose walk is one loop per binary model.

Each class against the rest, or each class against each other one: these differ in their table of rows and signs, and in
how the forms decide (``catalogue.scores.votes``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import combinations, islice

import numpy as np

from screenpath.problem import INTERVAL
from screenpath.problem.base import Resumable
from screenpath.problem.l1svm import L1SVM
from screenpath.walk import step as steps
from screenpath.walk.loop import added, walk
from screenpath.walk.step import Step

TURN = 10  # grid points, behind a kernel


class OneVsRest(Resumable):
    """Models ``binary(rows, signs, *more)`` of every class against the rest, on the same rows; kernel values are those
    of all.

    The sum over the classes ``k`` of the objectives of ``binary``, with ``y_ik = +1`` where sample ``i`` is of class
    ``k`` and -1 elsewhere. The largest ``x.w_k`` decides. A sample's weight ``s_i`` is the same in all. ``codes``,
    shape (n,), are class numbers from 0.
    """

    turn = 1  # grid points that a binary model is walked over before the next one has its turn

    def __init__(self, binary: Callable, rows, codes, *more):
        self.rows, self.parts = rows, []
        for k in range(int(codes.max()) + 1):
            signs = np.where(codes == k, 1.0, -1.0)
            self.parts.append(binary(rows.signed(signs) if hasattr(rows, "blocks") else rows, signs, *more))
        first, *others = self.parts
        self.of_features = isinstance(first, L1SVM)  # whether the models screen features, not samples
        for model in others if not self.of_features else ():  # they differ in their signs alone
            model.c, model.lo, model.hi = first.c, first.lo, first.hi

    def begin(self, part, tol: float) -> None:
        """Tell a binary model that its turn begins, for gaps of ``tol``. Behind a kernel it takes over the square of
        the rows in use: there is memory for one, in which a model that has sharpened its own has overwritten the last.
        """
        if hasattr(self.rows, "blocks"):
            part.rows.square = self.rows.square

    def forget(self, part) -> None:
        """Drop what a binary model keeps between its steps: a copy of all rows for each would be many times the data.
        """
        if not self.of_features:
            part.forget()
        if hasattr(self.rows, "blocks"):
            self.rows.square = part.rows.square

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


class OneVsOne(OneVsRest):
    """Models of each class against each other one, ``+1`` for the one with the smaller number, on the rows of both.

    Of equally many votes the class with the smaller number wins: LIBSVM numbers labels in the order in which they
    appear (Chang and Lin 2011, section 7). ``weights``, shape (n,), are those of all rows, or None.
    """

    def __init__(self, binary: Callable, rows, codes, weights, *more):
        members = [np.flatnonzero(codes == k) for k in range(int(codes.max()) + 1)]
        self.rows, self.of_features, self.parts, self.places = rows, False, [], []
        for both in combinations(members, 2):
            place, signs = np.concatenate(both), np.repeat([1.0, -1.0], [one.size for one in both])
            own = None if weights is None else weights[place]
            self.places.append(place)  # the rows of a pair, those of its first class before the others
            self.parts.append(binary(rows.part(place, signs), signs, own, *more))
        if hasattr(rows, "blocks"):  # what is known of a kernel's values is forgotten when another pair has its turn
            self.turn = TURN

    def begin(self, part, tol: float) -> None:
        if hasattr(part.rows, "begin"):
            part.rows.begin(tol)

    def forget(self, part) -> None:
        part.forget()
        if hasattr(part.rows, "blocks"):
            part.rows.forget()


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
    shares = [part.rows.n / model.rows.n for part in model.parts]
    while True:
        found = []
        for one, steps_of_one in zip(model.parts, walks, strict=True):
            model.begin(one, options.tol)
            found.append(list(islice(steps_of_one, model.turn)))
            model.forget(one)
        for several in zip(*found):  # noqa: B905  # the deadline ends the first walk that meets it, and so all
            yield joined([step for step, _ in several], model.of_features, shares), [pair for _, pair in several]
        if min(map(len, found)) < model.turn:
            return


def joined(parts: list[Step], of_features: bool = False, shares: Sequence[float] | None = None) -> Step:
    """Return one step for the classes' steps; ratios count what models screen, of the ``shares`` of rows each has."""
    summed = [column.name for column in steps.TABLE if column.summed]
    sums = {name: sum(part.cells[name] for part in parts) for name in summed}
    if shares is not None:
        sums["passes"] = sum(share * part.passes for part, share in zip(parts, shares, strict=True))
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
        "step": parts[0].step, **parts[0].parameters, **{name: parts[0].cells[name] for name in steps.COLUMNS}, **sums,
        "status": steps.CERTIFIED if whole else worst.status, "reason": "" if whole else worst.reason,
        "rel_gap": max(part.rel_gap for part in parts), "rejection_ratio": screened / max(size, 1),
        "screening_rate": screened / ends if ends else 0.0,
        "solver": "/".join(dict.fromkeys(part.solver for part in parts)), "rounds": max(part.rounds for part in parts),
        **extras,
    }  # fmt: skip
    return Step(cells, parts[0].names, np.array([part.coefficients for part in parts]))
