"""A process that has loaded everything and forks a command for each line it reads: what can be killed quickly.

Reads JSON lines {"argv": [...], "after": seconds or null, "signal": number}; the forked command gets the signal when
the time is over. Answers with a JSON line {"status": ..., "seconds": ...}, the status as `subprocess` has it.
"""

import json
import os
import sys
import time

from screenpath import convert
from screenpath.cli.app import THREAD_VARIABLES, run
from screenpath.write import folder


def command(argv) -> None:
    """Run a command line in this process and end it."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os._exit(run(argv))


def answer(request) -> dict:
    """Fork a command and wait for its end, its time or both."""
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        command(request["argv"])
    if request["after"] is not None:
        time.sleep(request["after"])
        os.kill(pid, request["signal"])  # not waited for yet, so the process is there
    _, status = os.waitpid(pid, 0)
    return {"status": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - began}


def main() -> None:
    """Serve requests until the input ends."""
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")
    folder.EVERY = 0.0  # a checkpoint a step: something to continue from
    convert.BLOCK = 1 << 11  # many shards from a small file
    for argv in json.loads(sys.argv[1]):  # loads modules and kernels; must come before the first fork
        code = run(argv)
        assert code == 0, (argv, code)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
