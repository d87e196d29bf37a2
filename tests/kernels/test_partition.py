"""Parting fixed variables from survivors, against what numpy says of all rows at once."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from screenpath.kernels.problem import partition

SIZES = st.one_of(st.integers(1, 40), st.sampled_from([1023, 1024, 1025, 1032, 2100]))


def problem(seed, n, still):
    """Return a random box, a dual point of which many variables are at an end, and decisions."""
    rng = np.random.default_rng(seed)
    c, lo = rng.normal(size=n), -rng.uniform(0.0, 2.0, n)
    hi = lo + rng.choice([0.0, 1.0, 2.5], n)  # some boxes are a point
    theta = np.choose(rng.integers(0, 3, n), [lo, hi, lo + rng.uniform(0.0, 1.0, n) * (hi - lo)])
    decided = rng.choice([-1, 0, 1], n, p=[0.45, 0.1, 0.45]).astype(np.int8)
    at_end = np.where(theta == lo, -1, np.where(theta == hi, 1, 0))
    return c, lo, hi, theta, np.where(rng.random(n) < still, at_end, decided).astype(np.int8), rng


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31), n=SIZES, still=st.sampled_from([0.0, 0.9, 1.0]))
def test_parts(seed, n, still):
    c, lo, hi, theta, status, _ = problem(seed, n, still)
    before = theta.copy()
    index, linear, moved = partition.box_part(status, lo, hi, c, theta, float(c @ theta))
    np.testing.assert_array_equal(theta, before)
    end = np.where(status > 0, hi, lo)
    np.testing.assert_array_equal(index, np.flatnonzero(status == 0))
    assert set(np.flatnonzero((status != 0) & (end != theta))) <= set(moved) <= set(np.flatnonzero(status))
    np.testing.assert_allclose(linear, c[status != 0] @ end[status != 0], rtol=1e-9, atol=1e-9 * np.abs(c).sum())
    signs, step = np.where(c > 0, 1, -1).astype(np.int8), np.zeros(n)
    partition.box_moves(moved, status, lo, hi, signs, theta, step)
    np.testing.assert_array_equal(theta, np.where(status != 0, end, before))
    np.testing.assert_array_equal(step, signs * (theta - before))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), n=SIZES)
def test_ends_and_their_changes(seed, n):
    c, lo, hi, theta, status, rng = problem(seed, n, 0.5)
    ends = np.empty(n, dtype=np.int8)
    n_R, n_L, nonzero = partition.box_ends(theta, lo, hi, ends, 0, n)
    expected = np.where(theta == lo, -1, np.where(theta == hi, 1, 0))
    np.testing.assert_array_equal(ends, expected)
    assert (n_R, n_L, nonzero) == (np.sum(expected < 0), np.sum(expected > 0), np.count_nonzero(theta))
    listed = np.sort(rng.choice(n, size=rng.integers(0, n + 1), replace=False))
    held, signs = theta[listed].copy(), np.where(c > 0, 1, -1).astype(np.int8)
    some = listed[rng.random(listed.size) < 0.5]
    theta[some] = np.choose(rng.integers(0, 3, some.size), [lo[some], hi[some], 0.5 * (lo[some] + hi[some])])
    step, found = np.full(n, np.nan), np.empty(listed.size, dtype=np.int64)
    changed, more_R, more_L, more = partition.changes(listed, theta, held, lo, hi, signs, ends, step, found)
    differ = listed[theta[listed] != held]
    np.testing.assert_array_equal(found[:changed], differ)
    np.testing.assert_array_equal(step[differ], (signs[listed] * (theta[listed] - held))[theta[listed] != held])
    again = np.empty(n, dtype=np.int8)
    counts = partition.box_ends(theta, lo, hi, again, 0, n)
    np.testing.assert_array_equal(ends, again)
    assert counts == (n_R + more_R, n_L + more_L, nonzero + more)


def test_counts_of_a_point():
    assert partition.shares(10, 3, 5, 2, 4) == (2, 4, 0.6, 0.75)
    assert partition.shares(10, 0, 0, 0, 0) == (10, 10, 0.0, 0.0)
