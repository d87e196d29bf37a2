"""The limit of ``--max-memory``: how much private memory this process may take, and how much it takes.

The limit covers all private memory of a command: interpreter, libraries and compiled code, data, and the processes
that the command starts. Mapped files, which the system can drop, do not count.

It is enforced in three ways. Sizes known beforehand (rows, vectors, a kernel matrix, the share of a worker process) are
checked before allocation: :meth:`MemoryLimit.check`, with the figures of :class:`Needs`, each of which
counts the arrays that the code makes, assuming that all rows survive if nothing better is known. During a path the
system refuses excess allocations, if it can: :meth:`MemoryLimit.kept`. And :meth:`MemoryLimit.look` compares after each
step.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from screenpath.data.safe.system import free_bytes, peak_bytes, physical_bytes, resource
from screenpath.errors import ResourceError, UsageError

STATUS = Path("/proc/self/status")
MB = 1 << 20
CODE = 28 * MB  # the compiled kernels of one model and their libraries, loaded
COMPILING = 450 * MB  # compiling them, in the process that does it
SPARE = 6 * MB  # reserve for small things
UNUSED = 2 * MB  # memory that was reserved before a limit is enforced and is used behind that
LATER = 12 * MB  # libraries and steps of preparing that come after data are read
MATRIX = 48 * MB  # the least square of a kernel model, and what its process takes more than others
MARGIN = 1.02  # factor of a suggested limit: runs of the same command differ a little
TRACKER = 12 * MB  # Python's process that watches the others
FREED_AT_ONCE = 1 << 20  # with a limit, freed arrays from this size return to the system
MMAP_THRESHOLD = -3  # number of that setting of the C library's allocator


class _Process:
    """State of the process."""

    limit: MemoryLimit | None = None  # in force
    loaded = False  # whether the compiled kernels are in memory: they count as taken then, before that as to come
    mapped = 0  # bytes of files mapped copy-on-write, which the system counts as data
    ceiling: int | None = None  # bytes of other data that the system allows while a limit is enforced
    before = 0, 0  # what it allowed before
    lock = threading.RLock()  # of these three; an unmapping may interrupt a change


def code_is_loaded() -> None:
    """Record that the compiled kernels are in memory."""
    _Process.loaded = True


def count_mapped(size: int) -> None:
    """Record that so many more (or fewer) bytes of files are mapped copy-on-write."""
    with _Process.lock:
        _Process.mapped += size
        _tell_system()


def _tell_system() -> None:
    if _Process.ceiling is not None:
        allowed, (soft, hard) = min(_Process.ceiling + _Process.mapped, 2**63 - 1), _Process.before
        soft = allowed if soft == resource.RLIM_INFINITY else min(allowed, soft)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def in_force() -> MemoryLimit:
    """Return the limit of the command that this process runs; one that allows everything if there is none."""
    return _Process.limit or MemoryLimit()


def _told(file: Path, name: str) -> int | None:
    """Return the bytes that a file of the system has under a name; None where it does not."""
    lines = file.read_text().splitlines() if file.exists() else ()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)


def private_bytes() -> int:
    """Return the resident bytes of this process without mapped files; without ``/proc``, :func:`peak_bytes`."""
    taken = _told(STATUS, "RssAnon:")
    return peak_bytes() if taken is None else taken


def free_memory() -> int:
    """Return the bytes this process may still take: of the machine, or of its control group if that is less."""
    available = _told(Path("/proc/meminfo"), "MemAvailable:")
    free = free_bytes() if available is None else available
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and used.exists() and limit.read_text().strip() != "max":
        free = min(free, max(int(limit.read_text()) - int(used.read_text()), 0))
    return free


def in_words(size: float) -> str:
    """Return a number of bytes for people, for example ``1.5 GB`` (1024-based)."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"


def as_option(size: float) -> str:
    """Return a number of bytes as an option value, rounded up to whole megabytes: ``213M``."""
    return f"{math.ceil(size / MB)}M"


def joined(*hints: str) -> str:
    return "; or ".join(hint for hint in hints if hint)


def parse_bytes(text: str) -> int:
    """Return the bytes of ``500M``, ``8G``, ``1.5GB`` or a plain number of bytes."""
    units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    stripped = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = stripped[-1:] if stripped[-1:] in units else ""
    try:
        value = float(stripped.removesuffix(unit) if unit else stripped)
    except ValueError:
        value = math.nan
    if not 0.0 < value * units[unit] < 2.0**63:
        raise UsageError(f"'{text}' is not an amount of memory", "write for example 500M or 8G")
    return int(value * units[unit])


