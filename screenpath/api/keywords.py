"""Keywords of the Python functions: those that the box losses share, for type checkers, and how all are checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, TypeAlias, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from screenpath.catalogue.specs import SPECS
from screenpath.problem.grid import EpsilonGrid

F = TypeVar("F", bound=Callable)
Values: TypeAlias = Sequence[float] | np.ndarray
Grid: TypeAlias = int | Values | EpsilonGrid
ClassWeight: TypeAlias = Mapping[Any, float] | str | None


class LossKeywords(TypedDict, total=False):
    """Keywords of :func:`screenpath.api.losses.loss_path` for any loss."""

    sample_weight: ArrayLike | None
    grid: Grid
    cmin: float
    cmax: float
    rule: str
    chunk: int | None
    chunk_form: str
    solver: str
    tol: float
    intercept: str | None
    bias: float
    scale: str
    storage: str
    dtype: DTypeLike
    threads: int
    seed: int
    max_epochs: int
    time_limit: float | None


class ClassifierKeywords(LossKeywords, total=False):
    """Those of a classifier."""

    class_weight: ClassWeight


# What takes more as a keyword than as an option (lists, types, mappings, all digits of a number) is checked elsewhere.
WIDER = {"grid", "betas", "alphas", "class_weight", "penalty_weights", "dtype", "gamma"}


def checked_by(model: str) -> Callable[[F], F]:
    """Check the keywords of a function as the options of a model with the same names; see :meth:`Option.checked`.

    None is refused where a keyword has another default, also where it stands for the default of the option.
    """
    options = {one.name: one for one in SPECS[model].path_options if one.name not in WIDER}

    def decorate(function: F) -> F:
        defaults = {p.name: p.default for p in inspect.signature(function).parameters.values()}
        own = {name: replace(one, default=defaults[name]) for name, one in options.items() if name in defaults}

        @wraps(function)
        def checked(*arguments, **keywords):
            given = {name: own[name].checked(value) if name in own else value for name, value in keywords.items()}
            return function(*arguments, **given)

        return cast(F, checked)

    return decorate
