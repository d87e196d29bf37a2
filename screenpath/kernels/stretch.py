"""Several grid points of a box model in one compiled call: each is screened, solved and certified as by the loop.

For data so small that the calls between Python and the kernels would take longer than the kernels. The steps are made
of the kernels that the loop itself uses; what stands here is their order.
"""

import numpy as np

from screenpath.kernels import box, kernel
from screenpath.kernels.clock import seconds
from screenpath.kernels.newton import newton_box
from screenpath.kernels.newton_system import products
from screenpath.kernels.rows import csr_sum, dense_sum

# Columns of `numbers`, see `box_stretch`.
FIELDS = (
    "w_sq", "total_sq", "inner", "xi", "ell", "error", "primal", "dual", "n_R", "n_L", "updates", "screened_R",
    "screened_L", "epochs", "touched", "screen_s", "solve_s", "certify_s",
)  # fmt: skip
UPDATES = FIELDS.index("updates")


@kernel
def _sum_rows(X, data, indices, indptr, sparse, edges, weights, out):
    """Write ``sum_i weights_i x_i`` to ``out``, in the blocks between ``edges``; return the rows touched."""
    part, touched = np.empty(out.size), 0
    out[:] = 0.0
    for b in range(edges.size - 1):
        part[:] = 0.0
        if sparse:
            touched += csr_sum(data, indices, indptr, weights, part, edges[b], edges[b + 1])
        else:
            touched += dense_sum(X, weights, part, edges[b], edges[b + 1])
        out += part
    return touched


@kernel
def _screen(C, C0, known, margins, norms, c, rounding, gap_rounding, status):
    """Decide with the ball of the reference's pair (``rules.box.pair_ball``); ``known`` are its numbers."""
    w_sq, total_sq, inner = known[0], known[1], known[2]
    radius = box.pair_radius(C, C0, w_sq, total_sq, inner, known[3], known[4], known[5], 0.0, gap_rounding)
    radius += 0.5 * box.pair_mismatch(C, C0, w_sq, total_sq, inner, 0.0, gap_rounding)
    ahead = 0.5 * (1.0 + C / C0)
    extent = np.sqrt(ahead * ahead * w_sq) + radius
    return box.box_decide_ball(ahead * margins, norms, radius, extent, c, rounding, status)


@kernel
def _solve(
    X, data, indices, indptr, sparse, edges, c, lo, hi, signs, norms, status, C, w, theta, total, margins, tol, limit,
    dynamic, rounding, gap_rounding, new_w, new_theta, step, decided,
):  # fmt: skip
    """Solve for the survivors of ``status``; write the new pair and into ``decided`` what the dynamic rule has fixed.

    Returns
    -------
    epochs, touched : int
    """
    index, linear, changed = box.box_part(status, lo, hi, c, theta, new_theta)
    v, touched = total.copy(), 0
    if changed > 0:
        box.box_moves(status, new_theta, theta, signs, step)
        moved = np.empty(v.size)
        touched = _sum_rows(X, data, indices, indptr, sparse, edges, step, moved)
        v += moved
    v *= C
    new_w[:] = w
    if index.size == c.size:
        kinks, low, high, sizes, start, products_w, row_signs = c, C * lo, C * hi, norms, theta, margins, signs
    else:
        part = box.box_survivors(index, C, c, lo, hi, norms, theta, margins)
        kinks, low, high = part[0], part[1], part[2]
        sizes, start, products_w, row_signs = part[3], part[4], part[5], signs[index]
    alpha = C * start
    epochs, work, alive, _, _ = newton_box(
        X, data, indices, indptr, sparse, index, row_signs, kinks, low, high, sizes, C * linear, alpha, v, new_w,
        products_w, tol, limit, dynamic, rounding, gap_rounding,
    )  # fmt: skip
    box.box_lift(new_theta, index, alpha, C, lo, hi)
    position = 0
    for r in range(index.size):
        i = index[r]
        if position < alive.size and alive[position] == r:
            position += 1
        else:  # it is at the nearer end, up to the rounding of a division by C
            decided[i] = -1 if new_theta[i] - lo[i] <= hi[i] - new_theta[i] else 1
    return epochs, touched + work


@kernel
def _renew(X, data, indices, indptr, sparse, edges, signs, theta, held, total, updates, fresh_every, step, new_total):
    """Write ``G'theta`` to ``new_total`` as ``BoxModel.updated_sum`` finds it: from that of ``held``, or from all rows.

    Returns
    -------
    updates, touched : int
    """
    changed, nonzero = box.difference(theta, held, signs, step)
    if updates >= fresh_every or changed >= nonzero:
        box.signed(theta, signs, step)
        return 0, _sum_rows(X, data, indices, indptr, sparse, edges, step, new_total)
    touched = _sum_rows(X, data, indices, indptr, sparse, edges, step, new_total)
    new_total += total
    return updates + (changed > 0), touched


