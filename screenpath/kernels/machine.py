"""Machine code for what Python has no words for: atomic counters, the system's clock, views without reference counts.

Kernels call plain functions of ``kernels.rows`` that mean the same to the interpreter. Importing this module tells
numba what to generate in their place; :func:`screenpath.kernels.prepare` does so before anything is compiled.
"""

import os
import time

import numpy as np
from numba import types
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template
from numba.extending import overload

from screenpath.kernels.rows.barrier import add_one, give_way, look_at
from screenpath.kernels.rows.clock import seconds
from screenpath.kernels.rows.unowned import unowned


def generates(function):
    """Return a decorator of what numba calls with the types of a call of ``function``, for signature and code."""

    def register(definition):
        template = make_intrinsic_template(function, definition, function.__name__)
        infer(template)
        infer_global(function, types.Function(template))
        return definition

    return register


@generates(unowned)
def _unowned(context, value):
    from numba.np.arrayobj import make_array  # here: it takes longer to import than ten kernels to load

    def lend(context, builder, kind, given):
        if isinstance(kind, types.BaseTuple):
            parts = [lend(context, builder, one, builder.extract_value(given, k)) for k, one in enumerate(kind)]
            return context.make_tuple(builder, kind, parts)
        if not isinstance(kind, types.Array):
            return given
        made = make_array(kind)(context, builder, given)
        for owner in ("meminfo", "parent"):
            setattr(made, owner, getattr(made, owner).type(None))
        return made._getvalue()

    def generate(context, builder, signature, values):
        return lend(context, builder, signature.return_type, values[0])

    return value(value), generate


def _item(context, builder, signature, values):
    """Return the address of an item of a one-dimensional array."""
    from numba.np.arrayobj import make_array  # here: as in `_unowned`

    array = make_array(signature.args[0])(context, builder, values[0])
    return builder.gep(array.data, [values[1]])


@generates(add_one)
def _add_one(context, array, index):
    def generate(context, builder, signature, values):
        one = context.get_constant(types.int64, 1)
        return builder.atomic_rmw("add", _item(context, builder, signature, values), one, "seq_cst")

    return types.int64(array, types.int64), generate


@generates(look_at)
def _look_at(context, array, index):
    def generate(context, builder, signature, values):
        return builder.load_atomic(_item(context, builder, signature, values), "seq_cst", 8)

    return types.int64(array, types.int64), generate


if os.name == "posix":
    infer_global(give_way, types.ExternalFunction("sched_yield", types.int32()))
    _gettime = types.ExternalFunction("clock_gettime", types.intc(types.intc, types.CPointer(types.int64)))
    _MONOTONIC = time.CLOCK_MONOTONIC

    @overload(seconds)
    def _seconds():
        def read():
            parts = np.empty(2, np.int64)
            _gettime(_MONOTONIC, parts.ctypes)
            return parts[0] + 1e-9 * parts[1]

        return read

else:  # Windows has neither: a thread that waits keeps its processor, and phases within a compiled call take 0 s

    @overload(give_way)
    def _give_way():
        return lambda: 0

    @overload(seconds)
    def _seconds():
        return lambda: 0.0
