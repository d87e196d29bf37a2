"""Row-wise arithmetic of the box models: losses, counts and screening decisions in one traversal each."""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import at, kernel
from screenpath.kernels.problem.partition import ROWS, box_ends


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, leaf=True)  # lets the sums vectorise
def box_summary(c, margins, lo, hi, theta, start, stop):
    """Return ``sum max(lo t, hi t)`` with ``t = c - margins``, ``c . theta`` and ``sum |c theta|`` over the rows."""
    xi, ell, magnitude = 0.0, 0.0, 0.0
    for i in range(at(start), at(stop)):
        t = c[i] - margins[i]
        xi += max(lo[i] * t, hi[i] * t)
        term = c[i] * theta[i]
        ell += term
        magnitude += abs(term)
    return xi, ell, magnitude


# What bounds the rounding of a model's numbers, in this order (`problem.box.BoxModel.bounds`): relative errors of a
# product with a row, of a sum over all rows and of a sum over features; `sum_i max(|lo_i|, |hi_i|) ||g_i||`, and with
# `|c_i|` and 1 for the norm; relative error of a sum over rows formed anew; most that one row can change of it;
# operations that an update adds to one of its entries; what underflow hides of a norm; the losses at w = 0, which bound
# nothing but what may be reported; most that a kink, and which part a slope, was rounded by when the model was made;
# what underflow hides of a product.
PRODUCT, ROW_SUM, FEATURE_SUM, ALL_NORMS, ALL_KINKS, ALL_ONES, FRESH, LARGEST = range(8)
UPDATE, HIDDEN, ZERO, KINK, SLOPE, TINY = range(8, 14)
UNIT = 2.0**-53
NOWHERE, AT_ZERO, BEFORE = range(3)  # of a smaller primal value
ALIKE, DIGITS = 2.0**-40, 2.0**-30  # of `rounding`
UNDERFLOW = 2.0**-1044  # more than what underflow can hide of a sum over rows, or of a squared distance
FAINT = 2.0**-900  # a sum of losses beside which they are nothing
LEAST = 2.0**-510  # and of a distance that is the root of such squares, for each of its vectors


class Errors(NamedTuple):
    """Rounding errors in the numbers of a reduced problem, see :func:`errors_of`."""

    rounding: float  # slack of a comparison that decides
    relative: float  # relative error of a product with a row, and of a loss
    # bound on the norm of the error of the sum over all rows that the solve starts from, fixed ones included
    total: float
    floor: float  # what kinks and underflow add to the sum of the rows' shares of the gap


@kernel(leaf=True)
def relative_error(depth):
    """Return ``k u / (1 - k u)``, see ``rounding.gamma``."""
    return depth * UNIT / (1.0 - depth * UNIT) if depth * UNIT < 0.5 else np.inf


@kernel(leaf=True)
def sum_error(nonzero, bounds):
    """Return the error of a newly computed sum over ``nonzero`` rows."""
    size = nonzero * bounds[LARGEST]
    return bounds[FRESH] * (size if size < bounds[ALL_NORMS] else bounds[ALL_NORMS])


@kernel(leaf=True)
def sum_drift(before, changed, bounds):
    """Return the error of a sum over rows after an update by ``changed`` rows; it was ``before``."""
    moved, most = changed * bounds[LARGEST], 2.0 * bounds[ALL_NORMS]
    size = moved if moved < most else most
    each = relative_error(changed + bounds[UPDATE]) + bounds[PRODUCT]
    return (before + each * size + UNIT * bounds[ALL_NORMS]) * (1.0 + 8.0 * UNIT)


@kernel(leaf=True)
def largest_sum_error(n, updates, bounds):
    """Return the largest possible error of a sum over ``n`` rows after so many updates."""
    error = sum_error(n, bounds)
    for _ in range(updates):
        error = sum_drift(error, n, bounds)
    return error


@kernel(leaf=True, inner=True)
def line_error(C1, C2, C, n, updates, bounds):
    """Return the error of ``partition.sum_line`` through sums of ``updates`` updates each, its point being clipped."""
    error = sum_drift(largest_sum_error(n, updates, bounds), n, bounds)
    return (1.0 + 2.0 * (C - C2) / (C2 - C1)) * error * (1.0 + 16.0 * UNIT)


