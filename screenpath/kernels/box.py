"""Row-wise arithmetic of the box models: losses, counts and screening decisions in one traversal each."""

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.parting import ROWS, box_ends


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"})  # lets the sums vectorise
def box_summary(c, margins, lo, hi, theta, start, stop):
    """Sum losses and dual terms over the rows ``start <= i < stop``.

    Returns
    -------
    xi, ell, magnitude : float
        ``sum max(lo t, hi t)`` with ``t = c - margins``, ``c . theta`` and ``sum |c theta|``.
    """
    xi, ell, magnitude = 0.0, 0.0, 0.0
    for i in range(at(start), at(stop)):
        t = c[i] - margins[i]
        xi += max(lo[i] * t, hi[i] * t)
        term = c[i] * theta[i]
        ell += term
        magnitude += abs(term)
    return xi, ell, magnitude


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"})
def box_certificate(C, w, theta, total, margins, c, lo, hi, gap_rounding):
    """Evaluate both objectives for a pair whose sum over rows and margins are known, in parts of ``ROWS``.

    Parameters
    ----------
    C : float
    w, theta : ndarray of shape (d,) and (N,)
    total : ndarray of shape (d,)
        ``G'theta``.
    margins : ndarray of shape (N,)
        ``G w``.
    c, lo, hi : ndarray of shape (N,)
    gap_rounding : float

    Returns
    -------
    w_sq, total_sq, inner, xi, ell, error, primal, dual : float
        As :class:`models.box.Certificate` has them; ``w_sq`` is ``||w||^2``.
    n_R, n_L : int
    """
    xi, ell, magnitude = 0.0, 0.0, 0.0
    for s in range(0, c.size, ROWS):
        part = box_summary(c, margins, lo, hi, theta, s, min(s + ROWS, c.size))
        xi, ell, magnitude = xi + part[0], ell + part[1], magnitude + part[2]
    n_R, n_L, _ = box_ends(theta, lo, hi, np.empty(c.size, dtype=np.int8), 0, c.size)
    return (*box_objectives(C, w, total, xi, ell, magnitude, gap_rounding), n_R, n_L)


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"})
def box_objectives(C, w, total, xi, ell, magnitude, gap_rounding):
    """Return what :func:`box_certificate` does but for the counts, from the sums of :func:`box_summary`."""
    w_sq, total_sq, inner = 0.0, 0.0, 0.0
    for j in range(w.size):
        w_sq += w[j] * w[j]
        total_sq += total[j] * total[j]
        inner += w[j] * total[j]
    primal, dual = 0.5 * w_sq + C * xi, C * ell - 0.5 * C * C * total_sq
    return w_sq, total_sq, inner, xi, ell, gap_rounding * (xi + magnitude), primal, dual


@kernel
def pair_radius(C, C0, w_sq, total_sq, inner, xi, ell, error, total_error, gap_rounding):
    """Return the radius of a pair's ball at ``C`` around its true centre, see ``rules.box.pair_ball``.

    The numbers are those of the certificate at ``C0``.
    """
    dual_sq = C * C * total_sq
    center_sq = 0.25 * (w_sq + 2.0 * C * inner + dual_sq)
    rounding = C * error + gap_rounding * (w_sq + dual_sq) + (C * C + C0 * C0) * total_error
    return np.sqrt(max(center_sq + C * (xi - ell), 0.0) + rounding)


@kernel
def pair_mismatch(C, C0, w_sq, total_sq, inner, total_error, gap_rounding):
    """Return ``||C G'theta - (C/C0) w||``, rounding error included."""
    ratio = C / C0
    dual_sq, ahead_sq = C * C * total_sq, ratio * ratio * w_sq
    apart_sq = dual_sq - 2.0 * C * ratio * inner + ahead_sq
    return np.sqrt(max(apart_sq, 0.0) + gap_rounding * (dual_sq + ahead_sq) + C * C * total_error)


@kernel()
def box_decide(lower, upper, norms, extent, c, rounding, status):
    """Fix what a region decides: -1 where ``v.w > c`` throughout it (R), +1 where ``v.w < c`` (L), else 0.

    Both comparisons keep a slack of ``rounding * (||v|| extent + |c|)``.

    Returns
    -------
    n_R, n_L : int
    """
    n_R, n_L = 0, 0
    for i in range(c.size):
        slack = rounding * (norms[i] * extent + abs(c[i]))
        if lower[i] > c[i] + slack:
            status[i] = -1
            n_R += 1
        elif upper[i] < c[i] - slack:
            status[i] = 1
            n_L += 1
        else:
            status[i] = 0
    return n_R, n_L


