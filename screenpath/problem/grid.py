"""Grids of parameters."""

from __future__ import annotations

import math
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from screenpath.errors import DataError, UsageError

if TYPE_CHECKING:
    from screenpath.problem.box_types import Certificate


def log_grid(low: float, high: float, count: int) -> np.ndarray:
    """Return ``count`` values from ``low`` to ``high``, equally spaced in the logarithm, ends exact.

    The ends are positive and finite. A single value needs ``low == high``, unless it was asked for as one value. Ends
    that make no grid raise a UsageError.
    """
    if count < 1:
        raise UsageError(f"a grid needs at least 1 point, not {count}", "use `grid=N` with N >= 1")
    for name, value in (("lower", low), ("upper", high)):
        if not (np.isfinite(value) and value > 0.0):
            raise UsageError(f"the {name} end of the grid must be positive and finite, not {value}")
    if low > high or (count > 1 and low == high):
        one = f"give two ends apart; one point alone is `c_list={low:g}` (grid=[{low:g}] of svm_path and its like)"
        hint = one if low == high else "swap `cmin` and `cmax`"
        raise UsageError(f"the grid's lower end {low:g} must be below its upper end {high:g}", hint)
    if count == 1:
        return np.array([low])
    grid = np.geomspace(low, high, count)
    grid[0], grid[-1] = low, high
    return grid


def explicit_grid(values, zero: bool = False) -> np.ndarray:
    """Return the given parameters as an increasing array: finite, positive (or 0 if ``zero``), without duplicates."""
    try:
        grid = np.array(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"the parameters {values!r} are not all numbers", "give for example 0.1, 1 and 10") from None
    if grid.size == 0:
        raise UsageError("the list of parameters is empty", "give for example 0.1, 1 and 10")
    grid += 0.0  # there is one 0
    grid.sort()  # nan comes last
    wrong = grid[~(((grid > 0.0) | (zero & (grid == 0.0))) & (grid < np.inf))]
    if wrong.size:
        demand = f"positive and finite{', or 0' if zero else ''}"
        raise UsageError(f"every parameter of the list must be {demand}; {wrong[0]:g} is not", "leave it out")
    same = grid[1:] == grid[:-1]
    if same.any():
        raise UsageError(f"the parameter {grid[1:][same][0]:g} appears twice in the list", "give each value once")
    return grid


def beta_grid(betas, beta_max: float, min_ratio: float) -> np.ndarray:
    """Return the values of ``beta`` of a sparse-SVM grid, from the largest down.

    ``betas`` is how many, log-spaced from ``beta_max`` to ``min_ratio * beta_max`` (``0 < min_ratio <= 1``), or the
    values. Values above ``beta_max`` are allowed: all weights are zero there. Raises a UsageError for bad values.
    """
    _check_ratio(min_ratio, "`beta_min_ratio`")
    if np.ndim(betas) > 0:
        return explicit_grid(betas, zero=True)[::-1].copy()
    return _downward(betas, beta_max, min_ratio, "`betas`")


def alpha_grid(alphas, alpha_max: float, min_ratio: float, references: int = 0) -> np.ndarray:
    """Return the values of ``alpha`` of one row of a sparse-SVM grid, from the largest down; see :func:`beta_grid`.

    ``references``, with explicit values: so many further values, log-spaced, before each of them (Hong 2019, Table 4: a
    single pair is reached through a path of references). 0 gets none: it has no logarithm, and ``solve.sharp`` leads to
    it.
    """
    _check_ratio(min_ratio, "`alpha_min_ratio`")
    if references < 0:
        raise UsageError(f"`references` must not be negative, it is {references}")
    if np.ndim(alphas) == 0:
        return _downward(alphas, alpha_max, min_ratio, "`alphas`")
    wanted = explicit_grid(alphas, zero=True)[::-1]
    points: list[float] = []
    last = max(alpha_max, wanted[0])
    for alpha in wanted:
        points.extend(np.geomspace(last, alpha, references + 2)[1:-1] if 0.0 < alpha < last else [])
        points.append(alpha)
        last = alpha
    return np.array(points)


def _check_ratio(ratio: float, option: str) -> None:
    if not 0.0 < ratio <= 1.0:
        raise UsageError(f"{option} must be above 0 and at most 1, not {ratio}")


def _downward(count: int, top: float, ratio: float, option: str) -> np.ndarray:
    if isinstance(count, bool) or not isinstance(count, Integral):
        raise UsageError(f"{option} must be a number of grid points or a list of values, not {count!r}")
    if count < 1:
        raise UsageError(f"a grid needs at least 1 point, not {count}", f"use {option} N with N >= 1")
    if count > 1 and ratio == 1.0:
        raise UsageError(f"{count} grid points need a range: the ratio of its ends is 1", f"use {option} 1")
    return log_grid(ratio * top, top, count)[::-1].copy() if count > 1 else np.array([top])


