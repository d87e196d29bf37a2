"""Shared data of the tests: small problems made here, samples of the project, real data where it is present."""

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest

from screenpath.walk import workers
from tests.width import PLAIN, WIDE, narrowed

ROOT = Path(__file__).resolve().parent.parent
HANGS = 3000.0  # seconds after which what a test waits for hangs, however busy the machine and cold the caches

# Worker processes come from one that has loaded what they need, which takes a fresh one half a second (there are fresh
# ones in tests/walk/test_workers.py). Not where lines are counted: a forked process does not tell of its own.
if not any(name.startswith("COVERAGE_") for name in os.environ):
    workers.START = "forkserver"
    multiprocessing.set_forkserver_preload(["screenpath.cv.session", "screenpath.walk.workers"])


def pytest_collection_modifyitems(config, items):
    """Leave out what only a wide, compiled run has, unless a test is asked for by its name."""
    if (WIDE and not PLAIN) or any("::" in word for word in config.args):
        return
    items[:], left = narrowed(items, PLAIN)
    config.hook.pytest_deselected(items=left)


def pytest_terminal_summary(terminalreporter):
    """Say that there is more."""
    if not WIDE:
        terminalreporter.write_line("A narrow run: SCREENPATH_WIDE=1 tries more (tests/width.py).")


@pytest.fixture(scope="session")
def samples() -> Path:
    """Return the folder of sample data that ships with the project."""
    return ROOT / "data_samples"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of larger real data sets; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("SCREENPATH_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the larger data sets are not here (set SCREENPATH_DATA to their folder)")
    return folder


def set_constant(monkeypatch, kernels, name, value):
    """Change a constant of a module of kernels for a test, after they are loaded: one that is compiled under the change
    would keep the value, in the cache for later runs too.
    """
    kernels.warm_up()
    monkeypatch.setattr(kernels, name, value)


def two_classes(n=120, d=6, seed=0, noise=1.0):
    """Return overlapping Gaussian classes and their signs."""
    rng = np.random.default_rng(seed)
    signs = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = noise * rng.normal(size=(n, d)) + 0.7 * signs[:, None] * rng.uniform(0.2, 1.0, size=d)
    return X, signs
