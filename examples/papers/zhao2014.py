"""Zhao, Liu and Cox 2014 (L1-regularised squared hinge with a free bias): Tables 2-4 and Fig. 2.

    python examples/papers/reproduce.py zhao2014

Seven configurations of coordinate descent over lambda_max / k, k = 1..20, and the tool's default beside them. Every set
stands in for one of the paper.
"""

from __future__ import annotations

import json
import statistics

import numpy as np
import pictures
import verdicts
from study import PRINTED, Page, cpu, mark, shown

from screenpath.data.files.libsvm import read_libsvm

SEVEN = ("org", "warm", "shr", "warm+shr", "scr", "warm+scr", "scr+shr")
# By the paper's set: run times (Table 2) and iterations (Table 3) of the seven; screening and training (Table 4) of scr
# and warm+scr. The paper has kddb too.
PUBLISHED = {
    "gli_85": ((328.7, 376.6, 2.78, 3.10, 0.78, 0.74, 1.45), (15535, 14610, 16046, 14888, 15376, 14599, 16150),
               ((0.03, 0.75), (0.03, 0.70))),
    "rcv1b": ((17.92, 10.30, 4.49, 2.31, 3.35, 1.78, 4.00), (1062, 615, 1737, 713, 1059, 590, 1695),
              ((0.06, 3.29), (0.07, 1.72))),
    "real-sim": ((20.81, 13.48, 7.25, 4.32, 6.67, 4.30, 7.14), (568, 373, 815, 431, 596, 390, 942),
                 ((0.04, 6.63), (0.04, 4.26))),
    "news20b": ((943.67, 682.08, 62.44, 32.62, 25.53, 17.84, 48.29), (2579, 1898, 4995, 2157, 2862, 1999, 4908),
                ((1.91, 23.63), (1.91, 15.93))),
}  # fmt: skip
STANDS_FOR = {"chowdary": "gli_85", "rcv1sub": "rcv1b", "pcmac": "real-sim", "news20": "news20b"}
SETS = {
    "chowdary": ("binary/chowdary.libsvm.gz",),
    "rcv1sub": ("binary/rcv1sub.binary.libsvm.gz",),
    "pcmac": ("binary/pcmac.libsvm.gz",),
    "news20": ("multiclass/news20.libsvm.gz", "--positive", "1"),
}
SPENT = "rule_s", "solve_s"  # the paper's run time: screening and training
SMALL = ("chowdary", "pcmac")
EPOCHS = 500  # of a step beside the printed rule, whose wrong decisions would keep a solver for ever
MOVED = 1e6  # added to every value of chowdary: the same problem, with a free bias
ALL = ",".join((*SEVEN, "warm+scr+gap", "default"))
SHOWN = "shr,warm+shr,scr,warm+scr,scr+shr"  # in Fig. 2
COLUMNS = (
    "data", "for", "configuration", "steps certified", "CPU s", "speed-up", "run time s", "ratio of run times",
    "published", "verdict", "iterations", "published", "rule s", "rule / training", "published", "over hits",
)  # fmt: skip


def tables(study) -> None:
    """Write Tables 2-4 in one."""
    points = ("--grid", study.given.grid)
    study.table(TEXT, *COLUMNS)
    for name, (file, *more) in study.some(*SETS).items():
        rows = study.compare(name, "l1svm", file, ALL, *points, *more)
        study.found.setdefault("rows", {})[name] = rows
        lines(study, name, STANDS_FOR[name], rows)
    some = study.some("chowdary")
    if some:
        limits = ("--time-limit", study.given.limit, "--repeats", 1)
        rows = study.compare("moved", "l1svm", moved(study, some["chowdary"][0]), ALL, *points, *limits)
        study.found["moved"] = rows
        lines(study, "moved", "", rows)
    study.table(
        f"The rule **as printed** (`examples/papers/printed.py`) beside ours, at most {EPOCHS} sweeps a step.",
        "data", "gap", "over hits: printed", "ours", "unsafe: printed", "ours",
    )  # fmt: skip
    for name, (file, *more) in study.some(*study.given.audited.split(",")).items():
        for tol in ("1e-6", "1e-9")[: 2 if name in SMALL or not study.given.quick else 1]:
            how = (*points, "--tol", tol, "--max-epochs", EPOCHS, "--audit", "--repeats", 1, *more)
            ours, theirs = study.compare(name, "l1svm", file, f"warm+scr,{PRINTED}:VI", *how)
            study.found.setdefault("printed", []).append((name, tol, theirs, ours))
            cells = (one["over_hits"] for one in (theirs, ours)), (one["unsafe"] for one in (theirs, ours))
            study.row(name, tol, *(f"{value:.0f}" for value in cells[0]), *("-" if n is None else n for n in cells[1]))


