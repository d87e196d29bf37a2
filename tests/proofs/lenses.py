"""The support of two balls, for tests."""

from screenpath.kernels.problem import box


def lens_sup(v1, v2, norm, distance, r1, r2, slack):
    """Return ``kernels.problem.box.lens_most`` of balls in any order."""
    if r1 > r2:
        v1, v2, r1, r2 = v2, v1, r2, r1
    return box.lens_most(v1, v2, norm, r1, r2, box.lens_shape(distance, r1, r2), slack)
