"""The sparse SVM that options ask for: one of five classes of one problem, each imported only when needed."""

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

    if gamma == np.inf:
        if intercept == "free" and classes > 1:
            raise UsageError(
                "`intercept=free` with `loss=squared-hinge` is for two labels",
                "use `intercept=penalised`, or leave out `loss`",
            )
        if intercept == "free":
            from screenpath.problem.sparse_squared import FreeSquaredHingeModel as kind
        else:
            from screenpath.problem.sparse_squared import SquaredHingeModel as kind
    elif intercept == "free":
        if classes > 1:
            if gamma == 0.0:
                raise UsageError(
                    "`intercept=free` with the exact hinge (`smoothing=0`) is for two labels: the best intercepts of "
                    "several classes are then those of a linear program",
                    "use `intercept=penalised`, or a `smoothing` above 0",
                )
            from screenpath.problem.sparse_classes import FreeClassesModel as kind
        else:
            from screenpath.problem.sparse_free import FreeSparseModel as kind
    return kind(views, labels, classes, 0.0, gamma, weights)
