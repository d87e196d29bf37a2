"""Kernel functions and their blocks: inner products by BLAS, distances without cancellation."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from screenpath.data.words.numerals import is_number, number_of
from screenpath.errors import UsageError
from screenpath.kernels.rows import gram as kernels
from screenpath.kernels.rows import precise
from screenpath.kernels.rows.matrix import Matrix, matrix_of
from screenpath.numbers import sparse as sp
from screenpath.numbers.rounding import OUTWARD, UNIT, gamma

NAMES = ("linear", "poly", "rbf", "laplacian")  # in the order of ``kernels.rows.precise``
GIVEN = ("precomputed", "function")
SCALE = "scale"  # the gamma that suits the spread of the data
BLOCK_BYTES = 1 << 26  # one block of kernel values while rows are computed
DENSE_BYTES = 1 << 28  # sparse rows up to this size are made dense: BLAS is far faster than sparse products
EXPONENT_ERROR = 1e-13  # RBF exponents that inner products give with a larger error are computed directly
NEAR = 128.0  # largest norm of rows whose exponents are summed in float32, in units of the kernel's width
FEW_COLUMNS = 128  # of such rows: of more, BLAS is far faster
HIDDEN = 2.0**-900  # exceeds what underflow can hide of an inner product, over the rounding of one operation
SHIFT_BITS = 12  # binary digits of an origin
PRECISE_CELLS = 1 << 24  # of sums in twice the precision computed at a time
CHUNK_CELLS = 1 << 17  # of rows read at a time
ROUGH_UNIT, ROUGH_HEIGHT = 2.0**-24, 64  # rounding of float32, and rows whose terms are added up in it
ROUGHEST = 2.0**-7  # largest error of an exponent in float32
LARGEST = 2**31 - 1  # the largest of the whole numbers that stand for values
LIBRARY = 8.0 * UNIT  # relative error of a power: a few units in the last place on all machines


@dataclass(frozen=True, slots=True)
class KernelFunction:
    # {"linear", "poly", "rbf", "laplacian"}: ``x.z``, ``(gamma x.z + coef0)^degree``, ``exp(-gamma ||x - z||^2)``,
    # ``exp(-gamma ||x - z||_1)``; {"precomputed", "function"}: what is given
    name: str
    gamma: float = 1.0  # not used by the linear kernel
    degree: int = 3
    coef0: float = 0.0
    constant: float = 0.0  # added to the kernel: a penalised bias of value ``sqrt(constant)``
    # ``call(X, Z)`` of rows, shapes (n, d) and (m, d), returns their kernel, shape (n, m)
    call: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None

    def __post_init__(self):
        if self.name not in (*NAMES, *GIVEN):
            raise UsageError(f"unknown kernel '{self.name}'", f"use one of {', '.join(NAMES)}")
        if not (np.isfinite(self.gamma) and self.gamma > 0.0):
            raise UsageError(f"gamma must be a positive number, not {self.gamma}")
        if self.degree < 1 or int(self.degree) != self.degree:
            raise UsageError(f"the degree must be an integer of at least 1, not {self.degree}")
        if not (np.isfinite(self.coef0) and self.coef0 >= 0.0):
            raise UsageError(f"coef0 must be at least 0, not {self.coef0}", "a negative one gives no valid kernel")

    @property
    def given(self) -> bool:
        return self.name in GIVEN

    @property
    def exponential(self) -> bool:
        """Tell whether it is the exponential of minus a distance."""
        return self.name in ("rbf", "laplacian")

    def describe(self) -> dict:
        used = ("gamma",) if self.exponential else ("gamma", "degree", "coef0") if self.name == "poly" else ()
        return {"kernel": self.name, **{key: getattr(self, key) for key in used}, "constant": self.constant}


def parse_gamma(text, d: int, X=None) -> float:
    """Return the value of a plain number, of ``1/d``, ``0.1/d`` ... for ``d`` features, or of ``scale`` for ``X``."""
    if not isinstance(text, str):
        try:
            return float(text)
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"`gamma` must be a positive number, NUMBER/d or scale, not {text!r}") from None
    if text.strip() == SCALE and X is not None:
        return scale_of(X, d)
    number, *over = (part.strip() for part in text.split("/"))
    value = number_of(number) if is_number(number) and over in ([], ["d"]) else np.nan
    if not (np.isfinite(value) and value > 0.0):
        what = f"gamma must be a positive number, NUMBER/d or scale, not '{text}'"
        raise UsageError(what, "for example 1/d, 0.1/d or 0.05")
    return value / max(d, 1) if over else value


def scale_of(X, d: int) -> float:
    """Return ``1 / (d v)``, ``v`` the variance of all values of rows with ``d`` features, as ``gamma="scale"`` of
    scikit-learn; 1 if all are equal.

    Columns that ``X`` lacks, of the ``d``, are zero.
    """
    cells, values = max(X.shape[0] * d, 1), X.data if sp.issparse(X) else X
    if values.size == cells and values.min() == values.max():  # whose variance may be rounding
        return 1.0
    mean = values.sum(dtype=np.float64) / cells
    total = np.square(values - mean).sum(dtype=np.float64) + (cells - values.size) * mean * mean
    return float(cells / (d * total)) if total > 0.0 else 1.0


class KernelBlocks:
    """Blocks ``K(x_i, z_j)`` of a kernel between data rows ``X``, shape (n, d), and other rows.

    ``inexact`` is the largest relative error of a value of ``X``, see ``prepare.Preparation.inexact``.
    """

    diagonal: np.ndarray  # shape (n,): ``K(x_i, x_i)``
    sizes: np.ndarray  # shape (n,): upper bounds of ``sqrt(K(x_i, x_i))``
    steady = False  # whether values in float32 are the same whatever others are formed with them
    error: float  # bound of the error of ``K(x_i, x_j)`` in :meth:`block`, over ``sizes_i sizes_j``

    def __init__(self, X, function: KernelFunction, inexact: float = 0.0):
        self.function, self.inexact = function, inexact
        self.n, self.d = X.shape
        self.sparse = sp.issparse(X) and 8 * self.n * self.d > DENSE_BYTES
        X = X.toarray() if sp.issparse(X) and not self.sparse else X
        self.shift = exact_shift(X) if function.name == "rbf" and not self.sparse else None
        self.X = self.prepared(X)
        self.squares = sp.row_squares(self.X)
        self._measure()

    def _measure(self) -> None:
        self.diagonal, self.sizes = self.diagonal_of(self.squares), self._sizes()
        self.error = self.value_error(self._inner_error(), kernels.EXP if self.function.exponential else LIBRARY)
        f, far = self.function, float(self.squares.max(initial=0.0))
        near = f.gamma * far <= NEAR**2 if f.name == "rbf" else f.gamma * np.sqrt(self.d * far) <= NEAR
        self.steady = f.exponential and (self.sparse or (self.d <= FEW_COLUMNS and bool(near)))

    def with_gamma(self, value: float) -> KernelBlocks:
        """Return the same rows behind the same kernel with another gamma."""
        found = copy(self)
        found.function = replace(self.function, gamma=value)
        found._measure()
        return found

    @property
    def rows(self) -> np.ndarray:
        """Return the data rows as they were given."""
        return self.X if self.shift is None else self.X + self.shift

    def prepared(self, X):
        """Return rows, float64, in the form that :meth:`block` reads."""
        if self.sparse:
            X = sp.csr_array(X).astype(np.float64)
            X.sum_duplicates()  # sorts the columns as well
            return X
        X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        return np.ascontiguousarray(X if self.shift is None else X - self.shift)

    def held_out(self, X) -> HeldOutRows:
        """Return other rows, prepared like the training data, as a matrix to multiply with dual coefficients."""
        return HeldOutRows(self, X)

    # -- rounding ------------------------------------------------------------------------------------------------

    def _sizes(self) -> np.ndarray:
        """Return upper bounds of ``sqrt(K(x, x))``, including rounding and underflow."""
        f = self.function
        if f.exponential:
            size = 1.0 if f.constant == 0.0 else np.sqrt(1.0 + f.constant) * OUTWARD
            return np.full(self.n, size)
        square = self.squares * (1.0 + gamma(self.d + 8) + 4.0 * self.inexact) + HIDDEN
        if f.name == "poly":
            with np.errstate(over="ignore"):
                square = (f.gamma * square + f.coef0 + HIDDEN) * OUTWARD
                square = square**f.degree * (1.0 + gamma(2.0 * f.degree)) * (1.0 + 2.0 * LIBRARY) + HIDDEN
        sizes = np.sqrt(square + f.constant) * OUTWARD
        if f.constant == 0.0 and (f.name == "linear" or f.coef0 == 0.0):
            hidden = np.flatnonzero(self.squares == 0.0)  # by underflow, or the row is 0 and so is its kernel
            sizes[hidden[np.asarray((self.X[hidden] != 0.0).sum(axis=1)).ravel() == 0]] = 0.0
        return sizes

    def _inner_error(self) -> float:
        """Return the rounding error of the kernel function's argument.

        For an inner product, relative to the product of the norms: ``gamma(d)``, in any order of summation. For the
        exponent ``gamma ||x - z||^2`` computed from inner products: ``2 (||x||^2 + ||z||^2) gamma(d + 8)`` times the
        kernel's gamma; they are used only if that is small or the value is 0 in any case. Distances that are summed
        over the features have a small relative error, which :meth:`value_error` counts.
        """
        if self.function.name == "laplacian":
            return 0.0
        if self.function.name != "rbf":
            return gamma(self.d + 8)
        most = 2.0 * float(self.squares.max(initial=0.0))
        most = min(self.function.gamma * most, EXPONENT_ERROR / (4.0 * kernels.EPSILON))
        return 2.0 * gamma(self.d + 8) * most

    def value_error(self, inner: float, library: float, unit: float = UNIT) -> float:
        """Return :attr:`error` for an arithmetic with error ``inner`` of the inner product or exponent (see above),
        ``library`` of a power or an exponential, and ``unit`` of one operation, all relative.

        A polynomial is ``b^D`` with ``|b| <= S_i S_j`` for ``S_i^2 = gamma ||x_i||^2 + coef0``, by Cauchy and Schwarz,
        and an error of ``b`` is relative to ``S_i S_j`` as that of the inner product is to the norms. The RBF kernel
        ``exp(-t)``, ``t >= 0``: a relative error ``g`` of ``t`` changes it by at most ``g / e``, an absolute one by no
        more than itself, both and the library's by ``e^a - 1`` at most; and it changes by less than ``sqrt(gamma)``
        times what the distance does. The Laplacian kernel changes by at most gamma times what its distance does, which
        is at most ``sqrt(d)`` times the Euclidean one.
        """
        f, sums = self.function, (self.d + 8.0) * unit
        rows = (2.0 + self.inexact) * self.inexact
        if f.name == "linear":
            error = inner + rows
        elif f.name == "poly":
            error = float(np.expm1(f.degree * np.log1p(inner + rows + 4.0 * unit))) + 2.0 * library
        else:
            moved = 2.0 * self.inexact * self._farthest()
            steep = np.sqrt(f.gamma) if f.name == "rbf" else f.gamma * np.sqrt(self.d)
            error = float(np.expm1(inner + 2.0 * sums + 2.0 * library)) + float(steep) * moved
            error = min(error, 1.0) + HIDDEN
        return (error + (2.0 * unit if f.constant else 0.0)) * OUTWARD if np.isfinite(error) else np.inf

    def precise_sums(self, rows, support, weights) -> np.ndarray:
        """Return ``sum_k weights[w, k] K(x_i, x_support[k])`` for some rows, shape (weights, 2, rows).

        They are sums of two doubles, with an error of at most :meth:`precise_error` times ``sizes_i |weights[w]| @
        sizes``.
        """
        f, out, stored = self.function, np.empty((weights.shape[0], 2, rows.size)), _matrix(self.X)
        height = max(1, PRECISE_CELLS // max(support.size * (self.d + 64), 1))
        for start in range(0, rows.size, height):  # in parts, so that signals are handled in between
            cut = slice(start, start + height)
            part = np.empty((weights.shape[0], 2, rows[cut].size))
            precise.sums(
                stored, rows[cut], support, weights, NAMES.index(f.name), float(f.gamma), int(f.degree),
                float(f.coef0), float(f.constant), part,
            )  # fmt: skip
            out[:, :, cut] = part
        return out

    def precise_error(self, terms: int) -> float:
        """Return the error of a sum of ``terms`` terms in :meth:`precise_sums`, over the sizes.

        A sum of ``k`` products in pairs of doubles has an error of ``4 gamma(k)^2`` of their magnitudes (Ogita, Rump
        and Oishi 2005), apart from underflow.
        """
        inner = 4.0 * gamma(2 * self.d + 16) ** 2 + (self.d + 8.0) * 2.0**-160
        library = precise.EXP if self.function.exponential else self.function.degree * precise.UNIT
        values = self.value_error(inner, library, precise.UNIT)
        return (values + 4.0 * gamma(terms + 8) ** 2 + (terms + 8.0) * 2.0**-160) * OUTWARD

    def _farthest(self) -> float:
        """Return an upper bound of the norms of the rows before they were shifted."""
        shift = 0.0 if self.shift is None else float(np.linalg.norm(self.shift))
        return (float(np.sqrt(self.squares.max(initial=0.0))) + shift) * (1.0 + gamma(self.d + 8))

    # -- values --------------------------------------------------------------------------------------------------

    def block(self, rows, columns=None, others=None, room=None) -> np.ndarray:
        """Return the kernel between chosen rows of the data, or of ``others``, and data rows ``columns`` (or all).

        Of dense rows it is in ``room``, if given, memory that is used again and again: new memory is slow.
        """
        K, f = self.arguments(rows, columns, others, room, values=True), self.function
        if f.name == "poly":
            with np.errstate(over="ignore"):  # whoever takes the values names an overflow
                K *= f.gamma
                K += f.coef0
                K **= f.degree
        if f.constant:
            K += f.constant
        return K

    def write(self, out: np.ndarray, rows, columns, first: int) -> None:
        """Write the kernel between chosen rows of the data to the beginnings of the rows ``first`` ... of ``out``.

        In float32, if that is the type of ``out``, no bound on errors holds.
        """
        f, rough = self.function, self.function.exponential and out.dtype == np.float32
        if rough and self.steady and not self.sparse:
            rbf = f.name == "rbf"
            A, B = (np.zeros((index.size, -(-self.d // 4) * 4), dtype=np.float32) for index in (rows, columns))
            for part, index in (A, rows), (B, columns):
                part[:, : self.d] = (np.sqrt(f.gamma) if rbf else f.gamma) * self.X[index]
            kernels.rough_exponents(A, np.ascontiguousarray(B.T), not rbf, out, first)
        else:
            found = self.arguments(rows, columns) if rough else self.block(rows, columns)
            out[first : first + rows.size, : columns.size] = found
        if rough:
            kernels.rough_exponentials(out, first, first + rows.size, columns.size, f.constant)

    @property
    def roughens(self) -> bool:
        """Tell whether :meth:`rough_sums` may be used."""
        f = self.function
        if f.name != "rbf" or self.sparse or f.constant:
            return False
        far = max(2.0 * f.gamma * float(self.squares.max(initial=0.0)), 1.0)
        return far * (self.d + 8.0) * ROUGH_UNIT <= ROUGHEST

    @property
    def rough_error(self) -> float:
        """Return about what :meth:`rough_sums` are off by, over the sum of the weights' magnitudes."""
        return 2.0 * ROUGH_UNIT * (self.d + ROUGH_HEIGHT)

    def rough_sums(self, rows, weights, columns) -> np.ndarray:
        """Return ``sum_k weights[k] K(x_rows[k], x_j)`` for data rows ``columns`` in float32, and bounds of what they
        are off by, shape (2, m).

        With ``a`` and ``b``, gamma times the squared norms, ``2 gamma |x|.|z|`` is at most ``a + b``: a product of
        rounded rows is off by ``d + 2`` units of this, and ``a``, ``b`` and two differences, at most ``2 (a + b)``, add
        5. So a value is off by ``(d + 8) (a + b)`` units of itself, and by those of the exponential; a weight and the
        sum of ``ROUGH_HEIGHT`` terms add theirs. All of this is relative to sums of positive terms, which are formed
        along with the others; ``ROUGHEST`` is why what is of second order is below a twentieth. Values from that of
        ``ROUGH_LEAST`` down are off by as much.
        """
        f, scale, lowest = self.function, float(np.abs(weights).max()), np.exp(kernels.ROUGH_LEAST)
        A, B = ((np.sqrt(2.0 * f.gamma) * self.X[index]).astype(np.float32) for index in (rows, columns))
        B = np.ascontiguousarray(B.T)
        a, b = f.gamma * self.squares[rows], f.gamma * self.squares[columns]
        w, out = weights / scale, np.zeros((3, b.size))
        W, a32, b32 = (x.astype(np.float32) for x in (np.stack([w, np.abs(w), np.abs(w) * a]), a, b))
        for start in range(0, a.size, ROUGH_HEIGHT):
            part = slice(start, start + ROUGH_HEIGHT)
            K = A[part] @ B
            kernels.rough_arguments(K, a32[part], b32)
            kernels.rough_exponentials(K, 0, K.shape[0], K.shape[1], 0.0)
            out += W[:, part] @ K
        units = (ROUGH_HEIGHT + 1.0 + kernels.ROUGH_EXP / ROUGH_UNIT + (self.d + 8.0) * b) * out[1]
        units += (self.d + 8.0) * out[2]
        bound = 1.05 * (ROUGH_UNIT * units + 2.0 * lowest * float(np.abs(w).sum()))
        return scale * np.stack([out[0], bound])

    def arguments(self, rows, columns=None, others=None, room=None, values=False) -> np.ndarray:
        """Return inner products of rows as of :meth:`block`, or the exponents of an exponential kernel; with
        ``values`` the exponentials of these.
        """
        f, A = self.function, (self.X if others is None else others)[rows]
        a = self.squares[rows] if others is None else sp.row_squares(A)
        B, b = (self.X, self.squares) if columns is None else (self.X[columns], self.squares[columns])
        if f.name == "laplacian":
            K = np.empty((a.size, b.size))
            kernels.city_exponents(K, f.gamma, _matrix(A), _matrix(B), values)
            return K
        with np.errstate(over="ignore", invalid="ignore"):  # whoever takes the values names an overflow
            if room is None or self.sparse:
                K = A @ B.T
            else:
                K = np.matmul(A, B.T, out=room[: a.size * b.size].reshape(a.size, b.size))
        K = K.toarray() if sp.issparse(K) else K
        if f.name == "rbf":
            kernels.exponents(K, a, b, f.gamma, EXPONENT_ERROR, _matrix(A), _matrix(B), values)
        return K

    def diagonal_of(self, squares) -> np.ndarray:
        f = self.function
        if f.exponential:
            return np.full(squares.size, 1.0 + f.constant)
        if f.name == "linear":
            return squares + f.constant
        with np.errstate(over="ignore"):
            return (f.gamma * squares + f.coef0) ** f.degree + f.constant


