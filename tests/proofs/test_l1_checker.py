"""The checker of the L1-SVM's certificates against fractions: what a scaling has rounded, beside centred columns."""

from fractions import Fraction as F
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from screenpath.verify import certificate, products
from screenpath.verify.data import Block, scaled
from screenpath.verify.exact import UNIT, fsum
from screenpath.verify.products import Centred

N, SCALE = 12, 1.9
ENTRY = 16.0 * UNIT * UNIT  # relative error that an entry may have (`data.Block`)
WEIGHT = 2.0**56  # of the column: what its entries differ by is multiplied to whole numbers
LABELS = np.where(np.arange(N) % 3, 1.0, -1.0)


@cache
def column() -> np.ndarray:
    """Return numbers whose quotients by ``SCALE`` are one double but for two of them, two units above and below.

    The double is very near to the quotient: nearly nothing is left of the entries beside their centre. Those
    two are on the right side of their margin, and count in no sum.
    """

    def rest(x):
        return F(x) / F(SCALE) - F(x / SCALE)

    x = min((2.5 + k * 2.0**-51 for k in range(2000)), key=lambda x: abs(rest(x)) or 1)
    raw = np.full(N, x)
    raw[1], raw[3] = x + 2.0**-50, x - 2.0**-50  # of the classes +1 and -1
    units = (raw / SCALE - x / SCALE) * 2.0**52
    assert units[1] >= 2.0 and units[3] <= -2.0 and np.count_nonzero(units) == 2
    return raw


def source(raw, off):
    """Return the header of a certificate and a stand-in for its data: entries are off by ``off`` of what they are."""
    header = {
        "model": "l1svm", "scaling": "maxabs", "scale": np.array([SCALE]), "bias": 1.0,
        "labels": {"+1": 1.0, "-1": -1.0},
    }  # fmt: skip

    def passed(indices):
        for first, stop in ((0, 7), (7, N)):
            rows, part = stop - first, slice(first, stop)
            plain = Block(first, LABELS[part], np.arange(rows + 1), np.zeros(rows, dtype=np.int64), raw[part].copy())
            block = scaled(plain, header, 1)
            data = block.columns == 0
            block.tails[data] += off[part] * block.values[data]
            yield block

    return header, SimpleNamespace(n=N, d=1, passed=passed)


@pytest.mark.parametrize("against", ["sums", "slacks"])
def test_what_an_entry_may_be_off_by_counts_in_full(against, monkeypatch):
    """Beside a centre an entry is off by a part of what it was, not of what is left of it.

    That term alone holds the bound on either of two things; without it each would be less than the truth.
    """
    raw = column()
    # A little less than what is allowed, of which the division takes some.
    header, data = source(raw, 0.9 * ENTRY * LABELS)
    centred = Centred(data)
    assert sum(block.labels.size for block in centred.passed(indices=True)) == N
    center = centred.centres[0]
    for block in centred.passed(indices=False):  # of a value that may be twice the centre, and as much again
        np.testing.assert_array_equal(block.unknown, 4.0 * ENTRY * np.abs(centred.centres))
    entry = {
        "step": 0, "index": np.array([0]), "values": np.array([WEIGHT]), "lambda": 1e-3, "b": -center * WEIGHT,
    }  # fmt: skip
    ends, bound = [], certificate.bound
    monkeypatch.setattr(certificate, "bound", lambda *given: ends.append(given) or bound(*given))
    (pair,) = products.check(header, [entry], data)
    (sums,) = pair.sums
    rows = [given for given in ends if np.ndim(given[1])]  # the other bounds are those of losses
    alpha = np.concatenate([theta for _, theta, _, _ in rows])
    low, high = (np.concatenate([given[k][0] for given in rows]) for k in (2, 3))
    t, error = 0.5 * (low + high), 0.5 * (high - low) * (1.0 + 4.0 * UNIT)
    a, signs, m = [F(v) for v in alpha.tolist()], [F(v) for v in LABELS.tolist()], F(float(center))
    exact = [F(x) / F(SCALE) - m for x in raw.tolist()]
    bias = F(float(entry["b"])) + m * F(WEIGHT)

    pull = sum(s * v * x for s, v, x in zip(signs, a, exact, strict=True))
    slack = [1 - s * (x * F(WEIGHT) + bias) for s, x in zip(signs, exact, strict=True)]
    # What is true, what is said to be no less, and what the entries' own errors are of that.
    truth, most, own = {
        "sums": (abs(pull - F(sums.total[0]) - F(sums.rest[0])), sums.error[0], fsum(alpha)),
        "slacks": (abs(slack[0] - F(t[0])), error[0], WEIGHT),
    }[against]
    assert np.count_nonzero(alpha) == N - 2
    assert F(most) - F(4.0 * ENTRY * abs(center) * own) < truth <= F(most)


def test_columns_have_a_centre_where_differences_from_it_are_doubles(monkeypatch):
    """That is where all rows have a value, and none is more than twice another of its sign."""
    columns = np.array([
        [1.0, 1.5, 2.0, 1.7], [1.0, 1.5, 2.0 + UNIT * 4, 1.7], [-0.5, -0.3, -0.25, -0.4], [-0.5, -0.3, -0.2, -0.4],
        [-1.0, 1.2, 1.5, 1.3], [0.0, 1.0, 1.0, 1.0], [1.2, 1.3, 1.5, np.nan], [1.0, 1.0, 1.0, 1.0],
    ])  # fmt: skip
    full = [True, False, True, False, False, False, False, False]  # the last one is that of the bias

    def passed(indices):
        for part in (columns[:, :1], columns[:, 1:]):
            where, rows = np.nonzero(~np.isnan(part))
            yield SimpleNamespace(columns=where, rows=rows, values=part[where, rows], tails=None)

    centred = Centred(SimpleNamespace(n=4, d=7, passed=passed))
    assert len(list(centred.passed(indices=True))) == 2
    np.testing.assert_array_equal(centred.centres != 0.0, full)
    np.testing.assert_allclose(centred.centres[full], columns[full].mean(axis=1))
    for plain, block in zip(passed(False), centred.passed(indices=False), strict=True):
        for x, j, left in zip(plain.values, block.columns, block.values, strict=True):
            assert F(left) == F(x) - F(centred.centres[j])
    for name, value in (("UNIT", 0.01), ("TINY", 0.003)):
        monkeypatch.setattr(products, name, value)
    w = np.array([0.5, 9.0, 2.0, 9.0, 9.0, 9.0, 9.0, 0.25])
    moved, off = centred.moved(w, -0.125)
    bias = 0.125 + 0.5 * centred.centres[0] + 2.0 * centred.centres[2]
    np.testing.assert_allclose(moved, [*w[:-1], bias])
    assert off == pytest.approx(0.125 + 0.01 * abs(bias) + 2 * 0.003)
