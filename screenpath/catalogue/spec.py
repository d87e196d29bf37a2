"""What a model is, declared once: for the command line, the Python functions, cross-validation, compare and predict.

Nothing here imports numpy: lists of commands and their help stay quick.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module

from screenpath.catalogue.option import completed, usual
from screenpath.catalogue.options import C_GRID, PATH
from screenpath.data.safe.memory import BOX, FREE, FREE_KERNEL, FREE_MIRRORED, FREE_SPARSE, MIRRORED, SPARSE, Needs
from screenpath.data.safe.plugins import Plugin, identified
from screenpath.errors import UsageError
from screenpath.problem import INTERVAL

GRID, CMIN, CMAX, FORM = usual(C_GRID, "grid", "cmin", "cmax", "chunk_form")


@dataclass(frozen=True)
class Later:
    """A function that is imported when called, so that declarations load nothing they name."""

    module: str  # below ``screenpath``
    name: str

    def __call__(self, *arguments, **keywords):
        name = f"screenpath.{self.module}"
        module = sys.modules.get(name)  # import_module alone is slow
        if not hasattr(module, self.name):  # not imported, or about to be by another thread, which is waited for
            module = import_module(name)
        return getattr(module, self.name)(*arguments, **keywords)


box_rule = Later("screen", "parse_rule")
sign_targets, class_targets, real_targets = (
    Later("catalogue.targets", f"{what}_targets") for what in ("sign", "class", "real")
)


def chunked(spec: Spec, options: dict) -> Spec:
    """Return the model with the rule of the option ``chunk``."""
    if options["chunk"] is None and options["chunk_form"] is not None:
        raise UsageError("`chunk_form` needs chunks", "add `chunk=M` `rule=essnsv`")
    return replace(spec, rule=partial(spec.rule, chunk=options["chunk"], form=options["chunk_form"] or FORM))


def with_intercept(spec: Spec, options: dict) -> Spec:
    """Return the model with the intercept of the options, after making ``intercept`` and ``bias`` agree."""
    kind, bias = options.get("intercept"), options["bias"]
    if bias != 0.0 and kind in ("none", "free"):
        what = f"`bias` makes a penalised intercept, and `intercept={kind}` asks for another"
        raise UsageError(what, "leave one of the two out")
    if kind is None:
        kind = "penalised" if bias != 0.0 else "free"
    options["intercept"], options["bias"] = kind, bias or (1.0 if kind == "penalised" else 0.0)
    return free_intercept(spec) if kind == "free" else spec


def free_intercept(spec: Spec) -> Spec:
    """Return a model with a free intercept, which is its last coefficient."""
    formula = spec.objective
    for form in ("x_i.w", "w.Phi(x_i)"):
        formula = formula.replace(f"- {form}", f"- {form} - b").replace(f"y_i {form}", f"y_i ({form} + b)")
    own: dict = {
        "solver": Later("solve", "make_free_solver"),
        "kernel_modules": ("box", "newton", "lever", "intercept"),
        "needs": FREE_MIRRORED if spec.needs is MIRRORED else FREE,
    }
    if spec.needs.copied == SPARSE.copied:
        modules = (*spec.kernel_modules, "sparse_intercept", "sifs_free", "sparse_newton")
        own = {"kernel_modules": modules, "needs": replace(FREE_SPARSE, mirrored=spec.needs.mirrored)}
    if spec.rows is not None:
        own = {"kernel_modules": (*spec.kernel_modules, "intercept", "lever")}
        own["needs"] = replace(FREE_KERNEL, mirrored=spec.needs.mirrored)
    return replace(spec, objective=formula, free_bias=True, columns=(*spec.columns, *INTERVAL), **own)


def step_weights(step, labels):
    """Return the weights of a step whose model has one weight per feature."""
    return step.coefficients


def no_option(options: dict) -> str | None:
    return None


@dataclass(frozen=True)
class Spec:
    """Declaration of a model: everything the package knows about it."""

    name: str  # name of the command; part of the default run folder
    title: str  # name of its solutions, in the plural, for lists of models
    objective: str  # for run.json
    # ``targets(y, options, known=None) -> (targets, label_map)``; with ``known``, the map of the training data, the
    # targets of other data. ``label_map`` is None if there are no labels
    targets: Callable
    build: Callable  # ``build(rows, targets, weights, options) -> model``; ``weights``, shape (n,), or None
    grid: Callable  # ``grid(model, options)``: parameters in the order of the walk; of no model, None where it decides
    score: str  # of ``--test`` and of comparisons of models, by its name in ``scores.SCORES``
    liblinear: str  # LIBLINEAR's name for the loss and the penalty, or the nearest one
    # ``further(options, grid, count) -> ndarray``, that many values after the end of a grid, as it is spaced; None if
    # a grid has more than one end
    further: Callable | None = Later("problem.grid", "further_c")
    # default score of cross-validation, also shown by ``--test``; ``score`` by default
    chosen_by: str | None = None
    options: tuple = ()  # of its paths, in addition to those of all models (``catalogue.options.PATH``)
    # ``resolved(spec, options) -> spec``: the model with these options; refuses contradictions
    resolved: Callable = chunked
    fixed: tuple = ()  # pairs (name, value) of options that other models have and this one does not
    parameter: str = "C"  # of the grid, in words
    about: str = ""  # text of ``--help`` after the objective
    example: str = "`test=test.libsvm`"  # options of the second example on the model's help page
    rule: Callable = box_rule  # rule, solver: ``rule(text) -> screening`` and ``solver(name, seed) -> solver``
    solver: Callable = Later("solve", "make_solver")
    # for ``--audit``: ``contradicted(model, accurate, parameter, decided) -> int``, the number of wrong decisions
    contradicted: Callable = Later("walk.loop", "contradicted")
    toy_grid: tuple = (0.01, 0.3, 10.0)  # parameters, in the order of the walk, of the toy problem of a warm-up
    free_bias: bool = False  # whether the model has its own intercept, the last of its coefficients
    columns: tuple[str, ...] = ()  # columns that the model adds to the step table
    # ``weights(step, labels) -> ndarray of shape (d,)``, or (classes, d) if ``labels`` has ``classes``
    weights: Callable = step_weights
    votes: bool = False  # whether the forms are of pairs of classes, whose votes decide
    walk: Callable | None = None  # ``walk(options) -> function``, a replacement of ``walk.loop.walk``
    # ``rows(X, targets, options, tell, inexact) -> rows`` of a kernel model, whose coefficients belong to samples.
    # ``--bias`` and ``--dtype`` then are the kernel's, not the data's
    rows: Callable | None = None
    # Modules of kernels that take longest to compile: further processes do that, from the last one on. For a
    # kernel model all that it needs, because its toy path has a toy kernel matrix.
    kernel_modules: tuple[str, ...] = ()
    selects: bool = False  # whether its penalty selects features along the path
    streams: bool = True  # whether the rows of a shard folder can stay on disk
    streams_columns: bool = False  # whether the columns of a folder of shards by columns can stay on disk
    # ``in_memory(options)`` returns the option, if any, with which they cannot
    in_memory: Callable = no_option
    spreads: bool = False  # whether a cluster gets parts of its grid, not passes over shards
    copies: bool = False  # whether the model copies the rows, which are then freed
    needs: Needs = BOX  # memory of a path in addition to the rows
    # the model of more than two classes, where these lack the free intercept that is the default
    several: Spec | None = None

    @property
    def path_options(self) -> tuple:
        return (*PATH, *self.options)

    def of_classes(self, many: bool, options: dict) -> Spec:
        """Return the model for more than two classes (``many``) or two; ``options`` then have its intercept."""
        if not many or self.several is None:
            return self
        options["intercept"] = "none"
        return self.several

    def of_each_class(self, forms):
        """Return forms of which the largest decides, from those of the model."""
        from screenpath.catalogue.scores import votes

        return votes(forms) if self.votes and forms.ndim == 2 else forms

    @property
    def default_rule(self) -> str:
        return next(one.default for one in self.options if one.name == "rule")

    def completed(self, given: dict) -> dict:
        """Return the value of every option of a path, see :func:`screenpath.catalogue.options.completed`."""
        return {**completed(self.path_options, given, f"a path of {self.name}"), **dict(self.fixed)}

    def identity(self, options: dict) -> dict:
        """Return the options that change the numbers or the files, which ``resume`` compares."""
        names = [one.name for one in self.path_options if one.changes]
        found = {name: options[name] for name in dict.fromkeys((*names, "seed"))}
        return identified(found) if any(isinstance(one, Plugin) for one in found.values()) else found

    @property
    def score_columns(self) -> tuple[str, ...]:
        """Return the columns of ``--test`` scores in the step table; the first one ranks the steps."""
        return tuple(f"test_{name.replace('-', '_')}" for name in self._score_names)

    @property
    def _score_names(self) -> tuple[str, ...]:
        regression = () if self.score == "accuracy" else ("r2",)
        return tuple(dict.fromkeys((self.chosen_by or self.score, self.score, *regression)))

    def _scores(self, options) -> list:
        from screenpath.catalogue.scores import SCORES, choose_score

        return [choose_score(name, self, SCORES[name].task, tau=options.get("tau")) for name in self._score_names]

    def scores_of(self, products, targets, options, weights=None) -> dict[str, float]:
        """Return the scores of linear forms by name, that of cross-validation first; see ``catalogue.scores``.

        Of no rows, they are nan.
        """
        scores, some = self._scores(options), len(targets) > 0
        return {one.name: one.function(products, targets, weights=weights) if some else math.nan for one in scores}

    def baselines(self, trained, targets, options, weights=None) -> dict[str, float | None]:
        """Return the baselines of these scores by name; ``weights`` are those of the targets ``trained``."""
        from screenpath.catalogue.scores import baseline

        return {one.name: baseline(one, trained, targets, (weights, None)) for one in self._scores(options)}


def c_grid(model, options):
    """Return the grid of C from ``grid``, ``cmin``, ``cmax``, ``c_list``, ``eps_path`` or ``c``."""
    from screenpath.problem.grid import EpsilonGrid, explicit_grid, log_grid

    count, low, high, given = (options[name] for name in ("grid", "cmin", "cmax", "c_list"))
    epsilon, single, reference = (options[name] for name in ("eps_path", "c", "reference"))
    if reference is not None and single is None:
        raise UsageError("`reference` needs the parameter that is screened from it", "add `c=VALUE`")
    if single is not None:
        if any(value is not None for value in (count, low, high, given, epsilon)):
            raise UsageError("`c` is a single problem", "leave out `grid`, `cmin`, `cmax`, `c_list` and `eps_path`")
        if reference == single:
            raise UsageError("`reference` and `c` are the same problem", "leave out `reference`")
        return explicit_grid([single]) if reference is None else [reference, single]
    if epsilon is not None:
        if count is not None or given is not None:
            raise UsageError("`eps_path` finds its own grid points", "leave out `grid` and `c_list`")
        if options["tol"] >= epsilon:
            what = f"`tol={options['tol']:g}` must be below `eps_path={epsilon:g}`"
            raise UsageError(what, f"use `tol={epsilon / 10:g}`")
        return EpsilonGrid(CMIN if low is None else low, CMAX if high is None else high, epsilon)
    if given is not None:
        if any(value is not None for value in (count, low, high)):
            raise UsageError("`c_list` is the whole grid", "leave out `grid`, `cmin` and `cmax`")
        return explicit_grid(given)
    return log_grid(CMIN if low is None else low, CMAX if high is None else high, GRID if count is None else count)
