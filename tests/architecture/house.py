"""Commands of a changed copy of the package, all of a test in one process."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

from tests.cli.conftest import Result
from tests.conftest import HANGS

# What a command writes ends with a separator; its exit code stands behind that of stdout.
COMMANDS = """
import json, sys
from screenpath.cli.app import run
for words in json.loads(sys.argv[1]):
    code = run(words)
    sys.stdout.flush()
    print(f"\\x1e{code}\\x1e", end="", flush=True)
    print("\\x1e", end="", file=sys.stderr, flush=True)
"""


def commands(folder, *lines: str, script: str = "") -> list[Result]:
    """Run command lines of the copy in a folder, then a script, and return what the commands gave."""
    words = json.dumps([shlex.split(line) for line in lines])
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS + script, words],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=HANGS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    out, err = done.stdout.split("\x1e"), done.stderr.split("\x1e")
    return [Result(int(code), *texts) for code, *texts in zip(out[1::2], out[::2], err, strict=False)]
