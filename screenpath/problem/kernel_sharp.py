"""Certificates of kernel models whose gap would be met but for rounding: the kernel's sums in twice the precision.

Only those rows count whose share of the gap may not be 0, or whose loss leaves the primal value uncertain. Their
products are recomputed from the data, with kernel values that are sums of two doubles. A solver that continues from
them reaches accuracies that plain sums would hide.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from screenpath.kernels.rows.double import double_difference
from screenpath.numbers.rounding import OUTWARD, UNIT, blurred, gamma, meets
from screenpath.problem.sharp import difference, that_matter, with_terms


def sharpened(model, certificate, tol: float):
    """Return the certificate with a narrower bound on rounding, or unchanged.

    Losses at the end of their box have no share of the gap, so they are recomputed only if the gap is met and the
    primal value is uncertain; usually it is enough to count the errors of these alone.
    """
    if not meets(certificate, tol):
        found = _formed(model, certificate, 1.0)
        return found if found.gap < certificate.gap else certificate
    best = certificate
    for target in (None, tol):
        found = _formed(model, certificate, target)
        if meets(found, tol) and found.primal_error < best.primal_error:
            best = found
        if not blurred(best, tol):
            break
    return best


def _formed(model, certificate, tol: float | None):
    """Return the certificate with those products recomputed that matter to the gap and to ``tol`` of the primal
    value; with None, none of them.
    """
    alpha, point = certificate.point.vector, certificate.point
    kinks, rest = model.kinks_of(certificate)
    rest = np.broadcast_to(rest, kinks.shape)
    t, e = kinks - point.products, model.form_error(certificate)
    index = np.empty(0, np.int64) if tol is None else that_matter(model, certificate, t, e, tol)
    (margins, totals), off = model.rows.precise_sums(index, np.stack([alpha, certificate.theta]))
    t[index] = difference(kinks[index], *margins) + rest[index]
    e[index] = off * point.spread * OUTWARD * model.norms[index] + 4.0 * UNIT * np.abs(rest[index])
    # The gap is to hold for C theta as well, which the coefficients are but for rounding.
    apart = np.empty(index.size)
    double_difference(margins[0], certificate.C, totals, apart)
    e[index] += np.abs(apart + margins[1]) * OUTWARD
    # ||w||^2 = sum alpha_i g_i.w, with the margins as they are known now.
    error, terms = e + 2.0 * UNIT * np.abs(t), np.abs(alpha) @ (np.abs(kinks) + np.abs(t))
    square_error = float(np.abs(alpha) @ error + gamma(alpha.size + 16) * terms) * OUTWARD
    square = max(float(alpha @ (kinks - t)), 0.0), square_error
    # Of the coefficients, from C theta.
    moved = (UNIT + model.inexact) * point.spread * OUTWARD + certificate.C * certificate.shift
    found = with_terms(model, certificate, t, e, square, (0.5 * moved * moved, 0.0))
    products, total = point.products.copy(), certificate.total.copy()
    products[index], total[index] = margins[0], totals[0]
    return replace(found, point=replace(point, products=products), total=total)