@kernel(leaf=True)
def start_error(C1, C2, C, error, moved, n, updates, bounds):
    """Return the error of the sum that a solve starts from: on the line if ``C1 > 0``, else with ``moved`` rows."""
    if C1 > 0.0:
        return line_error(C1, C2, C, n, updates, bounds)
    return sum_drift(error, moved, bounds) if moved > 0.0 else error


@kernel(leaf=True)
def errors_of(C, error, rounding, bounds):
    """Return the :class:`Errors` at ``C``; the sum over rows (times 1/C) is off by ``error`` and by the slopes' own."""
    total = C * (error + bounds[SLOPE] * bounds[ALL_NORMS] + bounds[HIDDEN]) * (1.0 + 8.0 * UNIT)
    floor = 2.0 * C * bounds[ALL_ONES] * (bounds[KINK] + bounds[TINY]) + UNDERFLOW
    return Errors(rounding, bounds[PRODUCT] + bounds[SLOPE], total, floor)


@kernel(leaf=True)
def moved_by(touched, w_size, apart, widths):
    """Bound how far rounding has moved a sum over rows in ``touched`` additions of a row.

    Each addition rounds the sum and the row's part. Every sum over a point of the box is within ``widths`` of this one,
    which is within ``apart`` of a vector of norm ``w_size``.
    """
    return UNIT * (touched + 64.0) * (w_size + apart + 4.0 * widths)


@kernel(leaf=True)
def radius_around(slack, sizes, w_size, apart, widths, k, touched, errors):
    """Return the radius of a ball around ``w`` that holds the optimum of a reduced problem of ``k`` rows, rounding
    counted.

    With the exact sum ``v`` of the dual point, ``1/2 ||w - w*||^2 + 1/2 ||v - w*||^2`` is at most the gap, which is
    ``1/2 ||w - v||^2 + slack``: ``w*`` is within ``sqrt(slack + ||w - v||^2 / 4)`` of the middle of ``w`` and ``v``.

    ``slack``, ``sizes``: ``sum (phi_i(t_i) - alpha_i t_i)`` as computed, and the sum of the magnitudes of its terms.
    ``w_size``, ``apart``: ``||w||`` and ``||w - v||`` as computed. ``widths``: ``sum (hi - lo) norms``. ``touched``: at
    least the additions of rows to ``v`` in the solve so far.
    """
    apart = (1.0 + errors.relative) * apart + errors.total + moved_by(touched, w_size, apart, widths)
    unsure = (relative_error(k + 16.0) + errors.relative) * (sizes + w_size * widths) + errors.floor
    return (np.sqrt(max(slack, 0.0) + unsure + 0.25 * apart * apart) + 0.5 * apart) * (1.0 + 16.0 * UNIT) + LEAST


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, leaf=True)
def product_errors(w, bounds):
    """Return ``a`` and ``b`` such that the distance of ``g.w`` from its kink is off by at most ``a ||g|| + b``."""
    square, some = 0.0, False
    for j in range(w.size):
        square += w[j] * w[j]
        some |= w[j] != 0.0
    if not some and square == square:
        return 0.0, bounds[KINK]
    a = bounds[PRODUCT] * (np.sqrt(square) * (1.0 + bounds[FEATURE_SUM]) + bounds[HIDDEN])
    return a, a * bounds[HIDDEN] + bounds[TINY] + bounds[KINK]


