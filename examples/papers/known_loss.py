"""What chunks in the C-form would reject if the loss at each optimum were known beforehand (Ogawa 2013).

The line search for a feasible point needs a bound on the loss at the last C of a chunk, which a path can only have by
solving that problem first. Here it is solved first, to a relative gap of 1e-10, and the bound is what its gap proves:
less than the loss, and nothing where the gap is above the loss, as on sets that are nearly separated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from screenpath.catalogue.losses import SVM
from screenpath.data.files.libsvm import read_libsvm
from screenpath.data.files.prepare import prepare
from screenpath.data.words.labels import binary_labels
from screenpath.problem.ends import CLOSED, CONSTANT
from screenpath.problem.grid import log_grid
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.screen.pathwise import Pathwise, loss_floor, primal_value
from screenpath.solve import make_solver
from screenpath.walk.loop import PathOptions, walk


class Given(Pathwise):
    """Chunks whose feasible points are found by the bounds that they are given.

    Parameters
    ----------
    rule : {"ssnsv", "essnsv"}
    chunk : int
    floors : dict of float to float
        What the loss at the optimum is at least, by C.
    """

    def __init__(self, rule: str, chunk: int, floors: dict):
        super().__init__(parse_rule(rule).static, False, rule, chunk)
        self.floors = floors

    def proven_floor(self, model, reference, C: float) -> float:
        """Return the bound that is known."""
        return self.floors[C]


class Known(NamedTuple):
    """What a rule fixes behind the known losses."""

    C: list
    rejection: list  # of all samples, a step
    mean: float  # over the steps that needed a solve
    rate: float  # the same of the samples outside the kink
    below: int  # how many of the bounds are below 0
    of: int


def rejections(file, least: float, most: float, points: int, scale: str = "none", chunk: int = 5) -> dict:
    """Return what each rule fixes over the path; references at a relative gap of 1e-8."""
    data = read_libsvm(file)
    X, _ = prepare(data.X, scale=scale)
    signs = binary_labels(data.y)
    model, grid = SVM.model(MemoryRows(X), signs), log_grid(least, most, points)

    def walked(screening, tol):
        return walk(model, grid, screening, make_solver("newton"), PathOptions(tol=tol, max_epochs=2000))

    solved = [certificate for _, certificate in walked(parse_rule("none"), 1e-10)]
    floors = {float(C): loss_floor(at, C, primal_value(at, C)) for C, at in zip(grid, solved, strict=True)}
    found = {}
    for rule in ("ssnsv", "essnsv"):
        steps = [step for step, _ in walked(Given(rule, chunk, floors), 1e-8)]
        needed = [step for step in steps if step.solver not in (CLOSED, CONSTANT)]
        means = (
            sum(getattr(step, name) for step in needed) / max(len(needed), 1)
            for name in ("rejection_ratio", "screening_rate")
        )
        below = sum(floor < 0.0 for floor in floors.values())
        found[rule] = Known(
            np.array(grid).tolist(), [step.rejection_ratio for step in steps], *means, below, len(floors)
        )
    return found
