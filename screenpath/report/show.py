"""A run in words: what was fitted, what is proven, how good a step is, and what it is made of.

Plain text of at most ``WIDTH`` characters a line, without colour: the same on a terminal, in a pipe and in a file.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from pathlib import PurePath
from types import SimpleNamespace

import numpy as np

from screenpath.catalogue.losses import LOSSES
from screenpath.catalogue.scores import CONFUSION, Sigmoid, baseline_words
from screenpath.catalogue.specs import SPECS
from screenpath.cv.choice import corrected_words, cv_baseline, folds_of, held_out, threshold_words, turn_line
from screenpath.data.words.labels import label_text
from screenpath.data.words.tables import aligned
from screenpath.engine.record import audit_words
from screenpath.errors import flags, shown
from screenpath.export.export import intercept_words, kernel_words, loss_values, title_of, values_words
from screenpath.problem import INTERVAL
from screenpath.report.series import read_cv, unmet_folds
from screenpath.store.open import Run
from screenpath.store.record import COMPLETE

WIDTH = 60
NAME = 24  # characters of a feature's name
ACCURATE = 1e-6  # of the largest scaled weight: smaller ones are 0 to the accuracy of the solve
Z95 = 1.959963984540054  # of the standard normal distribution: 95 % are nearer to 0
LAST = ("missing values", "scaling", "intercept", "rule")  # of the facts on one line
SCALED = {
    "standard": "weight x the feature's standard deviation",
    "maxabs": "weight x the feature's largest magnitude",
    "l2": "the weight itself (rows have length 1)",
    "none": "the weight itself (the run does not scale): sizes compare features of one unit only; see `scale`",
}


@dataclass(frozen=True)
class ScoreShown:
    """A score of a step."""

    name: str  # of ``catalogue.scores.SCORES``
    kind: str  # "cv" or "test"
    value: float
    error: float | None  # standard error over the folds; None for test data, and for a single fold
    interval: tuple | None  # 95 % interval of an accuracy on test data (Wilson 1927)
    count: int | None  # folds, or rows of the test data
    whole: int | None = None  # folds of the whole cross-validation, if the run is a part of it
    baseline: float | None = None  # what is reached without any feature; None for R^2
    held: str = "folds"  # what is counted

    def __str__(self) -> str:
        more = "" if self.baseline is None else f"; baseline {baseline_words(self.name, self.baseline)}"
        return f"{self._reached()}{more}"

    def _reached(self) -> str:
        text = f"{self.name.replace('-', ' ')} {self.value:.6g}"
        if self.kind == "cv":
            of = f"{self.count} of {self.whole}" if self.whole else self.count
            over = f" over {of} {self.held}" if self.count else ""
            return f"{text}{over}" if self.error is None else f"{text} +- {self.error:.2g} (standard error{over})"
        rows = f" on {self.count:,} test rows" if self.count else " on the test data"
        if self.interval is None:
            return text + rows
        return f"{text}{rows}; 95 % interval {self.interval[0]:.4g} to {self.interval[1]:.4g}"


@dataclass(frozen=True)
class FeatureShown:
    """A feature of a linear model, or a support vector of a kernel model."""

    number: int  # from 1, as in the file
    name: str | None  # of a feature, if the data was a table
    weight: float  # in the units of the file; with several classes the one of the largest scaled size
    scaled: float  # see ``SCALED``
    label: float | None  # the class, if each has its weights
    entered: dict | None  # row of the step table at which the feature first has a weight, in sparse models


@dataclass(frozen=True, repr=False)
class RunSummary:
    """What a run is, and one of its steps; ``str()`` of it is a page of text."""

    run: Run
    step: dict  # row of the step table
    certified: int  # certified steps, of the requested ones:
    asked: int
    scores: list  # of ScoreShown
    features: list  # of FeatureShown, the largest by scaled size
    nonzero: int  # how many have a weight that is not 0 to the accuracy of the solve
    intercepts: list  # numbers: one, or one per class; none in a kernel model
    details: bool = False  # whether the page ends with the counts of dual variables at their bounds
    negligible: int = 0  # how many more are not exactly 0
    words: Callable[[str], str] = flags  # turns options between backquotes into those of the reader

    def __repr__(self) -> str:
        return f"<RunSummary: {self.run.model}, {self.run.describe(self.step)}>"

    def __str__(self) -> str:
        parts = [
            ("", [f"{self.run.model} on {PurePath(str(self.run.record['data'].get('path', 'data'))).name}"]),
            ("scores", self._scored()), ("step", self._step()), (f"{self.run.unit}s", self._features()),
            ("intercept", self._intercept()), ("certificate", self.certificate()), ("fitted", _fitted(self.run)),
            *([("dual variables", _ends(self.run, self.step))] if self.details else []),
        ]  # fmt: skip
        lines = []
        for title, texts in parts:
            lines += [title] if title else []
            for text in texts:
                lines += folded(text, "  " if title else "")
        return "\n".join(lines) + "\n"

    def certificate(self) -> list:
        gaps = [row["rel_gap"] for row in self.run.steps if row.get("rel_gap") is not None]
        worst = f", worst relative gap {max(gaps):.1e}" if gaps else ""
        asked = self.run.record["options"].get("tol")
        lines = [f"{self.certified} of {self.asked} steps certified on the full data{worst}"]
        lines += [] if asked is None else [f"asked: relative gap of at most {asked:g}"]
        lines += between_words(self.run)
        unmet = unmet_folds(self.run)
        lines += [] if unmet is None else [self.words(unmet)]
        if self.run.record["options"].get("audit"):
            lines.append(f"unsafe decisions (audit): {audit_words(self.run.record.get('totals') or {})}")
        if self.run.record["options"].get("certificate") is True and self.run.record["status"] == COMPLETE:
            lines.append("certificate.bin holds what is claimed: screenpath verify checks it")
        return lines

    def _scored(self) -> list:
        lines = [str(score) for score in self.scores] or [self.words("none: no `test` data and no cross-validation")]
        counts = [int(count) for count in (self.step.get(CONFUSION) or "").split()]
        if counts and len(counts) == len(self.run.sides) ** 2:
            labels = [side if isinstance(side, str) else label_text(side) for side in self.run.sides]
            lines += _confused("test", labels, np.reshape(counts, (len(labels), -1)).tolist())
        if not self.run.has("cv.json"):
            return lines
        record = read_cv(self.run).record
        count, whole = folds_of(record)
        by = "" if count == whole else f" by {count} of {whole} folds"
        best, one_se = record["best"]["step"], record["one_se"]["step"]
        how = "" if one_se == best else ": simpler, and as good to one standard error; `step=one-se` takes it"
        lines.append(self.words(f"chosen{by}: step {best} is the best, step {one_se} one-se{how}"))
        if record["best"].get("optimism") is not None and best == self.step["step"]:
            lines.append(f"corrected: {corrected_words(record)} (Tibshirani and Tibshirani 2009)")
        found = [record[key] for key in ("best", "one_se") if record[key]["step"] == self.step["step"]]
        if found and "threshold" in found[0]:
            lines.append(threshold_words(**found[0]["threshold"]))
        elif self.step.get("threshold") is not None:
            lines.append(f"decisions above {self.step['threshold']:.6g} are +1")
        if found and "calibrate" in found[0]:
            lines.append(f"probabilities, {Sigmoid(**found[0]['calibrate'])}")
        if record.get("confusion") and record["best"]["step"] == self.step["step"]:
            lines += _confused("held-out", **record["confusion"])
        if record.get("until_turn") is not None:
            lines.append(" ".join(turn_line(record["until_turn"])))
        if record.get("certified"):
            across = f"C = {record['certified']['cmin']:.6g} to {record['certified']['cmax']:.6g}"
            lines.append(f"certified: better by at most {record['certified']['difference']:.3g} anywhere in {across}")
        return lines

    def _step(self) -> list:
        step = self.step
        gap = f", relative gap {step['rel_gap']:.1e}" if step.get("rel_gap") is not None else ""
        lines = [f"{self.run.describe(step)}: {step['status']}{gap}"]
        support = support_vectors(self.run, step)
        lines += [] if support is None else [f"support vectors: {support:,}"]
        lines += [f"nu: {step['nu']:.4g}"] if "nu" in step else []
        return lines + ([step["reason"]] if step.get("reason") else [])

    def _intercept(self) -> list:
        run, values = self.run, [f"{value:.6g}" for value in self.intercepts]
        if run.kernel and intercept_words(run) != "free":
            return [self.words("none: `intercept=free` adds one, `bias` a constant to the kernel")]
        if not values:
            return ["not known: the run folder has no coefficients"]
        preparation = run.record["preparation"]
        free = "intercept" in run.record["options"] and not (run.classes and run.model == "sparse-svm")
        adds = self.words("`intercept=free`, or `bias=B`," if free else "`bias=B`")
        if not any(self.intercepts) and not preparation.get("bias") and preparation.get("shift") is None:
            return [f"none ({adds} adds one)"]
        if run.classes:
            named = zip(run.blocks or (), values, strict=True)
            return [", ".join(f"{label_text(label)}: {value}" for label, value in named)]
        units = "" if run.kernel else ", in the units of the file"
        lines, ends = [f"{values[0]}{units}"], [self.step.get(name) for name in INTERVAL]
        if intercept_words(run) == "none":
            lines.append(f"it only undoes the centring: none was fitted ({adds} adds one)")
        if None not in ends:
            low, high = (f"{end:.6g}" for end in ends)
            lines.append("no other is as good" if low == high else f"any from {low} to {high} is as good")
        return lines

    def _features(self) -> list:
        run = self.run
        total = run.width if run.kernel else run.n_features
        if run.stored is None:
            return ["the run folder has no coefficients"]
        lines = [f"{self.nonzero:,} of {total:,} have a weight"]
        if 0 < len(self.features) < self.nonzero:
            lines[0] += f"; the {len(self.features)} largest{'' if run.kernel else ', scaled'}"
        if self.negligible:
            lines.append(self.negligible_words())
        if not self.features:
            return lines
        heads, rows = self.table()
        cells = [[f"{v:.4g}" if isinstance(v, float) else v for v in row] for row in rows]
        lines += aligned([heads, *([name[:NAME], *rest] for name, *rest in cells)])
        if "enters at" in heads:
            lines.append(f"enters at: the first step ({', '.join(run.parameters)}) of the path with a weight")
        return lines if run.kernel else [*lines, f"scaled: {self.scaled_words()}"]

    def table(self) -> tuple[list, list]:
        """Return heads and rows of the table of features: texts and numbers."""
        run = self.run
        sparse, several, linear = SPECS[run.model].selects, bool(run.classes), not run.kernel
        there = (True, several, True, linear, sparse)
        heads = (run.unit, "class", "weight" if linear else "y alpha", "scaled", "enters at")
        rows = (
            (shown(f.name or str(f.number)), several and label_text(f.label), f.weight, f.scaled,
             sparse and _entered(run, f.entered))
            for f in self.features
        )  # fmt: skip
        return list(compress(heads, there)), [list(compress(row, there)) for row in rows]

    def negligible_words(self) -> str:
        return f"{self.negligible:,} more {'is' if self.negligible == 1 else 'are'} 0 to the accuracy of the solve"

    def scaled_words(self) -> str:
        """Return what scaled weights are."""
        kind = self.run.record["preparation"].get("scaling") or "none"
        penalised = self.run.record["options"].get("penalty_weights") is not None
        words = "weight" if penalised and kind == "none" else self.words(SCALED[kind])
        return f"{words}{' x its weight in the penalty' if penalised else ''}"


def between_words(run) -> list:
    """Return what is proven at every C of a linear path, between its steps, too: a line, or none."""
    found = run.record.get("between") or {}
    low, high, worst = (found.get(name) for name in ("from", "to", "worst_rel_gap"))
    if None in (low, high, worst):
        return []
    name = run.parameters[0]
    return [f"any {name} from {low:g} to {high:g}: relative gap of at most {worst:.1e}, interpolated between steps"]


def _confused(which: str, labels: list, counts: list) -> list:
    """Return the table of rows by label and prediction, if it is not too wide."""
    table = aligned([["label", *labels], *([label, *map(str, row)] for label, row in zip(labels, counts, strict=True))])
    if len(table[0]) + 2 > WIDTH:
        where = "cv.json" if which == "held-out" else "the step table"
        return [f"confusion table of {len(labels)} labels: see {where}"]
    return [f"{which} rows by label (lines) and prediction (columns):", *table]


def _entered(run, row: dict | None) -> str:
    if row is None:  # at a step without a solution: its row of the table was lost
        return "?"
    return f"{row['step']} ({', '.join(f'{row[name]:.3g}' for name in run.parameters)})"


def folded(text: str, indent: str = "") -> list:
    """Return a text as lines of at most ``WIDTH`` characters, with control characters made visible."""
    text = shown(text)
    if len(indent) + len(text) <= WIDTH:
        return [indent + text]
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)


def facts_of(run) -> dict[str, str]:
    """Return what was fitted, by name: data, labels, options of the loss, parameters, kernel, preparation."""
    record, options, words = run.record, run.record["options"], intercept_words(run)
    rows = f"{record['data']['n_samples']:,} rows, " if record["data"].get("n_samples") else ""
    facts = {"data": f"{rows}{run.n_features:,} features"}
    if run.classes:
        facts["labels"] = ", ".join(label_text(label) for label in run.classes)
    elif run.labels:
        low, high = (v if isinstance(v, str) else label_text(v) for v in (run.labels["-1"], run.labels["+1"]))
        facts["labels"] = f"{low} (-1) and {high} (+1)"
    facts |= {letter: f"{value:g}" for letter, value in loss_values(run)}
    facts |= {name: values_words(run, name) for name in run.parameters}
    facts |= {"kernel": kernel_words(record["kernel"])} if run.kernel else {}
    how = "error" if run.form is None else run.form.cells.missing
    facts |= {} if how == "error" else {"missing values": how}
    facts["scaling"] = record["preparation"].get("scaling") or "none"
    facts |= {} if run.kernel and words == "none" else {"intercept": words}
    return facts | {name: str(options[name]) for name in ("rule", "solver") if options.get(name)}


def _fitted(run) -> list:
    facts = facts_of(run)
    alone = {name: facts.pop(name) for name in ("data", "labels", "kernel", "solver") if name in facts}
    last = ", ".join(f"{name} {facts.pop(name)}" for name in LAST if name in facts)
    lines = [f"path of {title_of(run)}", alone["data"], f"labels {alone['labels']}" if "labels" in alone else ""]
    lines += [str(run.record.get("objective") or ""), *(f"{name} = {text}" for name, text in facts.items())]
    return [line for line in (*lines, f"kernel {alone['kernel']}" if run.kernel else "", last) if line]


def _ends(run, step: dict) -> list:
    if any(step.get(name) is None for name in ("n_R", "n_E", "n_L")):
        return ["not counted"]
    lines = [
        f"R {step['n_R']:,} at the lower bound, E {step['n_E']:,} between, L {step['n_L']:,} at the upper bound"
        + (", over all classes" if run.classes else "")
    ]
    screened = [f"{step[name]:,} {side}" for side, name in (("R", "screened_R"), ("L", "screened_L")) if step.get(name)]
    return lines + ([f"screened before the solve: {' and '.join(screened)}"] if screened else [])


def support_vectors(run, step: dict) -> int | None:
    """Return how many rows have a dual variable that is not 0, if 0 is their lower bound in the model; else None."""
    if run.kernel and run.classes:  # a row may be in the model of each
        return None if run.stored is None else int(np.count_nonzero(run.coefficients(step)[0].any(axis=0)))
    if run.kernel:
        return step["nnz_w"]
    loss = LOSSES.get(run.model)
    if loss is None or run.classes or step.get("n_E") is None:
        return None
    low = loss.slopes(SimpleNamespace(**{one.name: one.default for one in loss.options}))[0]
    return step["n_E"] + step["n_L"] if low == 0.0 else None


def _scores(run, step: dict) -> list:
    found = []
    for column in run.record["columns"]:
        kind, _, name = column.partition("_")
        if kind not in ("cv", "test") or column.endswith("_se") or step[column] is None:
            continue
        name, value = name.replace("_", "-"), step[column]
        if kind == "cv":
            record = read_cv(run).record if run.has("cv.json") else None
            count, whole = folds_of(record) if record else (None, None)
            whole, constant = None if whole == count else whole, cv_baseline(record or {}, column.removeprefix("cv_"))
            se, held = step.get(f"{column}_se"), held_out(record or {})
            found.append(ScoreShown(name, kind, value, se, None, count, whole, constant, held))
        else:
            test = run.record.get("test") or {}
            rows, constant = test.get("n_samples"), test.get("baselines", {}).get(name)
            interval = wilson(value, rows) if name == "accuracy" and rows else None
            found.append(ScoreShown(name, kind, value, None, interval, rows, baseline=constant))
    return found


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of ``count`` rows (Wilson 1927): never empty, never beyond 0 and 1."""
    z, share = Z95 * Z95 / count, min(max(share, 0.0), 1.0)
    middle = (share + 0.5 * z) / (1.0 + z)
    half = Z95 * math.sqrt(share * (1.0 - share) / count + 0.25 * z / count) / (1.0 + z)
    return max(0.0, middle - half), min(1.0, middle + half)


