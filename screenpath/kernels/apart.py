"""Large kernels are compiled once, and not again within each kernel that calls them. This module holds no kernel.

numba links what a kernel calls into its module, optimises all of it once more, and so on in each further caller; LLVM
would inline none of what is large. So the library of a large kernel hands its callers no code to link: they call its
symbol, which the process's linker finds because the library is loaded first. What a kernel was compiled once for also
has one rounding, whoever calls it.
"""

from __future__ import annotations

import llvmlite.binding as llvm

LARGE = 400  # instructions: what is called for each row, or for a few, is smaller and part of its callers

_symbols: dict[str, tuple] = {}  # of kernels that are apart: name and signature


# Callers link this in place of a kernel that is apart. Nothing of theirs refers to it, so it is dropped; but the
# wrapper for Python must be known as defined when the kernel is loaded.
WRAPPER = 'define linkonce_odr void @"{}"() {{\n unreachable\n}}\n'


def size(library, symbol: str) -> int:
    """Return the number of instructions of a compiled function."""
    return sum(sum(1 for _ in block.instructions) for block in library.get_function(symbol).blocks)


def keep_apart(result, name: str) -> None:
    """Let callers of a kernel that has just been compiled call its symbol, if it is large and not to be inlined.

    Parameters
    ----------
    result : numba.core.compiler.CompileResult
    name : str
        Of the kernel.
    """
    library, function = result.library, result.fndesc
    if function.inline or size(library, function.mangled_name) <= LARGE:
        return
    wrappers = [one.name for one in library.get_defined_functions() if one.name == function.llvm_cpython_wrapper_name]
    linked = llvm.parse_assembly("".join(WRAPPER.format(name) for name in wrappers))
    linked.name = library.name
    library._shared_module = linked  # for callers of this process, and stored beside the object code for others
    remember(result, name)


def needed(library) -> list[tuple]:
    """Return symbol, kernel and signature of all that a library calls and does not hold."""
    missing = (function.name for function in library._final_module.functions if function.is_declaration)
    return [(symbol, *_symbols[symbol]) for symbol in missing if symbol in _symbols]


def remember(result, name: str) -> None:
    """Know the symbol of a kernel, to which those that call it may refer."""
    _symbols[result.fndesc.mangled_name] = name, tuple(result.signature.args)
