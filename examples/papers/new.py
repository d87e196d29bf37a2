"""What safe screening can do that none of the five papers said: each with its figures and its certificate.

    python examples/papers/reproduce.py new

All of it is of data that the project has: samples and generated sets.
"""

from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import pictures
import verdicts
from scipy.optimize import linprog
from study import PRINTED, RATE, REJECTED, ROOT, Page, shares

import screenpath
from screenpath.cli.app import run
from screenpath.data.files.libsvm import read_libsvm
from screenpath.verify import file as certificates

SAMPLES = {
    "breast_cancer": ("--scale", "standard"),
    "toy2": (),
    "toy3": (),
}
FILES = {"breast_cancer": "breast_cancer", "toy2": "wang_toy2", "toy3": "wang_toy3"}
DIABETES = ROOT / "data_samples" / "diabetes.libsvm"
BOTH = "0.1", "1"  # the range of C of small data, and of every C


def file_of(name: str):
    """Return the file of a sample."""
    return ROOT / "data_samples" / f"{FILES[name]}.libsvm"


def told(study, label: str, *words) -> str:
    """Run a command that prints its result, note it, and return what it printed."""
    study.note(label, words)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = run([*map(str, words)])
    if code not in (0, 3):
        raise SystemExit(f"the command of {label} failed: {words}")
    return printed.getvalue()


def certified_run(study, name: str, *more):
    """Return the folder of a run with its certificate."""
    folder = study.out / f"run-{name}"
    how = (*SAMPLES[name], "--grid", study.given.grid, "--certificate", *more)
    study.run(name, "svm", file_of(name), "--intercept", "none", *how, "--out", folder)
    return folder


def holds(study, what: str, ours, good: bool) -> None:
    """Keep a claim of this page."""
    study.claim(what, "holds", ours, verdicts.of_order(good))


def intercept(study) -> None:
    """Show screening with a free intercept."""
    study.say(
        "\nAll five papers but Zhao's leave the intercept out; Ogawa 2013 names it as open. A rule whose derivation "
        "uses no more of the losses than that their sum is convex in w holds with the best intercept for each w: rows "
        "are then decided by the ball and by the interval of the intercepts that its points can have."
    )
    study.table("100 values of C, audited.", "data", "rule", "intercept", REJECTED, RATE, "certified", "unsafe")
    for name, more in SAMPLES.items():
        for kind in ("none", "free"):
            target = study.out / "comparison.json"
            how = ("--intercept", kind, "--rules", "none,dvi,it", *more, "--grid", study.given.grid, "--audit")
            study.run(
                name, "compare-rules", "svm", file_of(name), *how, "--repeats", 1, "--format", "json", "-o", target
            )
            for row in json.loads(target.read_text(encoding="utf-8"))[1:]:
                certified = f"{row['certified']:.0f} of {row['points']:.0f}"
                study.row(name, row["rule"], kind, *shares(row), certified, row["unsafe"])
                if kind == "free":
                    good = row["unsafe"] == 0 and row["certified"] == row["points"] and row["solved_rejection"] > 0
                    share = row["solved_rejection"]
                    holds(
                        study, f"{name}, {row['rule']}: rows rejected with a free intercept, none unsafe", share, good
                    )


