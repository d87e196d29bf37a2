"""From read data to rows: storage, scaling and bias, and the way back to coefficients in the file's units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from screenpath.errors import UsageError
from screenpath.rows.memory import choose_storage

SCALES = ("none", "maxabs", "standard", "l2")


@dataclass(frozen=True, slots=True)
class Preparation:
    """The affine map between the data file and the rows of a model.

    Row ``i`` of the model is ``[(x_i - shift) / scale, bias]`` (for ``l2``: ``[x_i / ||x_i||, bias]``).

    Parameters
    ----------
    kind : str
        ``none``, ``maxabs``, ``standard`` or ``l2``.
    scale, shift : ndarray of shape (d,) or None
        Divisor and offset of every feature; None where there are none.
    bias : float
        Value of the constant feature behind the others; 0 for no bias.
    n_features : int
        ``d``, features of the data file.
    """

    kind: str
    scale: np.ndarray | None
    shift: np.ndarray | None
    bias: float
    n_features: int

    @property
    def has_intercept(self) -> bool:
        """Tell whether the model has an intercept in the units of the data file."""
        return bool(self.bias) or self.shift is not None

    def original(self, w: np.ndarray) -> tuple:
        """Return coefficients and intercept in the units of the data file, of one model or of several.

        For ``l2`` the coefficients apply to rows divided by their own norm, as in training.

        Parameters
        ----------
        w : ndarray of shape (..., d) or (..., d + 1)

        Returns
        -------
        coefficients : ndarray of shape (..., d)
        intercept : float, or ndarray of shape (...,)
        """
        coefficients = w[..., : self.n_features]
        intercept = w[..., self.n_features] * self.bias if self.bias else np.zeros(w.shape[:-1])
        if self.scale is not None:
            coefficients = coefficients / self.scale
        if self.shift is not None:
            intercept = intercept - np.sum(coefficients * self.shift, axis=-1)  # the same bits for one and for several
        return coefficients, float(intercept) if w.ndim == 1 else intercept

    def apply(self, X):
        """Return the rows of the model for data in the file's units (new data included)."""
        if self.kind == "l2":
            X = _unit_rows(X)
        elif self.shift is not None:
            X = (X - self.shift) / self.scale
        elif self.scale is not None:
            X = X @ sp.diags_array(1.0 / self.scale) if sp.issparse(X) else X / self.scale
        return _with_bias(X, self.bias)


def fit_preparation(X, scale: str = "none", bias: float = 0.0) -> Preparation:
    """Measure what a scaling needs.

    Parameters
    ----------
    X : ndarray or scipy.sparse array of shape (n, d)
        As it will be stored: the choice between dense and sparse has been made.
    scale : {"none", "maxabs", "standard", "l2"}
        ``standard`` subtracts the mean, which would fill a sparse array: it needs dense storage.
    bias : float, default 0
        Value of a constant feature to append; penalised like every other.

    Returns
    -------
    Preparation

    Raises
    ------
    UsageError
        For an unknown scaling, or ``standard`` on sparse rows.
    """
    if scale not in SCALES:
        raise UsageError(f"unknown scaling '{scale}'", f"use one of {', '.join(SCALES)}")
    if not np.isfinite(bias):
        raise UsageError(f"the bias must be a finite number, not {bias}")
    d = X.shape[1]
    if scale == "standard":
        if sp.issparse(X):
            raise UsageError(
                "--scale standard subtracts the mean, which would fill these sparse rows",
                "use --scale maxabs, or --storage dense if the dense array fits in memory",
            )
        shift, spread = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
        return Preparation(scale, spread_or_one(spread, shift), shift, bias, d)
    if scale == "maxabs":
        peak = abs(X).max(axis=0) if X.shape[0] else np.zeros(d)
        peak = np.asarray(peak.toarray() if sp.issparse(peak) else peak, dtype=np.float64).ravel()
        return Preparation(scale, np.where(peak > 0.0, peak, 1.0), None, bias, d)
    return Preparation(scale, None, None, bias, d)


def spread_or_one(spread: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the spreads of columns, 1 for constant ones.

    A constant column is centred to 0; its spread is rounding noise and must not blow that up.
    """
    constant = spread <= 1e-12 * np.maximum(np.abs(mean), np.finfo(float).tiny)
    return np.where(constant, 1.0, spread)


def prepare(X, scale: str = "none", bias: float = 0.0, storage: str = "auto", dtype=np.float64):
    """Choose the storage, measure the scaling and apply both.

    Returns
    -------
    X : ndarray or csr_array of shape (n, d) or (n, d + 1)
    preparation : Preparation
    """
    X = choose_storage(X, storage)
    preparation = fit_preparation(X, scale, bias)
    prepared = preparation.apply(X)
    if sp.issparse(prepared):
        prepared = sp.csr_array(prepared)
        prepared.data = prepared.data.astype(dtype, copy=False)
        return prepared, preparation
    return np.ascontiguousarray(prepared, dtype=dtype), preparation


def _unit_rows(X):
    if sp.issparse(X):
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel())
        return sp.diags_array(1.0 / np.where(norms > 0.0, norms, 1.0)) @ X
    norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    return X / np.where(norms > 0.0, norms, 1.0)[:, None]


def _with_bias(X, bias: float):
    if not bias:
        return X
    column = np.full((X.shape[0], 1), bias)
    if sp.issparse(X):
        return sp.hstack([X, sp.csr_array(column)], format="csr")
    return np.hstack([X, column])
