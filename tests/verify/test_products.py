"""Products behind a kernel: of the longest numbers, and of decimal numbers where only these prove a claim."""

import numpy as np
import pytest

from screenpath.verify import _asked, check, products
from screenpath.verify.file import NAME, read_certificate
from tests import plain
from tests.cli.conftest import clouds, libsvm_text

KERNELS = {"rbf": {"gamma": 0.1}, "laplacian": {"gamma": 0.1}, "poly": {"degree": 2}, "linear": {}}
# Far below what a primal value is claimed to, far above what rounding may be worth in a gap.
OFF = 2.0**-38


@pytest.fixture(params=KERNELS)
def claimed(request, tmp_path):
    """Return a function that makes a run, and returns its certificate and its data."""

    def make(**options):
        (tmp_path / "d").write_text(libsvm_text(*clouds(n=60)))
        how = {"kernel": request.param, "certificate": True, "intercept": "none", **KERNELS[request.param], **options}
        plain.run("svm", tmp_path / "d", **how, out=tmp_path / "r")
        return *read_certificate(tmp_path / "r" / NAME), tmp_path / "d"

    return make


@pytest.fixture
def formed(monkeypatch):
    """Count the values that are formed in decimal numbers."""
    found, own = [], products._decimal
    monkeypatch.setattr(products, "_decimal", lambda *given: found.append(1) or own(*given))
    return found


def proven_gap(header, steps, source, k):
    """Return the gap of a step, to all digits, and its primal value."""
    pair = check(header, [{**entry, "gap": 0.0} for entry in steps], source).pairs[k]  # a claim that takes them all
    return pair.gap, pair.primal[0]


@pytest.mark.skipif(products.LAST > 2.0**-60, reason="the longest numbers are doubles: more steps take decimals")
def test_what_a_run_claims_takes_no_decimal_numbers(claimed, formed):
    assert check(*claimed(grid=6, tol=1e-6)).faults == [] and not formed


def test_a_gap_that_is_claimed_to_its_last_digits_takes_decimal_numbers(claimed, formed):
    header, steps, source = claimed(grid=3, cmin=10.0, cmax=1e4, tol=1e-4)
    gap, primal = proven_gap(header, steps, source, 2)
    for less in (0.0, 2.0**-48 * primal):
        steps[2]["gap"] = gap - less
        formed.clear()
        faults = check(header, steps, source).faults
        assert [step for step, _ in faults] == [2] * (less > 0.0)
        assert formed and all("the gap is claimed to be" in fault for _, fault in faults)


def test_steps_whose_claims_are_open_take_decimal_numbers_and_those_whose_balls_they_name(claimed, monkeypatch):
    header, steps, source = claimed(grid=6, tol=1e-4, rule="dvi")
    assert steps[3]["claims"].any()
    own, asked = products._passes, []
    monkeypatch.setattr(products, "_passes", lambda *given, **more: asked.append(given[3:]) or own(*given, **more))
    for claims, wanted in ((steps[3]["claims"], {2, 3, 4}), (np.zeros_like(steps[3]["claims"]), {3})):
        steps[3] = {**steps[3], "gap": 0.5 * steps[3]["gap"], "claims": claims, "after": None}
        assert [step for step, _ in check(header, steps, source).faults] == [3]
        assert asked[-1] == (wanted,)


def test_a_step_is_proven_where_nothing_that_it_claims_is_open(claimed):
    header, steps, source = claimed(grid=3, cmin=10.0, cmax=1e4)
    pair = check(header, steps, source).pairs[1]
    assert _asked(header, steps, None)(pair)
    assert not _asked({**header, "tol": 0.5 * pair.gap / pair.primal[0]}, steps, None)(pair)
    assert not _asked(header, steps, 1e-12)(pair)  # that it serves up to the next C
    assert _asked(header, steps[:2], 1e-12)(pair)  # which the last has not
    pair.faults.append("a row that is fixed")
    assert not _asked(header, steps, None)(pair)


def test_a_dual_variable_that_is_another_is_refused(claimed):
    header, steps, source = claimed(grid=4, tol=1e-9)
    good = steps[3]["between"]
    for i in range(0, good.size, good.size // 3):
        steps[3]["between"] = good.copy()
        steps[3]["between"][i] *= 1.0 - 1e-3
        assert {step for step, _ in check(header, steps, source).faults} == {3}


@pytest.mark.parametrize("told", [True, False])
def test_values_that_are_off_prove_nothing_that_is_not_so_unless_they_are_said_not_to_be(claimed, monkeypatch, told):
    """All products are moved so that the gap is less by 4 parts, of which the claim takes 2.

    That it is believed where the bounds of the values leave the move out is what shows that the bounds are counted.
    """
    header, steps, source = claimed(c_list=[0.5], tol=1e-2)
    gap, primal = proven_gap(header, steps, source, 0)
    pair = check(header, steps, source).pairs[0]
    own, (X, y) = products.values, clouds(n=60)
    signs = np.where(y == y.max(), 1.0, -1.0)
    K = own(header["kernel"], X.astype(np.longdouble), X.astype(np.longdouble))[0].astype(float)
    theta, used = signs * pair.shares, np.flatnonzero(pair.shares)
    t = 1.0 - signs * (pair.num * K @ pair.shares)
    moves = OFF * np.outer(signs * np.sign(t), np.sign(pair.shares[used]))
    sizes = np.where(t > 0.0, 1.0 - theta, theta)  # of the parts that the gap has of each row
    less = pair.num**2 * OFF * np.abs(pair.shares).sum() * sizes.sum()
    assert 2.0**-45 * primal < less < 2.0**-31 * primal

    def moved(what, rows, others):
        K, error = own(what, rows, others)
        return (K + moves, error + OFF * told) if K.shape == moves.shape else (K, error)

    monkeypatch.setattr(products, "values", moved)
    steps[0]["gap"] = gap - 0.5 * less
    assert bool(check(header, steps, source).faults) is told
