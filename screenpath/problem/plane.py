"""A grid of (alpha, beta) that grows until its pairs serve every point of a rectangle to within epsilon.

The gap of one pair (w, theta) at any (alpha, beta) is that of the losses, plus::

    alpha/2 ||w||^2 + beta ||w||_1 + ||S_beta(u)||^2 / (2 alpha),   u = X' psi(theta) / n,

where the last part is the square of a convex function over a linear one. So the gap is convex in (alpha, beta). As the
primal value of the pair is linear in them, ``gap - epsilon P`` is convex, too: a pair that meets epsilon at the four
corners of a rectangle meets it inside.

The pair solved at ``(alpha_k, beta)`` serves down to ``alpha_(k+1)``, the next step of its row, where it has used half
of epsilon; the row serves down to the ``beta`` of the next one, the least at which all of its pairs meet epsilon.
"""

from __future__ import annotations

from math import log, sqrt

from screenpath.errors import UsageError

SHARE = 0.5  # of epsilon, for the way to the next alpha; the rest is for that to the next beta
HALVINGS = 40, 16  # of the logarithm of the way to the next alpha, and to the next beta
NEAR = 1.0 - 1e-9  # of epsilon, for rounding in whoever looks again; a parameter that is moved by less has not moved


class PlaneGrid:
    """Pairs (alpha, beta) of rows of falling alpha, whose beta falls.

    ``alphas``, ``betas``: largest and smallest. ``epsilon``: guaranteed relative gap; the path's own tolerance has to
    be smaller.
    """

    grows = True  # with the walk
    at_once = True  # it cannot be resumed: what the row of a certificate serves hangs on all of its pairs

    def __init__(self, model, alphas: tuple[float, float], betas: tuple[float, float], epsilon: float):
        self.model, self.alphas, self.betas, self.epsilon = model, alphas, betas, epsilon
        self.restart()

    def restart(self) -> None:
        """Forget all pairs but the first."""
        self._known, self._floor = [(self.alphas[0], self.betas[0])], self.betas[1]

    def __getitem__(self, rank: int) -> tuple[float, float]:
        return self._known[rank]

    def __len__(self) -> int:
        return len(self._known)

    def ahead(self, certificate) -> bool:
        """Tell whether a certificate leads to another pair."""
        return certificate.rel_gap < SHARE * self.epsilon

    def extend(self, rank: int, certificate) -> None:
        """Add the pair after ``rank``, if any, by a data pass; a UsageError if the certificate's gap is too large."""
        alpha, beta = certificate.at
        b = certificate.intercept if self.model.intercept else None
        full = self.model.at(beta).certify(alpha, certificate.w, certificate.theta, intercept=b)

        def serves(end: float) -> bool:
            model, sums = self.model.at(end), (full.u, full.u_slack)
            pair = model.certify(alpha, full.w, full.theta, sums=sums, intercept=b)
            return all(meets(model, pair, corner, self.epsilon) for corner in (alpha, low))

        row = self.model.at(beta)
        low = least(alpha, self.alphas[1], HALVINGS[0], lambda end: meets(row, full, end, SHARE * self.epsilon))
        floor = least(beta, self._floor, HALVINGS[1], serves)
        for name, value, end, last in (("alpha", alpha, low, self.alphas[1]), ("beta", beta, floor, self.betas[1])):
            if not end < NEAR * value and value > last:
                raise UsageError(
                    f"at {name} = {value:g} the relative gap is {certificate.rel_gap:.1e}: too large to cover a plane "
                    f"to {self.epsilon:g}",
                    "use a smaller `tol` or a larger `eps_path`",
                )
        self._floor = floor
        if low > self.alphas[1]:
            self._known.append((low, beta))
        elif floor > self.betas[1]:
            self._known.append((self.alphas[0], floor))
            self._floor = self.betas[1]

    def covered(self) -> float:
        """Return the share of the range of beta, in the logarithm, that whole rows serve."""
        return log(self.betas[0] / self._known[-1][1]) / log(self.betas[0] / self.betas[1])

    def most(self, tol: float) -> int:
        """Return that the number of pairs is not known: it hangs on how many features gain a weight."""
        return 0

    def guarantee(self, done: int) -> dict:
        """Return the entry of run.json: the rectangle, as far as whole rows cover it."""
        whole = done == len(self._known) and self._known[-1][0] != self.alphas[0] and self._floor == self.betas[1]
        end = self.betas[1] if whole else self._known[min(done, len(self._known) - 1)][1]
        alpha, beta = (dict(zip(("from", "to"), ends, strict=True)) for ends in (self.alphas, (self.betas[0], end)))
        return {"epsilon": self.epsilon, "alpha": alpha, "beta": beta}


def least(start: float, end: float, halvings: int, good) -> float:
    """Return the smallest value found from ``start`` down to ``end`` at which a convex condition holds."""
    if end >= start or good(end):
        return min(start, end)
    bad = end
    for _ in range(halvings):
        middle = sqrt(start) * sqrt(bad)
        if good(middle):
            start = middle
        else:
            bad = middle
    return start


def meets(model, pair, alpha: float, epsilon: float) -> bool:
    """Tell whether a pair meets a relative gap at another ``alpha``, rounding counted."""
    primal = pair.primal + 0.5 * (alpha - pair.alpha) / pair.alpha * pair.w_sq
    return model.gap_at(pair, alpha) <= NEAR * epsilon * (primal - 2.0 * pair.primal_error)


def serving(steps, guarantee: dict, alpha: float, beta: float):
    """Return the row of the step table that serves a point, of a path that covers the plane; None if none does."""
    if not all(guarantee[name]["to"] <= value for name, value in (("alpha", alpha), ("beta", beta))):
        return None
    rows = {step["beta"] for step in steps if step["beta"] >= beta}
    row = [step for step in steps if rows and step["beta"] == min(rows) and step["alpha"] >= alpha]
    return min(row, key=lambda step: step["alpha"], default=None)
