"""The rules of the five papers as they are printed, as plug-ins to compare with the package's own.

    screenpath compare-rules svm data.libsvm --intercept none --audit --rules dvi,examples/papers/printed.py:DVI

Every rule here takes the reference for the exact solution, as its paper does; a solver's answer never is. Hence
``assumes_exact``: screenpath runs these rules only with ``--audit`` or ``--attack``, which count unsafe decisions.
Rounding is counted where a row or feature is compared with the region, and nowhere else.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import scipy.sparse as sp

from screenpath.regions.geometry import Ball, Dome, Lens, Point

ALIKE = 1e-10  # relative difference of two vectors that is nothing but rounding


class Printed:
    """What these rules share: they hold for an exact reference only."""

    assumes_exact = True


class DVI(Printed):
    """Wang 2014, Corollary 8, which is Corollary 11 for SVM and Corollary 14 for LAD."""

    def region(self, model, reference, C):
        """Return the ball around ``(C + C0)/(2 C0) w0`` of radius ``(C - C0)/(2 C0) ||w0||``."""
        ratio, w = C / reference.C, reference.point
        return Ball(w.scaled(0.5 * (ratio + 1.0)), 0.5 * (ratio - 1.0) * sqrt(w.sqnorm))


class BT1(Printed):
    """Ogawa 2014, Theorem 6, the reference's w as feasible solution and as the optimum at the other C."""

    def region(self, model, reference, C):
        """Return the ball of equation (16): ``r1^2 = ||m1||^2 - C/C0 ||w0||^2 + C (xi - xi0)``."""
        ratio, w = C / reference.C, reference.point
        center = w.scaled(0.5 * (1.0 + ratio))
        return Ball(center, sqrt(max(center.sqnorm - ratio * w.sqnorm, 0.0)))


class BT2(Printed):
    """Ogawa 2014, Theorem 7, with the guess of equation (25)."""

    def region(self, model, reference, C):
        """Return the ball around ``m2 = (w0 + C z_s)/2`` with ``r2^2 = ||m2||^2 + C (xi0 - s.1)``."""
        s, ones, _ = model.guess(reference.point.products, 0.5 * (C + reference.C) / reference.C)
        center = model.middle(reference, s, C)[0]
        return Ball(center, sqrt(max(center.sqnorm + C * (reference.xi - ones), 0.0)))


class IT(Printed):
    """Ogawa 2014, Theorem 8: the intersection of both balls."""

    def region(self, model, reference, C):
        """Return the lens, whose bounds are equations (20) and (24)."""
        return Lens(BT1().region(model, reference, C), BT2().region(model, reference, C))


class SSNSV(Printed):
    """Ogawa 2013, Lemma 1 and Theorem 2; the feasible solution is that at the largest C (Wang 2014, Section 7)."""

    needs_far_end = True
    enhanced = False

    def region(self, model, reference, C, far):
        """Return ``||w|| <= ||w_b||`` and ``w_a.(w - w_a) >= 0``; enhanced: ``||w - w_b/2|| <= ||w_b||/2``."""
        w_a, w_b = reference.point, far.point
        center, radius = w_b.scaled(0.5 if self.enhanced else 0.0), (0.5 if self.enhanced else 1.0) * sqrt(w_b.sqnorm)
        length = sqrt(w_a.sqnorm)
        if length == 0.0:
            return Ball(center, radius)
        normal = w_a.scaled(-1.0 / length)
        return Dome(center, radius, normal, -length - float(normal.vector @ center.vector))


class ESSNSV(SSNSV):
    """Wang 2014, equation (26) and Theorem 18 of its supplement."""

    enhanced = True


