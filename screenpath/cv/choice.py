"""What follows from the folds: further points of the grid, the tables of scores, and the lines about them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np

from screenpath.catalogue.scores import Choice, Sigmoid, Threshold, averaged, baseline_words, one_se_above, threshold
from screenpath.data.words.labels import label_text, pair_labels
from screenpath.data.words.tables import csv_text
from screenpath.errors import UsageError
from screenpath.walk.step import BUDGET, CERTIFIED, FAILED, ROUNDING

OPEN = "open"  # status of a step where the label, or the value, of some row left out is not proven

if TYPE_CHECKING:
    from screenpath.cv.certify import ErrorBounds

LEAST = 3  # points that must agree before the score counts as turned: one alone may be chance
PATIENCE = 0.2  # share of the grid that must follow the best score without a better one
# What is fitted to the held-out rows of every step: columns of the step table by the option that asks for it.
FITTED = {"threshold": ("threshold",), "calibrate": ("sigmoid_slope", "sigmoid_offset")}
TIGHTER, FLOOR = 1e-3, 1e-12  # factor from one accuracy to the next, and the last relative gap that is tried


def patience(points: int) -> int:
    """Return how many points must follow the best score of a grid; as many are added at once."""
    return max(LEAST, math.ceil(PATIENCE * points))


def turned(choice: Choice, higher: bool) -> bool:
    """Tell whether the mean score has turned before the end of the grid, which all folds have reached.

    It has where ``patience`` points follow the best, or where each of the last ``LEAST`` means is more than one
    standard error worse than the best. Means that are all equal have not begun to move.
    """
    last = choice.mean.size - 1
    if np.all(choice.mean == choice.mean[0]):
        return False
    if last - choice.best >= patience(choice.mean.size):
        return True
    loss = -choice.mean if higher else choice.mean
    beyond = loss[max(choice.best + 1, last - LEAST + 1) :]
    return beyond.size == LEAST and bool(np.all(beyond > one_se_above(loss, choice.se, choice.best)))


def grown(first: np.ndarray, folds, most: int, further, has_turned, walk) -> tuple[np.ndarray, Any]:
    """Extend a grid until the mean score has turned, some points at a time, at most ``most`` in all.

    ``folds`` are the paths over the ``first`` grid; ``further(count) -> ndarray`` gives points after its end.
    ``has_turned(grid, folds) -> bool`` is true also where the grid must end for another reason. ``walk(grid, folds)``
    extends the folds to a longer grid, and returns None where there is no time for it.
    """
    grid = first
    while not has_turned(grid, folds):
        count = min(len(grid) + patience(len(grid)) - len(first), most)
        longer = np.concatenate([first, further(count)])
        more = walk(longer, folds) if len(longer) > len(grid) else None
        if more is None:
            break
        grid, folds = longer, more
    return grid, folds


def refine(certified: ErrorBounds, target: float, budget: int, tol: float, solve) -> int:
    """Refine the grid until the certified bound reaches a target, or nothing more can be done; return the points added.

    A solution too inaccurate to decide enough held-out samples at its own C is solved again, closer: no neighbour would
    help. Otherwise all of the weakest segments are divided at once.

    ``target`` is the difference of best error and lower bound, ``budget`` the most points to add, ``tol`` the relative
    gap of the solutions so far. ``solve(points, tol)`` solves the values of C for all folds, updates ``certified``, and
    returns whether there was time for all of them.
    """
    added, solved = 0, dict.fromkeys(certified.grid, tol)
    while certified.difference > target:
        loose = certified.loose(target)
        if loose and tol > FLOOR and all(solved[C] <= tol for C in loose):
            tol = max(TIGHTER * tol, FLOOR)
        points = [C for C in loose if solved[C] > tol]
        if not points:
            points = new_points(certified, target, budget - added)
            added += len(points)
        if not points:
            break
        if not solve(points, tol):
            break
        solved.update(dict.fromkeys(points, tol))
    return added


def new_points(certified: ErrorBounds, target: float, limit: int) -> list[float]:
    """Return new values of C, increasing: one in each of the weakest segments, ``limit`` at most.

    It is the point where the bound is weakest, kept off the ends of its segment by a quarter of its width in log C.
    """
    found: list[float] = []
    for segment in certified.weak(target):
        ratio = segment.high / segment.low
        point = min(max(segment.weakest, segment.low * ratio**0.25), segment.high / ratio**0.25)
        if ratio > 1.0 + 1e-9 and len(found) < limit:
            found.append(float(point))
    return sorted(found)


def check_spacing(grid, screening, rule: str, default: str) -> None:
    """Refuse a grid that cannot be extended: one without a spacing, or a rule that needs a solution at its end."""
    if len(grid) < 2:
        raise UsageError("`until_turn` continues the spacing of the grid", "use `grid` with 2 or more points")
    if screening.needs_far_end:
        what = f"`rule={rule}` needs a solution at the end of the grid, which `until_turn` moves"
        raise UsageError(what, f"use `rule={default}`")


def turn_line(growth: dict) -> tuple[str, str]:
    """Return the line of the closing table about an extended grid; ``growth`` is ``until_turn`` of cv.json."""
    added = growth["added_points"]
    at = ", ".join(f"{name} = {value:.6g}" for name, value in growth["last"].items())
    to = f"{added} further point{'' if added == 1 else 's'} to {at}"
    if not growth["turned"]:
        return "warning", f"the mean score has not turned within {to}"
    return "mean score", f"has turned within {to}" if added else f"had turned by the end of the grid ({at})"


def further_scores(rows: Sequence[Mapping], first: np.ndarray, columns) -> dict[str, tuple]:
    """Return mean and standard error of further scores by their column.

    ``rows`` are those of folds.csv, ``first``, shape (folds, steps), are the scores that choose, in the same order.
    """
    there, found = np.isfinite(first), {}
    for name in columns:
        scores = np.full(first.shape, np.nan)
        scores[there] = [float(row[name]) for row in rows]
        found[name] = averaged(scores)
    return found


def scores_text(parameters: list, choice: Choice, n_folds: int, further: Mapping[str, tuple]) -> str:
    """Return cv.csv: mean, standard error and choice at each grid point; ``parameters`` has a dict for each.

    ``further`` are mean and standard error of further scores by name.
    """
    scored = np.where(np.isfinite(choice.mean), n_folds, 0)
    chosen = [(int(k == choice.best), int(k == choice.one_se)) for k in range(len(parameters))]
    more = np.array([one for pair in further.values() for one in pair]).reshape(-1, len(parameters)).T
    rows = zip(parameters, choice.mean, choice.se, scored, chosen, more, strict=True)
    heads = [head for name in further for head in (name, f"{name}_se")]
    return csv_text(
        ("step", *parameters[0], "mean", "se", "n_folds", "best", "one_se", *heads),
        ([k, *point.values(), *cells, *marks, *rest] for k, (point, *cells, marks, rest) in enumerate(rows)),
    )


def chosen(parameters: list, choice: Choice, step: int, further: Mapping[str, tuple]) -> dict:
    """Return the entry of a step in cv.json."""
    mean, se = float(choice.mean[step]), float(choice.se[step])
    more = {name: {"mean": float(one[step]), "se": float(error[step])} for name, (one, error) in further.items()}
    best = {"optimism": choice.optimism} if step == choice.best and choice.optimism is not None else {}
    found = {"step": step, "parameters": parameters[step], "mean": mean, "se": se}
    return {**found, **best, **({"further": more} if more else {})}


def fitted(options: Mapping, samples, folds, step: int) -> dict[str, Threshold | Sigmoid | None]:
    """Return what is fitted to the held-out rows of a step, each with its weight, by the option that asks for it.

    None where no threshold will do, or a fold has not reached the step or failed there.
    """
    asked = [name for name in FITTED if options[name]]
    if not asked or not all(len(fold.products) > step and np.isfinite(fold.products[step]).all() for fold in folds):
        return dict.fromkeys(asked)
    at, w = np.concatenate([fold.split.held_out for fold in folds]), samples.weights
    rows = np.concatenate([fold.products[step] for fold in folds]), samples.targets[at], None if w is None else w[at]
    return {name: Sigmoid.fitted(*rows) if name == "calibrate" else threshold(*rows, options[name]) for name in asked}


def fitted_cells(found: Mapping[str, Threshold | Sigmoid | None]) -> dict:
    """Return the cells of the step table of what is fitted."""
    pairs = ((name, (None, None) if one is None else astuple(one)) for name, one in found.items())
    return {column: value for name, one in pairs for column, value in zip(FITTED[name], one, strict=False)}


def predictions_text(s) -> str:
    """Return what a session predicts for the held-out rows at the best step, repeat after repeat, in their order."""
    classes, targets = (s.data.labels or {}).get("classes"), s.samples.targets
    repeated = len({fold.split.repeat for fold in s.folds}) > 1
    heads = ["repeat"] * repeated + ["row" if s.ids is None else s.data.form.id, "fold"]
    heads += ["target", "predicted"] if s.data.labels is None else ["label", "predicted"]
    if classes:
        heads += [f"decision_{label_text(label)}" for label in (pair_labels(classes) if s.spec.votes else classes)]
    elif s.data.labels is not None:
        heads.append("decision")
    found = []
    for fold in s.folds:
        at, forms = fold.split.held_out.tolist(), s.decisions(fold)
        for k, form, own in zip(at, forms, s.spec.of_each_class(forms), strict=True):
            named = [fold.split.repeat] * repeated + [k + 1 if s.ids is None else s.ids[k], fold.split.fold]
            if s.data.labels is None:
                cells: list = [float(targets[k]), float(form)]
            else:
                answer = own.argmax() if classes else form > 0.0
                cells = [s.class_name(targets[k]), s.class_name(answer), *np.atleast_1d(form).tolist()]
            found.append(((fold.split.repeat, k), [*named, *cells]))
    return csv_text(heads, (row for _, row in sorted(found, key=lambda pair: pair[0])))


def folds_of(record: dict) -> tuple[int, int]:
    """Return how many folds the scores of a cv.json are over, and how many there are: a part has only some."""
    whole = record["folds"] * (record.get("repeats") or 1)
    return len(record.get("fold_sizes") or range(whole)), whole


def held_out(record: dict) -> str:
    """Return what the scores of a cv.json are over."""
    return "rows, each left out" if record.get("leave_one_out") else "folds"


def cv_baseline(record: dict, column: str | None = None) -> float | None:
    """Return the mean over the folds of the score without any feature, from cv.json; None for R^2.

    ``column`` is that of a further score.
    """
    values = record.get("further", {}).get(column, record.get("baselines"))
    return sum(values) / len(values) if values else None


def threshold_words(asked: str, **found) -> str:
    return f"{asked}: {Threshold(**found)}"


def corrected_words(record: dict) -> str:
    """Return the score of the best step, corrected for having been chosen; see ``catalogue.scores.optimism``."""
    best = record["best"]
    what = f"{record['tuned']['pairs']} pairs" if record.get("tuned") else f"{record['n_grid']} steps"
    value = best["mean"] - best["optimism"] * (1.0 if record["higher_is_better"] else -1.0)
    return f"{record['score']} {value:.6g}, allowing for the choice among {what}"


def tune_lines(record: dict) -> list[tuple[str, str]]:
    """Return the lines of the closing table about the choice of gamma, from cv.json (see :mod:`screenpath.cv.tune`)."""
    found, score = record["tuned"], record["score"].replace("_", "-")
    every = found["gammas"]
    dropped = sum(one["dropped"] for one in every)
    names = [name for name in ("gamma", "epsilon") if name in found]
    values = len({one["gamma"] for one in every})
    others = [one for one in every if not one["dropped"] and any(one[name] != found[name] for name in names)]
    told = [("gamma", f"{found['gamma']:.6g}, the best of {values} values")] if values > 1 or not names[1:] else []
    if names[1:]:
        told.append(("epsilon", f"{found['epsilon']:.6g}, the best of {len(every) // values} values with each gamma"))
    told[-1] = told[-1][0], told[-1][1] + (f"; {dropped} dropped by proof before all folds" if dropped else "")
    if others:
        second = (max if record["higher_is_better"] else min)(others, key=lambda one: one["mean"])
        at = ", ".join(f"{name} = {second[name]:.6g}" for name in (*names, "C"))
        told.append(("next best" if names[1:] else "next best gamma", f"{at}: {score} {second['mean']:.6g}"))
    if "difference" in found:
        most = f"at most {found['difference']:.6g} better"
        told.append(("other pairs", f"{most}, at every gamma tried with every C of the range"))
    if values > 1 and found["gamma"] in (every[0]["gamma"], every[-1]["gamma"]):
        end = "smallest" if found["gamma"] == every[0]["gamma"] else "largest"
        told.append(("warning", f"the {end} gamma tried is the best: values beyond may be better (`gammas=LIST`)"))
    unmet = sum(not one["certified"] for one in every)
    if unmet:
        told.append(("warning", f"{unmet} of {len(every)} values tried have steps of folds that are not certified"))
    return told


def found_lines(record: dict) -> list[tuple[str, str]]:
    """Return the lines (what, value) about what the folds have found, from cv.json: choices, grid and bound."""
    lines = [] if record.get("tuned") is None else tune_lines(record)
    for key, name in (("best", "best"), ("one_se", "one standard error")):
        step = record[key]
        at = ", ".join(f"{name} = {value:.6g}" for name, value in step["parameters"].items())
        scores = {record["score"]: step, **step.get("further", {})}
        known = {score: one["se"] is not None and not math.isnan(one["se"]) for score, one in scores.items()}
        said = ", ".join(
            f"{score.replace('_', '-')} {one['mean']:.6g}" + (f" +- {one['se']:.2g}" if known[score] else "")
            for score, one in scores.items()
        )
        lines.append((name, f"step {step['step']} ({at}): {said} over {folds_of(record)[0]} {held_out(record)}"))
    lines += [("corrected", corrected_words(record))] if record["best"].get("optimism") is not None else []
    if (found := record["best"].get("threshold")) is not None:
        lines.append(("threshold", threshold_words(**found)))
    if (found := record["best"].get("calibrate")) is not None:
        lines.append(("probabilities", str(Sigmoid(**found))))
    if (constant := cv_baseline(record)) is not None:
        lines.append(("baseline", baseline_words(record["score"], constant)))
    if record.get("until_turn") is not None:
        lines.append(turn_line(record["until_turn"]))
    if (bound := record.get("certified")) is not None:
        across = f"[{bound['cmin']:g}, {bound['cmax']:g}]"
        lines += [
            ("best error found", f"{bound['best_error']:.6g} (C = {bound['best_C']:.6g})"),
            ("lower bound", f"{bound['lower_bound']:.6g} for every C in {across}"),
            ("at most", f"{bound['difference']:.6g} better anywhere in {across}"),
        ]
    return lines


# Advice by the status of a step: folds keep no other reason.
ADVICE = {
    BUDGET: "the iterations or the time allowed were used up: raise `max_epochs`",
    ROUNDING: "rounding is in the way: raise `tol`, or scale the data with `scale`",
    FAILED: "no gap could be proven: scale the data with `scale`",
    OPEN: "the label or value of a row left out is not proven: `screenpath loo` tells how many",
}


def unmet_line(rows: Sequence[Mapping], asked: int) -> str | None:
    """Return a warning where not all of the ``asked`` rows of folds.csv are there and certified; else None."""
    unmet = [row for row in rows if row["status"] != CERTIFIED]
    if not unmet:
        late = f"{asked - len(rows)} of {asked} steps of the folds were not reached in time: go on with `resume`"
        return late if len(rows) < asked else None
    first = unmet[0]
    repeat = f"repeat {first['repeat']}, " if any(int(row["repeat"]) for row in rows) else ""
    where = f"{repeat}fold {first['fold']}, step {first['step']}"
    more = f" and {len(unmet) - 1} more" if len(unmet) > 1 else ""
    why = f"{first['status']}: {ADVICE.get(first['status'], 'see folds.csv')}"
    return f"{len(unmet)} of {asked} steps of the folds are not certified ({where}{more}; {why})"
