# Made from the declared options by `make stubs`.
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from screenpath.api.runs import compare as compare
from screenpath.api.runs import compare_runs as compare_runs
from screenpath.api.runs import convert as convert
from screenpath.api.runs import cross_validate as cross_validate
from screenpath.api.runs import export_run as export_run
from screenpath.api.runs import merge_runs as merge_runs
from screenpath.api.runs import options_of as options_of
from screenpath.api.runs import plot_run as plot_run
from screenpath.api.runs import prediction_intervals as prediction_intervals
from screenpath.api.runs import report_run as report_run
from screenpath.api.runs import run as run
from screenpath.api.runs import show_run as show_run
from screenpath.catalogue.specs import rules_of as rules_of
from screenpath.data.files.dataset import RowsLike
from screenpath.data.files.generate import generate as generate
from screenpath.data.files.libsvm import read_libsvm as read_libsvm
from screenpath.data.files.read import read_data as read_data
from screenpath.data.files.write_libsvm import write_libsvm as write_libsvm
from screenpath.engine.certify import CertifiedModel as CertifiedModel
from screenpath.engine.certify import certify as certify
from screenpath.engine.reduce import reduce_run as reduce_run
from screenpath.engine.result import KernelPathResult as KernelPathResult
from screenpath.engine.result import PathResult as PathResult
from screenpath.engine.result import SparsePathResult as SparsePathResult
from screenpath.engine.stored import StoredPath as StoredPath
from screenpath.engine.stored import load_run as load_run
from screenpath.inputs.inspect import inspect as inspect
from screenpath.problem.grid import EpsilonGrid as EpsilonGrid
from screenpath.verify import verify_certificate as verify_certificate

__version__: str

def huber_path(
    X: RowsLike, y: ArrayLike, *, bias: float = 0.0, intercept: str | None = None,
    sample_weight: ArrayLike | None = None, smoothing: float = 1.0, penalty: str = "elastic-net",
    nonnegative: bool = False, signs: ArrayLike | None = None, one_hot: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None, drop: str | Sequence[str] | None = None,
    missing: str | float = "error", scale: str = "none", storage: str = "auto", dtype: DTypeLike = "float64",
    betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
    beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, references: int = 0, first: str = "features",
    rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0, jobs: int = 1,
    max_epochs: int = 100000, time_limit: float | None = None,
) -> SparsePathResult: ...

def kernel_lad_path(
    X: RowsLike, y: ArrayLike, *, bias: float = 0.0, intercept: str | None = None,
    sample_weight: ArrayLike | None = None, gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0,
    smoothing: float | None = None, one_hot: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None, drop: str | Sequence[str] | None = None,
    missing: str | float = "error", scale: str = "none", storage: str = "auto", dtype: DTypeLike = "float64",
    grid: int | Sequence[float] | np.ndarray | EpsilonGrid = 100, cmin: float = 0.01, cmax: float = 10.0,
    rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, max_epochs: int = 100000,
    time_limit: float | None = None, threads: int = 1, kernel: str | Callable = "rbf",
    max_memory: int | str | None = None, shrinking: bool = True, tell: Callable[[str], object] | None = None,
) -> KernelPathResult: ...

def kernel_quantile_path(
    X: RowsLike, y: ArrayLike, *, bias: float = 0.0, tau: float = 0.5, intercept: str | None = None,
    sample_weight: ArrayLike | None = None, gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0,
    smoothing: float | None = None, one_hot: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None, drop: str | Sequence[str] | None = None,
    missing: str | float = "error", scale: str = "none", storage: str = "auto", dtype: DTypeLike = "float64",
    grid: int | Sequence[float] | np.ndarray | EpsilonGrid = 100, cmin: float = 0.01, cmax: float = 10.0,
    rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, max_epochs: int = 100000,
    time_limit: float | None = None, threads: int = 1, kernel: str | Callable = "rbf",
    max_memory: int | str | None = None, shrinking: bool = True, tell: Callable[[str], object] | None = None,
) -> KernelPathResult: ...

