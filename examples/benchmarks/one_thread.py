"""Import me before numpy: every thread pool is held to one thread, for every solver alike."""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"


def check() -> int:
    """The largest thread pool that is loaded; the benchmark refuses to run unless it is 1."""
    from threadpoolctl import threadpool_info

    return max((pool["num_threads"] for pool in threadpool_info()), default=1)
