"""Scores against their definitions and against scikit-learn."""

import math

import numpy as np
import pytest

from screenpath.catalogue.scores import (
    SCORES,
    Sigmoid,
    baseline,
    choose,
    choose_score,
    confusion,
    higher_is_better,
    probability,
    threshold,
)
from screenpath.catalogue.specs import SPECS
from screenpath.errors import UsageError


def forms(seed=0, m=200):
    rng = np.random.default_rng(seed)
    targets = np.where(rng.random(m) < 0.3, 1.0, -1.0)
    return np.round(rng.normal(size=m) + 0.5 * targets, 1), targets  # rounded: ties, and products of 0


def test_two_classes_as_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    products, targets = forms()
    found = np.where(products > 0.0, 1.0, -1.0)
    expected = {
        "accuracy": metrics.accuracy_score(targets, found),
        "balanced-accuracy": metrics.balanced_accuracy_score(targets, found), "f1": metrics.f1_score(targets, found),
        "auc": metrics.roc_auc_score(targets, products),
    }  # fmt: skip
    for name, value in expected.items():
        assert SCORES[name].function(products, targets) == pytest.approx(value, abs=1e-12), name


def test_several_classes_as_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, size=150)
    products = rng.normal(size=(150, 4)) + np.eye(4)[codes]
    found = products.argmax(axis=1)
    assert SCORES["accuracy"].function(products, codes) == pytest.approx(metrics.accuracy_score(codes, found))
    balanced = metrics.balanced_accuracy_score(codes, found)
    assert SCORES["balanced-accuracy"].function(products, codes) == pytest.approx(balanced)
    assert SCORES["f1"].function(products, codes) == pytest.approx(metrics.f1_score(codes, found, average="macro"))


def test_regression_scores():
    products, targets = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 1.0])
    assert SCORES["mae"].function(products, targets) == pytest.approx(1.0)
    assert SCORES["mse"].function(products, targets) == pytest.approx(5.0 / 3.0)
    pinball = choose_score(None, SPECS["quantile"], "regression", tau=0.9)
    assert pinball.function(products, targets) == pytest.approx((0.9 * 1.0 + 0.1 * 2.0) / 3.0)


def test_ends_of_the_scores():
    assert math.isnan(SCORES["auc"].function(np.array([1.0, 2.0]), np.array([1.0, 1.0])))
    assert SCORES["f1"].function(np.array([-1.0, -2.0]), np.array([-1.0, -1.0])) == 0.0
    assert SCORES["accuracy"].function(np.array([0.0]), np.array([-1.0])) == 1.0  # 0 counts as negative


@pytest.mark.parametrize(("model", "task", "name"), [
    ("svm", "classification", "accuracy"), ("quantile", "regression", "pinball"), ("svr", "regression", "mae"),
])  # fmt: skip
def test_each_model_has_a_score_of_its_own(model, task, name):
    assert choose_score(None, SPECS[model], task).name == name


def test_scores_that_do_not_fit():
    with pytest.raises(UsageError, match="`score=mae` is for regression, and svm"):
        choose_score("mae", SPECS["svm"], "classification")
    with pytest.raises(UsageError, match="`score=auc` needs two classes; there are 10"):
        choose_score("auc", SPECS["svm"], "classification", classes=10)


def test_columns_know_their_direction():
    assert higher_is_better("test_accuracy")
    assert higher_is_better("cv_balanced_accuracy")
    assert not higher_is_better("cv_pinball")


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("fractions", [False, True])
def test_a_weight_counts_as_so_many_rows(name, fractions):
    """A weight of 0 takes the row away; weights in the same proportion give the same score."""
    products, targets = forms(seed=3)
    weights = np.random.default_rng(4).integers(0, 4, size=products.size).astype(float)
    rows = np.repeat(np.arange(products.size), weights.astype(int))
    function = SCORES[name].function
    found = function(products, targets, weights / 7.0 if fractions else weights)
    assert found == pytest.approx(function(products[rows], targets[rows]), rel=1e-12)
    assert found != pytest.approx(function(products, targets), rel=1e-6)


