"""The dome of Zhao 2014 written down with its vectors: what the one traversal of the rule is compared with."""

import math

import numpy as np

from screenpath.kernels.screen import l1dome
from screenpath.regions.geometry import Ball, Dome, Point
from screenpath.screen.l1svm import DIRECTION


def dome(model, reference, lam: float) -> Dome | Ball:
    """Return the dome between two values of lambda; the ball where the half-space has no direction."""
    here, there, theta = 1.0 / reference.lam, 1.0 / float(lam), reference.theta
    size, radius, length, offset = here * np.array(
        l1dome.dome_shape(
            theta, model.signs, model.null_bias, reference.lam, reference.lam * there, reference.theta_gap
        )
    )
    u = 1.0 - model.null_bias * model.signs
    products = 0.5 * (there * model.null_products + reference.products)
    center = Point(0.5 * (there * u + theta), products, size * size)
    if length <= DIRECTION * math.sqrt(model.samples) * here:  # without the half-space the region is only larger
        return Ball(center, radius)
    across = (here * model.null_products - reference.products) / length
    return Dome(center, radius, Point((here * u - theta) / length, across, 1.0), offset * here / length)
