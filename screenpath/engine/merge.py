"""Runs of the tasks of a job array, put together: the run folder of one run, or the reason why they make none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from screenpath.data.words.tables import dump_json
from screenpath.data.words.timestamp import now
from screenpath.engine.circumstances import circumstances, versions
from screenpath.errors import RunFolderError, UsageError
from screenpath.store.folder import RunFolder
from screenpath.store.open import Run, lost_coefficients, open_run
from screenpath.store.outputs import refuse_inputs
from screenpath.store.parts import numbers_of
from screenpath.store.record import COMPLETE, RUNNING
from screenpath.store.step_table import WORDS

# Options whose values are grid points, each of which can be a run of its own, and whether the walk goes down them.
LISTS = {"c_list": False, "lambda_list": True, "beta": True}
SUMMED = ("steps_done", "certified", "unsafe", "epochs", "passes")
TOGETHER = "screenpath runs compares runs of different problems side by side"


@dataclass(frozen=True)
class Plan:
    """What the merged run is made of."""

    runs: list[Run]  # in the order of the parts
    rows: list  # list of (Run, dict): steps in the order of the grid, and where each comes from
    changed: dict  # options of the merged run that are not those of its parts
    counted: list[Run]  # those whose steps count in the totals


def open_parts(folders) -> list[Run]:
    """Return the runs of several folders, two or more, all of them complete."""
    runs = [open_run(folder) for folder in folders]
    if len(runs) < 2:
        raise UsageError("there is nothing to put together", "name the folders of two or more runs")
    for run in runs:
        if run.record["status"] != COMPLETE:
            raise UsageError(
                f"{run.path} is not complete ({run.record['status']}): {len(run.steps)} of "
                f"{run.record['totals']['n_steps']} steps",
                "repeat its command with `resume` first",
            )
        if run.record["options"].get("certificate"):
            raise UsageError(
                f"{run.path} has a certificate, which is of that run alone", "compute the parts without `certificate`"
            )
        lost = lost_coefficients(run.path, run.record)
        if lost:  # its steps would be there without their weights
            raise RunFolderError(f"{run.path} has lost its {lost}", "compute it again with `force`")
    return runs


def check_alike(runs: list, but: tuple) -> None:
    """Make sure that runs differ in nothing that decides their numbers, but for the options that may."""
    first = runs[0]
    for run in runs[1:]:
        a, b = first.record["identity"], run.record["identity"]
        names = [name for name in {**a, **b} if name not in but and a.get(name) != b.get(name)]
        if run.record["columns"] != first.record["columns"] and not names:
            names = ["columns"]
            a, b = first.record, run.record
        if names:
            apart = "; ".join(f"{name} is {_short(a.get(name))} and {_short(b.get(name))}" for name in names)
            raise UsageError(f"{first.path} and {run.path} are not parts of one run: {apart}", TOGETHER)


def in_order(runs: list) -> list:
    """Return the runs of ``part=1/K`` to ``part=K/K`` in their order, each there once."""
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


def plan_of(runs: list) -> Plan:
    """Return how runs of paths, which must be parts of one, are put together."""
    parts = [run.record["options"].get("part") for run in runs]
    if all(parts):
        runs = in_order(runs)
        check_alike(runs, ("part",))
        return Plan(runs, [(run, row) for run in runs for row in run.table], {"part": None}, runs)
    if any(parts):
        alone = runs[parts.index(None)]
        raise UsageError(f"{alone.path} is a whole run, the others are parts", TOGETHER)
    names = [name for name in LISTS if all(run.record["options"].get(name) for run in runs)]
    check_alike(runs, tuple(names))
    if not names:
        raise UsageError(
            f"{runs[0].path} and {runs[1].path} are the same run twice",
            "give each its values of the grid (`c_list`, `lambda_list`, `beta`), or its `part=I/K`",
        )
    name = names[0]
    values = sorted((value for run in runs for value in run.record["options"][name]), reverse=LISTS[name])
    twice = [a for a, b in zip(values, values[1:], strict=False) if a == b]
    if twice:
        raise UsageError(f"{name} = {twice[0]:g} is in two of the runs", "leave one of them out")
    key = "beta" if name == "beta" else runs[0].parameters[0]
    rows = [(run, row) for run in runs for row in run.table]
    rows.sort(key=lambda pair: -pair[1][key] if LISTS[name] else pair[1][key])  # the sort is stable: rows of a beta
    return Plan(runs, rows, {name: values}, runs)


def merge_paths(runs: list, out, force: bool, command: list) -> Path:
    """Write the run folder of several runs that are parts of one; see :func:`plan_of`."""
    plan = plan_of(runs)
    rows = [(run, row, {**row, "step": k}) for k, (run, row) in enumerate(plan.rows)]
    write(plan, rows, out, force, command)
    return Path(out)


def write(plan: Plan, rows: list, out, force: bool, command: list, more=None, outputs=()) -> None:
    """Write a run folder of stored steps, each given by the run and row that it comes from, and its row here.

    ``more`` are further entries of run.json, ``outputs`` names and texts of further files.
    """
    out, first = Path(out), plan.runs[0]
    refuse_inputs(out, [str(run.path) for run in plan.runs])
    options = {**first.record["options"], **plan.changed, "out": str(out), "force": force}
    folder = RunFolder(out, options["format"], options["coefficients"])
    try:
        previous = folder.previous(replace=force)
        if previous is not None and not force:
            folder.refuse(previous)
        if force:
            folder.clear()
        record = merged_record(plan, [row for *_, row in rows], options, command)
        folder.write_run({**record, "status": RUNNING, **(more or {})})
        features = first.width
        folder.open(record["columns"], features, None, first.classes, first.unit, None, first.feature_names)
        for run, stored, row in rows:
            # A reader has None for an empty word, a run of its own the word.
            row = {name: "" if value is None and name in WORDS else value for name, value in row.items()}
            folder.add_sparse(row, [] if run.stored is None else run.sparse_coefficients(stored["step"]))
        for name, text in outputs:
            folder.write_output(name, text)
        folder.finish({**record, **(more or {}), "ended": now()}, ())
    finally:
        folder.close()


def merged_record(plan: Plan, table: list, options: dict, command: list) -> dict:
    """Return run.json of a merged run: that of one run, and in ``merged`` what it was put together from."""
    first = plan.runs[0].record
    identity = {**first["identity"], **plan.changed}
    parameters = [{name: row[name] for name in first["parameters"]} for row in (table[0], table[-1])]
    origins = [
        {"run": str(run.path), **{k: run.record.get(k) for k in ("command", "machine", "started", "ended", "sha256")}}
        for run in plan.runs
    ]
    return {
        **{name: value for name, value in first.items() if name not in ("files", "sha256")},
        "status": COMPLETE,
        "command": command,
        **circumstances(),
        "started": min(str(run.record.get("started")) for run in plan.runs),
        "versions": versions(),
        "options": options,
        "identity": identity,
        "grid": {"points": len(table), "first": parameters[0], "last": parameters[1]},
        "totals": totals(plan.counted, table),
        "merged": origins,
    }


def totals(runs: list, table: list) -> dict:
    """Return the totals of all steps of a table; the seconds are those of all runs together."""
    parts = [run.record["totals"] for run in runs]
    found = {"n_steps": len(table), **{name: sum(part[name] for part in parts) for name in SUMMED}}
    unaudited = sum(part.get("unaudited", 0) for part in parts)
    found.update({"unaudited": unaudited} if unaudited else {})
    found["mean_rejection_ratio"] = sum(row["rejection_ratio"] or 0.0 for row in table) / len(table)
    gaps = [part["worst_rel_gap"] for part in parts]
    found["worst_rel_gap"] = None if None in gaps else max(gaps)
    phases = parts[0]["seconds"]
    return {**found, "seconds": {phase: sum(part["seconds"][phase] for part in parts) for phase in phases}}


def _short(value) -> str:
    text = dump_json(value)
    return text if len(text) <= 60 else text[:57] + "..."
