"""Arrays without reference counts."""


def unowned(value):
    """Return a view of an array that does not own its memory, and whose own views do not either.

    Of a tuple, the same for each of its arrays. Each view of an array that numba owns raises the count of its users
    and lowers it again, atomically, which takes longer than a loop over a few rows. Only for an argument of a
    kernel: its caller keeps the memory. See ``kernels.machine``; the interpreter counts all views.
    """
    return value
