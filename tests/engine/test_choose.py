"""From scores to a step."""

import numpy as np
import pytest

from screenpath.catalogue.scores import at_boundary, choose, levelled
from screenpath.engine.hints import wider
from screenpath.errors import ResourceError


def test_mean_standard_error_best_and_one_se():
    scores = np.array([[0.5, 0.80, 0.90, 0.90, 0.6], [0.7, 0.86, 0.80, 0.80, 0.6]])
    found = choose(scores, higher=True)
    np.testing.assert_allclose(found.mean, [0.6, 0.83, 0.85, 0.85, 0.6])
    np.testing.assert_allclose(found.se, scores.std(axis=0, ddof=1) / np.sqrt(2))
    assert (found.best, found.one_se) == (2, 1)  # of equal means the first; 0.83 is within 0.05 of 0.85


def test_errors_are_better_when_lower():
    scores = np.array([[3.0, 1.0, 2.0], [3.0, 1.2, 2.0]])
    found = choose(scores, higher=False)
    assert (found.best, found.one_se) == (1, 1)


def test_means_that_are_equal_but_for_rounding_are_equal():
    """Of ten folds of 57 rows, the second step is right on one more row of a fold and on one fewer of another."""
    counts = np.array([56, 53, 53, 51, 52, 50, 52, 54, 55, 55])
    right = np.array([counts, counts + np.eye(10, dtype=int)[3] - np.eye(10, dtype=int)[0]]).T / 57.0
    means = right.mean(axis=0)
    assert 0 < abs(means[0] - means[1]) < 1e-15  # by rounding alone
    for scores in (right, right[:, ::-1]):
        for sign, higher in ((1, True), (-1, False)):
            found = choose(sign * scores, higher)
            assert found.best == 0 and found.mean[0] == found.mean[1]


def test_one_standard_error_is_reached_by_a_mean_just_there():
    scores = np.array([[10, 13], [10, 10], [10, 10]]) / 57.0
    found = choose(scores, higher=True)
    assert found.mean[1] - found.mean[0] == pytest.approx(found.se[1], rel=1e-14)
    assert (found.best, found.one_se) == (1, 0)


def test_levelled_means_differ_as_they_did():
    means = levelled([0.3, np.nan, 0.1 + 0.2, -1.0, np.inf, 0.3 + 1e-9, 0.0, 0.0])
    np.testing.assert_array_equal(means, [0.3, np.nan, 0.3, -1.0, np.inf, 0.3 + 1e-9, 0.0, 0.0])


def test_steps_that_a_fold_did_not_reach_are_passed_over():
    scores = np.array([[0.5, 0.6, 0.9], [0.5, 0.6, np.nan]])
    assert choose(scores, higher=True).best == 1
    with pytest.raises(ResourceError, match="no grid point has a score in all folds"):
        choose(np.full((2, 3), np.nan), higher=True)


def test_boundaries_are_named():
    grid = [{"C": C} for C in (0.1, 1.0, 10.0)]
    assert at_boundary(grid, 0) == "C at the lower end of the grid"
    assert at_boundary(grid, 1) is None
    assert at_boundary(grid, 2) == "C at the upper end of the grid"
    assert at_boundary(grid[:1], 0) is None
    pairs = [{"alpha": a, "beta": b} for b in (2.0, 1.0, 0.5) for a in (3 * b, 2 * b, b)]
    assert at_boundary(pairs, 4) is None
    assert at_boundary(pairs, 3) == "alpha at the upper end of the grid"
    assert at_boundary(pairs, 8) == "alpha at the lower end of the grid and beta at the lower end of the grid"


@pytest.mark.parametrize(
    ("options", "name", "best", "said"),
    [
        ({}, "C", -1, "`cmax=30`"),
        ({}, "C", 0, "`cmin=0.1`"),
        ({"until_turn": False, "part": None}, "C", -1, "`cmax=30`, or `until_turn`,"),
        ({"until_turn": False, "part": "1/2"}, "C", -1, "`cmax=30`"),
        ({"until_turn": False, "part": None}, "C", 0, "`cmin=0.1`"),
        ({"until_turn": True, "part": None}, "C", -1, "`cmax=30`"),
        ({"until_turn": False, "part": None, "c_list": [1, 2, 3]}, "C", -1, "a wider grid"),
        ({"log": False, "lambda_min_ratio": None}, "lambda", -1, "`grid=6`"),
        ({"log": True, "lambda_min_ratio": None}, "lambda", -1, "`lambda_min_ratio=0.005`"),
        ({"log": True, "lambda_min_ratio": 0.3}, "lambda", -1, "`lambda_min_ratio=0.03`"),
        ({"log": False, "lambda_min_ratio": None, "lambda_list": [3, 2, 1]}, "lambda", -1, "a wider grid"),
        ({}, "beta", -1, "`beta_min_ratio=0.005`"),
        ({"alpha_min_ratio": 0.2}, "alpha", -1, "`alpha_min_ratio=0.02`"),
        ({"alpha": [3, 2, 1]}, "alpha", -1, "a wider grid"),
        ({}, "alpha", 0, "a wider grid"),
        ({"until_turn": False, "part": None}, "beta", -1, "`beta_min_ratio=0.005`"),  # what cannot go on is not told to
        ({"until_turn": False, "part": None, "rule": "essnsv+gap"}, "C", -1, "`cmax=30`"),
    ],
)
def test_what_to_type_for_a_wider_grid(options, name, best, said):
    values = [1.0, 2.0, 3.0] if name == "C" else [3.0, 2.0, 1.0]
    points = [{name: value} for value in values]
    best = best % 3
    assert wider(options, points, best, at_boundary(points, best)) == said
