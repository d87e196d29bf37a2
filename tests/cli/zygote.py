"""A process that has loaded everything and forks a command for each line it reads: what can be killed quickly.

Reads JSON lines {"argv": [...], "after": seconds or null, "signal": number, "whom": "process", "group" or "worker"};
when the time is over the signal goes to the forked command, to it and its worker processes, or to one of these. Answers
with a JSON line {"status": ..., "seconds": ..., "stderr": ...}, the status as `subprocess` has it, once the command's
worker processes have ended too: forked ones inherit the lock of its folder, which spawned ones do not. A command that
does not end is killed, and its stderr then has the stacks of its processes.
"""

import contextlib
import ctypes
import faulthandler
import json
import math
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from screenpath.cli.app import run
from screenpath.cv import saved
from screenpath.data.shards import convert
from screenpath.store import folder
from screenpath.walk import workers as parallel

PR_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>
HANGS = 1500.0  # seconds after which a command does not end by itself
BEGINS = 3000.0  # and after which the commands that compile have not
ENDS = 600.0  # seconds until threads that were told to end are gone, on a busy machine


def command(argv, stderr: int) -> None:
    os.setpgid(0, 0)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor, stream in enumerate((null, null, stderr)):
        os.dup2(stream, descriptor)
    faulthandler.register(signal.SIGUSR1, stderr, chain=False)
    try:
        code = run(argv)
    except BaseException:
        traceback.print_exc()
        code = 99
    os._exit(code)


def workers(pid: int) -> list:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def over(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"


def kill(pid: int, number: int, whom: str) -> None:
    """Send a signal, if there is somebody to get it; the command is not waited for yet, so its number is its own."""
    if whom == "group":
        os.killpg(pid, number)
    elif whom == "process":
        os.kill(pid, number)
    else:
        while not (there := workers(pid)) and not over(pid):
            time.sleep(0.001)
        with contextlib.suppress(ProcessLookupError):
            for worker in there[-1:]:
                os.kill(worker, number)


def waited(pid: int, until: float) -> int:
    """Return the exit status of a command, once all of its group have ended: orphans are this process's children."""
    status = 0
    with contextlib.suppress(ChildProcessError):  # no more of its group
        while True:
            ended, found = os.waitpid(-pid, os.WNOHANG)
            status = found if ended == pid else status
            if not ended and time.monotonic() > until:
                os.killpg(pid, signal.SIGUSR1)  # its stacks, please
                time.sleep(1.0)
                os.killpg(pid, signal.SIGKILL)
                until = math.inf
            elif not ended:
                time.sleep(0.001)
    return status


def answer(request) -> dict:
    """Fork a command and wait for its end, its time or both."""
    with tempfile.TemporaryFile() as stderr:
        ended = _answer(request, stderr.fileno())
        stderr.seek(0)
        return {**ended, "stderr": stderr.read().decode(errors="replace")}


def _answer(request, stderr: int) -> dict:
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        command(request["argv"], stderr)
    with contextlib.suppress(PermissionError):  # it has done so itself and gone on
        os.setpgid(pid, pid)
    if request["after"] is not None:
        time.sleep(request["after"])
        kill(pid, request["signal"], request["whom"])
    status = waited(pid, began + HANGS)
    return {"status": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - began}


def others(until) -> list:
    """Return the names of all threads but this one; those that have been told to end get until then to be gone."""
    while True:
        tasks = [task for task in os.listdir("/proc/self/task") if int(task) != os.getpid()]
        if not tasks or time.monotonic() > until:
            return [Path(f"/proc/self/task/{task}/comm").read_text().strip() for task in tasks]
        time.sleep(0.05)


def main() -> None:
    folder.EVERY = saved.EVERY = 0.0  # a checkpoint a step: something to continue from
    saved.SHARE = 1e9
    parallel.START = "fork"  # workers that have everything loaded
    convert.BLOCK = 1 << 11  # many shards from a small file
    faulthandler.dump_traceback_later(BEGINS, exit=True)
    for argv in json.loads(sys.argv[1]):  # loads modules and kernels; must come before the first fork
        code = run(argv)
        assert code == 0, (argv, code)
    faulthandler.cancel_dump_traceback_later()
    tasks = others(time.monotonic() + ENDS)
    assert not tasks, f"a process with threads must not fork: a lock may be held for ever ({', '.join(tasks)})"
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
