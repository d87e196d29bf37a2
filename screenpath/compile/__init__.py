"""The cache of compiled kernels, and what else numba needs to compile once and load fast.

No kernel stands here: numbers do not depend on this room. It knows nothing of the package but its errors.
"""
