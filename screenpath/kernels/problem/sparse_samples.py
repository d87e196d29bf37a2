"""Sums over samples of the sparse SVM, binary and multi-class: dual variables, losses, and what they weigh.

Layout of all arrays, and what ``psi`` is: see ``kernels/problem/sparse.py``.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, kernel
from screenpath.kernels.problem.share import step_share


class Samples(NamedTuple):
    """The samples' part of the losses: ``gamma``, labels (int64), weights, and the number of classes.

    ``n`` counts the samples of the whole data: the loss is a mean over them.
    """

    labels: np.ndarray
    weights: np.ndarray
    n: int
    classes: int
    gamma: float


@kernel(leaf=True)
def slack_of(scores, own, n, classes, i, k):
    """Return ``1 - m`` of the dual variable ``k``, of sample ``i`` with the label ``own``."""
    return 1.0 - own * scores[i] if classes == 1 else 1.0 - scores[own * n + i] + scores[k]


@kernel(leaf=True)
def weigh(theta, samples, psi):
    """Write ``psi`` of dual variables (see the module)."""
    labels, weights, n, classes, _ = samples
    if classes == 1:
        for i in range(n):
            psi[i] = labels[i] * theta[i] * weights[i]
        return
    for i in range(n):
        own = labels[i]
        total = 0.0
        for c in range(classes):
            if c != own:
                psi[c * n + i] = -theta[c * n + i] * weights[i]
                total += theta[c * n + i]
        psi[own * n + i] = total * weights[i]


@kernel(leaf=True)
def respond(scores, samples, status, theta, psi):
    """Write ``theta(w)`` and its ``psi`` from the scores ``X w``; a screened dual variable keeps its value.

    Returns the sum of the losses; that of a screened dual variable is 0 (R) or ``t - gamma/2`` (L) whatever ``t``.
    """
    labels, weights, n, classes, gamma = samples
    loss = 0.0
    for i in range(n):
        own, weight = labels[i], weights[i]
        total = 0.0
        for c in range(classes):
            k = c * n + i
            if classes > 1 and c == own:
                theta[k] = 0.0
                continue
            t = slack_of(scores, own, n, classes, i, k)
            if status[k] < 0 or (status[k] == 0 and t <= 0.0):
                value = 0.0
            elif status[k] > 0 or t >= gamma:
                value = 1.0
                loss += weight * (t - 0.5 * gamma)
            else:
                value = t / gamma
                loss += weight * (0.5 * t * value)
            theta[k] = value
            total += value
            psi[k] = weight * (own * value if classes == 1 else -value)
        if classes > 1:
            psi[own * n + i] = weight * total
    return loss


@kernel(fastmath=SUMS, leaf=True)
def sample_terms(scores, samples, theta):
    """Sum what a certificate needs over the dual variables, each with its sample's weight.

    Returns
    -------
    loss, slack : float
        Sum of the (weighted) losses, and of the samples' shares of the gap, ``l(t) - theta t + gamma/2 theta^2``.
    theta_sum, theta_sq, apart_sq : float
        ``sum theta``, ``sum theta^2`` and ``||theta - theta(w)||^2``.
    n_R, n_L : int
        Dual variables at 0 and at 1.
    """
    labels, weights, n, classes, gamma = samples
    loss, slack, theta_sum, theta_sq, apart_sq = 0.0, 0.0, 0.0, 0.0, 0.0
    n_R, n_L = 0, 0
    if classes == 1:
        for i in range(n):
            t = 1.0 - labels[i] * scores[i]
            value, weight = theta[i], weights[i]
            best = min(max(t / gamma, 0.0), 1.0)
            loss += weight * (best * (t - 0.5 * gamma * best))
            slack += weight * step_share(value, t, best, 0.0, 1.0, gamma)
            apart_sq += weight * ((best - value) * (best - value))
            theta_sum += weight * value
            theta_sq += weight * (value * value)
            n_R += value == 0.0
            n_L += value == 1.0
        return loss, slack, theta_sum, theta_sq, apart_sq, n_R, n_L
    for i in range(n):
        own, weight = labels[i], weights[i]
        for c in range(classes):
            k = c * n + i
            if c == own:
                continue
            t = 1.0 - scores[own * n + i] + scores[k]
            value = theta[k]
            best = min(max(t / gamma, 0.0), 1.0)
            loss += weight * (best * (t - 0.5 * gamma * best))
            slack += weight * step_share(value, t, best, 0.0, 1.0, gamma)
            apart_sq += weight * ((best - value) * (best - value))
            theta_sum += weight * value
            theta_sq += weight * (value * value)
            if value == 0.0:
                n_R += 1
            elif value == 1.0:
                n_L += 1
    return loss, slack, theta_sum, theta_sq, apart_sq, n_R, n_L


@kernel(leaf=True)
def pair_weights(samples, out):
    """Write to ``out[c n + i]`` the summed weights of sample ``i``'s dual variables that involve class ``c``."""
    labels, weights, n, classes, _ = samples
    for i in range(n):
        for c in range(classes):
            out[c * n + i] = weights[i] * (classes - 1.0 if classes > 1 and c == labels[i] else 1.0)


def warm_up():
    a, b, status = np.ones(2), np.ones(2), np.zeros(2, dtype=np.int8)
    samples = Samples(np.array([1, -1], dtype=np.int64), a, 2, 1, 0.5)
    weigh(a, samples, b)
    respond(a, samples, status, b, b.copy())
    sample_terms(a, samples, b)
    pair_weights(samples, b)
