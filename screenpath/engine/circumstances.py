"""What run.json says of a session: what it was asked for and has found, and where, when and with what."""

from __future__ import annotations

import os

from screenpath import __version__
from screenpath.data.safe.plugins import Plugin
from screenpath.data.words.tables import finite
from screenpath.data.words.timestamp import now
from screenpath.engine.asked import INPUTS
from screenpath.inputs.reading import ARRAYS
from screenpath.store.record import RUNNING, SCHEMA_VERSION


def circumstances() -> dict:
    """Return where this process is: the machine, its processors (all of them, and those it may use), and the folder."""
    import platform

    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    kind = {"system": f"{platform.system()} {platform.release()}", "architecture": platform.machine()}
    machine = {"name": platform.node(), **kind, "processors": os.cpu_count(), "processors_allowed": allowed}
    return {"machine": machine, "working_directory": os.getcwd()}


def versions() -> dict:
    """Return the versions of everything that computes."""
    import platform
    from importlib.metadata import version

    names = ("numpy", "scipy", "numba")
    return {"screenpath": __version__, "python": platform.python_version(), **{name: version(name) for name in names}}


def record_of(session, status: str) -> dict:
    """Return the content of run.json for a session (:class:`screenpath.engine.session.Session`)."""
    s, o, data, grid = session, session.options, session.data, _grid(session)
    told = s.told = s.told or {
        "data": data.description(), "preparation": data.preparation_record(), "identity": s.identity(),
    }  # fmt: skip
    closed = getattr(s.model, "closed_until", None)
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": "screenpath",
        "status": status,
        "command": s.command,
        **circumstances(),
        "started": s.started,
        **({} if status == RUNNING else {"ended": now()}),
        "model": s.spec.name,
        "objective": s.spec.objective,
        "stopping_rule": "primal - dual <= tol * primal on the full data",
        "versions": versions(),
        "options": {name: _named(o[name], name in INPUTS) for name in sorted(o)},
        "data": told["data"],
        "test": s.test.description() if s.test is not None else None,
        "labels": data.labels,
        "preparation": told["preparation"],
        "kernel": data.rows.describe() if s.spec.rows is not None else None,
        "guarantee": s.guarantee(),
        **({} if closed is None else {"closed_form_until": finite(closed)}),
        "parameters": list(grid["first"]),
        "columns": list(s.columns),
        "identity": told["identity"],
        "grid": grid,
        **({"continued": s.continued} if s.continued else {}),
        "totals": {"n_steps": len(s.grid), **s.tally.record()},
    }


def _grid(session) -> dict:
    """Return the grid that the options became; the step table has all its points."""
    s = session
    first, last = (s.model.parameters(s.grid[k]) for k in (0, len(s.grid) - 1))
    whole = {} if s.options["part"] is None else {"first_of_whole": s.offset, "whole": len(s.whole)}
    return {"points": len(s.grid), "first": first, "last": last, **whole}


def all_good(record: dict) -> bool:
    """Tell whether every step (and fold) is certified, and an audit could check all decisions and found none unsafe."""
    totals = record["totals"]
    good = totals["certified"] == totals["n_steps"] and totals["unsafe"] == 0 and not totals.get("unaudited")
    return bool(good and record.get("folds_certified", True))


def _named(value, is_file: bool):
    """Return an option as run.json has it: a plug-in by its name; arrays in place of a file have none."""
    if isinstance(value, Plugin):
        return str(value)
    return value if value is None or isinstance(value, str) or not is_file else ARRAYS