@kernel(forceinline=True, leaf=True)
def row_terms(c, margin, lo, hi, theta, error):
    """Return loss, share of the gap, and an upper bound of that share if the margin is off by at most ``error``.

    ``t = c - margin`` has a rounding error of its own, which a slight excess of ``error`` covers: it counts only where
    ``t`` is about as small. Not to be reassociated: the error of ``t`` has to stay relative to ``t``.
    """
    t = c - margin
    below, above = lo * t, hi * t
    up, down = hi - theta, theta - lo
    plain_up, plain_down = up * t, -down * t
    most_up, most_down = up * (t + error), down * (error - t)
    return (
        above if above > below else below,
        plain_up if plain_up > plain_down else plain_down,
        most_up if most_up > most_down else most_down,
    )


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, leaf=True)
def box_terms(c, margins, lo, hi, theta, norms, a, b, start, stop):
    """Sum what a certificate needs of the rows; a margin is off by at most ``a norms + b`` (:func:`product_errors`).

    The gap at the pair's own point is ``1/2 ||w - w_theta||^2 + C sum (phi_i(t_i) - theta_i t_i)``, no term of which is
    negative: the rounding of a margin counts only where the dual variable is not at the end that its sign asks for.

    Returns ``xi``, ``ell``: ``sum phi_i(t_i)`` with ``t = c - margins``, and ``c . theta``; ``plain``, ``slack``: ``sum
    (phi_i(t_i) - theta_i t_i)`` as computed, and an upper bound of its exact value.
    """
    xi, ell, plain, slack = 0.0, 0.0, 0.0, 0.0
    for i in range(at(start), at(stop)):
        loss, part, most = row_terms(c[i], margins[i], lo[i], hi[i], theta[i], a * norms[i] + b)
        xi += loss
        plain += part
        slack += most
        ell += c[i] * theta[i]
    if slack == 0.0 and xi < FAINT and _some_share(c, margins, lo, hi, theta, norms, a, b, start, stop):
        slack = UNDERFLOW
    return xi, ell, plain, slack


@kernel(leaf=True)
def _some_share(c, margins, lo, hi, theta, norms, a, b, start, stop):
    """Tell whether a row may have a share of the gap that is too small a number for :func:`row_terms`."""
    some = 0
    for i in range(at(start), at(stop)):
        t, error = c[i] - margins[i], a * norms[i] + b
        some += ((hi[i] > theta[i]) & (t + error > 0.0)) | ((theta[i] > lo[i]) & (error - t > 0.0))
    return some > 0


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, leaf=True)
def box_sums(c, margins, lo, hi, theta, norms, a, b):
    """Return :func:`box_terms` of all rows, summed up in blocks of ``ROWS``."""
    xi, ell, plain, slack = 0.0, 0.0, 0.0, 0.0
    for s in range(0, c.size, ROWS):
        part = box_terms(c, margins, lo, hi, theta, norms, a, b, s, min(s + ROWS, c.size))
        xi, ell, plain, slack = xi + part[0], ell + part[1], plain + part[2], slack + part[3]
    return xi, ell, plain, slack


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"})
def box_certificate(C, w, theta, total, sum_error, margins, c, lo, hi, norms, bounds):
    """Bound the gap of a pair with known ``total`` and ``margins``.

    ``sum_error`` bounds the norm of the rounding error of ``total``. Returns ``w_sq = ||w||^2``, then ``total_sq,
    inner, xi, ell, slack, error, primal, primal_error, gap, rounding`` as in :class:`problem.box_types.Certificate`,
    ``n_R, n_L``.
    """
    a, b = product_errors(w, bounds)
    xi, ell, plain, slack = box_sums(c, margins, lo, hi, theta, norms, a, b)
    n_R, n_L, _ = box_ends(theta, lo, hi, np.empty(c.size, dtype=np.int8), 0, c.size)
    return (*box_objectives(C, w, total, sum_error, xi, ell, plain, slack, a, b, bounds), n_R, n_L)


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, leaf=True)
def box_objectives(C, w, total, sum_error, xi, ell, plain, slack, a, b, bounds):
    """Return what :func:`box_certificate` does except the counts, from the sums of :func:`box_terms`."""
    w_sq, total_sq, inner, apart_sq, some = 0.0, 0.0, 0.0, 0.0, slack > 0.0
    for j in range(w.size):
        some |= (w[j] != 0.0) | (total[j] != 0.0)
        w_sq += w[j] * w[j]
        total_sq += total[j] * total[j]
        inner += w[j] * total[j]
        z = w[j] - C * total[j]
        apart_sq += z * z
    apart = np.sqrt(apart_sq) * (1.0 + bounds[FEATURE_SUM]) + (2.0 * UNIT + bounds[SLOPE]) * C * np.sqrt(total_sq)
    apart += C * (sum_error + bounds[HIDDEN]) + bounds[HIDDEN]
    hidden = UNDERFLOW if some else 0.0
    # With the exact slopes a dual point is shorter by that part, and a loss moves by it.
    slack = slack * (1.0 + bounds[ROW_SUM] + bounds[SLOPE]) + 2.0 * bounds[SLOPE] * xi + hidden
    gap = (0.5 * apart * apart + C * slack) * (1.0 + 16.0 * UNIT) + hidden
    margins = a * bounds[ALL_NORMS] + b * bounds[ALL_ONES]
    row_sum = bounds[ROW_SUM] + bounds[SLOPE]
    error = row_sum * (xi + bounds[ALL_KINKS]) + margins
    primal = 0.5 * w_sq + C * xi
    primal_error = (bounds[FEATURE_SUM] * w_sq + C * (row_sum * xi + margins)) * (1.0 + 8.0 * UNIT)
    rounding = gap - (0.5 * apart_sq + C * plain)
    return w_sq, total_sq, inner, xi, ell, slack, error, primal, primal_error, gap, rounding