@kernel
def box_stretch(
    X, data, indices, indptr, sparse, edges, c, lo, hi, signs, norms, grid, w, theta, total, margins, numbers, decided,
    tol, aim, limit, static, dynamic, few, fresh_every, rounding, gap_rounding, slice_s,
):  # fmt: skip
    """Walk several grid points; each is certified on all rows before the next one takes it for its reference.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Dense rows; empty for sparse rows.
    data, indices, indptr : ndarray
        CSR rows; empty for dense rows.
    sparse : bool
    edges : ndarray of int64
        Of the blocks in which sums over rows are formed, as ``rows.memory`` forms them.
    c, lo, hi, norms : ndarray of shape (n,)
    signs : ndarray of int8 of shape (n,)
    grid : ndarray of shape (k + 1,)
        The reference's parameter, then those of the points.
    w, total : ndarray of shape (k + 1, d)
    theta, margins : ndarray of shape (k + 1, n)
        A row for the reference and one for each point, which is written.
    numbers : ndarray of shape (k + 1, len(FIELDS))
        Likewise.
    decided : ndarray of int8 of shape (n,)
        Written: what the static and the dynamic rule have fixed at the last point that was begun.
    tol, aim : float
        Relative gap on all rows, and that of the reduced problem.
    limit : int
        Newton iterations of a point.
    static, dynamic : bool
        Screen from the reference; screen with the gap ball while solving.
    few : float
        A smaller share of rows is not screened, see ``models.box.FEW``.
    fresh_every : int
        Updates of the sum over rows after which it is formed anew.
    rounding, gap_rounding : float
    slice_s : float
        Seconds after which no further point is begun.

    Returns
    -------
    count : int
        Points that are done.
    refused : bool
        Whether the point behind them did not reach its gap at once, or is not above its reference.
    """
    n = c.size
    step, nothing = np.empty(n), np.zeros(n, dtype=np.int8)
    began = seconds()
    for k in range(1, grid.size):
        C, C0, now, clock = grid[k], grid[k - 1], numbers[k], seconds()
        if not C > C0 or clock - began > slice_s:
            return k - 1, not C > C0
        n_R, n_L, status = 0, 0, nothing
        decided[:] = 0
        if static:
            n_R, n_L = _screen(C, C0, numbers[k - 1], margins[k - 1], norms, c, rounding, gap_rounding, decided)
            status = decided.copy() if n_R + n_L >= few * n else nothing
        solving = seconds()
        epochs, touched = _solve(
            X, data, indices, indptr, sparse, edges, c, lo, hi, signs, norms, status, C, w[k - 1], theta[k - 1],
            total[k - 1], margins[k - 1], aim, limit, dynamic, rounding, gap_rounding, w[k], theta[k], step, decided,
        )  # fmt: skip
        certifying = seconds()
        updates, work = _renew(
            X, data, indices, indptr, sparse, edges, signs, theta[k], theta[k - 1], total[k - 1],
            int(numbers[k - 1, UPDATES]), fresh_every, step, total[k],
        )  # fmt: skip
        products(X, data, indices, indptr, sparse, w[k], margins[k])
        box.signed(margins[k], signs, margins[k])
        (
            now[0], now[1], now[2], now[3], now[4], now[5], now[6], now[7], now[8], now[9],
        ) = box.box_certificate(C, w[k], theta[k], total[k], margins[k], c, lo, hi, gap_rounding)  # fmt: skip
        now[UPDATES], now[11], now[12], now[13], now[14] = updates, n_R, n_L, epochs, touched + work + n
        now[15], now[16], now[17] = solving - clock, certifying - solving, seconds() - certifying
        if not now[6] - now[7] <= tol * now[6]:
            return k - 1, True
    return grid.size - 1, False


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    one, X = np.ones(2), np.eye(2)
    pairs, rows = np.full((2, 2), 0.1), np.zeros((2, len(FIELDS)))
    nothing = np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    box_stretch(
        X, *nothing, False, np.array([0, 2]), one, 0.0 * one, one, np.ones(2, dtype=np.int8), one, np.array([0.1, 0.2]),
        pairs.copy(), np.ones((2, 2)), np.ones((2, 2)), pairs.copy(), rows, np.zeros(2, dtype=np.int8), 1e-6, 1e-6, 9,
        True, True, 0.05, 16, 1e-12, 1e-14, 1.0,
    )  # fmt: skip
