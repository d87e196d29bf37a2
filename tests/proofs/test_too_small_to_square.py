"""Numbers whose squares, or products with C, are 0 in double precision: what they stand for still counts."""

import numpy as np
import pytest

import screenpath
from tests import plain


@pytest.mark.parametrize("scale, C", [(2.0**116, 1.5), (1.0, 1e70)])
def test_a_sum_of_terms_that_cancel_is_not_exactly_zero(scale, C):
    X = np.array([[0.6988713438001971], [1.05409906986146], [1.281853021809383]]) * scale
    before = [
        1.6994515822210858e-48, 6.528188709194612e-09, 19974401.700283837, 4.310104022702862e21, 2.250602413506354e39,
    ]  # fmt: skip
    grid = [c / scale / scale for c in before] + [C]
    path = plain.svm_path(X, [1.0, -1.0, -1.0], grid=grid, tol=0.5, solver="cd", max_epochs=2000)
    # The dual variables are such that their sum over rows cancels to the last bit of two doubles, and not beyond: times
    # C it is far from w. In fractions the relative gap is 876 and 846; it was certified as .485.
    assert path.steps[-1].status != "certified"


# As plain Python the solver's line search divides by what has become 0, which numpy warns of.
@pytest.mark.compiled_only
@pytest.mark.filterwarnings("ignore:divide by zero encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_losses_that_are_zero_only_in_double_precision_certify_nothing():
    X, y = [[1.0, 0.0], [0.0, 2.0], [-2.0, 3.0]], [-1e-305, 0.0, 2e-305]
    path = plain.lad_path(X, y, intercept="free", grid=[1e-100, 1e-30])
    assert [step.status for step in path.steps] == ["rounding"] * 2


@pytest.mark.parametrize("rule", ["dvi", "bt2", "it", "ssnsv", "essnsv", "gap", "it+gap"])
def test_a_ball_is_no_point_where_its_radius_cannot_be_squared(rule):
    # The mean of 1, 0, 0, -1 is 0, and so is w: rows of target 0 are between their ends. Then those of nearly 0.
    for y, grid in ([1.0, 0.0, 0.0, -1.0], [1e-200, 2e-200]), ([1e-305, 1e-307, -1e-305], [1e-233, 1e-155]):
        path = plain.lad_path([[1.0]] * len(y), y, grid=grid, rule=rule)
        for step in path.steps:
            assert step.screened_R <= 1 and step.screened_L <= 1


def test_an_eps_path_goes_on_where_c_times_the_sum_cannot_be_squared():
    X, y = [[1.0, 0.5], [2.0, -1.0], [-1.0, 0.3], [0.5, 1.0]], [1.0, 1.0, -1.0, -1.0]
    counts = [
        len(plain.svm_path(X, y, grid=screenpath.EpsilonGrid(low, 10.0, 1e-3)).steps) for low in (1e-170, 1e-150)
    ]
    assert counts[0] == counts[1] > 100