@kernel(leaf=True)
def meets(gap, primal, primal_error, tol):
    """Tell whether a certificate is within ``tol``: ``rounding.meets``, and not ``rounding.blurred``."""
    least = primal - primal_error
    close = gap <= tol * least / (1.0 + 8.0 * UNIT) < np.inf and primal_error <= max(tol, DIGITS) * primal
    return close or (gap == 0.0 and primal_error == 0.0)


@kernel(leaf=True)
def meets_but_for_rounding(gap, rounding, primal, primal_error, tol):
    """Tell whether only rounding stands between a certificate and ``tol``: ``rounding.meets_but_for_rounding``."""
    return gap - rounding <= tol * (primal + primal_error) < np.inf


@kernel(leaf=True)
def above_known(C, primal, w_sq, xi, bounds):
    """Tell which known point has a smaller primal value: none, zero, or an earlier ``w`` with ``w_sq`` and ``xi``."""
    zero, before = C * bounds[ZERO], 0.5 * w_sq + C * xi
    if primal > (zero if zero < before else before) * (1.0 + ALIKE):
        return AT_ZERO if zero < before else BEFORE
    return NOWHERE


@kernel(leaf=True)
def pair_radius(C, C0, w_sq, total_sq, inner, slack, sum_error, total_error, relative):
    """Return the radius of a pair's ball at ``C``, from numbers at ``C0``, see ``screen.box.pair_ball``."""
    dual_sq = C * C * total_sq
    apart_sq = max(w_sq - 2.0 * C * inner + dual_sq, 0.0) + relative * (w_sq + dual_sq)
    apart = np.sqrt(apart_sq + (C * C + C0 * C0) * total_error) + C * sum_error
    return np.sqrt(0.25 * apart * apart + C * slack) * (1.0 + 16.0 * UNIT) + 0.5 * C * sum_error + (1.0 + C) * LEAST


@kernel(leaf=True)
def pair_mismatch(C, C0, w_sq, total_sq, inner, total_error, relative):
    """Return ``||C G'theta - (C/C0) w||`` for the computed sum, rounding error included."""
    ratio = C / C0
    dual_sq, ahead_sq = C * C * total_sq, ratio * ratio * w_sq
    apart_sq = dual_sq - 2.0 * C * ratio * inner + ahead_sq
    return np.sqrt(max(apart_sq, 0.0) + relative * (dual_sq + ahead_sq) + C * C * total_error) + (C + ratio) * LEAST


