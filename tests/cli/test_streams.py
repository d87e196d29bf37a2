"""Standard streams that are closed, full, or left by their reader."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import HANGS


def shell(folder, command):
    line = command.replace("$S", f"{sys.executable} -m screenpath")
    done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=HANGS)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("command", ["rules >&-", "--version >&-", "svm clouds.libsvm --grid 2 -o - >&-"])
def test_what_cannot_be_printed_is_one_error(data, command):
    code, _, err = shell(data.parent, f"$S {command}")
    assert code == 1 and "Traceback" not in err and "Bad file descriptor" in err.splitlines()[-1]


def test_closed_standard_input(data):
    code, _, err = shell(data.parent, "$S svm - --grid 2 -o r <&-")
    assert code == 1 and err.startswith("error: standard input cannot be read") and not (data.parent / "r").exists()


@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full", "2>&1 | head -n 0"])
def test_a_run_needs_no_stream(data, streams):
    """Words that nobody can hear end no work: logs lie on disks that get full."""
    if "full" in streams and not Path("/dev/full").exists():
        pytest.skip("no device that is full here")
    code, _, err = shell(data.parent, f"set -o pipefail; $S svm clouds.libsvm --grid 3 -o r {streams}")
    assert code == 0 and "Traceback" not in err
    assert (data.parent / "r" / "steps.csv").read_text().count("certified") == 3
    assert not list((data.parent / "r").glob("*.partial"))


def test_an_error_that_nobody_hears_keeps_its_code(data):
    assert shell(data.parent, "$S svm nothing 2>&-")[0] == 1
    assert shell(data.parent, "$S svm clouds.libsvm --gird 3 2>&-")[0] == 2
