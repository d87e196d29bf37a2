# Made from the declared options by `make stubs`.
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from screenpath.sklearn import estimators
from screenpath.sklearn.export import fitted as fitted

class HuberRegressor(estimators.HuberRegressor):
    alpha: float
    beta: float
    bias: float
    intercept: str | None
    smoothing: float
    nonnegative: bool
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    first: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    def __init__(
        self, alpha: float = 0.01, beta: float = 0.01, *, bias: float = 0.0, intercept: str | None = None,
        smoothing: float = 1.0, nonnegative: bool = False, one_hot: str | Sequence[str] | None = None,
        missing: str | float = "error", scale: str = "none", first: str = "features", rule: str | Any = "sifs+gap",
        solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class HuberRegressorCV(estimators.HuberRegressorCV):
    betas: int | Sequence[float] | np.ndarray
    alphas: int | Sequence[float] | np.ndarray
    beta_min_ratio: float
    alpha_min_ratio: float
    cv: Any
    scoring: str | Callable | None
    step: str
    n_jobs: int | None
    bias: float
    intercept: str | None
    smoothing: float
    nonnegative: bool
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    first: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    def __init__(
        self, betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
        beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, bias: float = 0.0,
        intercept: str | None = None, smoothing: float = 1.0, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06,
        seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class L1SVMClassifier(estimators.L1SVMClassifier):
    C: float
    class_weight: Mapping | str | None
    nonnegative: bool
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    rule: str | Any
    solver: str | Any
    tol: float
    max_epochs: int
    threads: int
    def __init__(
        self, C: float = 1.0, *, class_weight: Mapping | str | None = None, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        rule: str | Any = "vi+gap", solver: str | Any = "auto", tol: float = 1e-06, max_epochs: int = 100000,
        threads: int = 1,
    ) -> None: ...

class L1SVMClassifierCV(estimators.L1SVMClassifierCV):
    grid: int | Sequence[float] | np.ndarray
    log: bool
    lambda_min_ratio: float
    cv: Any
    scoring: str | Callable | None
    step: str
    n_jobs: int | None
    until_turn: bool
    turn_points: int
    class_weight: Mapping | str | None
    nonnegative: bool
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    rule: str | Any
    solver: str | Any
    tol: float
    max_epochs: int
    threads: int
    def __init__(
        self, grid: int | Sequence[float] | np.ndarray = 20, log: bool = False, lambda_min_ratio: float = 0.05, *,
        cv: Any = None, scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None,
        until_turn: bool = False, turn_points: int = 100, class_weight: Mapping | str | None = None,
        nonnegative: bool = False, one_hot: str | Sequence[str] | None = None, missing: str | float = "error",
        scale: str = "none", rule: str | Any = "vi+gap", solver: str | Any = "auto", tol: float = 1e-06,
        max_epochs: int = 100000, threads: int = 1,
    ) -> None: ...

class LADRegressor(estimators.LADRegressor):
    C: float
    bias: float
    intercept: str | None
    kernel: str | Callable | None
    gamma: float | str
    degree: int
    coef0: float
    smoothing: float | None
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    threads: int
    def __init__(
        self, C: float = 1.0, *, bias: float = 0.0, intercept: str | None = None, kernel: str | Callable | None = None,
        gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0, smoothing: float | None = None,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0,
        max_epochs: int = 100000, threads: int = 1,
    ) -> None: ...

class LADRegressorCV(estimators.LADRegressorCV):
    grid: int | Sequence[float] | np.ndarray
    cmin: float
    cmax: float
    cv: Any
    scoring: str | Callable | None
    step: str
    n_jobs: int | None
    until_turn: bool
    turn_points: int
    bias: float
    intercept: str | None
    kernel: str | Callable | None
    gamma: float | str
    degree: int
    coef0: float
    smoothing: float | None
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
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

class QuantileRegressor(estimators.QuantileRegressor):
    C: float
    bias: float
    tau: float
    intercept: str | None
    kernel: str | Callable | None
    gamma: float | str
    degree: int
    coef0: float
    smoothing: float | None
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    threads: int
    def __init__(
        self, C: float = 1.0, *, bias: float = 0.0, tau: float = 0.5, intercept: str | None = None,
        kernel: str | Callable | None = None, gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0,
        smoothing: float | None = None, one_hot: str | Sequence[str] | None = None, missing: str | float = "error",
        scale: str = "none", rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0,
        max_epochs: int = 100000, threads: int = 1,
    ) -> None: ...

class QuantileRegressorCV(estimators.QuantileRegressorCV):
    grid: int | Sequence[float] | np.ndarray
    cmin: float
    cmax: float
    cv: Any
    scoring: str | Callable | None
    step: str
    n_jobs: int | None
    until_turn: bool
    turn_points: int
    bias: float
    tau: float
    intercept: str | None
    kernel: str | Callable | None
    gamma: float | str
    degree: int
    coef0: float
    smoothing: float | None
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    threads: int
    def __init__(
        self, grid: int | Sequence[float] | np.ndarray = 100, cmin: float = 0.01, cmax: float = 10.0, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, until_turn: bool = False,
        turn_points: int = 100, bias: float = 0.0, tau: float = 0.5, intercept: str | None = None,
        kernel: str | Callable | None = None, gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0,
        smoothing: float | None = None, one_hot: str | Sequence[str] | None = None, missing: str | float = "error",
        scale: str = "none", rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0,
        max_epochs: int = 100000, threads: int = 1,
    ) -> None: ...

class SVMClassifier(estimators.SVMClassifier):
    C: float
    bias: float
    intercept: str | None
    class_weight: Mapping | str | None
    kernel: str | Callable | None
    gamma: float | str
    degree: int
    coef0: float
    smoothing: float | None
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
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

class SVMClassifierCV(estimators.SVMClassifierCV):
    grid: int | Sequence[float] | np.ndarray
    cmin: float
    cmax: float
    cv: Any
    scoring: str | Callable | None
    step: str
    n_jobs: int | None
    until_turn: bool
    turn_points: int
    certify: bool
    certify_to: float | None
    certify_points: int
    calibration: str | None
    bias: float
    intercept: str | None
    class_weight: Mapping | str | None
    kernel: str | Callable | None
    gamma: float | str
    degree: int
    coef0: float
    smoothing: float | None
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    threads: int
    multi_class: str
    decision_function_shape: str
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

class SVMRegressor(estimators.SVMRegressor):
    C: float
    bias: float
    epsilon: float
    intercept: str | None
    kernel: str | Callable | None
    gamma: float | str
    degree: int
    coef0: float
    smoothing: float | None
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    threads: int
    def __init__(
        self, C: float = 1.0, *, bias: float = 0.0, epsilon: float = 0.1, intercept: str | None = None,
        kernel: str | Callable | None = None, gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0,
        smoothing: float | None = None, one_hot: str | Sequence[str] | None = None, missing: str | float = "error",
        scale: str = "none", rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0,
        max_epochs: int = 100000, threads: int = 1,
    ) -> None: ...

class SVMRegressorCV(estimators.SVMRegressorCV):
    grid: int | Sequence[float] | np.ndarray
    cmin: float
    cmax: float
    cv: Any
    scoring: str | Callable | None
    step: str
    n_jobs: int | None
    until_turn: bool
    turn_points: int
    bias: float
    epsilon: float
    intercept: str | None
    kernel: str | Callable | None
    gamma: float | str
    degree: int
    coef0: float
    smoothing: float | None
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    threads: int
    def __init__(
        self, grid: int | Sequence[float] | np.ndarray = 100, cmin: float = 0.01, cmax: float = 10.0, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, until_turn: bool = False,
        turn_points: int = 100, bias: float = 0.0, epsilon: float = 0.1, intercept: str | None = None,
        kernel: str | Callable | None = None, gamma: float | str = "1/d", degree: int = 3, coef0: float = 0.0,
        smoothing: float | None = None, one_hot: str | Sequence[str] | None = None, missing: str | float = "error",
        scale: str = "none", rule: str | Any = "auto", solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0,
        max_epochs: int = 100000, threads: int = 1,
    ) -> None: ...

class SparseLADRegressor(estimators.SparseLADRegressor):
    alpha: float
    beta: float
    bias: float
    intercept: str | None
    smoothing: float
    nonnegative: bool
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    first: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    def __init__(
        self, alpha: float = 0.01, beta: float = 0.01, *, bias: float = 0.0, intercept: str | None = None,
        smoothing: float = 0.0, nonnegative: bool = False, one_hot: str | Sequence[str] | None = None,
        missing: str | float = "error", scale: str = "none", first: str = "features", rule: str | Any = "sifs+gap",
        solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseLADRegressorCV(estimators.SparseLADRegressorCV):
    betas: int | Sequence[float] | np.ndarray
    alphas: int | Sequence[float] | np.ndarray
    beta_min_ratio: float
    alpha_min_ratio: float
    cv: Any
    scoring: str | Callable | None
    step: str
    n_jobs: int | None
    bias: float
    intercept: str | None
    smoothing: float
    nonnegative: bool
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    first: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    def __init__(
        self, betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
        beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, bias: float = 0.0,
        intercept: str | None = None, smoothing: float = 0.0, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06,
        seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseQuantileRegressor(estimators.SparseQuantileRegressor):
    alpha: float
    beta: float
    bias: float
    tau: float
    intercept: str | None
    smoothing: float
    nonnegative: bool
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    first: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    def __init__(
        self, alpha: float = 0.01, beta: float = 0.01, *, bias: float = 0.0, tau: float = 0.5,
        intercept: str | None = None, smoothing: float = 0.0, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06,
        seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseQuantileRegressorCV(estimators.SparseQuantileRegressorCV):
    betas: int | Sequence[float] | np.ndarray
    alphas: int | Sequence[float] | np.ndarray
    beta_min_ratio: float
    alpha_min_ratio: float
    cv: Any
    scoring: str | Callable | None
    step: str
    n_jobs: int | None
    bias: float
    tau: float
    intercept: str | None
    smoothing: float
    nonnegative: bool
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    first: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    def __init__(
        self, betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
        beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, bias: float = 0.0,
        tau: float = 0.5, intercept: str | None = None, smoothing: float = 0.0, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06,
        seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseSVMClassifier(estimators.SparseSVMClassifier):
    alpha: float
    beta: float
    bias: float
    intercept: str | None
    class_weight: Mapping | str | None
    loss: str
    smoothing: float
    nonnegative: bool
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    first: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    def __init__(
        self, alpha: float = 0.01, beta: float = 0.01, *, bias: float = 0.0, intercept: str | None = None,
        class_weight: Mapping | str | None = None, loss: str = "hinge", smoothing: float = 0.5,
        nonnegative: bool = False, one_hot: str | Sequence[str] | None = None, missing: str | float = "error",
        scale: str = "none", first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto",
        tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseSVMClassifierCV(estimators.SparseSVMClassifierCV):
    betas: int | Sequence[float] | np.ndarray
    alphas: int | Sequence[float] | np.ndarray
    beta_min_ratio: float
    alpha_min_ratio: float
    cv: Any
    scoring: str | Callable | None
    step: str
    n_jobs: int | None
    bias: float
    intercept: str | None
    class_weight: Mapping | str | None
    loss: str
    smoothing: float
    nonnegative: bool
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    first: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    def __init__(
        self, betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
        beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, bias: float = 0.0,
        intercept: str | None = None, class_weight: Mapping | str | None = None, loss: str = "hinge",
        smoothing: float = 0.5, nonnegative: bool = False, one_hot: str | Sequence[str] | None = None,
        missing: str | float = "error", scale: str = "none", first: str = "features", rule: str | Any = "sifs+gap",
        solver: str | Any = "auto", tol: float = 1e-06, seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseSVMRegressor(estimators.SparseSVMRegressor):
    alpha: float
    beta: float
    bias: float
    epsilon: float
    intercept: str | None
    smoothing: float
    nonnegative: bool
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    first: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    def __init__(
        self, alpha: float = 0.01, beta: float = 0.01, *, bias: float = 0.0, epsilon: float = 0.1,
        intercept: str | None = None, smoothing: float = 0.0, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06,
        seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...

class SparseSVMRegressorCV(estimators.SparseSVMRegressorCV):
    betas: int | Sequence[float] | np.ndarray
    alphas: int | Sequence[float] | np.ndarray
    beta_min_ratio: float
    alpha_min_ratio: float
    cv: Any
    scoring: str | Callable | None
    step: str
    n_jobs: int | None
    bias: float
    epsilon: float
    intercept: str | None
    smoothing: float
    nonnegative: bool
    one_hot: str | Sequence[str] | None
    missing: str | float
    scale: str
    first: str
    rule: str | Any
    solver: str | Any
    tol: float
    seed: int
    max_epochs: int
    def __init__(
        self, betas: int | Sequence[float] | np.ndarray = 10, alphas: int | Sequence[float] | np.ndarray = 100,
        beta_min_ratio: float = 0.05, alpha_min_ratio: float = 0.01, *, cv: Any = None,
        scoring: str | Callable | None = None, step: str = "best", n_jobs: int | None = None, bias: float = 0.0,
        epsilon: float = 0.1, intercept: str | None = None, smoothing: float = 0.0, nonnegative: bool = False,
        one_hot: str | Sequence[str] | None = None, missing: str | float = "error", scale: str = "none",
        first: str = "features", rule: str | Any = "sifs+gap", solver: str | Any = "auto", tol: float = 1e-06,
        seed: int = 0, max_epochs: int = 100000,
    ) -> None: ...
