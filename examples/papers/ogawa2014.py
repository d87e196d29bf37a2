"""What the two pages of Ogawa et al. 2014 share: rates from one reference and over a path, Table IV both ways."""

from __future__ import annotations

import statistics

import pictures
import verdicts
from study import SPEEDS, mean, relative, solved

TIGHT = ("--tol", "1e-8")  # of the references of Figs. 1, 4 and 6
RULES = ("bt1", "bt2", "it")
TURNS = 3  # at least: the first run of the first variant finds the steps of an eps-path, the others walk them
PRINTED = {"bt1": "BT1", "bt2": "BT2", "it": "IT"}  # ours, and the class of printed.py
VARIANTS = (("none", False), ("none", True), ("bt1", False), ("bt1", True), ("it", False), ("it", True))


def rates(study, name, file, first, last, *options) -> list[dict]:
    """Return the step of a problem screened once from one reference, for each of three rules."""
    how = ("--reference", f"{first:.10g}", "--c", f"{last:.10g}", *TIGHT, *options)
    return [study.path(name, "svm", file, rule, *how)[-1] for rule in RULES]


def figure4(study, cases: dict) -> None:
    """Write and draw screening rates at C = 10 over C_ref / C; ``cases`` has file and options by name."""
    study.table(
        f"{len(cases)} of the figure's 16 panels (the others: the page of the other kernel), all rows of each set. "
        "References at a relative gap of 1e-8.", "data", "C_ref / C", "BT1", "BT2", "IT",
    )  # fmt: skip
    panels = []
    for name, (file, *options) in cases.items():
        curves: dict = {rule: ([], []) for rule in RULES}
        for share in map(float, study.given.shares.split(",")):
            found = rates(study, name, file, 10 * share, 10, *options)
            study.row(name, f"{share:g}", *(f"{step['screening_rate']:.3f}" for step in found))
            for rule, step in zip(RULES, found, strict=True):
                curves[rule][0].append(share)
                curves[rule][1].append(step["screening_rate"])
        panels.append((name, curves))
        values = {rule: curve[1] for rule, curve in curves.items()}
        never = all(it >= max(one, two) for one, two, it in zip(*(values[rule] for rule in RULES), strict=True))
        told = f"mean IT - BT1: {statistics.mean(values['it']) - statistics.mean(values['bt1']):.3f}"
        study.claim(f"{name}: IT is never below BT1 and BT2", "holds", told, verdicts.of_order(never))
        ends = values["it"][0], values["it"][-1]
        told = f"{ends[0]:.3f} to {ends[1]:.3f}"
        study.claim(f"{name}: IT's rate grows with C_ref / C", "holds", told, verdicts.of_order(ends[0] <= ends[1]))
    if panels:
        draw = pictures.lines
        name = f"{study.name}-fig4.svg"
        study.picture(lambda to: draw(to, name, panels, columns=4, xlabel="C_ref / C", logx=False), "Fig. 4")


def figure5(study, cases: dict) -> None:
    """Write the means of the screening rates over the eps-path, and draw them."""
    given = study.given
    path = ("--eps-path", given.eps5, "--cmin", 0.001, "--cmax", given.cmax5, "--tol", given.tol)
    study.table(
        f"On the eps-path ({given.eps5:g}) to C = {given.cmax5:g}, as in the paper. Means over the solved steps, and "
        "over all, with those in closed form or constant.", "data", "steps", "solved", "BT1", "IT", "BT1, all steps",
        "IT, all steps",
    )  # fmt: skip
    panels = []
    for name, (file, *options) in cases.items():
        curves, means, over_all = {}, {}, []
        for rule in ("bt1", "it"):
            steps = study.path(name, "svm", file, rule, *path, *options)
            curves[rule] = [step["C"] for step in steps], [step["screening_rate"] for step in steps]
            means[rule] = mean(steps, "screening_rate")
            over_all.append(statistics.mean(curves[rule][1]))
        study.row(name, len(steps), len(solved(steps)), *(f"{one:.3f}" for one in (*means.values(), *over_all)))
        panels.append((name, curves))
        told, holds = f"{means['it']:.3f} and {means['bt1']:.3f}", means["it"] >= means["bt1"] - 5e-4
        study.claim(f"{name}: IT's rate is never worse than BT1's", "holds", told, verdicts.of_order(holds))
        study.found.setdefault("figure 5", {})[name] = means
    if panels:
        study.picture(lambda to: pictures.lines(to, f"{study.name}-fig5.svg", panels, columns=4), "Fig. 5")


def ratios(seconds: str) -> dict:
    """Return the published ratios of Table IV's six variants: to Full, and to Shrink for those that shrink."""
    if not seconds:
        return {}
    took = dict(zip(VARIANTS, map(float, seconds.split()), strict=True))
    found = {rule + ("+shrinking" if on else ""): took["none", on] / took[rule, on] for rule, on in VARIANTS}
    return {name: round(ratio, 2) for name, ratio in found.items() if not name.startswith("none")}