def inexact(study) -> None:
    """Show what references that are not exact do to the printed rule and to ours."""
    study.say(
        "\nEvery paper takes the previous solution for exact. A solver's is not: the finer the grid, the more the "
        "printed radius, a part of ||w0|| in proportion to the step, falls below the error. Ours adds what the "
        "reference's own gap allows."
    )
    study.table(
        f"DVI on breast_cancer over {study.given.fine} values of C, by the relative gap of the references.", "gap",
        f"{REJECTED}: printed", "ours", "unsafe: printed", "ours",
    )  # fmt: skip
    curves: dict = {"printed": ([], []), "ours": ([], [])}
    found = {}
    for tol in ("1e-2", "1e-3", "1e-4", "1e-6", "1e-8"):
        how = (*SAMPLES["breast_cancer"], "--grid", study.given.fine, "--tol", tol, "--audit", "--repeats", 1)
        rows = study.compare("breast_cancer", "svm", file_of("breast_cancer"), f"dvi,{PRINTED}:DVI", *how)
        ours, theirs = found[tol] = rows
        pair = (f"{one['solved_rejection']:.3f}" for one in (theirs, ours))
        study.row(tol, *pair, theirs["unsafe"], ours["unsafe"])
        for label, one in (("printed", theirs), ("ours", ours)):
            curves[label][0].append(float(tol))
            curves[label][1].append(one["solved_rejection"])
    panels = [("DVI on breast_cancer, rejected", curves)]
    study.picture(
        lambda to: pictures.lines(to, "new-inexact.svg", panels, columns=1, xlabel="gap of the references"),
        "Rejection over the gap of the references",
    )
    total = sum(rows[0]["unsafe"] for rows in found.values())
    holds(study, "unsafe decisions of our rule, all gaps", total, total == 0)
    study.table(
        f"An attack: {study.given.attack} hostile problems, references accurate and rough.", "rule", "decisions",
        "unsafe", "problems with one",
    )  # fmt: skip
    rules = f"dvi,{PRINTED}:DVI,it,{PRINTED}:IT,essnsv,{PRINTED}:ESSNSV"
    target = study.out / "attack.json"
    how = ("--intercept", "none", "--rules", rules, "--attack", study.given.attack, "--format", "json", "-o", target)
    study.run("attack", "compare-rules", "svm", *how)
    for row in json.loads(target.read_text(encoding="utf-8")):
        name = row["rule"].rpartition("/")[2]
        study.row(name, row["decisions"], row["unsafe"], row["unsafe_problems"])
        if ".py" not in name:
            holds(study, f"unsafe decisions of {name} under attack", row["unsafe"], row["unsafe"] == 0)


def rounding(study) -> None:
    """Show that rounding is counted."""
    study.say(
        "\nA gap is computed in floating point, and so is a rule. Here every gap comes with a bound on its rounding, "
        "and *certified* means that gap plus bound is within the tolerance. Where only rounding stands between a "
        "solution and its tolerance, the step says so; `screenpath verify`, which shares no code, recomputes both."
    )
    study.table("breast_cancer.", "tol", "certified", "met but for rounding", "steps proven by `verify`")
    for tol in ("1e-6", "1e-10", "1e-13", "1e-15"):
        folder = certified_run(study, "breast_cancer", "--tol", tol)
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        text = (folder / "steps.csv").read_text(encoding="utf-8")
        steps, good = record["totals"]["n_steps"], record["totals"]["certified"]
        checked = told(study, "breast_cancer", "verify", folder).splitlines()[0].partition(": ")[2].partition(",")[0]
        study.row(tol, f"{good} of {steps}", text.count(",rounding,"), checked)
        holds(
            study, f"tol {tol}: verify proves as many steps as are certified", checked, checked.startswith(f"{good} of")
        )


def lazy(study) -> None:
    """Show certificates that read less than the data."""
    study.say(
        "\nA certificate of the full data costs a data pass a step, whatever a rule saves: in the papers' tables it is "
        "not counted. But a row whose dual variable is at the end that its margin asks for adds exactly 0 to the gap "
        "until w has moved by its distance from the kink: `--rule auto` does not read it before. The gap is still "
        "that of all rows."
    )
    study.table(
        "Data passes a step, rule, solver and certificate together.", "data", "steps", "rule", "passes", "certified"
    )
    for grid in (100, 1000):
        for rule in ("none", "dvi", "auto"):
            steps = study.path("toy2", "svm", file_of("toy2"), rule, "--grid", grid)
            passes = sum(step["passes"] for step in steps) / len(steps)
            study.row("toy2", grid, rule, f"{passes:.3f}", sum(step["status"] == "certified" for step in steps))
            if rule == "auto":
                good = passes < 1.0 and all(step["status"] == "certified" for step in steps)
                holds(study, f"toy2, {grid} steps: every certificate, for fewer passes than one a step", passes, good)


