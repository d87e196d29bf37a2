from numba import njit


def kernel(**options):
    return njit(cache=True, nogil=True, **options)
