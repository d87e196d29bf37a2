"""``screenpath svm``: path of linear SVMs."""

from __future__ import annotations

import click

from screenpath.cli import kernel
from screenpath.cli import options as shared
from screenpath.cli.spec import C_GRID, ModelSpec, c_grid, chunked, sign_accuracy, sign_targets


def build(rows, targets, weights, options):
    """Return the hinge-loss model."""
    from screenpath.models.builders import svm_model

    return svm_model(rows, targets, weights)


SPEC = ModelSpec(
    name="svm",
    objective="min 1/2 ||w||^2 + C sum_i s_i max(0, 1 - y_i x_i.w)",
    targets=sign_targets,
    build=build,
    grid=c_grid,
    score=("test_accuracy", sign_accuracy),
    own_options=("positive", *C_GRID, "class_weight"),
)


@click.command("svm")
@shared.path_options
@shared.label_options
@shared.class_weight_option
@shared.weights_option
@shared.c_grid_options
@kernel.kernel_options
@shared.solving_options()
def command(**options):
    """Path of linear or kernel SVMs for the LIBSVM file DATA (plain, .gz, .bz2, .xz; - for stdin).

    Minimises 1/2 ||w||^2 + C sum_i max(0, 1 - y_i x_i.w) at every C of the grid. The results go to a run folder:
    run.json, steps.csv (or .json) and coefficients.csv (or .npz; feature 0 is the intercept).

    With --kernel there is no intercept: --bias B adds B^2 to the kernel, --dtype is that of the stored kernel values,
    and the coefficients y_i alpha_i belong to samples. The rules are none, gap, dvi (= bt1), bt2, it and those with
    +gap, the solvers auto (= newton) and smo.
    """
    from screenpath.cli.job import run_job

    spec = kernel.spec_of(SPEC, options)
    return run_job(chunked(spec, options) if spec is SPEC else spec, options)
