"""``screenpath cache``: the compiled kernels."""

from __future__ import annotations

import time

import click


@click.group("cache")
def command():
    """Compile the numerical kernels ahead of time, or remove what was compiled.

    They live in NUMBA_CACHE_DIR if that is set, else in the user's cache folder.
    """


@command.command("warm")
def warm():
    """Compile all kernels now, so that no later run has to (on a cluster: once, before the jobs)."""
    from screenpath import kernels

    click.echo(f"compiling into {kernels.cache_folder()} ...", err=True)
    clock = time.perf_counter()
    kernels.warm()
    click.echo(f"done in {time.perf_counter() - clock:.1f} s", err=True)


@command.command("clear")
def clear():
    """Remove all compiled kernels."""
    from screenpath import kernels

    folder = kernels.cache_folder()
    kernels.clear_cache()
    click.echo(f"removed the compiled kernels in {folder}", err=True)
