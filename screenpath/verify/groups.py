r"""A penalty on groups of features: ``beta Omega(w)``, ``Omega(w) = (1 - tau) sum_g p_g ||w_g|| + tau ||w||_1``.

The columns' part of the gap is what Fenchel's inequality leaves, term by term: ``alpha/2 ||w||^2 + beta Omega(w) - u.w
+ sum_g max(0, ||v_g|| - beta (1 - tau) p_g)^2 / (2 alpha)``, where ``v`` is the soft threshold of ``u`` by ``beta
tau``. Each term is right to a few units of itself; ``u`` that is off by a vector of norm e adds ``(slope + e / (2
alpha)) e``. At ``alpha = 0`` the last term is 0 where ``||v_g|| <= beta (1 - tau) p_g``; else the dual point is scaled.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from screenpath.verify.exact import UNIT, UP, fsum, norm_above

HALVINGS = 80


def read_groups(path, count: int, names: list[str]) -> np.ndarray | None:
    """Return number and weight of the group of each feature, shape (2, count); None where the file holds no such."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
        labels, given = [token for line in lines for token in line.split()], {}
        if lines[0].replace(" ", "").lower().startswith("feature,group"):
            places = {str(j + 1): j for j in range(count)} | {name: j for j, name in enumerate(names)}
            rows = [[cell.strip() for cell in row] for row in csv.reader(lines[1:]) if row]
            given = {row[1]: float(row[2]) for row in rows if len(row) > 2}
            at = {places[row[0]]: row[1] for row in rows}
            labels = [at[j] for j in range(count)]
    except (OSError, ValueError, LookupError):
        return None
    if len(labels) != count:
        return None
    number = {label: float(k) for k, label in enumerate(dict.fromkeys(labels))}
    weights = [given.get(label, math.sqrt(labels.count(label))) for label in number]
    return np.array([[number[label] for label in labels], [weights[int(number[label])] for label in labels]])


class Groups:
    """Groups by the numbers, weights and share of a certificate's header, a bias being a group of its own, weight 1."""

    def __init__(self, of: np.ndarray, weights: np.ndarray, share: float, penalised: int):
        more = penalised - of.size
        of, weights = np.append(of, [-1.0] * more), np.append(weights, [1.0] * more)
        _, first, self.of = np.unique(of, return_index=True, return_inverse=True)
        self.weights, self.share = weights[first], share
        self.right = bool(np.all(weights == self.weights[self.of])) and bool(
            np.all((weights > 0.0) & (weights < math.inf))
        )
        self.off = (float(np.bincount(self.of).max()) + 32.0) * UNIT  # relative error of a norm, and of a term
        self.least = float(((1.0 - share) * self.weights + share).min())  # of Omega(w) over ||w||

    def norms(self, values: np.ndarray) -> np.ndarray:
        return np.sqrt(np.bincount(self.of, np.square(values)))

    def terms(self, w: np.ndarray, beta: float) -> list[np.ndarray]:
        return [beta * (1.0 - self.share) * self.weights * self.norms(w), beta * self.share * np.abs(w)]

    def rest(self, u: np.ndarray, beta: float) -> np.ndarray:
        """Return ``S(u)``, the part of ``u`` beyond what the penalty holds."""
        v = np.sign(u) * np.maximum(np.abs(u) - beta * self.share, 0.0)
        sizes = self.norms(v)
        over = np.maximum(sizes - beta * (1.0 - self.share) * self.weights, 0.0)
        return v * np.divide(over, sizes, out=np.zeros(sizes.size), where=sizes > 0.0)[self.of]

    def columns(
        self, w: np.ndarray, u: np.ndarray, slack: np.ndarray, alpha: float, beta: float
    ) -> tuple[float, float]:
        """Return the columns' part of the gap, at most, and how it grows with a move of ``u``, which is off by
        ``slack``.
        """
        S, far = self.rest(u, beta), norm_above(slack)
        terms, slope = [*self.terms(w, beta), -u * w], norm_above(w)
        if alpha:
            terms += [0.5 * alpha * w * w, 0.5 * S * S / alpha]
            lost = self.off * (norm_above(S) + beta * norm_above(self.weights + np.sqrt(np.bincount(self.of))))
            slope = norm_above(S / alpha - w) + lost / alpha
            far += lost
        every = np.concatenate(terms)
        error = self.off * fsum(np.abs(every)) + UP * (slope * far + (0.5 * far * far / alpha if alpha else 0.0))
        return fsum(every) + UP * error, UP * (slope + (far / alpha if alpha else 0.0))

    def dual_norm(self, sizes: np.ndarray) -> float:
        """Return the dual norm of a vector, at most, from its absolute values."""
        parts = (1.0 - self.share) * self.weights
        low, high = np.zeros(parts.size), 2.0 * self.norms(sizes) / (parts + self.share)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            fits = self.norms(np.maximum(sizes - self.share * middle[self.of], 0.0)) <= parts * middle
            low, high = np.where(fits, low, middle), np.where(fits, middle, high)
        return float(high.max()) * (1.0 + 4.0 * self.off)
