"""``screenpath svm``: path of linear SVMs."""

from __future__ import annotations

import click

from screenpath.cli import kernel
from screenpath.cli import options as shared
from screenpath.errors import UsageError
from screenpath.models.spec import chunked
from screenpath.models.specs import LINEAR_SVM, ONE_VS_REST


def resolve(options):
    """Return the model and the options of a job."""
    spec = kernel.spec_of(LINEAR_SVM, options)
    if spec is not LINEAR_SVM and options["one_vs_rest"]:
        raise UsageError("--one-vs-rest has no kernel", "use --positive LABEL, one run a class")
    if spec is not LINEAR_SVM:
        return spec, options
    if not options["one_vs_rest"]:
        return chunked(LINEAR_SVM, options), options
    if options["positive"] is not None:
        raise UsageError("--positive is one class against the rest, --one-vs-rest all of them", "use one of the two")
    for name in ("eps_path", "chunk"):
        if options[name] is not None:
            option = name.replace("_", "-")
            raise UsageError(f"--{option} follows a single path, --one-vs-rest has one a class", "use one of the two")
    if options.get("certify"):
        raise UsageError("--certify bounds the error of two classes", "leave out --one-vs-rest")
    return chunked(ONE_VS_REST, options), options


@click.command("svm")
@shared.path_options
@shared.label_options
@click.option(
    "--one-vs-rest", is_flag=True, help="More than two labels: a path for each, on one grid; the largest form decides."
)
@shared.class_weight_option
@shared.weights_option
@shared.c_grid_options
@kernel.kernel_options
@shared.solving_options()
@shared.certificate_option
def command(**options):
    """Path of linear or kernel SVMs for the LIBSVM file DATA (plain, .gz, .bz2, .xz; - for stdin).

    Minimises 1/2 ||w||^2 + C sum_i max(0, 1 - y_i x_i.w) at every C of the grid. The results go to a run folder:
    run.json, steps.csv (or .json) and coefficients.csv (or .npz; feature 0 is the intercept).

    With --kernel there is no intercept: --bias B adds B^2 to the kernel, --dtype is that of the stored kernel values,
    and the coefficients y_i alpha_i belong to samples. The rules are none, gap, dvi (= bt1), bt2, it and those with
    +gap, the solvers auto (= newton) and smo.
    """
    from screenpath.cli.job import run_job

    return run_job(*resolve(options))
