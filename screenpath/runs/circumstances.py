"""Where and with what a run is computed, for run.json: nothing of it decides a number."""

from __future__ import annotations

import os

from screenpath import __version__


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
