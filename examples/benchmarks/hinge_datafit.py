"""The hinge as a datafit of skglm's primal-dual solver, for rows that are multiplied by their signs."""

import numpy as np
from numba import float64
from skglm.datafits.base import BaseDatafit


class Hinge(BaseDatafit):
    """Mean of ``max(0, 1 - Xw)``: ``share`` is 1 / n."""

    def __init__(self, share):
        self.share = share

    def get_spec(self):
        return (("share", float64),)

    def params_to_dict(self):
        return {"share": self.share}

    def value(self, y, w, Xw):
        return self.share * np.sum(np.maximum(1.0 - Xw, 0.0))

    def prox(self, v, step, y):
        return np.where(v > 1.0, v, np.minimum(v + step * self.share, 1.0))

    def prox_conjugate(self, z, step, y):
        return z - step * self.prox(z / step, 1.0 / step, y)

    def subdiff_distance(self, Xw, z, y):
        most = 0.0
        for i in range(Xw.size):
            low = -self.share if Xw[i] <= 1.0 else 0.0
            high = 0.0 if Xw[i] >= 1.0 else -self.share
            most = max(most, low - z[i], z[i] - high)
        return most


def hinge(n: int) -> Hinge:
    return Hinge(1.0 / n)
