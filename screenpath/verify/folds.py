r"""A cross-validation: the folds' gaps, scores and bounds, and the choice of a step, formed again from ``folds.bin``.

A fold is checked as the run of its training part: gaps, labels, weights and scaling. Its weights then decide the rows
that were held out; where rounding could decide a row, either score is accepted. Between two neighbours C0, C1 the pairs
are mixed by shares 1 - s and s: the optimum at ``(1 - s) C0 + s C1`` is within r of ``c``, both mixed, where

    c_k = (w_k + u_k)/2,  r_k^2 = ||w_k - u_k||^2 / 4 + Gamma_k,  r^2 = (1 - s) r_0^2 + s r_1^2 + s (1 - s) K,
    K = max(0, (C1 - C0) (loss_0 - loss_1) - ||c_1 - c_0||^2)

A row is sure where ``side x.c > ||x|| r``, which fails on one interval of s, if on any (Shibagaki et al. 2015).
"""

from __future__ import annotations

import copy
import csv
import hashlib
import io
import json
import math
from pathlib import Path

import numpy as np

from screenpath.verify import file as form
from screenpath.verify import levers
from screenpath.verify.data import signs_of, taken
from screenpath.verify.exact import TINY, UNIT, UP, fsum, norm_above, squared
from screenpath.verify.problem import read_numbers
from screenpath.verify.products import check as check_steps
from screenpath.verify.products import norms_of, products_of
from screenpath.verify.steps import number, read_table
from screenpath.verify.table import open_data

TABLES = ("cv.csv", "cv.json", "folds.csv", "bounds.csv")
OPTIONS = ("folds", "repeats", "score")  # that are compared
NEAR = 1e-9  # numbers that two programs form of the same scores
TIE = 1e-12  # relative: means that count as equal
LOSSES = ("mae", "mse", "pinball", "r2")
CLASSES = ("accuracy", "balanced-accuracy", "f1", "auc")
TIES = 1e-4  # times the median size of a form, or 1: forms that are nearer may count as equal in an auc
Ends = tuple[float, float]
SHARED = "columns", "signs", "groups", "group_weights"  # arrays that are of features, not of rows


def some(blocks, rows: np.ndarray):
    """Yield the given rows of blocks, in order, as blocks."""
    first = 0
    for block in blocks:
        keep = np.flatnonzero(np.isin(block.first + np.arange(block.labels.size), rows))
        if keep.size:
            yield taken(block, keep, first)
            first += keep.size


class Part:
    """Some rows of a source, as a source."""

    def __init__(self, source, rows: np.ndarray):
        self.source, self.rows, self.n = source, rows, rows.size

    def __getattr__(self, name: str):
        return getattr(self.source, name)

    def _blocks(self):
        yield from some(self.source._blocks(), self.rows)

    def passed(self, indices: bool):
        yield from some(self.source.passed(indices), self.rows)


def read_folds(path: Path, header: dict) -> tuple[list, dict]:
    """Return (what a fold has of its own, its steps) of each fold, and the hash of the file.

    ``header`` is that of the certificate of the path on all data, which the folds share.
    """
    hashed, whole = form.Hashed(), False
    found: list[tuple[dict, list]] = []
    for k, (kind, fields, arrays) in enumerate(form.frames(path, hashed, form.LEVERS)):
        if whole or (kind == form.HEADER) != (k == 0) or kind == form.STEP and not found:
            raise form.damaged(path, "its parts are not in order")
        if kind == form.HEADER and fields != {n: v for n, v in header.items() if not isinstance(v, np.ndarray)}:
            raise form.damaged(path, "its problem is not that of the certificate")
        if kind == form.FOLD:
            found.append(({**fields, **arrays}, []))
        elif kind == form.STEP:
            found[-1][1].append({**fields, **arrays, "after": None, "step": len(found[-1][1])})
        whole = kind == form.END and fields.get("folds") == len(found)
    if not whole:
        raise form.damaged(path, "it is cut short")
    return found, hashed.entry


