"""What a kernel makes of the box models: their declarations, and rows known through a kernel.

The problem is that of :mod:`screenpath.catalogue.losses`; only the storage of the rows differs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from screenpath.catalogue import options as o
from screenpath.catalogue.option import usual
from screenpath.catalogue.spec import Later, Spec, chunked, real_targets, with_intercept
from screenpath.data.safe.memory import KERNEL, MIRRORED
from screenpath.errors import UsageError

PARAMETERS = {
    "rbf": ("gamma",), "laplacian": ("gamma",), "linear": (), "precomputed": (), "poly": ("gamma", "degree", "coef0"),
}  # fmt: skip
SMOOTHED = {"svm": "sparse-svm", "lad": "huber", "quantile": "sparse-quantile", "svr": "sparse-svr"}
DEFAULTS = dict(zip(PARAMETERS["poly"], usual(o.KERNEL, *PARAMETERS["poly"]), strict=True))
KERNEL_RULE = Later("screen", "parse_kernel_rule")
ABOUT = (
    "With `kernel`, a penalised intercept is a constant in the kernel: `bias=B` adds B^2. `dtype` is the type of the "
    "stored kernel values; the coefficients are one for each sample. The rules are those of linear models "
    "but heuristic and sieve, the solvers auto (= newton) and smo."
)


def behind_kernel(spec: Spec) -> Spec:
    """Return a box model behind a kernel."""
    sides: tuple = () if spec.targets is not real_targets else (1.0, -1.0) if spec.needs is MIRRORED else (1.0,)
    return replace(
        spec, title=f"kernel {spec.title.removeprefix('linear ')}",
        objective=spec.objective.replace("x_i.w", "w.Phi(x_i)") + ", Phi(x).Phi(z) = K(x, z)", liblinear="",
        rule=KERNEL_RULE, solver=Later("solve.smo", "make_kernel_solver"),
        rows=partial(_rows, sides), streams=False,
        kernel_modules=("active_set", "box", "double", "gram", "precise", "smo", "start"),
        needs=replace(KERNEL, mirrored=spec.needs is MIRRORED),
    )  # fmt: skip


def with_intercept_kernel(spec: Spec, options: dict) -> Spec:
    """Return a box model with the intercept of the options, behind their kernel if there is one; refuse what only one
    of linear models and kernels has.
    """
    kernel = options["kernel"]
    given = [name for name in DEFAULTS if options[name] is not None]
    if kernel is None and given:
        raise UsageError(f"`{given[0]}` needs a kernel", "add for example `kernel=rbf`")
    if kernel is None and options.get("keep_rows"):
        raise UsageError("`keep_rows` is for kernels: other models need no training rows", "leave it out")
    width = options.get("smoothing")
    if kernel is None and width is not None:
        what = "`smoothing` is of losses behind a kernel"
        raise UsageError(what, f"add `kernel=rbf`; linear: the model {SMOOTHED[spec.name]} with `penalty=l2`")
    if kernel is None:
        return with_intercept(spec, options)
    strange = [name for name in given if name not in PARAMETERS.get(kernel, ())]
    if strange:
        raise UsageError(f"the kernel {kernel} has no {strange[0]}", f"leave out `{strange[0]}`")
    if kernel == "precomputed" and options["scale"] != "none":
        raise UsageError("a precomputed kernel is not scaled", "scale the rows before, and leave out `scale`")
    for name in ("certificate", "keep_rows") if kernel not in PARAMETERS or kernel == "precomputed" else ():
        if options.get(name):
            raise UsageError(f"`{name}` needs rows from which a kernel is formed", f"leave out `{name}`")
    if options.get("epsilon") == 0.0:
        what = "with `epsilon=0` nothing tells the two dual variables of a row behind a kernel apart"
        raise UsageError(what, "use the model lad: the same problem, with one for each row")
    if options["chunk"] is not None or options["chunk_form"] is not None:
        raise UsageError("`chunk` is for linear models: with a kernel each step has its own rule", "leave out `chunk`")
    behind = behind_kernel(spec)
    if width is not None:
        behind = replace(behind, rule=_rule, objective=f"{behind.objective}; the loss smoothed by `smoothing`")
    return with_intercept(behind, options)


def _rule(text):
    """Return the rule of a smoothed loss, whose rows reach the ends of their boxes beyond the kinks: none."""
    if text not in ("auto", "none"):
        raise UsageError(f"the rule {text} is for losses with kinks, not for smoothed ones", "use none")
    return KERNEL_RULE("none")


def resolved(spec: Spec, options: dict) -> Spec:
    """Return a regression with the intercept, the kernel or the rule of the options."""
    spec = with_intercept_kernel(spec, options)
    return spec if options["kernel"] is not None else chunked(spec, options)


def function_of(options: dict, X):
    """Return the kernel function for rows ``X``; ``options["width"]`` counts features without a column, too."""
    from screenpath.rows.kernel_functions import KernelFunction, parse_gamma

    chosen: dict[str, Any] = {k: default if options[k] is None else options[k] for k, default in DEFAULTS.items()}
    chosen["gamma"] = parse_gamma(chosen["gamma"], options.get("width") or X.shape[1], X)
    constant = options["bias"] * options["bias"]
    name, call = (options["kernel"], None) if options["kernel"] in PARAMETERS else ("function", options["kernel"])
    return KernelFunction(name, **chosen, constant=constant, call=call)


def pair_rows(X, targets, options: dict, tell, inexact: float):
    """Return the training data of several classes with a kernel, for pairs of them; as :func:`_rows`."""
    from screenpath.rows.pairs import SharedRows

    return _rows((), X, targets, options, tell, inexact, None if targets.min() < 0 else SharedRows)


def _rows(sides: tuple, X, targets, options: dict, tell, inexact: float, kind=None):
    """Return the training data with a kernel; ``tell`` reports the memory before it is allocated, ``kind`` is that of
    the rows, GramRows by default.

    ``sides`` are the signs with which each row counts, or none if that of its target does. ``inexact`` is that of the
    preparation (``prepare.Preparation``). ``options["matrix_memory"]`` is the memory for the matrix: an int, a
    :class:`rows.gram.Allowance` or None.
    """
    import numpy as np

    from screenpath.rows.gram import GramRows

    return (kind or GramRows)(
        X, function_of(options, X), np.repeat(sides, X.shape[0]) if sides else targets, options.get("matrix_memory"),
        np.dtype(options["dtype"]), options["threads"], tell, inexact,
    )  # fmt: skip