def leave_one_out(study) -> None:
    """Show exact leave-one-out errors without a refit."""
    study.say(
        "\nA row whose dual variable is 0 at the optimum can go: nothing changes. For the others a ball around the "
        "optimum without the row, from the gap of the solution with it, bounds the decision value; where the bound "
        "does not decide, the few rows it leaves open are solved. Every result is that of a refit, proven by its own "
        "gap."
    )
    study.table(
        "At C = 0.1.", "data", "rows", "wrong", "by nothing", "by the bound", "by a small solve", "open", "worst gap"
    )
    for name in SAMPLES:
        folder = certified_run(study, name)
        found = json.loads(told(study, name, "loo", folder, "--step", "C=0.1", "--format", "json"))
        by = found["decided"]
        numbers = (by[k] for k in ("nothing", "bound", "local", "open"))
        study.row(name, found["left_out"], found["errors"], *numbers, f"{found['largest_gap']:.1g}")
        holds(study, f"{name}: all left-out rows decided, most by nothing", by["nothing"],
              by["open"] == 0 and 2 * by["nothing"] > found["left_out"])  # fmt: skip


def any_c(study) -> None:
    """Show a bound for every C of the range."""
    study.say(
        "\nThe papers solve a grid. Between two certified steps the mean of both solutions has a gap that both "
        "certificates bound, for every C: the path answers there without a solve."
    )
    study.table("Worst relative gap over all C of the range.", "data", "steps", "worst gap", "at C")
    for name, more in SAMPLES.items():
        worst = {}
        for grid in (study.given.grid, 4 * study.given.grid):
            data = read_libsvm(file_of(name))
            scale = more[1] if more else "none"
            path = screenpath.svm_path(data.X, data.y, intercept="none", scale=scale, grid=grid, tol=1e-8)
            gap, C = path.worst_between
            worst[grid] = gap
            study.row(name, grid, f"{gap:.2g}", f"{C:.3g}")
        holds(study, f"{name}: the worst gap falls with the square of the step", worst[study.given.grid],
              8.0 * worst[4 * study.given.grid] < worst[study.given.grid])  # fmt: skip


def reduced(study) -> None:
    """Show small data with the optimum of a range."""
    study.say(
        "\nRows that are on one side of their kink at every C of a range enter the objective linearly: their mean, "
        "with their weight, does as well. What is left is a file for any solver that takes weights."
    )
    study.table(f"C from {BOTH[0]} to {BOTH[1]}; objectives of all rows and of the small file, at 9 values of C.",
                "data", "rows", "rows of the small file", "largest relative difference")  # fmt: skip
    for name in SAMPLES:
        folder, small = certified_run(study, name), study.out / f"small-{name}.libsvm"
        told(study, name, "reduce", folder, "-o", small, "--from", BOTH[0], "--to", BOTH[1], "--force")
        grid = np.geomspace(*map(float, BOTH), 9).tolist()
        few, weights = read_libsvm(small), np.loadtxt(f"{small}.weights")
        whole = read_libsvm(file_of(name))
        scale = SAMPLES[name][1] if SAMPLES[name] else "none"
        how = {"intercept": "none", "grid": grid, "tol": 1e-10}
        ours = screenpath.svm_path(few.X, few.y, sample_weight=weights, **how)
        theirs = screenpath.svm_path(whole.X, whole.y, scale=scale, **how)
        values = [[step.primal for step in path.steps] for path in (ours, theirs)]
        apart = max(abs(a - b) / b for a, b in zip(*values, strict=True))
        study.row(name, len(whole.y), len(few.y), f"{apart:.1g}")
        holds(study, f"{name}: the small file has the optimum of all rows at each C", apart, apart < 1e-8)


