"""Threads that run one kernel together: nobody goes on before all have come, and a failure sets everybody free."""

import threading

import numpy as np
import pytest
from numba import config

from screenpath.kernels import kernel
from screenpath.kernels.rows import barrier
from tests.conftest import HANGS

needs_jit = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="the jit is disabled")
STEP = 7
TABLE = np.empty((2, 0))


@kernel
def add_up(values, rounds, team):
    """Add the sum of all values to each of them, again and again, modulo 1000."""
    total = 0.0
    first, last, blocks = barrier.share(team, values.size, STEP)
    for _ in range(rounds):
        out = team.table[barrier.half(team)]
        for b in range(first, last):
            out[b] = 0.0
            for r in range(b * STEP, min(values.size, (b + 1) * STEP)):
                values[r] = (values[r] + total) % 1000.0
                out[b] += values[r]
        barrier.meet(team)
        total = 0.0
        for b in range(blocks):
            total += out[b]
    return total


def run(size, members, rounds=3000):
    values, board, found = np.arange(float(size)), barrier.make_board(members), []
    table = np.empty((2, size))
    add_up(values.copy(), 1, barrier.Team(table, barrier.make_board(1), 0))  # compiled
    helpers = [
        threading.Thread(target=lambda me=me: found.append(add_up(values, rounds, barrier.Team(table, board, me))))
        for me in range(1, members)
    ]
    for helper in helpers:
        helper.start()
    found.append(add_up(values, rounds, barrier.Team(table, board, 0)))
    for helper in helpers:
        helper.join(timeout=HANGS)
        assert not helper.is_alive()
    return values, found


@needs_jit
@pytest.mark.covering(1)
@pytest.mark.parametrize("members", [2, 3, 5])  # more than there are processors, perhaps; the last have nothing to do
@pytest.mark.parametrize("size", [5, 30, 100])
def test_members_see_what_the_others_have_written(members, size):
    values, (alone,) = run(size, 1)
    others, found = run(size, members)
    assert others.tobytes() == values.tobytes()
    assert found == [alone] * members


def test_shares_are_all_blocks_in_order():
    for size in (0, 1, STEP, STEP + 1, 100):
        for members in (1, 2, 3, 8):
            board = barrier.make_board(members)
            shares = [barrier.share(barrier.Team(TABLE, board, me), size, STEP) for me in range(members)]
            blocks = -(-size // STEP)
            assert {share[2] for share in shares} == {blocks}
            assert [b for first, last, _ in shares for b in range(first, last)] == list(range(blocks))


def test_halves_take_turns():
    team, turns = barrier.alone(), []
    for _ in range(4):
        turns.append(barrier.half(team))
        barrier.meet(team)
    assert turns == [0, 1, 0, 1]


@needs_jit
def test_failure_sets_the_others_free():
    board, errors = barrier.make_board(2), []

    def wait():
        with pytest.raises(RuntimeError, match="another thread") as caught:
            barrier.meet(barrier.Team(TABLE, board, 0))
        errors.append(caught)

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(timeout=0.2)
    assert waiting.is_alive()  # nobody else has come
    barrier.leave(board)
    waiting.join(timeout=HANGS)
    assert errors