@kernel(fastmath={"reassoc", "contract"})
def box_decide_ball(products, factor, norms, radius, extent, c, rounding, status, start, stop):
    """:func:`box_decide` for a ball around ``factor`` times the point of the products, and the rows from ``start`` on.

    The bounds are not written to memory first.
    """
    n_R, n_L = 0.0, 0.0  # counted as what they are compared as: the loop vectorises better
    for i in range(at(start), at(stop)):
        away = radius * norms[i] + rounding * (norms[i] * extent + abs(c[i]))
        past = factor * products[i] - c[i]
        # No branches: on real data nobody can predict them.
        R, L = 1.0 if past > away else 0.0, 1.0 if past < -away else 0.0
        status[i] = np.int8(L - R)
        n_R += R
        n_L += L
    return int(n_R), int(n_L)


@kernel
def lens_shape(distance, r1, r2):
    """Return what :func:`lens_most` needs of two balls, ``r1 <= r2``.

    Returns
    -------
    nested : bool
        One ball lies inside the other, or rounding has pulled the two apart: the smaller one answers.
    way, height, cap : float
        ``1 / distance``; distance of the rim's plane from the first centre, and the rim's radius.
    worst, rest : float
        Cosines beyond which the maximiser of the first, or of the second ball lies in the other ball.
    """
    if distance <= r2 - r1 or distance >= r1 + r2:
        return True, 0.0, 0.0, r1, 0.0, 0.0
    height = ((distance - r2) * (distance + r2) + r1 * r1) / (2.0 * distance)
    cap = np.sqrt(max((r1 - height) * (r1 + height), 0.0))
    return False, 1.0 / distance, height, cap, -height / r1, (distance - height) / r2


@kernel
def lens_most(v1, v2, norm, r1, r2, shape, slack):
    """Largest ``v.x`` over two balls, ``r1 <= r2`` (``geometry.lens_support`` for one ``v``, which gives the reasons).

    ``slack``: rounding error of ``(v1 - v2) / distance``. No branches, so that loops vectorise.
    """
    nested, way, height, cap, worst, rest = shape
    first, second = v1 + r1 * norm, v2 + r2 * norm
    ball = first if nested or first < second else second
    away = (v1 - v2) * way
    tilt = away - slack
    outside = (tilt > worst * norm) & (away + slack < rest * norm) & (not nested)
    tilt = tilt if tilt < norm else norm
    square = (norm - tilt) * (norm + tilt)
    rim = v1 - height * tilt + cap * np.sqrt(square if square > 0.0 else 0.0)
    return rim if outside and rim < ball else ball


@kernel
def lens_sup(v1, v2, norm, distance, r1, r2, slack):
    """:func:`lens_most` of balls in any order."""
    if r1 > r2:
        v1, v2, r1, r2 = v2, v1, r2, r1
    return lens_most(v1, v2, norm, r1, r2, lens_shape(distance, r1, r2), slack)