def foreign(study) -> None:
    """Show how far rounded weights are from the optimum."""
    study.say(
        "\nA model that came without a proof gets one: its primal value against a dual point that is solved for it. "
        "Here weights of a certified step, printed with few digits, as a paper or a header file would have them."
    )
    study.table("breast_cancer at C = 1: proven relative gap of the weights with so many digits.", "digits", "gap")
    data = read_libsvm(file_of("breast_cancer"))
    X = np.asarray(data.X.todense()) if hasattr(data.X, "todense") else np.asarray(data.X)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    path = screenpath.svm_path(X, data.y, intercept="none", grid=[1.0], tol=1e-10)
    gaps = []
    for digits in (1, 2, 3, 6):
        w = np.array([float(f"{value:.{digits - 1}e}") for value in path.coef(0)])
        gaps.append(screenpath.certify((w, 0.0), X, data.y, model="svm", c=1.0, intercept="none").rel_gap)
        study.row(digits, f"{gaps[-1]:.2g}")
    holds(
        study, "the proven gap falls with each digit", gaps[0], all(a > b for a, b in zip(gaps, gaps[1:], strict=False))
    )


LEVELS = {  # model, C, name of the level, ends of its range
    "quantile": ("tau", 0.05, 0.95),
    "svr": ("epsilon", 0.0, 60.0),
}


def levels(study) -> None:
    """Show paths over tau and epsilon, proven between their steps."""
    study.say(
        "\nThe papers follow C. At one C a path may follow tau of a quantile regression, or epsilon of a tube: a "
        "dual point moves with its box, so that the rules of a pair screen the next level, and the mean of two "
        "solutions has a proven gap at every level between. Quantiles of a row that cross are counted."
    )
    study.table("diabetes, standardised, C = 1, free intercept; each step audited.", "path", "steps", "certified",
                "unsafe", "worst gap over all levels", "rows x steps that cross")  # fmt: skip
    curves: dict = {}
    for model, (level, low, high) in LEVELS.items():
        worst = []
        for count in (10, 28, 82):
            values = ",".join(f"{value:.4g}" for value in np.linspace(low, high, count))
            folder = study.out / f"levels-{model}-{count}"
            how = ("--scale", "standard", "--c", 1, f"--{level}-list", values, "--audit", "--tol", "1e-8")
            study.run("diabetes", model, DIABETES, *how, "--out", folder)
            path, record = screenpath.load_run(folder), json.loads((folder / "run.json").read_text(encoding="utf-8"))
            totals, gap = record["totals"], record["between"]["worst_rel_gap"]
            worst.append(gap)
            crossed = sum(step.get("crossings", 0) for step in path.table()) if level == "tau" else ""
            certified = f"{totals['certified']} of {totals['n_steps']}"
            study.row(f"{model} over {level}", count, certified, totals["unsafe"], f"{gap:.2g}", crossed)
            good = totals["unsafe"] == 0 and totals["certified"] == count
            holds(study, f"{model} over {level}, {count} steps: certified, no decision unsafe", totals["unsafe"], good)
        holds(study, f"{model} over {level}: three times as many steps, a gap of less than a quarter", worst[2],
              4.0 * worst[2] < worst[1] and 4.0 * worst[1] < worst[0])  # fmt: skip
        inner = np.linspace(low, high, 500)
        curves[f"{model} over {level}"] = inner.tolist(), [max(path.at(value).rel_gap, 1e-9) for value in inner]
    panels = [(name, {"proven gap": curve}) for name, curve in curves.items()]
    study.picture(
        lambda to: pictures.lines(to, "new-levels.svg", panels, 2, xlabel="level", logx=False, logy=True),
        "The proven gap at 500 levels, 82 steps",
    )


