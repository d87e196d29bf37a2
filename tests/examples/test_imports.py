"""What the scripts of the examples import from the package is there: they reach into modules that users do not."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py"))


def imported(text: str):
    """Yield module and name of each import from the package."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "screenpath":
            yield from ((node.module, alias.name) for alias in node.names)


def is_there(module: str, name: str) -> bool:
    return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("script", SCRIPTS)
def test_names_are_there(script):
    missing = [pair for pair in imported((EXAMPLES / script).read_text()) if not is_there(*pair)]
    assert missing == []


def test_a_name_that_is_gone_is_found():
    assert list(imported("from screenpath.api.paths import nothing")) == [("screenpath.api.paths", "nothing")]
    assert is_there("screenpath.solve", "newton") and is_there("screenpath", "svm_path")
    assert not is_there("screenpath.solve", "nothing")
