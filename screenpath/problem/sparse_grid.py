"""The whole (alpha, beta) grid of a sparse SVM as one path: its parameter is the pair.

A row of the grid holds one ``beta``. The first step of a row takes its reference from the row's closed form, every
other one from the step before; rows do not depend on each other. Where all have the same single ``alpha`` the path is
one over ``beta``: each step takes its reference from the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from screenpath.errors import UsageError
from screenpath.numbers import states
from screenpath.problem.base import Family
from screenpath.problem.sparse import SparseModel
from screenpath.problem.sparse_types import HINGE, SparseCertificate, SparseVector


@dataclass(slots=True)
class SentCertificate:
    """What a worker process sends of a certificate: the pair, and at a row's last step ``u``, for a checkpoint."""

    alpha: float
    beta: float
    w: SparseVector
    theta: np.ndarray
    u: np.ndarray | None = None
    u_slack: np.ndarray | None = None
    formed: np.ndarray | None = None
    room: float = 0.0
    intercept: float = 0.0

    @property
    def resumable(self) -> bool:
        """Tell whether a run can continue after this step."""
        return self.u is not None


class SparseGrid(Family):
    """The models of all ``beta``, over pairs ``(alpha, beta)``.

    ``base``: the data at any ``beta``.
    """

    def __init__(self, base: SparseModel):
        self.base, self.rows = base, base.rows
        self._row = base
        self._start: SparseCertificate | None = None

    def row(self, beta: float) -> SparseModel:
        """Return the model at one ``beta``; the last one is kept."""
        if self._row.beta != beta:
            self._row, self._start = self.base.at(beta), None
        return self._row

    def bound(self, reference: SparseCertificate, parameter) -> tuple[SparseModel, SparseCertificate, float]:
        """Return the row's model, the reference as a pair of the row, and ``alpha``."""
        alpha, beta = parameter
        model = self.row(beta)
        if reference.beta != beta and reference.alpha == alpha:
            # Without an L2 term sums that were left out, known to be below one beta, would keep features at the next.
            sums = (reference.u, reference.u_slack) if alpha > 0.0 else None
            reference = model.certify(alpha, reference.w, reference.theta, sums=sums, intercept=reference.intercept)
        elif reference.beta != beta:
            if self._start is None or self._start.alpha < alpha:
                touched = self.rows.touched
                self._start = model.start(alpha)
                self.rows.touched = touched  # as for the first row, whose start is made before the walk
            reference = self._start
        return model, reference, alpha

    def start(self, parameter) -> SparseCertificate:
        alpha, beta = parameter
        return self.row(beta).start(alpha)

    def parameters(self, parameter) -> dict:
        return {"alpha": float(parameter[0]), "beta": float(parameter[1])}

    # -- checkpoints ---------------------------------------------------------------------------------------------

    def state(self, certificate: SparseCertificate | SentCertificate) -> dict:
        w = certificate.w if isinstance(certificate.w, SparseVector) else SparseVector.of(certificate.w)
        return {
            "at": np.array([certificate.alpha, certificate.beta]), "index": w.index, "values": w.values,
            "theta": certificate.theta, "u": certificate.u, "u_slack": certificate.u_slack,
            "formed": certificate.formed, "room": certificate.room, "closed": float(certificate.theta is self.base.top),
            **({"intercept": certificate.intercept} if self.base.intercept else {}),
        }  # fmt: skip

    def restore(self, state) -> SparseCertificate:
        alpha, beta = states.vector(state, "at", 2, low=0.0).tolist()
        model = self.row(beta)
        theta, size = states.vector(state, "theta", model.ones.size, model.low, model.high), model.u_kinks.size
        index = states.places(state, "index", size)
        w = SparseVector(index, states.vector(state, "values", index.size), size).dense()
        sums = states.vector(state, "u", size), states.vector(state, "u_slack", size, low=0.0)
        formed, room = states.places(state, "formed", size), states.number(state, "room", low=0.0)
        b = states.number(state, "intercept") if self.base.intercept else None
        if states.number(state, "closed", low=0.0) and np.array_equal(theta, model.top):
            theta = model.top  # a solve may end at these values, too, and work after it does not take it for this
        found = model.certify(alpha, w, theta, sums=sums, intercept=b)
        return replace(found, formed=formed, room=room)


def sparse_model(
    views, labels, classes: int, gamma: float, weights=None, intercept: str | None = None, targets=None, ends=HINGE,
    signs=None,
) -> SparseModel:  # fmt: skip
    """Return the model at ``beta = 0``; parameters as of ``SparseModel``; a ``free`` intercept is no feature."""
    if intercept != "free":
        return SparseModel(views, labels, classes, 0.0, gamma, weights, targets, ends, signs)
    from screenpath.problem.sparse_free import FreeSparseModel  # here: models without an intercept start up without it

    if classes > 1:
        raise UsageError(
            f"`intercept=free` is for two labels, and there are {classes}",
            "use `intercept=penalised`, or one label against all others (`positive=LABEL`; in Python pass y == LABEL)",
        )
    return FreeSparseModel(views, labels, classes, 0.0, gamma, weights, targets, ends, signs)
