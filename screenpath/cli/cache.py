"""``screenpath cache``: the compiled kernels; ``screenpath info``: versions, machine, and where kernels are kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from screenpath.cli.help import Suggesting, helped
from screenpath.cli.options import say
from screenpath.errors import UsageError, shown, tell


@click.group(
    "cache", cls=Suggesting, no_args_is_help=False,
    examples=("screenpath cache warm", "screenpath cache warm parse newton compiled"),
)  # fmt: skip
def cache():
    """Compile the numerical kernels ahead of time.

    They are stored in NUMBA_CACHE_DIR if it is set, else in the user's cache folder; screenpath info shows where. A
    copy of that folder serves other machines of this kind (containers, nodes of a cluster): the same version of
    screenpath, numba and Python, the same kind of processor. It may be removed at any time.
    """


@helped("warm", "screenpath cache warm", "screenpath cache warm parse newton compiled", group=cache)
@click.argument("modules", metavar="[MODULE]...", nargs=-1)
def warm(modules):
    """Compile all kernels now, so that later runs need not (on a cluster: once, before the jobs).

    Names of modules (parse, compiled, smo, ...) select these alone. Up to four processors compile; the time of a module
    is what was left to do for it.
    """
    from screenpath.compile.cache import cache_folder
    from screenpath.kernels import compilation

    unknown = set(modules) - set(known := compilation.kernel_modules())
    if unknown:
        raise UsageError(f"{sorted(unknown)[0]!r} is not a kernel module", f"the modules are {', '.join(known)}")
    names = modules or tuple(known)
    compilation.on_first_compile(lambda: compilation.start_helpers(names))
    try:
        done = compilation.ensure_compiled(*names)
    finally:
        compilation.on_first_compile(None)
        compilation.stop_helpers()
    for name, seconds in done:
        tell(f"{name:<12} {seconds:6.2f} s")
    tell(f"compiled kernels are kept in {cache_folder() or 'no folder: none can be written to'}")


KEPT = "*/*.kernel"  # the kernels of every version, below the folder of the cache


def facts() -> dict:
    """Return versions, machine, and the folder of compiled kernels with its size, without importing numba."""
    from screenpath.compile.sharing import user_cache
    from screenpath.data.words.tables import circumstances, versions

    machine, named = circumstances()["machine"], os.environ.get("NUMBA_CACHE_DIR")
    try:
        folder = Path(named).absolute() / "screenpath" if named else user_cache()
        kernels = [file.stat().st_size for file in folder.glob(KEPT)]
        writable = os.access(next(one for one in (folder, *folder.parents) if one.exists()), os.W_OK)
    except OSError:  # no home folder
        folder, kernels, writable = None, [], False
    cache = {
        "folder": None if folder is None else str(folder), "writable": writable,
        "kernels": len(kernels), "bytes": sum(kernels),
    }  # fmt: skip
    names = ("system", "architecture", "processors", "processors_allowed")
    machine = {"processor": _processor() or machine["architecture"], **{name: machine[name] for name in names}}
    return {"schema_version": 1, "versions": versions(), "machine": machine, "cache": cache}


def _processor() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


@helped("info", "screenpath info", "screenpath info --json")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def info(as_json):
    """Show the versions of screenpath and its libraries, the machine, and the folder of compiled kernels.

    Add it to a report of an error. screenpath --version --json prints the same as JSON.
    """
    found = facts()
    if as_json:
        say(f"{json.dumps(found, indent=1)}\n")
        return
    machine, cache = found["machine"], found["cache"]
    allowed = f"{machine['processors_allowed']} of {machine['processors']} processors: up to that many --threads help"
    kept = f"{cache['folder'] or 'no home folder'}: {cache['kernels']:,} kernels, {cache['bytes'] / 1e6:.1f} MB"
    lines = {
        **found["versions"], "system": f"{machine['system']}, {machine['architecture']}",
        "processor": machine["processor"], "threads": allowed,
        "cache": kept if cache["writable"] else f"{kept}; nothing can be written there: set NUMBA_CACHE_DIR",
    }  # fmt: skip
    say("".join(f"{name:<12}{shown(str(text))}\n" for name, text in lines.items()))
