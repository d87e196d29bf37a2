"""Upper bounds in bytes of what a path takes, for the checks of ``--max-memory``.

Each figure counts the arrays that the code makes, assuming that all rows survive if nothing better is known. Room that
is hardly used (a working set that may have all rows) counts in full, because it might be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

F8 = 8  # bytes of a float64
BLOCKS = 16  # most partial sums over rows
BLOCK_ROWS = 4096  # and rows of each at least
PREPARED = 5 << 20  # bytes for preparing a few rows at a time
OUTPUT_VECTORS = 4  # of coefficients on their way into a file
SCREEN_MORE = "let more rows be screened: more grid points closer together, or a smaller `cmax`"


@dataclass(frozen=True)
class Shape:
    """Size of a data set in a model."""

    n: int  # n, d: rows and columns, the bias among them
    d: int
    stored: int  # stored values
    dense: bool
    itemsize: int = 8  # bytes of a value
    classes: int = 1  # sets of weights

    @property
    def index_bytes(self) -> int:
        """Return the bytes of the index of a stored value."""
        return 0 if self.dense else 8 if max(self.d, self.stored) >= 1 << 31 else 4

    @property
    def value_bytes(self) -> int:
        """Return the bytes of a stored value and its index."""
        return self.itemsize + self.index_bytes

    @property
    def rows(self) -> int:
        return self.stored * self.value_bytes + (0 if self.dense else 16 * self.n)

    @property
    def partial_sums(self) -> int:
        """Return the bytes of the partial sums of a sum over rows."""
        return F8 * max(1, min(BLOCKS, self.n // BLOCK_ROWS, self.stored // max(4 * self.d, 1))) * self.d


class Needs(Protocol):
    """Memory of a model in addition to the rows."""

    @property
    def hint(self) -> str:
        """Return how a path takes less."""

    def vectors(self, shape: Shape) -> int:
        """Return the bytes held throughout a path."""

    def build(self, shape: Shape) -> int:
        """Return the additional bytes for building the model."""


@dataclass(frozen=True)
class BoxNeeds:
    """Of the box models: vectors, counted in float64 numbers per dual variable and feature.

    ``rows``: kinks, ends and signs of the losses (3; 4 if mirrored), two certificates (4), the rule's own (4), and
    temporary sums, products and bounds (5). ``columns``: two certificates (4), the rule's own (4), a solver's (12).
    """

    rows: int = 16
    columns: int = 20
    row_class: int = 4  # per further class: a certificate, signs, and the state of its walk
    column_class: int = 3
    mirrored: bool = False  # two dual variables per row
    hint: str = SCREEN_MORE

    def vectors(self, shape: Shape) -> int:
        size, d, more = shape.n * (2 if self.mirrored else 1), shape.d, shape.classes - 1
        common = self.rows * size + self.columns * d + OUTPUT_VECTORS * d * shape.classes
        return F8 * (common + more * (self.row_class * size + self.column_class * d)) + shape.partial_sums

    def build(self, shape: Shape) -> int:
        return 0


@dataclass(frozen=True)
class L1Needs:
    """Of the L1-regularised model: its columns are a copy, made while the rows are there."""

    rows: int = 16  # slacks, dual points and products of two certificates, of the solver, and temporary
    columns: int = 30  # norms, spreads, bounds; weights and products of two certificates and of the solver
    hint: str = "stop at a larger lambda, where fewer features have a weight"

    def vectors(self, shape: Shape) -> int:
        flipped = Shape(shape.d, shape.n, shape.stored, shape.dense)
        one = F8 * (self.rows * shape.n + (self.columns + OUTPUT_VECTORS) * shape.d)
        return shape.classes * one + flipped.partial_sums

    def build(self, shape: Shape) -> int:
        """Return the bytes of the columns, of each class against the rest, and of the signs of their values."""
        return shape.classes * (shape.rows + 16 * shape.d) + F8 * VALUES_AT_ONCE


@dataclass(frozen=True)
class SparseNeeds:
    """Of the sparse SVM: the data by columns as well, and vectors for each class."""

    rows: int = 34  # certificates (3 x 3), screening (7), the solver's current and next pair (12), products (6)
    columns: int = 38  # certificates (3 x 5), norms and bounds (9), screening (6), the solver's (8)
    hint: str = "stop at a larger alpha or beta"

    def vectors(self, shape: Shape) -> int:
        rows = self.rows * shape.classes
        return F8 * (rows * shape.n + shape.classes * (self.columns + OUTPUT_VECTORS) * shape.d)

    def build(self, shape: Shape) -> int:
        return shape.rows + 16 * shape.d


@dataclass(frozen=True)
class KernelNeeds:
    """Of a kernel model, in addition to its matrix: prepared rows, twice while they are centred, and vectors."""

    rows: int = 48
    hint: str = SCREEN_MORE

    def vectors(self, shape: Shape) -> int:
        return F8 * self.rows * shape.n

    def build(self, shape: Shape) -> int:
        """Return the bytes of the kernel's own rows, and of these before centring."""
        return 2 * F8 * shape.n * shape.d if shape.dense or F8 * shape.n * shape.d <= DENSE_KERNEL else 2 * shape.rows

    def beside(self, shape: Shape) -> int:
        """Return the bytes that a path takes in addition to the matrix and its work arrays."""
        return self.vectors(shape) + self.build(shape) + shape.rows


KERNEL_PROCESS = 104 << 20  # bytes of a process with the code of kernel models: interpreter, libraries, a reserve
VALUES_AT_ONCE = 1 << 17  # column values multiplied by their signs at a time
DENSE_KERNEL = 1 << 28  # bytes up to which a kernel makes sparse rows dense
BOX, MIRRORED, L1, SPARSE, KERNEL = BoxNeeds(), BoxNeeds(17, mirrored=True), L1Needs(), SparseNeeds(), KernelNeeds()
# With a free intercept: rows without signs (5), vectors of rule and solver, and levers (of d columns).
FREE_KERNEL = KernelNeeds(76)
FREE_SPARSE = SparseNeeds(42, 46)  # scores within reach (4) and dual points (4); columns in the plane (5), means (3)
FREE, FREE_MIRRORED = BoxNeeds(40, 110, 20, 6), BoxNeeds(41, 110, 20, 6, mirrored=True)


def shape_of(n: int, d: int, nnz: int, options: dict, dense: bool, classes: int = 1) -> Shape:
    """Return the shape of a data set after preparation with these options."""
    bias = bool(options.get("bias"))
    itemsize = 4 if options.get("dtype") == "float32" else 8
    return Shape(n, d + bias, n * (d + bias) if dense else nnz + n * bias, dense, itemsize, classes)


def preparing(shape: Shape, raw: int, options: dict) -> tuple[int, int]:
    """Return the bytes that preparing ``raw`` stored values adds permanently, while the raw ones are kept, and
    temporarily.

    ``shape`` is that of the prepared rows; the raw values are sparse.
    """
    scaled = options.get("scale", "none") != "none"
    if shape.dense:
        return shape.rows, PREPARED
    kept = 16 * shape.n
    if options.get("bias"):
        return kept + shape.rows, shape.stored * (1 + (8 if scaled or shape.itemsize == 4 else 0))
    if scaled or shape.itemsize == 4:
        return kept + shape.itemsize * raw, (8 * raw if scaled and shape.itemsize == 4 else 0) + PREPARED
    return kept, 0