@pytest.mark.parametrize("name", ["accuracy", "balanced-accuracy", "f1"])
def test_a_weight_counts_as_so_many_rows_of_several_classes(name):
    rng = np.random.default_rng(5)
    codes, weights = rng.integers(0, 4, size=90), rng.integers(0, 3, size=90).astype(float)
    weights[codes == 2] = 0.0  # a class that is not in the data
    products = rng.normal(size=(90, 4)) + np.eye(4)[codes]
    rows = np.repeat(np.arange(90), weights.astype(int))
    function = SCORES[name].function
    assert function(products, codes, weights) == pytest.approx(function(products[rows], codes[rows]), rel=1e-12)


def test_weighted_auc_of_one_class():
    products, targets = forms()
    assert math.isnan(SCORES["auc"].function(products, targets, (targets > 0.0).astype(float)))
    metrics = pytest.importorskip("sklearn.metrics")
    weights = np.random.default_rng(0).uniform(0.1, 2.0, targets.size)
    expected = metrics.roc_auc_score(targets, products, sample_weight=weights)
    assert SCORES["auc"].function(products, targets, weights) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_no_constant_of_the_training_data_beats_the_baseline_there(name):
    """Rows of weight 2 are rows twice; of the scores that are means over rows, the best constant is tried."""
    rng, score = np.random.default_rng(6), SCORES[name]
    targets = np.sign(rng.normal(size=40) - 0.3) if score.task == "classification" else rng.gamma(2.0, size=40)
    weights = rng.integers(1, 3, size=40).astype(float)
    found = baseline(score, targets, targets, (weights, weights))
    if name == "r2":
        assert found is None
        return
    twice = np.repeat(targets, weights.astype(int))
    assert found == pytest.approx(baseline(score, twice, twice), rel=1e-12)
    tried = [score.function(np.full(twice.size, c), twice) for c in np.linspace(-1.0, twice.max(), 500)]
    if name in ("accuracy", "mae", "mse", "pinball"):
        assert all(found >= one if score.higher else found <= one for one in tried)
    if name in ("balanced-accuracy", "auc"):
        assert found == 0.5


def test_the_baseline_is_learned_from_the_training_data():
    codes = np.array([2, 2, 1, 0, 2])
    assert baseline(SCORES["accuracy"], codes, np.array([2, 1, 3, 1])) == 0.25
    assert baseline(SCORES["mae"], np.array([0.0, 1.0, 9.0]), np.array([3.0])) == 2.0
    assert baseline(SCORES["mse"], np.array([0.0, 1.0, 8.0]), np.array([4.0])) == 1.0
    tilted = choose_score("pinball", SPECS["quantile"], "regression", tau=0.9)
    assert baseline(tilted, np.arange(11.0), np.array([9.0])) == 0.0


def test_r2_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    products, targets = forms()
    weights = np.random.default_rng(0).uniform(0.1, 2.0, targets.size)
    expected = metrics.r2_score(targets, products, sample_weight=weights)
    assert SCORES["r2"].function(products, targets, weights) == pytest.approx(expected, rel=1e-12)
    assert math.isnan(SCORES["r2"].function(products, np.ones(products.size)))


def shares(positive, targets, weights):
    """Return recall, precision and specificity of rows decided as +1, from their definitions."""
    true = targets > 0.0
    both, right = weights[positive & true].sum(), weights[~positive & ~true].sum()
    found = weights[positive].sum()
    return both / weights[true].sum(), both / found if found else 0.0, right / weights[~true].sum()


