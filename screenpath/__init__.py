"""Certified regularization paths of large-margin models with safe screening.

The names below are imported when they are first used, so that ``import screenpath`` does not load numba.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "EpsilonGrid": "screenpath.grid",
    "KernelPathResult": "screenpath.api_kernel",
    "PathResult": "screenpath.results",
    "SparsePathResult": "screenpath.api_sparse",
    "kernel_svm_path": "screenpath.api_kernel",
    "l1_svm_path": "screenpath.api_l1",
    "lad_path": "screenpath.api",
    "quantile_path": "screenpath.api",
    "read_libsvm": "screenpath.read.libsvm",
    "sparse_svm_path": "screenpath.api_sparse",
    "svm_path": "screenpath.api",
    "svr_path": "screenpath.api",
    "verify_certificate": "screenpath.verify",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'screenpath' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__():
    return sorted(__all__)
