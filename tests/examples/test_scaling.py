"""The measurement of a path on shards, on a small one."""

import json
import subprocess
import sys

from tests.cli.conftest import ROOT, clouds, in_process, libsvm_text, screenpath
from tests.conftest import HANGS

SCRIPT = ROOT / "examples" / "scaling" / "measure.py"


def test_measure(tmp_path):
    (tmp_path / "data").write_text(libsvm_text(*clouds()))
    assert screenpath("convert", tmp_path / "data", tmp_path / "shards").returncode == 0
    for seconds in (1, 10, 100):  # until it is looked at while the memory is taken
        program = f"import sys, time; block = bytearray(b'x' * (100 << 20)); time.sleep({seconds}); sys.exit(3)"
        done = subprocess.run(
            [sys.executable, SCRIPT, "--read", tmp_path / "shards", "--", sys.executable, "-c", program],
            capture_output=True, text=True, timeout=HANGS,
        )  # fmt: skip
        found = json.loads(done.stdout)
        if found["private_bytes"] > 100 << 20:
            break
    assert done.returncode == found["code"] == 3
    assert found["private_bytes"] > 100 << 20 and found["resident_bytes"] >= found["private_bytes"]
    assert found["read_before"]["bytes"] == found["read_after"]["bytes"] > 0


def test_big_set_is_separable_and_reproducible(tmp_path):
    script = "import sys; from screenpath.cli import main; main()"
    one, two = (in_process(script, "generate", "big", "--n", "300", "--p", "5", "--seed", s).stdout for s in (1, 1))
    assert one == two and len(one.splitlines()) == 300
