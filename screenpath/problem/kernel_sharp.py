"""Certificates of kernel models whose gap would be met but for rounding: the kernel's sums in twice the precision.

Only the rows count whose share of the gap may not be 0. Their products are formed again from the data, with kernel
values that are sums of two doubles. A solver that goes on from them reaches what plain sums would hide from it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from screenpath.kernels.rows.double import double_difference
from screenpath.numbers.rounding import OUTWARD, UNIT, gamma
from screenpath.problem.sharp import difference, that_matter, with_terms


def sharpened(model, certificate):
    """Return the certificate, most of whose gap is a bound on rounding, with a smaller one, or as it is."""
    alpha, point = certificate.point.vector, certificate.point
    kinks, rest = model.kinks_of(certificate)
    rest = np.broadcast_to(rest, kinks.shape)
    t, e = kinks - point.products, model.form_error(certificate)
    # Losses at the end of their box have no share: that they make the primal value hardly less sure is enough.
    index = that_matter(model, certificate, t, e, 1.0)
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
    if not found.gap < certificate.gap:
        return certificate
    products, total = point.products.copy(), certificate.total.copy()
    products[index], total[index] = margins[0], totals[0]
    return replace(found, point=replace(point, products=products), total=total)
