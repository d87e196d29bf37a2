"""Compiled kernels as one file: another folder needs no compilation; damaged and foreign files are refused whole."""

import io
import json
import os
import subprocess
import sys
import zipfile

import pytest

from tests.conftest import HANGS, ROOT

MAKE = """
import sys
from screenpath.kernels.compilation import compile_seconds, ensure_compiled
ensure_compiled("dome", "partition")
print(compile_seconds())
"""
# All refusals in one process: what is refused leaves nothing.
REFUSE = """
import sys
from screenpath.cli.app import run
for name in sys.argv[1:]:
    print(run(["cache", "unpack", name]))
    print("---", file=sys.stderr)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a function that runs a script or a command with a folder of compiled kernels of its own."""
    base = tmp_path_factory.mktemp("kernels")

    def go(folder, *command, script=MAKE, words=()):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(base / folder), "PYTHONPATH": str(ROOT)}
        environment.pop("NUMBA_DISABLE_JIT", None)
        words = ["-c", script, *words] if not command else ["-m", "screenpath", "cache", *map(str, command)]
        done = subprocess.run(
            [sys.executable, *words], env=environment, cwd=base, capture_output=True, text=True, timeout=HANGS
        )
        return done

    go.base = base
    return go


@pytest.fixture(scope="module")
def packed(run):
    """Return a file of two modules of kernels."""
    assert float(run("made").stdout) > 0.0
    done = run("made", "pack", "kernels.zip")
    assert done.returncode == 0, done.stderr
    return run.base / "kernels.zip"


def test_unpacked_kernels_are_not_compiled(run, packed):
    assert float(run("made").stdout) == 0.0
    done = run("other", "unpack", packed)
    assert done.returncode == 0 and "kernels are in" in done.stderr and "another kind" not in done.stderr
    assert float(run("other").stdout) == 0.0
    assert run("made", "pack", packed).returncode == 2  # it is there already; --force is said by the test of sources


def test_nothing_to_pack(run):
    done = run("empty", "pack", "none.zip")
    assert done.returncode == 1 and "no kernel is compiled yet" in done.stderr
    assert not (run.base / "none.zip").exists()


def changed(packed, name, change):
    """Return the file with one member changed."""
    made = io.BytesIO()
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(made, "w") as new:
        for member in old.namelist():
            content = old.read(member)
            new.writestr(member, change(content) if member == name or name == "*" else content)
    return made.getvalue()


def edited(**fields):
    def change(content):
        return json.dumps({**json.loads(content), **fields}).encode()

    return change


def flipped(content):
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


def test_damaged_and_foreign_files_are_refused(run, packed):
    content = packed.read_bytes()
    kernel = next(name for name in zipfile.ZipFile(packed).namelist() if name.endswith(".kernel"))
    listed = json.loads(zipfile.ZipFile(packed).read("manifest.json"))["files"]
    escaping = {**listed, "../../evil.kernel": "0" * 64}
    bad = {
        "nothing": b"",
        "cut": content[: len(content) // 2],
        "text": b"not a zip",
        "flipped": changed(packed, kernel, flipped),
        "version": changed(packed, "manifest.json", edited(key="cpython-27-numba-0.1")),
        "format": changed(packed, "manifest.json", edited(format=99)),
        "escape": changed(packed, "manifest.json", edited(files=escaping)),
        "missing": changed(packed, "manifest.json", edited(files={**listed, "absent.kernel": "0" * 64})),
        "list": changed(packed, "manifest.json", lambda _: b"[1]"),
    }
    for name, text in bad.items():
        (run.base / name).write_bytes(text)
    done = run("refused", script=REFUSE, words=bad)
    said = dict(zip(bad, done.stderr.split("\n---\n"), strict=False))
    assert done.stdout.split() == ["1"] * len(bad) and "Traceback" not in done.stderr, done.stderr
    assert all(name in text and "cache pack" in text for name, text in said.items()), said
    assert not list((run.base / "refused").rglob("*.kernel")) and not (run.base / "evil.kernel").exists()


def test_another_processor_is_said(run, packed):
    (run.base / "p").write_bytes(changed(packed, "manifest.json", edited(processor=["x", "y", "z"])))
    done = run("processor", "unpack", "p")
    assert done.returncode == 0 and "another kind of processor" in done.stderr
