"""What lies in the current folder, such as /tmp, is never imported by the processes that screenpath starts."""

import os
import subprocess
import sys

import pytest
from numba import config

from tests.conftest import HANGS, ROOT

# What other users of a shared folder may have left there.
PLANTED = ("numpy.py", "numba.py", "screenpath/__init__.py", "multiprocessing.py", "struct.py", "pickle.py")
HELPERS = """
from screenpath.kernels import compilation
compilation.helpers = lambda: 1
compilation.start_helpers(("dome",))
print(compilation._helpers[0].wait())
"""
SPAWN = """
import os
from screenpath.walk.workers import workers
if __name__ == "__main__":
    before = dict(os.environ)
    with workers(2, os.getpid, ()) as pool:
        print(*pool.map(abs, [-1, -2]))
    assert os.environ == before
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a script in a folder of planted modules; each of them notes that it was imported."""
    (shared := tmp_path / "shared").mkdir()
    for name in PLANTED:
        (shared / name).parent.mkdir(exist_ok=True)
        (shared / name).write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r} + ' ')\n")

    def go(script):
        (tmp_path / "script.py").write_text(f"import sys\nsys.path.insert(1, {str(ROOT)!r})\n{script}")
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
        for name in ("PYTHONPATH", "PYTHONSAFEPATH"):
            environment.pop(name, None)
        command = [sys.executable, str(tmp_path / "script.py")]
        done = subprocess.run(command, env=environment, cwd=shared, capture_output=True, text=True, timeout=HANGS)
        assert done.returncode == 0, done.stderr
        noted = tmp_path / "imported"
        return done.stdout.strip(), noted.read_text() if noted.exists() else ""

    return go


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="the jit is disabled")
def test_helpers(run, tmp_path):
    assert run(HELPERS) == ("0", "")
    assert {path.name.partition(".")[0] for path in tmp_path.rglob("*.kernel")} == {"dome"}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="multiprocessing cannot be told so before Python 3.11")
def test_workers(run):
    assert run(SPAWN) == ("1 2", "")


def test_what_is_planted_would_be_noted(run):
    assert run("sys.path.insert(0, '')\nimport numba")[1] == "numba.py "