def kernel_svm_path(
    X: RowsLike, y: ArrayLike, *, bias: float = 0.0, intercept: str | None = None,
    class_weight: Mapping | str | None = None, sample_weight: ArrayLike | None = None, gamma: float | str = "1/d",
    degree: int = 3, coef0: float = 0.0, smoothing: float | None = None, one_hot: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None, drop: str | Sequence[str] | None = None,
    missing: str | float = "error", scale: str = "none", storage: str = "auto", dtype: DTypeLike = "float64",
    grid: int | Sequence[float] | np.ndarray | EpsilonGrid = 100, cmin: float = 0.01, cmax: float = 10.0,
    rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, max_epochs: int = 100000,
    time_limit: float | None = None, threads: int = 1, kernel: str | Callable = "rbf",
    max_memory: int | str | None = None, shrinking: bool = True, tell: Callable[[str], object] | None = None,
) -> KernelPathResult: ...

def kernel_svr_path(
    X: RowsLike, y: ArrayLike, *, bias: float = 0.0, epsilon: float = 0.1, intercept: str | None = None,
    sample_weight: ArrayLike | None = None, gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0,
    smoothing: float | None = None, one_hot: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None, drop: str | Sequence[str] | None = None,
    missing: str | float = "error", scale: str = "none", storage: str = "auto", dtype: DTypeLike = "float64",
    grid: int | Sequence[float] | np.ndarray | EpsilonGrid = 100, cmin: float = 0.01, cmax: float = 10.0,
    rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, max_epochs: int = 100000,
    time_limit: float | None = None, threads: int = 1, kernel: str | Callable = "rbf",
    max_memory: int | str | None = None, shrinking: bool = True, tell: Callable[[str], object] | None = None,
) -> KernelPathResult: ...

def l1_svm_path(
    X: RowsLike, y: ArrayLike, *, class_weight: Mapping | str | None = None, sample_weight: ArrayLike | None = None,
    penalty_weights: ArrayLike | None = None, nonnegative: bool = False, signs: ArrayLike | None = None,
    one_hot: str | Sequence[str] | None = None, columns: str | Sequence[str] | None = None,
    drop: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
    storage: str = "auto", dtype: DTypeLike = "float64", grid: int | Sequence[float] | np.ndarray = 20,
    log: bool = False, lambda_min_ratio: float = 0.05, rule: str | Any = "vi+gap", solver: str | Any = "auto",
    tol: float = 1e-06, max_epochs: int = 100000, time_limit: float | None = None, threads: int = 1,
) -> PathResult: ...

def lad_path(
    X: RowsLike, y: ArrayLike, *, bias: float = 0.0, intercept: str | None = None,
    sample_weight: ArrayLike | None = None, one_hot: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None, drop: str | Sequence[str] | None = None,
    missing: str | float = "error", scale: str = "none", storage: str = "auto", dtype: DTypeLike = "float64",
    grid: int | Sequence[float] | np.ndarray | EpsilonGrid = 100, cmin: float = 0.01, cmax: float = 10.0,
    chunk: int | None = None, chunk_form: str = "C", rule: str | Any = "auto", solver: str | Any = "auto",
    tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000, time_limit: float | None = None, threads: int = 1,
) -> PathResult: ...

def quantile_path(
    X: RowsLike, y: ArrayLike, *, bias: float = 0.0, tau: float = 0.5, intercept: str | None = None,
    sample_weight: ArrayLike | None = None, one_hot: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None, drop: str | Sequence[str] | None = None,
    missing: str | float = "error", scale: str = "none", storage: str = "auto", dtype: DTypeLike = "float64",
    grid: int | Sequence[float] | np.ndarray | EpsilonGrid = 100, cmin: float = 0.01, cmax: float = 10.0,
    chunk: int | None = None, chunk_form: str = "C", rule: str | Any = "auto", solver: str | Any = "auto",
    tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000, time_limit: float | None = None, threads: int = 1,
) -> PathResult: ...

