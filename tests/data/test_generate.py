"""The synthetic sets have the papers' shapes and moments, and depend on the seed alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.data.files.generate import NAMES, SETS, generate
from screenpath.errors import UsageError

SHAPES = {
    "wang-toy1": (2000, 2), "wang-toy2": (2000, 2), "wang-toy3": (2000, 2), "ogawa-toy": (600, 2),
    "ogawa2014-toy": (1000, 2), "hong-syn1": (10_000, 1_000), "hong-syn2": (10_000, 10_000),
    "hong-syn3": (1_000, 10_000), "hong-syn-multi1": (10_000, 1_000), "hong-syn-multi2": (10_000, 10_000),
    "hong-syn-multi3": (1_000, 10_000),
}  # fmt: skip
SMALL = {name: {} if shape[1] == 2 else {"n": 600, "p": 1000} for name, shape in SHAPES.items()}


def test_default_sizes_are_the_papers():
    assert {name: (SETS[name].n, SETS[name].p) for name in NAMES} == SHAPES


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bytes(name):
    (X, y), (again, y_again), (other, _) = (generate(name, seed, **SMALL[name]) for seed in (7, 7, 8))
    assert X.shape == (SMALL[name].get("n", SHAPES[name][0]), SMALL[name].get("p", 2))
    assert y.tobytes() == y_again.tobytes()
    for part in ("data", "indices", "indptr") if sp.issparse(X) else ("data",):
        assert bytes(getattr(X, part)) == bytes(getattr(again, part))
    assert bytes(X.data) != bytes(other.data)
    sizes = np.unique(y, return_counts=True)[1]
    assert np.ptp(sizes) <= 1
    assert len(set(y[:50])) > 1  # rows are not sorted by class


@pytest.mark.parametrize(
    "name, mean, spread",
    [
        ("wang-toy1", 1.5, 0.75), ("wang-toy2", 0.75, 0.75), ("wang-toy3", 0.5, 0.75), ("ogawa-toy", 1.5, 0.75),
        ("ogawa2014-toy", 0.5, 1.5),
    ],
)  # fmt: skip
def test_planar_sets_have_the_papers_moments(name, mean, spread):
    X, y = generate(name, 1)
    assert set(y) == {-1.0, 1.0}
    for sign in (-1.0, 1.0):
        points = X[y == sign]
        error = spread / np.sqrt(len(points))  # standard error of the mean
        assert points.mean(axis=0) == pytest.approx([sign * mean] * 2, abs=5 * error)
        assert np.cov(points.T) == pytest.approx(spread**2 * np.eye(2), abs=5 * spread**2 * np.sqrt(2 / len(points)))


def test_two_class_sparse_set_has_the_papers_moments():
    X, y = generate("hong-syn1", 2, n=2000)
    assert isinstance(X, sp.csr_matrix)
    assert X.has_sorted_indices and X.has_canonical_format
    assert X.indices.dtype == np.int32
    informative, noise = X[:, :20].toarray(), X[:, 20:]
    assert np.count_nonzero(informative) == informative.size
    signed = informative * y[:, None]
    assert signed.mean() == pytest.approx(1.5, abs=0.03)
    assert signed.var() == pytest.approx(0.75, abs=0.03)  # the variance is 0.75, not the deviation
    assert noise.nnz / np.prod(noise.shape) == pytest.approx(0.02, abs=5e-4)
    assert noise.data.mean() == pytest.approx(0.0, abs=0.03)
    assert noise.data.var() == pytest.approx(1.0, abs=0.05)
    columns = np.diff(noise.tocsc().indptr)  # each column is hit alike: 40 +- 6.3 times
    assert columns.min() > 10
    assert columns.max() < 80


def test_five_class_set_has_the_papers_moments():
    X, y = generate("hong-syn-multi1", 3, n=1000)
    assert set(y) == {1.0, 2.0, 3.0, 4.0, 5.0}
    informative = X[:, :20].toarray()
    for label in range(1, 6):
        rows = informative[y == label]
        own = np.arange(20) // 4 == label - 1
        assert rows[:, own].mean() == pytest.approx(1.5, abs=0.15)
        assert rows[:, own].var() == pytest.approx(0.75, abs=0.2)
        assert rows[:, ~own].mean() == pytest.approx(0.0, abs=0.1)
        assert rows[:, ~own].var() == pytest.approx(1.0, abs=0.15)
    assert X[:, 20:].nnz / (1000 * 980) == pytest.approx(0.2, abs=3e-3)


@pytest.mark.parametrize(
    "name, sizes, word",
    [
        ("wang-toy4", {}, "hong-syn-multi3"), ("wang-toy1", {"p": 3}, "two features"),
        ("wang-toy1", {"n": 1}, "n >= 2"), ("wang-toy1", {"seed": -1}, "seed"),
        ("hong-syn1", {"p": 20}, "multiple of 50"), ("hong-syn-multi1", {"p": 300}, "multiple of 250"),
    ],
)  # fmt: skip
def test_impossible_requests_are_usage_errors(name, sizes, word):
    with pytest.raises(UsageError) as caught:
        generate(name, **sizes)
    assert word in str(caught.value)


def test_odd_sizes():
    X, y = generate("ogawa-toy", n=7)
    assert X.shape == (7, 2)
    assert np.sum(y == 1) == 4
