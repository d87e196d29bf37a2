"""Compact kernel models: fewer support vectors, and a proven bound on the change of every decision.

A decision is ``f(x) = <w, Phi(x)> + b``, ``w = sum_i a_i Phi(x_i)``. For any other ``w'``, by Cauchy and Schwarz,
``|f(x) - f'(x)| <= ||w - w'|| sqrt(K(x, x))``. Here ``w'`` is the projection of w on the span of few support vectors,
each the one that takes most off ``||w - w'||^2`` (orthogonal least squares: Chen, Billings and Luo 1989); they are
columns of a pivoted Cholesky factor, so that no matrix of all pairs is kept. The norm is then formed from all kernel
values in twice the precision, and its rounding is counted.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular

from screenpath.errors import UsageError
from screenpath.inputs.run_data import Compressed, Support, support_of, training_rows
from screenpath.numbers.rounding import OUTWARD, UNIT, gamma
from screenpath.rows.kernel_functions import KernelBlocks
from screenpath.store.open import Run

SPENT = 1e-12  # part of a squared norm that is left of a vector in the span of those that are chosen, but for rounding
LATER = 8  # a bound that is missed is looked at again with so many times fewer vectors more


def compact(run: Run, step: dict, most: float, training: str | tuple | None = None) -> Support:
    """Return the support vectors of a step, as few as are found whose decisions differ by at most ``most``.

    With a kernel of bounded K(x, x) that holds for every x, with others at the training rows; ``training`` as of
    :func:`screenpath.inputs.run_data.support_of`.
    """
    if not run.kernel:
        what = f"{run.path} is a run without a kernel: its model is one weight a feature, with nothing to compress"
        raise UsageError(what, "leave out `compress`")
    if run.blocks:
        several = "pair of labels" if run.voting else "label"
        raise UsageError(f"{run.path} has a model for each {several}: `compress` is for one", "leave it out")
    if not 0.0 < most < math.inf:
        raise UsageError(f"`compress={most}` is no change of decisions", "give a positive number, for example 0.001")
    dense = run.record["data"]["storage"] == "dense"
    found = support_of(run, step, training, dense)
    function = found.function
    if function.exponential:
        reach = math.sqrt(1.0 + function.constant) * OUTWARD
    else:
        reach = float(KernelBlocks(training_rows(run, training, slice(None), dense), function).sizes.max())
    chosen, coefficients, change = reduced(KernelBlocks(found.rows, function), found.coefficients, most / reach)
    told = Compressed(found.coefficients.size, change * reach * OUTWARD, not function.exponential)
    return replace(found, rows=found.rows[chosen], coefficients=coefficients, compressed=told)


def reduced(blocks: KernelBlocks, a: np.ndarray, most: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return which rows are kept, their coefficients and an upper bound of ``||w - w'||``, at most ``most``.

    All rows with their own coefficients, and 0, where no fewer are found.
    """
    m = a.size
    whole = np.concatenate([blocks.block(slice(k, k + 256)) @ a for k in range(0, m, 256)]) if m else a
    products, sizes, left = whole.copy(), blocks.diagonal.copy(), float(a @ whole)
    factor, chosen, look = np.empty((m, min(m, 64))), np.empty(0, np.int64), 0
    while True:
        some = sizes > SPENT * blocks.diagonal
        some[chosen] = False
        ended = chosen.size >= m - 1 or not some.any()
        if ended or (chosen.size >= look and left <= most * most):
            b = projected(blocks, factor[chosen, : chosen.size], chosen, whole)
            change = distance(blocks, a, chosen, b)
            if change <= most or ended:
                return (chosen, b, change) if change <= most else (np.arange(m), a, 0.0)
            look = chosen.size + 1 + chosen.size // LATER
        gain = np.where(some, np.square(products) / np.where(some, sizes, 1.0), -1.0)
        best, k = int(np.argmax(gain)), chosen.size
        if k == factor.shape[1]:
            factor = np.hstack([factor, np.empty((m, min(m - k, k)))])
        column = blocks.block(np.array([best]))[0] - factor[:, :k] @ factor[best, :k]
        factor[:, k] = column / math.sqrt(sizes[best])
        part = products[best] / math.sqrt(sizes[best])
        products -= part * factor[:, k]
        sizes -= np.square(factor[:, k])
        left, chosen = left - part * part, np.append(chosen, best)


def projected(blocks: KernelBlocks, factor: np.ndarray, chosen: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return the coefficients of the projection on chosen rows, of whose matrix ``factor`` is the lower factor."""
    values, b = blocks.block(chosen, chosen), np.zeros(chosen.size)
    for _ in range(2):
        b = b + solve_triangular(
            factor, solve_triangular(factor, whole[chosen] - values @ b, lower=True), trans="T", lower=True
        )
    return b


def distance(blocks: KernelBlocks, a: np.ndarray, chosen: np.ndarray, b: np.ndarray) -> float:
    """Return an upper bound of ``||sum_i a_i Phi(x_i) - sum_j b_j Phi(x_chosen[j])||``, rounding counted."""
    u = a.copy()
    u[chosen] -= b
    some, growth = np.flatnonzero(u), 1.0 + gamma(u.size + 8)
    if not some.size:
        return 0.0
    (sums,) = blocks.precise_sums(some, some, u[some][None])
    weights, spread = np.abs(u[some]), float(np.abs(u) @ blocks.sizes) * growth
    error = blocks.precise_error(some.size) * spread * spread
    error += gamma(some.size + 8) * float(weights @ np.abs(sums).sum(axis=0)) * growth
    square = float(u[some] @ sums[0] + u[some] @ sums[1])
    return (math.sqrt((max(square, 0.0) + error) * OUTWARD) + 2.0 * UNIT * spread) * OUTWARD