class Folds:
    """The folds of a run; ``judge(pair) -> list`` of pairs (step, what it claims wrongly)."""

    def __init__(self, folder: Path, problem, data, judge):
        self.record, self.problem, self.data, self.judge, self.folder = problem.record, problem, data, judge, folder
        self.folds, entry = read_folds(folder / form.FOLDS, problem.header)
        self.texts = {name: (folder / name).read_bytes() for name in TABLES if (folder / name).exists()}
        entries = {name: {"bytes": len(t), "sha256": hashlib.sha256(t).hexdigest()} for name, t in self.texts.items()}
        listed = self.record["files"]
        wrong = [name for name, one in {**entries, form.FOLDS: entry}.items() if listed.get(name) != one]
        self.faults = [f"{name} is not what the run wrote (its hash differs)" for name in wrong]
        self.covered, self.uncovered = ["folds.bin: gaps of the steps"], ["folds.csv: columns but the scores"]
        self.cv = json.loads(self.texts["cv.json"])
        self.rows = self._table("folds.csv")
        self.free = problem.header.get("intercept") == "free"
        self.given = any(self.record["options"].get(name) is not None for name in ("fold_file", "fold_column"))
        self.targets = np.zeros(problem.header["data"]["n_samples"])
        self.lines: list[list] = []  # of each fold: what bounds are made of, step by step

    def _table(self, name: str) -> list[dict]:
        return list(csv.DictReader(io.StringIO(self.texts[name].decode(), newline="")))

    def check(self) -> None:
        self._check_split()
        steps = [len(steps) for _, steps in self.folds]
        at = [(str(own["repeat"]), str(own["fold"]), str(k)) for own, steps in self.folds for k in range(len(steps))]
        if len(set(steps)) != 1 or [(row["repeat"], row["fold"], row["step"]) for row in self.rows] != at:
            self.faults.append("folds.csv has other steps than the certificates of the folds")
        for k, (own, entries) in enumerate(self.folds if not self.faults else []):
            self._check_fold(own, entries, self.rows[k * steps[0] : (k + 1) * steps[0]])
        if not self.faults:
            self._check_source()
            self._check_choice(steps[0])
            self._check_bounds()

    def _check_split(self) -> None:
        n, options, identity = self.targets.size, self.record["options"], self.record["identity"]
        digest, places = hashlib.sha256(), []
        repeats, count = options["repeats"], options["folds"]
        if self.given:  # as many folds as there are
            repeats, count = 1, max(len(self.folds), 2)
        for own, _ in self.folds:
            places.append((own["repeat"], own["fold"]))
            digest.update(np.array([*places[-1], *own["held_out"]], dtype=np.int64).tobytes())
            if own["held_out"].dtype != np.int64 or np.any(np.diff(own["held_out"]) <= 0):
                self.faults.append("the held-out rows of a fold do not rise")
        if places != [(r, k) for r in range(repeats) for k in range(count)]:
            self.faults.append("the folds are not as many as the options ask for")
        for repeat in range(repeats):
            rows = [own["held_out"] for own, _ in self.folds if own["repeat"] == repeat]
            if not np.array_equal(np.sort(np.concatenate([*rows, np.zeros(0, np.int64)])), np.arange(n)):
                self.faults.append(f"repeat {repeat}: the folds do not hold out each row once")
        if digest.hexdigest() != identity.get("folds_sha256"):
            self.faults.append("run.json has the hash of other folds")
        if (identity.get("folds"), identity.get("repeats")) != (count, repeats):
            self.faults.append("run.json has another number of folds or repeats")
        self.covered += ["folds.bin: each row is held out once", *(f"run.json: options.{name}" for name in OPTIONS)]
        self.covered += [f"run.json: identity.{name}" for name in ("folds_sha256", "folds", "repeats", "score")]

    def _check_source(self) -> None:
        """Compare the folds with those of the file, or with what the seed draws: numpy may draw others in a version."""
        options, n = self.record["options"], self.targets.size
        drawn: list[np.ndarray] = []
        what = "the file" if options.get("fold_file") else "the column" if self.given else "the seed"
        if what == "the file" and (member := read_numbers(options["fold_file"], n)) is not None:
            drawn = [np.flatnonzero(member == name) for name in np.unique(member)]
        for repeat in range(options["repeats"]) if what == "the seed" and not options.get("group_column") else ():
            order = np.random.default_rng([options["fold_seed"], repeat]).permutation(n)
            if self.cv["stratified"]:  # dealt out class by class
                order = order[np.argsort(self.targets[order], kind="stable")]
            member = np.argsort(order) % options["folds"]
            drawn += [np.flatnonzero(member == fold) for fold in range(options["folds"])]
        same = len(drawn) == len(self.folds) and all(
            np.array_equal(own["held_out"], rows) for (own, _), rows in zip(self.folds, drawn, strict=True)
        )
        place = "fold_file" if what == "the file" else "fold_seed"
        self.covered += [f"folds.bin: the folds are those of {what}", f"run.json: options.{place}"] if same else []
        self.uncovered += [] if same else [f"folds.bin: that the folds are those of {what}"]

    def _check_fold(self, own: dict, entries: list, rows: list) -> None:
        name, main, held = f"repeat {own['repeat']}, fold {own['fold']}", self.problem.header, own["held_out"]
        shared = {key: value for key, value in main.items() if not isinstance(value, np.ndarray) or key in SHARED}
        header = {**shared, **{key: own[key] for key in ("scale", "shift", "fill", "weights") if key in own}}
        source = open_data(self.data, header, 1 << 12)
        part, problem = Part(source, np.setdiff1d(np.arange(source.n), held)), copy.copy(self.problem)
        problem.header = {key: value for key, value in header.items() if key != "columns"}
        every = problem.sample_weights
        problem.sample_weights = None if every is None else every[part.rows]
        problem.watch(part)
        for _ in range(2):
            for _ in part._blocks():
                pass
        self.faults += [f"{name}: {fault}" for fault in problem.faults()]
        header |= {"labels": source.mapping(), "roundings": problem.roundings()}
        claimed = [entry for entry in entries if entry["status"] == form.CERTIFIED]
        pairs = {pair.entry["step"]: pair for pair in check_steps(header, claimed, Part(source, part.rows))}
        for k, pair in pairs.items():
            self.faults += [f"{name}, step {k}, {fault}" for _, fault in self.judge(pair)]
        for row, entry in zip(rows, entries, strict=True):
            if any(str(row[key]) != str(entry[key]) for key in ("status", *form.PARAMETERS) if key in entry):
                self.faults.append(f"{name}, step {entry['step']}: folds.csv and certificate differ")
        levered = [entry for entry in claimed if levers.NAMES[0] in entry]
        used = levers.rows_of(levered, part.n)
        wanted = np.union1d(held, part.rows[used])
        seen = list(some(source.passed(indices=True), wanted))
        blocks, trained = (list(some(seen, np.searchsorted(wanted, at))) for at in (held, part.rows[used]))
        known = ("options", "weights") not in self.problem.unknown
        if not known and not self.problem.options.get("class_weight"):  # else a product of both is all there is
            every, known = main.get("weights"), True
        weights = np.ones(held.size) if every is None else every[held]
        self._check_scores(name, (header, blocks, weights, held), pairs, rows)
        if main["model"] != "svm" or self.faults or not known:
            return
        if not self.free:
            self.lines.append([Line(pair, header, blocks, weights) for pair in pairs.values()])
        elif len(levered) == len(pairs):
            lines = [levers.FreeLine(pair, header, blocks, weights, (used, trained)) for pair in pairs.values()]
            self.lines.append(lines)

    def _check_scores(self, name: str, held: tuple, pairs: dict, rows: list) -> None:
        header, blocks, weights, held_out = held
        y, known = truth_of(blocks, header["labels"]), ("options", "weights") not in self.problem.unknown
        self.targets[held_out] = y
        forms = {k: forms_of(blocks, pair.solution) for k, pair in pairs.items()}
        for column, score in (("score", self.cv["score"]), *((one, one) for one in self.cv.get("further", {}))):
            kind = score.replace("_", "-")
            there = known and kind in (*LOSSES, *CLASSES)
            (self.covered if there else self.uncovered).append(f"folds.csv: {score}")
            for k in forms if there else ():
                low, high = between(kind, forms[k], y, weights, header.get("tau", 0.5))
                value = number(rows[k][column])
                if value is None or not low - NEAR * (1.0 + abs(low)) <= value <= high + NEAR * (1.0 + abs(high)):
                    self.faults.append(f"{name}, step {k}: folds.csv says {score} {value}, it is {low:.9g}")
        self.uncovered += ["folds.csv: steps that claim nothing"] * (len(pairs) < len(rows))

    def _check_choice(self, steps: int) -> None:
        """Compare means, standard errors and the choice with the scores of folds.csv."""
        cv, table, lower = self.cv, self._table("cv.csv"), self.cv["score"] in ("mae", "mse", "pinball")
        asked = (self.record["options"]["score"] or "").partition(",")[0]
        usual = {"svm": "accuracy", "l1svm": "accuracy", "sparse-svm": "accuracy"}
        usual |= dict.fromkeys(("quantile", "sparse-quantile"), "pinball")
        asked = asked or usual.get(self.problem.header["model"], "mae")
        names = ",".join([cv["score"], *cv.get("further", {})]).replace("-", "_")
        asked_all = self.record["identity"]["score"].replace("-", "_")
        if cv["score"] != asked or names != asked_all or cv["higher_is_better"] == lower or len(table) != steps:
            self.faults.append("cv.json has another score than the options, or cv.csv other steps")
            return
        kind = "json" if self.record["options"]["format"] == "json" else "csv"
        _, path = read_table(Path(f"steps.{kind}"), (self.folder / f"steps.{kind}").read_bytes())
        for name in (name for name in form.PARAMETERS if name in table[0]):
            values = [str(row.get(name)) for row in path]
            if values != [row[name] for row in table] or values * len(self.folds) != [row[name] for row in self.rows]:
                self.faults.append(f"the folds have another {name} than the path on all data")
        means: dict[str, np.ndarray] = {}
        pairs = (("score", "mean", "se"), *((one, one, f"{one}_se") for one in cv.get("further", {})))
        for column, mean, se in pairs:
            scores = np.array([number(row[column]) for row in self.rows], dtype=float).reshape(-1, steps)
            means[mean] = scores.mean(axis=0)
            means[se] = scores.std(axis=0, ddof=1) / math.sqrt(len(scores))
            for key in (mean, se):
                own = f"cv_{(cv['score'] if column == 'score' else column).replace('-', '_')}{'_se' * (key == se)}"
                for name, place, rows in (("cv.csv", key, table), ("the step table", own, path)):
                    if any(not near(number(row[place]), value) for row, value in zip(rows, means[key], strict=True)):
                        self.faults.append(f"{name} has another {place} than folds.csv")
                self.covered.append(f"step table: {own}")
        loss = means["mean"] if lower else -means["mean"]
        best = int(np.flatnonzero(loss <= loss.min() + TIE * abs(loss.min()))[0])
        one_se = int(np.flatnonzero(loss <= loss[best] + means["se"][best] + TIE * abs(loss[best]))[0])
        for key, step in (("best", best), ("one_se", one_se)):
            said, row = cv[key], table[step]
            good = said["step"] == step and all(near(said[one], means[one][step]) for one in ("mean", "se"))
            good &= all(str(value) == row[one] for one, value in said["parameters"].items())
            if not good or [int(line[key]) for line in table] != [int(k == step) for k in range(steps)]:
                self.faults.append(f"the {key} step is {step}, by the scores of the folds; the run says {said['step']}")
        whole = all(row["status"] == form.CERTIFIED for row in self.rows)
        if self.record["folds_certified"] is not whole:
            self.faults.append("run.json says otherwise than folds.csv whether all steps of the folds are certified")
        told = self.covered if whole else self.uncovered
        told += ["cv.csv: mean, se, best, one_se", "cv.json: best, one_se"]
        self.covered.append("run.json: folds_certified")
        self.uncovered.append("cv.json: the rest")

    def _check_bounds(self) -> None:
        if "bounds.csv" not in self.texts:
            return
        steps = len(self.folds[0][1])
        if not self.lines or any(len(lines) < steps for lines in self.lines):
            self.uncovered += ["bounds.csv: all", "cv.json: certified"]
            return
        table = self._table("bounds.csv")
        for k, row in enumerate(table):
            ends = [(lines[k], lines[k + 1]) for lines in self.lines] if k + 1 < steps else []
            if not ends or [number(row["C_from"]), number(row["C_to"])] != [line.C for line in ends[0]]:
                self.faults.append("bounds.csv has other ranges than the folds")
                return
            lower, upper = ((levers.heaviest if self.free else heaviest)(ends, wrong) for wrong in (True, False))
            if not (float(row["lower"]) <= 1.0 - lower + NEAR and float(row["upper"]) >= upper - NEAR):
                where = f"C from {row['C_from']} to {row['C_to']}"
                self.faults.append(f"{where}: the bounds are not proven, only {1.0 - lower:.9g} and {upper:.9g}")
        said, claimed = self.cv["certified"], min((float(row["lower"]) for row in table), default=math.nan)
        best = max(float(row["mean"]) for row in self._table("cv.csv"))
        wanted = {"lower_bound": claimed, "best_error": 1.0 - best, "difference": max(1.0 - best - claimed, 0.0)}
        wanted |= {"cmin": self.lines[0][0].C, "cmax": self.lines[0][-1].C}
        wanted["best_C"] = self.lines[0][self.cv["best"]["step"]].C
        wrong = [key for key, value in wanted.items() if not near(said[key], value)]
        target = self.record["options"]["certify_to"]
        reached = None if target is None else said["difference"] <= target
        wrong += ["target"] * (said["target"] != target or said["reached"] is not reached)
        if wrong or len(table) != steps - 1:
            self.faults.append(f"cv.json has another {', '.join(wrong) or 'range'} than bounds.csv and folds")
        self.covered += ["bounds.csv: lower, upper", "cv.json: certified"]


