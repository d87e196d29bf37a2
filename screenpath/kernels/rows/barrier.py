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

import sys
from typing import NamedTuple

import numpy as np
from numba import config, types
from numba.extending import intrinsic
from numba.np import arrayobj

from screenpath.kernels import kernel

LINE = 8  # int64 of a cache line
SIZE, ARRIVED, FAILED, WORD, OWN = 0, LINE, 2 * LINE, 3 * LINE, 4 * LINE
PATIENCE = 500  # looks at an unchanged counter after which a thread lets others have its processor


class Team(NamedTuple):
    """The threads of a kernel: the ``table`` of block sums, shape (2, blocks, ...), the board, and this thread's
    number.
    """

    table: np.ndarray
    board: np.ndarray
    me: int


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
    return not config.DISABLE_JIT


def _item(context, builder, signature, values):
    """Return the address of an item of a one-dimensional array."""
    array = arrayobj.make_array(signature.args[0])(context, builder, values[0])
    return builder.gep(array.data, [values[1]])


@intrinsic
def _add_one(typingctx, array, index):
    def generate(context, builder, signature, values):
        one = context.get_constant(types.int64, 1)
        return builder.atomic_rmw("add", _item(context, builder, signature, values), one, "seq_cst")

    return types.int64(array, types.int64), generate


@intrinsic
def _load(typingctx, array, index):
    def generate(context, builder, signature, values):
        return builder.load_atomic(_item(context, builder, signature, values), "seq_cst", 8)

    return types.int64(array, types.int64), generate


if config.DISABLE_JIT or sys.platform == "win32":  # which has no such function

    @kernel
    def _yield():
        return 0

else:
    _yield = types.ExternalFunction("sched_yield", types.int32())


@kernel
def meet(team):
    """Return when all threads have come; from now on each sees what the others have written before."""
    board, me = team.board, team.me
    board[OWN + me * LINE] += 1
    if board[SIZE] == 1:
        return
    _add_one(board, ARRIVED)
    wanted, looks = board[OWN + me * LINE] * board[SIZE], 0
    while _load(board, ARRIVED) < wanted:
        looks += 1
        if looks > PATIENCE:
            _yield()
            if _load(board, FAILED) > 0:
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
