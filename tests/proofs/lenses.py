"""The support of two balls, for tests."""

import numpy as np

from screenpath.regions.geometry import ROUNDING, lens_support


def lens_sup(v1, v2, norm, distance, r1, r2, slack):
    """Return ``regions.geometry.lens_support`` of one row, whose product with the axis is off by at most ``slack``."""
    extent = distance * (slack / (norm * ROUNDING) - 1.0)
    return lens_support(np.array([v1]), np.array([v2]), np.array([norm]), distance, r1, r2, extent)[0]
