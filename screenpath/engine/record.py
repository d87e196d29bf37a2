"""What a session records: run.json, the totals in it and in the closing table, a step that was cut short."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from screenpath.data.safe.plugins import Plugin
from screenpath.data.words.tables import circumstances, now, versions
from screenpath.engine.options import INPUTS
from screenpath.inputs.load import ARRAYS
from screenpath.problem.between import Range
from screenpath.problem.ends import CONSTANT
from screenpath.store.record import RUNNING, SCHEMA_VERSION
from screenpath.walk.step import CERTIFIED, Step

PHASES = ("reading", "compiling", "screening", "solving", "certifying", "writing")
COUNTS = (
    "steps", "certified", "unsafe", "unaudited", "epochs", "passes", "rejection_sum", "worst_rel_gap", "solved_at",
    "constant_from", "cpu_seconds",
)  # fmt: skip
LONG = 10.0  # seconds after which a step is continued, not repeated
MARK = "begun_"  # prefix of its arrays in a checkpoint
WORK = ("screen_s", "solve_s", "certify_s", "epochs", "rounds", "passes")  # columns that add up over the runs
REASON = "the run was stopped within this step"


def record_of(session, status: str) -> dict:
    """Return the content of run.json for a session (:class:`screenpath.engine.session.Session`)."""
    s, o, data = session, session.options, session.data
    told = s.told = s.told or {
        "data": data.description(), "preparation": data.preparation_record(), "identity": s.identity(),
        "here": (circumstances(), versions()), "closed": getattr(s.model, "closed_until", None),
        "first": s.model.parameters(s.grid[0]),
    }  # fmt: skip
    whole = {} if o["part"] is None else {"first_of_whole": s.offset, "whole": len(s.whole)}
    ends = {"first": told["first"], "last": s.model.parameters(s.grid[len(s.grid) - 1])}
    grid, closed, (here, libraries) = {"points": len(s.grid), **ends, **whole}, told["closed"], told["here"]
    return {
        "schema_version": SCHEMA_VERSION, "tool": "screenpath", "status": status, "command": s.command, **here,
        "started": s.started, **({} if status == RUNNING else {"ended": now()}), "model": s.spec.name,
        "objective": s.spec.objective, "stopping_rule": "primal - dual <= tol * primal on the full data",
        "versions": libraries, "options": {name: _named(o[name], name in INPUTS) for name in sorted(o)},
        "data": told["data"], "test": s.test.description() if s.test is not None else None, "labels": data.labels,
        "preparation": told["preparation"], "kernel": data.rows.describe() if s.spec.rows is not None else None,
        **({} if status == RUNNING else s.tally.between.record(s.spec.parameter)),
        "guarantee": s.grid.guarantee(s.tally.steps) if s.tally.steps and hasattr(s.grid, "guarantee") else None,
        **({} if closed is None else {"closed_form_until": closed}), "parameters": list(grid["first"]),
        "columns": list(s.columns), "identity": told["identity"], "grid": grid,
        **({"continued": s.continued} if s.continued else {}), "totals": {"n_steps": len(s.grid), **s.tally.record()},
    }  # fmt: skip


def all_good(record: dict) -> bool:
    """Tell whether every step (and fold) is certified, and an audit, if any, found all decisions safe."""
    totals = record["totals"]
    good = totals["certified"] == totals["n_steps"] and totals["unsafe"] == 0 and not totals.get("unaudited")
    return bool(good and record.get("folds_certified", True))


def _named(value, is_file: bool):
    """Return an option for run.json: a plug-in by its name, arrays in place of a file as ``arrays``."""
    if isinstance(value, Plugin):
        return str(value)
    return value if value is None or isinstance(value, str) or not is_file else ARRAYS


class Tally:
    """Sums over the steps of a path, and seconds by phase; a checkpoint stores them."""

    def __init__(self):
        self.steps = self.certified = self.unsafe = self.epochs = 0
        self.unaudited = 0  # steps that the audit could not solve
        self.audited = False  # whether any decision was looked at again
        self.passes = self.rejection_sum = self.worst_rel_gap = 0.0
        # C of the last step that was solved; the same if the solution stays optimal for all larger C, else 0
        self.solved_at = self.constant_from = 0.0
        self.seconds = dict.fromkeys(PHASES, 0.0)  # by phase
        self.cpu_seconds, self.looked = 0.0, 0.0  # of this process, compiling left out; up to this place of its clock
        self.between = Range()  # of a linear path over C

    def add(self, step) -> None:
        cells = step.cells
        self.steps += 1
        self.certified += cells["status"] == CERTIFIED
        if "unsafe" in cells:
            self.audited = True
            self.unsafe += cells["unsafe"] or 0
            self.unaudited += cells["unsafe"] is None
        self.epochs += cells["epochs"]
        self.passes += cells["passes"]
        self.rejection_sum += cells["rejection_ratio"]
        # A gap and a primal value that both overflowed give nan: count it as the worst.
        self.worst_rel_gap = max(self.worst_rel_gap, np.inf if np.isnan(cells["rel_gap"]) else cells["rel_gap"])
        constant = cells["solver"] == CONSTANT
        self.solved_at = self.solved_at if constant else cells.get("C", 0.0)
        self.constant_from = self.solved_at if constant else 0.0
        solving = cells["solve_s"] + cells["init_s"]
        self.add_seconds({"screening": cells["screen_s"], "solving": solving, "certifying": cells["certify_s"]})

    def add_seconds(self, seconds: dict) -> None:
        for phase, value in seconds.items():
            self.seconds[phase] += value

    def look(self, processor: float) -> None:
        """Count the processor's seconds up to now."""
        self.cpu_seconds, self.looked = self.cpu_seconds + processor - self.looked, processor

    def array(self) -> np.ndarray:
        counts = (getattr(self, name) for name in COUNTS)
        return np.array([*counts, *self.seconds.values(), *self.between.state()], dtype=np.float64)

    @classmethod
    def restored(cls, array) -> Tally:
        """Undo :meth:`array`; a ValueError if it cannot have made this array."""
        tally = cls()
        array = np.asarray(array)
        if array.shape != tally.array().shape or array.dtype != np.float64:
            raise ValueError("the totals are not so many numbers")
        size = len(COUNTS) + len(PHASES)
        tally.between, array = Range.restored(array[size:].tolist()), array[:size]
        if not np.all(array >= 0.0):
            raise ValueError("the totals are not numbers of at least 0")
        if not np.isfinite(np.delete(array, COUNTS.index("worst_rel_gap"))).all():
            raise ValueError("the totals are not finite")
        values = array.tolist()
        for name, value in zip(COUNTS, values, strict=False):
            setattr(tally, name, type(getattr(tally, name))(value))
        tally.seconds = dict(zip(PHASES, values[len(COUNTS) :], strict=True))
        return tally

    def record(self) -> dict:
        return {
            "steps_done": self.steps, "certified": self.certified, "unsafe": self.unsafe,
            **({"unaudited": self.unaudited} if self.unaudited else {}), "epochs": self.epochs, "passes": self.passes,
            "mean_rejection_ratio": self.rejection_sum / self.steps if self.steps else None,
            "worst_rel_gap": self.worst_rel_gap if self.steps else None,
            **({"constant_from": self.constant_from} if self.constant_from else {}), "cpu_seconds": self.cpu_seconds,
            "seconds": dict(self.seconds),
        }  # fmt: skip

    def lines(self, n_steps: int) -> list[tuple[str, str]]:
        """Return the lines (what, value) of the closing table."""
        found = [("certified", f"{self.certified} of {n_steps} steps")]
        if self.unsafe or self.audited:
            found.append(("unsafe", f"{self.unsafe} decisions" + (", audited" if self.audited else "")))
        if self.unaudited:
            found.append(("audit", not_solved(self.unaudited)))
        if self.steps:
            found += [
                ("worst relative gap", f"{self.worst_rel_gap:.2e}"),
                ("mean rejection", f"{100.0 * self.rejection_sum / self.steps:.1f} %"),
                ("data passes", f"{self.passes:.1f}"),
            ]
        if self.constant_from:
            found.append(("constant", f"the solution is the same from C = {self.constant_from:.4g} on"))
        return found + [(phase, f"{value:.3f} s") for phase, value in self.seconds.items()]