def sparse_lad_path(
    X: RowsLike, y: ArrayLike, *, bias: float = 0.0, intercept: str | None = None,
    sample_weight: ArrayLike | None = None, smoothing: float = 0.0, penalty: str = "elastic-net",
    nonnegative: bool = False, signs: ArrayLike | None = None, one_hot: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None, drop: str | Sequence[str] | None = None,
    missing: str | float = "error", scale: str = "none", storage: str = "auto", dtype: DTypeLike = "float64",
    betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
    beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, references: int = 0, first: str = "features",
    rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0, jobs: int = 1,
    max_epochs: int = 100000, time_limit: float | None = None,
) -> SparsePathResult: ...

def sparse_quantile_path(
    X: RowsLike, y: ArrayLike, *, bias: float = 0.0, tau: float = 0.5, intercept: str | None = None,
    sample_weight: ArrayLike | None = None, smoothing: float = 0.0, penalty: str = "elastic-net",
    nonnegative: bool = False, signs: ArrayLike | None = None, one_hot: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None, drop: str | Sequence[str] | None = None,
    missing: str | float = "error", scale: str = "none", storage: str = "auto", dtype: DTypeLike = "float64",
    betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
    beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, references: int = 0, first: str = "features",
    rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0, jobs: int = 1,
    max_epochs: int = 100000, time_limit: float | None = None,
) -> SparsePathResult: ...

def sparse_svm_path(
    X: RowsLike, y: ArrayLike, *, bias: float = 0.0, intercept: str | None = None,
    class_weight: Mapping | str | None = None, sample_weight: ArrayLike | None = None, loss: str = "hinge",
    smoothing: float = 0.5, groups: ArrayLike | None = None, l1_share: float = 0.0, penalty: str = "elastic-net",
    nonnegative: bool = False, signs: ArrayLike | None = None, one_hot: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None, drop: str | Sequence[str] | None = None,
    missing: str | float = "error", scale: str = "none", storage: str = "auto", dtype: DTypeLike = "float64",
    betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
    beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, references: int = 0, first: str = "features",
    rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0, jobs: int = 1,
    max_epochs: int = 100000, time_limit: float | None = None,
) -> SparsePathResult: ...

def sparse_svr_path(
    X: RowsLike, y: ArrayLike, *, bias: float = 0.0, epsilon: float = 0.1, intercept: str | None = None,
    sample_weight: ArrayLike | None = None, smoothing: float = 0.0, penalty: str = "elastic-net",
    nonnegative: bool = False, signs: ArrayLike | None = None, one_hot: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None, drop: str | Sequence[str] | None = None,
    missing: str | float = "error", scale: str = "none", storage: str = "auto", dtype: DTypeLike = "float64",
    betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
    beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, references: int = 0, first: str = "features",
    rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0, jobs: int = 1,
    max_epochs: int = 100000, time_limit: float | None = None,
) -> SparsePathResult: ...

def svm_path(
    X: RowsLike, y: ArrayLike, *, bias: float = 0.0, intercept: str | None = None,
    class_weight: Mapping | str | None = None, sample_weight: ArrayLike | None = None,
    one_hot: str | Sequence[str] | None = None, columns: str | Sequence[str] | None = None,
    drop: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
    storage: str = "auto", dtype: DTypeLike = "float64",
    grid: int | Sequence[float] | np.ndarray | EpsilonGrid = 100, cmin: float = 0.01, cmax: float = 10.0,
    chunk: int | None = None, chunk_form: str = "C", rule: str | Any = "auto", solver: str | Any = "auto",
    tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000, time_limit: float | None = None, threads: int = 1,
) -> PathResult: ...

def svr_path(
    X: RowsLike, y: ArrayLike, *, bias: float = 0.0, epsilon: float = 0.1, intercept: str | None = None,
    sample_weight: ArrayLike | None = None, one_hot: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None, drop: str | Sequence[str] | None = None,
    missing: str | float = "error", scale: str = "none", storage: str = "auto", dtype: DTypeLike = "float64",
    grid: int | Sequence[float] | np.ndarray | EpsilonGrid = 100, cmin: float = 0.01, cmax: float = 10.0,
    chunk: int | None = None, chunk_form: str = "C", rule: str | Any = "auto", solver: str | Any = "auto",
    tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000, time_limit: float | None = None, threads: int = 1,
) -> PathResult: ...
