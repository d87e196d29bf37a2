"""CSR arrays as scipy has them, without the copies that it makes where row pointers are wider than indices."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def shared_csr(data, indices, indptr, shape: tuple) -> sp.csr_array:
    """Return a CSR array that shares values and indices with what is given.

    ``sp.csr_array`` has one type for indices and row pointers, the wider of the two: 64-bit row pointers, as the
    kernels take them, would make a copy of the indices of twice their size, and of all that is made of it (columns).
    """
    if indptr[-1] <= np.iinfo(indices.dtype).max:
        indptr = indptr.astype(indices.dtype, copy=False)
    return sp.csr_array((data, indices, indptr), shape=shape)
