"""Who may import whom: rooms know those below them alone, and no files import each other in a circle."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "screenpath"
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))
# The rooms from the top down: each imports from those behind it only.
ROOMS = (
    "__main__", "cli", "sklearn", "api", "report", "cv", "engine", "export", "inputs", "store", "catalogue", "walk",
    "solve", "screen", "problem", "regions", "rows", "data.shards", "data.files", "data.words", "data.safe", "data",
    "numbers", "kernels.walk", "kernels.solve", "kernels.screen", "kernels.problem", "kernels.rows", "kernels",
    "compile", "verify", "errors", "__init__",
)  # fmt: skip
# Modules beside the rooms of kernels: those that list all kernels, and what numba is to generate for some of them.
ABOVE_KERNELS = ("kernels.compilation", "kernels.machine")


def name_of(path: Path) -> str:
    """Return the dotted name of a file within the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


NAMES = {name_of(path) for path in MODULES}


def room_of(name: str) -> str:
    """Return the room of a module."""
    first, *rest = name.split(".")
    return next((room for room in (f"{first}.{rest[0]}" if rest else first, first) if room in ROOMS), first)


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text())


def modules_in(tree: ast.AST) -> set[str]:
    """Return the modules that are imported in a syntax tree, and names imported from them that may be modules."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


@functools.cache
def imported(path: Path) -> frozenset[str]:
    """Return the modules that a file imports, wherever it does."""
    return frozenset(modules_in(parsed(path)))


def ours(found) -> set[str]:
    """Return the modules of this package among imported names."""
    short = {name.removeprefix("screenpath.") for name in found if name.startswith("screenpath.")}
    inside = {name for name in short if name in NAMES}
    return inside - {name for name in inside if any(other.startswith(name + ".") for other in inside)}


def test_only_the_command_line_knows_the_command_line():
    for path in MODULES:
        if not path.is_relative_to(PACKAGE / "cli") and path.name != "__main__.py":
            assert not any(name.startswith(("screenpath.cli", "click")) for name in imported(path)), path


def test_imports_point_down_the_list_of_rooms():
    arrows = [(me, to) for me, path in zip(map(name_of, MODULES), MODULES, strict=True)
              for to in ours(imported(path)) if me not in ABOVE_KERNELS]  # fmt: skip
    assert [(me, to) for me, to in arrows if ROOMS.index(room_of(to)) < ROOMS.index(room_of(me))] == []
    assert len(arrows) > 2 * len(MODULES)


def test_an_arrow_upwards_is_seen():
    tree = ast.parse("def f():\n    from screenpath.walk import step\n    from screenpath.errors import DataError")
    assert ours(modules_in(tree)) == {"walk.step", "errors"}
    assert room_of("kernels.rows.matrix") == "kernels.rows" and room_of("kernels.compilation") == "kernels"
    assert ROOMS.index(room_of("walk.step")) < ROOMS.index(room_of("rows.memory"))


@pytest.mark.parametrize("room", ["kernels", "compile"])
def test_compiled_code_knows_kernels_and_errors_only(room):
    allowed = ("screenpath.kernels", "screenpath.compile", "screenpath.errors", "screenpath.__version__")
    for path in MODULES:
        if path.is_relative_to(PACKAGE / room):
            strange = [n for n in imported(path) if n.startswith("screenpath.") and not n.startswith(allowed)]
            assert strange == [], path


def circles(arrows: dict[str, set[str]]) -> list[set[str]]:
    """Return the largest sets of modules in which each leads to each other."""

    def reached(start: str) -> set[str]:
        seen, open_ = set(), [start]
        while open_:
            for to in arrows.get(open_.pop(), ()):
                if to not in seen:
                    seen.add(to)
                    open_.append(to)
        return seen

    ends = {name: reached(name) for name in arrows}
    found = []
    for name in sorted(arrows):
        ring = {other for other in ends[name] if name in ends.get(other, ())}
        if ring and ring not in found:
            found.append(ring)
    return found


def test_no_modules_import_each_other_in_a_circle():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]
    arrows = {}
    for path in MODULES:
        arrows[name_of(path)] = ours(imported(path)) - {name_of(path)}
    for name, targets in arrows.items():  # a package that is named stands for the module it holds
        arrows[name] = {to for to in targets if not name.startswith(to + ".")}
    assert circles(arrows) == []


def test_the_rooms_are_all_there_is():
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found == {room.partition(".")[0] for room in ROOMS}
    modules = {path.name for path in PACKAGE.glob("*.py")}
    assert modules == {"__init__.py", "__main__.py", "errors.py"}


def test_every_room_says_what_lives_there():
    for path in PACKAGE.rglob("__init__.py"):
        assert ast.get_docstring(parsed(path)), path


def test_only_the_estimators_know_scikit_learn():
    for path in MODULES:
        if not path.is_relative_to(PACKAGE / "sklearn"):
            assert not any(name == "sklearn" or name.startswith("sklearn.") for name in imported(path)), path
    script = "import sys, screenpath; screenpath.svm_path, screenpath.cross_validate; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout == "False\n", done


def test_declarations_load_no_numerical_library():
    loaded = "[n for n in ('numpy', 'scipy', 'numba') if n in sys.modules]"
    script = f"import sys, screenpath.catalogue.specs; print({loaded})"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout == "[]\n", done
