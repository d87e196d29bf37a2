"""What a process compiles while another one compiles what it needs. This module holds no kernel.

It helps with what the kernel that it waits for calls, and so on down, and goes on with what else its own kernel calls.
Each process holds a chain of kernels, each called by the one before it, and waits for one that its last one calls. So
those that wait form no cycle, whatever they do meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
import time
from types import SimpleNamespace
from typing import NamedTuple

from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.dispatcher import _FunctionCompiler
from numba.core.errors import NumbaError, NumbaWarning, WarningsFixer
from numba.core.typeinfer import TypeInferer

LOGGER = logging.getLogger(__name__)
PAUSE = 0.1  # seconds until something else is done, and until it is looked for again; each time twice as many


class Later(BaseException):
    """A kernel that is called is not there yet. Not one of numba's errors: those are remembered."""


class Looked(NamedTuple):
    """A kernel that is looked through for what it calls.

    Attributes
    ----------
    types : TypeInferer
    missing : list or None
        Takes what is called and not there, or None where that is compiled at once.
    seen : set or None
        What has been looked into on the way down, or None where what others compile is not looked into.
    """

    types: TypeInferer
    missing: list | None
    seen: set | None


_looked: list[Looked] = []
_seen: list[set] = []  # of the kernels that are looked into now


@contextlib.contextmanager
def _looking(types: TypeInferer, missing: list | None, seen: set | None):
    """Say what happens to a call that cannot be had at once."""
    _looked.append(Looked(types, missing, seen))
    try:
        yield
    finally:
        _looked.pop()


def look_through(types: TypeInferer, missing: list | None = None) -> None:
    """List all that a kernel calls, as far as its types can be told, or have it compiled if nobody else does so."""
    before = None
    with _looking(types, missing, None):
        while before != (before := types.get_state_token()):
            for constraint in types.constraints.constraints:
                with contextlib.suppress(Later, NumbaError):  # an error is said where the kernel itself is compiled
                    constraint(types)


@register_pass(mutates_CFG=False, analysis_only=True)
class Help(AnalysisPass):
    """In place of numba's type inference: compile what a kernel calls.

    What is called last comes first, for the other process comes to it last.
    """

    _name = "screenpath_help"

    def __init__(self):
        super().__init__()

    def run_pass(self, state):
        types, tried = TypeInferer(state.typingctx, state.func_ir, WarningsFixer(NumbaWarning)), set()
        with state.typingctx.callstack.register(state.targetctx.target, types, state.func_id, state.args):
            for k, (name, kind) in enumerate(zip(state.func_ir.arg_names, state.args, strict=True)):
                types.seed_argument(name, k, kind)
            types.build_constraint()
            while True:
                look_through(types, missing := [])
                missing = [one for one in dict.fromkeys(missing) if one not in tried]
                if not missing:
                    break
                tried.update(missing)
                for kernel, args in reversed(missing):
                    with _looking(types, None, _seen[-1]), contextlib.suppress(Later, NumbaError):
                        kernel.compile(args)
        state.cr = SimpleNamespace(typing_error=None)
        return False


class Helper(CompilerBase):
    """numba's passes up to the types."""

    def define_pipelines(self):
        passes = DefaultPassBuilder.define_untyped_pipeline(self.state)
        passes.add_pass(Help, Help._name)
        passes.finalize()
        return [passes]


def look_into(kernel, args: tuple, seen: set) -> None:
    """Help with a kernel that another process compiles, unless that has been done."""
    if (kernel, args) in seen:
        return
    seen.add((kernel, args))
    _seen.append(seen)
    try:
        _FunctionCompiler(kernel.py_func, kernel.targetdescr, kernel.targetoptions, {}, Helper)._compile_core(
            args, None
        )
    except Exception:  # nobody needs this, and what numba has inside may change
        LOGGER.debug("cannot help with %s", kernel, exc_info=True)
    finally:
        _seen.pop()


def caller_of(kernel) -> TypeInferer | None:
    """Return the types of the kernel that asks for this one, None where Python does."""
    callers = kernel.typingctx.callstack
    return callers[0].typeinfer if len(callers) > 0 else None


def list_only(kernel, args: tuple) -> None:
    """Note a kernel that is not there.

    Raises
    ------
    Later
        Its caller only asks what is not.
    """
    if _looked and _looked[-1].missing is not None and _looked[-1].types is caller_of(kernel):
        _looked[-1].missing.append((kernel, args))
        raise Later


def pass_over(kernel, args: tuple) -> None:
    """Help with a kernel that another process compiles in place of waiting for it, if nobody needs it here.

    Raises
    ------
    Later
        Nobody does.
    """
    if _looked and _looked[-1].types is caller_of(kernel):
        if _looked[-1].seen is not None:
            look_into(kernel, args, _looked[-1].seen)
        raise Later


class Meanwhile:
    """What to do while another process compiles a kernel.

    Parameters
    ----------
    kernel : Dispatcher
    args : tuple
        Types of its arguments.
    """

    compiled = 0  # kernels of this process so far

    def __init__(self, kernel, args: tuple):
        self.kernel, self.args, self.caller = kernel, args, caller_of(kernel)
        self.pause, self.again = PAUSE, time.monotonic() + PAUSE

    def work(self) -> bool:
        """Do something, if it is time to; tell whether there was something to do."""
        if time.monotonic() < self.again:
            return False
        before = Meanwhile.compiled
        look_into(self.kernel, self.args, set())
        if Meanwhile.compiled == before and self.caller is not None:
            look_through(self.caller)
            self.caller = None
        found = Meanwhile.compiled > before
        self.pause = 0.0 if found else 2.0 * max(self.pause, PAUSE)
        self.again = time.monotonic() + self.pause
        return found
