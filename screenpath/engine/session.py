"""One run: read, prepare, walk, write, report; for the shell, Python functions and cross-validation."""

from __future__ import annotations

import contextlib
import math
import os
import pathlib
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np

from screenpath import __version__
from screenpath.catalogue.scores import CONFUSION, TABULATED, confusion
from screenpath.catalogue.spec import Spec
from screenpath.data.files.source import reading
from screenpath.data.safe.memory import in_force
from screenpath.data.words.labels import pair_labels
from screenpath.data.words.tables import check_same, now
from screenpath.engine import warm
from screenpath.engine.hints import best_lines, hints
from screenpath.engine.interpolated import solved_of
from screenpath.engine.interrupts import Interrupts, Stopped
from screenpath.engine.options import INPUTS, check_options, default_folder, points_of, stretch
from screenpath.engine.path import Path, asked_grid, limits_of, ways
from screenpath.engine.record import LONG, REASON, Tally, Unfinished, all_good, is_long, record_of
from screenpath.errors import DataError, ResourceError, UsageError
from screenpath.inputs import load
from screenpath.inputs.test_data import load_test
from screenpath.kernels import compilation
from screenpath.solve.base import Pulse
from screenpath.store.coefficients import Layout
from screenpath.store.folder import COMPLETE, FAILED, INTERRUPTED, RUNNING, TIME_LIMIT, RunFolder
from screenpath.store.outputs import Stream, refuse_inputs
from screenpath.store.record import ROWS_FILE
from screenpath.walk import step as steps
from screenpath.walk.loop import AUDITED, Audit, PathOptions, restore_walk, walk_state


