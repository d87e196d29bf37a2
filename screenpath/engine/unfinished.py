"""The step under way when a run is stopped: where it was long, its pair is written, and the solver goes on from it.

A step that took little is repeated when the run is resumed, with the numbers of a run that was not stopped. One that
takes longer than a job may last would never end that way. So behind ``LONG`` seconds the solver goes on from the pair
it had reached: every claim is the same, the last digits of this step and those behind it are not. run.json lists such
steps (``continued``).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from screenpath.walk import step as steps

LONG = 10.0  # seconds of a step from which it is not begun anew
MARK = "begun_"  # of its arrays among those of a checkpoint
WORK = ("screen_s", "solve_s", "certify_s", "epochs", "rounds", "passes")  # that goes on being counted
REASON = "the run was stopped within this step"


@dataclass
class Unfinished:
    """A step that was cut short."""

    step: steps.Step | None  # None where it was taken up from a checkpoint and has not been reached again
    certificate: object  # Certificate: of the pair
    work: list[float]  # by ``WORK``, that of earlier runs included

    def arrays(self, model) -> dict:
        """Return what a checkpoint holds of it."""
        found = {MARK + name: value for name, value in model.state(self.certificate).items()}
        return {**found, f"{MARK}work": np.array(self.work, dtype=np.float64)}

    @classmethod
    def of(cls, step, certificate) -> Unfinished:
        """Return a step that has just been cut short."""
        return cls(step, certificate, [step.cells[name] for name in WORK])

    @classmethod
    def restored(cls, model, state: dict, parameter) -> Unfinished | None:
        """Take :meth:`arrays`, those of a pair at the grid point, out of a checkpoint; None where there are none."""
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
        """Add the work of earlier runs to the step that went on from it."""
        for name, value in zip(WORK, self.work, strict=True):
            step.cells[name] = type(step.cells[name])(step.cells[name] + value)


def is_long(step, certificate) -> bool:
    """Tell whether a step that was cut short is worth going on with; certificates of some walks cannot be restored."""
    return step.seconds >= LONG and not isinstance(certificate, list) and getattr(certificate, "resumable", True)