def plane(study) -> None:
    """Show a cover of the plane of alpha and beta, and audit it."""
    study.say(
        "\nHong's grid leaves out what lies between its pairs. The gap of one pair is convex in (alpha, beta), so "
        "four corners prove a rectangle: a path that chooses its steps covers the plane. `verify` checks every "
        "rectangle from the certificate. Here 10,000 random points, too: the gap of the step that serves each, from "
        "the definitions."
    )
    study.table("breast_cancer, standardised, smoothed hinge; alpha down to 1/20 of the largest, beta to 1/10.",
                "epsilon", "steps", "proven by `verify`", "random points", "outside", "largest gap there")  # fmt: skip
    data, points = read_libsvm(file_of("breast_cancer")), 10_000
    X, y = data.X.toarray(), np.where(data.y > 0.0, 1.0, -1.0)
    rows = y[:, None] * (X - X.mean(axis=0)) / X.std(axis=0)
    for epsilon in (0.1, 0.03, 0.01):
        folder = study.out / f"plane-{epsilon}"
        how = (*SAMPLES["breast_cancer"], "--eps-path", epsilon, "--alpha-min-ratio", 0.05, "--beta-min-ratio", 0.1)
        study.run("breast_cancer", "sparse-svm", file_of("breast_cancer"), *how, "--intercept", "none",
                  "--certificate", "--out", folder)  # fmt: skip
        steps, ends = screenpath.load_run(folder).table(), json.loads((folder / "run.json").read_text())["guarantee"]
        proof = told(study, "breast_cancer", "verify", folder).splitlines()[0].partition(": ")[2].partition(",")[0]
        _, found = certificates.read_certificate(folder / certificates.NAME)
        pairs = [(entry["alpha"], entry["beta"], *pair_of(entry, rows)) for entry in found]
        rng, worst = np.random.default_rng(0), []
        low, high = (np.log([ends[name][end] for name in ("alpha", "beta")]) for end in ("to", "from"))
        for alpha, beta in np.exp(rng.uniform(low, high, (points, 2))):
            row = min(pair[1] for pair in pairs if pair[1] >= beta)
            _, _, w, loss, curve, u = min(pair for pair in pairs if pair[1] == row and pair[0] >= alpha)
            primal = loss + 0.5 * alpha * (w @ w) + beta * np.abs(w).sum()
            shrunk = np.maximum(np.abs(u) - beta, 0.0)
            worst.append(1.0 - (curve - 0.5 / alpha * (shrunk @ shrunk)) / primal)
        outside = int(np.sum(np.array(worst) > epsilon))
        study.row(epsilon, len(steps), proof, points, outside, f"{max(worst):.3g}")
        good = outside == 0 and proof.startswith(f"{len(steps)} of")
        holds(study, f"epsilon {epsilon}: random points outside, every step proven", outside, good)


def pair_of(entry: dict, rows) -> tuple:
    """Return ``w``, the mean loss, what the losses add to the dual value, and ``u``, of a step of a certificate."""
    n, d = rows.shape
    w, states = np.zeros(d), certificates.unpack(entry["states"], 0, n)
    w[entry["index"]] = entry["values"]
    theta = np.where(states == certificates.HIGH, 1.0, 0.0)
    theta[states == certificates.BETWEEN] = entry["between"]
    t = 1.0 - rows @ w
    loss = np.where(t < 0.0, 0.0, np.where(t <= 0.5, t * t, t - 0.25)).mean()
    return w, float(loss), float((theta - 0.25 * theta * theta).mean()), rows.T @ theta / n


