"""The sparse SVM that options ask for: one of four classes of one problem, each imported only when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from screenpath.errors import UsageError

if TYPE_CHECKING:
    from screenpath.problem.sparse import SparseModel


def sparse_model(views, labels, classes: int, gamma: float, weights=None, intercept: str | None = None) -> SparseModel:
    """Return the sparse SVM at ``beta = 0``; parameters as of ``SparseModel``; a ``free`` intercept is no feature.

    An infinite ``gamma`` stands for the squared hinge.
    """
    from screenpath.problem.sparse import SparseModel as kind  # here: other models start up without them

    free = intercept == "free"
    if free and classes > 1:
        raise UsageError(
            f"`intercept=free` is for two labels, and there are {classes}",
            "use `intercept=penalised`, or one label against all others (`positive=LABEL`)",
        )
    if gamma == np.inf and free:
        from screenpath.problem.sparse_squared import FreeSquaredHingeModel as kind
    elif gamma == np.inf:
        from screenpath.problem.sparse_squared import SquaredHingeModel as kind
    elif free:
        from screenpath.problem.sparse_free import FreeSparseModel as kind
    return kind(views, labels, classes, 0.0, gamma, weights)