def published(study, seconds: dict) -> None:
    """Write Table IV as published, of the sets that are walked: its seconds of the six variants."""
    names = "Full", "Shrink", "BT1", "Shrink+BT1", "IT", "Shrink+IT"
    study.table("Published, seconds of the whole path.", "data", *names)
    for name, said in seconds.items():
        study.row(name, *said.split())


class Both:
    """Table IV, until no dual variable is at C, where the paper's Algorithm 1 ends, and to the end of the range.

    Published ratios stand beside the former.

    Parameters
    ----------
    study : Study
    text : str
        Before the table.
    shrinking : {"on", "both"}
    options : tuple
        Of every command.
    """

    def __init__(self, study, text: str, shrinking: str, *options):
        self.study, self.given, self.shrinking, self.options = study, study.given, shrinking, options
        self.gains: dict = {"until": [], "to the end": []}
        study.table(text, *SPEEDS)

    def lines(self, name, file, seconds: str, *options, to_the_end: bool = True) -> None:
        """Write the lines of one set; where L does not empty they are those to the end."""
        given, path = self.given, (*self.options, *options)
        path = (*path, "--tol", given.tol, "--eps-path", given.eps, "--cmin", 0.001)
        steps = self.study.path(name, "svm", file, "it", *path, "--cmax", given.cmax)
        empty = next((k for k in range(len(steps)) if all(step["n_L"] == 0 for step in steps[k:])), None)
        if empty:
            until = f"{steps[empty]['C']:.6g}"
            self._compare(f"{name}: to C = {until}, L is empty", "until", file, seconds, *path, "--cmax", until)
            seconds = ""
        if to_the_end or not empty:
            self._compare(f"{name}: to C = {given.cmax:g}", "to the end", file, seconds, *path, "--cmax", given.cmax)

    def _compare(self, label, where, file, seconds, *path):
        how = ("--shrinking", self.shrinking, "--repeats", max(self.study.repeats, TURNS))
        rows = self.study.compare(label, "svm", file, "none,bt1,it", *how, *path)
        said = ratios(seconds)
        if self.shrinking == "on":  # Newton's method does not shrink: the paper's ratio to Full
            said = {name: ratio for name, ratio in said.items() if not name.endswith("shrinking")}
        self.study.speeds(label, rows, said)
        speed = {row["rule"]: row for row in rows if row["shrinking"]}
        gain = relative(speed["none"], speed["it"])
        if gain is not None:
            self.gains[where].append(gain)

    def summary(self, whose: str) -> None:
        """Write how much faster IT makes the solver, both ways."""
        for where, found in self.gains.items():
            if found:
                text = "until no dual variable is at C" if where == "until" else "to the end of the range"
                parts = f"{min(found):.2f} to {max(found):.2f}, in the middle {statistics.median(found):.2f}"
                self.study.say(f"\n{whose}, {text}: {parts}.")


def notes(study) -> str:
    """Return what the tables show: the printed rules, Table IV by variant, Fig. 5."""
    text = study.printed_notes()
    printed = [(theirs, ours) for _, rule, theirs, ours, _ in study.found.get("printed", []) if rule == "bt2"]
    if printed:
        theirs, ours = (statistics.mean(one["solved_rejection"] for one in part) for part in zip(*printed, strict=True))
        text += (
            f"- **BT2 alone**, mean of the sets: {theirs:.3f} as printed, {ours:.3f} ours. What it decides is small "
        )
        text += "in both.\n" if theirs < 0.1 else "by safety.\n" if theirs > 2 * ours else "in neither.\n"
    for variant in ("bt1", "it", "bt1+shrinking", "it+shrinking"):
        found = [one for one in study.claims if one["claim"].endswith(f", {variant}") and one["ours"] is not None]
        if found:
            gains, said = ([one[k] for one in found] for k in ("ours", "published"))
            name = variant.replace("+shrinking", "").upper()
            name = f"Shrink+{name} over Shrink" if "shrinking" in variant else f"{name} over Full"
            slower = sum(gain < 1.0 for gain in gains)
            text += (
                f"- **{name}**, {len(gains)} of Table IV's sets: median gain {statistics.median(gains):.2f}, published "
            )
            text += f"{statistics.median(said):.2f}; a loss on {slower} of them.\n"
    rates = study.found.get("figure 5", {})
    if rates:
        best = max(rates, key=lambda name: rates[name]["it"] - rates[name]["bt1"])
        text += f"- **Fig. 5**: IT adds most to BT1 on {best}, {rates[best]['bt1']:.3f} to {rates[best]['it']:.3f}.\n"
    return text
