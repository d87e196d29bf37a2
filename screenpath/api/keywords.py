"""Keywords that the Python functions of the box losses share, for type checkers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from screenpath.models.grid import EpsilonGrid

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
