"""Merge the runs of a job array into the run folder of one run, or say why they are not parts of one.

Parts of a path have some of its steps each; parts of a cross-validation have some of its folds, and the path on all
data.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from screenpath.catalogue.scores import at_boundary, choose
from screenpath.cv.choice import chosen, further_scores, scores_text
from screenpath.data.words.tables import circumstances, now, readable_json, short_json, versions
from screenpath.engine.options import numbers_of
from screenpath.errors import RunFolderError, UsageError
from screenpath.problem.between import Range, Solved
from screenpath.store.certificates import merged_folds, merged_steps
from screenpath.store.coefficients import stored_weights
from screenpath.store.folder import RunFolder
from screenpath.store.open import Run, lost_coefficients, open_run
from screenpath.store.outputs import refuse_inputs
from screenpath.store.record import COMPLETE, FOLDS_FILE, ROWS_FILE, RUNNING, WORDS, damaged, read_record
from screenpath.verify.file import NAME

# Options that list grid points, which runs may divide among them, and whether the walk takes them in falling order.
LISTS = {"c_list": False, "lambda_list": True, "beta": True}
SUMMED = ("steps_done", "certified", "unsafe", "epochs", "passes")
TOGETHER = "screenpath runs compares runs of different problems side by side"


@dataclass(frozen=True)
class Plan:
    """The parts of a merged run, and what its folder holds."""

    runs: list[Run]  # in the order of the parts
    rows: list  # of (Run, dict, dict): run of each step, its row there, its row here
    changed: dict  # options in which the merged run differs from its parts
    more: dict = field(default_factory=dict)  # further entries of run.json
    outputs: tuple = ()  # names and texts of further files


def merge_runs(folders, out, force: bool = False, command=("screenpath.merge_runs",)) -> dict:
    """Merge the runs in ``folders``, parts of one, into the run folder ``out``; return the run.json that was written.

    They are ``part=1/K`` to ``part=K/K`` of a path or of a cross-validation, or differ in the values of their grid
    alone. ``command`` is for run.json. A :class:`UsageError` says what does not fit, a :class:`RunFolderError` which
    folder is damaged, or that there is a run in ``out`` already.
    """
    runs = open_parts(folders)
    validated = [run.has("cv.json") for run in runs]
    if any(validated) and not all(validated):
        raise UsageError("some of the runs are cross-validations, the others are paths", TOGETHER)
    _write(plan_of_folds(runs) if all(validated) else plan_of_paths(runs), Path(out), force, list(command))
    return read_record(Path(out))


def open_parts(folders) -> list[Run]:
    runs = [open_run(folder) for folder in folders]
    if len(runs) < 2:
        raise UsageError("there is nothing to merge", "name the folders of two or more runs")
    for run in runs:
        if run.record["status"] != COMPLETE:
            raise UsageError(
                f"{run.path} is not complete ({run.record['status']}): {len(run.steps)} of "
                f"{run.record['totals']['n_steps']} steps",
                "repeat its command with `resume` first",
            )
        lost = lost_coefficients(run.path, run.record)
        if lost:  # steps without their weights
            raise RunFolderError(f"{run.path} has lost its {lost}", "compute it again with `force`")
    return runs


def check_alike(runs: list, but: tuple) -> None:
    """Refuse runs that differ in anything that decides their numbers, except the options ``but``."""
    first = runs[0]
    for run in runs[1:]:
        a, b = first.record["identity"], run.record["identity"]
        names = [name for name in {**a, **b} if name not in but and a.get(name) != b.get(name)]
        if run.record["columns"] != first.record["columns"] and not names:
            names = ["columns"]
            a, b = first.record, run.record
        if names:
            apart = "; ".join(f"{name} is {short_json(a.get(name))} and {short_json(b.get(name))}" for name in names)
            raise UsageError(f"{first.path} and {run.path} are not parts of one run: {apart}", TOGETHER)


def in_order(runs: list) -> list:
    """Return the runs of ``part=1/K`` to ``part=K/K`` in order; each must be there exactly once."""
    found: dict[int, Run] = {}
    parts = [numbers_of(run.record["options"]["part"]) for run in runs]
    count = parts[0][1]
    for run, (number, of) in zip(runs, parts, strict=True):
        if of != count:
            raise UsageError(f"{run.path} is part {number}/{of}, {runs[0].path} part {parts[0][0]}/{count}", TOGETHER)
        if number in found:
            raise UsageError(f"{run.path} and {found[number].path} are both part {number}/{count}", "leave one out")
        found[number] = run
    lost = [str(number) for number in range(1, count + 1) if number not in found]
    if lost:
        which = f"part {lost[0]} of {count} is" if len(lost) == 1 else f"parts {', '.join(lost)} of {count} are"
        raise UsageError(f"{which} missing", f"compute it with `part={lost[0]}/{count}`, or name its folder too")
    return [found[number] for number in sorted(found)]


def plan_of_paths(runs: list) -> Plan:
    """Return the plan of a merge of paths; a UsageError where they are not parts of one run."""
    parts = [run.record["options"].get("part") for run in runs]
    if all(parts):
        runs = in_order(runs)
        check_alike(runs, ("part",))
        return Plan(runs, _numbered([(run, row) for run in runs for row in run.table]), {"part": None})
    if any(parts):
        alone = runs[parts.index(None)]
        raise UsageError(f"{alone.path} is a whole run, the others are parts", TOGETHER)
    names = [name for name in LISTS if all(run.record["options"].get(name) for run in runs)]
    check_alike(runs, tuple(names))
    if not names:
        what = f"{runs[0].path} and {runs[1].path} are the same run twice"
        raise UsageError(what, "give each its values of the grid (`c_list`, `lambda_list`, `beta`), or its `part=I/K`")
    name = names[0]
    values = sorted((value for run in runs for value in run.record["options"][name]), reverse=LISTS[name])
    twice = [a for a, b in zip(values, values[1:], strict=False) if a == b]
    if twice:
        raise UsageError(f"{name} = {twice[0]:g} is in two of the runs", "leave one of them out")
    key = "beta" if name == "beta" else runs[0].parameters[0]
    rows = [(run, row) for run in runs for row in run.table]
    rows.sort(key=lambda pair: -pair[1][key] if LISTS[name] else pair[1][key])  # the sort is stable: rows of a beta
    return Plan(runs, _numbered(rows), {name: values})


def _numbered(rows: list) -> list:
    return [(run, row, {**row, "step": k}) for k, (run, row) in enumerate(rows)]


def plan_of_folds(runs: list) -> Plan:
    """Return the plan of a cross-validation over all folds, with the path on all data of the first part."""
    if not all(run.record["options"].get("part") for run in runs):
        raise UsageError("cross-validations are merged from parts of their folds", "compute them with `part=I/K`")
    runs = in_order(runs)
    check_alike(runs, ("part",))
    records = [json.loads((run.path / "cv.json").read_text("utf-8")) for run in runs]
    tables = [(run.path / "folds.csv").read_text("utf-8").splitlines(keepends=True) for run in runs]
    folds = [tables[0][0], *(line for table in tables for line in table[1:])]
    first = runs[0]
    parameters = [{name: row[name] for name in first.parameters} for row in first.table]
    scores, further = _scores(first, folds, len(parameters)), records[0].get("further", {})
    choice = choose(scores, records[0]["higher_is_better"])
    averages = further_scores(list(csv.DictReader(folds)), scores, further)
    columns = {first.score_column: (choice.mean, choice.se), **{f"cv_{name}": one for name, one in averages.items()}}
    rows = []
    for k, row in enumerate(first.table):
        cells = {name: {name: mean[k], f"{name}_se": se[k]} for name, (mean, se) in columns.items()}
        rows.append((first, row, row | {key: value for one in cells.values() for key, value in one.items()}))
    whole = {
        **records[0], **{name: _joined(name, records) for name in ("fold_sizes", "baselines")},
        **({"further": {one: _joined(one, [r["further"] for r in records]) for one in further}} if further else {}),
        "best": chosen(parameters, choice, choice.best, averages),
        "one_se": chosen(parameters, choice, choice.one_se, averages),
        "at_boundary": at_boundary(parameters, choice.best), "seconds": sum(record["seconds"] for record in records),
    }  # fmt: skip
    outputs = (
        ("cv.csv", scores_text(parameters, choice, len(whole["fold_sizes"]), averages)),
        ("folds.csv", "".join(folds)),
        ("cv.json", readable_json(whole) + "\n"),
    )
    more = {name: first.record[name] for name in ("totals", "between") if name in first.record}  # one path in all parts
    more["folds_certified"] = all(run.record["folds_certified"] for run in runs)
    return Plan(runs, rows, {"part": None}, more, outputs)


def _joined(name: str, records: list) -> list:
    return [one for record in records for one in record[name]]


def _scores(run, folds: list, steps: int) -> np.ndarray:
    """Return the scores, shape (folds, steps); nan for steps that a fold did not reach."""
    found: dict[tuple, np.ndarray] = {}
    for row in csv.DictReader(folds):
        scores = found.setdefault((row["repeat"], row["fold"]), np.full(steps, np.nan))
        if not 0 <= int(row["step"]) < steps:
            raise damaged(run.path / "folds.csv", "it has steps that the path has not")
        scores[int(row["step"])] = float(row["score"])
    return np.array(list(found.values()))


def _write(plan: Plan, out: Path, force: bool, command: list) -> None:
    first = plan.runs[0]
    refuse_inputs(out, [str(run.path) for run in plan.runs])
    options = {**first.record["options"], **plan.changed, "out": str(out), "force": force}
    folder = RunFolder(out, options["format"], options["coefficients"])
    folder.whole_only = True
    try:
        previous = folder.previous(replace=force)
        if previous is not None:
            folder.refuse(previous)
        if force:
            folder.clear()
        record = _record(plan, options, command)
        folder.write_run({**record, "status": RUNNING})
        folder.open(record["columns"], replace(first.layout, numbers=None))  # stored steps name them already
        for run, stored, row in plan.rows:
            # Reading turns an empty text into None; a run writes the empty text.
            row = {name: "" if value is None and name in WORDS else value for name, value in row.items()}
            folder.add_sparse(row, [] if run.stored is None else run.sparse_coefficients(stored["step"]))
        proofs = []  # the certificates of the parts put together
        if options.get("certificate"):
            proofs.append((NAME, merged_steps([(run.path, stored["step"]) for run, stored, _ in plan.rows])))
        if proofs and all(run.has(FOLDS_FILE) for run in plan.runs):
            proofs.append((FOLDS_FILE, merged_folds([run.path for run in plan.runs])))
        for name, text in (*plan.outputs, *proofs):
            folder.write_output(name, text)
        if first.has(ROWS_FILE):  # the same in every part
            folder.write_output(ROWS_FILE, (first.path / ROWS_FILE).read_bytes())
        folder.finish({**record, "ended": now()}, ())
    finally:
        folder.close()


def _record(plan: Plan, options: dict, command: list) -> dict:
    """Return run.json of a merged run: that of its first part, and in ``merged`` the origin of every part."""
    first, table = plan.runs[0].record, [row for *_, row in plan.rows]
    identity = {**first["identity"], **plan.changed}
    parameters = [{name: row[name] for name in first["parameters"]} for row in (table[0], table[-1])]
    origins = [
        {"run": str(run.path), **{k: run.record.get(k) for k in ("command", "machine", "started", "ended", "sha256")}}
        for run in plan.runs
    ]
    return {
        **{name: value for name, value in first.items() if name not in ("files", "sha256", "between")},
        **_between(plan.rows).record(), "status": COMPLETE, "command": command, **circumstances(),
        "started": min(str(run.record.get("started")) for run in plan.runs), "versions": versions(), "options": options,
        "identity": identity, "grid": {"points": len(table), "first": parameters[0], "last": parameters[1]},
        "totals": _totals(plan.runs, table), "merged": origins, **plan.more,
    }  # fmt: skip


def _between(rows: list) -> Range:
    """Return what is proven at every C between the steps of a linear path."""
    found = Range()
    for run, stored, _ in rows:
        if run.parameters != ["C"] or run.kernel or run.stored is None:
            return Range()
        if stored["primal"] is not None:
            run.matrix  # noqa: B018  # kept: one step alone would be read as slowly as all
            w, off = stored_weights(run, *run.coefficients(stored))
            found.add(Solved(stored["C"], stored["primal"], stored["dual"], stored["gap"], w, off))
    return found


def _totals(runs: list, table: list) -> dict:
    parts = [run.record["totals"] for run in runs]
    found = {"n_steps": len(table), **{name: sum(part[name] for part in parts) for name in SUMMED}}
    unaudited = sum(part.get("unaudited", 0) for part in parts)
    found.update({"unaudited": unaudited} if unaudited else {})
    found["mean_rejection_ratio"] = sum(row["rejection_ratio"] or 0.0 for row in table) / len(table)
    gaps = [part["worst_rel_gap"] for part in parts]
    found["worst_rel_gap"] = None if None in gaps else max(gaps)
    if all("cpu_seconds" in part for part in parts):
        found["cpu_seconds"] = sum(part["cpu_seconds"] for part in parts)
    phases = parts[0]["seconds"]
    return {**found, "seconds": {phase: sum(part["seconds"][phase] for part in parts) for phase in phases}}