@kernel(leaf=True)
def box_decide(lower, upper, norms, extent, c, rounding, status):
    """Write what a region decides: -1 where ``v.w > c`` throughout it (R), +1 where ``v.w < c`` (L), else 0; return
    counts.

    Both comparisons keep a slack of ``rounding * (||v|| extent + |c|)``.
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


@kernel(fastmath={"reassoc", "contract"}, leaf=True)
def box_decide_ball(products, factor, norms, radius, extent, c, rounding, status, start, stop):
    """:func:`box_decide` for a ball around ``factor`` times the point of the products, whose bounds are not written."""
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


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, leaf=True)
def box_range(c, slope):
    """Return the largest C up to which no ``c_i - C slope_i`` changes its sign; only slopes of the sign of c_i can."""
    most = np.inf
    for i in range(c.size):
        like = slope[i] > 0.0 if c[i] > 0.0 else slope[i] < 0.0
        until = c[i] / slope[i] if like else np.inf
        most = min(most, until)
    return most


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, leaf=True)
def box_guess(c, products, factor, lo, hi, guess):
    """Write ``hi`` where ``c > factor * products``, else ``lo``, to ``guess``; return ``c . guess``."""
    ell = 0.0
    for i in range(c.size):
        low, high = lo[i], hi[i]  # both are read, so that the loop vectorises
        value = high if c[i] > factor * products[i] else low
        guess[i] = value
        ell += c[i] * value
    return ell


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, leaf=True)
def box_halfway(vector, products, theta, total, C, mid_vector, mid_products):
    """Write ``(vector + C theta) / 2`` and ``(products + C total) / 2``, a point of a kernel's space, to the last two.

    Returns ``mid_vector . mid_products``, ``theta . total``, and the sum of the magnitudes of the first one's terms.
    """
    sqnorm, dual_sq, magnitude = 0.0, 0.0, 0.0
    for i in range(theta.size):
        mid_vector[i] = 0.5 * (vector[i] + C * theta[i])
        mid_products[i] = 0.5 * (products[i] + C * total[i])
        term = mid_vector[i] * mid_products[i]
        sqnorm += term
        magnitude += abs(term)
        dual_sq += theta[i] * total[i]
    return sqnorm, dual_sq, magnitude


@kernel(fastmath={"reassoc", "contract", "nsz", "arcp"}, leaf=True)
def apart_squared(vector, products, other, other_products):
    """Return ``(vector - other) . (products - other_products)``, and the sum of the magnitudes of its terms."""
    total, magnitude = 0.0, 0.0
    for i in range(vector.size):
        term = (vector[i] - other[i]) * (products[i] - other_products[i])
        total += term
        magnitude += abs(term)
    return total, magnitude


@kernel(leaf=True)
def signed(values, signs, out, start, stop):
    """Write ``signs * values`` to ``out``."""
    for i in range(at(start), at(stop)):
        out[i] = signs[i] * values[i]


@kernel(leaf=True)
def sign(values, signs, start, stop):
    """Multiply ``values`` by ``signs``; :func:`signed` into its own argument would not vectorise."""
    for i in range(at(start), at(stop)):
        values[i] *= signs[i]


@kernel(leaf=True)
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
    a, status, signs = np.ones(2), np.zeros(2, dtype=np.int8), np.ones(2, dtype=np.int8)
    box_summary(a, a, a, a, a, 0, 2)
    bounds = np.zeros(TINY + 1)
    sum_error(1.0, bounds)
    sum_drift(1.0, 1.0, bounds)
    largest_sum_error(2.0, 16, bounds)
    start_error(0.5, 1.0, 2.0, 0.0, 1.0, 2.0, 16, bounds)
    errors = errors_of(1.0, 0.0, 1e-12, bounds)
    moved_by(1.0, 1.0, 1.0, 1.0)
    radius_around(1.0, 1.0, 1.0, 1.0, 1.0, 2, 1.0, errors)
    product_errors(a, bounds)
    box_sums(a, a, a, a, a, a, 0.0, 0.0)
    box_certificate(1.0, a, a, a, 0.0, a, a, a, a, a, bounds)
    box_objectives(1.0, a, a, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, bounds)
    meets(1.0, 1.0, 0.0, 1e-6)
    meets_but_for_rounding(1.0, 0.0, 1.0, 0.0, 1e-6)
    above_known(1.0, 1.0, 1.0, 1.0, bounds)
    pair_radius(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1e-14)
    pair_mismatch(1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1e-14)
    box_decide(a, a, a, 1.0, a, 1e-12, status)
    box_decide_ball(a, 1.0, a, 1.0, 1.0, a, 1e-12, status, 0, 2)
    box_range(a, a)
    box_guess(a, a, 1.0, a, a, a.copy())
    box_halfway(a, a, a, a, 1.0, a.copy(), a.copy())
    apart_squared(a, a, a, a)
    signed(a, signs, a.copy(), 0, 2)
    sign(a.copy(), signs, 0, 2)
    difference(a, a, signs, a.copy(), 0, 2)
