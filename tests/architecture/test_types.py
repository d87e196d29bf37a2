"""What a type checker makes of the package, and of calls from outside."""

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import screenpath
from tests.architecture.stubs import made

ROOT = Path(__file__).parents[2]
RIGHT = """\
import numpy as np
import scipy.sparse as sp
import screenpath as s
from screenpath.sklearn import SVMClassifierCV

X, y = np.eye(2), [1, -1]
path = s.svm_path(X, y, grid=[0.1, 1.0], class_weight="balanced", time_limit=60)
status: str = path[0].status
gaps: list[float] = [step.gap for step in path]
first: list[dict] = path.table()[:1]
labels: np.ndarray = path.predict(sp.csr_array(X), C=0.1)
met: bool = s.svr_path([[1.0, 2.0]], np.zeros(1), epsilon=0.2, dtype=np.float32).certified
eps: s.PathResult = s.quantile_path(X, y, tau=0.3, grid=s.EpsilonGrid(0.1, 1.0, 1e-3))
l1: s.PathResult = s.l1_svm_path(X, y, grid=10)
grid: s.SparsePathResult = s.sparse_svm_path(X, y, betas=2, alphas=[0.1])
support: np.ndarray = s.kernel_svm_path(X, y, gamma="1/d", max_memory="1G", tell=print).support(0)
n: int = s.read_libsvm("data.libsvm", n_features=3).n
faults: list[tuple[int | None, str]] = s.verify_certificate("runs/a").faults
stored: s.StoredPath = s.run("svm", (X, y), grid=10, out="runs/a")
best: float = s.load_run(stored.folder)[stored.best()].primal
tables: list[dict] = s.compare("svm", "data.libsvm", rules="none,dvi")
s.export_run(stored, "json", "model.json", step="one-se")
tol: float = SVMClassifierCV(grid=[0.1, 1.0], certify=True, class_weight={1: 2.0}).tol
"""
WRONG = {
    "s.svm_path(X, y, tol='1e-6')": "arg-type", "s.lad_path(X, y, class_weight='balanced')": "call-arg",
    "s.quantile_path(X, y, tau=None)": "arg-type", "s.svr_path(X, y, 0.1)": "call-arg", "s.svm_path(X)": "call-arg",
    "s.svm_path(X, y).predict(X, step='best')": "arg-type", "s.svm_path(X, y)[0].statuses": "attr-defined",
    "s.l1_svm_path(X, y, grid=s.EpsilonGrid(0.1, 1.0, 1e-3))": "arg-type",
    "s.sparse_svm_path(X, y, jobs=0.5)": "arg-type", "s.kernel_svm_path(X, y, degree='three')": "arg-type",
    "s.EpsilonGrid(0.1, 1.0)": "call-arg", "s.read_libsvm(3)": "arg-type", "s.verify_certificate(None)": "arg-type",
    "s.run('svm', X)": "arg-type", "s.load_run(1)": "arg-type",
    "s.export_run('runs/a', 'json', 'model.json', step=0.5)": "arg-type", "s.svm_paths(X, y)": "attr-defined",
    "e.SVMClassifier(2.0, 1.0)": "call-arg", "e.SVMClassifierCV(grid='many')": "arg-type",
    "e.LADRegressor(class_weight='balanced')": "call-arg",
}  # fmt: skip


def test_a_wrong_call_is_noticed_and_a_right_one_and_the_package_are_not(tmp_path):
    pytest.importorskip("mypy")
    head = "import numpy as np\nimport screenpath as s\nimport screenpath.sklearn as e\nX, y = np.eye(2), [1, -1]\n"
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(head + "\n".join(WRONG) + "\n")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "screenpath", tmp_path / "right.py", tmp_path / "wrong.py"],
        cwd=ROOT, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    errors = re.findall(r"(\w+)\.py:(\d+): error: .* \[([a-z-]+)\]$", found.stdout, re.MULTILINE)
    lines = enumerate(WRONG.values(), start=1 + head.count("\n"))
    assert errors == [("wrong", str(line), code) for line, code in lines], found.stdout + found.stderr


def test_stubs_are_what_the_declarations_make():
    for path, text in made().items():
        assert path.read_text() == text, f"{path}: run `make stubs`"


def callables():
    """Yield the name and the signature of all that a user may call."""
    for name in screenpath.__all__:
        found = getattr(screenpath, name)
        if inspect.isclass(found):
            for member, value in inspect.getmembers(found):
                value = value.fget if isinstance(value, property) else value
                if inspect.isfunction(value) and (member in ("__init__", "__getitem__") or not member.startswith("_")):
                    yield f"{name}.{member}", inspect.signature(value)
        elif callable(found):
            yield name, inspect.signature(found)


def test_all_that_users_call_has_types():
    names = [name for name, _ in callables()]
    assert {"svm_path", "PathResult.coef", "PathResult.grid", "EpsilonGrid.__init__"} <= set(names)
    for name, signature in callables():
        untyped = [p.name for p in signature.parameters.values() if p.annotation is p.empty and p.name != "self"]
        assert untyped == [] and (signature.return_annotation is not signature.empty or name.endswith("__init__")), name


def test_type_checkers_are_told_all_names_of_the_package():
    package = Path(screenpath.__file__).parent
    stub = ast.parse((package / "__init__.pyi").read_text())
    names = {node.names[0].asname for node in stub.body if isinstance(node, ast.ImportFrom)}
    names |= {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    assert (names | {"__version__"}) - {None} == set(screenpath.__all__)
    assert (package / "py.typed").is_file()
