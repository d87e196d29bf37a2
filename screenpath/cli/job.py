"""One path from the command line: read, prepare, walk, write, report. Shared by the commands of all models."""

from __future__ import annotations

import math
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

from screenpath import __version__
from screenpath.cli.app import DONE, UNCERTIFIED
from screenpath.cli.signals import Signals, Stopped
from screenpath.cli.spec import ModelSpec
from screenpath.errors import UsageError
from screenpath.report.tally import Tally
from screenpath.steps import SKIPPED
from screenpath.write.folder import COMPLETE, FAILED, INTERRUPTED, RUNNING, TIME_LIMIT, RunFolder
from screenpath.write.stream import Stream
from screenpath.write.tables import SCHEMA_VERSION

# Shared options that change the numbers or the files; --resume compares them and those of the model.
IDENTITY = (
    "rule", "solver", "tol", "max_epochs", "seed", "audit", "bias", "scale", "storage", "dtype", "n_features",
    "zero_based", "format", "coefficients",
)  # fmt: skip


def run_job(spec: ModelSpec, options: dict, kind=None) -> int:
    """Compute a path and write it.

    Parameters
    ----------
    spec : ModelSpec
    options : dict
        Values of the command's options by name.
    kind : type, optional
        Of the job; default :class:`Job`.

    Returns
    -------
    int
        Exit code: 0 if every step is certified (and safe, with ``--audit``), 3 if not, 128 + n when stopped by
        signal n.
    """
    began, kind = time.monotonic(), kind or Job
    check_options(options)
    if options["quiet"]:
        warnings.simplefilter("ignore")
    with Signals() as signals:
        try:
            return kind(spec, options, signals, began).run()
        except Stopped as stop:  # before the first step: nothing to keep
            return 128 + stop.number


def check_options(options: dict) -> None:
    """Refuse options that contradict each other, and fill in the defaults that depend on others."""
    if options["out"] == "-":
        for name in ("resume", "force"):
            if options[name]:
                raise UsageError(f"--{name} needs a run folder", "give one with --out DIR instead of -o -")
        if options["coefficients"] not in (None, "none"):
            raise UsageError("-o - writes the step table only", "give a folder with --out DIR to get coefficients")
        options["coefficients"] = "none"
    options["coefficients"] = options["coefficients"] or "csv"
    if options["resume"] and options["force"]:
        raise UsageError("--resume continues a run and --force replaces it", "use one of them")
    if options["quiet"] and options["progress"]:
        raise UsageError("--quiet and --progress contradict each other", "use one of them")
    if options["data"] == "-" and options["test"] == "-":
        raise UsageError("DATA and --test cannot both be stdin")


def default_folder(name: str, data: str) -> Path:
    """Return ``runs/NAME-STEM``, the stem being the file's name without compression and format endings."""
    path = Path("stdin" if data == "-" else data)
    if path.suffix in (".gz", ".bz2", ".xz"):
        path = path.with_suffix("")
    return Path("runs") / f"{name}-{path.stem}"


