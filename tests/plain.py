"""The Python functions without an intercept unless a test asks for one: rules and solvers are tried on plain models."""

from functools import wraps

import screenpath


def _plain(function):
    @wraps(function)
    def called(first, /, *others, **options):
        if not (options.get("bias") or (isinstance(first, str) and first == "l1svm")):
            options.setdefault("intercept", "none")
        return function(first, *others, **options)

    return called


def words(model: str, options) -> tuple[str, ...]:
    """Return what the command of a model needs in addition, unless its options name an intercept."""
    return () if model == "l1svm" or {"--intercept", "--bias"} & set(options) else ("--intercept", "none")


svm_path, lad_path, quantile_path = map(_plain, (screenpath.svm_path, screenpath.lad_path, screenpath.quantile_path))
svr_path, kernel_svm_path = map(_plain, (screenpath.svr_path, screenpath.kernel_svm_path))
sparse_svm_path, run = map(_plain, (screenpath.sparse_svm_path, screenpath.run))