class EpsilonGrid:
    """Grid of C that grows with the path: each value follows from the pair certified at the one before.

    The pair (w, theta) certified at ``C0`` stays epsilon-optimal (gap at most ``epsilon * D``) up to ``x C0``, with
    ``x`` the larger root of ``(1 + eps)/2 ||w_theta||^2 x^2 + C0 (xi - (1 + eps) ell) x + 1/2 ||w||^2`` (Ogawa
    2014, App. D; Giesen 2012); the gap is convex in ``x``, so it holds in between. Hence every C of the range, not
    only the values, is solved to within epsilon by the last value at or below it.

    Parameters
    ----------
    low, high : float
        First and last C.
    epsilon : float
        Guaranteed relative gap; the path's own tolerance has to be smaller.
    """

    SHORTEN = 1.0 - 1e-9  # of every stride, for rounding
    grows = True  # with the walk

    def __init__(self, low: float, high: float, epsilon: float):
        try:
            low, high, epsilon = float(low), float(high), float(epsilon)
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"ends and accuracy of an eps-path are numbers, not {(low, high, epsilon)!r}") from None
        log_grid(low, high, 2)  # the same demands on the ends
        if not 0.0 < epsilon < 1.0:
            raise UsageError(f"the accuracy of an eps-path must lie between 0 and 1, not {epsilon}")
        self.low, self.high, self.epsilon = low, high, epsilon
        self.restart()

    def restart(self) -> None:
        """Forget all values but the first."""
        self._known, self._size = {0: self.low}, 1

    def __getitem__(self, rank: int) -> float:
        if rank not in self._known:  # ends a loop over the points
            raise IndexError(f"an eps-path has no point {rank} yet")
        return self._known[rank]

    def __len__(self) -> int:
        return self._size

    def ahead(self, certificate: Certificate) -> bool:
        """Tell whether a certificate leads to another value."""
        return epsilon_stride(certificate, self.epsilon) > 1.0

    def extend(self, rank: int, certificate: Certificate) -> None:
        """Add the value after ``rank``, if any; a UsageError if the certificate's gap is too large for a stride."""
        if self.high <= certificate.C:
            self._known[rank], self._size = certificate.C, rank + 1  # which a resumed path does not know
            return
        x = epsilon_stride(certificate, self.epsilon)
        if not x > 1.0:
            raise UsageError(
                f"at C = {certificate.C:g} the relative gap is {certificate.rel_gap:.1e}: too large for an eps-path of "
                f"{self.epsilon:g}",
                "use a smaller `tol` or a larger `eps_path`",
            )
        self._known[rank + 1], self._size = min(self.high, x * certificate.C), rank + 2

    def most(self, tol: float) -> int:
        """Return a bound on the number of values, if each is certified to ``tol``.

        Take P = 1 for the primal value at a point, and ``r = sqrt(tol)``. Its dual value is at least ``1 - tol``, the
        norms of its two points differ by ``sqrt(2 tol)`` at most, and so at ``(1 + z)`` times its C the gap is at most
        ``tol (1 + z) + (1 + r)^2 z^2 + (2 r + tol) z`` and the dual value at least ``(1 - tol) (1 + z) - (1 + r)^2 z (1
        + z)``. The stride is at least the ``z`` at which the former is epsilon times the latter; rounding is left out.
        """
        r, eps = math.sqrt(tol), self.epsilon
        square = (1.0 + r) ** 2 * (1.0 + eps)
        slope = tol + 2.0 * r + tol - eps * (1.0 - tol) + eps * (1.0 + r) ** 2
        least = tol - eps * (1.0 - tol)  # below 0, as tol is below epsilon by a part at least
        if least >= 0.0:
            return len(self)
        z = (-slope + math.sqrt(slope * slope - 4.0 * square * least)) / (2.0 * square)
        return 1 + math.ceil(math.log(self.high / self.low) / math.log1p(self.SHORTEN * z))

    def covered(self) -> float:
        """Return the share of the range, in the logarithm, between the first value and the last."""
        return math.log(self._known[self._size - 1] / self.low) / math.log(self.high / self.low)

    def guarantee(self, done: int) -> dict:
        """Return the entry of run.json for ``done`` values: the last of them serves up to the next one."""
        return {"epsilon": self.epsilon, "from": self.low, "to": self._known[min(done, len(self) - 1)]}


def epsilon_stride(certificate: Certificate, epsilon: float) -> float:
    """Return the factor up to which a pair stays epsilon-optimal: inf if for every C, below 1 if not even here."""
    C = certificate.C
    if certificate.gap == 0.0 and not (certificate.point.vector.any() or certificate.total.any()):
        return math.inf  # without weights, both objectives grow as C does
    square = 0.5 * (1.0 + epsilon) * C * C * certificate.total_sq
    slope = C * (certificate.xi - (1.0 + epsilon) * certificate.ell + certificate.error)
    constant = 0.5 * certificate.point.sqnorm
    inside = slope * slope - 4.0 * square * constant
    if inside < 0.0 or slope >= 0.0:
        return 0.0
    if square == 0.0:
        return _stride_of_little(certificate, epsilon, slope, constant)
    return EpsilonGrid.SHORTEN * (-slope + math.sqrt(inside)) / (2.0 * square)


