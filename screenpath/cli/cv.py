"""``screenpath cv``: cross-validation of a model's path; the options are those of the model and of the folds."""

from __future__ import annotations

import click

from screenpath.cli import options as shared
from screenpath.cli.models import command_of, resolve
from screenpath.errors import UsageError
from screenpath.models.specs import SPECS

# Options of the models' commands that make no sense on folds, and what they are then.
WITHOUT = {"audit": False, "eps_path": None, "c": None, "reference": None, "certificate": False}
SCORES = ("accuracy", "balanced-accuracy", "f1", "auc", "mae", "mse", "pinball")

fold_options = shared.stack(
    click.option("--folds", metavar="K", type=click.IntRange(min=2), help="Number of folds.  [default: 5]"),
    click.option(
        "--repeats",
        metavar="R",
        type=click.IntRange(min=1),
        help="Partitions into folds, each drawn anew.  [default: 1]",
    ),
    click.option(
        "--stratify/--no-stratify",
        default=None,
        help="Each fold has each class in the same proportion.  [default: on for classifiers]",
    ),
    click.option(
        "--fold-seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of the drawing of the folds."
    ),
    click.option(
        "--fold-file", metavar="FILE", type=click.Path(), help="The fold of each sample, a whole number a line."
    ),
    click.option(
        "--score",
        type=click.Choice(SCORES),
        help="Of the held-out samples.  [default: accuracy; quantile: pinball; other regressions: mae]",
    ),
    click.option(
        "--jobs",
        metavar="N",
        default=1,
        show_default=True,
        type=click.IntRange(min=1),
        help="Processes that share the folds; the results are the same.",
    ),
)
certify_options = shared.stack(
    click.option("--certify", is_flag=True, help="Bound the cross-validation error at every C from --cmin to --cmax."),
    click.option(
        "--certify-to",
        metavar="DIFFERENCE",
        type=click.FloatRange(0.0, 1.0),
        help="Refine the grid until no C of the range can be better than the best one found by more than this.",
    ),
    click.option(
        "--certify-points",
        metavar="N",
        default=1000,
        show_default=True,
        type=click.IntRange(min=0),
        help="Grid points that --certify-to may add.",
    ),
)


class CvGroup(click.Group):
    """One command a model, made of the model's own options when it is used."""

    def list_commands(self, ctx):
        """Return the models."""
        return list(SPECS)

    def get_command(self, ctx, name):
        """Return the command of a model."""
        return make_command(name) if name in SPECS else None

    def format_commands(self, ctx, formatter):
        """Write the list of models without importing them."""
        with formatter.section("Models"):
            formatter.write_dl([(name, f"Paths of {spec.title}.") for name, spec in SPECS.items()])


def make_command(name: str) -> click.Command:
    """Return ``cv NAME``: the options of the model's command and those of the folds."""
    base = command_of(name)

    def callback(**options):
        return run_cv(name, options)

    stack = shared.stack(fold_options, certify_options) if name == "svm" else fold_options
    added = stack(click.command(name)(callback)).params
    taken = {p.name for p in added} | set(WITHOUT)
    params = [p for p in base.params if p.name not in taken]
    summary = f"Cross-validate the path of {name} on DATA, choose a step, and compute the path on all data."
    return click.Command(name, params=params + added, callback=callback, help=f"{summary}\n\n{DETAILS}")


DETAILS = """All folds share one grid, made from all data; every fold is a warm-started, screened path. The run folder
(default runs/cv-MODEL-DATA) holds the path on all data with the scores beside it, for predict and export (--step best
or one-se), and cv.csv, cv.json and folds.csv. Of equal scores the most regularised is the best; one-se is the most
regularised within one standard error of it. Folds and steps that are done survive a crash: --resume continues. The exit
code is 3 if some step of a fold or of the path on all data is not certified."""


@click.group("cv", cls=CvGroup)
def command():
    """Cross-validate the path of a model: screenpath cv MODEL DATA.

    Mean and standard error over the folds at each grid point, the best step, the most regularised one within one
    standard error of it, and the path on all data.
    """


def run_cv(name: str, options: dict) -> int:
    """Run the job and return its exit code."""
    from screenpath.cli.cv_job import CvJob
    from screenpath.cli.job import run_job

    check_options(options)
    certify = {"certify": False, "certify_to": None, "certify_points": 0}
    spec, options = resolve(name, {**certify, **WITHOUT, **options})
    return run_job(spec, options, CvJob)


def check_options(options: dict) -> None:
    """Refuse options that contradict each other, and fill in those that depend on others."""
    if options["fold_file"] is not None:
        for name in ("folds", "repeats", "stratify"):
            if options[name] is not None:
                raise UsageError("--fold-file says which samples are held out together", f"leave out --{name}")
    shared.named_cluster(options)
    if options["out"] == "-":
        raise UsageError("cv writes several tables", "give a folder with --out DIR")
    options["folds"] = options["folds"] or 5
    options["repeats"] = options["repeats"] or 1
    if options.get("certify_to") is not None:
        options["certify"] = True
    if options.get("certify") and options["score"] not in (None, "accuracy"):
        raise UsageError("--certify bounds the share of wrong decisions", "leave out --score, or use --score accuracy")
