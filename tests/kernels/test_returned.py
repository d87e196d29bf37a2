"""What a kernel returns is made while a signal waits, too."""

import os
import subprocess
import sys

import pytest
from numba import config

from tests.conftest import HANGS

SCRIPT = """
import signal
from typing import NamedTuple
import numpy as np
from numba import njit
import screenpath.kernels

class Known(NamedTuple):
    rows: np.ndarray

@njit(nogil=True)
def slow(n):
    total = np.zeros(1)
    for k in range(n):
        total[0] += np.sin(k)
    return Known(total)

def stop(number, frame):
    raise KeyboardInterrupt

screenpath.kernels.prepare()
slow(1)  # asks for the classes, once
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    while True:
        slow(10_000_000)
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.skipif(config.DISABLE_JIT, reason="plain Python has no classes to ask for")
def test_a_signal_within_a_kernel_that_returns_a_named_tuple():
    found = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=HANGS)
    assert (found.returncode, found.stdout) == (0, "stopped\n"), found.stderr


PATHS = """
import signal
import numpy as np
import scipy.sparse as sp
import screenpath

X = sp.random_array((400, 3000), density=0.01, rng=np.random.default_rng(0), format="csr")
y = np.where(X @ np.random.default_rng(1).normal(size=3000) > 0.0, 1.0, -1.0)

def stop(number, frame):
    raise KeyboardInterrupt

for _ in range(2):  # nothing is left to compile, then
    screenpath.svm_path(X, y, grid=30)
signal.signal(signal.SIGALRM, stop)
ends = set()
for k in range(20):
    signal.setitimer(signal.ITIMER_REAL, 0.004 + 0.001 * k)
    try:
        while True:
            screenpath.svm_path(X, y, grid=30)
    except BaseException as error:
        ends.add(type(error).__name__)
print(*ends)
"""


@pytest.mark.skipif(config.DISABLE_JIT, reason="plain Python has no classes to ask for")
def test_ctrl_c_in_a_path_of_wide_data():
    found = subprocess.run([sys.executable, "-c", PATHS], capture_output=True, text=True, timeout=HANGS)
    assert (found.returncode, found.stdout) == (0, "KeyboardInterrupt\n"), found.stderr


COMPILING = """
import os, signal
from numba.core import event
from screenpath.kernels import kernel

@kernel
def inner(n):
    return n + 1

@kernel
def outer(n):
    return inner(n) + 1

class Stop(event.Listener):
    def on_start(self, event):
        os.kill(os.getpid(), signal.SIGINT)

    def on_end(self, event):
        pass

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    with event.install_listener("numba:compile", Stop()):
        outer(1)
except KeyboardInterrupt:
    print(len(outer.signatures), len(inner.signatures), outer(1))
"""


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_ctrl_c_while_a_kernel_compiles(tmp_path):
    script = tmp_path / "compiling.py"  # numba looks for the source of what it compiles
    script.write_text(COMPILING)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}  # an earlier run's kernels would be loaded
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=HANGS, env=environment)
    assert (found.returncode, found.stdout) == (0, "1 1 3\n"), found.stderr
