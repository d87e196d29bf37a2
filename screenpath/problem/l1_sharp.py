"""An L1-SVM's certificate with slacks and products recomputed without rounding, and its own dual point.

The bias of the dual point need not be the primal's: the root of ``y.r`` is found again from the better slacks, to the
last place of ``r``. Terms are those of ``problem/l1_rounding.py``, entry by entry.
"""

from __future__ import annotations

from dataclasses import replace
from math import fsum, inf, isfinite

import numpy as np

from screenpath.kernels.problem import l1svm as kernels
from screenpath.numbers import accurate
from screenpath.numbers.rounding import OUTWARD, TINY, UNIT


def sharpened(model, c):
    """Return the certificate of the same weights and bias with a narrower bound on rounding."""
    lam, signs = c.lam, model.signs
    support = np.flatnonzero(c.w)
    slack, off = slacks(model, c, support)
    moved = slack.copy()
    kernels.bias_root(moved, signs, 0.0)
    r = np.maximum(moved, 0.0)
    total, squares = fsum(r * model.ones), fsum(r * r)
    balance, error = accurate.inner(signs, r)
    taken = min(2.0 * ((abs(balance) + error) / total + model.rounding.inexact) * OUTWARD, 1.0) if total > 0.0 else 0.0
    best = total / squares if squares > 0.0 else 0.0
    products, unsure = _products(model, lam, r, balance, taken * np.sqrt(squares) * OUTWARD, support, best)
    largest = float(np.max(np.abs(products) + unsure, initial=0.0)) * OUTWARD
    scale = kernels.dual_scale(lam, total, squares, largest)

    # 1/2 s_+^2 - s a + a^2 / 2 has slope s_+ - a in s and a - s in a; the second derivatives are at most 1 in size.
    point = scale * r
    lag, shift = np.maximum(slack, 0.0) - point, (taken + 4.0 * UNIT) * point
    terms = 0.5 * lag * lag + np.maximum(-slack, 0.0) * point
    adds = np.abs(lag) * off + np.abs(point - slack) * shift + 0.5 * (off + shift) ** 2 + 8.0 * UNIT * terms
    sizes, pulls = np.abs(c.w[support]), scale * c.w[support] * products[support]
    kinks = lam * sizes - pulls
    kink_adds = scale * sizes * unsure[support] + 4.0 * UNIT * (lam * sizes + np.abs(pulls))
    floor = 16.0 * TINY * model.rounding.terms * (1.0 + (1.0 + scale) * fsum(sizes))

    outside = np.maximum(slack, 0.0)
    primal = 0.5 * fsum(outside * outside) + lam * fsum(sizes)
    primal_error = OUTWARD * (fsum(outside * off + 0.5 * off * off) + 8.0 * UNIT * primal + floor)
    core = max(fsum(terms) + fsum(kinks), 0.0)
    rounding = OUTWARD * (fsum(adds) + fsum(kink_adds) + 8.0 * UNIT * core + floor)
    gap = OUTWARD * (core + rounding)
    # What the plain certificate would be without rounding: that r consists of doubles may cost more than its sums do.
    rounding = max(rounding, gap - (c.gap - c.rounding))
    if not isfinite(gap):
        gap, rounding = inf, 0.0
    return replace(c, primal=primal, primal_error=primal_error, gap=gap, rounding=rounding)


def slacks(model, c, support) -> tuple[np.ndarray, np.ndarray]:
    """Return the slack of every sample, rounded once, and bounds on its errors."""
    columns = np.zeros((support.size, model.samples))
    for k, j in enumerate(support):
        values, places = model.column(j)
        columns[k, places] = values
    model.rows.touched += support.size
    _, astray, unsure = model.bias_of(c.w, c.offset)  # of the bias that is reported
    rows = np.column_stack([columns.T, model.signs, model.signs])
    weights = -np.append(c.w[support], [c.offset, -astray])
    found = [accurate.inner(row, weights, one) for row, one in zip(rows, model.ones.tolist(), strict=True)]
    slack, off = (np.array(side) for side in zip(*found, strict=True))
    if model.rounding.inexact:
        off += 2.0 * model.rounding.inexact * (np.abs(rows) @ np.abs(weights) + model.ones)
    off += model.ones * (float(model.doubts[support] @ np.abs(c.w[support])) + unsure) * OUTWARD
    if model.rounding.data:
        off += 2.0 * model.rounding.data * (np.abs(columns.T) @ np.abs(c.w[support]))
    return slack, off


def _products(model, lam: float, r, balance: float, apart: float, support, best: float):
    """Return ``f_j . r'`` and error bounds; columns that matter are computed without rounding.

    ``balance`` is ``z.r`` and ``apart`` a bound on ``||r' - r||``; ``best`` is the scale of ``r`` if no product
    reaches ``lam``.
    """
    norm = float(np.linalg.norm(r)) * OUTWARD
    products = model.products(r)
    unsure = (model.rounding.column * norm + apart) * model.blurs
    # Where the spread says more than the product does, the latter is taken for 0.
    spread = model.spreads * norm
    wide = np.abs(products) + unsure > spread
    products[wide], unsure[wide] = 0.0, spread[wide]
    sizes = np.abs(products)
    matters = sizes + unsure > max(float(np.max(sizes - unsure, initial=0.0)), lam / best if best else inf)
    matters[support] = True
    for j in np.flatnonzero(matters):
        values, places = model.column(j)
        signs = model.signs[places]
        center = float(signs @ values) / model.total
        value, error = accurate.inner(np.append(values, center), np.append(r[places], -balance))
        rest = max(model.total - float(signs @ signs), 0.0)
        length = float(np.linalg.norm(values - center * signs)) + abs(center) * np.sqrt(rest)
        products[j] = value
        unsure[j] = error + 2.0 * UNIT * abs(center * balance) + length * apart * (1.0 + model.rounding.column)
        if model.rounding.inexact:
            unsure[j] += 3.0 * model.rounding.inexact * model.norms[j] * (norm + apart)
        rounded = model.doubts[j] * model.rounding.root + model.rounding.data * model.norms[j]
        unsure[j] += rounded * (norm + apart) * OUTWARD
    model.rows.touched += int(np.count_nonzero(matters))
    return products, unsure