def lines(study, name: str, paper: str, rows) -> None:
    """Write a line for each configuration, with its published numbers, and claim its ratio to ``org``."""
    said = dict(zip(SEVEN, zip(*PUBLISHED[paper][:2], strict=True), strict=True)) if paper else {}
    training = dict(zip(("scr", "warm+scr"), PUBLISHED[paper][2], strict=True)) if paper else {}
    first = cpu(rows[0], *SPENT)
    for row in rows:
        what, took = row["configuration"], cpu(row, *SPENT)
        ratio = first / took if row["certified"] == row["points"] == rows[0]["certified"] else None
        published = verdict = share = ""
        iterations = said[what][1] if what in said else ""
        if iterations and what != "org":
            published = said["org"][0] / said[what][0]
            verdict = study.claim(f"{name}: org over {what}", published, ratio, verdicts.of_ratio(published, ratio))
        if what in training:
            share = f"{training[what][0] / training[what][1]:.3f}"
        study.row(
            name, paper, what, f"{row['certified']:.0f} of {row['points']:.0f}", f"{row['cpu_s']:.3g}",
            "" if row["speedup"] is None else f"{row['speedup']:.2f}", f"{took:.3g}", shown(ratio or ""),
            shown(published), verdict and mark(verdict), f"{row['epochs']:.0f}", iterations,
            f"{cpu(row, 'rule_s'):.2g}", f"{row['rule_s'] / row['solve_s']:.3f}", share, f"{row['over_hits']:.0f}",
        )  # fmt: skip
    if paper:
        by = {row["configuration"]: row for row in rows}
        best = min(SEVEN, key=lambda one: cpu(by[one], *SPENT))
        study.claim(f"{name}: warm+scr is the fastest of seven", "holds", best, verdicts.of_order(best == "warm+scr"))
        few = min(SEVEN, key=lambda one: by[one]["epochs"])
        holds = by["warm+scr"]["epochs"] <= 1.05 * by[few]["epochs"]
        study.claim(f"{name}: warm+scr has the fewest iterations, or nearly", "holds", few, verdicts.of_order(holds))


def moved(study, file):
    """Return chowdary with a large number added to every value, zeros included."""
    data, target = read_libsvm(file), study.out / "chowdary-moved.libsvm"
    with open(target, "w", encoding="utf-8") as stream:
        for label, row in zip(data.y, data.X, strict=True):
            values = (row.toarray().ravel() if hasattr(row, "toarray") else np.ravel(row)) + MOVED
            stream.write(f"{label:g} " + " ".join(f"{j}:{value:.12g}" for j, value in enumerate(values, 1)) + "\n")
    return target


