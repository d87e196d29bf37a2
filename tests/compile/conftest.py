"""A cache of compiled kernels of a test's own."""

from tests.kernels.conftest import own_folder

__all__ = ["own_folder"]
