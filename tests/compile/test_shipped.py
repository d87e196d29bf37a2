"""The wheel that carries its kernels: nothing is compiled where they fit, everything is where they do not."""

import json
import os
import subprocess
import sys
import zipfile

import pytest

from tests.conftest import HANGS, ROOT

# It compiles the kernels of a model, for the processors of a wheel.
pytestmark = pytest.mark.wide_only
SAMPLE = ROOT / "data_samples" / "breast_cancer.libsvm"
TEXT = """
from screenpath.kernels.compilation import compile_seconds, ensure_compiled
ensure_compiled("dome")
print(compile_seconds())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return a folder with nothing but the package of a wheel that carries the kernels of one command."""
    if not (ROOT / ".venv" / ".installed").exists():
        pytest.skip("`make wheel` needs the environment that `make test` makes")
    base = tmp_path_factory.mktemp("wheel")
    kernels = "KERNELS=parse rows l1svm share sparse dome l1newton sparse_newton"
    build = [f"BUILD={base / 'build'}", f"DIST={base / 'dist'}", kernels]
    subprocess.run(["make", "-C", str(ROOT), "wheel", *build], check=True, capture_output=True, timeout=HANGS)
    (wheel,) = (base / "dist").glob("*.whl")
    assert f"cp{sys.version_info.major}{sys.version_info.minor}" in wheel.name and "any" not in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(base / "site")
    return base / "site"


@pytest.fixture
def go(installed, tmp_path):
    """Return a function that runs Python with the installed package, and a home that nobody can write to."""

    def run(*words, site=installed, **more):
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "COVERAGE_"))
        }
        environment.update(PYTHONPATH=str(site), HOME="/proc", TMPDIR=str(tmp_path), **more)
        environment.pop("XDG_CACHE_HOME", None)
        command = [sys.executable, "-W", "error", *words]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=HANGS)

    return run


def test_a_first_run_compiles_nothing(go, tmp_path):
    done = go("-m", "screenpath", "l1svm", str(SAMPLE), "--grid", "4", "--out", "run")
    assert done.returncode == 0, done.stderr
    assert "compiling" not in done.stderr.splitlines()[0]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["totals"]["seconds"]["compiling"] == 0.0
    assert not list(tmp_path.rglob("*.kernel"))


def test_what_does_not_fit_is_compiled(go, installed, tmp_path):
    assert float(go("-c", TEXT).stdout) == 0.0
    assert float(go("-c", TEXT, NUMBA_CPU_NAME="x86-64").stdout) > 0.0  # code for another processor was asked for
    site = tmp_path / "site"
    subprocess.run(["cp", "-r", str(installed), str(site)], check=True)
    file = site / "screenpath" / "compile" / "shipped.zip"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert float(go("-c", TEXT, site=site).stdout) > 0.0
    file.write_bytes(whole)
    with open(site / "screenpath" / "kernels" / "screen" / "dome.py", "a") as source:  # kernels of other sources
        source.write("\n# edited\n")
    assert float(go("-c", TEXT, site=site).stdout) > 0.0
