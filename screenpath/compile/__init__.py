"""The cache of compiled kernels: compile once and load fast.

No kernel is here, and numbers do not depend on this room. It knows nothing of the package except its errors.
"""

# Every kernel imported so far, by "module.function".
KERNELS: dict = {}


def name_of(function) -> str:
    """Return the name of a kernel in :data:`KERNELS` and in the cache: "module.function"."""
    return f"{function.__module__.rpartition('.')[2]}.{function.__qualname__.replace('<locals>', '')}"