class FixedValues:
    """All values of an exponential kernel between the rows of ``blocks``, each a whole number of 4 bytes.

    Such a value is at most the largest of the diagonal, of which the number is a share: it is off by half a unit, 2^-32
    of that, where float32 would be off by up to 2^-25. Each is formed in the same tile whatever is asked for, so that
    it is the same in a run that goes on as in one that was never stopped.
    """

    def __init__(self, blocks: KernelBlocks):
        self.blocks, self.unit = blocks, (1.0 + blocks.function.constant) / LARGEST
        # Half a unit; of the number itself and its unit each some roundings
        self.error = (0.5 / LARGEST + 16.0 * UNIT) * OUTWARD
        self._values: np.ndarray | None = None

    def values(self, each: Callable, height: int, width: int) -> np.ndarray:
        """Return the numbers, int32 of shape (n, n), formed when first asked for, in tiles of so many rows and columns.

        ``each`` calls a function for each start, with memory for a tile.
        """
        if self._values is None:
            n = self.blocks.n
            found = np.empty((n, n), dtype=np.int32)

            def one(start: int, room: np.ndarray) -> None:
                rows = slice(start, min(start + height, n))
                for left in range(0, rows.stop, width):
                    tile = self.blocks.block(rows, slice(left, min(left + width, n)), room=room)
                    kernels.to_fixed(tile, 1.0 / self.unit, found, start, left)

            each(range(0, n, height), one)
            kernels.mirror(found, 0, n)
            self._values = found
        return self._values


