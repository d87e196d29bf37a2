"""Each kernel is compiled once: large ones apart from those that call them, small ones for their callers alone.

numba links what a kernel calls into its module, optimises all of it once more, and so on in each further caller; LLVM
would inline none of what is large. So the library of a large kernel hands its callers no code to link: they call its
symbol, which the process's linker finds because the library is loaded first. What a kernel was compiled once for also
has one rounding, whoever calls it. Of what its callers link, and nobody else calls, no machine code is made: nobody
would run it. This module holds no kernel.
"""

from __future__ import annotations

import re

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder

LARGE = 400  # instructions: what is called for each row, or for a few, is smaller and part of its callers
INSTRUCTION = re.compile(r"^  [^ \]]", re.MULTILINE)  # a line of its own, and no end of a list of cases

WITHOUT = ("with_lifting", "inline_closure_likes", "inline_inlinables")  # numba's passes for what no kernel contains

_symbols: dict[str, tuple] = {}  # of kernels that are apart: name and signature


# Callers link this in place of a kernel that is apart. Nothing of theirs refers to it, so it is dropped; but the
# wrapper for Python must be known as defined when the kernel is loaded.
WRAPPER = 'define linkonce_odr void @"{}"() {{\n unreachable\n}}\n'
ENVIRONMENT = "_ZN08NumbaEnv"  # what numba sets in each library, and nothing of ours reads


class Pipeline(CompilerBase):
    """numba's passes but for some, whose result is a :class:`Library`."""

    def define_pipelines(self):
        state = self.state
        state.library = Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.library.inline, state.library.inner = state.flags.forceinline, state.flags.no_cpython_wrapper
        passes = DefaultPassBuilder.define_nopython_pipeline(state)
        passes.passes = [one for one in passes.passes if one[0]._name not in WITHOUT]
        passes.finalize()
        return [passes]


class Library(JITCodeLibrary):
    """What a kernel is compiled to.

    Attributes
    ----------
    inline, inner : bool
        Whether callers inline the kernel, and whether Python cannot call it.
    apart : bool
        Whether callers are to call it by its symbol.
    whole : llvmlite.binding.ModuleRef
        The kernel and all that it calls and is not apart, optimised.
    """

    inline = inner = apart = False
    whole = None

    def _finalize_final_module(self):
        self.whole = self._final_module
        self.apart = not self.inline and size(self._own()) > LARGE
        if self.inner and not self.apart:
            self._finalize_dynamic_globals()
            self._only_link()
        super()._finalize_final_module()

    def _optimize_functions(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout  # all else is done once, when the module is whole

    def _own(self):
        """Return the function that callers call: the only external one beside wrappers."""
        functions = (one for one in self.whole.functions if not one.is_declaration)
        return next(one for one in functions if one.linkage == llvm.Linkage.external and "cpython" not in one.name)

    def _only_link(self) -> None:
        """Keep the code for callers to link, and leave of it what numba sets."""
        own, left = self._own(), [one for one in self.whole.global_variables if one.name.startswith(ENVIRONMENT)]
        own.linkage = "linkonce_odr"  # as numba's own modules for linking have it
        self._shared_module = self.whole
        self._final_module = llvm.parse_assembly("\n".join(map(str, left)))
        self._final_module.triple, self._final_module.data_layout = self.whole.triple, self.whole.data_layout
        self._final_module.name = self.name


def size(function) -> int:
    """Return the number of instructions of a compiled function."""
    return len(INSTRUCTION.findall(str(function)))  # one by one they take as long as a pass of the optimiser


def keep_apart(result, name: str) -> None:
    """Let callers of a kernel that has just been compiled call its symbol, if it is to be apart.

    Parameters
    ----------
    result : numba.core.compiler.CompileResult
    name : str
        Of the kernel.
    """
    library, function = result.library, result.fndesc
    if not library.apart:
        return
    wrappers = [one.name for one in library.get_defined_functions() if one.name == function.llvm_cpython_wrapper_name]
    linked = llvm.parse_assembly("".join(WRAPPER.format(name) for name in wrappers))
    linked.name = library.name
    library._shared_module = linked  # for callers of this process, and stored beside the object code for others
    remember(result, name)


def needed(library) -> list[tuple]:
    """Return symbol, kernel and signature of all that a library calls and does not hold."""
    missing = (function.name for function in library.whole.functions if function.is_declaration)
    return [(symbol, *_symbols[symbol]) for symbol in missing if symbol in _symbols]


def remember(result, name: str) -> None:
    """Know the symbol of a kernel, to which those that call it may refer."""
    _symbols[result.fndesc.mangled_name] = name, tuple(result.signature.args)
