"""Array views without reference counts."""

from numba import config
from numba.extending import intrinsic
from numba.np import arrayobj

if config.DISABLE_JIT:

    def unowned(array):
        """Return the array: the interpreter counts all views."""
        return array

else:

    @intrinsic
    def unowned(typingctx, array):
        """Return a view that does not own its memory, and whose own views do not either.

        Each view of an array that numba owns raises the count of its users and lowers it again, atomically, which takes
        longer than a loop over a few rows. Only for an argument of a kernel: its caller keeps the memory.
        """

        def generate(context, builder, signature, values):
            made = arrayobj.make_array(signature.return_type)(context, builder, values[0])
            for owner in ("meminfo", "parent"):
                setattr(made, owner, getattr(made, owner).type(None))
            return made._getvalue()

        return array(array), generate