def exact_l1(study) -> None:
    """Show what is decided of features where neither the loss nor the penalty is curved."""
    study.say(
        "\nZhao et al. leave the exact hinge with an L1 penalty open, and Hong et al. need a smoothed one: without "
        "curvature no ball holds the dual optimum. But its entries leave the ends of the box for a price in the gap, "
        "each for its distance from the kink, so that the most a feature's sum can be is a fractional knapsack. At the "
        "beta before, this decides features of what is a linear program; `linprog` of SciPy (HiGHS) solves it, too."
    )
    n, d = study.given.rows, study.given.features
    X, y, top = gaussian(n, d)
    study.table(f"{n} rows, {d:,} features, 5 of which matter; each pair of steps at a gap of 1e-8, audited.",
                "beta / beta_max", "step", "features without a weight", "of them decided before the solve", "unsafe",
                "apart from `linprog`")  # fmt: skip
    unsafe, apart = 0, 0.0
    for share in (0.7, 0.5, 0.35, 0.25):
        for step in (0.01, 0.05, 0.1):
            betas = [share * top, (1.0 - step) * share * top]
            row = wide_path(study, (X, y), betas, 0.0, 0.0)[1]
            off = abs(row["primal"] - linear_program(X, y, betas[1])) / row["primal"]
            unsafe, apart = unsafe + row["unsafe"], max(apart, off)
            study.row(share, f"{step:.0%}", row["n_inactive_features"], f"{row['feature_screening_rate']:.3f}",
                      row["unsafe"], f"{off:.1g}")  # fmt: skip
            if step == 0.01 and share >= 0.5:
                decided = row["feature_screening_rate"]
                holds(study, f"a step of 1% at {share}: nearly all decided", decided, decided > 0.99)
    holds(study, "no decision unsafe", unsafe, unsafe == 0)
    holds(study, "the optimum of the linear program", apart, apart < 1e-7)
    study.table("The same data as the quadratic part of the hinge vanishes: SIFS, at 0 the knapsack. Means over 14 "
                "values of beta, each 0.9 of the one before.", "alpha", "gamma", "features decided", "rows decided",
                "unsafe")  # fmt: skip
    betas, unsafe = (top * 0.9 ** np.arange(1, 15)).tolist(), 0
    for alpha in (0.1, 0.01, 0.0):
        for gamma in (0.5, 0.1, 0.02, 0.004, 0.0):
            steps = wide_path(study, (X, y), betas, alpha, gamma)
            shares_ = (np.mean([one[name] for one in steps]) for name in ("feature_screening_rate", "screening_rate"))
            wrong = sum(one["unsafe"] for one in steps)
            unsafe += wrong
            study.row(alpha, gamma, *(f"{one:.3f}" for one in shares_), wrong)
    holds(study, "no decision unsafe at any gamma", unsafe, unsafe == 0)


