"""Work on parts of the data, by several threads, with the results in order."""

from __future__ import annotations

from collections import deque


def in_order(pool, most: int, function, tasks):
    """Yield ``function(*arguments)`` for each of ``tasks``, in order: ``most`` at once in a pool, or in this thread."""
    if pool is None:
        for arguments in tasks:
            yield function(*arguments)
        return
    waiting: deque = deque()
    for arguments in tasks:
        waiting.append(pool.submit(function, *arguments))
        if len(waiting) > most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