class MemoryLimit:
    """The limit of ``--max-memory``, or one process's share of it: private bytes this process may take; None for any.

    ``whole`` is the limit of the command, if this is the share of one of its ``count`` worker processes.
    """

    def __init__(self, limit: int | None = None, whole: int | None = None, count: int = 1):
        self.limit, self.whole, self.count = limit, whole, count
        self.promised = 0  # bytes requested but not yet taken, which nobody else may have
        self.copy = 0  # bytes of all rows: what a path copies of them is known late, a suggested limit has room for all
        self.later = LATER if whole is None else 0  # bytes that nobody has asked for yet; a suggested limit has room
        self.lent = 0  # bytes that other processes of the command may take
        self.share: MemoryLimit | None = None  # of each of them, to be sent to it; None without a limit
        self.base = 0  # bytes taken when the limit came into force: about those of an idle process
        if limit is not None:
            _free_at_once()

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state)
        if self:  # the receiving process enforces it too
            _free_at_once()

    def __bool__(self) -> bool:
        return self.limit is not None

    @contextlib.contextmanager
    def in_force(self):
        """Make this the limit that :func:`in_force` returns inside the block."""
        before, _Process.limit = _Process.limit, self
        self.base = private_bytes() if self else 0
        try:
            yield self
        finally:
            _Process.limit = before

    @property
    def to_come(self) -> int:
        """Return the reserved bytes: spare, promised, lent, and compiled code still to be loaded."""
        return SPARE + self.promised + self.lent + (0 if _Process.loaded else CODE)

    @property
    def left(self) -> int | None:
        """Return the bytes that may still be taken, at least 0; None without a limit."""
        return None if self.limit is None else max(self.limit - private_bytes() - self.to_come, 0)

    @property
    def room(self) -> int:
        """Return the bytes that may still be taken; without a limit, the machine's memory."""
        return physical_bytes() if self.left is None else self.left

    def check(self, needed: int, what: str, hint: str = "", known: int = 0) -> None:
        """Raise if ``needed`` more bytes would exceed the limit.

        ``what`` needs the memory, ``hint`` is an alternative. The limit that the message suggests includes ``known``
        bytes, needed later.
        """
        if self.limit is None:
            return
        taken, needed = private_bytes(), int(needed) + self.to_come
        if taken + needed > self.limit:
            raise ResourceError(
                f"{what} needs {in_words(needed)} in addition to the {in_words(taken)} in use: "
                f"more than {self._name(self.limit)}",
                joined(hint, self._enough(self.limit, MARGIN * (taken + needed + known + self.copy + self.later))),
            )

    def foresee(self, processes: int, kernel: bool) -> None:
        """Count in a suggested limit what the path will start, besides the rows: processes, and a kernel's matrices."""
        each, matrices = self.base + CODE + SPARE, kernel * (1 + processes) * MATRIX
        self.later = LATER + processes * each + (TRACKER if processes else 0) + matrices

    def look(self, what: str) -> None:
        """Raise if more has been taken than allowed, because an estimate was wrong."""
        taken = private_bytes() if self.limit is not None else 0
        if self.limit is not None and taken + self.lent > self.limit:
            why = f"{what} has taken {in_words(taken)}, more than {self._name(self.limit)}"
            raise ResourceError(why, self._enough(self.limit, 1.1 * (taken + self.lent)))

    def check_possible(self, needed: int, what: str, hint: str, known: int = 0) -> None:
        """Raise if ``needed`` more bytes would exceed the limit or, without one, the machine's memory."""
        self.check(needed, what, hint, known)
        if needed > physical_bytes():
            raise ResourceError(f"{what} needs {in_words(needed)}: more than this machine has", hint)

    def check_vectors(self, needed: int, n: int, d: int, source: str) -> None:
        """Raise if the vectors of a path over ``n`` rows and ``d`` features cannot fit, whatever the rows take."""
        what = f"a path on {n:,} rows and {d:,} features of {source} (the vectors alone)"
        self.check_possible(needed, what, "check the largest index of the data", self.copy)

    def lend(self, count: int, each: int, needed: int, what: str, hint: str) -> None:
        """Divide the rest among ``count`` processes, or raise if their shares would be too small.

        Each needs ``each`` bytes in addition to its code, and this process ``needed`` bytes meanwhile.
        """
        if self.limit is None:
            return
        beside, each = needed + TRACKER, self.base + CODE + SPARE + each
        self.check(beside + count * each, what, hint)
        share = (self.limit - private_bytes() - self.to_come - beside) // count
        self.share, self.lent = MemoryLimit(share, self.limit, count), count * share + TRACKER

    def take_back(self) -> None:
        """Record that the other processes have ended."""
        self.lent, self.share = 0, None

    def begin(self) -> None:
        """Put the limit in force for good, in a worker process."""
        _Process.limit = self

    def check_compiling(self) -> None:
        """Raise if compiling the kernels would exceed the limit."""
        self.check(
            COMPILING - CODE * (not _Process.loaded), "compiling the numerical kernels, once for all runs,",
            "compile them beforehand without a limit: screenpath cache warm",
        )  # fmt: skip

    @contextlib.contextmanager
    def kept(self, what: str, hint: str = ""):
        """Have the system refuse what would exceed the limit in the block; a MemoryError becomes a ResourceError."""
        if self.limit is None or not STATUS.exists() or not hasattr(resource, "RLIMIT_DATA"):
            yield
            return
        _wake_blas()
        with _Process.lock:
            _Process.before = resource.getrlimit(resource.RLIMIT_DATA)
            # The system counts reserved memory, of which some is not used yet, and may be without being counted again.
            taken = (_told(STATUS, "VmData:") or 0) - _Process.mapped
            _Process.ceiling = taken + max(self.limit - self.lent - private_bytes() - UNUSED, 0)
            _tell_system()
        refused = None
        try:
            yield
        except MemoryError as error:
            refused = error
        finally:
            with _Process.lock:
                _Process.ceiling = None
                resource.setrlimit(resource.RLIMIT_DATA, _Process.before)
        if refused is not None:
            raise self._refused(self.limit, what, hint, refused)

    def _refused(self, limit: int, what: str, hint: str, error: MemoryError) -> ResourceError:
        shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
        size = math.prod(shape) * dtype.itemsize if shape is not None and dtype is not None else limit // 4
        enough = self._enough(limit, limit + size + self.copy)
        return ResourceError(f"{what} would take more than {self._name(limit)}", joined(hint, enough))

    def _name(self, limit: int) -> str:
        if self.whole is None:
            return f"`max_memory={in_words(limit)}`"
        return f"{in_words(limit)}, the share of each process in `max_memory={in_words(self.whole)}`"

    def _enough(self, limit: int, size: float) -> str:
        if self.whole is not None:
            size = self.whole + self.count * (size - limit)
        return f"use `max_memory={as_option(size)}`"


