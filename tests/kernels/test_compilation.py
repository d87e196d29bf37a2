"""Compile time is announced, counted, and kept out of timings; every kernel can be compiled ahead."""

import ast
import importlib
import pkgutil
import time
from pathlib import Path
from types import ModuleType

import pytest
from llvmlite.binding import ffi
from numba import config
from numba.core import event

import screenpath
import screenpath.kernels as kernels
from screenpath.compile.cache import cache_folder
from screenpath.kernels import compilation, kernel

needs_jit = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="the jit is disabled")


@needs_jit
def test_warm_up_reaches_every_kernel():
    handled = dict(compilation.ensure_compiled())
    assert set(handled) <= set(compilation.kernel_modules())
    assert all(seconds >= 0 for seconds in handled.values())
    assert compilation.ensure_compiled() == []  # once for each module
    uncompiled = [
        name
        for name, one in kernels.KERNELS.items()
        if one.__module__.startswith("screenpath.kernels.")
        # What only kernels call is loaded as part of its callers, so it may be on disk alone.
        and not (one.signatures or list(cache_folder().glob(f"{one._cache.name}-{one._cache.stamp}-*")))
    ]
    assert uncompiled == []  # each kernel module's warm_up() must call all of its kernels


def test_python_names_no_kernel_that_only_kernels_call():
    named = []
    for info in pkgutil.walk_packages(screenpath.__path__, "screenpath."):
        if not info.name.startswith(kernels.__name__) and not info.name.endswith("__main__"):
            module = importlib.import_module(info.name)
            for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
                if isinstance(node, ast.Name):
                    named.append(vars(module).get(node.id))
                elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    holder = vars(module).get(node.value.id)
                    named.append(vars(holder).get(node.attr) if isinstance(holder, ModuleType) else None)
    found = {one.__qualname__: type(one) for one in named if isinstance(one, kernels.Kernel)}
    assert {"taken", "minimise"} <= set(found)
    assert set(found.values()) == {kernels.Kernel}


def test_a_kernel_that_only_kernels_call_says_so():
    @kernel(inner=True)
    def doubled(x):
        return 2.0 * x

    @kernel
    def calls(x):
        return doubled(x) + 1.0

    assert calls(1.0) == 3.0
    if config.DISABLE_JIT:
        assert doubled(1.0) == 2.0
    else:
        with pytest.raises(TypeError, match="doubled is called by kernels alone"):
            doubled(1.0)


def test_kernel_modules_are_those_with_kernels():
    modules = compilation.kernel_modules()
    assert {"box", "cd", "rows"} <= set(modules)
    assert not {"cache", "compilation"} & set(modules)


@needs_jit
def test_compilation_is_announced_once_and_counted(own_folder):
    said, names = [], []
    compilation.on_first_compile(lambda: said.append(compilation.compile_seconds()), names.append)
    before = compilation.compile_seconds()

    @kernel
    def inner(x):
        return x + 3

    @kernel(fastmath={"contract"})
    def outer(x):
        return 2 * inner(x)

    around, stopped_clock, started = time.perf_counter(), compilation.clock(), time.perf_counter()
    assert (outer(1), outer(1.5)) == (8, 9.0)
    passed, passed_on_clock = time.perf_counter() - started, compilation.clock() - stopped_clock
    passed_around = time.perf_counter() - around
    spent = compilation.compile_seconds() - before
    assert said == [before]  # before the first compilation, and not again
    assert names == []  # these are no kernels of the package
    assert 0 < spent <= passed
    # However long a machine takes between two readings: the clock was read within one pair and around the other.
    assert passed - spent - 1e-9 <= passed_on_clock <= passed_around - spent + 1e-9
    assert outer.targetoptions["fastmath"] == {"contract"}


@needs_jit
def test_withdrawn_announcement_is_not_made(own_folder):
    compilation.on_first_compile(lambda: pytest.fail("was withdrawn"))
    compilation.on_first_compile(None)
    assert kernel(lambda x: x - 1)(3) == 2


@needs_jit
def test_python_hears_of_a_first_compilation_once(own_folder, caplog, monkeypatch):
    monkeypatch.setattr(compilation._recorder, "logged", False)
    compilation.on_first_compile(None)

    @kernel
    def one(x):
        return x + 5

    assert (one(1), one(1.5)) == (6, 6.5)
    assert [(record.name, record.levelname) for record in caplog.records] == [("screenpath", "WARNING")]
    assert "compiling" in caplog.text


@needs_jit
def test_names_of_kernels_are_told_as_they_are_compiled():
    names = []
    compilation.on_first_compile(lambda: None, names.append)
    compilation.kernel_modules()  # imports them all
    data = {"dispatcher": kernels.KERNELS["box.box_decide"]}
    with event.trigger_event("numba:compile", data=data):
        pass
    compilation.on_first_compile(None)
    assert names == ["box.box_decide"]


def test_others_who_listen_to_llvm_stay():
    """numba's own callbacks go, which nobody reads."""
    mine = lambda: None, lambda: None
    ffi.register_lock_callback(*mine)
    try:
        kernels.prepare.__wrapped__()
        assert ffi.lib._lock._cblist == [mine]
    finally:
        ffi.unregister_lock_callback(*mine)
