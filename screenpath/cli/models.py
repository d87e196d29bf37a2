"""``screenpath svm``, ``lad``, ``l1svm`` ...: a path command for each declared model, and ``cv`` for each."""

from __future__ import annotations

import sys
import warnings

import click

from screenpath.catalogue.kernel_models import SMOOTHED
from screenpath.catalogue.option import elsewhere
from screenpath.catalogue.spec import Spec
from screenpath.catalogue.specs import SPECS
from screenpath.cli.help import Helped, Suggesting
from screenpath.cli.options import BEGAN, DONE, UNCERTIFIED, data_argument, flags, stack
from screenpath.errors import flags as flags_of

OF_C = ("grid", "cmin", "cmax", "c_list", "c")  # which two penalties have others for


def command_of(name: str) -> click.Command:
    spec = SPECS[name]

    def callback(**options):
        return run_job(*resolve(name, options))

    text = (
        f"Path of {spec.title} for DATA: LIBSVM text, CSV (plain, .gz, .bz2, .xz; - for stdin) or Parquet.\n\n"
        f"Minimises {spec.objective.removeprefix('min ')}, at every {spec.parameter} of the grid. "
        f"{flags_of(spec.about)}"
    )
    data = f"screenpath {name} data.libsvm"
    examples = f"{data} --scale standard", f"{data} {flags_of(spec.example)}"
    return click.command(name, cls=Helped, help=text, examples=examples)(
        stack(data_argument, flags(spec.path_options))(callback)
    )


def option_of_others(flag: str, context: click.Context) -> str | None:
    """Return which others have an option that a command lacks, or our name for that of another program; or None."""
    from screenpath.engine.options import cv_spec

    name, command, option = context.info_name, context.command_path, flag.lstrip("-").replace("-", "_")
    opts = [opt for one in context.command.params for opt in one.opts]
    known = {opt[2:].replace("-", "_") for opt in opts if opt.startswith("--")}
    if near := [option] if option in known else elsewhere(option, known):  # -c, --one_hot
        return f"No such option '{flag}'. Did you mean '--{near[0].replace('_', '-')}'?"
    if name == "predict" and option in _names(SPECS["svm"]):
        return f"{flag} is an option of the run, which keeps it: predict reads and prepares data as the run did"
    if name not in SPECS:
        return None
    own = SPECS[name]
    for spec, of in ((own, name), (cv_spec(own), f"cv {name}")):
        for one in (option, *elsewhere(option, _names(spec))):
            if one in _names(spec):
                return f"--{one.replace('_', '-')} is an option of screenpath {of}, not of {command}"
    if option == "nu" and name == "svm":
        return f"{flag} chooses a step of a path that is there: screenpath show RUN --step nu=0.1"
    have = [other for other, spec in SPECS.items() if option in _names(spec)]
    if not have:
        return None
    several = f"{', '.join(have[:-1])} and {have[-1]}" if have[1:] else have[0]
    if option in OF_C and "betas" in _names(own):
        return f"{flag} is an option of {several}; {name} has --beta or --betas, --alpha or --alphas in its place"
    if option == "kernel" and name in SMOOTHED.values():
        (box,) = (box for box, other in SMOOTHED.items() if other == name)
        return f"{flag} is an option of {several}: add {flag} rbf --smoothing WIDTH to {box} for the loss of {name}"
    return f"{flag} is an option of {several}, not of {name}"


def _names(spec: Spec) -> set[str]:
    return {one.name for one in spec.path_options}


def resolve(name: str, options: dict) -> tuple:
    """Return the model that the options of its command describe, and the options of the job."""
    options = {**options, **dict(SPECS[name].fixed)}
    return SPECS[name].resolved(SPECS[name], options), options


