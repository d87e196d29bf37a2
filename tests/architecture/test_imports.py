"""Who may import whom: the library knows nothing of the command line, and declarations load no numerical library."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import HANGS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "screenpath"
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))
# The rooms from the top down: each imports from those behind it only.
ROOMS = (
    "__main__", "cli", "sklearn", "api", "report", "cv", "runs", "walk", "solvers", "rules", "models", "rows", "data",
    "numbers", "kernels", "verify", "errors", "__init__",
)  # fmt: skip
# Declarations name what serves a model by functions that import it when they are called.
NAMED_LATER = ("models/spec.py", "models/specs.py", "models/losses.py")


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text())


@functools.cache
def imported(path: Path) -> frozenset[str]:
    """Return the modules that a file imports, wherever it does."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return frozenset(found)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_command_line_knows_the_command_line(path):
    if path.is_relative_to(PACKAGE / "cli") or path.name == "__main__.py":
        return
    names = imported(path)
    assert not any(name.startswith(("screenpath.cli", "click")) for name in names)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_kernels_know_kernels_and_errors_only(path):
    if not path.is_relative_to(PACKAGE / "kernels"):
        return
    allowed = ("screenpath.kernels", "screenpath.errors", "screenpath.__version__")
    strange = [n for n in imported(path) if n.startswith("screenpath.") and not n.startswith(allowed)]
    assert strange == []


def room_of(path: Path) -> str:
    """Return the room of a file."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down_the_list_of_rooms(path):
    body = parsed(path)
    nodes = body.body if str(path.relative_to(PACKAGE)) in NAMED_LATER else ast.walk(body)
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("screenpath."):
            to = node.module.split(".")[1]
            assert ROOMS.index(to) >= ROOMS.index(room_of(path)), ast.unparse(node)


def test_the_rooms_are_all_there_is():
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found == set(ROOMS)
    modules = {path.name for path in PACKAGE.glob("*.py")}
    assert modules == {"__init__.py", "__main__.py", "errors.py"}


def test_only_the_estimators_know_scikit_learn():
    for path in MODULES:
        if not path.is_relative_to(PACKAGE / "sklearn"):
            assert not any(name == "sklearn" or name.startswith("sklearn.") for name in imported(path)), path
    script = "import sys, screenpath; screenpath.svm_path, screenpath.cross_validate; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=HANGS)
    assert done.stdout == "False\n", done


def test_declarations_load_no_numerical_library():
    script = "import sys, screenpath.models.specs; print([n for n in ('numpy', 'scipy', 'numba') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=HANGS)
    assert done.stdout == "[]\n", done