class Job:
    """State of one command."""

    def __init__(self, spec: ModelSpec, options: dict, signals: Signals, began: float):
        from screenpath.report.console import Console

        self.spec, self.options, self.signals, self.began = spec, options, signals, began
        limit = options["time_limit"]
        self.deadline = began + limit if limit is not None else math.inf
        self.console = Console(options["quiet"], options["progress"])
        self.tally = Tally()
        self.sink = self.data = self.finished = None
        self.resumable = False

    # -- the order of things -------------------------------------------------------------------------------------

    def run(self) -> int:
        """Return the exit code."""
        try:
            self.prepare()
            self.sink = self.open_sink()
            if self.sink is None:  # --resume of a finished run
                return exit_code(self.finished)
            if not self.resumable:
                self.sink.clear()
            self.before_walk()
            reference = self.start()
            return self.walk(reference)
        finally:
            if self.sink is not None:
                self.sink.close()
            if self.data is not None:
                self.data.close()

    def prepare(self) -> None:
        """Read the data and build the model, the rule and the solver."""
        from screenpath.cli import load
        from screenpath.cli.warm import warm_model
        from screenpath.kernels.compilation import clock, compile_seconds

        o = self.options
        # First, so that a wrong name is said before anything is read or compiled.
        self.screening = self.spec.rule(o["rule"])
        self.solver = self.spec.solver(o["solver"], o["seed"])
        with self.console.compiling():
            began = clock()  # stands still while kernels compile
            self.read()
            self.test = load.load_test(self.spec, o, self.data) if o["test"] else None
            self.tally.seconds["reading"] = clock() - began
            self.model = self.spec.build(self.data.rows, self.data.targets, self.data.weights, o)
            self.data = replace(self.data, targets=None)  # the model has its own
            self.grid = self.spec.grid(self.model, o)
            self.set_up_walk()
            warm_model(self.spec, o, self.data.rows)  # so that no step's clock sees a compilation
        self.tally.seconds["compiling"] = compile_seconds()

    def read(self) -> None:
        """Read and prepare the training data."""
        from screenpath.cli import load

        self.data = load.load_training(self.spec, self.options, self.console.say)

    def before_walk(self) -> None:
        """Do what comes between the opening of the folder and the first step."""

    def more_cells(self, step) -> dict:
        """Return further cells of a step's row."""
        return {}

    def set_up_walk(self) -> None:
        """Collect the limits of the walk and the columns of the step table."""
        from screenpath import audit, steps
        from screenpath.path import PathOptions

        o = self.options
        limits = PathOptions(o["tol"], o["max_epochs"], self.deadline)
        extras = self.spec.columns
        if o["audit"]:
            checker = audit.Audit(self.spec.solver(o["solver"], o["seed"]), limits, self.spec.contradicted)
            limits = PathOptions(o["tol"], o["max_epochs"], self.deadline, checker)
            extras = (*extras, *audit.COLUMNS)
        if self.test is not None:
            extras = (*extras, self.spec.score[0])
        if hasattr(self.data.rows, "moved"):
            extras = (*extras, steps.MOVED)
        self.limits = limits
        self.columns = ("step", *self.model.parameters(self.grid[0]), *steps.COLUMNS, *extras)

    # -- where it goes -------------------------------------------------------------------------------------------

    def open_sink(self):
        """Return the sink; None where ``--resume`` finds a finished run."""
        o = self.options
        if o["out"] == "-":
            return Stream(sys.stdout, o["format"], self.columns)
        path = Path(o["out"]) if o["out"] else self.default_folder()
        folder = RunFolder(path, o["format"], o["coefficients"])
        try:
            previous = folder.previous() if not o["force"] else None
            if previous is not None:
                if not o["resume"]:
                    folder.refuse(previous)
                folder.check_identity(previous, self.identity())
                if previous["status"] == COMPLETE:
                    self.finished = previous
                    self.console.say(f"{folder.path} is complete already; nothing to do")
                    folder.remove_parts()
                    folder.close()
                    return None
        except BaseException:
            folder.close()
            raise
        self.resumable = previous is not None
        return folder

    def default_folder(self) -> Path:
        """Return the folder that is written to without ``--out``."""
        return default_folder(self.spec.name, self.options["data"])

    def identity(self) -> dict:
        """Return all that decides the numbers: version, data, options."""
        o = self.options
        names = (*IDENTITY, *self.spec.own_options)
        return {
            "tool_version": __version__,
            "model": self.spec.name,
            "data_sha256": self.data.sha256,
            "weights_sha256": self.data.weights_sha256,
            "test_sha256": self.test.sha256 if self.test is not None else None,
            **{name: o[name] for name in names},
        }

    def start(self):
        """Open the files, or continue those of an earlier run. Return the reference of the next step."""
        from screenpath.path import restore_walk

        checkpoint = self.sink.load_checkpoint() if self.resumable else None
        classes = (self.data.labels or {}).get("classes")
        unit, count = ("feature", self.data.preparation.n_features)
        if self.spec.rows is not None:
            unit, count = "sample", self.data.shape[0]
        self.sink.open(self.columns, count, checkpoint, classes, unit)
        if checkpoint is None:
            self.sink.write_run(self.record(RUNNING))
            return None
        earlier = Tally.restored(checkpoint.tally)
        earlier.add_seconds(self.tally.seconds)
        self.tally = earlier
        self.console.say(f"continuing behind step {checkpoint.steps - 1}")
        return restore_walk(self.model, self.screening, checkpoint.state)

    def state(self, certificate) -> dict:
        """Return all that the next step depends on."""
        from screenpath.path import walk_state

        return walk_state(self.model, self.screening, certificate)

    # -- the path ------------------------------------------------------------------------------------------------

    def walk(self, reference) -> int:
        """Walk the grid, write each step as it is done, and complete the files however the walk ends."""
        from screenpath.path import walk

        status, code = COMPLETE, None
        first = self.sink.count
        found = (self.spec.walk(self.options) if self.spec.walk else walk)(
            self.model, self.grid, self.screening, self.solver, self.limits, reference, first
        )
        self.latest = reference
        self.console.start(self.spec.name, getattr(self.grid, "expected", len(self.grid)), first)
        try:
            self.keep_steps(found)
            if self.sink.count < len(self.grid):
                status = TIME_LIMIT
        except Stopped as stop:
            status, code = INTERRUPTED, 128 + stop.number
        except BaseException:
            self.sink.fail(self.record(FAILED))
            raise
        finally:
            self.signals.hold()  # the files are completed whatever comes now, short of a second signal
            self.console.stop()
        clock = time.perf_counter()
        if status != COMPLETE and self.latest is not None:
            self.sink.checkpoint(self.state(self.latest), self.tally.array())
        skipped = [self.skipped_row(rank) for rank in range(self.sink.count, len(self.grid))]
        self.tally.seconds["writing"] += time.perf_counter() - clock
        record = self.record(status)
        self.sink.finish(record, skipped)
        self.console.summary(self.summary(status))
        return exit_code(record) if code is None else code

    def keep_steps(self, found) -> None:
        """Write the steps that the walk yields, up to the end of the grid or the time limit."""
        for step, certificate in found:
            # A solve that the deadline cut short has other numbers than one that a resumed run would repeat.
            if time.monotonic() > self.deadline:
                return
            with self.signals.held():
                clock = time.perf_counter()
                weights = self.spec.weights(step, self.data.labels)
                row = {**step.record(), **self.more_cells(step)}
                if self.test is not None:
                    row[self.spec.score[0]] = self.spec.score[1](self.test.X @ weights.T, self.test.targets)
                self.sink.add(row, self.original(weights))
                self.latest = certificate
                self.tally.add(step)
                self.tally.seconds["writing"] += time.perf_counter() - clock
                if self.sink.due():
                    self.sink.checkpoint(self.state(certificate), self.tally.array())
            self.console.advance(step)

    def original(self, weights) -> tuple:
        """Return weights and intercept in the units of the data, a row each for several classes."""
        preparation = self.data.preparation
        if self.spec.rows is not None:  # the kernel's own: coefficients of samples, the constant is in the kernel
            return weights, 0.0, False
        if weights.ndim == 1:
            return (*preparation.original(weights), preparation.has_intercept)
        parts = [preparation.original(one) for one in weights]
        return [w for w, _ in parts], [b for _, b in parts], preparation.has_intercept

    def skipped_row(self, rank: int) -> dict:
        """Return the record of a step that was not reached."""
        return {"step": rank, **self.model.parameters(self.grid[rank]), "status": SKIPPED}

    # -- what is said about it -----------------------------------------------------------------------------------

    def record(self, status: str) -> dict:
        """Return the content of run.json."""
        o, data = self.options, self.data
        return {
            "schema_version": SCHEMA_VERSION,
            "tool": "screenpath",
            "status": status,
            "command": ["screenpath", *sys.argv[1:]],
            "model": self.spec.name,
            "objective": self.spec.objective,
            "stopping_rule": "primal - dual <= tol * primal on the full data",
            "versions": versions(),
            "options": {name: o[name] for name in sorted(o)},
            "data": data.description(),
            "test": self.test.description() if self.test is not None else None,
            "labels": data.labels,
            "preparation": data.preparation_record(),
            "kernel": data.rows.describe() if self.spec.rows is not None else None,
            "guarantee": self.grid.guarantee() if hasattr(self.grid, "guarantee") else None,
            **({"closed_form_until": finite(self.model.closed_until)} if hasattr(self.model, "closed_until") else {}),
            "parameters": list(self.model.parameters(self.grid[0])),
            "columns": list(self.columns),
            "identity": self.identity(),
            "totals": {"n_steps": len(self.grid), **self.tally.record()},
        }

    def summary(self, status: str) -> list:
        """Return the lines of the closing table: (what, value)."""
        where = [] if self.options["out"] == "-" else [("results", str(self.sink.path))]
        ended = [] if status == COMPLETE else [("ended", status)]
        return [*ended, *self.tally.lines(len(self.grid)), *where]


def exit_code(record: dict) -> int:
    """Return 0 if every step (and fold) of a run is certified and no decision was found unsafe, else 3."""
    totals = record["totals"]
    good = totals["certified"] == totals["n_steps"] and totals["unsafe"] == 0
    return DONE if good and record.get("folds_certified", True) else UNCERTIFIED


def finite(value: float) -> float | None:
    """Return a number as JSON can have it."""
    return value if math.isfinite(value) else None


def versions() -> dict:
    """Return the versions of everything that computes."""
    import platform
    from importlib.metadata import version

    names = ("numpy", "scipy", "numba")
    return {"screenpath": __version__, "python": platform.python_version(), **{name: version(name) for name in names}}
