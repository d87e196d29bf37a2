"""Kernel functions and their blocks: inner products by BLAS, distances without cancellation."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from screenpath.errors import UsageError
from screenpath.kernels import distances as kernels

NAMES = ("linear", "poly", "rbf")
DENSE_BYTES = 1 << 28  # sparse rows up to this size are made dense: BLAS beats sparse products by far
EXPONENT_ERROR = 1e-13  # exponents of the RBF kernel that the inner products cannot give this well are formed directly


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """A kernel with its parameters.

    Parameters
    ----------
    name : {"linear", "poly", "rbf"}
        ``x.z``, ``(gamma x.z + coef0)^degree``, ``exp(-gamma ||x - z||^2)``.
    gamma : float, default 1
        Not used by the linear kernel.
    degree : int, default 3
    coef0 : float, default 0
    constant : float, default 0
        Added to the kernel: a penalised bias of value ``sqrt(constant)``.
    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    constant: float = 0.0

    def __post_init__(self):
        if self.name not in NAMES:
            raise UsageError(f"unknown kernel '{self.name}'", f"use one of {', '.join(NAMES)}")
        if not (np.isfinite(self.gamma) and self.gamma > 0.0):
            raise UsageError(f"gamma must be a positive number, not {self.gamma}")
        if self.degree < 1 or int(self.degree) != self.degree:
            raise UsageError(f"the degree must be an integer of at least 1, not {self.degree}")
        if not (np.isfinite(self.coef0) and self.coef0 >= 0.0):
            raise UsageError(f"coef0 must be at least 0, not {self.coef0}", "a negative one gives no valid kernel")

    def describe(self) -> dict:
        """Return name and the parameters in use, for records."""
        used = {"linear": (), "rbf": ("gamma",), "poly": ("gamma", "degree", "coef0")}[self.name]
        return {"kernel": self.name, **{key: getattr(self, key) for key in used}, "constant": self.constant}


def parse_gamma(text, d: int) -> float:
    """Return the value of ``1/d``, ``0.1/d``, ... or of a plain number, for ``d`` features.

    Raises
    ------
    UsageError
    """
    if not isinstance(text, str):
        return float(text)
    match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(/\s*d)?\s*", text)
    try:
        value = float(match.group(1)) if match else np.nan
    except ValueError:
        value = np.nan
    if not (np.isfinite(value) and value > 0.0):
        raise UsageError(f"gamma must be a positive number or NUMBER/d, not '{text}'", "for example 1/d, 0.1/d or 0.05")
    return value / max(d, 1) if match.group(2) else value


class KernelBlocks:
    """Evaluate blocks ``K(x_i, z_j)`` between data rows and other rows.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n, d)
    function : KernelFunction

    Attributes
    ----------
    diagonal : ndarray of shape (n,)
        ``K(x_i, x_i)``.
    """

    def __init__(self, X, function: KernelFunction):
        self.function = function
        self.n, self.d = X.shape
        self.sparse = sp.issparse(X) and 8 * self.n * self.d > DENSE_BYTES
        X = X.toarray() if sp.issparse(X) and not self.sparse else X
        # Distances do not change with the origin, and the inner products they are formed from cancel least around it.
        self.shift = np.asarray(X.mean(axis=0)).ravel() if function.name == "rbf" and not self.sparse else None
        self.X = self.prepared(X)
        self.squares = squares_of(self.X)
        self.diagonal = self.diagonal_of(self.squares)

    def prepared(self, X):
        """Return rows, float64, in the form that :meth:`block` takes."""
        if self.sparse:
            X = sp.csr_array(X).astype(np.float64)
            X.sum_duplicates()  # sorts the columns as well
            return X
        X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        return np.ascontiguousarray(X if self.shift is None else X - self.shift)

    def block(self, rows, columns=None, others=None) -> np.ndarray:
        """Return the kernel between chosen data rows and the data rows ``columns`` (all by default).

        Parameters
        ----------
        rows : slice or ndarray of int
        columns : slice or ndarray of int, optional
        others : prepared rows, optional
            Take ``rows`` from these instead of the data.

        Returns
        -------
        ndarray of float64 of shape (rows, columns)
        """
        A = (self.X if others is None else others)[rows]
        a = self.squares[rows] if others is None else squares_of(A)
        B, b = (self.X, self.squares) if columns is None else (self.X[columns], self.squares[columns])
        K = A @ B.T
        K = K.toarray() if sp.issparse(K) else K
        f = self.function
        if f.name == "rbf":
            if sp.issparse(A):
                csr = [(M.data, M.indices.astype(np.int32), M.indptr.astype(np.int64)) for M in (A, B)]
                kernels.csr_exponents(K, a, b, f.gamma, EXPONENT_ERROR, *csr[0], *csr[1])
            else:
                kernels.dense_exponents(K, a, b, f.gamma, EXPONENT_ERROR, A, B)
            np.exp(K, out=K)
        elif f.name == "poly":
            K *= f.gamma
            K += f.coef0
            K **= f.degree
        if f.constant:
            K += f.constant
        return K

    def diagonal_of(self, squares) -> np.ndarray:
        """Return ``K(x, x)`` for prepared rows whose squared norms are given."""
        f = self.function
        if f.name == "rbf":
            return np.full(squares.size, 1.0 + f.constant)
        values = squares if f.name == "linear" else (f.gamma * squares + f.coef0) ** f.degree
        return values + f.constant


def squares_of(X) -> np.ndarray:
    """Return the squared norms of the rows."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)
