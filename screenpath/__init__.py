"""Certified regularization paths of large-margin models with safe screening.

The names below are imported when they are first used, so that ``import screenpath`` does not load numba.
"""

from importlib import import_module

__version__ = "1.0.0"

_HOMES = {
    "EpsilonGrid": "screenpath.problem.grid",
    "KernelPathResult": "screenpath.engine.result",
    "PathResult": "screenpath.engine.result",
    "SparsePathResult": "screenpath.engine.result",
    "StoredPath": "screenpath.engine.stored",
    "CertifiedModel": "screenpath.engine.certify",
    "certify": "screenpath.engine.certify",
    "compare": "screenpath.api.runs",
    "compare_runs": "screenpath.api.runs",
    "convert": "screenpath.api.runs",
    "cross_validate": "screenpath.api.runs",
    "export_run": "screenpath.api.runs",
    "generate": "screenpath.data.files.generate",
    "huber_path": "screenpath.api.paths",
    "inspect": "screenpath.inputs.inspect",
    "kernel_lad_path": "screenpath.api.paths",
    "kernel_quantile_path": "screenpath.api.paths",
    "kernel_svm_path": "screenpath.api.paths",
    "kernel_svr_path": "screenpath.api.paths",
    "l1_svm_path": "screenpath.api.paths",
    "lad_path": "screenpath.api.paths",
    "load_run": "screenpath.engine.stored",
    "merge_runs": "screenpath.api.runs",
    "options_of": "screenpath.api.runs",
    "plot_run": "screenpath.api.runs",
    "prediction_intervals": "screenpath.api.runs",
    "quantile_path": "screenpath.api.paths",
    "read_data": "screenpath.data.files.read",
    "read_libsvm": "screenpath.data.files.libsvm",
    "reduce_run": "screenpath.engine.reduce",
    "report_run": "screenpath.api.runs",
    "rules_of": "screenpath.catalogue.specs",
    "run": "screenpath.api.runs",
    "show_run": "screenpath.api.runs",
    "sparse_lad_path": "screenpath.api.paths",
    "sparse_quantile_path": "screenpath.api.paths",
    "sparse_svm_path": "screenpath.api.paths",
    "sparse_svr_path": "screenpath.api.paths",
    "svm_path": "screenpath.api.paths",
    "svr_path": "screenpath.api.paths",
    "verify_certificate": "screenpath.verify",
    "write_libsvm": "screenpath.data.files.write_libsvm",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'screenpath' has no attribute '{name}'")
    uninterrupted = import_module("screenpath.errors").waits(import_module)
    return getattr(uninterrupted(_HOMES[name]), name)


def __dir__():
    return sorted(__all__)