def run_job(spec: Spec, options: dict, kind=None) -> int:
    """Compute a path by a session (or another ``kind`` of it), write it, and return the exit code.

    That is 0 if every step is certified (and safe, with ``--audit``), 3 if not, 128 + n when stopped by signal n.
    """
    from screenpath.cli.signals import Signals
    from screenpath.data.safe.memory import MemoryLimit
    from screenpath.engine.interrupts import Stopped
    from screenpath.engine.session import Session
    from screenpath.report.console import Console

    began = click.get_current_context().find_root().obj[BEGAN]
    if options["quiet"]:
        warnings.simplefilter("ignore")
    console = Console(options["quiet"], options["progress"], flags_of, options["log_format"])
    command = ["screenpath", *sys.argv[1:]]
    try:
        with Signals(console.tell) as signals, signals.cutting(), MemoryLimit(options["max_memory"]).in_force():
            session = (kind or Session)(spec, options, console, signals, began, command)
            session.run()
    except Stopped as stop:  # before the first step: nothing to keep
        return 128 + stop.number
    return 128 + session.stopped if session.stopped else DONE if session.good else UNCERTIFIED


class ByModel(Suggesting):
    """One command per model, which ``make`` makes of the model's options when used; ``line`` is that of the list.

    ``extra`` are options that an example needs besides the data.
    """

    def __init__(self, *arguments, make, line: str, models=tuple(SPECS), extra: str = "", **more):
        super().__init__(*arguments, **more)
        self.make, self.line, self.models, self.extra = make, line, models, extra

    def parse_args(self, ctx, args):
        """Print a short usage if no model is named."""
        if not args and not ctx.resilient_parsing:
            raise click.UsageError(MISSING.format(ctx.command_path, ", ".join(self.models), self.extra), ctx)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx):
        return list(self.models)

    def get_command(self, ctx, name):
        return self.make(name) if name in self.models else None

    def format_commands(self, ctx, formatter):
        with formatter.section("Models"):
            formatter.write_dl([(name, self.line.format(SPECS[name].title)) for name in self.models])


def make_command(name: str) -> click.Command:
    """Return ``cv NAME``: the options of the model's command and those of the folds."""
    from screenpath.engine.options import cv_resolved, cv_spec

    spec = cv_spec(SPECS[name])

    def callback(**options):
        from screenpath.cv.rows_session import session_of

        resolved, options = cv_resolved(spec, options)
        return run_job(resolved, options, session_of(options))

    summary = f"Cross-validate the path of {name} on DATA, choose a step, and compute the path on all data."
    tuned = any(option.name == "gammas" for option in spec.path_options)
    more = "--kernel rbf --gammas 11" if tuned else "--folds 10 --repeats 3 --jobs 2"
    examples = (f"screenpath cv {name} data.libsvm --scale standard", f"screenpath cv {name} data.libsvm {more}")
    made = click.command(name, cls=Helped, help=f"{summary}\n\n{DETAILS}", examples=examples)
    return made(stack(data_argument, flags(spec.path_options))(callback))


DETAILS = """All folds share one grid, made from all data; every fold is a warm-started, screened path. The run folder
(default runs/cv-MODEL-DATA) holds the path on all data with the scores, for predict and export (--step best or one-se),
and cv.csv, cv.json and folds.csv. best is the step with the best mean score; ties go to the more regularised step.
one-se is the most regularised step within one standard error of it. Finished folds and steps are saved: after a crash
repeat the command with --resume. The exit code is 3 if some step of a fold or of the path on all data is not
certified."""


MISSING = """Missing model.
  {0} MODEL DATA [OPTIONS]
  MODEL: {1}
  for example: {0} svm data.libsvm{2}"""


@click.group(
    "cv",
    cls=ByModel,
    make=make_command,
    line="Paths of {}.",
    examples=("screenpath cv svm data.libsvm --scale standard", "screenpath cv l1svm data.libsvm --grid 50 --log"),
)
def cv():
    """Cross-validate the path of a model: screenpath cv MODEL DATA.

    Computes the mean score at each step with its standard error over the folds, chooses the best step and the most
    regularised one within one standard error of it, and computes the path on all data.
    """