def near(found, wanted: float) -> bool:
    return found is not None and abs(found - wanted) <= NEAR * (1.0 + abs(wanted))


class Line:
    """What a pair tells about held-out rows: products with ``c``, all rounding counted, and the radius."""

    def __init__(self, pair, header: dict, blocks: list, weights: np.ndarray):
        _, _, apart, slack = pair.columns
        self.C, self.c = pair.entry["C"], pair.weights - 0.5 * apart
        self.off = norm_above(0.5 * slack + 4.0 * UNIT * (np.abs(self.c) + np.abs(apart)))
        self.square = UP * (0.25 * squared(pair.away(1.0)) + pair.term + TINY)
        self.loss, self.spread = fsum(pair.losses), fsum(pair.spread)
        self.norms = np.concatenate([norms_of(block) for block in blocks])
        self.p, e = forms_of(blocks, self.c)
        self.e = UP * (e + self.norms * self.off)
        self.signs = np.concatenate([signs_of(block.labels, header["labels"]) for block in blocks])
        self.weights = weights / fsum(weights)


def unsure(a: Line, b: Line, side: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the closed intervals of s on which rows are not sure to be on a side; from above to, where on none."""
    moved = max(float(np.linalg.norm(b.c - a.c)) * (1.0 - TIE) - a.off - b.off, 0.0)
    K = max((b.C - a.C) * (a.loss - b.loss + a.spread + b.spread) * UP - moved * moved, 0.0)
    p, q, N = side * a.p - a.e, side * b.p - b.e, a.norms**2
    A, B, D = (q - p) ** 2 + N * K, 2.0 * p * (q - p) - N * (b.square - a.square + K), p * p - N * a.square
    size = 16.0 * UNIT * (p * p + q * q + N * (a.square + b.square + K))
    D, first, last = D - size, (p > 0.0) & (p * p - N * a.square > size), (q > 0.0) & (q * q - N * b.square > size)
    with np.errstate(all="ignore"):
        half = -0.5 * (B + np.copysign(np.sqrt(np.maximum(B * B - 4.0 * A * D, 0.0)), B))
        ends = np.sort([half / A, D / half], axis=0)
    low, high = (np.nan_to_num(one, nan=end) for one, end in zip(ends, (0.0, 1.0), strict=True))
    low, high = np.clip(low - TIE, 0.0, 1.0), np.clip(high + TIE, 0.0, 1.0)
    never = first & last & ((B * B < 4.0 * A * D) | (B >= 0.0) | (B <= -2.0 * A))
    return np.where(never, 1.0, np.where(first, low, 0.0)), np.where(never, 0.0, np.where(last, high, 1.0))


def heaviest(ends: list, wrong: bool) -> float:
    """Return the largest weight, over one s, of held-out rows not sure to be wrong (or right); a fold weighs alike."""
    parts = [(*unsure(a, b, -a.signs if wrong else a.signs), a.weights / len(ends)) for a, b in ends]
    low, high, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    there = low <= high
    low, high, weights = low[there], high[there], weights[there]
    opened, closed = np.argsort(low, kind="stable"), np.argsort(high, kind="stable")
    before = np.append(0.0, np.cumsum(weights[closed]))
    piles = np.cumsum(weights[opened]) - before[np.searchsorted(high[closed], low[opened], side="left")]
    return float(piles.max(initial=0.0))


# -- scores of linear forms that are known to an error: the least and the largest that they can be ---------------------


def forms_of(blocks: list, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the products of rows with ``w``, a row for each class if there are several, and bounds of the errors."""
    found = [[products_of(block, one) for one in np.atleast_2d(w)] for block in blocks]
    p, e = (np.concatenate([[one[k] for one in block] for block in found], axis=1) for k in range(2))
    return (p, e) if w.ndim > 1 else (p[0], e[0])


def truth_of(blocks: list, labels: dict | None) -> np.ndarray:
    """Return the targets of rows; of labels the number of the class, 1 for +1 and 0 for -1."""
    y = np.concatenate([block.labels for block in blocks])
    if labels is None:
        return y
    if "classes" in labels:
        return np.searchsorted(np.array(labels["classes"], float), y)
    return (signs_of(y, labels) > 0.0).astype(np.int64)


def between(score: str, forms: tuple, y: np.ndarray, weights: np.ndarray, tau: float) -> Ends:
    """Return the least and the largest score of linear forms, each known to an error."""
    if score in LOSSES:
        return _losses(score, forms, y, weights, tau)
    if score == "auc":
        return _auc(forms, y, weights)
    sure, may = _decided(*forms)
    several, classes = forms[0].ndim > 1, range(sure.shape[0])
    sizes = [fsum(weights[y == k]) for k in classes]
    right = [[fsum(weights[(y == k) & one[k]]) for k in classes] for one in (sure, may)]
    present = [k for k in classes if sizes[k] > 0.0]
    if score == "accuracy":
        return fsum(right[0]) / fsum(weights), fsum(right[1]) / fsum(weights)
    if score == "f1":
        present = present if several else [1]
        wrong = [[fsum(weights[(y != k) & one[k]]) for k in classes] for one in (may, sure)]
        sums = [[right[n][k] + wrong[n][k] + sizes[k] for k in classes] for n in range(2)]
        parts = [[2.0 * right[n][k] / sums[n][k] if sums[n][k] else 0.0 for k in present] for n in range(2)]
    else:
        parts = [[right[n][k] / sizes[k] for k in present] for n in range(2)]
    return fsum(parts[0]) / len(present), fsum(parts[1]) / len(present)


def _decided(p: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each class which rows are certainly decided as it, and which may be."""
    if p.ndim == 1:  # a form of 0 counts as negative
        sure = np.stack([p <= -e, p > e])
        return sure, ~sure[::-1]
    low, high, classes = p - e, p + e, np.arange(len(p))[:, None]
    sure, may = np.ones((2, *p.shape), dtype=bool)
    for k in range(len(p)):  # of equal forms the first counts
        sure[k] = np.all(np.where(classes < k, low[k] > high, low[k] >= high) | (classes == k), axis=0)
        may[k] = np.all(np.where(classes < k, high[k] > low, high[k] >= low) | (classes == k), axis=0)
    return sure, may


def _losses(score: str, forms: tuple, y: np.ndarray, weights: np.ndarray, tau: float) -> Ends:
    (p, e), total = forms, fsum(weights)
    t = y - p
    square = score in ("mse", "r2")
    value = t * t if square else np.abs(t) if score == "mae" else np.maximum((tau - 1.0) * t, tau * t)
    off = fsum(weights * (e * (2.0 * np.abs(t) + e) if square else e)) / total
    low, high = fsum(weights * value) / total - off, fsum(weights * value) / total + off
    if score != "r2":
        return low, high
    variance = fsum(weights * (y - fsum(weights * y) / total) ** 2) / total
    return (1.0 - high / variance, 1.0 - low / variance) if variance > 0.0 else (math.nan, math.nan)


def _auc(forms: tuple, y: np.ndarray, weights: np.ndarray) -> Ends:
    """Return the share of pairs in which +1 is certainly ahead, and in which it may be."""
    p, e = forms
    apart = TIES * (1.0 + 1e-9) * max(1.0, float(np.median(np.abs(p)))) + 2.0 * float(e.max())
    order = np.argsort(p[y == 0], kind="stable")
    low, before = p[y == 0][order], np.append(0.0, np.cumsum(weights[y == 0][order]))
    ahead = (before[np.searchsorted(low, p[y == 1] + shift, side="right")] for shift in (-apart, apart))
    total = fsum(weights[y == 1]) * before[-1]
    least, most = (fsum(weights[y == 1] * one) / total for one in ahead)
    return least, most
