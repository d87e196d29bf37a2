"""Sums and bias of the L1-regularised squared hinge, against matrices and a search."""

import numpy as np
import pytest

from screenpath.kernels.problem import l1svm as kernels

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
M, N = 6, 9

ANY = np.zeros(50, dtype=np.int8)  # signs of weights


def columns(seed, sparse):
    """Return columns of ``y x`` as a matrix and as the kernels take them, with gaps between the sparse ones."""
    rng = np.random.default_rng(seed)
    F, y = rng.normal(size=(M, N)), rng.choice([-1.0, 1.0], N)
    if not sparse:
        ends = np.arange(M + 1) * N
        return rng, F, y, (F.ravel(), np.empty(0, dtype=np.int32), ends[:-1], ends[1:])
    F[:5] *= rng.random((5, N)) < 0.6  # and one column that is full
    F[2] = 0.0
    data, indices, begin, end = [], [], [], []
    for row in F:
        begin.append(len(data))
        data += row[row != 0.0].tolist()
        indices += np.flatnonzero(row).tolist()
        end.append(len(data))
        data.append(99.0)  # screened
        indices.append(0)
    places = np.array(begin, dtype=np.int64), np.array(end, dtype=np.int64)
    return rng, F, y, (np.array(data), np.array(indices, dtype=np.int32), *places)


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_over_columns(sparse):
    rng, F, y, stored = columns(0, sparse)
    slack, w = rng.normal(size=N), rng.normal(size=M) * (rng.random(M) < 0.6)
    norms, index = rng.random(M), np.array([4, 0, 2, 5])
    r, products = np.maximum(slack, 0.0), np.full(4, np.nan)
    total, squares, balance, lam = r.sum(), r @ r, y @ r, 0.4
    blurred = kernels.blur(total, squares, balance, 0.05) * norms[index]
    weight, reach = np.abs(w[index]).sum(), np.abs(w[index]) @ norms[index]
    for known in (False, True):  # the second time with products that are not those of the columns
        before = products.copy()
        found = kernels.evaluate(stored, index, y, slack, w, norms, ANY, 0.05, lam, known, products)
        if known:
            np.testing.assert_array_equal(products, before)
        else:
            np.testing.assert_allclose(products, F[index] @ r, rtol=1e-12, atol=1e-14)
        scale = min(total / squares, lam / np.max(np.abs(products) + blurred))
        primal, dual = 0.5 * squares + lam * weight, scale * total - 0.5 * scale**2 * squares
        assert found == pytest.approx((primal, primal - dual, scale, total, squares, balance, weight, reach))
        products *= 2.0
    part, *sums = kernels.positive_part(slack, y)
    np.testing.assert_array_equal(part, r)
    assert sums == pytest.approx([total, squares, balance])
    out, weights = rng.normal(size=N), np.array([0.5, 0.0, 2.0, -1.5])
    expected = out + weights @ F[index]
    kernels.columns_add(stored, index, weights, out)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)


def test_what_a_certificate_needs_of_the_columns():
    w, products = np.array([0.0, 2.0, -3.0, 0.5]), np.array([1.0, -4.0, 0.3, 2.0])
    norms, spreads = np.array([1.0, 2.0, 3.0, 4.0]), np.array([9.0, 1.05, 9.0, 9.0])
    sums, inside = (8.0, 16.0, 0.0), np.empty(4)  # |y|.r, ||r||^2, y.r
    rounding = 0.00809183518418728  # blurs the product of a column of norm 1 by 0.1
    assert kernels.blur(*sums, rounding) == pytest.approx(0.1, rel=1e-6)

    def terms(count=4, lam=1.0):
        columns = [a[:count] for a in (w, products, norms, spreads, ANY)]
        found = kernels.certified_terms(*columns[:2], tuple(columns[2:]), lam, rounding, 1.0, *sums, inside)
        np.testing.assert_allclose(inside[:count], products[:count] * found[0] / lam, rtol=1e-15)
        assert found[5] == pytest.approx(np.abs(w[:count]).sum() - w[:count] @ inside[:count])
        return found[:5]

    # |p| + 0.1 ||f||: 1.1, 4.2 (an exact bound says 1.05 * 4), 0.6, 2.4
    assert terms() == pytest.approx((1.0 / 4.2, 1.0 / 3.8, 3, 5.5, 4.0 + 9.0 + 2.0), rel=1e-6)
    # The last: 3.75 +- 0.4 may be larger, and is not surely.
    cases = (1.0, 1.0, 2.0, 4.0), (0.1, 1.0, 2.0, 2.4), (0.8, 1.25, 2.0, 5.0), (9.0, 1.0, 3.75, 4.2)
    for spread, grown, last, largest in cases:
        spreads[1], products[3] = spread, last
        found = kernels.certified_terms(w, products, (norms, spreads, ANY), 1.0, rounding, grown, *sums, inside)
        assert found[:2] == pytest.approx((1.0 / largest, 1.0 / 3.8), rel=1e-6)
    products[3] = 2.0
    spreads[1] = 1.0
    assert terms(lam=9.0)[:2] == (0.5, 0.5)  # the best along the ray
    assert terms(0) == (0.5, 0.5, 0, 0.0, 0.0)
    assert kernels.dual_scale(1.0, 0.0, 0.0, 1.0) == 0.0
    for value in (np.inf, np.nan):
        products[2] = value
        assert kernels.certified_terms(w, products, (norms, spreads, ANY), 1.0, rounding, 1.0, *sums, inside)[0] == 0.0


@pytest.mark.parametrize("seed", range(6))
def test_the_bias_is_where_both_classes_weigh_the_same(seed):
    rng = np.random.default_rng(seed)
    slack, y = rng.normal(size=30) * 10.0 ** rng.uniform(-3.0, 3.0, 30), np.where(np.arange(30) < 5, 1.0, -1.0)
    moved = slack.copy()
    bias = kernels.bias_root(moved, y, 0.7)
    np.testing.assert_allclose(moved, slack - y * (bias - 0.7), rtol=1e-12, atol=1e-9)
    r = np.maximum(moved, 0.0)
    assert abs(y @ r) <= 1e-12 * r.sum()
    assert kernels.bias_root(np.full(4, -1.0), np.array([1.0, 1, -1, -1]), 0.5) == 0.5  # nothing counts