@pytest.mark.parametrize("constraint", ["recall=0.9", "recall=1", "precision=0.7", "specificity=0.95", "recall=0.01"])
@pytest.mark.parametrize("seed", range(3))
def test_the_threshold_is_the_best_of_all_that_keep_the_constraint(constraint, seed):
    products, targets = forms(seed, 60)
    weights = np.random.default_rng(seed).integers(0, 3, 60).astype(float)
    found = threshold(products, targets, weights, constraint)
    name, least = constraint.split("=")
    at = ("recall", "precision", "specificity").index(name)
    goal = 1 if name == "recall" else 0
    tried = [shares(products > t, targets, weights) for t in (-9.0, *(np.unique(products) + 1e-6))]
    best = max(one[goal] for one in tried if one[at] >= float(least) - 1e-12)
    reached = shares(products > found.value, targets, weights)
    assert reached == pytest.approx((found.recall, found.precision, found.specificity), rel=1e-12)
    assert reached[at] >= float(least) - 1e-12 and reached[goal] == pytest.approx(best, rel=1e-12)
    assert not np.isin(found.value, products)  # midway: rounding of a decision changes no label


def test_a_constraint_that_no_threshold_keeps():
    products, targets = np.array([3.0, 2.0, 1.0]), np.array([-1.0, 1.0, -1.0])
    assert threshold(products, targets, None, "precision=0.6") is None
    assert threshold(products, targets, None, "precision=0.5").value == 1.5
    assert threshold(products, -np.ones(3), None, "recall=0.5") is None


@pytest.mark.parametrize("noise", (1e-9, 2e-5))
@pytest.mark.parametrize("scale", (1.0, 2.7, 1e3))
def test_noise_of_the_solver_is_no_order(scale, noise):
    """Rows on their kink all have -1 or +1 but for rounding: the same score, threshold and labels with it."""
    rng = np.random.default_rng(5)
    exact = scale * rng.choice([-2.0, -1.0, -0.3, 0.4, 1.0, 1.7], size=300)
    targets = np.where(rng.random(300) < 0.4 + 0.2 * np.sign(exact), 1.0, -1.0)
    noisy, new = (exact + scale * rng.uniform(-noise, noise, size=300) for _ in range(2))
    assert np.unique(noisy).size > 250
    assert SCORES["auc"].function(noisy, targets) == SCORES["auc"].function(exact, targets)
    for constraint in ("recall=0.7", "recall=1", "precision=0.5", "specificity=0.8"):
        clean, found = (threshold(one, targets, None, constraint) for one in (exact, noisy))
        assert (found.recall, found.precision, found.specificity) == (clean.recall, clean.precision, clean.specificity)
        assert found.value == pytest.approx(clean.value, abs=3.0 * noise * scale)
        assert np.array_equal(new > found.value, exact > clean.value)


def test_many_near_decisions_are_no_single_tie():
    """Decisions of many rows, each nearer to the next than the resolution, still have their order."""
    products = np.linspace(-1.0, 1.0, 3_000_001)
    targets = np.where(products > 0.1, 1.0, -1.0)
    assert SCORES["auc"].function(products, targets) == pytest.approx(1.0, abs=2e-4)
    assert threshold(products, targets, None, "recall=1").value == pytest.approx(0.1, abs=2e-4)


def sigmoid_by_scipy(products, targets, weights):
    """Return slope and offset that minimise the loss of Platt's targets."""
    optimize = pytest.importorskip("scipy.optimize")
    high, low = weights[targets > 0].sum(), weights[targets < 0].sum()
    t = np.where(targets > 0, (high + 1) / (high + 2), 1 / (low + 2))

    def loss(x):
        q = x[0] * products + x[1]
        return weights @ (t * np.logaddexp(0, q) + (1 - t) * np.logaddexp(0, -q))

    def gradient(x):
        r = weights * (t - 1 / (1 + np.exp(x[0] * products + x[1])))
        return np.array([r @ products, r.sum()])

    start = optimize.minimize(loss, [0.0, 0.0], jac=gradient, method="BFGS", options={"gtol": 1e-6})
    return optimize.root(gradient, start.x, tol=1e-13).x