def audit_words(totals: dict) -> str:
    """Return the result of an audit in words, from the totals of run.json."""
    found, unaudited = str(totals.get("unsafe", "?")), totals.get("unaudited")
    return f"{found}; audit: {not_solved(unaudited)}" if unaudited else found


def not_solved(steps: int) -> str:
    """Return in words that the audit could not solve this many steps to the tolerance of the path."""
    return f"not solved at {steps} step{'s' * (steps != 1)}, whose decisions it could not check"


@dataclass
class Unfinished:
    """The step under way when a run is stopped: a long one is written, and the solver goes on from it after a resume.

    A short step is repeated instead, with the numbers of a run that was not stopped. A step longer than a job may last
    would never end that way: after ``LONG`` seconds its certificate is written. Every claim stays the same, the last
    digits of this step and later ones do not. run.json lists such steps (``continued``).
    """

    step: Step | None  # None where it comes from a checkpoint and has not been reached again
    certificate: object
    work: list[float]  # one number for each of ``WORK``, earlier runs included

    def arrays(self, model) -> dict:
        found = {MARK + name: value for name, value in model.state(self.certificate).items()}
        return {**found, f"{MARK}work": np.array(self.work, dtype=np.float64)}

    @classmethod
    def of(cls, step, certificate) -> Unfinished:
        return cls(step, certificate, [step.cells[name] for name in WORK])

    @classmethod
    def restored(cls, model, state: dict, parameter) -> Unfinished | None:
        """Take :meth:`arrays` out of a checkpoint; None where there are none. They must be of this grid point."""
        found = {name.removeprefix(MARK): state.pop(name) for name in list(state) if name.startswith(MARK)}
        if not found:
            return None
        work = np.asarray(found.pop("work", np.empty(0)), dtype=np.float64)
        if work.shape != (len(WORK),) or not (np.isfinite(work).all() and (work >= 0.0).all()):
            raise ValueError("the work on an unfinished step is not what can have been done")
        certificate = model.restore(found)
        if not isfinite(certificate.primal) or list(certificate.at) != np.atleast_1d(parameter).tolist():
            raise ValueError("the unfinished pair is that of another grid point")
        return cls(None, certificate, work.tolist())

    def counted(self, step) -> None:
        """Add the work of earlier runs to the step that continued it."""
        for name, value in zip(WORK, self.work, strict=True):
            step.cells[name] = type(step.cells[name])(step.cells[name] + value)


def is_long(step, certificate) -> bool:
    """Tell whether to continue a step that was cut short; certificates of some walks cannot be restored."""
    return step.seconds >= LONG and not isinstance(certificate, list) and getattr(certificate, "resumable", True)
