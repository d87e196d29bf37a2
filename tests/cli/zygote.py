"""A process that has loaded everything and forks a command for each line it reads: what can be killed quickly.

Reads JSON lines {"argv": [...], "after": seconds or null, "signal": number, "whom": "process", "group" or "worker"};
when the time is over the signal goes to the forked command, to it and its worker processes, or to one of these. Answers
with a JSON line {"status": ..., "seconds": ...}, the status as `subprocess` has it, once the command's worker processes
have ended too: forked ones inherit the lock of its folder, which spawned ones do not.
"""

import contextlib
import ctypes
import json
import os
import sys
import time
from pathlib import Path

from screenpath.cli import THREAD_VARIABLES
from screenpath.cli.app import run
from screenpath.cv import saved
from screenpath.data import convert
from screenpath.runs import folder
from screenpath.walk import workers as parallel

PR_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>


def command(argv) -> None:
    """Run a command line in this process, the first of a group, and end it."""
    os.setpgid(0, 0)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os._exit(run(argv))


def workers(pid: int) -> list:
    """Return the worker processes of a command."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def kill(pid: int, number: int, whom: str) -> None:
    """Send a signal, if there is somebody to get it; the command is not waited for yet, so its number is its own."""
    if whom == "group":
        os.killpg(pid, number)
    elif whom == "process":
        os.kill(pid, number)
    else:
        with contextlib.suppress(ProcessLookupError):
            for worker in workers(pid)[-1:]:
                os.kill(worker, number)


def answer(request) -> dict:
    """Fork a command and wait for its end, its time or both."""
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        command(request["argv"])
    with contextlib.suppress(PermissionError):  # it has done so itself and gone on
        os.setpgid(pid, pid)
    if request["after"] is not None:
        time.sleep(request["after"])
        kill(pid, request["signal"], request["whom"])
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(ChildProcessError):  # no more of its group: orphans are this process's children
        while True:
            os.waitpid(-pid, 0)
    return {"status": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - began}


def main() -> None:
    """Serve requests until the input ends."""
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")
    folder.EVERY = saved.EVERY = 0.0  # a checkpoint a step: something to continue from
    saved.SHARE = 1e9
    parallel.START = "fork"  # workers that have everything loaded
    convert.BLOCK = 1 << 11  # many shards from a small file
    for argv in json.loads(sys.argv[1]):  # loads modules and kernels; must come before the first fork
        code = run(argv)
        assert code == 0, (argv, code)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
