"""Upper bounds in bytes of what a path takes, for the checks of ``--max-memory``.

Each figure counts the arrays that the code makes, assuming that all rows survive if nothing better is known. Room that
is hardly used (a working set that may have all rows) counts in full, because it might be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
        return 0 if self.dense else 8 if max(self.d, self.stored) >= 1 << 31 else 4

    @property
    def value_bytes(self) -> int:
        return self.itemsize + self.index_bytes

    @property
    def rows(self) -> int:
        return self.stored * self.value_bytes + (0 if self.dense else 16 * self.n)

    @property
    def partial_sums(self) -> int:
        """Return the bytes of the partial sums of a sum over rows."""
        return F8 * max(1, min(BLOCKS, self.n // BLOCK_ROWS, self.stored // max(4 * self.d, 1))) * self.d


@dataclass(frozen=True)
class Needs:
    """Memory of a model in addition to the rows: float64 numbers per dual variable and feature, and what it copies."""

    rows: int
    columns: int = 0
    row_class: int = 0  # row_class, column_class: per further class
    column_class: int = 0
    hint: str = SCREEN_MORE  # how a path takes less
    mirrored: bool = False  # two dual variables per row
    copied: str = ""  # "columns" of each class against the rest, a second "view" of the data, or rows behind a "kernel"

    def vectors(self, shape: Shape) -> int:
        """Return the bytes held throughout a path."""
        size, d, more = shape.n * (2 if self.mirrored else 1), shape.d, shape.classes - 1
        columns = self.columns + self.column_class * more + OUTPUT_VECTORS * shape.classes if self.columns else 0
        sums = 0 if self.copied in ("view", "kernel") else shape.partial_sums
        if self.copied == "columns":
            sums = Shape(d, shape.n, shape.stored, shape.dense).partial_sums
        return F8 * ((self.rows + self.row_class * more) * size + columns * d) + sums

    def build(self, shape: Shape) -> int:
        """Return the additional bytes for building the model."""
        if self.copied == "kernel":  # its own rows, and these before centring
            size = F8 * shape.n * shape.d
            return 2 * size if shape.dense or size <= DENSE_KERNEL else 2 * shape.rows
        view = shape.rows + 16 * shape.d
        return {"columns": shape.classes * view + F8 * VALUES_AT_ONCE, "view": view}.get(self.copied, 0)


@dataclass(frozen=True)
class Bytes:
    """What a path takes, before it is taken."""

    rows: int  # for good, while the raw values are kept
    way: int  # while the rows are prepared
    vectors: int
    build: int

    @classmethod
    def of(cls, needs: Needs, shape: Shape, raw: int, options: dict) -> Bytes:
        """Return the bytes of a path on prepared rows of this shape; ``raw`` values are stored before."""
        return cls(*preparing(shape, raw, options), needs.vectors(shape), needs.build(shape))

    def peak(self, freed: int = 0) -> int:
        """Return the most that is taken at a time, where so many bytes are free again once the rows are there."""
        return self.rows + max(self.way, self.vectors + self.build - freed)


KERNEL_PROCESS = 104 << 20  # bytes of a process with the code of kernel models: interpreter, libraries, a reserve
VALUES_AT_ONCE = 1 << 17  # column values multiplied by their signs at a time
DENSE_KERNEL = 1 << 28  # bytes up to which a kernel makes sparse rows dense
# rows: kinks, ends and signs of the losses (3; 4 if mirrored), two certificates (4), the rule's own (4), and temporary
# sums, products and bounds (5). columns: two certificates (4), the rule's own (4), a solver's (12). Per further class:
# a certificate, signs, and the state of its walk.
BOX, MIRRORED = Needs(16, 20, 4, 3), Needs(17, 20, 4, 3, mirrored=True)
# rows: slacks, dual points and products of two certificates, of the solver, and temporary. columns: norms, spreads,
# bounds; weights and products of two certificates and of the solver.
L1 = Needs(16, 30, 16, 30, "stop at a larger lambda, where fewer features have a weight", copied="columns")
# rows: certificates (3 x 3), screening (7), the solver's current and next pair (12), products (6). columns:
# certificates (3 x 5), norms and bounds (9), screening (6), the solver's (8).
SPARSE = Needs(34, 38, 34, 38, "stop at a larger alpha or beta", copied="view")
KERNEL = Needs(48, copied="kernel")
# With a free intercept: rows without signs (5), vectors of rule and solver, and levers (of d columns).
FREE, FREE_MIRRORED = Needs(40, 110, 20, 6), Needs(41, 110, 20, 6, mirrored=True)
# scores within reach (4) and dual points (4); columns in the plane (5), means (3)
FREE_SPARSE = replace(SPARSE, rows=42, columns=46, row_class=42, column_class=46)
FREE_KERNEL = replace(KERNEL, rows=76)


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