def _stride_of_little(certificate: Certificate, epsilon: float, slope: float, constant: float) -> float:
    """:func:`epsilon_stride` if the quadratic term is 0: there is none, or C times the sum cannot be squared."""
    largest = float(np.abs(certificate.total).max(initial=0.0))
    if largest == 0.0:
        return math.inf
    length = largest * float(np.linalg.norm(certificate.total / largest))
    size = math.sqrt(0.5 * (1.0 + epsilon)) * (certificate.C * max(length, math.sqrt(certificate.total_sq)))
    if size == 0.0 or not math.isfinite(slope / size):
        return 0.0
    slope /= size
    inside = slope * slope - 4.0 * constant
    return EpsilonGrid.SHORTEN * 0.5 * (-slope + math.sqrt(inside)) / size if inside >= 0.0 else 0.0


def lambda_grid(model, grid, log: bool = False, lambda_min_ratio: float = 0.05) -> np.ndarray:
    """Return decreasing values of lambda: ``lambda_max / k``, log-spaced, or the ones given.

    A DataError is raised if the grid depends on ``lambda_max`` and that is 0: no feature differs between the classes. A
    UsageError is, for a count below 1 or a ratio outside (0, 1).
    """
    if np.ndim(grid) > 0:
        return explicit_grid(grid)[::-1].copy()
    if isinstance(grid, bool) or not isinstance(grid, Integral):
        raise UsageError(f"`grid` must be a number of grid points or a list of values, not {grid!r}")
    if int(grid) < 1:
        raise UsageError(f"a grid needs at least 1 point, not {grid}", "use `grid=N` with N >= 1")
    if model.lam_max == 0.0:
        raise DataError(
            "lambda_max is 0 but for rounding: no feature separates the two classes, so every lambda gives w = 0",
            "check labels and features (is each feature the same in both classes?), or give the values themselves",
        )
    if not log:
        return model.lam_max / np.arange(1, int(grid) + 1)
    if not 0.0 < lambda_min_ratio < 1.0:
        raise UsageError(f"`lambda_min_ratio` must lie between 0 and 1, not {lambda_min_ratio}")
    return _downward(int(grid), model.lam_max, lambda_min_ratio, "`grid`")


def further_c(options: dict, grid: np.ndarray, count: int) -> np.ndarray:
    """Return values of C beyond a log-spaced grid of two or more, with its spacing; fewer if they are too large."""
    ratio = (grid[-1] / grid[0]) ** (1.0 / (len(grid) - 1))
    with np.errstate(over="ignore", under="ignore"):
        points = grid[-1] * ratio ** np.arange(1.0, count + 1.0)
    return points[(points > 0.0) & (points < np.inf)]


def further_lambda(options: dict, grid: np.ndarray, count: int) -> np.ndarray:
    """Return values of lambda beyond a grid, as :func:`further_c`: log-spaced, or further ``lambda_max / k``."""
    if options["log"]:
        return further_c(options, grid, count)
    return grid[0] / np.arange(len(grid) + 1, len(grid) + count + 1)


def beta_values(model, betas, beta_min_ratio: float) -> np.ndarray:
    """Return the values of ``beta``, see :func:`beta_grid`."""
    if np.ndim(betas) == 0:
        _check_top(model, model.beta_max)
    return beta_grid(betas, model.beta_max, beta_min_ratio)


def _check_top(model, top: float) -> None:
    """Raise if the largest ``beta``, or ``alpha``, is 0."""
    if top > 0.0:
        return
    what, hint = "labels", "check labels and features (is each feature the same in all classes?)"
    if model.regression:
        what, hint = "targets", "check targets and features; centred features may need `intercept=free`"
    raise DataError(
        f"beta_max is 0 but for rounding: no feature goes with the {what}, so w = 0 is optimal for every alpha "
        "and beta",
        f"{hint}, or give the values themselves",
    )


def grid_pairs(model, betas, alphas, alpha_min_ratio: float, references: int = 0) -> list:
    """Return the pairs (alpha, beta) of a grid, the row of one ``beta`` after the other."""
    pairs: list[tuple[float, float]] = []
    tops = alpha_tops(model, betas)
    if np.ndim(alphas) == 0:
        _check_top(model, min(model.beta_max, tops.min()))
    for beta, top in zip(betas, tops, strict=True):
        row = alpha_grid(alphas, top, alpha_min_ratio, references)
        pairs.extend((float(alpha), float(beta)) for alpha in row)
    return pairs


def alpha_tops(model, betas) -> np.ndarray:
    """Return ``alpha_max`` of every ``beta``.

    If ``w = 0`` is optimal for every ``alpha`` (``beta >= beta_max``) the formula gives 0 and any positive value
    serves: that of the smallest ``beta`` is taken, or of ``beta_max / 2`` if all are too large.
    """
    tops = np.array([model.at(beta).alpha_max() for beta in betas])
    if np.all(tops > 0.0):
        return tops
    spare = tops[-1] if tops[-1] > 0.0 else model.at(0.5 * model.beta_max).alpha_max()
    return np.where(tops > 0.0, tops, spare)
