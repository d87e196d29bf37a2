"""``screenpath svm --kernel``: path of kernel SVMs. The options, and what the kernel changes in a job."""

from __future__ import annotations

import click

from screenpath.cli import options as shared
from screenpath.cli.spec import C_GRID, ModelSpec, accuracy, c_grid, sign_targets
from screenpath.errors import UsageError

KERNELS = ("rbf", "linear", "poly")
PARAMETERS = {"rbf": ("gamma",), "linear": (), "poly": ("gamma", "degree", "coef0")}
DEFAULTS = {"gamma": "1/d", "degree": 3, "coef0": 0.0}

kernel_options = shared.stack(
    click.option(
        "--kernel",
        type=click.Choice(KERNELS),
        help="Path of kernel SVMs: exp(-gamma |x-z|^2), x.z or (gamma x.z + coef0)^degree.  [default: a linear model]",
    ),
    click.option(
        "--gamma", metavar="GAMMA", help="rbf, poly: a number, or NUMBER/d with the features counted.  [default: 1/d]"
    ),
    click.option("--degree", type=click.IntRange(min=1), help="poly.  [default: 3]"),
    click.option("--coef0", type=shared.Finite(), help="poly, at least 0.  [default: 0]"),
    click.option(
        "--gram",
        type=click.Choice(["auto", "full", "cache"]),
        help="Precompute the kernel matrix where it fits, always, or never (rows as needed, kept while there is room)."
        "  [default: auto]",
    ),
)


def function_of(options: dict, d: int):
    """Return the kernel function of the options, for ``d`` features."""
    from screenpath.rows.kernel_functions import KernelFunction, parse_gamma

    chosen = {name: DEFAULTS[name] if options[name] is None else options[name] for name in DEFAULTS}
    chosen["gamma"] = parse_gamma(chosen["gamma"], d)
    return KernelFunction(options["kernel"], **chosen, constant=options["bias"] ** 2)


def rows(X, targets, options: dict, tell):
    """Return the training data behind the kernel; ``tell`` hears about the memory before it is taken."""
    import numpy as np

    from screenpath.rows.gram import GramRows

    return GramRows(
        X,
        function_of(options, X.shape[1]),
        targets,
        options["max_memory"],
        np.dtype(options["dtype"]),
        options["gram"] or "auto",
        options["threads"],
        tell,
    )


def build(rows, targets, weights, options):
    """Return the hinge-loss model behind the kernel."""
    from screenpath.models.builders import kernel_svm_model

    rows.forget()  # of several runs none profits from the rows that another has cached
    return kernel_svm_model(rows, weights)


def rule(text: str, chunk: int | None = None, form: str = "C"):
    """Return the screening of a kernel model; it has no chunks."""
    from screenpath.rules import parse_kernel_rule

    return parse_kernel_rule(text)


def solver(name: str, seed: int, shrinking: bool = True):
    """Return the solver of a kernel model; it draws no random numbers."""
    from screenpath.solvers.smo import make_kernel_solver

    return make_kernel_solver(name, shrinking)


SPEC = ModelSpec(
    name="svm",
    objective="min 1/2 ||w||^2 + C sum_i s_i max(0, 1 - y_i w.Phi(x_i)), Phi(x).Phi(z) = K(x, z)",
    targets=sign_targets,
    build=build,
    grid=c_grid,
    score=("test_accuracy", accuracy),
    own_options=("positive", *C_GRID, "class_weight", "kernel", *DEFAULTS, "gram"),
    rule=rule,
    solver=solver,
    rows=rows,
    streams=False,
    kernel_modules=("box", "distances", "gram", "smo", "start"),
)


def spec_of(linear: ModelSpec, options: dict) -> ModelSpec:
    """Return the model that ``--kernel`` asks for; the linear one without it.

    Raises
    ------
    UsageError
        For options that the kernel, or the lack of one, leaves without a meaning.
    """
    kernel = options["kernel"]
    given = [name for name in (*DEFAULTS, "gram") if options[name] is not None]
    if kernel is None:
        if given:
            raise UsageError(f"--{given[0].replace('_', '-')} needs a kernel", "add for example --kernel rbf")
        return linear
    strange = [name for name in given if name in DEFAULTS and name not in PARAMETERS[kernel]]
    if strange:
        raise UsageError(f"the kernel {kernel} has no {strange[0]}", f"leave out --{strange[0]}")
    if options["chunk"] is not None or options["chunk_form"] is not None:
        raise UsageError("--chunk is for ssnsv and essnsv, which a kernel model does not have", "leave out --chunk")
    return SPEC
