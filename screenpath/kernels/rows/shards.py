"""What writing a shard needs: its columns, and their ranges."""

import numpy as np

from screenpath.kernels import kernel


@kernel()
def mark_columns(indices, rank):
    """Set ``rank[j]`` from -1 to 0 for every column that occurs, then number those from 0; return how many there
    are.
    """
    for p in range(indices.size):
        rank[indices[p]] = 0
    count = 0
    for j in range(rank.size):
        if rank[j] == 0:
            rank[j] = count
            count += 1
    return count


@kernel()
def column_ranges(data, indices, low, high, counts):
    """Update the smallest and largest stored value of every column and the number of its stored values."""
    for p in range(indices.size):
        j = indices[p]
        value = np.float64(data[p])
        low[j] = min(low[j], value)
        high[j] = max(high[j], value)
        counts[j] += 1.0


def warm_up():
    indices, v = np.array([0, 1], dtype=np.int32), np.ones(2)
    mark_columns(indices, np.full(2, -1, dtype=np.int32))
    column_ranges(v, indices, v.copy(), v.copy(), v.copy())
