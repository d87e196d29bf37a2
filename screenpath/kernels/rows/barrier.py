"""Threads that run one kernel together.

Every thread makes the same call with the same arrays and its own number. It does its share of the blocks of each loop,
writes their sums to a table, meets the others, and adds up the whole table. Every thread computes what follows from
the sums by itself, with the same result. So nothing is handed over, and loops follow each other within a microsecond,
where waking a thread from Python takes 30 to 100. Results are the same bytes for every size of the team: the borders
of blocks depend only on the length of a loop. numba's own parallel loops neither survive a fork nor can be
started from two threads at once.

Between two meetings a kernel may read what no other thread writes, and write what no other thread reads. The table
has two halves, used in turn, so that a fast thread does not overwrite what a slow one still reads.

In addition to their data they share the *board*, an array of int64: the size of the team, how many have arrived,
whether one has failed, a word from the first thread to the others, and how many meetings each has attended, a cache
line apart.
"""

from typing import NamedTuple

import numpy as np

from screenpath.kernels import kernel

LINE = 8  # int64 of a cache line
SIZE, ARRIVED, FAILED, WORD, OWN = 0, LINE, 2 * LINE, 3 * LINE, 4 * LINE
PATIENCE = 500  # looks at an unchanged counter after which a thread lets others have its processor


class Team(NamedTuple):
    """The threads of a kernel."""

    table: np.ndarray  # of block sums, shape (2, blocks, ...)
    board: np.ndarray
    me: int  # this thread's number


def alone() -> Team:
    """Return the team of a kernel that needs no block sums and has one thread."""
    return Team(np.empty((2, 0, 0)), make_board(1), 0)


def make_board(size: int) -> np.ndarray:
    board = np.zeros(OWN + size * LINE, dtype=np.int64)
    board[SIZE] = size
    return board


def leave(board) -> None:
    """Record that a thread has failed: the others need not wait for it."""
    board[FAILED] = 1


def can_share() -> bool:
    """Tell whether several threads can run one kernel: it has to be compiled."""
    from numba import config

    return not config.DISABLE_JIT


# What follows is atomic in compiled code, see ``kernels.machine``; the interpreter runs one thread only.


def add_one(array, index) -> int:
    """Add 1 to an item; return what it was."""
    array[index] += 1
    return array[index] - 1


def look_at(array, index) -> int:
    """Return an item as the other threads left it."""
    return array[index]


def give_way() -> int:
    """Let another thread have the processor."""
    return 0


@kernel
def meet(team):
    """Return when all threads have come; from now on each sees what the others have written before."""
    board, me = team.board, team.me
    board[OWN + me * LINE] += 1
    if board[SIZE] == 1:
        return
    add_one(board, ARRIVED)
    wanted, looks = board[OWN + me * LINE] * board[SIZE], 0
    while look_at(board, ARRIVED) < wanted:
        looks += 1
        if looks > PATIENCE:
            give_way()
            if look_at(board, FAILED) > 0:
                raise RuntimeError("another thread of the team has failed")


@kernel(leaf=True)
def half(team):
    """Return which half of the table is written until the next meeting."""
    return team.board[OWN + team.me * LINE] & 1


@kernel(leaf=True)
def share(team, size, step):
    """Return this thread's blocks of ``step``, the first and one past the last, and how many blocks there are."""
    blocks = 1 if 0 < size <= step else (size + step - 1) // step  # a division takes as long as a short loop
    threads, me = team.board[SIZE], team.me
    if threads == 1:
        return 0, blocks, blocks
    return blocks * me // threads, blocks * (me + 1) // threads, blocks


def warm_up():
    team = alone()
    meet(team)
    half(team)
    share(team, 1, 1)
