"""The cache of compiled kernels: compile once and load fast.

No kernel is here, and numbers do not depend on this room. It knows nothing of the package except its errors.
"""