def gaussian(n: int, d: int) -> tuple:
    """Return rows, labels, and ``beta_max`` of the hinge without an intercept."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.standard_normal((n, d))
    X[:, :5] += 0.6 * y[:, None]
    return X, y, float(np.abs((X * y[:, None]).mean(axis=0)).max())


def wide_path(study, data: tuple, betas: list, alpha: float, gamma: float) -> list:
    """Return the audited steps of a path over beta."""
    how = {"alpha": [alpha], "beta": betas, "smoothing": gamma, "tol": 1e-8, "rule": "sifs", "audit": True}
    more = {"coefficients": "none", "out": str(study.out / "wide"), "force": True, "quiet": True}
    return screenpath.run("sparse-svm", data, intercept="none", **how, **more).table()


def linear_program(X, y, beta: float) -> float:
    """Return the optimum of the exact hinge with an L1 penalty alone."""
    n, d = X.shape
    rows, costs = X * y[:, None], np.r_[np.full(2 * d, beta), np.full(n, 1.0 / n)]
    sides = np.c_[-rows, rows, -np.eye(n)]
    return linprog(costs, A_ub=sides, b_ub=-np.ones(n), bounds=(0, None), method="highs").fun


def groups(study) -> None:
    """Show the screening of groups of features and of samples in turn."""
    study.say(
        "\nHong et al. name structured sparsity as future work. With a norm of each group in place of the L1 norm the "
        "dual constraint of a group is a ball, after soft-thresholding for the part that stays on the L1 norm, and the "
        "same two regions decide groups and samples in turn. Here the ten measures of breast_cancer, each with its "
        "mean, error and worst value, are the groups."
    )
    (file := study.out / "groups.txt").write_text(" ".join(str(1 + j % 10) for j in range(30)), encoding="utf-8")
    study.table("5 values of beta, 20 of alpha, SIFS of groups, audited; means over the pairs.", "L1 share",
                "intercept", "features decided", "samples decided", "scaling ratio", "unsafe", "verified")  # fmt: skip
    for share in (0, 0.5):
        for kind in ("none", "free"):
            folder = study.out / "groups"
            how = ("--groups", file, "--l1-share", share, "--betas", 5, "--alphas", 20, "--rule", "sifs", "--audit")
            study.run("breast_cancer", "sparse-svm", file_of("breast_cancer"), *SAMPLES["breast_cancer"], *how,
                      "--intercept", kind, "--certificate", "--out", folder)  # fmt: skip
            steps = screenpath.load_run(folder).table()
            means = [np.mean([step[name] for step in steps])
                     for name in ("feature_screening_rate", "screening_rate", "scaling_ratio")]  # fmt: skip
            unsafe = sum(step["unsafe"] for step in steps)
            proof = told(study, "breast_cancer", "verify", folder).splitlines()[0].partition(": ")[2].partition(",")[0]
            study.row(share, kind, *(f"{one:.3f}" for one in means), unsafe, proof)
            good = unsafe == 0 and min(means) > 0.0 and proof.startswith(f"{len(steps)} of")
            holds(study, f"L1 share {share}, intercept {kind}: groups and samples decided, none unsafe", means[2], good)


def regressions(study) -> None:
    """Show the rules of Wang's LAD, of quantiles and of tubes, behind a kernel."""
    study.say(
        "\nWang et al. screen LAD regression without a kernel. Behind one a row's decision needs inner products alone, "
        "of the reference and of the row: the same rules hold for LAD, quantiles, tubes, with an intercept or without."
    )
    study.table("diabetes, standardised, RBF kernel with gamma = 0.3/d, 20 values of C in [0.1, 10], audited.", "model",
                "rule", "intercept", REJECTED, "certified", "unsafe")  # fmt: skip
    for model, more in (("lad", ()), ("quantile", ("--tau", 0.8)), ("svr", ("--epsilon", 20))):
        for kind in ("none", "free"):
            target = study.out / "comparison.json"
            how = ("--kernel", "rbf", "--gamma", "0.3/d", "--scale", "standard", "--cmin", 0.1, "--cmax", 10)
            how += ("--grid", 20, "--intercept", kind, "--rules", "none,dvi,it,essnsv", "--audit", *more)
            how += ("--repeats", 1)
            study.run(model, "compare-rules", model, DIABETES, *how, "--format", "json", "-o", target)
            for row in json.loads(target.read_text(encoding="utf-8"))[1:]:
                certified = f"{row['certified']:.0f} of {row['points']:.0f}"
                study.row(model, row["rule"], kind, shares(row)[0], certified, row["unsafe"])
                good = row["unsafe"] == 0 and row["certified"] == row["points"] and row["solved_rejection"] > 0
                holds(study, f"{model}, {row['rule']}, intercept {kind}: rows decided, none unsafe",
                      row["solved_rejection"], good)  # fmt: skip


def notes(study) -> str:
    """Return nothing: the claims say it."""
    return ""


PAGE = Page(
    name="new",
    title="Beyond the papers: what safe screening can do that none of them said",
    family="all",
    settings={
        "grid": (100, 100, "values of C"),
        "fine": (400, 400, "the same, behind inexact references"),
        "attack": (300, 300, "hostile problems"),
        "rows": (300, 100, "of the linear programs"),
        "features": (1000, 300, "the same"),
    },
    sets={},
    sections={
        "1. A free intercept": intercept,
        "2. References that are not exact": inexact,
        "3. Rounding, counted": rounding,
        "4. Certificates for less than a data pass": lazy,
        "5. Leave one out, without a refit": leave_one_out,
        "6. Every C, not a grid": any_c,
        "7. Small data with the same optimum": reduced,
        "8. Models made elsewhere": foreign,
        "9. Every quantile, every tube": levels,
        "10. Every pair (alpha, beta)": plane,
        "11. The exact hinge with an L1 penalty": exact_l1,
        "12. Groups of features": groups,
        "13. Regressions behind kernels": regressions,
    },
    notes=notes,
)
