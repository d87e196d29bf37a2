"""Dual coordinate descent sweeps for box problems (Hsieh et al. 2008), in random order and with shrinking."""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import SUMS, at, kernel
from screenpath.kernels.problem import box
from screenpath.kernels.rows.matrix import Matrix, add, dot, matrix_of
from screenpath.kernels.rows.unowned import unowned


class Task(NamedTuple):
    """A reduced problem of k rows, ``signs[k]`` times ``X[where[k]]``."""

    X: Matrix
    where: np.ndarray
    signs: np.ndarray
    c: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    norms: np.ndarray
    sqnorms: np.ndarray
    errors: box.Errors
    names: np.ndarray  # int64 of shape (k,): numbers of the rows, the same in every step and below ``size``
    size: int


class Iterate(NamedTuple):
    """Where a solve has come to: all of it is updated in place."""

    alpha: np.ndarray  # shape (k,): a dual point
    w: np.ndarray  # shape (d,): ``base + G'alpha``, ``base`` being the sum of the rows fixed beforehand
    margins: np.ndarray  # shape (k,): what they are ``now`` tells
    decided: np.ndarray
    random: np.ndarray  # uint64 of shape (1,): state of the random generator (xorshift64*), see :func:`draws`
    now: np.ndarray  # shape (12,): numbers of a descent, see ``descent.GAP``


@kernel
def draws(seed, rank):
    """Return a step's random state, not 0: the ``rank``-th number of SplitMix64 (Steele et al. 2014) from ``seed``."""
    z = seed + (rank + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state = np.empty(1, dtype=np.uint64)
    state[0] = max(z ^ (z >> np.uint64(31)), np.uint64(1))
    return state


@kernel(fastmath=SUMS, leaf=True)
def cd_sweeps(task, point, active, shrinking, sweeps):
    """Run at most ``sweeps`` sweeps over the rows ``active``, updating ``point.alpha`` and ``point.w``.

    ``active`` is permuted in place; shrinking drops rows from its front part for the rest of this call. Returns the
    rows visited, and the largest minus the smallest projected gradient of the last sweep.
    """
    X, where, signs, c, lo, hi, _, sqnorms, _, _, _ = unowned(task)
    (alpha, w, _, _, random, _), size, touched = unowned(point), active.size, 0
    # A row at its end is dropped only when its gradient points outward by more than the last sweep's worst violation.
    upper, lower = np.inf, -np.inf
    violation = np.inf
    for _ in range(sweeps):
        worst, best = -np.inf, np.inf
        for k in range(size - 1, 0, -1):
            random[0] ^= random[0] >> np.uint64(12)
            random[0] ^= random[0] << np.uint64(25)
            random[0] ^= random[0] >> np.uint64(27)
            draw = (random[0] * np.uint64(2685821657736338717)) >> np.uint64(33)
            j = np.int64((draw * np.uint64(k + 1)) >> np.uint64(31))  # a division would take longer
            active[k], active[j] = active[j], active[k]
        k = 0
        while k < size:
            i = at(active[k])
            touched += 1
            row, sign, a = at(where[i]), float(signs[i]), alpha[i]
            gradient = c[i] - sign * dot(X, row, w)
            if a <= lo[i]:
                if shrinking and gradient < lower:
                    size -= 1
                    active[k], active[size] = active[size], active[k]
                    continue
                projected = max(gradient, 0.0)
            elif a >= hi[i]:
                if shrinking and gradient > upper:
                    size -= 1
                    active[k], active[size] = active[size], active[k]
                    continue
                projected = min(gradient, 0.0)
            else:
                projected = gradient
            worst, best = max(worst, projected), min(best, projected)
            k += 1
            if projected == 0.0:
                continue
            if sqnorms[i] > 0.0:
                value = min(max(a + gradient / sqnorms[i], lo[i]), hi[i])
            else:
                value = hi[i] if gradient > 0.0 else lo[i]
            alpha[i] = value
            add(X, row, sign * (value - a), w)
        violation = worst - best
        upper = worst if worst > 0.0 else np.inf
        lower = best if best < 0.0 else -np.inf
        if size == 0:
            break
    return touched, violation


@kernel(inner=True)
def parted(status, alive, lo, hi, decided):
    """Part the ``alive`` rows by ``status`` and update ``decided``; return those that stay, the others, their ends."""
    kept, fresh, values, n, m = np.empty_like(alive), np.empty_like(alive), np.empty(alive.size), 0, 0
    for r in range(alive.size):  # without branches: which are decided is hard to guess
        i, found = alive[r], status[r] != 0
        kept[n], fresh[m], values[m] = i, i, lo[i] if status[r] < 0 else hi[i]  # unless overwritten by the next one
        decided[i] = status[r]
        n += not found
        m += found
    return kept[:n].copy(), fresh[:m].copy(), values[:m].copy()


def example() -> tuple[Task, Iterate]:
    """Return a problem of two rows and a start, to compile kernels with."""
    one, rows, signs, errors = np.ones(2), np.arange(2), np.ones(2, dtype=np.int8), box.Errors(1e-12, 1e-15, 0.0, 0.0)
    task = Task(matrix_of(np.eye(2)), rows, signs, one, -one, one, one, one, errors, rows, 2)
    zero, random = np.zeros(2), draws(np.uint64(0), np.uint64(0))
    return task, Iterate(zero, zero.copy(), zero.copy(), np.zeros(2, dtype=np.int8), random, np.zeros(12))


def warm_up():
    cd_sweeps(*example(), np.arange(2), True, 1)
