"""What a limit says and counts; whether commands keep it is seen in cli/test_max_memory.py."""

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.catalogue.losses import LOSSES
from screenpath.data.safe.memory import MARGIN, MB, MemoryLimit, parse_bytes, private_bytes
from screenpath.data.safe.needs import solving
from screenpath.errors import ResourceError
from screenpath.kernels.rows.matrix import matrix_of
from screenpath.kernels.solve import newton, survey
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_rule
from screenpath.solve import make_solver
from screenpath.walk.loop import PathOptions
from screenpath.walk.one_vs_rest import OneVsRest, walk_classes
from tests.cli.conftest import in_process


def suggested(error) -> int:
    """Return the limit that a message suggests, in bytes."""
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


def test_what_was_promised_and_is_taken_counts_once():
    limit = MemoryLimit(1 << 40)
    limit.promised = 30 * MB
    before = limit.to_come
    limit.fulfil(10 * MB)
    assert before - limit.to_come == 10 * MB
    limit.fulfil(50 * MB)
    assert before - limit.to_come == 30 * MB


def test_walks_of_further_classes_fulfil_what_was_promised():
    rng = np.random.default_rng(0)
    model = OneVsRest(LOSSES["svm"].model, MemoryRows(rng.normal(size=(90, 4))), np.arange(90) % 3)
    limit = MemoryLimit(1 << 40)
    with limit.in_force():
        limit.promised = 1 << 20
        how = parse_rule("dvi"), make_solver("newton", 0), PathOptions(tol=1e-3)
        found = walk_classes(model, [1e-3, 1e-2, 1e-1], *how)
        for certificates in (1, 2, 2):  # of each class: of this point, and of the one before
            next(found)
            assert limit.promised == (1 << 20) - 3 * certificates * 4 * (4 * 90 + 3 * 4)


LEFT = """
import numpy as np
from screenpath.errors import ResourceError
from screenpath.data.safe.memory import MemoryLimit, private_bytes
from screenpath.rows.budget import Allowance
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
MB = 1 << 20
X, allowed = np.random.default_rng(0).normal(size=(1500, 3)), Allowance(60 * MB, 100 * MB)
def planned():
    return GramRows(X, KernelFunction("rbf", 1.0), np.ones(1500), allowed).plan
assert planned().full
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


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("k", [1, 400])
@pytest.mark.parametrize("d", [5, 600, 601])
def test_a_solver_takes_no_more_room_than_was_asked_for(k, d, sparse):
    values = k * min(d, 7) if sparse else k * d
    asked = solving(k, d, values, dense=not sparse, copied=False, newton=True)
    most = min(k, d // 2)  # rows whose Gram matrix is formed in place of a Hessian
    within = d * d + most * (most + (0 if sparse else d)) if d <= newton.DIRECT else 0  # and the Hessian's factor
    assert sum(part.nbytes for part in newton.workspace(k, d, sparse)) + 8 * within <= asked


def test_steps_on_the_face_keep_no_more_than_was_asked_for():
    """Step after step on other rows, most of which were there before."""
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 900), density=0.02, format="csr", random_state=1) + sp.eye_array(400, 900, format="csr")
    X = matrix_of((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64)))
    known, most = survey.nothing_known(), 0
    for _ in range(2 * survey.LONG):
        rows = np.flatnonzero(rng.random(400) < 0.9)
        *known, _, _ = survey.surveyed(
            *known, X, np.arange(400), np.ones(400, dtype=np.int8), rows, rows, np.ones(rows.size), 400, 900
        )  # fmt: skip
        pool = known[1]
        most = max(most, sum(part.nbytes for part in (pool.data, pool.indices, pool.values, pool.places)))
    sizes = dict(dense=False, copied=False, newton=True)
    kept = solving(400, 900, X.data.size, **sizes, faces=True) - solving(400, 900, X.data.size, **sizes)
    assert 0.2 * kept < most <= 0.51 * kept
    every = sum(array.nbytes for part in known for array in part)
    assert every <= solving(400, 900, X.data.size, **sizes, faces=True)
