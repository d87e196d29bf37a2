"""Changes code at random places and sees whether the tests nearest to it notice.

Usage: python tests/safety/mutants.py [--sample 200] [--seed 0] [--workers 2] [--only screenpath/screen/box.py]

A mutant is a copy of the package with one change: a sign, a comparison turned round, min for max, a constant by half,
``and`` for ``or``. Its tests run with compilation switched off, so that changes of kernels count at once. A mutant that
no test notices is either a hole in the tests or changes no claim: those of the second kind stand in ``HARMLESS`` with
the reason, by module, function, the line as it is written and the expression as it is changed. The exit code is 0
where at least 95 % of the others are noticed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import multiprocessing
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
if __name__ == "__main__":  # before numba is imported
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numba  # noqa: E402, F401 (here, so that forks have it)
import numpy as np  # noqa: E402, F401
import pytest  # noqa: E402

from tests.safety.harmless import HARMLESS  # noqa: E402

FORK = multiprocessing.get_context("fork")
SECONDS = 60  # of a processor, however many share it: a mutant that takes longer hangs, and is noticed
SHARE = 0.95
# Modules that prove, certify, screen, audit and count, and the tests nearest to them.
PROOFS = "tests/proofs/test_"
TERMS, RULES, COUNTS = f"{PROOFS}rounding_terms.py", f"{PROOFS}rule_formulas.py", f"{PROOFS}counts.py"
MODEL, GEOMETRY = f"{PROOFS}model_terms.py", f"{PROOFS}geometry_terms.py"
PENALISED, BALANCE = f"{PROOFS}penalised_terms.py", f"{PROOFS}balance_terms.py"
CHECKERS = [f"{PROOFS}{name}.py" for name in ("free_checker", "sparse_checker", "l1_checker_bounds")]
LEVERS = ["tests/kernels/test_lever.py", "tests/kernels/test_lever_terms.py"]
SMOOTHED = "tests/reference/test_smoothed.py::test_"
KERNEL, KERNEL_TERMS, VALUES = (f"{PROOFS}{name}.py" for name in ("kernel_rounding", "kernel_terms", "kernel_values"))
NEAREST = {
    "screenpath/numbers/rounding.py": [TERMS],
    "screenpath/regions/geometry.py": [
        GEOMETRY,
        RULES,
        "tests/regions/test_geometry.py",
        "-k",
        "not cone_solver and not outside_its and not parts",
    ],
    "screenpath/kernels/problem/box.py": [MODEL, TERMS, GEOMETRY, RULES],
    "screenpath/kernels/rows/double.py": [TERMS],
    "screenpath/problem/box.py": [MODEL, TERMS, "tests/problem/test_box.py", RULES],
    "screenpath/problem/box_types.py": [MODEL, COUNTS],
    "screenpath/problem/box_rounding.py": [MODEL, TERMS],
    "screenpath/problem/sharp.py": [f"{PROOFS}sharp_terms.py", KERNEL_TERMS, KERNEL],
    "screenpath/screen/box.py": [RULES, COUNTS],
    "screenpath/screen/pathwise.py": [RULES, f"{PROOFS}floors.py", f"{PROOFS}regions.py"],
    "screenpath/numbers/accurate.py": [f"{PROOFS}accurate.py"],
    "screenpath/kernels/rows/gram.py": [
        f"{PROOFS}fixed_values.py",
        f"{PROOFS}accurate.py",
        f"{KERNEL}::test_exponentials_are_within_their_bound",
        f"{KERNEL}::test_rough_exponentials_are_as_good_as_float32",
        f"{KERNEL}::test_what_is_below_the_diagonal_is_mirrored_from_a_row_on",
    ],
    "screenpath/kernels/screen/conditioning.py": [f"{PROOFS}conditioning.py"],
    "screenpath/problem/kernel.py": [KERNEL_TERMS, KERNEL],
    "screenpath/problem/smooth.py": [
        f"{SMOOTHED}shares_are_bounded_wherever_the_forms_are",
        f"{SMOOTHED}a_row_alone_is_bounded_closely",
        f"{SMOOTHED}the_smoothing_of_a_row_is_divided_by_its_weight",
    ],
    "screenpath/rows/kernel_functions.py": [VALUES, KERNEL, f"{PROOFS}fixed_values.py"],
    "screenpath/kernels/rows/precise.py": [VALUES, KERNEL],
    "screenpath/problem/penalised_rounding.py": [PENALISED],
    "screenpath/kernels/problem/share.py": [f"{PROOFS}share.py"],
    "screenpath/screen/l1svm.py": [PENALISED, "tests/screen/test_l1svm.py"],
    "screenpath/screen/sparse.py": [PENALISED, "tests/problem/test_sparse.py", "tests/rows/test_column_views.py"],
    "screenpath/kernels/screen/sifs.py": [f"{PROOFS}sifs_kernels.py", PENALISED],
    "screenpath/kernels/screen/move.py": [f"{PROOFS}moved_terms.py"],
    "screenpath/kernels/problem/l1svm.py": [f"{PROOFS}l1_kernels.py", PENALISED, "tests/problem/test_l1svm.py"],
    "screenpath/verify/exact.py": [f"{PROOFS}exact.py", f"{PROOFS}checker.py"],
    "screenpath/verify/certificate.py": [f"{PROOFS}checker.py", *CHECKERS],
    "screenpath/verify/model.py": [f"{PROOFS}checker.py", *CHECKERS],
    "screenpath/verify/products.py": [
        f"{PROOFS}checker.py",
        f"{PROOFS}l1_checker.py",
        *CHECKERS,
        f"{PROOFS}kernel_checker.py",
        f"{PROOFS}free_checker.py",
        "tests/verify/test_products.py",
        "tests/safety/test_verify.py::test_kernel_values_are_within_their_bounds",
    ],
    "screenpath/kernels/screen/lever.py": LEVERS,
    "screenpath/regions/lever.py": [
        "tests/regions/test_lever.py",
        "tests/kernels/test_lever.py::test_decisions_are_those_of_the_formulas",
    ],
    "screenpath/problem/sparse_free.py": [
        BALANCE,
        "tests/problem/test_sparse_free.py::test_the_intercept_is_the_best_one_for_the_weights",
        "tests/problem/test_sparse_free.py::test_two_equal_classes_begin_in_closed_form",
    ],
    "screenpath/problem/penalised_sharp.py": [f"{PROOFS}sparse_sharp_terms.py"],
    "screenpath/cv/certify.py": [
        "tests/cv/test_certify_bounds.py",
        "tests/cv/test_certify_rounding.py",
        "tests/cv/test_certify.py::test_the_heaviest_point_is_found_exactly",
        "tests/cv/test_certify.py::test_undecided_intervals_are_those_of_the_formula",
    ],
    "screenpath/problem/between.py": [
        "tests/problem/test_between.py",
        "tests/cv/test_certify.py::test_undecided_intervals_are_those_of_the_formula",
    ],
    "screenpath/walk/one_vs_rest.py": [COUNTS],
    "screenpath/walk/loop.py": [COUNTS],
    "screenpath/walk/point.py": [COUNTS],
    "screenpath/walk/step.py": [COUNTS],
}
# Of these not all that goes unnoticed has been looked through: they are tried where `--only` names them.
FURTHER = {
    f"screenpath/{name}.py"
    for name in (
        "verify/certificate", "verify/model", "kernels/screen/lever", "cv/certify", "regions/lever",
        "problem/sparse_free", "problem/penalised_sharp", "problem/between",
    )
}  # fmt: skip
# Functions that solve: whatever they leave is certified afresh, and a change costs sweeps.
SOLVING = {
    ("screenpath/kernels/problem/l1svm.py", "descend"),
    ("screenpath/kernels/problem/l1svm.py", "bias_root"),
    ("screenpath/problem/kernel.py", "KernelModel._toward"),
    ("screenpath/problem/kernel.py", "KernelModel._turned"),
    ("screenpath/screen/pathwise.py", "_least"),
    ("screenpath/screen/pathwise.py", "_best_in_plane"),
    ("screenpath/screen/pathwise.py", "_best_in_plane.primal"),
}
SWAPPED = {
    ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.Gt, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}


class Mutant:
    """One change of a line of a module's function: of the ``place``-th node of its source."""

    def __init__(
        self, module: str, function: str, line: int, before: str, after: str, change: Callable, place: int, source: str
    ):
        self.module, self.function, self.line = module, function, line
        self.before, self.after = before, after
        self.change, self.place, self.source = change, place, source

    @property
    def text(self) -> str:
        tree = ast.parse(self.source)
        self.change(next(islice(ast.walk(tree), self.place, None)))
        return ast.unparse(ast.fix_missing_locations(tree))

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return what names the change in ``HARMLESS``: it survives that lines move."""
        return self.module, self.function, self.before, self.after

    def __str__(self) -> str:
        return f"{self.module}:{self.line} ({self.function}): {self.before}   ->   {self.after}"


def mutants(module: str) -> list[Mutant]:
    source = (ROOT / module).read_text()
    lines, tree = source.splitlines(), ast.parse(source)
    order = {id(node): k for k, node in enumerate(ast.walk(tree))}
    found = []
    for place, function in _places(tree):
        if (module, function) in SOLVING:
            continue
        for change in _changes(place):
            other = copy.deepcopy(place)
            change(other)
            line, after = lines[place.lineno - 1].strip(), ast.unparse(other)
            found.append(Mutant(module, function, place.lineno, line, after, change, order[id(place)], source))
    return found


def stale(modules) -> list[tuple]:
    """Return what is listed as harmless though there is no such change of these modules."""
    known = {mutant.key for module in modules for mutant in mutants(module)}
    return sorted(key for key in HARMLESS if key[0] in modules and key not in known)


def _places(tree):
    """Yield the expressions of all functions but ``warm_up``, with the names of these."""

    def visit(node, names):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if node.name in ("warm_up", "__repr__"):
                return
            names = [*names, node.name]
            body = node.body
            if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
                body = body[1:]  # the docstring
            for child in body:
                yield from visit(child, names)
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from visit(node.value, names)
            return
        if names and isinstance(node, ast.expr):
            yield node, ".".join(names)
        if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Assert)):  # in the package, of what the type checker is told
            return
        for child in ast.iter_child_nodes(node):
            yield from visit(child, names)

    yield from visit(tree, [])


def _changes(node):
    """Return functions that change a copy of the node."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        return [lambda n: n.ops.__setitem__(0, SWAPPED[type(n.ops[0])]())]
    if isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in SWAPPED:
        return [lambda n: setattr(n, "op", SWAPPED[type(n.op)]())]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return [lambda n: setattr(n, "op", ast.UAdd())]
    if isinstance(node, ast.Call):
        name = node.func
        if isinstance(name, ast.Name) and name.id in NAMES:
            return [lambda n: setattr(n.func, "id", NAMES[n.func.id])]
        if isinstance(name, ast.Attribute) and name.attr in NAMES:
            return [lambda n: setattr(n.func, "attr", NAMES[n.func.attr])]
    if isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value not in (0.0, float("inf")):
        return [lambda n: setattr(n, "value", 0.5 * n.value)]
    return []


