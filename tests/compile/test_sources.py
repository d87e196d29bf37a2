"""An edit compiles the kernels that depend on it, and no other; entries of other sources stay, and so does a copy."""

import ast
import os
import shutil
import subprocess
import sys

import pytest
from numba import config

from screenpath.compile import sources
from tests.conftest import HANGS, ROOT

KERNELS = ROOT / "screenpath" / "kernels"
# Some small kernels of four modules, of which `precise` imports `double`, that imports `rows` through `matrix`, and
# `dome` none of them. Prints the modules whose kernels are compiled.
CALLS = """
import numpy as np
from screenpath.kernels import KERNELS
from screenpath.kernels.rows import double, precise, rows
from screenpath.kernels.screen import dome

double.accumulate(1.0, 0.0, 1.0, 1.0)
precise.times(1.0, 0.0, 1.0, 0.0)
rows.dense_squared_norms(np.eye(2), np.empty(2))
dome.warm_up()
compiled = {name.partition(".")[0] for name, one in KERNELS.items() if sum(one.stats.cache_misses.values())}
print(*sorted(compiled))
"""
ALL = "dome double precise rows"

jit = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="the jit is disabled")


class Copy:
    """A copy of the package that may be edited, with a store of its own."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copytree(ROOT / "screenpath", folder / "screenpath")  # byte code too: times of files stay

    def run(self, *words):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(self.folder / "kept"), "PYTHONPATH": str(self.folder)}
        return subprocess.run(
            [sys.executable, *map(str, words)],
            env=environment, cwd=self.folder, capture_output=True, text=True, timeout=HANGS,
        )  # fmt: skip

    def compiled(self):
        done = self.run("-c", CALLS)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def edit(self, *names):
        for name in names:
            with open(self.folder / "screenpath" / name, "a") as source:
                source.write("\n# edited\n")

    def entries(self):
        return {path.name for path in self.folder.rglob("*.kernel")}


@jit
def test_an_edit_compiles_what_depends_on_it_and_older_entries_stay_also_in_a_copied_folder(tmp_path):
    copy = Copy(tmp_path)
    assert copy.compiled() == ALL
    first = copy.entries()
    # None of the four is compiled from the first ones: `dome` is not compiled again.
    copy.edit("compile/cache.py", "compile/sharing.py", "kernels/compilation.py", "kernels/problem/box.py")
    copy.edit("kernels/rows/rows.py")
    assert copy.compiled() == "double precise rows"
    before = copy.entries()
    copy.edit("compile/apart.py")
    assert copy.compiled() == ALL
    assert first < copy.entries() and before < copy.entries()
    shutil.copytree(copy.folder / "kept", copy.folder / "copied")
    shutil.rmtree(copy.folder / "kept")
    (copy.folder / "copied").rename(copy.folder / "kept")
    assert copy.compiled() == ""
    copy.edit("kernels/rows/double.py")
    assert copy.compiled() == "double precise"


@jit
def test_fields_of_a_tuple_count_though_its_module_is_not_imported(tmp_path):
    """The same names and types in another order: machine code of the former order would take the wrong number."""
    (tmp_path / "taking.py").write_text(
        "from screenpath.kernels import kernel\n\n\n@kernel\ndef take(pairs):\n    return pairs[1].a\n"
    )
    (tmp_path / "main.py").write_text(
        "from taking import take\nfrom pair import Pair\n"
        "print(take((0, Pair(1.0, 2.0))), sum(take.stats.cache_misses.values()))\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(ROOT)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # the two files are equally long and written in the same second
    found = []
    for names in ("ab", "ba"):
        members = "".join(f"    {name}: float\n" for name in names)
        (tmp_path / "pair.py").write_text(f"from typing import NamedTuple\n\n\nclass Pair(NamedTuple):\n{members}")
        done = subprocess.run(
            [sys.executable, tmp_path / "main.py"], env=environment, capture_output=True, text=True, timeout=HANGS
        )
        assert done.returncode == 0, done.stderr
        found.append([*done.stdout.split(), len(list(tmp_path.rglob("*.kernel")))])
    assert found == [["1.0", "1", 1], ["2.0", "1", 2]]


def test_imports_are_those_of_a_parser():
    for path in sorted(KERNELS.rglob("*.py")):
        found = set()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                found |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, "imports of kernels are absolute"
                found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        expected = {name for name in found if sources.file_of(name) is not None}
        assert expected <= sources.imported(path), path
        assert path.stem == "compilation" or expected == sources.imported(path)  # one more stands in a text there


def test_imports_of_every_shape(tmp_path):
    text = """
import numpy, screenpath.kernels.rows.rows as rows
from screenpath.kernels.rows.matrix import (  # of a (large)
    add,  # one ) more
    dot,
)
from screenpath.kernels.solve import cd, \\
    smo as other
from screenpath.kernels.problem import (box,
    partition)
from screenpath.compile.apart import Pipeline
from screenpath.compile.cache import KERNELS
from screenpath.errors import waits
def inside():
    from screenpath.kernels.screen import lever
"""
    ast.parse(text)
    (tmp_path / "shapes.py").write_text(text)
    found = {name.removeprefix("screenpath.") for name in sources.imported(tmp_path / "shapes.py")}
    rooms = {"kernels.solve", "kernels.problem", "kernels.screen"}
    modules = {"rows.rows", "rows.matrix", "solve.cd", "solve.smo", "problem.box", "problem.partition", "screen.lever"}
    assert found == {"compile.apart", *rooms, *(f"kernels.{one}" for one in modules)}
