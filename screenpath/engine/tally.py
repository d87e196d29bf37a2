"""Totals of a path: what run.json and the closing table say."""

from __future__ import annotations

import numpy as np

from screenpath.problem.ends import CONSTANT
from screenpath.walk.step import CERTIFIED

PHASES = ("reading", "compiling", "screening", "solving", "certifying", "writing")
COUNTS = (
    "steps", "certified", "unsafe", "unaudited", "epochs", "passes", "rejection_sum", "worst_rel_gap", "solved_at",
    "constant_from",
)  # fmt: skip


class Tally:
    """Sums over the steps of a path and seconds by phase; survives a resume.

    Attributes
    ----------
    steps, certified, unsafe, epochs : int
    unaudited : int
        Steps that the audit could not solve.
    passes, rejection_sum, worst_rel_gap : float
    solved_at, constant_from : float
        C of the last step that was solved; the same if those behind it needed no solve, as for every larger C, else 0.
    seconds : dict of str to float
        By phase.
    """

    def __init__(self):
        self.steps = self.certified = self.unsafe = self.unaudited = self.epochs = 0
        self.audited = False  # whether any decision was looked at again
        self.passes = self.rejection_sum = self.worst_rel_gap = self.solved_at = self.constant_from = 0.0
        self.seconds = dict.fromkeys(PHASES, 0.0)

    def add(self, step) -> None:
        """Count a step."""
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
        # A gap that overflowed, over a primal value that did, is no number: nothing is worse.
        self.worst_rel_gap = max(self.worst_rel_gap, np.inf if np.isnan(cells["rel_gap"]) else cells["rel_gap"])
        constant = cells["solver"] == CONSTANT
        self.solved_at = self.solved_at if constant else cells.get("C", 0.0)
        self.constant_from = self.solved_at if constant else 0.0
        solving = cells["solve_s"] + cells["init_s"]
        self.add_seconds({"screening": cells["screen_s"], "solving": solving, "certifying": cells["certify_s"]})

    def add_seconds(self, seconds: dict) -> None:
        """Add seconds by phase."""
        for phase, value in seconds.items():
            self.seconds[phase] += value

    def array(self) -> np.ndarray:
        """Return everything as one array, for a checkpoint."""
        return np.array([*(getattr(self, name) for name in COUNTS), *self.seconds.values()], dtype=np.float64)

    @classmethod
    def restored(cls, array) -> Tally:
        """Return the tally of :meth:`array`; a ValueError if the array is none of ours."""
        tally = cls()
        array = np.asarray(array)
        if array.shape != tally.array().shape or array.dtype != np.float64 or not np.all(array >= 0.0):
            raise ValueError("the totals are not numbers of at least 0")
        if not np.isfinite(np.delete(array, COUNTS.index("worst_rel_gap"))).all():
            raise ValueError("the totals are not finite")
        values = array.tolist()
        for name, value in zip(COUNTS, values, strict=False):
            setattr(tally, name, type(getattr(tally, name))(value))
        tally.seconds = dict(zip(PHASES, values[len(COUNTS) :], strict=True))
        return tally

    def record(self) -> dict:
        """Return the totals for run.json."""
        return {
            "steps_done": self.steps,
            "certified": self.certified,
            "unsafe": self.unsafe,
            **({"unaudited": self.unaudited} if self.unaudited else {}),
            "epochs": self.epochs,
            "passes": self.passes,
            "mean_rejection_ratio": self.rejection_sum / self.steps if self.steps else None,
            "worst_rel_gap": self.worst_rel_gap if self.steps else None,
            **({"constant_from": self.constant_from} if self.constant_from else {}),
            "seconds": dict(self.seconds),
        }

    def lines(self, n_steps: int) -> list[tuple[str, str]]:
        """Return the totals as (what, value) for people."""
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
    """Return what an audit found, of the totals of a run."""
    found, unaudited = str(totals.get("unsafe", "?")), totals.get("unaudited")
    return f"{found}; audit: {not_solved(unaudited)}" if unaudited else found


def not_solved(steps: int) -> str:
    """Return in words that the audit could not solve so many steps to the tolerance of the path."""
    return f"not solved at {steps} step{'s' * (steps != 1)}, whose decisions it could not check"