class VI(Printed):
    """Zhao 2014, the set K of equation (17), for ``l1svm``."""

    def region(self, model, reference, C):
        """Return the ball (12) and the half-space (11) within ``y.theta = 0``; ``1`` and ``theta`` are projected."""
        one, theta, lam = model.null_slack, reference.theta, float(C)
        c, b, a = 0.5 * (one / lam + theta), 0.5 * (one / lam - theta), one / reference.lam - theta
        center = Point(c, 0.5 * (model.null_products / lam + reference.products), float(c @ c))
        radius, length = float(np.linalg.norm(b)), float(np.linalg.norm(a))
        if not length > ALIKE * float(np.linalg.norm(one)) / reference.lam:  # at lambda_max a is parallel to y
            return Ball(center, radius)
        normal = Point(a / length, (model.null_products / reference.lam - reference.products) / length, 1.0)
        return Dome(center, radius, normal, -float(a @ b) / length)


class SIFS(Printed):
    """Hong 2019, Algorithm 1 with rules ISS and IFS of Theorems 9 and 11, for ``sparse-svm``, many classes included."""

    samples, features = True, True
    views, rows, squares = None, None, None  # of the model seen last: its rows, signed, are the same at every beta

    def before(self, model, reference, parameter):
        """Return the decisions: ISS and IFS in turns until neither finds more."""
        if self.views is not model.views:
            self.views, self.rows = model.views, signed_rows(model)
            self.squares = self.rows.multiply(self.rows).tocsr()
        ref, alpha, rows, squares = reference, parameter, self.rows, self.squares
        found, n, gamma = model.nothing_screened(), model.n, model.gamma
        known = found.duals != 0  # the pairs of a sample with its own class, which are no dual variables
        less, more = 0.5 * (ref.alpha / alpha - 1), 0.5 * (ref.alpha / alpha + 1)
        record = []
        while True:
            open_, kept = found.duals == 0, found.keep != 0
            at_one = (found.duals > 0) & ~known
            if self.samples:  # Lemmas 5 and 10
                size = less**2 * ref.w @ ref.w - more**2 * ref.w[~kept] @ ref.w[~kept]
                middle = 1.0 - rows @ np.where(kept, more * ref.w, 0.0)
                reach = np.sqrt((squares @ kept.astype(float)) * max(size, 0.0))
                found.duals[open_ & (middle + reach < 0.0)] = -1
                found.duals[open_ & (middle - reach > gamma)] = 1
            new = [int(np.count_nonzero(open_ & (found.duals != 0))), 0]
            if self.features:  # Lemmas 6 and 8
                open_, at_one = found.duals == 0, (found.duals > 0) & ~known
                c = more * ref.theta - less / gamma
                size = less**2 * np.sum((ref.theta - 1.0 / gamma)[~known] ** 2)
                size -= np.sum((1.0 - c[at_one]) ** 2) + np.sum(c[(found.duals < 0) & ~known] ** 2)
                middle = np.abs(rows.T @ np.where(open_, c, at_one.astype(float)))
                bound = middle + np.sqrt((squares.T @ open_.astype(float)) * max(size, 0.0))
                found.keep[kept & (bound <= n * model.beta)] = 0
                new[1] = int(np.count_nonzero(kept & (found.keep == 0)))
            record.append(new)
            if not any(new) or not (self.samples and self.features):
                found.record = np.array(record, dtype=np.int64)
                return found


class ISS(SIFS):
    """Hong 2019, Theorem 11: samples alone."""

    features = False


class IFS(SIFS):
    """Hong 2019, Theorem 9: features alone."""

    samples = False


def signed_rows(model):
    """Return the rows whose products with w are the margins of the dual variables, shape (classes n, classes d).

    Binary: ``y_i x_i``. Many classes: ``x_i`` in the block of the sample's own class, ``-x_i`` in that of the pair's.
    """
    data, indices, indptr = model.views.by_row
    shape = (model.n, model.d)
    X = sp.csr_array(data.reshape(shape)) if model.views.dense else sp.csr_array((data, indices, indptr), shape=shape)
    if model.classes == 1:
        return sp.csr_array(X.multiply(model.labels[:, None]))
    own = (model.labels[:, None] == np.arange(model.classes)).astype(float)
    blocks = [[X.multiply((own[:, k] - (k == c))[:, None]) for k in range(model.classes)] for c in range(model.classes)]
    return sp.csr_array(sp.block_array(blocks))
