"""``screenpath svm --kernel``: path of kernel SVMs. The options, and what the kernel changes in a job."""

from __future__ import annotations

import click

from screenpath.cli import options as shared
from screenpath.errors import UsageError
from screenpath.models.spec import Spec
from screenpath.models.specs import DEFAULTS, KERNEL_SVM, KERNELS, PARAMETERS

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


def spec_of(linear: Spec, options: dict) -> Spec:
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
    return KERNEL_SVM
