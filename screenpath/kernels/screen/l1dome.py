"""The dome in which the dual point of the L1-regularised squared hinge lies, and the columns that it leaves undecided.

Columns and ``y`` are as in ``l1svm``; the cache notices edits there too.
"""

import numpy as np

from screenpath.kernels import SUMS, kernel
from screenpath.kernels.problem.l1svm import inner


@kernel(fastmath=SUMS)
def dome_shape(theta, y, null_bias, unit, ratio, gap):
    """Return the dome between ``lambda_1`` and ``lambda_2 = lambda_1 / ratio`` except its products with columns.

    All of it in units of ``alpha = unit theta``, ``unit = lambda_1``: squares of ``1 / lambda`` could overflow. With
    ``u = |y| - null_bias y``, the projection of ``|y|`` on the complement of ``y``, the dome has the centre
    ``(ratio u + alpha) / 2`` and the normal ``u - alpha``. ``gap`` is the reference's.

    Returns the norm of the centre, the radius, the length of the normal, and the offset of the half-space from the
    centre times that length.
    """
    middle_sq, normal_sq, toward_sq, product = 0.0, 0.0, 0.0, 0.0
    for i in range(theta.size):  # differences first: products of u and theta would cancel where these are parallel
        one, alpha = abs(y[i]) - null_bias * y[i], unit * theta[i]
        middle = 0.5 * (ratio * one + alpha)
        toward = ratio * one - alpha
        normal = one - alpha
        middle_sq += middle * middle
        normal_sq += normal * normal
        toward_sq += toward * toward
        product += toward * normal
    radius = 0.5 * np.sqrt(toward_sq)
    offset = gap + np.sqrt(2.0 * gap) * 2.0 * radius - 0.5 * product
    return np.sqrt(middle_sq), radius, np.sqrt(normal_sq), offset


@kernel()
def dome_keep(theta, y, null_bias, products, null_products, norms, norm_unit, unit, ratio, gap, direction, rounding):
    """Return the columns whose ``|f_j.theta|`` can reach 1 in a dome: :meth:`geometry.Dome.bounds` in one traversal.

    The dome is that of :func:`dome_shape`.

    Parameters
    ----------
    products, null_products : ndarray of shape (m,)
        ``f_j.theta`` and ``f_j.u``.
    norms : ndarray of float32 of shape (2, m)
        In units of ``norm_unit``: norms in the slice of the dome, and norms of the columns, to which rounding is
        relative. Both are rounded up, since the bounds grow with them; float32 because memory limits the speed.
    direction : float
        Smallest length of the normal, relative to the vectors whose difference it is, that is more than rounding error.
        Below it the ball decides.
    rounding : float
        Slack of every comparison, relative to the magnitudes compared: at least twice the error of ``theta``.
    """
    center, radius, across_length, offset = dome_shape(theta, y, null_bias, unit, ratio, gap)
    across_null, across = 0.0, 0.0
    size = np.sqrt(inner(y, y))
    axis = 0.0  # the product of a column with the unit normal is known to within this times its norm
    if across_length > direction * size:
        across_null, across = 1.0 / across_length, -unit / across_length
        axis = rounding * (1.0 + size / across_length)
        offset = offset / across_length + 2.0 * (axis * radius + rounding * center)
        offset = min(max(offset, -radius), radius)
    else:
        offset = radius
    cap = np.sqrt(max((radius - offset) * (radius + offset), 0.0))
    goal = unit * (1.0 - rounding)
    reach = rounding * (center + radius) + axis * abs(offset)
    centred, whole = norms[0], norms[1]
    kept = np.zeros((products.size + 7) // 8 * 8, dtype=np.uint8)
    for j in range(products.size):  # without branches, so that the loop vectorises
        norm, length = norm_unit * np.float64(centred[j]), norm_unit * np.float64(whole[j])
        vc = 0.5 * (ratio * null_products[j] + unit * products[j])
        va = across_null * null_products[j] + across * products[j]
        # The root would turn a rounding error of va into its square root: for columns along the normal it is granted.
        # So is the move of the edge from which on the rim's maximiser answers.
        square = (norm - va) * (norm + va) + 2.0 * axis * norm * length
        rim = cap * np.sqrt(square if square > 0.0 else 0.0)
        ball, edge, tilt = radius * norm, offset * norm + axis * radius * length, va * radius
        upper = vc + ball if tilt <= edge else vc + offset * va + rim
        lower = ball - vc if -tilt <= edge else rim - vc - offset * va
        kept[j] = not (upper if upper > lower else lower) < goal - length * reach  # what is no number decides nothing
    index = np.empty(kept.sum(), dtype=np.int64)
    count = 0
    eights = kept.view(np.uint64)
    for k in range(eights.size):
        if eights[k] != 0:
            for j in range(8 * k, 8 * k + 8):
                if kept[j]:
                    index[count] = j
                    count += 1
    return index


def warm_up():
    theta, y, norms, coarse = np.ones(3), np.array([1.0, -1.0, 1.0]), np.ones(2), np.ones((2, 2), dtype=np.float32)
    dome_shape(theta, y, 0.1, 1.0, 2.0, 0.1)
    dome_keep(theta, y, 0.1, norms, norms, coarse, 1.0, 1.0, 2.0, 0.1, 1e-10, 1e-12)
