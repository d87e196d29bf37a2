"""Several grid points of a box model in one compiled call: each is screened, solved and certified as by the loop.

For data so small that the calls between Python and the kernels would take longer than the kernels. The steps are made
of the kernels that the loop itself uses; what stands here is their order.
"""

import numpy as np

from screenpath.kernels import box, kernel
from screenpath.kernels.clock import seconds
from screenpath.kernels.newton import newton_box
from screenpath.kernels.newton_system import add, products

# Columns of `numbers`, see `box_stretch`.
FIELDS = (
    "w_sq", "total_sq", "inner", "xi", "ell", "error", "primal", "dual", "n_R", "n_L", "updates", "screened_R",
    "screened_L", "epochs", "touched", "screen_s", "solve_s", "certify_s",
)  # fmt: skip
UPDATES = FIELDS.index("updates")


@kernel
def _screen(C, C0, known, margins, norms, c, rounding, gap_rounding, status):
    """Decide with the ball of the reference's pair (``rules.box.pair_ball``); ``known`` are its numbers."""
    w_sq, total_sq, inner = known[0], known[1], known[2]
    radius = box.pair_radius(C, C0, w_sq, total_sq, inner, known[3], known[4], known[5], 0.0, gap_rounding)
    radius += 0.5 * box.pair_mismatch(C, C0, w_sq, total_sq, inner, 0.0, gap_rounding)
    ahead = 0.5 * (1.0 + C / C0)
    extent = ahead * np.sqrt(w_sq) + radius
    return box.box_decide_ball(margins, norms, radius, extent, c, rounding, status, ahead)


@kernel
def _solve(
    X, data, indices, indptr, sparse, c, lo, hi, signs, norms, status, C, w, theta, total, margins, tol, limit, dynamic,
    rounding, gap_rounding, new_w, new_theta, new_total, decided,
):  # fmt: skip
    """Solve for the survivors of ``status``; write the new pair and into ``decided`` what the dynamic rule has fixed.

    ``new_total`` gets the sum over rows with the screened ones at their ends and the survivors as they were.

    Returns
    -------
    index : ndarray of int64
        The survivors.
    epochs, touched, changed : int
        Of the rows touched, those whose screening changed the sum.
    """
    index, linear, changed = box.box_part(status, lo, hi, c, theta, new_theta)
    new_total[:] = total
    if changed > 0:
        for i in range(c.size):
            if status[i] != 0 and new_theta[i] != theta[i]:
                add(X, data, indices, indptr, sparse, i, signs[i] * (new_theta[i] - theta[i]), new_total)
    v = C * new_total
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
    return index, epochs, changed + work, changed


@kernel
def _renew(X, data, indices, indptr, sparse, signs, index, theta, held, changed, updates, fresh_every, total):
    """Bring ``total`` from the survivors' ``held`` to ``theta``, or form it from all rows where those are fewer.

    Returns
    -------
    updates, touched : int
    """
    moved, nonzero = 0, 0
    for i in range(theta.size):
        nonzero += theta[i] != 0.0
    for r in range(index.size):
        moved += theta[index[r]] != held[index[r]]
    if updates < fresh_every and changed + moved < nonzero:
        for r in range(index.size):
            i = index[r]
            if theta[i] != held[i]:
                add(X, data, indices, indptr, sparse, i, signs[i] * (theta[i] - held[i]), total)
        return updates + (changed + moved > 0), moved
    total[:] = 0.0
    for i in range(theta.size):
        if theta[i] != 0.0:
            add(X, data, indices, indptr, sparse, i, signs[i] * theta[i], total)
    return 0, nonzero


@kernel
def box_stretch(
    X, data, indices, indptr, sparse, c, lo, hi, signs, norms, grid, w, theta, total, margins, numbers, decided, fresh,
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
    fresh : bool
        Whether margins and numbers of the reference have to be formed; its count of updates is always there.
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
    nothing = np.zeros(n, dtype=np.int8)
    began = seconds()
    for k in range(0 if fresh else 1, grid.size):
        C, now = grid[k], numbers[k]
        updates, touched = int(numbers[max(k - 1, 0), UPDATES]), 0
        clock = seconds()
        if k > 0:
            C0, held, status, n_R, n_L = grid[k - 1], theta[k - 1], nothing, 0, 0
            if not C > C0 or clock - began > slice_s:
                return k - 1, not C > C0
            decided[:] = 0
            if static:
                n_R, n_L = _screen(C, C0, numbers[k - 1], margins[k - 1], norms, c, rounding, gap_rounding, decided)
                status = decided.copy() if n_R + n_L >= few * n else nothing
            solving = seconds()
            now[11], now[12], now[15] = n_R, n_L, solving - clock
            index, epochs, touched, changed = _solve(
                X, data, indices, indptr, sparse, c, lo, hi, signs, norms, status, C, w[k - 1], held, total[k - 1],
                margins[k - 1], aim, limit, dynamic, rounding, gap_rounding, w[k], theta[k], total[k], decided,
            )  # fmt: skip
            clock = seconds()
            now[13], now[16] = epochs, clock - solving
            updates, work = _renew(
                X, data, indices, indptr, sparse, signs, index, theta[k], held, changed, updates, fresh_every, total[k]
            )
            touched += work
        products(X, data, indices, indptr, sparse, w[k], margins[k])
        box.signed(margins[k], signs, margins[k])
        (
            now[0], now[1], now[2], now[3], now[4], now[5], now[6], now[7], now[8], now[9],
        ) = box.box_certificate(C, w[k], theta[k], total[k], margins[k], c, lo, hi, gap_rounding)  # fmt: skip
        now[UPDATES], now[14], now[17] = updates, touched + n, seconds() - clock
        if k > 0 and not now[6] - now[7] <= tol * now[6]:
            return k - 1, True
    return grid.size - 1, False


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    one, X = np.ones(2), np.eye(2)
    pairs, rows = np.full((2, 2), 0.1), np.zeros((2, len(FIELDS)))
    nothing = np.empty(0), np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    box_stretch(
        X, *nothing, False, one, 0.0 * one, one, np.ones(2, dtype=np.int8), one, np.array([0.1, 0.2]), pairs.copy(),
        np.ones((2, 2)), np.ones((2, 2)), pairs.copy(), rows, np.zeros(2, dtype=np.int8), True, 1e-6, 1e-6, 9, True,
        True, 0.05, 16, 1e-12, 1e-14, 1.0,
    )  # fmt: skip
