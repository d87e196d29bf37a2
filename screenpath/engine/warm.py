"""Load or compile the kernels of a run before any clock starts, by walking a tiny path of the same kind."""

from __future__ import annotations

from itertools import product

import numpy as np

from screenpath.data.safe.memory import MemoryLimit, code_is_loaded
from screenpath.data.safe.plugins import Plugin
from screenpath.engine.path import Path
from screenpath.kernels.compilation import ensure_compiled
from screenpath.kernels.problem import partition
from screenpath.kernels.problem.intercept import best_of
from screenpath.kernels.walk import compiled
from screenpath.numbers import sparse as sp
from screenpath.problem.unread import MANY
from screenpath.rows.memory import MemoryRows
from screenpath.solve.auto import WIDE, WIDE_DENSE, Auto
from screenpath.walk.loop import PathOptions, solve_point

SAMPLES = 24
_warmed: set[tuple] = set()  # kinds of paths that this process has walked


def tiny_rows(rows) -> MemoryRows:
    """Return a few rows with the storage and types of the given ones, for which kernels are compiled.

    They are wide where the given rows are, so that solvers make the same choices.
    """
    points = np.random.default_rng(0).normal(size=(SAMPLES, 4))
    points[: SAMPLES // 2] += 1.5
    points[:, 3] *= 1e-3  # a feature that can be screened: solvers then copy the others
    values, indices = rows.kinds
    if indices is None:
        wide = WIDE_DENSE - 4 if Auto.sweeps_first(False, rows.n, rows.d) else 0
        return MemoryRows(np.pad(points.astype(values), ((0, 0), (0, wide))))
    X = sp.csr_array(points.astype(values))
    X.resize(SAMPLES, WIDE if rows.d >= WIDE else 4)
    X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indices)
    return MemoryRows(X)


def warm_model(spec, options: dict, rows) -> None:
    """Walk a short path on toy rows with the rule and the solver of the run; for a kernel model load its modules.

    A process does it once for each kind of path. Plug-ins never see the toy rows.
    """
    own = {"rule": spec.default_rule, "solver": "auto"}
    options = {**options, **{name: other for name, other in own.items() if isinstance(options[name], Plugin)}}
    options["signs"] = None
    options["groups"] = options.get("groups") and np.array([[0.0, 1.0]] * 3 + [[1.0, 1.0]])
    if spec.rows is not None:
        ensure_compiled(*spec.kernel_modules)
        a, index = np.ones(2), np.zeros(2, dtype=np.int64)
        partition.box_rests(a, a, a)  # all that a kernel model needs of this module
        partition.box_survivors(index, 1.0, a, a, a, a, a, a, np.empty((6, 2)), 0)
        partition.shares(2, 1, 0, 1, 0)
        code_is_loaded()
        return
    if hasattr(rows, "warm_up"):  # rows on disk pass with kernels of their own
        rows.warm_up()
    targets, tiny = np.where(np.arange(SAMPLES) < SAMPLES // 2, 1.0, -1.0), tiny_rows(rows)
    asked = [options.get(one.name) for one in spec.path_options if one.changes]
    many = rows.n >= MANY  # of which a walk may leave some unread, as no toy does
    kind = spec.name, repr(asked), tiny.sparse, tiny.d, many, *map(str, rows.kinds)
    if kind in _warmed:
        return
    model = spec.build(tiny, targets, None, options)
    solvers = [spec.solver(options["solver"], 0)]
    if isinstance(solvers[0], Auto) and solvers[0].looks_ahead(rows):
        solvers.append(last := spec.solver(options["solver"], 0))
        last.most = 1  # one step at once, so that the loop and Newton's method run too
    # Large steps and few sweeps leave survivors, so that every stage has work.
    rules = (options["rule"],) if options.get("chunk") else (options["rule"], "none")  # chunks need a rule
    for solver, rule in product(solvers, dict.fromkeys(rules)):
        toy = Path(model, spec.toy_grid, spec.rule(rule), solver, PathOptions(tol=1e-9, max_epochs=50))
        with MemoryLimit().in_force():  # a toy needs no limit
            for _, certificate in toy.walk():
                model.restore(model.state(certificate))
            if model.compiled:  # the loop has its turn where a compiled walk refuses a step
                far, near = toy.grid[-1], model.start(toy.grid[0])
                solve_point(model, far, 0, near, toy.screening, solver, toy.limits)
    free = options.get("intercept") == "free"
    if model.compiled and many:
        compiled.warm(free, lazy=True)
    if free:
        best_of(0.0, 1.0)  # the loop needs it only where more than one intercept is best
    _warmed.add(kind)
    code_is_loaded()
