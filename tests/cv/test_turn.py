"""When a mean score has turned, and where grids go on."""

import numpy as np
import pytest

from screenpath.catalogue.scores import Choice, best_and_one_se
from screenpath.cv.choice import patience, turn_line, turned
from screenpath.problem.grid import further_c, further_lambda, log_grid


def choice(mean, se=0.1, higher=True):
    """Return what follows from means with the same standard error."""
    mean = np.array(mean, dtype=float)
    se = np.full(mean.size, se)
    return Choice(mean, se, *best_and_one_se(mean, se, higher))


@pytest.mark.parametrize(
    ("mean", "expected"),
    [
        ([0, 1, 2, 3], False),
        ([0, 3, 2.95, 2.95], False),  # within one standard error, and no patience yet
        ([3, 2.95, 2.95, 2.95], True),
        ([2, 3, 3, 3, 3], True),  # a plateau: the first of equal ones is the best
        ([3, 3, 3, 3], False),  # nothing has moved yet
        ([0, 0, 0, 0, 0, 0, 3, 2.95, 2.95, 2.95], True),
        ([*[0] * 40, 3, *[2.95] * 9], False),  # 10 of 50 are waited for
        ([*[0] * 39, 3, *[2.95] * 10], True),
        ([*[0] * 40, 3, *[2.95] * 6, 2, 2, 2], True),  # three of them are clearly worse
        ([*[0] * 40, 3, *[2.95] * 7, 2, 2], False),
        ([0, 0, 0, 3, 2, 2], False),  # two are not three
    ],
)
def test_turned(mean, expected):
    assert turned(choice(mean), True) is expected
    assert turned(choice(-np.array(mean, dtype=float), higher=False), False) is expected


def test_patience():
    assert [patience(n) for n in (3, 15, 16, 100)] == [3, 3, 4, 20]


def test_a_grid_goes_on_as_it_is_spaced():
    grid = log_grid(0.01, 1.0, 5)
    np.testing.assert_allclose(further_c({}, grid, 3), 10.0 ** np.array([0.5, 1.0, 1.5]), rtol=1e-14)
    np.testing.assert_array_equal(further_c({}, grid, 2), further_c({}, grid, 3)[:2])
    assert further_c({}, np.array([1e100, 1e200, 1e300]), 5).size == 0  # all beyond the numbers that there are


def test_lambda_goes_on_as_it_is_spaced():
    inverse = 7.0 / np.arange(1, 10)
    assert further_lambda({"log": False}, inverse[:4], 5).tolist() == inverse[4:].tolist()
    logs = log_grid(0.01, 7.0, 5)[::-1]
    further = further_lambda({"log": True}, logs, 2)
    np.testing.assert_allclose(further[0] / logs[-1], logs[1] / logs[0], rtol=1e-14)
    assert further[1] < further[0] < logs[-1]


def test_what_is_said_of_it():
    said = {"added_points": 1, "last": {"C": 20.0}, "turned": True}
    assert turn_line(said) == ("mean score", "has turned within 1 further point to C = 20")
    assert turn_line({**said, "turned": False, "added_points": 3})[0] == "warning"
    assert "end of the grid (C = 20)" in turn_line({**said, "added_points": 0})[1]
