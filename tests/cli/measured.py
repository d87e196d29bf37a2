"""Watching what memory commands take, and a process that forks commands to be watched.

Private memory is all that is not pages of files, which the system can drop: interpreter, libraries and compiled code
count as far as they are not their files' pages.

As a script: loads everything that the commands of its argument (a JSON list of lists) need, then forks a command for
each line that it reads (a JSON list) and answers with a JSON line {"code": ..., "peak": ..., "err": ...}.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import runpy
import sys
import tempfile
import time
from pathlib import Path

EVERY = 0.02  # seconds between two looks
look = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "scaling" / "measure.py"))["look"]


def family(pid: int) -> list:
    """Return a process and all that descend from it."""
    try:
        children = " ".join(file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children"))
    except (FileNotFoundError, ProcessLookupError):
        children = ""
    return [pid, *(one for child in children.split() for one in family(int(child)))]


def watch(pid: int) -> tuple[int, int]:
    """Wait for the end of a child process; return its exit code and the largest private memory that was seen.

    Of it and its descendants, from ``/proc/PID/smaps_rollup``.
    """
    peak = done = status = 0
    while not done:
        peak = max(peak, sum(look(one)[0] for one in family(pid)))
        time.sleep(EVERY)
        done, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status), peak


def highest() -> int:
    """Return the largest private memory of this process so far; less, where files were mapped that are no more."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.endswith("kB")}
    return sizes["VmHWM"] - sizes["RssFile"]


def command(argv: list, err, found) -> None:
    from screenpath.cli.app import run

    null = os.open(os.devnull, os.O_RDWR)
    for descriptor, target in enumerate((null, null, err.fileno())):
        os.dup2(target, descriptor)
    code = run(argv)
    found.write(str(highest()))
    found.flush()
    os._exit(code)


def answer(argv: list) -> dict:
    with tempfile.TemporaryFile("w+") as err, tempfile.TemporaryFile("w+") as found:
        pid = os.fork()
        if pid == 0:
            command(argv, err, found)
        code, peak = watch(pid)
        err.seek(0)
        found.seek(0)
        maps = any(one.endswith((".shards", ".cache")) for one in argv)
        last = 0 if maps else int(found.read() or 0)  # it sees what is too short to be looked at
        return {"code": code, "peak": max(peak, last), "err": err.read()}


def main() -> None:
    from screenpath.cli.app import run

    for argv in json.loads(sys.argv[1]):
        code = run(argv)
        assert code in (0, 3), (argv, code)
    gc.collect()  # commands are not to find free memory that these have left
    if sys.platform == "linux":
        getattr(ctypes.CDLL(None), "malloc_trim", int)(0)  # the C library of GNU has it
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