def _free_at_once() -> None:
    """Return freed arrays to the system at once; the allocator would keep them."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # not the GNU C library: freed memory is kept
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, FREED_AT_ONCE)


def _wake_blas() -> None:
    """Let the linear algebra libraries allocate their buffers now: if they cannot later, they end the process."""
    import numpy as np
    from scipy.linalg.blas import dgemm

    one = np.ones((128, 128))
    dgemm(1.0, one, one @ one)


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
    def rows(self) -> int:
        index = 8 if max(self.d, self.stored) >= 1 << 31 else 4
        return self.stored * self.itemsize + (0 if self.dense else self.stored * index + 16 * self.n)

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
    # "columns" of each class against the rest, a second "view" of the data, rows of "pairs" or behind a "kernel"
    copied: str = ""

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
        views = 4 * view if self.mirrored else view  # both of twice the rows
        known = {"columns": shape.classes * view + F8 * VALUES_AT_ONCE, "view": views, "pairs": shape.classes * view}
        return known.get(self.copied, 0)


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
FREE_KERNEL = replace(KERNEL, rows=77)  # distances from the middle, too


def shape_of(n: int, d: int, nnz: int, options: dict, dense: bool, classes: int = 1) -> Shape:
    """Return the shape of a data set after preparation with these options."""
    bias = bool(options.get("bias"))
    itemsize = 4 if options.get("dtype") == "float32" else 8
    return Shape(n, d + bias, n * (d + bias) if dense else nnz + n * bias, dense, itemsize, classes)


def preparing(shape: Shape, raw: int, options: dict) -> tuple[int, int]:
    """Return the bytes that preparing ``raw`` values adds for good, while raw ones are kept, and temporarily.

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
