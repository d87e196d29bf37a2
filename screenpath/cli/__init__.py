"""The command line. Few imports, so that Ctrl-C and --time-limit count from the beginning."""

import gc
import io
import os
import signal
import sys
import time

from screenpath.cli.signals import importing

__all__ = ["main"]
BEGAN = time.monotonic()  # what --time-limit counts from

# The numerical libraries must not start threads of their own: the tool's passes are threaded by --threads.
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
INTERRUPTED = 128 + signal.SIGINT
# Objects between garbage collections. Everything made at the start (modules, loaded kernels) is in use: collecting
# every 700 objects, and once more at the end, takes a fifth of a short command.
GARBAGE = 200_000


def main(arguments=None) -> None:
    """Run the command line, ``sys.argv[1:]`` by default, as a process of its own, and exit with its code.

    Commands are imported when called, so that ``--help`` stays quick.
    """
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a process in the background may not
    if listens:
        signal.signal(signal.SIGINT, _interrupted)
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")
    gc.set_threshold(GARBAGE, *gc.get_threshold()[1:])
    _open_closed()
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the terminal cannot show is escaped, as on stderr
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        from screenpath.cli.app import run

        code = run(arguments, BEGAN)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if listens:  # nothing is left to do, and nobody to handle an exception
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    gc.freeze()  # the end of the process frees it all
    sys.exit(code)


def _open_closed() -> None:
    """Replace closed standard streams (``>&-``), so that no other file gets their numbers.

    Reading from them, or writing to stdout, fails as with any closed file. Messages may get lost.
    """
    for name, mode, flags in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8"))


def _interrupted(number, frame) -> None:
    """Handle Ctrl-C outside of a path. During an import an exception would be swallowed, or printed."""
    if importing(frame):
        os._exit(INTERRUPTED)
    raise KeyboardInterrupt