class Session:
    """One run of a path: its data, model, grid, limits and files.

    ``spec`` is resolved by the options (``Spec.resolved``), which have a value each, and ``data``: a path, or arrays
    (X, y). ``console`` is a :class:`screenpath.report.console.Console`. ``began`` is the ``time.monotonic()`` value
    from which ``time_limit`` counts, now by default; ``command`` is for run.json.
    """

    def __init__(self, spec: Spec, options: dict, console, signals: Interrupts | None = None, began=None, command=()):
        check_options(options)
        self.spec, self.options, self.console, self.command = spec, options, console, list(command)
        self.signals = Interrupts() if signals is None else signals
        limit = options["time_limit"]
        self.began, self.started = time.monotonic() if began is None else began, now()
        self.deadline = self.began + limit if limit is not None else math.inf
        self.tally, self.pulse = Tally(), Pulse()
        self.sink: Any = None  # a RunFolder or a Stream
        self.data: Any = None
        self.proof: Any = None
        self.status: str | None = None  # how it ended: ``complete``, ``interrupted`` or ``time limit``
        self.good: bool | None = None  # see :func:`screenpath.engine.record.all_good`
        self.stopped: int | None = None  # the signal that ended it
        self.resumable = False
        self.begun: Unfinished | None = None  # the step that was cut short, here or in an earlier run
        self.continued: list[int] = []  # steps that were continued from such a one
        self.told: dict = {}  # entries that every run.json of this process shares
        self.scored: list[dict] = []  # step, parameters and test score of each step of this process

    offset = 0  # points of the whole grid before those of this run
    cross_validated = False

    # -- the order of things -------------------------------------------------------------------------------------

    def run(self) -> None:
        if self.options["out"] != "-":
            named = [self.options.get(name) for name in INPUTS]
            refuse_inputs(self.folder(), [name for name in named if isinstance(name, str)])
        for name in INPUTS[1:]:  # what reading DATA says of itself
            file = self.options.get(name)
            if isinstance(file, str) and file != "-" and not os.path.exists(file):
                raise DataError(f"{file}: no such file", f"check the path that `{name}` has")
        try:
            self.prepare()
            self.signals.keeping = True
            self.sink = self.open_sink()
            if self.sink is None:  # finished already
                return
            if not self.resumable:
                self.sink.clear()
            self.before_walk()
            self.walk(self.start())
        finally:
            for one in (self.proof, self.sink, self.data):
                if one is not None:
                    one.close()
            if isinstance(self.sink, RunFolder) and self.sink.replaces and self.status != COMPLETE:
                self.console.say(f"{self.sink.kept or self.sink.path} holds the earlier run")

    def prepare(self) -> None:
        o = self.options
        # First: a wrong name or value is an error before anything is read or compiled.
        how = ways(self.spec, o)
        grid = asked_grid(self.spec, o)
        if o["part"] is not None:
            self.check_part(grid)
        busy = self.console.busy(f"reading {os.path.basename(load.name_of(o['data']))}", reading)
        compiling = self.console.compiling(self.compiling_begins)
        with busy as activity, compiling, contextlib.ExitStack() as ending:
            ending.callback(compilation.stop_helpers)
            jobs, limit = o.get("jobs") or 1, in_force()
            limit.foresee(jobs if jobs > 1 and not o["scheduler"] else 0, self.spec.rows is not None)
            began = compilation.clocks()
            self.tally.looked = began.processor
            self.read()
            self.test = load_test(self.spec, o, self.data) if o["test"] else None
            self.tally.seconds["reading"] = compilation.clocks().clock - began.clock
            if self.test is not None and self.test.sha256 == self.data.sha256:
                self.console.say("note: the `test` data are the training data, so scores there are too good")
            if activity is not None:
                activity.turn("preparing the path")
            self.path = Path.of(self.spec, {**o, "tell": self.console.say}, self.data, grid, how, self.limits())
            self.model, self.whole, self.grid = self.path.model, self.path.grid, self.path.grid
            limit.promised, limit.later = self.data.vectors, 0  # all else is allocated by now
            self.data = replace(self.data, targets=None)  # the model has its own
            self.take_part()
            self.set_up_walk()
            warm.warm_model(self.spec, o, self.data.rows)  # so that no step's clock sees a compilation
            if self.spec.copies:
                self.data = self.data.without_rows()
        self.tally.seconds["compiling"] = self.compiled = compilation.clocks().compiling

    def compiling_begins(self) -> None:
        in_force().check_compiling()
        if not in_force():  # the memory of helpers would count
            compilation.start_helpers(self.spec.kernel_modules)

    def check_part(self, grid) -> None:
        """Refuse a part that options alone tell to be beyond the grid."""
        o, usual = self.options, {one.name: one.usual for one in self.spec.path_options}
        if grid is not None:
            points_of(o["part"], grid)
        elif "betas" in o:
            stretch(o["part"], len(o["beta"] or ()) or o["betas"] or usual["betas"], "values of beta")
        else:
            stretch(o["part"], o["grid"] or usual["grid"], "grid points")

    def take_part(self) -> None:
        """Restrict the grid to the ``part`` of this run."""
        if self.options["part"] is not None:
            points = points_of(self.options["part"], self.whole)
            self.grid, self.offset = self.whole[points.start : points.stop], points.start

    def read(self) -> None:
        self.take(load.load_training(self.spec, self.options, self.console.say))

    def take(self, data) -> None:
        """Take the training data, and the model that their labels ask for."""
        self.data = data
        if data.spec is not self.spec:
            self.spec = load.model_of(data, self.options, self.console.say)

    def before_walk(self) -> None:
        """Cross-validate, in a subclass, after the folder is open and before the first step."""

    def more_cells(self, step) -> dict:
        """Return further cells of a step's row, in a subclass."""
        return {}

    def limits(self) -> PathOptions:
        # Behind a kernel certificates are for the next step, and what is written of them are dual points.
        o, asked = self.options, self.spec.rows is None
        limits = limits_of(o, self.began, pulse=self.pulse, certificates=asked)
        if not o["audit"]:
            return limits
        return replace(limits, audit=Audit(ways(self.spec, o)[1], limits, self.spec.contradicted))

    def set_up_walk(self) -> None:
        self.has_intercept = self.data.preparation.has_intercept
        extras = (*self.spec.columns, *(AUDITED if self.options["audit"] else ()))
        if self.test is not None:
            extras = (*extras, *self.spec.score_columns)
            few = self.data.labels is not None and len(self.data.labels.get("classes", ())) <= TABULATED
            extras = (*extras, CONFUSION) if few else extras
        extras = (*extras, *steps.bytes_of(self.data.rows))
        self.columns = ("step", *self.model.parameters(self.grid[0]), *steps.COLUMNS, *extras)

    # -- where it goes -------------------------------------------------------------------------------------------

    def open_sink(self):
        """Return the run folder or the stream; None where ``resume`` finds a finished run."""
        o = self.options
        if o["out"] == "-":
            return Stream(sys.stdout, o["format"], self.columns)
        folder = RunFolder(self.folder(), o["format"], o["coefficients"])
        try:
            previous = folder.previous(replace=o["force"])
            if previous is not None:
                usual = {one.name: one.usual for one in self.spec.path_options}
                if not o["resume"]:
                    folder.refuse(previous, self.identity(), usual, self.continues)
                check_same(folder.path, previous["identity"], self.identity(), usual)
                if previous["status"] == COMPLETE:
                    folder.check_complete(previous)
                    self.status, self.good = COMPLETE, all_good(previous)
                    self.console.say(f"{folder.path} is complete already; nothing to do")
                    folder.remove_leftovers()
                    folder.close()
                    return None
        except BaseException:
            folder.close()
            raise
        self.resumable = previous is not None
        self.continued = list((previous or {}).get("continued", ()))
        return folder

    @property
    def continues(self) -> bool:
        """Tell whether `resume` can continue such a run."""
        return not getattr(self.grid, "at_once", False)

    def folder(self) -> pathlib.Path:
        o = self.options
        return pathlib.Path(o["out"]) if o["out"] else default_folder(self.spec, o, self.cross_validated)

    def identity(self) -> dict:
        """Return all that decides the numbers: a resumed run must have the same."""
        return {
            "tool_version": __version__, "model": self.spec.name, **self.data.identity(),
            "test_sha256": self.test.sha256 if self.test is not None else None, **self.spec.identity(self.options),
        }  # fmt: skip

    def start(self):
        """Open the files, new or to be continued; return the reference of the next step."""
        checkpoint = self.sink.load_checkpoint(self.identity()) if self.resumable else None
        reference = None
        if checkpoint is not None:  # all of it is checked before anything is changed
            reference = self.restore(checkpoint)
            done = checkpoint.progress.steps
            how = f"within step {done}" if self.begun is not None else f"behind step {done - 1}"
            self.console.say(f"continuing {how}")
        (n, d), classes = self.data.shape, (self.data.labels or {}).get("classes")
        classes = pair_labels(classes) if classes and self.spec.votes else classes
        layout = Layout(d, "feature", classes, self.data.preparation.numbers, self.data.names)
        if self.spec.rows is not None:
            layout = Layout(n, "sample", classes)
        self.sink.write_run(self.record(RUNNING))  # first: it marks the folder as a run under way
        if self.options.get("keep_rows"):
            from screenpath.inputs.run_data import kept_bytes  # here: others start up without shards

            self.sink.write_output(ROWS_FILE, kept_bytes(self.data.rows.blocks.rows))
        self.sink.open(self.columns, layout, checkpoint)
        self.open_proof(checkpoint.state if checkpoint else None, reference)
        return reference

    def restore(self, checkpoint):
        """Restore the totals of an earlier run; return the reference of its next step."""
        steps, grid = checkpoint.progress.steps, self.grid
        if steps and not self.continues:
            raise UsageError("a path that covers the plane cannot be resumed", "start it again (`force`)")
        try:
            earlier = Tally.restored(checkpoint.tally)
            known = not hasattr(grid, "covered")  # else it grows with the walk
            if earlier.steps != steps or (known and steps > len(grid)):
                raise ValueError("it speaks of another number of steps")
            at = grid[steps - 1] if known and steps else None
            if known and steps < len(grid):
                self.begun = Unfinished.restored(self.model, checkpoint.state, grid[steps])
            started = steps > 0 or self.begun is None  # else there is only the unfinished first step
            reference = restore_walk(self.model, self.path.screening, checkpoint.state, at) if started else None
            if self.options.get("certificate"):
                from screenpath.store.certificates import check_resumed

                check_resumed(self.sink.path, self.model, checkpoint.state)
        except ValueError as error:
            raise self.sink.damaged_checkpoint(error) from None
        if self.begun is not None and steps not in self.continued:
            self.continued.append(steps)
        if earlier.between.last is not None:
            parts = reference if self.model.parts else [reference]
            w = np.concatenate([part.point.vector for part in parts])
            earlier.between.last = replace(earlier.between.last, w=w)
        earlier.add_seconds(self.tally.seconds)
        earlier.looked = self.tally.looked
        self.tally = earlier
        return reference

    def open_proof(self, state=None, reference=None) -> None:
        if self.options.get("certificate"):
            from screenpath.store.certificates import CertificateFile, header_of

            header = header_of(self.spec.name, self.options, self.data)
            self.proof = CertificateFile(self.sink.path, self.model, header, state, reference)

    def state(self, certificate) -> dict:
        """Return the arrays of a checkpoint: all that the next step depends on."""
        state = {} if certificate is None else walk_state(self.model, self.path.screening, certificate)
        begun = {} if self.begun is None else self.begun.arrays(self.model)
        return {**state, **begun, **({} if self.proof is None else self.proof.state())}

    # -- the path ------------------------------------------------------------------------------------------------

    def found(self, reference, first: int):
        begun = {} if self.begun is None else {"begun": self.begun.certificate}
        # Walked with the numbers of the whole grid: a solver's random numbers depend on the number of the point.
        points = self.whole[: self.offset + len(self.grid)] if self.offset else self.grid
        for step, certificate in replace(self.path, grid=points).walk(reference, self.offset + first, **begun):
            if self.offset:
                step.cells["step"] -= self.offset
            yield step, certificate

    def walk(self, reference) -> None:
        """Walk the grid, write each step as it is done, and complete the files however it ends."""
        status, limit = COMPLETE, in_force()
        first = self.sink.count
        found = self.found(reference, first)
        self.latest = reference
        name, covered, at_work = self.spec.name, getattr(self.grid, "covered", None), self.pulse
        most = len(self.grid) if covered is None else self.grid.most(self.options["tol"])
        self.console.start(name, most, first, covered is not None, covered, at_work)
        try:
            limit.promised = 0  # from here on, memory in use counts
            compiling = self.console.compiling(limit.check_compiling)
            kept = limit.kept("the path", self.spec.needs.hint)
            self.signals.softly = self.stop_softly
            try:
                with self.signals.cutting(), compiling, kept:
                    self.keep_steps(found)
                    self.signals.check()
                if self.sink.count < len(self.grid):
                    status = TIME_LIMIT
            except Stopped as stop:
                status, self.stopped = INTERRUPTED, stop.number
            if self.data.rows.on_disk:
                self.data.check()  # a pass sees only changes before it
        except BaseException as error:
            if isinstance(error, ResourceError) and self.latest is not None:
                self.keep_for_later(error)
            self.sink.fail(self.record(FAILED))
            self.sink.whole_only = not self.continues
            raise
        finally:
            self.signals.hold()
            self.console.stop()
        spent = compilation.clocks()
        self.tally.seconds["compiling"] += spent.compiling - self.compiled  # what nobody foresaw
        self.tally.look(spent.processor)
        clock = time.perf_counter()
        if status != COMPLETE:
            self.keep_state()
        reason = steps.LATE if status == TIME_LIMIT else "a signal ended the path before this point"
        left = [(rank, self.model.parameters(self.grid[rank])) for rank in range(self.sink.count, len(self.grid))]
        skipped = [{"step": k, **point, "status": steps.SKIPPED, "reason": reason} for k, point in left]
        self.tally.seconds["writing"] += time.perf_counter() - clock
        record = self.record(status)
        if self.proof is not None:
            name, self.sink.files[name] = self.proof.finish(skipped)
        self.sink.finish(record, skipped)
        self.console.summary(self.summary(status))
        if not self.console.quiet:
            for hint in hints(self):
                self.console.say(f"hint: {hint}", "hint")
        self.status, self.good = status, all_good(record)

    def keep_for_later(self, error: ResourceError) -> None:
        """Write a checkpoint, from which the path can continue with more memory."""
        self.sink.checkpoint(self.state(self.latest), self.totals())
        if self.options["out"] != "-":
            error.hint = f"{error.hint}; with `resume` it continues after the {self.sink.count} steps that are done"

    def keep_steps(self, found) -> None:
        """Write the steps of the walk, up to the end of the grid or the time limit."""
        limit = in_force()
        for step, certificate in found:
            if self.begun is not None:
                self.begun.counted(step)
            # A solve that the deadline cut short is dropped: a resumed run must repeat it with the same numbers.
            if self.path.limits.late:
                fixed = not hasattr(self.grid, "covered")  # the next point of an eps-path depends on the reference
                self.begun = Unfinished.of(step, certificate) if fixed and is_long(step, certificate) else None
                return
            self.begun = None
            if limit.limit is not None:
                limit.look(f"step {step.step}")
            with self.signals.held():
                clock = time.perf_counter()
                row, original = self.row(step)
                if self.test is not None:
                    names = ("step", *step.parameters, self.spec.score_columns[0])
                    self.scored.append({name: row[name] for name in names})
                self.sink.add(row, original)
                if self.proof is not None:
                    self.proof.add(step, certificate)
                self.latest = certificate if getattr(certificate, "resumable", True) else None
                self.tally.add(step)
                if self.spec.rows is None and (self.spec.parameter == "C" or "slope" in step.cells):
                    w = np.asarray(step.coefficients)[..., : -1 if self.spec.free_bias else None].ravel()
                    self.tally.between.add(solved_of(step.cells, self.spec.parameter, w))
                self.tally.seconds["writing"] += time.perf_counter() - clock
                if self.latest is not None and self.sink.due():
                    if self.data.rows.on_disk:
                        self.data.check()
                    self.sink.checkpoint(self.state(certificate), self.totals())
            self.console.advance(step)

    def row(self, step) -> tuple[dict, Any]:
        """Return the row of a step, and :meth:`original` of its weights."""
        weights = self.spec.weights(step, self.data.labels)
        original = self.original(weights)
        row = {**step.record(), **self.more_cells(step)}
        if self.spec.free_bias and weights.ndim == 1:
            row = steps.in_units(row, original[1] - weights[-1])
        if self.test is not None:
            forms, targets = self.test.X @ weights.T - (row.get("threshold") or 0.0), self.test.targets
            forms = self.spec.of_each_class(forms)
            scores = self.spec.scores_of(forms, targets, self.options)
            row.update(zip(self.spec.score_columns, scores.values(), strict=True))
            if CONFUSION in self.columns:
                row[CONFUSION] = " ".join(map(str, confusion(forms, targets).ravel().tolist()))
        return row, original

    def totals(self) -> np.ndarray:
        """Return the totals up to now, for a checkpoint."""
        self.tally.look(compilation.clocks().processor)
        return self.tally.array()

    def keep_state(self) -> None:
        """Write a checkpoint of a run that ends early, with the step that was cut short."""
        if self.proof is not None:  # a certificate file has whole steps only
            self.begun = None
        if self.latest is not None or self.begun is not None:
            self.sink.checkpoint(self.state(self.latest), self.totals())
        if self.begun is not None and self.begun.step is not None:
            self.begun.step.cells["reason"] = REASON
            self.sink.add(*self.row(self.begun.step))

    def stop_softly(self) -> bool:
        """Ask the solver to end a long step, as the deadline would; tell whether there is such a step."""
        pulse = self.pulse
        known = 0.0 if self.begun is None else sum(self.begun.work[:3])
        if pulse.parameters is None or time.monotonic() - pulse.since + known < LONG:
            return False
        pulse.stopped = True
        return True

    def original(self, weights) -> tuple:
        """Return weights and intercept (of several classes one each) in the units of the data, and if there is one."""
        if self.spec.rows is None:
            return (*self.data.preparation.original(weights), self.has_intercept)
        if self.spec.free_bias:  # coefficients of samples, and the intercept
            return weights[..., :-1], weights[..., -1], True
        return weights, np.zeros(weights.shape[:-1]), False  # a penalised constant is in the kernel

    # -- record and summary --------------------------------------------------------------------------------------

    def record(self, status: str) -> dict:
        return record_of(self, status)

    def summary(self, status: str) -> list:
        """Return the lines (what, value) of the closing table."""
        where = [] if self.options["out"] == "-" else [("results", str(self.sink.path))]
        ended = [] if status == COMPLETE else [("ended", status)]
        total = [("total", f"{time.monotonic() - self.began:.3f} s")]
        return [*ended, *best_lines(self), *self.tally.lines(len(self.grid)), *total, *where]
