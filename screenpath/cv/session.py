"""A run with cross-validation: folds, bounds and tables around the path on all data."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from screenpath.catalogue import scores as scoring
from screenpath.catalogue.losses import LOSSES
from screenpath.cv import choice, tune
from screenpath.cv import folds as drawing
from screenpath.cv.certify import ErrorBounds
from screenpath.cv.run import COLUMNS, Processes, Task, finished_paths, fold_paths, needs_of_folds
from screenpath.data.safe.memory import free_memory, in_force
from screenpath.data.words.labels import label_text
from screenpath.data.words.tables import SCHEMA_VERSION, csv_text, readable_json
from screenpath.engine.hints import wider
from screenpath.engine.interrupts import Stopped
from screenpath.engine.options import INPUTS, stretch
from screenpath.engine.path import Path
from screenpath.engine.session import Session
from screenpath.errors import UsageError
from screenpath.inputs import load
from screenpath.inputs.load import class_weights, matrix_memory
from screenpath.inputs.rows import Samples
from screenpath.store.folder import FAILED, INTERRUPTED, RUNNING, TIME_LIMIT, run_key
from screenpath.store.outputs import Output
from screenpath.store.record import FOLDS_FILE
from screenpath.walk.step import CERTIFIED

# Of the options, in the identity.
MORE = ("certify", "certify_to", "certify_points", "until_turn", "turn_points", "predictions", "threshold")


class CvSession(Session):
    """A run whose steps carry cross-validated scores; the options are those of ``cv_resolved``."""

    cross_validated = True
    counted = "folds"  # what the console counts
    folds_certified: bool | None = None  # not known yet
    alone: Any = None  # in a subclass, see ``Task``
    first: tuple[Any, Iterator] | None = None  # grid and steps of the path on all data, begun before the folds
    under_way: tuple = ()  # grid, tolerance, folder and task of the latest folds
    # with ``gammas``: what is known about each of them, and the best; its entry in cv.json
    tried: tuple[list[tune.Tried], tune.Tried] | None = None
    tuned: dict | None = None
    written: dict | None = None  # content of cv.json
    choice: scoring.Choice | None = None  # None also where the time limit came before all folds had a step

    # -- data, folds and score: all checked before anything is computed --

    def read(self) -> None:
        o = self.options
        if o["predictions"] is not None:  # a resumed run writes them again
            inputs = [o[name] for name in INPUTS if isinstance(o.get(name), str)]
            self.predicted = Output(o["predictions"], o["force"] or o["resume"], inputs)
        load.named_cluster(o)
        raw = load.read_training(o)
        load.say_notices(raw.notices, o["data"], self.console.say)
        # The rows stay here in any case: a cluster computes whole folds.
        alone = {**o, "scheduler": None, "folds_at_once": o["jobs"]}
        self.take(load.load_training(self.spec, alone, self.console.say, raw))
        self.ids = raw.ids
        sparse = self.data.rows.sparse or self.spec.rows is not None
        sparse = sparse or o["missing"] not in (None, "error", "drop") or in_force()
        X = raw.X if sparse else self.data.rows.X  # what folds are cut from: dense only once, where there is memory
        if not sparse and not (self.data.preparation.plain and X.dtype == np.float64):
            X = raw.stored.toarray()
        self.samples = Samples(X, raw.y, np.asarray(self.data.targets), self.data.sample_weights)
        task = scoring.REGRESSION if self.data.labels is None else scoring.CLASSIFICATION
        classes = len((self.data.labels or {}).get("classes", (-1, 1)))
        names = (o["score"] or "").split(",")
        scores = [scoring.choose_score(name or None, self.spec, task, classes, o.get("tau")) for name in names]
        self.score, self.further = scores[0], tuple(scores[1:])
        asked = [name for name in choice.FITTED if o[name]]
        if asked and (task != scoring.CLASSIFICATION or "classes" in self.data.labels):
            what = "several" if task == scoring.CLASSIFICATION else "none"
            raise UsageError(f"`{asked[0]}` is between two labels, and this run has {what}", "leave it out")
        self.drawn = self.splits = self.draw(task, raw.groups)
        if o["part"] is not None:
            part = stretch(o["part"], len(self.drawn), "folds")
            self.splits = self.drawn[part.start : part.stop]
        self.task = Task(
            self.spec, self.task_options(raw), self.score, self.data.labels,
            class_weights(o.get("class_weight"), self.data.label_texts),
            "sparse" if self.data.rows.sparse else "dense", self.deadline, o["certify"], grows=o["until_turn"],
            keep=o["predictions"] is not None or bool(asked), further=self.further,
            proves=o["certificate"], alone=self.alone,
            order=None if self.spec.rows is None else self.shared_order(raw.y.size),
        )  # fmt: skip

    def shared_order(self, n: int) -> np.ndarray | None:
        """Return the order of rows in kernel values that folds share; None of so many rows that they do not."""
        from screenpath.rows.shared import MOST  # here: other models start up without it

        return drawing.held_out_order(self.drawn, n) if n <= MOST else None

    def draw(self, task: str, groups: np.ndarray | None) -> list:
        o, n = self.options, self.samples.y.size
        if task == scoring.REGRESSION and o["stratify"]:
            raise UsageError(f"`stratify` needs classes, and {self.spec.name} is a regression", "leave it out")
        free = o["fold_file"] is None and groups is None
        if groups is not None and o["stratify"]:
            raise UsageError("`stratify` would cut groups", "leave it out")
        self.stratified = task == scoring.CLASSIFICATION and o["stratify"] is not False and free
        targets = self.samples.targets if self.stratified else None
        if targets is not None:
            alone = all(one.name in scoring.ROW_PARTS for one in (self.score, *self.further))
            drawing.check_counts(targets, o["folds"], self.class_name, alone and self.spec.name in LOSSES)
        elif free:
            drawing.check_count(n, o["folds"])
        names = (self.data.labels or {}).get("classes") if targets is not None else None
        if names:  # one-vs-one numbers them as they appear: folds are those of one-vs-rest, to be compared with them
            targets = np.unique(names, return_inverse=True)[1][targets.astype(np.int64)]
        splits = drawing.splits_of(o, n, groups, targets)
        if task == scoring.CLASSIFICATION:
            everywhere = self.score.name in drawing.ALL_CLASSES
            advice = drawing.FEWER if free else drawing.SPREAD + drawing.OTHER * everywhere
            named = self.class_name, self.samples.weights, advice
            drawing.check_classes(self.samples.targets, splits, everywhere, *named)
        if self.samples.weights is not None:
            drawing.check_weights(self.samples.weights, splits)
        return splits

    def task_options(self, raw) -> dict:
        """Return the options, with the memory for kernel matrices divided among the processes."""
        read = {"penalty_weights": self.data.penalties, "signs": self.data.signs, "groups": self.data.groups}
        o = {**self.options, **{name: values for name, values in read.items() if self.options.get(name) is not None}}
        if self.spec.rows is None:
            return o
        o = load.kernel_options(o, raw)
        if o["max_memory"] is not None:
            return {**o, "matrix_memory": matrix_memory(self.spec, {**o, "folds_at_once": o["jobs"]}, raw, True)}
        return o if o["jobs"] == 1 else {**o, "matrix_memory": free_memory() // 2 // o["jobs"]}

    def class_name(self, target) -> str:
        """Return a class as the file names it."""
        labels = self.data.labels
        label = labels["classes"][int(target)] if "classes" in labels else labels["+1" if target > 0 else "-1"]
        return label if isinstance(label, str) else label_text(label)

    def check_part(self, grid) -> None:
        if self.options["fold_file"] is None and self.options["fold_column"] is None:
            stretch(self.options["part"], self.options["folds"] * self.options["repeats"], "folds")

    def take_part(self) -> None:
        """Keep the whole grid: ``part`` divides the folds."""

    def set_up_walk(self) -> None:
        super().set_up_walk()
        names = [f"cv_{score.column}" for score in (self.score, *self.further)]
        self.cv_columns = [column for name in names for column in (name, f"{name}_se")]
        self.columns = (*self.columns, *self.cv_columns)
        self.columns += tuple(column for name in choice.FITTED if self.options[name] for column in choice.FITTED[name])
        if self.options["certify"] and len(self.grid) < 2:
            raise UsageError("`certify` needs a range of C", "use `grid` with 2 or more points")
        if self.options["gammas"] is not None:
            X, d = self.data.rows.blocks.rows, self.task.options.get("width") or self.data.rows.d
            self.gammas = tune.nearest_first(tune.values_of(self.options["gammas"], d, X), tune.scale_of(X, d))
        if self.options["until_turn"]:
            choice.check_spacing(self.grid, self.path.screening, self.options["rule"], self.spec.default_rule)

    def identity(self) -> dict:
        o = self.options
        return {
            **super().identity(), "folds": self.count, "repeats": len({split.repeat for split in self.drawn}),
            "folds_sha256": drawing.digest_of(self.drawn),
            "score": ",".join(score.name for score in (self.score, *self.further)), **{name: o[name] for name in MORE},
            **({"calibrate": True} if o["calibrate"] else {}), **({} if o["epsilons"] is None else {"epsilon": None}),
        }  # fmt: skip

    # -- the folds --

    def before_walk(self) -> None:
        self.signals.kept = "finished folds and steps are kept"
        self.sink.write_run(self.record(RUNNING))
        self.task = replace(self.task, run=run_key(self.identity()))
        o = self.options
        try:
            cluster: Any = contextlib.nullcontext()
            if o["scheduler"] is not None:
                from screenpath.rows.cluster import tasks_on  # here: others start up without shards

                cluster = tasks_on(o["scheduler"], o["connect_timeout"], self.console.say)
            processes = Processes(self.samples, self.task, o["jobs"])  # for all rounds
            with self.signals.cutting(), self.memory_for_folds(), cluster as self.spread, processes as self.processes:
                self.cross_validate()
        except BaseException as error:
            self.signals.hold()
            late = time.monotonic() > self.deadline
            self.sink.fail(self.record(INTERRUPTED if isinstance(error, Stopped) else TIME_LIMIT if late else FAILED))
            if isinstance(error, Stopped) and self.under_way:
                done = self.finished(*self.under_way)
                if done or not self.sink.replaces:  # else the earlier run gets its place again
                    more = " of the gamma under way, and all before it" if self.options["gammas"] else ""
                    self.console.tell(f"{done} of {len(self.splits)} folds are kept{more}: continue with `resume`")
            raise

    @contextlib.contextmanager
    def memory_for_folds(self):
        """Check the limit for the folds, in turn or in processes; the path's vectors are allocated only after them."""
        limit, o = in_force(), self.options
        if not limit:
            yield
            return
        promised, limit.promised = limit.promised, 0
        one, kept = needs_of_folds(self.samples, self.task, self.splits, len(self.grid))
        if o["scheduler"] or min(o["jobs"], len(self.splits)) == 1:
            hint = "leave out `certify`" if o["certify"] else "use fewer samples"
            limit.check(kept if o["scheduler"] else one + kept, "a fold of the cross-validation", hint)
        else:
            jobs = min(o["jobs"], len(self.splits))
            limit.lend(jobs, one, kept, f"{jobs} processes for the folds", "use fewer `jobs`")
        try:
            yield
        finally:
            limit.promised = promised
            limit.take_back()

    def cross_validate(self) -> None:
        """Walk the folds, or continue those of an earlier run; choose a step, and write the tables."""
        clock = time.monotonic()
        self.certified: ErrorBounds | None = None
        self.rounds = 0
        self.take_first()
        if self.options["gammas"] is None:
            self.folds = self.walk_folds(self.grid, self.options["tol"], self.next_round(), "")
        else:
            self.folds = tune.walk(self)
        self.growth = self.go_on() if self.options["until_turn"] else None
        whole = self.whole_folds
        if not all(fold.rows for fold in self.folds):  # the deadline came first: there is nothing to choose from
            self.folds_certified = False
            return
        if self.options["certify"]:
            self.certify()
        self.folds_certified = whole and all(row["status"] == CERTIFIED for fold in self.folds for row in fold.rows)
        if self.tried is not None:
            self.folds_certified &= all(one.certified for one in self.tried[0])
        self.seconds = time.monotonic() - clock
        self.choice = self.choose()
        self.averages = self.further_scores([one.column for one in self.further])
        self.fitted = [choice.fitted(self.options, self.samples, self.folds, step) for step in range(len(self.grid))]
        self.parameters = [self.model.parameters(parameter) for parameter in self.grid]
        self.boundary = scoring.at_boundary(self.parameters, self.choice.best)
        self.write_tables()

    def take_first(self) -> None:
        """Take the first step of the path on all data, where rows are left unread: folds begin beside its solution."""
        o = self.options
        if self.spec.rows is not None or self.alone is not None or in_force():
            return
        if self.finished(self.grid, o["tol"], self.sink.fold_folder(0)) == len(self.splits):
            return
        found = super().found(None, 0)
        for step, certificate in found:
            self.first = self.grid, itertools.chain([(step, certificate)], found)
            if step.status == CERTIFIED and getattr(certificate, "memory", None) is not None:
                w, intercept, _ = self.original(self.spec.weights(step, self.data.labels))
                self.task = replace(self.task, beside=(step.cells["C"], w, intercept))
            return

    def found(self, reference, first: int):
        grid, taken = self.first or ((), ())
        self.first = None
        same = reference is None and self.begun is None and np.array_equal(grid, self.grid)  # it may have grown
        return taken if same else super().found(reference, first)

    @property
    def count(self) -> int:
        return len({split.fold for split in self.drawn})

    @property
    def whole_folds(self) -> bool:
        return all(len(fold.rows) == len(self.grid) for fold in self.folds)

    def choose(self):
        """Return the choice by the scores so far; nan where a fold has not reached a step."""
        found = scoring.choose(self.fold_scores(), self.score.higher)
        return found if self.tried is None else replace(found, optimism=tune.optimism_of(*self.tried))

    def fold_scores(self) -> np.ndarray:
        scores = np.full((len(self.folds), len(self.grid)), np.nan)
        for row, fold in zip(scores, self.folds, strict=True):
            row[: len(fold.rows)] = [cell["score"] for cell in fold.rows]
        return scores

    def further_scores(self, names: list) -> dict[str, tuple]:
        return choice.further_scores(self.fold_cells(), self.fold_scores(), names)

    def next_round(self):
        """Return the folder of the folds for the next grid: first, longer or finer."""
        folder = self.sink.fold_folder(self.rounds)
        self.rounds += 1
        return folder

    def take_tuned(self, named: dict[str, float]) -> None:
        """Let the path on all data be that of the kernel with this gamma, and of an epsilon that was chosen."""
        rows = self.data.rows.with_gamma(named["gamma"])
        self.options |= {name: value for name, value in named.items() if name == "epsilon"}
        data = replace(self.data, rows=rows, targets=self.samples.targets)
        how = self.path.screening, self.path.solver
        self.path = Path.of(self.spec, self.options, data, self.path.grid, how, self.limits())
        self.model, self.data = self.path.model, replace(data, targets=None)

    def go_on(self) -> dict:
        """Extend the grid until the mean score has turned; return ``until_turn`` of cv.json."""
        o, first = self.options, self.grid

        def has_turned(grid, folds) -> bool:
            self.grid, self.folds = grid, folds
            return not self.whole_folds or choice.turned(self.choose(), self.score.higher)

        def walk(grid, folds) -> list | None:
            folder, late = self.next_round(), time.monotonic() > self.deadline
            if late and self.finished(grid, o["tol"], folder) < len(self.splits):
                return None
            what = ", to " + ", ".join(f"{k} = {v:.3g}" for k, v in self.model.parameters(grid[-1]).items())
            return self.walk_folds(grid, o["tol"], folder, what, folds)

        self.grid, self.folds = choice.grown(
            first, self.folds, o["turn_points"], partial(self.spec.further, o, first), has_turned, walk
        )
        return {
            "added_points": len(self.grid) - len(first),
            "last": self.model.parameters(self.grid[-1]),
            "turned": self.whole_folds and choice.turned(self.choose(), self.score.higher),
        }

    def walk_folds(self, grid, tol: float, folder, what: str, begun=None, splits=None) -> list:
        """Return the paths of all folds over a grid, or of some ``splits``; the console counts them."""
        busy = self.console.busy(f"cv {self.spec.name}", unit=self.counted, total=len(self.splits))
        with busy if splits is None else contextlib.nullcontext():
            found, self.under_way = [], (grid, tol, folder, self.task)
            for fold in fold_paths(
                self.samples, self.task, self.splits if splits is None else splits, grid, tol, self.processes, folder,
                self.spread, begun,
            ):  # fmt: skip
                found.append(fold)
                self.signals.check()
                done = len(fold.rows) == len(grid)  # not where the deadline came before
                self.console.count(int(done), always=done, more=what)
            return found

    def certify(self) -> None:
        """Bound the error at every C of the range; ``--certify-to`` refines the grid."""
        o = self.options
        self.added = 0
        self.cut()
        if len(self.grid) < 2:
            return
        self.certified = ErrorBounds([fold.held_out for fold in self.folds])
        if o["certify_to"] is not None:
            self.added = choice.refine(self.certified, o["certify_to"], o["certify_points"], o["tol"], self.solve_more)
        if self.tuned is not None:
            self.tuned = tune.refined(self.tuned, self.certified, self.added)

    def solve_more(self, points: list, tol: float) -> bool:
        """Solve values of C, new or to a closer ``tol``, for all folds; tell whether there was time for it."""
        folder = self.next_round()
        # Folds that an earlier run has finished count even after the deadline: its path on all data has this grid.
        if time.monotonic() > self.deadline and self.finished(points, tol, folder) < len(self.splits):
            return False
        what = f", {len(points)} values of C to {tol:.0e} (at most {self.certified.difference:.4f} better anywhere)"
        more = self.walk_folds(np.array(points), tol, folder, what)
        self.folds = [fold.merged(other) for fold, other in zip(self.folds, more, strict=True)]
        self.cut()
        self.certified.update([fold.held_out for fold in self.folds], again=points)
        return all(len(fold.rows) == len(points) for fold in more)

    def finished(self, points, tol: float, folder, task=None) -> int:
        return len(finished_paths(self.samples, task or self.task, self.splits, points, tol, folder))

    def cut(self) -> None:
        """Keep the values of C that every fold has reached before the deadline."""
        common = set.intersection(*({line.C for line in fold.held_out.lines} for fold in self.folds))
        self.folds = [fold.only(common) for fold in self.folds]
        self.grid = np.array(sorted(common))

    # -- tables and summary --

    def more_cells(self, step) -> dict:
        if self.choice is None:
            return {}
        pairs = ((self.choice.mean, self.choice.se), *self.averages.values())
        found = dict(zip(self.cv_columns, (one[step.step] for pair in pairs for one in pair), strict=True))
        return found | choice.fitted_cells(self.fitted[step.step])

    def decisions(self, fold) -> np.ndarray:
        """Return the linear forms of a fold's held-out rows at the best step, less the threshold of this step."""
        best = self.choice.best
        return fold.products[best] - (choice.fitted_cells(self.fitted[best]).get("threshold") or 0.0)

    def record(self, status: str) -> dict:
        return {**super().record(status), "folds_certified": self.folds_certified}

    def write_tables(self) -> None:
        """Write cv.csv, folds.csv, cv.json and, with ``--certify``, bounds.csv."""
        names, count = list(self.parameters[0]), len(self.fold_scores())
        self.sink.write_output("cv.csv", choice.scores_text(self.parameters, self.choice, count, self.averages))
        columns = ("repeat", "fold", "step", *names, "score", *self.averages, *COLUMNS)
        self.sink.write_output("folds.csv", csv_text(columns, (map(row.get, columns) for row in self.fold_cells())))
        if self.certified is not None:
            whole = self.certified.denominator
            bounds = [(s.low, s.high, s.lower / whole, s.upper / whole) for s in self.certified.segments]
            self.sink.write_output("bounds.csv", csv_text(("C_from", "C_to", "lower", "upper"), bounds))
        self.written = self.cv_record()
        self.sink.write_output("cv.json", readable_json(self.written) + "\n")
        if self.options["certificate"] and self.whole_folds:
            from screenpath.store.certificates import folds_bytes, header_of  # here: as in `fold_path`

            header = header_of(self.spec.name, self.options, self.data)
            self.sink.write_output(FOLDS_FILE, folds_bytes(header, self.folds))
        if self.options["predictions"] is not None:
            self.predicted.write(choice.predictions_text(self))

    def fold_cells(self) -> list[dict]:
        return [
            {"repeat": fold.split.repeat, "fold": fold.split.fold, "step": k, **row}
            for fold in self.folds
            for k, row in enumerate(fold.rows)
        ]

    def cv_record(self) -> dict:
        o = self.options
        file = (o["fold_file"] or o["fold_column"]) is not None
        return {
            "schema_version": SCHEMA_VERSION, "model": self.spec.name, "data": self.data.path, "score": self.score.name,
            "higher_is_better": self.score.higher, "folds": self.count, "repeats": 1 if file else o["repeats"],
            "stratified": self.stratified, "fold_seed": None if file else o["fold_seed"], "fold_file": o["fold_file"],
            **{name: o[name] for name in ("fold_column", "group_column") if o[name] is not None},
            "fold_sizes": [split.held_out.size for split in self.splits], "baselines": self.baselines(self.score),
            **({"further": {one.column: self.baselines(one) for one in self.further}} if self.further else {}),
            "grid": "one for all folds, made from all data", "n_grid": len(self.grid),
            "parameters": list(self.parameters[0]), "best": self.chosen(self.choice.best),
            "one_se": self.chosen(self.choice.one_se), "confusion": self.confusion(), "at_boundary": self.boundary,
            "until_turn": self.growth, **({} if self.tuned is None else {"tuned": self.tuned}),
            "certified": self.certified_record(), "seconds": self.seconds,
        }  # fmt: skip

    def chosen(self, step: int) -> dict:
        more = {name: asdict(one) for name, one in self.fitted[step].items() if one is not None}
        if "threshold" in more:
            more["threshold"] = {"asked": self.options["threshold"], **more["threshold"]}
        return choice.chosen(self.parameters, self.choice, step, self.averages) | more

    def baselines(self, score: scoring.Score) -> list:
        """Return what each fold would score without any feature; an empty list for R^2."""
        targets, w = self.samples.targets, self.samples.weights
        parts = [(split.training(targets.size), split.held_out) for split in self.splits]
        weights = [(None, None) if w is None else (w[a], w[b]) for a, b in parts]
        found = [scoring.baseline(score, targets[a], targets[b], of) for (a, b), of in zip(parts, weights, strict=True)]
        return [value for value in found if value is not None]

    def confusion(self) -> dict | None:
        """Return the number of held-out rows by label and prediction at the best step; None where none are written."""
        if self.options["predictions"] is None or self.data.labels is None:
            return None
        targets, forms = self.samples.targets, [self.spec.of_each_class(self.decisions(fold)) for fold in self.folds]
        parts = [scoring.confusion(f, targets[fold.split.held_out]) for f, fold in zip(forms, self.folds, strict=True)]
        counts = np.sum(parts, axis=0)
        labels = [self.class_name(k) for k in range(len(self.data.labels.get("classes", ())))]
        return {"labels": labels or [self.class_name(-1), self.class_name(1)], "counts": counts.tolist()}

    def certified_record(self) -> dict | None:
        c = self.certified
        if c is None:
            return None
        target = self.options["certify_to"]
        return {
            **c.record(), "target": target, "reached": None if target is None else c.difference <= target,
            "added_points": self.added,
        }  # fmt: skip

    def summary(self, status: str) -> list:
        if self.choice is None:
            done = sum(len(fold.rows) == len(self.grid) for fold in self.folds)
            more = "not enough to choose a step. What is done is kept: go on with `resume`"
            return [("folds", f"{done} of {len(self.folds)} done, {more}"), *super().summary(status)]
        unmet = choice.unmet_line(self.fold_cells(), len(self.folds) * len(self.grid))
        lines = [] if unmet is None else [("warning", unmet)]
        if self.options["part"] is not None:
            folds = f"{len(self.folds)} of {len(self.drawn)}; the choice is made by screenpath merge"
            return [("folds", folds), *lines, *super().summary(status)]
        record = self.written or self.cv_record()
        lines += choice.found_lines(record)
        if self.choice.one_se != self.choice.best:
            lines.append(("to choose", "predict and export take best; `step=one-se` takes that of one standard error"))
        for step, name, gain in ((self.choice.best, "best", "better"), (self.choice.one_se, "one-se", "simpler")):
            at = scoring.at_boundary(self.parameters, step) or ""
            if at and (name == "best" or step != self.choice.best and at.startswith("C at the lower")):
                more = wider(self.options, self.parameters, step, at)
                lines.append(("warning", f"{name} has {at}: {more} may hold a {gain} one"))
        if self.fitted[self.choice.best].get("threshold", self) is None:
            why = f"no threshold has `threshold={self.options['threshold']}` on the held-out rows of the best step"
            lines.append(("warning", f"{why}: decisions above 0 are +1"))
        if record["certified"] is not None and record["certified"]["reached"] is False:
            missed = f"`certify_to={record['certified']['target']:g}` was not reached, {self.added} points added"
            lines.append(("warning", missed))
        return [*lines, *super().summary(status)]
