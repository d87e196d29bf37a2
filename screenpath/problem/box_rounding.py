"""Bounds on the rounding errors of a box model's numbers, from the sizes of the data, made once per model.

The certificate's kernel (``kernels.problem.box``) multiplies them by the sizes of a pair. A product of ``d`` terms is
off by at most ``gamma(d)`` of their magnitudes, in any order of addition; so is a sum over rows. As many operations
again, and a few, cover the scaling of the stored values.
"""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np

from screenpath.errors import DataError
from screenpath.kernels.problem import box as kernels
from screenpath.kernels.problem import partition
from screenpath.numbers.rounding import OUTWARD, TINY, gammas
from screenpath.rows.memory import sum_blocks


def bounds(model) -> np.ndarray:
    """Return the bounds in the order of ``kernels.problem.box``; a DataError if norms or the losses at 0 overflow."""
    n, d, largest = model.size, model.rows.d, np.maximum(np.abs(model.lo), np.abs(model.hi))
    widths, ones = model.hi - model.lo, float(largest.sum())
    blocks = sum_blocks(model.rows.n, model.rows.size, d)
    deep, wide = -(-model.rows.n // len(blocks)) + len(blocks) + 8, partition.ROWS + n // partition.ROWS + 16
    product, whole, rows, features, fresh = gammas(2 * d + 8, n + d + 8, wide, d + 8, deep)
    hidden, inflated = sqrt(d) * 2.0**-537, 1.0 + whole
    # Not by a threaded library, whose other threads go on spinning for longer than a whole path takes.
    norms, kinks = (float(np.einsum("i,i", largest, sizes)) for sizes in (model.norms, np.abs(model.c)))
    norms = norms * inflated + hidden * ones
    reach = float((widths * model.norms).max(initial=0.0)) * inflated + hidden * float(widths.max(initial=0.0))
    with np.errstate(over="ignore"):
        zero = float(np.maximum(model.lo * model.c, model.hi * model.c).sum())
    if not isfinite(zero):
        raise DataError(
            "overflow: the losses at w = 0 add up to more than floating point can hold",
            "divide the targets, or the weights, by a power of ten",
        )
    if not isfinite(norms):
        row = int(np.flatnonzero(~np.isfinite(model.norms))[0]) % model.rows.n if n else 0
        raise DataError(
            f"overflow: the squared norm of row {row + 1} exceeds the range of floating point",
            "scale the data (`scale=maxabs`), or divide its values by a power of ten",
        )
    found = np.zeros(kernels.TINY + 1)
    found[kernels.PRODUCT] = product
    found[kernels.ROW_SUM], found[kernels.FEATURE_SUM] = rows, features
    found[kernels.ALL_NORMS], found[kernels.ALL_KINKS] = norms, kinks * inflated
    found[kernels.ALL_ONES], found[kernels.LARGEST] = ones * inflated, reach
    found[kernels.FRESH] = fresh + product
    found[kernels.UPDATE] = len(blocks) + 8
    found[kernels.HIDDEN], found[kernels.TINY] = hidden, (d + 1) * TINY
    found[kernels.ZERO] = zero
    found[kernels.KINK] = (np.abs(model.tail) * (largest > 0.0)).max(initial=0.0)
    found[kernels.SLOPE] = model.inexact
    return found


def check_sum(model, theta: np.ndarray, total: np.ndarray, sum_error: float) -> None:
    """Check that a stored sum over rows is that of a dual point; one data pass, only for a resumed path.

    All later sums are updates of it: a wrong one would invalidate all proofs.

    A ValueError is raised if it is off by more than the error bounds of both sums allow.
    """
    touched = model.rows.touched
    fresh, _, error = model.updated_sum(theta, None)
    model.rows.touched = touched
    with np.errstate(over="ignore"):
        near = np.linalg.norm(total - fresh) <= OUTWARD * (sum_error + error)
    if not near:
        raise ValueError("total is not the sum over rows of theta")


def largest_sum_error(model, updates: int) -> float:
    """Return the largest error of a sum after so many updates; a ValueError for more than there can be."""
    if updates > model.fresh_unread:
        raise ValueError(f"updates is {updates}")
    return kernels.largest_sum_error(float(model.size), updates, model.bounds)
