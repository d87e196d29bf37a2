"""What a limit says and counts; whether commands keep it is seen in cli/test_max_memory.py."""

import pickle
import re
import sys

import pytest

from screenpath.data.safe.memory import MARGIN, MB, MemoryLimit, parse_bytes, private_bytes
from screenpath.errors import ResourceError
from tests.cli.conftest import in_process


def suggested(error) -> int:
    return parse_bytes(re.findall(r"`max_memory=(\d+M)`", str(error.value))[-1])


def test_a_share_speaks_of_the_limit_of_the_command():
    whole = MemoryLimit(private_bytes() + 2000 * MB)
    whole.lend(3, 10 * MB, 0, "three processes", "")
    share = pickle.loads(pickle.dumps(whole.share))
    assert 3 * share.limit <= whole.lent <= whole.limit - private_bytes()
    with pytest.raises(ResourceError, match="the share of each process in `max_memory") as caught:
        share.check(share.limit, "a fold")
    short = MARGIN * (private_bytes() + share.limit + share.to_come) - share.limit
    assert suggested(caught) == pytest.approx(whole.limit + 3 * short, abs=3 * MB)
    whole.take_back()
    assert whole.share is None and whole.lent == 0


LEFT = """
import numpy as np
from screenpath.errors import ResourceError
from screenpath.data.safe.memory import MemoryLimit, private_bytes
from screenpath.rows.gram import Allowance
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
MB = 1 << 20
X, allowed = np.random.default_rng(0).normal(size=(1500, 3)), Allowance(60 * MB, 100 * MB)
def planned():
    return GramRows(X, KernelFunction("rbf", 1.0), np.ones(1500), allowed).plan
assert planned().whole
with MemoryLimit(private_bytes() + 70 * MB).in_force():  # of which 34 MB are spoken for
    plan = planned()
assert plan.most <= plan.allowed <= 36 * MB and plan.allowed % (4 * MB) == 0, plan
try:
    with MemoryLimit(private_bytes() + 40 * MB).in_force():
        planned()
except ResourceError as error:
    print(error)
"""


def test_a_kernel_matrix_takes_what_is_left_where_that_is_less_than_was_allowed():
    """In a process of its own: what others have left in this one's heap comes and goes."""
    done = in_process(LEFT)
    assert done.returncode == 0 and "max_memory" in done.stdout, done


KEPT = """
import sys
import numpy as np
from screenpath.data.safe.memory import MemoryLimit, private_bytes
from screenpath.data.shards.checks import map_array
from screenpath.errors import ResourceError
MB = 1 << 20
array = np.zeros(10 * MB)
np.save(sys.argv[1], array)
del array
def mapped():
    return map_array(sys.argv[1], [np.float64], (10 * MB,)).array
first = mapped()
with MemoryLimit(private_bytes() + 40 * MB).in_force() as limit:
    with limit.kept("the path"):
        np.ones(2 * MB)  # fits
        for _ in range(5):  # what is mapped takes no private memory, whenever it is mapped and let go of
            second = mapped()
            assert second[-1] == 0.0
        del first, second
        for size in (2, 8):
            try:
                np.ones(size * MB)
            except MemoryError:
                assert size == 8
                print("refused")
    try:
        with limit.kept("the path", "use fewer rows"):
            np.ones(8 * MB)
    except ResourceError as error:
        print(" ".join(str(error).split()))
np.ones(8 * MB)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not refuse")
def test_the_system_refuses_what_a_path_takes_beyond_the_limit_and_no_mapped_file(tmp_path):
    done = in_process(KEPT, tmp_path / "array.npy")
    assert done.returncode == 0, done
    first, second = done.stdout.splitlines()
    assert first == "refused" and second.startswith("the path would take more than `max_memory=")
    assert "use fewer rows; or use `max_memory=" in second
