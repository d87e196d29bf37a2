"""The synthetic data sets of the papers, and one of any size for experiments larger than memory.

Rows come in random order; the classes are of equal size (the first ones get one row more if n does not divide).
The same name, sizes and seed give the same bytes with the same version of numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from screenpath.errors import UsageError
from screenpath.numbers import sparse as sp
from screenpath.numbers.csr import row_pointers

INFORMATIVE_SHARE = 0.02  # of the features, in the sets of Hong et al.
BIG = "big"
BIG_N, BIG_P, BIG_NOISE = 20_000_000, 50, 0.05
BLOCK_CELLS = 1 << 20  # numbers per block


@dataclass(frozen=True)
class SyntheticSet:
    """Default size of a set and the numbers of its paper."""

    n: int  # default samples (n) and features (p); the planar sets always have p = 2
    p: int
    # every informative coordinate has this mean in its own class (and minus it in the other of two classes)
    mean: float
    variance: float  # of the informative coordinates around that mean
    classes: int
    # probability that a non-informative entry is N(0, 1) and not 0; 0 marks a planar set
    density: float
    source: str


WANG, HONG, HONG_MULTI = (
    "Wang et al. 2014, section 7.1", "Hong et al. 2019, section 6.1", "Hong et al. 2019, section 6.3",
)  # fmt: skip
SETS: dict[str, SyntheticSet] = {
    "wang-toy1": SyntheticSet(2000, 2, 1.5, 0.75**2, 2, 0.0, WANG),
    "wang-toy2": SyntheticSet(2000, 2, 0.75, 0.75**2, 2, 0.0, WANG),
    "wang-toy3": SyntheticSet(2000, 2, 0.5, 0.75**2, 2, 0.0, WANG),
    "ogawa-toy": SyntheticSet(600, 2, 1.5, 0.75**2, 2, 0.0, "Ogawa et al. 2013, section 5"),
    "ogawa2014-toy": SyntheticSet(1000, 2, 0.5, 1.5**2, 2, 0.0, "Ogawa et al. 2014, section V-A"),
    "hong-syn1": SyntheticSet(10_000, 1_000, 1.5, 0.75, 2, 0.02, HONG),
    "hong-syn2": SyntheticSet(10_000, 10_000, 1.5, 0.75, 2, 0.02, HONG),
    "hong-syn3": SyntheticSet(1_000, 10_000, 1.5, 0.75, 2, 0.02, HONG),
    "hong-syn-multi1": SyntheticSet(10_000, 1_000, 1.5, 0.75, 5, 0.2, HONG_MULTI),
    "hong-syn-multi2": SyntheticSet(10_000, 10_000, 1.5, 0.75, 5, 0.2, HONG_MULTI),
    "hong-syn-multi3": SyntheticSet(1_000, 10_000, 1.5, 0.75, 5, 0.2, HONG_MULTI),
}
NAMES = tuple(SETS)


def checked_name(name: str, names: tuple[str, ...] = NAMES) -> None:
    """Raise a :class:`UsageError`, which lists the sets, if there is none of that name."""
    if name not in names:
        raise UsageError(f"there is no synthetic set {name!r}", f"Choose one of: {', '.join(names)}.")


def generate(
    name: str, seed: int = 0, *, n: int | None = None, p: int | None = None
) -> tuple[np.ndarray | sp.csr_matrix, np.ndarray]:
    """Generate a synthetic set of the papers, one of ``NAMES``, by PCG64: ``X``, shape (n, p), and ``y``, float64.

    ``n`` and ``p``, samples and features, are in place of the paper's. The planar sets (Wang, Ogawa) are dense and have
    two features always; others are CSR with int32 indices, sorted in each row. Labels are -1 and 1, or 1 to 5.
    """
    checked_name(name)
    if seed < 0:
        raise UsageError(f"the seed is {seed}", "Give a seed of 0 or more.")
    which = SETS[name]
    n = which.n if n is None else n
    p = which.p if p is None else p
    if n < which.classes:
        raise UsageError(f"{name} has {which.classes} classes, but n is {n}", f"Ask for n >= {which.classes}.")
    rng = np.random.Generator(np.random.PCG64(seed))
    group = rng.permutation(np.arange(n) % which.classes)
    if which.density == 0.0:
        if p != 2:
            raise UsageError(f"{name} has two features, but p is {p}", "Leave out `p`.")
        y = 1.0 - 2.0 * group
        X = rng.standard_normal((n, 2)) * np.sqrt(which.variance) + which.mean * y[:, None]
        return X, y
    width = round(INFORMATIVE_SHARE * p)
    share = 1 if which.classes == 2 else which.classes
    if width < 1 or width % share or width >= p:
        smallest = round(share / INFORMATIVE_SHARE)
        what = f"{name} has 0.02 p informative features, a multiple of {share}, but p is {p}"
        raise UsageError(what, f"Ask for a multiple of {smallest}.")
    return _sparse(rng, which, group, p, width)


def _sparse(rng, which: SyntheticSet, group, p: int, width: int):
    """Return rows of ``width`` informative features followed by sparse noise, and the labels.

    The number of noise entries of a row is binomial and their places are a uniform choice: the same distribution as
    one trial per entry, but arrays are allocated once, at their final size.
    """
    n = group.size
    counts = rng.binomial(p - width, which.density, size=n)
    indptr = row_pointers(counts + width)
    data, indices = np.empty(indptr[-1]), np.empty(indptr[-1], dtype=np.int32)
    two = which.classes == 2
    block = width if two else width // which.classes
    for i in range(n):
        start, end = indptr[i], indptr[i + 1]
        indices[start : start + width] = np.arange(width)
        places = rng.choice(p - width, size=counts[i], replace=False, shuffle=False)
        places.sort()
        indices[start + width : end] = places + width
        rng.standard_normal(out=data[start:end])
        # Two classes: all informative features around +mean or -mean. More: the class's own block around +mean,
        # the other blocks N(0, 1).
        own = start if two else start + group[i] * block
        data[own : own + block] *= np.sqrt(which.variance)
        data[own : own + block] += -which.mean if two and group[i] == 1 else which.mean
    y = 1.0 - 2.0 * group if two else group + 1.0
    return sp.csr_matrix((data, indices, indptr), shape=(n, p), copy=False), y


def big_text(seed: int = 0, n: int | None = None, p: int | None = None):
    """Yield blocks of LIBSVM text, each of whole lines: 20 million samples and 50 features by default.

    Row i is ``s_i (y_i mu + noise)`` with ``||mu|| = 1``, noise N(0, 0.05^2) in each coordinate and ``log s_i`` N(0,
    1): the classes are apart, and margins spread over orders of magnitude. Values have four decimals.

    Each block has its own random numbers, from the seed and its number, so memory does not grow with ``n``. A block is
    valid until the next one is requested.
    """
    if seed < 0:
        raise UsageError(f"the seed is {seed}", "Give a seed of 0 or more.")
    return _blocks(seed, BIG_N if n is None else n, BIG_P if p is None else p)


def _blocks(seed: int, n: int, p: int):
    from screenpath.kernels.rows.parse import LONGEST, fixed_lines

    rows = max(1, BLOCK_CELLS // p)
    mean = np.where(np.arange(p) % 2 == 0, 1.0, -1.0) / np.sqrt(p)
    out = np.empty(rows * (p + 1) * LONGEST, dtype=np.uint8)
    for k, start in enumerate(range(0, n, rows)):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, k))))
        count = min(rows, n - start)
        signs = 1.0 - 2.0 * rng.integers(0, 2, size=count)
        X = BIG_NOISE * rng.standard_normal((count, p)) + signs[:, None] * mean
        X *= np.exp(rng.standard_normal(count))[:, None]
        yield out.data[: fixed_lines(X, signs, out)]