@pytest.mark.parametrize("seed", range(6))
def test_the_sigmoid_is_the_minimum_that_scipy_finds(seed):
    products, targets = forms(seed, 80)
    weights = np.random.default_rng(seed).integers(0, 4, 80).astype(float) if seed % 2 else None
    w = np.ones(80) if weights is None else weights
    found = Sigmoid.fitted(products, targets, weights)
    assert (found.slope, found.offset) == pytest.approx(sigmoid_by_scipy(products, targets, w), rel=1e-8, abs=1e-8)
    p, share = probability(products, found.slope, found.offset), w[targets > 0].sum() / w.sum()
    said = np.where(targets > 0, p, 1 - p)
    assert found.log_loss == pytest.approx(w @ -np.log(said) / w.sum(), rel=1e-12)
    assert found.brier == pytest.approx(w @ (1 - said) ** 2 / w.sum(), rel=1e-12)
    assert found.baseline_log_loss == pytest.approx(-share * np.log(share) - (1 - share) * np.log(1 - share), rel=1e-12)
    assert found.baseline_brier == pytest.approx(share * (1 - share), rel=1e-12)
    assert found.slope < 0 and np.all(np.diff(p[np.argsort(products)]) >= 0)
    # Decisions in other units: the same probabilities; a weight is a number of rows.
    other = Sigmoid.fitted(1e6 * products + 3e6, targets, weights)
    np.testing.assert_allclose(probability(1e6 * products + 3e6, other.slope, other.offset), p, rtol=1e-7)
    if weights is not None:
        at = np.repeat(np.arange(80), weights.astype(int))
        repeated = Sigmoid.fitted(products[at], targets[at])
        assert (repeated.slope, repeated.offset) == pytest.approx((found.slope, found.offset), rel=1e-8)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("products", (
    np.repeat([-1.0, 1.0], 20), 1e9 * np.repeat([-1.0, 1.0], 20), 1e-9 * np.repeat([-1.0, 1.0], 20), np.zeros(40),
    np.append(-1e12, np.repeat([-1.0, 1.0], 20)[1:]), np.repeat([1.0, -1.0], 20),
))  # fmt: skip
def test_sigmoids_of_extreme_decisions_are_finite(products):
    targets = np.repeat([-1.0, 1.0], 20)
    found = Sigmoid.fitted(products, targets)
    p = probability(products, found.slope, found.offset)
    assert np.isfinite([*vars(found).values(), *p]).all()
    assert found.log_loss <= found.baseline_log_loss + 1e-9
    if np.unique(products).size == 2:  # each side has its target
        np.testing.assert_allclose(p, np.where(targets > 0, 21 / 22, 1 / 22), rtol=1e-7)
    elif np.unique(products).size == 1:
        np.testing.assert_allclose(p, 0.5, rtol=1e-12)
    alone = Sigmoid.fitted(products, np.ones(40))
    assert (alone.slope, alone.baseline_log_loss, alone.baseline_brier) == (pytest.approx(0.0, abs=1e-6), 0.0, 0.0)


def test_the_optimism_of_a_choice():
    """The best step of the second fold alone beats the chosen one; a fold that is not whole tells nothing."""
    scores = np.array([[0.7, 0.8, 0.9], [0.8, 0.9, 0.7], [0.5, 0.6, 0.8]])
    assert choose(scores, True).best == 2
    assert choose(scores, True).optimism == pytest.approx(np.mean([0.0, 0.2, 0.0]))
    assert choose(-scores, False).optimism == pytest.approx(np.mean([0.0, 0.2, 0.0]))
    assert choose(scores[:1], True).optimism is None
    scores[1, 2] = np.nan
    assert choose(scores, True).optimism is None


def test_the_confusion_table_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    products, targets = forms()
    assert confusion(products, targets).tolist() == metrics.confusion_matrix(targets > 0.0, products > 0.0).tolist()
    rng = np.random.default_rng(2)
    several, codes = rng.normal(size=(50, 4)), rng.integers(0, 3, 50)  # the last class has no row
    expected = metrics.confusion_matrix(codes, several.argmax(axis=1), labels=range(4))
    assert confusion(several, codes).tolist() == expected.tolist()


def test_scores_of_no_rows_are_none_and_no_warning():
    found = SPECS["lad"].scores_of(np.zeros(0), np.zeros(0), {})
    assert found and all(np.isnan(value) for value in found.values())
