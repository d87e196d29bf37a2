"""Writing LIBSVM text of fixed-point numbers, for generated sets that are too large for memory."""

import numpy as np

from screenpath.kernels import kernel

LONGEST = 32  # bytes that one cell can take at most: index, colon, number, blank


@kernel()
def _whole(number, at, out):
    """Write the digits of a whole number >= 0 at ``out[at]``; return the position after them."""
    digits, rest = 1, number // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for k in range(digits - 1, -1, -1):
        out[at + k] = 48 + number % 10
        number //= 10
    return at + digits


@kernel()
def fixed_lines(X, signs, out):
    """Write rows as LIBSVM text with four decimals, cells that round to 0 left out; return the bytes written.

    ``signs`` are the labels -1 and 1; ``out`` (uint8) has at least ``n * (p + 1) * LONGEST`` bytes.
    """
    at = 0
    for i in range(X.shape[0]):
        if signs[i] < 0.0:
            out[at] = 45
            at += 1
        out[at] = 49
        at += 1
        for j in range(X.shape[1]):
            number = np.int64(np.rint(abs(X[i, j]) * 10000.0))
            if number == 0:
                continue
            out[at] = 32
            at = _whole(j + 1, at + 1, out)
            out[at] = 58
            at += 1
            if X[i, j] < 0.0:
                out[at] = 45
                at += 1
            at = _whole(number // 10000, at, out)
            fraction = number % 10000
            if fraction > 0:
                out[at] = 46
                out[at + 1] = 48 + fraction // 1000
                out[at + 2] = 48 + fraction // 100 % 10
                out[at + 3] = 48 + fraction // 10 % 10
                out[at + 4] = 48 + fraction % 10
                at += 5
        out[at] = 10
        at += 1
    return at


def warm_up():
    fixed_lines(np.ones((1, 1)), np.ones(1), np.empty(64, dtype=np.uint8))
