"""What the two pages of Ogawa et al. 2014 share: screening rates from one reference, and Table IV both ways."""

from __future__ import annotations

import statistics

import pictures
from study import line, mean

TIGHT = ("--tol", "1e-8")  # of the references of Figs. 1 and 4
RULES = ("bt1", "bt2", "it")
SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)  # of C_ref in C, in Fig. 4
VARIANTS = (("none", False), ("none", True), ("bt1", False), ("bt1", True), ("it", False), ("it", True))


def rates(study, name, file, first, last, *options) -> list[dict]:
    """Return the step of a problem screened once from one reference, for each of three rules."""
    how = ("--reference", f"{first:.10g}", "--c", f"{last:.10g}", *TIGHT, *options)
    return [study.path(name, "svm", file, rule, *how)[-1] for rule in RULES]


def figure4(study, sets: dict, name: str) -> None:
    """Write and draw screening rates at C = 10 over C_ref / C; ``sets`` has file and options by name."""
    study.section("Figure 4: screening rate at C = 10 over C_ref / C", "References at a relative gap of 1e-8.")
    study.header("data", "C_ref / C", "BT1", "BT2", "IT")
    panels = []
    for set_, (file, *options) in sets.items():
        curves: dict = {rule: ([], []) for rule in RULES}
        for share in SHARES:
            found = rates(study, set_, file, 10 * share, 10, *options)
            study.say(line((set_, share, *(f"{step['screening_rate']:.3f}" for step in found))))
            for rule, step in zip(RULES, found, strict=True):
                curves[rule][0].append(share)
                curves[rule][1].append(step["screening_rate"])
        panels.append((set_, curves))
    if panels:
        study.picture(
            lambda to: pictures.lines(to, f"{name}-fig4.svg", panels, xlabel="C_ref / C", logx=False), "Fig. 4"
        )


def figure5(study, sets: dict, name: str, *path) -> None:
    """Write the means of the screening rates over C and draw them."""
    study.section("Figure 5: screening rate over C")
    study.header("data", "BT1", "BT2", "IT")
    panels = []
    for set_, (file, *options) in sets.items():
        curves, means = {}, []
        for rule in RULES:
            steps = study.path(set_, "svm", file, rule, *path, *options)
            curves[rule] = [step["C"] for step in steps], [step["screening_rate"] for step in steps]
            means.append(f"{mean(steps, 'screening_rate'):.3f}")
        study.say(line((set_, *means)))
        panels.append((set_, curves))
    if panels:
        study.picture(lambda to: pictures.lines(to, f"{name}-fig5.svg", panels), "Fig. 5")


def ratios(seconds: str) -> dict:
    """Return the published ratios of Table IV's six variants: to Full, and to Shrink for those that shrink."""
    if not seconds:
        return {}
    took = dict(zip(VARIANTS, map(float, seconds.split()), strict=True))
    return {
        rule + ("+shrinking" if on else ""): f"{took['none', on] / took[rule, on]:.2f}"
        for rule, on in VARIANTS if rule != "none"
    }  # fmt: skip


class Both:
    """Table IV, until no dual variable is at C, where the paper's Algorithm 1 ends, and to the end of the range.

    Parameters
    ----------
    study : Study
    given : argparse.Namespace
        With ``eps``, ``cmax`` and ``tol``.
    shrinking : {"on", "both"}
    options : tuple
        Of every command.
    """

    def __init__(self, study, given, shrinking: str, *options):
        self.study, self.given, self.shrinking, self.options = study, given, shrinking, options
        self.gains: dict = {"until": [], "to the end": []}

    def lines(self, name, file, seconds: str, *options, to_the_end: bool = True) -> None:
        """Write the lines of one set; where L does not empty they are those to the end."""
        given, path = self.given, (*self.options, *options)
        path = (*path, "--tol", given.tol, "--eps-path", given.eps, "--cmin", 0.001)
        steps = self.study.path(name, "svm", file, "it", *path, "--cmax", given.cmax)
        empty = next((k for k in range(len(steps)) if all(step["n_L"] == 0 for step in steps[k:])), None)
        if empty:
            until = f"{steps[empty]['C']:.6g}"
            self._compare(f"{name}: to C = {until}, L is empty", "until", file, seconds, *path, "--cmax", until)
        if to_the_end or not empty:
            self._compare(f"{name}: to C = {given.cmax:g}", "to the end", file, seconds, *path, "--cmax", given.cmax)

    def _compare(self, label, where, file, seconds, *path):
        rows = self.study.compare(label, "svm", file, "none,bt1,it", "--shrinking", self.shrinking, *path)
        self.study.speeds(label, rows, ratios(seconds))
        speed = {row["rule"]: row["speedup"] for row in rows if row["shrinking"]}
        self.gains[where].append(speed["it"] / speed["none"])

    def summary(self, whose: str) -> None:
        """Write how much faster IT makes the solver, both ways."""
        for where, found in self.gains.items():
            if found:
                text = "until no dual variable is at C" if where == "until" else "to the end of the range"
                parts = f"{min(found):.2f} to {max(found):.2f}, in the middle {statistics.median(found):.2f}"
                self.study.say(f"\n{whose}, {text}: {parts}.")
