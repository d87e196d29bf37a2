"""Import me before numpy: every thread pool is held to one thread, for every solver alike."""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"


def require() -> None:
    """Stop unless every loaded thread pool has one thread; the comparison would not be fair."""
    from threadpoolctl import threadpool_info

    wide = [pool["internal_api"] for pool in threadpool_info() if pool["num_threads"] != 1]
    if wide:
        raise SystemExit(f"these thread pools have more than one thread: {', '.join(wide)}")
