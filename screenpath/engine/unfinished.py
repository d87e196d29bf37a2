"""The step under way when a run is stopped: a long one is written, and the solver continues from it after a resume.

A short step is repeated instead, with the numbers of a run that was not stopped. A step longer than a job may last
would never end that way: after ``LONG`` seconds its certificate is written. Every claim stays the same, the last
digits of this step and later ones do not. run.json lists such steps (``continued``).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from screenpath.walk import step as steps

LONG = 10.0  # seconds after which a step is continued, not repeated
MARK = "begun_"  # prefix of its arrays in a checkpoint
WORK = ("screen_s", "solve_s", "certify_s", "epochs", "rounds", "passes")  # columns that add up over the runs
REASON = "the run was stopped within this step"


@dataclass
class Unfinished:
    """A step that was cut short."""

    step: steps.Step | None  # None where it comes from a checkpoint and has not been reached again
    certificate: object
    work: list[float]  # one number for each of ``WORK``, earlier runs included

    def arrays(self, model) -> dict:
        """Return its arrays for a checkpoint."""
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