@kernel(fastmath={"contract"})
def box_decide_lens(v1, v2, norms, distance, r1, r2, extents, c, rounding, status):
    """:func:`box_decide` for two balls: by either of them, or by their intersection.

    Parameters
    ----------
    v1, v2 : ndarray
        Products of the rows with the two centres.
    distance : float
        Of the centres.
    r1, r2 : float
    extents : tuple of four float
        What the slack for rounding refers to: for the intersection, the first ball and the second, which may decide by
        itself what the intersection's larger slack leaves open; and for the products with the line of the centres.
    """
    both, one, two, along = extents
    if r1 > r2:
        v1, v2, r1, r2, one, two = v2, v1, r2, r1, two, one
    shape = lens_shape(distance, r1, r2)
    # Of the way between the centres, up to the rim's plane: a point of the intersection.
    share = 0.5 if shape[0] else shape[2] / distance
    n_R, n_L = 0, 0
    for i in range(c.size):
        norm, size = norms[i], abs(c[i])
        past1, past2 = v1[i] - c[i], v2[i] - c[i]
        reach1 = r1 * norm + rounding * (norm * one + size)
        reach2 = r2 * norm + rounding * (norm * two + size)
        R = (past1 > reach1) | (past2 > reach2)
        L = ((past1 < -reach1) | (past2 < -reach2)) & ~R
        # One point of the intersection tells which side is possible.
        side = -1.0 if past1 + share * (past2 - past1) > 0.0 else 1.0
        most = lens_most(side * past1, side * past2, norm, r1, r2, shape, along * norm)
        end = side if most < -rounding * (norm * both + size) else 0.0
        status[i] = np.int8(-1.0 if R else (1.0 if L else end))
    for i in range(c.size):  # apart, where many are counted at a time
        n_R += status[i] < 0
        n_L += status[i] > 0
    return n_R, n_L


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"})
def box_range(c, slope):
    """Return the largest C up to which no ``c_i - C slope_i`` changes its sign; only slopes like c_i can do it."""
    most = np.inf
    for i in range(c.size):
        like = slope[i] > 0.0 if c[i] > 0.0 else slope[i] < 0.0
        until = c[i] / slope[i] if like else np.inf
        most = min(most, until)
    return most


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"})
def box_guess(c, products, factor, lo, hi, guess):
    """Write ``hi`` where ``c > factor * products``, else ``lo``, to ``guess``.

    Returns
    -------
    ell, magnitude : float
        ``c . guess`` and ``sum |c guess|``.
    """
    ell, magnitude = 0.0, 0.0
    for i in range(c.size):
        low, high = lo[i], hi[i]  # both are read, so that the loop vectorises
        value = high if c[i] > factor * products[i] else low
        guess[i] = value
        ell += c[i] * value
        magnitude += abs(c[i] * value)
    return ell, magnitude


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"})
def box_halfway(vector, products, theta, total, C, norms, mid_vector, mid_products):
    """Write ``(vector + C theta) / 2`` and ``(products + C total) / 2``, a point of a kernel's space, to the last two.

    Returns
    -------
    sqnorm, dual_sq, spread : float
        ``mid_vector . mid_products``, ``theta . total`` and ``sum |theta| norms``.
    """
    sqnorm, dual_sq, spread = 0.0, 0.0, 0.0
    for i in range(theta.size):
        mid_vector[i] = 0.5 * (vector[i] + C * theta[i])
        mid_products[i] = 0.5 * (products[i] + C * total[i])
        sqnorm += mid_vector[i] * mid_products[i]
        dual_sq += theta[i] * total[i]
        spread += abs(theta[i]) * norms[i]
    return sqnorm, dual_sq, spread


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"})
def apart_squared(vector, products, other, other_products):
    """Return ``(vector - other) . (products - other_products)``."""
    total = 0.0
    for i in range(vector.size):
        total += (vector[i] - other[i]) * (products[i] - other_products[i])
    return total


@kernel
def signed(values, signs, out, start, stop):
    """Write ``signs * values`` to ``out``."""
    for i in range(at(start), at(stop)):
        out[i] = signs[i] * values[i]


@kernel
def sign(values, signs, start, stop):
    """Multiply ``values`` by ``signs``; :func:`signed` into its own argument would not vectorise."""
    for i in range(at(start), at(stop)):
        values[i] *= signs[i]


@kernel
def difference(theta, reference, signs, out, start, stop):
    """Write ``signs (theta - reference)`` to ``out``; return how many differ and how many of ``theta`` are not 0."""
    changed, nonzero = 0, 0
    for i in range(at(start), at(stop)):
        step = theta[i] - reference[i]
        out[i] = signs[i] * step
        changed += step != 0.0
        nonzero += theta[i] != 0.0
    return changed, nonzero


def warm_up():
    """Compile the canonical signatures on tiny arrays."""
    a, status, signs = np.ones(2), np.zeros(2, dtype=np.int8), np.ones(2, dtype=np.int8)
    box_summary(a, a, a, a, a, 0, 2)
    box_certificate(1.0, a, a, a, a, a, a, a, 1e-14)
    box_objectives(1.0, a, a, 1.0, 1.0, 1.0, 1e-14)
    pair_radius(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1e-14)
    pair_mismatch(1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1e-14)
    box_decide(a, a, a, 1.0, a, 1e-12, status)
    box_decide_ball(a, 1.0, a, 1.0, 1.0, a, 1e-12, status, 0, 2)
    box_decide_lens(a, a, a, 1.0, 1.0, 1.0, (1.0, 1.0, 1.0, 1e-12), a, 1e-12, status)
    box_range(a, a)
    box_guess(a, a, 1.0, a, a, a.copy())
    box_halfway(a, a, a, a, 1.0, a, a.copy(), a.copy())
    apart_squared(a, a, a, a)
    signed(a, signs, a.copy(), 0, 2)
    sign(a.copy(), signs, 0, 2)
    difference(a, a, signs, a.copy(), 0, 2)