def scaled_weights(run, weights) -> tuple[np.ndarray, np.ndarray]:
    """Return scaled weights, and for each feature whether it has one that is not 0 to the accuracy of the solve."""
    scale = None if run.kernel else run.record["preparation"].get("scale")
    scaled = weights if scale is None else weights * np.asarray(scale)
    size = abs(scaled).max(axis=0)
    return scaled, size > ACCURATE * size.max(initial=0.0)


def _features(run, step: dict, top: int) -> tuple[list, tuple[int, int], list]:
    """Return the largest features; how many have a weight, and how many more one next to 0; and the intercepts."""
    weights, intercepts = run.coefficients(step)
    scaled, weighted = scaled_weights(run, weights)
    size = abs(scaled).max(axis=0)
    order = np.argsort(-size, kind="stable")[:top]
    order = order[weighted[order]]
    block = abs(scaled).argmax(axis=0)
    entered = _entries(run, order, len(weights)) if SPECS[run.model].selects else [None] * order.size
    numbers = [int(j + 1 if run.kernel or run.numbers is None else run.numbers[j]) for j in order]
    names = None if run.kernel else run.feature_names
    found = [
        FeatureShown(
            number, None if names is None else names[number - 1], float(weights[block[j], j]),
            float(scaled[block[j], j]), run.blocks[block[j]] if run.blocks else None, row,
        )
        for number, j, row in zip(numbers, order, entered, strict=True)
    ]  # fmt: skip
    none = run.kernel and intercept_words(run) != "free"
    counts = int(np.count_nonzero(weighted)), int(np.count_nonzero(size[~weighted]))
    return found, counts, [] if none else intercepts.tolist()


