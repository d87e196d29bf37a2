"""Which columns SIFS may read at a step, found before it runs, because those must be in memory.

Every other feature is zeroed at its first look, by numbers that are known without the column. The bounds are those of
``kernels.screen.sifs.surely_zero`` and ``decide_features``, a little wider each.
"""

from __future__ import annotations

import numpy as np

from screenpath.kernels.problem.sparse_intercept import centred, plane_sums
from screenpath.kernels.screen import sifs as kernels

LOOSE = 1e-6  # of the sizes of what is compared
CANCELLED = 1e-13  # of the terms of a sum, which may be much smaller


def could_be_read(model, ref, at, regions: kernels.Regions, what: tuple) -> np.ndarray:
    """Return a mark of the features whose columns SIFS may read, bool of shape (classes * d,).

    ``at`` has the decisions on entry; ``what`` is as in ``kernels.screen.sifs.sifs``.
    """
    samples, features, features_first = what
    kept = at.keep != 0
    if not features:
        return np.zeros(kept.size, dtype=np.bool_)
    if samples and not features_first:
        return kept
    wanted = kept & ((ref.w != 0.0) | _open(model, ref, at, regions))
    slack, second = model.rounding.slacks.columns, np.sqrt(regions.second_sq)
    if second * (1.0 + slack) + slack * regions.theta_norm <= ref.room * (1.0 + LOOSE):
        formed = np.zeros(kept.size, dtype=np.bool_)
        formed[ref.formed] = True
        wanted |= kept & formed
    # Where less goes than stays, it is subtracted from the norms of the rows: what goes is read.
    counts = np.tile(np.diff(model.views.column_ends), model.classes)
    costs = np.where(counts == model.n, 0.25 * counts, counts)
    return kept if 2.0 * (1.0 + LOOSE) * costs[wanted].sum() >= costs[kept].sum() else wanted


def _open(model, ref, at, r: kernels.Regions) -> np.ndarray:
    """Mark the features that neither dual ball zeroes by what is known without their columns."""
    size, slacks = at.keep.size, tuple(model.rounding.slacks)
    moves, extent, lost = (np.zeros(size), np.zeros(size)), r.theta_norm, slacks[3]
    if model.intercept:
        planes, nothing = np.empty(4), np.empty(0)
        plane_sums(ref.theta, model.samples, at.duals, r.ones_part, r.theta_part, planes)
        centred(at.col_part, at.col_total, False, nothing, nothing, planes, model.n, np.empty(size), *moves)
        answering, whole, first, second = planes.tolist()
        apart = 16.0 * kernels.UNIT * (model.n + 32) * whole * (abs(r.ones_part) + abs(r.theta_part) + 1.0)
        cut = kernels.in_plane(
            answering, whole, first, second, apart, r.first_sq, r.second_sq, r.between_sq, r.theta_norm, slacks
        )
        extent, lost = cut[3], cut[4][3]
    norms = model.col_norm * np.sqrt(1.0 + lost) + np.sqrt(slacks[4]) / model.n
    ones, theta = r.ones_part * model.u_ones, r.theta_part * ref.u
    first = np.abs(ones + theta + moves[0]) + abs(r.theta_part) * ref.u_slack + np.sqrt(r.first_sq) * norms
    second = np.abs(ref.u + moves[1]) + ref.u_slack + np.sqrt(r.second_sq) * norms
    unsure = CANCELLED * (np.abs(ones) + np.abs(theta) + np.abs(moves[0]) + np.abs(moves[1]))
    least = np.minimum(first, second) if r.paper else second
    limit = model.beta - slacks[1] * (1.0 + LOOSE) * (norms * extent + model.beta)
    return least + unsure + LOOSE * (least + model.beta) > limit