def figure2(study) -> None:
    """Draw run time, iterations and over hits of each step, of news20 or else pcmac."""
    some = study.some("news20", "pcmac")
    if not some:
        return
    name, (file, *more) = next(iter(some.items()))
    target, how = study.out / "figure2.json", ("--grid", study.given.grid, *more, "--steps", "--repeats", 1)
    study.run(
        name, "compare-rules", "l1svm", file, "--configurations", SHOWN, *how, "--format", "json", "-o", target
    )  # fmt: skip
    rows, panels = json.loads(target.read_text(encoding="utf-8")), []
    for column, title in (("seconds", "run time, s"), ("epochs", "iterations"), ("over_hits", "over hits")):
        curves = {}
        for one in SHOWN.split(","):
            steps = [row for row in rows if row["configuration"] == one]
            curves[one] = [row["step"] + 1 for row in steps], [max(row[column], 1e-6) for row in steps]
        panels.append((title, curves))
    study.picture(
        lambda to: pictures.lines(to, "zhao2014-fig2.svg", panels, xlabel="k of lambda_max / k", logx=False, logy=True),
        f"Fig. 2: run time, iterations and over hits over the path of {name}",
    )
    hits = {one: [row["over_hits"] for row in rows if row["configuration"] == one] for one in ("shr", "warm+scr")}
    told = f"at most {max(hits['warm+scr'])}, against {max(hits['shr'])} features"
    holds = max(hits["warm+scr"]) < 0.1 * max(hits["shr"])
    study.claim("over hits of screening stay small over the path", "holds", told, verdicts.of_order(holds))


TEXT = """\
At a relative gap of 1e-6 of every step on the full data. `run time` is screening and training as in the paper, without
certificates: their part of the CPU seconds; `speed-up` is that of every page, certificates included. `over hits` are
the inactive features that screening keeps, summed over the path. `warm+scr+gap`, in no table of the paper, adds the
gap ball of the current iterate; `default` is what `screenpath l1svm` runs (`vi+gap`, working sets, Newton steps).
`published` are the paper's ratio of run times, iterations and rule / training on the set that this one stands for.
`shr` keeps what it shrank until the problem of the others is solved, as LIBLINEAR's does. `moved` is chowdary with 1e6
added to every value, one run of each configuration: with a free bias the same problem."""


def notes(study) -> str:
    """Return what the tables show."""
    text, rows = "", study.found.get("rows", {})
    for name, found in rows.items():
        by = {row["configuration"]: row for row in found}
        took = {one: cpu(row, *SPENT) for one, row in by.items()}
        said, sweeps = PUBLISHED[STANDS_FOR[name]][:2]
        text += f"- **{name}**: shrinking alone gains {took['org'] / took['shr']:.1f} (published "
        text += f"{said[0] / said[2]:.3g}), so that screening against it gains {took['shr'] / took['scr']:.1f} "
        text += f"(published {said[2] / said[4]:.1f}); the default gains {took['org'] / took['default']:.1f}. "
        text += f"A step of `org` takes {by['org']['epochs'] / by['org']['points']:.0f} sweeps (published "
        text += f"{sweeps[0] / 20:.0f}).\n"
    changes = [abs(by["scr"]["epochs"] / by["org"]["epochs"] - 1.0) for by in
               ({row["configuration"]: row for row in found} for found in rows.values())]  # fmt: skip
    if changes:
        text += (
            f"- Screening changes the number of sweeps by {statistics.median(changes):.0%} (median of the sets): it "
        )
        text += "saves what a sweep costs.\n"
    for name, tol, theirs, ours in study.found.get("printed", []):
        if theirs["unsafe"]:
            text += f"- **The printed rule is unsafe** on {name} at {tol}: {theirs['unsafe']} decisions, ours "
            text += f"{ours['unsafe']}.\n"
    still = study.found.get("moved", [])
    if still and "chowdary" in rows:
        sweeps = (
            next(row["epochs"] for row in part if row["configuration"] == "org") for part in (rows["chowdary"], still)
        )
        here, there = sweeps
        text += f"- **Centring** is implicit: `org` takes {here:.0f} sweeps on chowdary and {there:.0f} on `moved`.\n"
    return text


PAGE = Page(
    name="zhao2014",
    title="Zhao, Liu, Cox 2014: Safe and efficient screening for sparse support vector machine",
    family="l1svm",
    settings={
        "grid": (20, 20, "values of lambda"),
        "audited": (",".join(SETS), "chowdary,rcv1sub,pcmac", "sets that the printed rule is compared on"),
        "limit": (10.0, 10.0, "seconds of a configuration on the moved set"),
    },
    sets=SETS,
    sections={"Tables 2-4: seven configurations": tables, "Figure 2: each step": figure2},
    notes=notes,
)