def _entries(run, features, blocks: int) -> list:
    columns = run.matrix[:, 1 + features].tocsc()
    columns.eliminate_zeros()
    firsts = [
        int(columns.indices[a:b].min()) // blocks for a, b in zip(columns.indptr, columns.indptr[1:], strict=False)
    ]
    rows = {row["step"]: row for row in run.steps}
    return [rows.get(first) for first in firsts]


def default_step(run) -> str:
    """Return the step shown by default: the best if steps have scores, else the last."""
    column = run.score_column
    scored = column is not None and any(row[column] is not None for row in run.steps)
    return "best" if scored else str(run.steps[-1]["step"])


def summary_of(run: Run, step: str | None = None, top: int = 20, details: bool = False, words=flags) -> RunSummary:
    """Return the summary of a run and a step, named as for :meth:`Run.choose`, with at most ``top`` features.

    ``words`` turns options between backquotes into those of the reader: the shell's by default.
    """
    run.declared()
    row = run.choose(step or default_step(run))
    features, (nonzero, less), intercepts = ([], (0, 0), []) if run.stored is None else _features(run, row, top)
    asked = max((run.record.get("totals") or {}).get("n_steps") or 0, len(run.table))
    certified = sum(one["status"] == "certified" for one in run.table)
    return RunSummary(
        run, row, certified, asked, _scores(run, row), features, nonzero, intercepts, details, less, words
    )
