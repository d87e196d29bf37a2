"""What a model's command adds to the shared machinery: targets, model, grid, score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from screenpath.errors import DataError, UsageError

GRID, CMIN, CMAX = 100, 1e-2, 10.0  # the papers' grid
# Options that decide a grid of C and how one rule serves it.
C_GRID = ("grid", "cmin", "cmax", "c_list", "eps_path", "c", "reference", "chunk", "chunk_form")


def box_rule(text: str, chunk: int | None = None, form: str = "C"):
    """Return the screening of a box model."""
    from screenpath.rules import parse_rule

    return parse_rule(text, chunk, form)


def chunked(spec: ModelSpec, options: dict) -> ModelSpec:
    """Return the model with the rule that ``--chunk`` asks for."""
    if options["chunk"] is None and options["chunk_form"] is not None:
        raise UsageError("--chunk-form needs chunks", "add --chunk M")
    return replace(spec, rule=partial(box_rule, chunk=options["chunk"], form=options["chunk_form"] or "C"))


def box_solver(name: str, seed: int):
    """Return the solver of a box model."""
    from screenpath.solvers import make_solver

    return make_solver(name, seed)


def box_contradicted(model, accurate, parameter, decided) -> int:
    """Return how many decisions the ball around an unscreened solution disproves."""
    from screenpath.audit import contradicted

    return contradicted(model, accurate, parameter, decided)


def step_weights(step, labels):
    """Return the weights of a step whose model has one weight a feature."""
    return step.coefficients


@dataclass(frozen=True)
class ModelSpec:
    """A model as the command line sees it.

    Parameters
    ----------
    name : str
        Name of the command; part of the default run folder.
    objective : str
        For run.json.
    targets : callable
        ``targets(y, options, known=None) -> (targets, label_map)``; with ``known``, the map of the training data, the
        targets of other data. ``label_map`` is None where there are no labels.
    build : callable
        ``build(rows, targets, weights, options) -> model``; ``weights`` is one a row, or None.
    grid : callable
        ``grid(model, options) -> sequence`` of parameters in the order of the walk.
    score : tuple (str, callable)
        Column of the step table for ``--test`` and ``score(products, targets) -> float``, where ``products`` are the
        linear forms of the test rows.
    own_options : tuple of str
        Options besides the shared ones that change the numbers; ``--resume`` compares them.
    rule, solver : callable
        ``rule(text) -> screening`` and ``solver(name, seed) -> solver``.
    contradicted : callable
        For ``--audit``: ``contradicted(model, accurate, parameter, decided) -> int``, decisions that are disproved.
    toy_grid : tuple
        Parameters in the order of the walk that give a toy problem something to do.
    free_bias : bool
        Whether the model has a bias of its own, the last of its coefficients.
    columns : tuple of str
        Columns that the model adds to the step table.
    weights : callable
        ``weights(step, labels) -> ndarray of shape (d,)``, or (classes, d) where ``labels`` names ``classes``.
    walk : callable, optional
        ``walk(options) -> function`` to take the place of ``path.walk``.
    rows : callable, optional
        ``rows(X, targets, options, tell) -> rows`` of a kernel model, whose coefficients belong to samples. ``--bias``
        and ``--dtype`` then are the kernel's, not the data's.
    kernel_modules : tuple of str
        Modules of numerical code that a kernel model needs; its toy path would have a toy kernel matrix.
    spreads : bool
        Whether a cluster is given parts of its grid, and not passes over shards.
    streams : bool
        Whether the rows of a shard folder can stay on disk; else they are read into memory.
    """

    name: str
    objective: str
    targets: Callable
    build: Callable
    grid: Callable
    score: tuple
    own_options: tuple = ()
    rule: Callable = box_rule
    solver: Callable = box_solver
    contradicted: Callable = box_contradicted
    toy_grid: tuple = (0.01, 0.3, 10.0)
    free_bias: bool = False
    columns: tuple = ()
    weights: Callable = step_weights
    walk: Callable | None = None
    rows: Callable | None = None
    kernel_modules: tuple = ()
    streams: bool = True
    spreads: bool = False


def c_grid(model, options):
    """Return the grid of C from ``--grid``, ``--cmin``, ``--cmax``, ``--c-list``, ``--eps-path`` or ``--c``."""
    from screenpath.grid import EpsilonGrid, explicit_grid, log_grid

    count, low, high, given = (options[name] for name in ("grid", "cmin", "cmax", "c_list"))
    epsilon, single, reference = (options[name] for name in ("eps_path", "c", "reference"))
    if reference is not None and single is None:
        raise UsageError("--reference needs the parameter that is screened from it", "add --c VALUE")
    if single is not None:
        if any(value is not None for value in (count, low, high, given, epsilon)):
            raise UsageError("--c is a single problem", "leave out --grid, --cmin, --cmax, --c-list and --eps-path")
        return explicit_grid([single]) if reference is None else [reference, single]
    if epsilon is not None:
        if count is not None or given is not None:
            raise UsageError("--eps-path finds its own grid points", "leave out --grid and --c-list")
        if options["tol"] >= epsilon:
            raise UsageError(
                f"--tol {options['tol']:g} must be below --eps-path {epsilon:g}", f"use --tol {epsilon / 10:g}"
            )
        return EpsilonGrid(CMIN if low is None else low, CMAX if high is None else high, epsilon)
    if given is not None:
        if any(value is not None for value in (count, low, high)):
            raise UsageError("--c-list is the whole grid", "leave out --grid, --cmin and --cmax")
        return explicit_grid(given)
    return log_grid(CMIN if low is None else low, CMAX if high is None else high, GRID if count is None else count)


def sign_targets(y, options, known=None):
    """Return labels as -1 and +1 and the map back: two labels, or ``--positive`` against the rest.

    Raises
    ------
    DataError
        If ``--positive`` is not among the labels, or test data has a label that the training data lacks.
    """
    import numpy as np

    from screenpath.read.labels import binary_labels

    positive = options.get("positive")
    if positive is not None:
        if known is None and not np.any(y == positive):
            labels = ", ".join(f"{v:g}" for v in np.unique(y)[:20])
            raise DataError(f"--positive {positive:g} is not among the labels of the data ({labels})")
        if known is None and np.all(y == positive):
            raise DataError(f"all labels are {positive:g}; two different ones are needed")
        return np.where(y == positive, 1.0, -1.0), {"+1": positive, "-1": "rest"}
    if known is None:
        signs, mapping = binary_labels(y, source=options.get("data", ""))
        return signs, _label_map(y, signs)
    strange = y[(y != known["+1"]) & (y != known["-1"])]
    if strange.size:
        raise DataError(
            f"the test data has the label {strange[0]:g}; the training data has {known['-1']:g} and {known['+1']:g}"
        )
    return np.where(y == known["+1"], 1.0, -1.0), known


def class_targets(y, options, known=None):
    """Return signs and their map for two labels or ``--positive``, else class numbers and the list of labels.

    Raises
    ------
    DataError
        If test data has a label that the training data lacks.
    """
    import numpy as np

    if known is not None and "classes" not in known:
        return sign_targets(y, options, known)
    classes = np.unique(y) if known is None else np.array(known["classes"])
    if known is None and (classes.size <= 2 or options.get("positive") is not None):
        return sign_targets(y, options)
    codes = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    strange = y[classes[codes] != y]
    if strange.size:
        raise DataError(f"the test data has the label {strange[0]:g}, which the training data lacks")
    return codes, {"classes": [float(label) for label in classes]}


def _label_map(y, signs):
    return {"+1": float(y[signs > 0][0]), "-1": float(y[signs < 0][0])}


def accuracy(products, targets) -> float:
    """Return the share of rows decided as labelled."""
    from screenpath import scores

    return scores.accuracy(products, targets)


def real_targets(y, options, known=None):
    """Return the targets of a regression as they are; there is no label map."""
    return y, None


def absolute_error(products, targets) -> float:
    """Return the mean absolute error."""
    from screenpath import scores

    return scores.mae(products, targets)
