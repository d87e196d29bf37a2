"""``screenpath cache``: the compiled kernels."""

from __future__ import annotations

import click

from screenpath.errors import tell


@click.group("cache")
def command():
    """Compile the numerical kernels ahead of time, or remove what was compiled.

    They live in NUMBA_CACHE_DIR if that is set, else in the user's cache folder.
    """


@command.command("warm")
def warm():
    """Compile all kernels now, so that no later run has to (on a cluster: once, before the jobs)."""
    from screenpath.kernels.cache import cache_folder
    from screenpath.kernels.compilation import ensure_compiled

    for name, seconds in ensure_compiled():
        tell(f"{name:<12} {seconds:6.2f} s")
    tell(f"compiled kernels are kept in {cache_folder() or 'no folder: none can be written to'}")


@command.command("clear")
def clear():
    """Remove all compiled kernels."""
    from screenpath.kernels.cache import cache_folder, clear_cache

    freed = clear_cache()
    tell(f"removed {freed / 1e6:.1f} MB of compiled kernels beside {cache_folder()}")