def tests_of(module: str, folder: Path, keep: bool = False) -> int:
    """Return the exit code of a module's nearest tests in a copy of the project, run in a fork of this process.

    The fork has pytest and the big libraries already, and byte code of all that is unchanged: most of a second saved.
    """
    child = FORK.Process(target=_run_tests, args=(NEAREST[module], folder, keep))
    child.start()
    child.join(10 * SECONDS)
    if child.is_alive():
        child.kill()
        child.join()
    return child.exitcode


def _run_tests(tests, folder, keep):
    """Run in a child: pytest on a copy of the project, its output thrown away."""
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.environ["PYTHONPATH"] = str(folder)
    sys.path = [str(folder), *(path for path in sys.path if path != str(ROOT))]
    sys.dont_write_bytecode = not keep  # a time stamp of whole seconds could not tell two mutants apart
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "screenpath")]:
        del sys.modules[name]
    os._exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning", *tests]))


def noticed(mutant: Mutant, folder: Path) -> bool:
    target = folder / mutant.module
    original = target.read_text()
    target.write_text(mutant.text)
    try:
        return tests_of(mutant.module, folder) != 0
    finally:
        target.write_text(original)


def copies(top: Path, modules, workers: int) -> list[Path]:
    """Return copies of the project in which the tests of the modules pass as long as nothing is changed."""
    first = top / "0"
    for part in ("screenpath", "tests", "data_samples"):
        shutil.copytree(ROOT / part, first / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("pyproject.toml", "README.md"):
        shutil.copy2(ROOT / part, first)
    for module in modules:
        began = time.monotonic()
        if tests_of(module, first, keep=True) != 0:
            raise SystemExit(f"the tests of {module} fail without any change: {' '.join(NEAREST[module])}")
        print(f"{time.monotonic() - began:7.1f} s for {module} unchanged", file=sys.stderr, flush=True)
    return [first, *(Path(shutil.copytree(first, top / str(k))) for k in range(1, workers))]


def run(chosen: list[Mutant], workers: int, report) -> list[Mutant]:
    folders: Queue = Queue()
    with tempfile.TemporaryDirectory() as top, ThreadPoolExecutor(workers) as pool:
        for folder in copies(Path(top), dict.fromkeys(mutant.module for mutant in chosen), workers):
            folders.put(folder)

        def one(mutant):
            folder, began = folders.get(), time.monotonic()
            try:
                seen = noticed(mutant, folder)
            finally:
                folders.put(folder)
            report(f"{'noticed  ' if seen else 'UNNOTICED'} {time.monotonic() - began:5.1f} s  {mutant}")
            return None if seen else mutant

        return [mutant for mutant in pool.map(one, chosen) if mutant is not None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=200, help="mutants tried; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", action="append", choices=sorted(NEAREST))
    arguments = parser.parse_args()
    modules = arguments.only or [module for module in NEAREST if module not in FURTHER]
    every = [mutant for module in modules for mutant in mutants(module)]
    missing = stale(modules)
    if missing:
        raise SystemExit("\n".join(["listed as harmless, but there is no such change:", *map(str, missing)]))
    counted = [mutant for mutant in every if mutant.key not in HARMLESS]
    chosen = counted
    if 0 < arguments.sample < len(counted):
        chosen = random.Random(arguments.seed).sample(counted, arguments.sample)
    left = run(chosen, arguments.workers, lambda text: print(text, file=sys.stderr, flush=True))
    by_module = Counter(mutant.module for mutant in left)
    for module, count in sorted(by_module.items()):
        print(f"{module}: {count} not noticed")
    share = 1.0 - len(left) / max(len(chosen), 1)
    print(
        f"{len(chosen)} of {len(every)} changes tried, {100 * share:.1f} % noticed, {len(every) - len(counted)} listed"
    )
    return 0 if share >= SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
