"""``screenpath certify``: how far models made elsewhere are from the optimum."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import click
from click.core import ParameterSource

from screenpath.catalogue.option import Option
from screenpath.catalogue.specs import SPECS
from screenpath.cli.help import Helped
from screenpath.cli.models import ByModel
from screenpath.cli.options import DONE, ERROR, UNCERTIFIED, data_argument, flags, say, stack
from screenpath.data.words.tables import aligned
from screenpath.engine.options import certify_options
from screenpath.errors import ScreenpathError, UsageError, shown, shown_lines, tell
from screenpath.errors import flags as flags_of

EXAMPLES = (
    "screenpath certify {} data.libsvm --weights liblinear.model --c 1",
    "screenpath certify {} data.libsvm --weights models --c 1 --bias 1",
)
WEIGHTS = Option(
    "weights", kind="path", metavar="FILE", everyday=True,
    help="Model file of LIBLINEAR or LIBSVM, ONNX, JSON, CSV; or a folder of them.",
)  # fmt: skip
MORE = (
    Option("within", None, "share", "Exit with 3 where a relative gap is larger.", metavar="GAP", everyday=True),
    Option("format", "text", "choice", "Format of the result.", choices=("text", "json"), stated=True, group="output"),
)


def make_command(name: str) -> click.Command:
    def callback(data, weights, within, format, **options):
        from screenpath.engine.certify import certify

        source = click.get_current_context().get_parameter_source
        options = {key: value for key, value in options.items() if source(key) is ParameterSource.COMMANDLINE}
        if weights is None:
            raise UsageError("there are no weights to certify", "name their file: `weights=FILE`")
        folder = Path(weights).is_dir()
        if folder and (Path(weights) / "run.json").exists():
            hint = f"write one of its steps: screenpath export {shlex.quote(weights)} --step K -o model.json"
            raise UsageError(f"{weights} is a run, not a model", hint)
        files = sorted(one for one in Path(weights).iterdir() if one.is_file()) if folder else [Path(weights)]
        if not files:
            raise UsageError(f"{weights} holds no model", "name a model file, or a folder of them: `weights=FILE`")
        if folder and "out" in options:
            raise UsageError("`out` takes the certificate of one model", "name a file: `weights=FILE`")
        found, failed = [], 0
        more: dict = {"model": name, "command": ["screenpath", *sys.argv[1:]], "known": {}}
        for file in files:
            try:
                found.append(certify(str(file), data, **more, **options))
            except ScreenpathError as error:
                if not folder:
                    raise
                tell(flags_of(error.message))
                failed += 1
        if format == "json":
            records = [one.record() for one in found]
            say(json.dumps(records if folder else records[0], indent=1) + "\n")
        else:
            say(_table(found) if folder else f"{shown_lines(str(found[0]))}\n")
        wide = within is not None and any(not one.rel_gap <= within for one in found)
        return ERROR if failed else UNCERTIFIED if wide else DONE

    text = f"Certify {SPECS[name].title} made elsewhere: the gap of the weights in FILE on DATA.\n\n{DETAILS}"
    made = click.command(name, cls=Helped, help=text, examples=[one.format(name) for one in EXAMPLES])
    return made(stack(data_argument, flags((WEIGHTS, *certify_options(name), *MORE)))(callback))


def _table(found: list) -> str:
    lines = [(shown(Path(one.name).name), f"{one.value:.8g}", f"{one.rel_gap:.3g}", f"{one.farthest:.3g}", one.labels)
             for one in sorted(found, key=lambda one: one.rel_gap)]  # fmt: skip
    heads = ("model", "objective", "relative gap", "distance", "labels")
    return "".join(f"{line}\n" for line in aligned([heads, *lines], 1))


DETAILS = """FILE tells its problem as far as its format can; options tell the rest. The gap is proven on all of DATA,
with rounding counted, by a dual point that is found here. A solution of the same problem bounds the distance of the
weights from the optimum, and tells which labels are those of the optimum. -o writes a run folder whose one step has
these weights; verify checks its certificate."""


@click.group("certify", cls=ByModel, make=make_command, models=("svm", "lad", "quantile", "svr", "sparse-svm"),
             line="Made elsewhere: {}.", extra=" --weights liblinear.model --c 1",
             examples=[one.format("svm") for one in EXAMPLES])  # fmt: skip
def certify():
    """Prove how far a model made elsewhere is from the optimum: screenpath certify MODEL DATA --weights FILE."""
