# Made from the declared options by `make stubs`.
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from screenpath.sklearn import estimators
from screenpath.sklearn.export import fitted as fitted

# Attributes that the same estimators have, under the name of the first.
class _Alpha:
    alpha: float
    beta: float

class _Bias:
    bias: float
    intercept: str | None
    seed: int

class _Smoothing:
    smoothing: float
    first: str

class _OneHot:
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    rule: str | Any
    solver: str | Any
    tol: float
    max_epochs: int

class _Betas:
    betas: int | Sequence[float] | np.ndarray
    alphas: int | Sequence[float] | np.ndarray
    beta_min_ratio: float
    alpha_min_ratio: float

class _Cv:
    cv: Any
    scoring: str | Callable | None
    step: str
    n_jobs: int | None

class _Grid:
    grid: int | Sequence[float] | np.ndarray
    until_turn: bool
    turn_points: int

class _Kernel:
    kernel: str | Callable | None
    gamma: float | str
    degree: int
    coef0: float
    smoothing: float | None

class _Cmin:
    cmin: float
    cmax: float

class HuberRegressor(estimators.HuberRegressor, _Alpha, _Bias, _Smoothing, _OneHot):
    nonnegative: bool
    def __init__(
        self, alpha: float = 0.01, beta: float = 0.01, *, bias: float = 0.0, intercept: str | None = None,
        smoothing: float = 1.0, nonnegative: bool = False, one_hot: str | Sequence[str] | None = None,
        missing: str | float = "error", scale: str = "none", first: str = "features", rule: str | Any = "sifs+gap",
        solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class HuberRegressorCV(estimators.HuberRegressorCV, _Bias, _Smoothing, _OneHot, _Betas, _Cv):
    nonnegative: bool
    def __init__(
        self, betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
        beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, bias: float = 0.0,
        intercept: str | None = None, smoothing: float = 1.0, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06,
        seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class L1SVMClassifier(estimators.L1SVMClassifier, _OneHot):
    nonnegative: bool
    C: float
    class_weight: Mapping | str | None
    threads: int
    def __init__(
        self, C: float = 1.0, *, class_weight: Mapping | str | None = None, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        rule: str | Any = "vi+gap", solver: str | Any = "auto", tol: float = 1e-06, max_epochs: int = 100000,
        threads: int = 1,
    ) -> None: ...

class L1SVMClassifierCV(estimators.L1SVMClassifierCV, _OneHot, _Cv, _Grid):
    nonnegative: bool
    class_weight: Mapping | str | None
    threads: int
    log: bool
    lambda_min_ratio: float
    def __init__(
        self, grid: int | Sequence[float] | np.ndarray = 20, log: bool = False, lambda_min_ratio: float = 0.05, *,
        cv: Any = None, scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None,
        until_turn: bool = False, turn_points: int = 100, class_weight: Mapping | str | None = None,
        nonnegative: bool = False, one_hot: str | Sequence[str] | None = None, missing: str | float = "error",
        scale: str = "none", rule: str | Any = "vi+gap", solver: str | Any = "auto", tol: float = 1e-06,
        max_epochs: int = 100000, threads: int = 1,
    ) -> None: ...

class LADRegressor(estimators.LADRegressor, _Bias, _OneHot, _Kernel):
    C: float
    threads: int
    def __init__(
        self, C: float = 1.0, *, bias: float = 0.0, intercept: str | None = None, kernel: str | Callable | None = None,
        gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0, smoothing: float | None = None,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0,
        max_epochs: int = 100000, threads: int = 1,
    ) -> None: ...

class LADRegressorCV(estimators.LADRegressorCV, _Bias, _OneHot, _Cv, _Grid, _Kernel, _Cmin):
    threads: int
    def __init__(
        self, grid: int | Sequence[float] | np.ndarray = 100, cmin: float = 0.01, cmax: float = 10.0, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, until_turn: bool = False,
        turn_points: int = 100, bias: float = 0.0, intercept: str | None = None, kernel: str | Callable | None = None,
        gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0, smoothing: float | None = None,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0,
        max_epochs: int = 100000, threads: int = 1,
    ) -> None: ...

class QuantileRegressor(estimators.QuantileRegressor, _Bias, _OneHot, _Kernel):
    C: float
    threads: int
    tau: float
    def __init__(
        self, C: float = 1.0, *, bias: float = 0.0, tau: float = 0.5, intercept: str | None = None,
        kernel: str | Callable | None = None, gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0,
        smoothing: float | None = None, one_hot: str | Sequence[str] | None = None, missing: str | float = "error",
        scale: str = "none", rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0,
        max_epochs: int = 100000, threads: int = 1,
    ) -> None: ...

class QuantileRegressorCV(estimators.QuantileRegressorCV, _Bias, _OneHot, _Cv, _Grid, _Kernel, _Cmin):
    threads: int
    tau: float
    def __init__(
        self, grid: int | Sequence[float] | np.ndarray = 100, cmin: float = 0.01, cmax: float = 10.0, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, until_turn: bool = False,
        turn_points: int = 100, bias: float = 0.0, tau: float = 0.5, intercept: str | None = None,
        kernel: str | Callable | None = None, gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0,
        smoothing: float | None = None, one_hot: str | Sequence[str] | None = None, missing: str | float = "error",
        scale: str = "none", rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0,
        max_epochs: int = 100000, threads: int = 1,
    ) -> None: ...

class SVMClassifier(estimators.SVMClassifier, _Bias, _OneHot, _Kernel):
    C: float
    class_weight: Mapping | str | None
    threads: int
    multi_class: str
    decision_function_shape: str
    def __init__(
        self, C: float = 1.0, *, bias: float = 0.0, intercept: str | None = None,
        class_weight: Mapping | str | None = None, kernel: str | Callable | None = None, gamma: float | str = "1/d",
        degree: int = 3, coef0: float = 0.0, smoothing: float | None = None, one_hot: str | Sequence[str] | None = None,
        missing: str | float = "error", scale: str = "none", rule: str | Any = "auto", solver: str | Any = "auto",
        tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000, threads: int = 1, multi_class: str = "ovr",
        decision_function_shape: str = "ovr",
    ) -> None: ...

class SVMClassifierCV(estimators.SVMClassifierCV, _Bias, _OneHot, _Cv, _Grid, _Kernel, _Cmin):
    class_weight: Mapping | str | None
    threads: int
    multi_class: str
    decision_function_shape: str
    certify: bool
    certify_to: float | None
    certify_points: int
    calibration: str | None
    def __init__(
        self, grid: int | Sequence[float] | np.ndarray = 100, cmin: float = 0.01, cmax: float = 10.0, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, until_turn: bool = False,
        turn_points: int = 100, certify: bool = False, certify_to: float | None = None, certify_points: int = 1000,
        calibration: str | None = None, bias: float = 0.0, intercept: str | None = None,
        class_weight: Mapping | str | None = None, kernel: str | Callable | None = None, gamma: float | str = "1/d",
        degree: int = 3, coef0: float = 0.0, smoothing: float | None = None, one_hot: str | Sequence[str] | None = None,
        missing: str | float = "error", scale: str = "none", rule: str | Any = "auto", solver: str | Any = "auto",
        tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000, threads: int = 1, multi_class: str = "ovr",
        decision_function_shape: str = "ovr",
    ) -> None: ...

class SVMRegressor(estimators.SVMRegressor, _Bias, _OneHot, _Kernel):
    C: float
    threads: int
    epsilon: float
    def __init__(
        self, C: float = 1.0, *, bias: float = 0.0, epsilon: float = 0.1, intercept: str | None = None,
        kernel: str | Callable | None = None, gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0,
        smoothing: float | None = None, one_hot: str | Sequence[str] | None = None, missing: str | float = "error",
        scale: str = "none", rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0,
        max_epochs: int = 100000, threads: int = 1,
    ) -> None: ...

class SVMRegressorCV(estimators.SVMRegressorCV, _Bias, _OneHot, _Cv, _Grid, _Kernel, _Cmin):
    threads: int
    epsilon: float
    def __init__(
        self, grid: int | Sequence[float] | np.ndarray = 100, cmin: float = 0.01, cmax: float = 10.0, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, until_turn: bool = False,
        turn_points: int = 100, bias: float = 0.0, epsilon: float = 0.1, intercept: str | None = None,
        kernel: str | Callable | None = None, gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0,
        smoothing: float | None = None, one_hot: str | Sequence[str] | None = None, missing: str | float = "error",
        scale: str = "none", rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0,
        max_epochs: int = 100000, threads: int = 1,
    ) -> None: ...

class SparseLADRegressor(estimators.SparseLADRegressor, _Alpha, _Bias, _Smoothing, _OneHot):
    nonnegative: bool
    def __init__(
        self, alpha: float = 0.01, beta: float = 0.01, *, bias: float = 0.0, intercept: str | None = None,
        smoothing: float = 0.0, nonnegative: bool = False, one_hot: str | Sequence[str] | None = None,
        missing: str | float = "error", scale: str = "none", first: str = "features", rule: str | Any = "sifs+gap",
        solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseLADRegressorCV(estimators.SparseLADRegressorCV, _Bias, _Smoothing, _OneHot, _Betas, _Cv):
    nonnegative: bool
    def __init__(
        self, betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
        beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, bias: float = 0.0,
        intercept: str | None = None, smoothing: float = 0.0, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06,
        seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseQuantileRegressor(estimators.SparseQuantileRegressor, _Alpha, _Bias, _Smoothing, _OneHot):
    nonnegative: bool
    tau: float
    def __init__(
        self, alpha: float = 0.01, beta: float = 0.01, *, bias: float = 0.0, tau: float = 0.5,
        intercept: str | None = None, smoothing: float = 0.0, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06,
        seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseQuantileRegressorCV(estimators.SparseQuantileRegressorCV, _Bias, _Smoothing, _OneHot, _Betas, _Cv):
    nonnegative: bool
    tau: float
    def __init__(
        self, betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
        beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, bias: float = 0.0,
        tau: float = 0.5, intercept: str | None = None, smoothing: float = 0.0, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06,
        seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseSVMClassifier(estimators.SparseSVMClassifier, _Alpha, _Bias, _Smoothing, _OneHot):
    nonnegative: bool
    class_weight: Mapping | str | None
    loss: str
    def __init__(
        self, alpha: float = 0.01, beta: float = 0.01, *, bias: float = 0.0, intercept: str | None = None,
        class_weight: Mapping | str | None = None, loss: str = "hinge", smoothing: float = 0.5,
        nonnegative: bool = False, one_hot: str | Sequence[str] | None = None, missing: str | float = "error",
        scale: str = "none", first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto",
        tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseSVMClassifierCV(estimators.SparseSVMClassifierCV, _Bias, _Smoothing, _OneHot, _Betas, _Cv):
    nonnegative: bool
    class_weight: Mapping | str | None
    loss: str
    def __init__(
        self, betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
        beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, bias: float = 0.0,
        intercept: str | None = None, class_weight: Mapping | str | None = None, loss: str = "hinge",
        smoothing: float = 0.5, nonnegative: bool = False, one_hot: str | Sequence[str] | None = None,
        missing: str | float = "error", scale: str = "none", first: str = "features", rule: str | Any = "sifs+gap",
        solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseSVMRegressor(estimators.SparseSVMRegressor, _Alpha, _Bias, _Smoothing, _OneHot):
    nonnegative: bool
    epsilon: float
    def __init__(
        self, alpha: float = 0.01, beta: float = 0.01, *, bias: float = 0.0, epsilon: float = 0.1,
        intercept: str | None = None, smoothing: float = 0.0, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06,
        seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseSVMRegressorCV(estimators.SparseSVMRegressorCV, _Bias, _Smoothing, _OneHot, _Betas, _Cv):
    nonnegative: bool
    epsilon: float
    def __init__(
        self, betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
        beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, bias: float = 0.0,
        epsilon: float = 0.1, intercept: str | None = None, smoothing: float = 0.0, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06,
        seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...
