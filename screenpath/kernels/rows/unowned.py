"""Arrays without reference counts."""

from numba import config, types
from numba.extending import intrinsic
from numba.np import arrayobj

if config.DISABLE_JIT:

    def unowned(value):
        """Return the value: the interpreter counts all views."""
        return value

else:

    @intrinsic
    def unowned(typingctx, value):
        """Return a view of an array that does not own its memory, and whose own views do not either.

        Of a tuple, the same for each of its arrays. Each view of an array that numba owns raises the count of its users
        and lowers it again, atomically, which takes longer than a loop over a few rows. Only for an argument of a
        kernel: its caller keeps the memory.
        """

        def lend(context, builder, kind, given):
            if isinstance(kind, types.BaseTuple):
                parts = [lend(context, builder, one, builder.extract_value(given, k)) for k, one in enumerate(kind)]
                return context.make_tuple(builder, kind, parts)
            if not isinstance(kind, types.Array):
                return given
            made = arrayobj.make_array(kind)(context, builder, given)
            for owner in ("meminfo", "parent"):
                setattr(made, owner, getattr(made, owner).type(None))
            return made._getvalue()

        def generate(context, builder, signature, values):
            return lend(context, builder, signature.return_type, values[0])

        return value(value), generate
