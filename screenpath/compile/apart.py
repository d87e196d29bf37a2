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
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NopythonRewrites
from numba.np.ufunc.array_exprs import RewriteArrayExprs

LARGE = 400  # instructions: what is called for each row, or for a few, is smaller and part of its callers
INSTRUCTION = re.compile(r"^  [^ \]]", re.MULTILINE)  # a line of its own, and no end of a list of cases

# numba's passes for what no kernel contains, or nobody looks at.
WITHOUT = (
    "with_lifting", "inline_closure_likes", "inline_inlinables", "inline_overloads", "find_literally", "literal_unroll",
    "LiteralPropagation", "make_function_op_code_to_jit_function", "Rewrite dynamic raises", "annotate_types",
    "dump_parfor_diagnostics",
)  # fmt: skip

_symbols: dict[str, tuple] = {}  # of kernels that are apart: name and signature


ENVIRONMENT = "_ZN08NumbaEnv"  # what numba sets in each library, and nothing of ours reads


@register_pass(mutates_CFG=True, analysis_only=False)
class Rewrites(NopythonRewrites):
    """numba's pass that fuses sums of arrays, for kernels that have some: it goes through all code several times."""

    _name = "rewrites"

    def run_pass(self, state):
        code, sums = state.func_ir, RewriteArrayExprs(state)
        some = any(sums.match(code, block, state.typemap, state.calltypes) for block in code.blocks.values())
        return super().run_pass(state) if some else False


class Pipeline(CompilerBase):
    """numba's passes but for some, whose result is a :class:`Library`."""

    def define_pipelines(self):
        state, inherited = self.state, ConfigStack().top()
        # A part of numba's own is compiled once for all that inherit the same, and of a caller it inherits neither.
        inherited.forceinline, inherited.no_cpython_wrapper = False, True
        state.library = Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.library.inline, state.library.inner = state.flags.forceinline, state.flags.no_cpython_wrapper
        passes = DefaultPassBuilder.define_nopython_pipeline(state)
        kept = [one for one in passes.passes if one[0]._name not in WITHOUT]
        passes.passes = [(Rewrites, what) if one is NopythonRewrites else (one, what) for one, what in kept]
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
    linked : bytes
        Of a library that was stored, what callers link: few are compiled, and nobody else reads it.
    """

    inline = inner = apart = False
    whole = linked = None

    def _finalize_final_module(self):
        self.whole = self._final_module
        self.apart = not self.inline and size(self._own()) > LARGE
        if self.inner and not self.apart:
            self._finalize_dynamic_globals()
            self._only_link()
        super()._finalize_final_module()

    def _optimize_functions(self, ll_module):
        ll_module.data_layout = self._codegen._data_layout  # all else is done once, when the module is whole

    def _get_module_for_linking(self):
        if self._shared_module is None and self.linked is not None:
            self._shared_module = llvm.parse_bitcode(self.linked)
        return super()._get_module_for_linking()

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
    library = result.library
    if not library.apart:
        return
    library._shared_module = llvm.parse_assembly("")  # what callers link, in this process and others: nothing
    library._shared_module.name = library.name
    remember(result, name)


def rebuilt(context, stored: tuple, inner: bool) -> CompileResult:
    """Return what a kernel was compiled to in another process.

    Parameters
    ----------
    context : numba.core.cpu.CPUContext
    stored : tuple
        The first items of numba's ``CompileResult._reduce``. Others are environments of what the kernel calls, which
        import much of numba and which nothing of ours reads.
    inner : bool
        Whether it has no wrapper for Python.
    """
    (name, _, (machine_code, linked)), function, environment, signature = stored
    codegen = context.codegen()
    library = Library(codegen, name)
    library.enable_object_caching()
    library._set_compiled_object(machine_code)
    library.linked = linked
    JITCodeLibrary._finalize_final_module(library)
    names = [function.mangled_name] if inner else [function.mangled_name, function.llvm_cpython_wrapper_name]
    codegen._engine._defined_symbols.update(names)
    entry = context.get_executable(library, function, environment)
    known = dict(
        typing_context=context.typing_context, target_context=context, entry_point=entry, signature=signature,
        objectmode=False, lifted=(), fndesc=function, library=library, environment=environment,
    )  # fmt: skip
    return CompileResult(**{**dict.fromkeys(CompileResult._fields), **known})


def needed(library) -> list[tuple]:
    """Return symbol, kernel and signature of all that a library calls and does not hold."""
    missing = (function.name for function in library.whole.functions if function.is_declaration)
    return [(symbol, *_symbols[symbol]) for symbol in missing if symbol in _symbols]


def remember(result, name: str) -> None:
    """Know the symbol of a kernel, to which those that call it may refer."""
    _symbols[result.fndesc.mangled_name] = name, tuple(result.signature.args)
