"""The only numba code of the package: plain arrays in, plain arrays out.

Every kernel is compiled through :func:`kernel`, which keeps the machine code in the folder that
:func:`screenpath.compile.cache.cache_folder` chooses. To import kernels does not import numba: the first call does.

These names mean the same in every kernel. Other arrays are described where they are used.

- ``X``: the rows, a ``Matrix``. ``where``: which rows of ``X`` a problem uses. ``signs``: +-1, which each is times.
- ``c, lo, hi, norms, sqnorms``: per row, the kink, both ends of the dual variable's box, the norm and its square.
- ``theta``, ``alpha = C theta``: dual variables. ``w``: primal point. ``total``, ``v``: a sum of rows times those.
- ``margins``, ``products``: inner products of the rows with ``w`` or another point.
- ``status``, ``decided``: int8 per row, -1 fixed at the lower end, +1 at the upper end, 0 not fixed.
- ``start, stop``: only the rows ``start <= i < stop``. ``team``: the threads that share the work (see ``barrier``).
- ``rounding``: relative error bound. ``tol``: relative gap. ``touched``: rows (or values) read.
"""

from __future__ import annotations

import functools
import threading

import numpy as np

from screenpath.compile import KERNELS, name_of
from screenpath.errors import waits

# For subscripts of sparse rows: numba asks of each signed one whether it counts from the end, which takes about as long
# as the rest of such a loop.
at = np.uint64
# For `fastmath`: sums may be added up in any order, which lets them vectorise; nan and inf keep their meaning.
SUMS = {"reassoc", "contract", "nsz", "arcp"}
_one_at_a_time = threading.RLock()


class Kernel:
    """A function that numba learns of when it is first called, from Python or by a kernel that is compiled.

    Four hundred dispatchers take longer to make than a small path takes to walk; a command calls a few of them.

    Parameters
    ----------
    function : callable
        Over plain arrays and numbers.
    options : dict
        Of :func:`numba.njit`.
    """

    inner = False

    def __init__(self, function, options: dict):
        functools.update_wrapper(self, function)
        self.function, self._options, self._dispatcher = function, options, None
        KERNELS[name_of(function)] = self

    @property
    def dispatcher(self):
        """Return numba's dispatcher; under ``NUMBA_DISABLE_JIT=1`` the function itself."""
        if self._dispatcher is None:
            with _one_at_a_time:
                if self._dispatcher is None:
                    self._dispatcher = _dispatcher(self.function, self._options)
        return self._dispatcher

    @property
    def _numba_type_(self):  # by which kernels call each other
        return self.dispatcher._numba_type_

    def __call__(self, *arguments):
        return (self._dispatcher or self.dispatcher)(*arguments)

    def __getattr__(self, name: str):
        return getattr(self.dispatcher, name)


class Inner(Kernel):
    """A kernel without a wrapper for Python: a call from there would end the process."""

    inner = True

    def __call__(self, *arguments):
        if self.dispatcher is not self.function:
            raise TypeError(f"{self.__qualname__} is called by kernels alone")
        return self.function(*arguments)


def kernel(function=None, leaf=False, inner=False, **options):
    """Compile a function with numba, without the GIL, and keep the machine code for the next process.

    Parameters
    ----------
    function : callable
        A function over plain arrays and numbers; ``@kernel`` and ``@kernel(fastmath=...)`` both work.
    leaf : bool, default False
        For a function that makes no array and returns only numbers: numba then does not count references to its arrays.
        Counting costs two atomic operations per array or row view, more than a loop over a short row.
    inner : bool, default False
        Whether only other kernels call it, not Python; so it is anyway if its name begins with an underscore.
    **options
        Passed to :func:`numba.njit`. Kernels that may meet nan or inf must not assume their absence, so
        ``fastmath`` is given as a set of flags such as ``{"reassoc", "contract", "nsz", "arcp"}``.

    Returns
    -------
    Kernel
    """
    if function is None:
        return lambda decorated: kernel(decorated, leaf, inner, **options)
    # Wrappers take as long to compile as a small kernel: none for C, and none for Python where only kernels call it.
    inner = inner or function.__name__.startswith("_")
    wrappers = {"no_cfunc_wrapper": True, "no_cpython_wrapper": inner}
    # `_nrt` is said of every kernel: what is compiled on the way inherits it else.
    return (Inner if inner else Kernel)(function, {"_nrt": not leaf, **wrappers, **options})


@waits
def _dispatcher(function, options: dict):
    from numba import njit, types

    from screenpath.compile.apart import Pipeline
    from screenpath.compile.cache import KernelCache

    prepare()
    # Divisions by zero give inf or nan, as in numpy: what overflows is named by its certificate, not by a traceback.
    dispatcher = njit(nogil=True, error_model="numpy", pipeline_class=Pipeline, **options)(function)
    if dispatcher is not function:  # NUMBA_DISABLE_JIT=1 hands the plain function back
        template = dispatcher.get_call_template
        # Numbers known to the compiler would be types of their own, each with its copy of what it is passed to.
        dispatcher.get_call_template = lambda args, kws: template([types.unliteral(a) for a in args], kws)
        dispatcher.compile = waits(dispatcher.compile)
        # In place of cache=True: numba's own store breaks on a damaged file, see cache.py.
        dispatcher._cache = KernelCache(function)
    return dispatcher


@functools.cache
def prepare() -> None:
    """Tell numba what kernels need before the first of them is compiled."""
    from llvmlite.binding import ffi
    from numba.core import serialize
    from numba.core.targetconfig import TargetConfig

    import screenpath.kernels.machine  # noqa: F401

    # numba asks Python for the class of every array and named tuple that a kernel returns, and there the handler of a
    # signal runs that came within the kernel. What it raises is lost then, or ends the process: numba does not look
    # whether there is a class. A memory that is no Python code lets the signal wait for the caller.
    if hasattr(serialize, "_numba_unpickle") and not hasattr(serialize._numba_unpickle, "cache_info"):
        serialize._numba_unpickle = functools.lru_cache(maxsize=None)(serialize._numba_unpickle)

    # numba tells whoever listens of each call of LLVM, which takes longer than most of these calls. Nobody does.
    for pair in tuple(getattr(ffi.lib._lock, "_cblist", ())):
        if pair[0].__module__ == "numba.core.base":
            ffi.unregister_lock_callback(*pair)

    # For each function that a kernel calls numba compares options by asking for all of them, one by one.
    @functools.cache
    def defaults(kind):
        return {name: option.default for name, option in kind.options.items()}

    TargetConfig.values = lambda self: defaults(type(self)) | self._values