class HeldOutRows:
    """Rows outside the training data, shape (m, d), behind the same kernel."""

    def __init__(self, blocks: KernelBlocks, X):
        self.blocks, self.X, self.shape = blocks, blocks.prepared(X), X.shape
        # Where all kernel values are known: a matrix with them, which of its rows those of the training data are, and
        # the first of its columns for these rows.
        self.values: tuple[np.ndarray, np.ndarray, int] | None = None

    @property
    def norms(self) -> np.ndarray:
        return np.sqrt(self.blocks.diagonal_of(sp.row_squares(self.X)))

    def __matmul__(self, coefficients: np.ndarray) -> np.ndarray:
        """Return ``sum_i coefficients_i K(x_i, x)`` for every row ``x``; only support vectors are evaluated.

        The coefficients, shape (n,) or (n + 1,), are those of the training rows, signs included, and an intercept; of
        several models they are columns.
        """
        n, intercept = self.blocks.n, coefficients[self.blocks.n :].sum(axis=0)
        if self.values is not None:
            sums = np.zeros((coefficients[:n].reshape(n, -1).shape[1], self.shape[0]))
            matrix, where, first = self.values
            for column, out in zip(coefficients[:n].reshape(n, -1).T, sums, strict=True):
                support = np.flatnonzero(column)
                kernels.add_rows(matrix, where[support], column[support], out, first)
            return sums.T.reshape(self.shape[0], *coefficients.shape[1:]) + intercept
        support = np.flatnonzero(coefficients[:n].reshape(n, -1).any(axis=1))
        out = np.zeros((self.shape[0], *coefficients.shape[1:])) + intercept
        height = max(1, BLOCK_BYTES // (8 * max(support.size, 1)))
        for start in range(0, len(out) if support.size else 0, height):
            cut = slice(start, start + height)
            out[cut] += self.blocks.block(cut, support, self.X) @ coefficients[support]
        return out


def exact_shift(X) -> np.ndarray | None:
    """Return an origin for dense rows, shape (d,), that can be subtracted exactly and reduces cancellation; None if it
    is 0.

    Distances do not depend on the origin. It is near the mean, in few digits, of features from which it can be
    subtracted exactly (at least those far from 0: Sterbenz 1974), and 0 for the others.
    """
    n, d = X.shape
    shift = np.zeros(d)
    width = max(1, CHUNK_CELLS // max(n, 1))
    with np.errstate(all="ignore"):
        for start in range(0, d if n else 0, width):
            part = np.asarray(X[:, start : start + width], dtype=np.float64)
            mantissa, exponent = np.frexp(part.mean(axis=0))
            near = np.ldexp(np.round(np.ldexp(mantissa, SHIFT_BITS)), exponent - SHIFT_BITS)
            total = part - near
            back = total - part
            exact = ((part - (total - back)) - (near + back) == 0.0).all(axis=0)  # the rest of two_sum(part, -near)
            shift[start : start + width] = np.where(exact & np.isfinite(near), near, 0.0)
    return shift if shift.any() else None


def _matrix(X) -> Matrix:
    return matrix_of((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64)) if sp.issparse(X) else X)
