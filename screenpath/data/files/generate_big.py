"""A set of any size as LIBSVM text, block by block: what the experiments larger than memory run on.

Row i is ``s_i (y_i mu + noise)`` with ``||mu|| = 1``, noise N(0, 0.05^2) in each coordinate and ``log s_i`` N(0, 1).
The classes are apart, and the margins of the rows spread over orders of magnitude, so that at every C most rows are
far from their kink. Values have four decimals.
"""

from __future__ import annotations

import numpy as np

from screenpath.errors import UsageError

NAME = "big"
N, P = 20_000_000, 50
NOISE = 0.05
BLOCK_CELLS = 1 << 20  # numbers made at once


def big_text(seed: int = 0, n: int | None = None, p: int | None = None):
    """Yield blocks of LIBSVM text, each of whole lines: 20 million samples and 50 features by default.

    Every block of rows has random numbers of its own, from the seed and its number: memory does not grow with ``n``. A
    block is valid until the next one is asked for.
    """
    if seed < 0:
        raise UsageError(f"the seed is {seed}", "Give a seed of 0 or more.")
    return _blocks(seed, N if n is None else n, P if p is None else p)


def _blocks(seed: int, n: int, p: int):
    from screenpath.kernels.rows.text import LONGEST, fixed_lines

    rows = max(1, BLOCK_CELLS // p)
    mean = np.where(np.arange(p) % 2 == 0, 1.0, -1.0) / np.sqrt(p)
    out = np.empty(rows * (p + 1) * LONGEST, dtype=np.uint8)
    for k, start in enumerate(range(0, n, rows)):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, k))))
        count = min(rows, n - start)
        signs = 1.0 - 2.0 * rng.integers(0, 2, size=count)
        X = NOISE * rng.standard_normal((count, p)) + signs[:, None] * mean
        X *= np.exp(rng.standard_normal(count))[:, None]
        yield out.data[: fixed_lines(X, signs, out)]
