"""Values that folds share: within their bound of the exact ones, at every gamma, and the same paths as without them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from screenpath.catalogue.kernel_models import behind_kernel
from screenpath.catalogue.scores import CLASSIFICATION, choose_score
from screenpath.catalogue.specs import LINEAR_SVM
from screenpath.cv import run
from screenpath.cv.folds import draw_folds, held_out_order
from screenpath.inputs.rows import Samples
from screenpath.rows import shared
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelBlocks, KernelFunction
from tests.conftest import two_classes

GRID = [0.01, 0.1, 1.0, 10.0]
OPTIONS = {
    "tol": 1e-6, "max_epochs": 1000, "rule": "none", "solver": "auto", "seed": 0, "scale": "none", "bias": 0.0,
    "dtype": "float64", "threads": 1, "jobs": 1, "kernel": "rbf", "gamma": 0.3, "degree": None, "coef0": None,
    "intercept": "free", "max_memory": None,
}  # fmt: skip


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("far", [0.0, 1e4])
def test_values_are_within_their_bound(sparse, far):
    """Rows far from 0 cancel; extended precision knows the exact values. An exponent that is off is noticed."""
    rng = np.random.default_rng(0)
    X = np.round(far + rng.normal(size=(300, 3)), 6)
    X = X * (rng.random(X.shape) < 0.5) if sparse else X
    order = rng.permutation(300)
    whole = shared.SharedValues(KernelBlocks(sp.csr_array(X) if sparse else X, KernelFunction("rbf", 2.0)), order)
    long = X.astype(np.longdouble)
    apart = np.square(long[:, None] - long[None]).sum(axis=2)
    for gamma in (2.0, 0.3, 1e-3):
        values = whole.values(gamma)
        off = np.abs(values - np.exp(-np.longdouble(gamma) * apart)).max()
        assert off <= whole.error < 1e-11
        np.testing.assert_array_equal(values, values.T)
    whole._exponents = [(rows, part * (1.0 + 1e-6)) for rows, part in whole._exponents]
    assert np.abs(whole.values(0.2) - np.exp(-np.longdouble(0.2) * apart)).max() > whole.error


def task_of(**changed):
    """Return samples and the task of their folds."""
    X, signs = two_classes(n=120, d=4, seed=4)
    score = choose_score(None, LINEAR_SVM, CLASSIFICATION, 2, None)
    options = {**OPTIONS, **changed}
    spec = behind_kernel(LINEAR_SVM)
    task = run.Task(spec, options, score, {"+1": 1.0, "-1": -1.0}, None, "dense", float("inf"), certify=True)
    return Samples(sp.csr_array(X), signs, signs), replace(task, keep=True)


@pytest.mark.parametrize("options", [{}, {"largest_gamma": 4.0}, {"bias": 1.0, "intercept": "penalised"}])
@pytest.mark.parametrize("beside", [False, True])
def test_folds_are_those_that_share_nothing(monkeypatch, options, beside):
    """Wherever held-out rows are: only where they are beside each other, nothing of them is copied."""
    samples, task = task_of(**options)
    folds = draw_folds(120, 3, 1, 0)
    task = replace(task, order=held_out_order(folds, 120)) if beside else task
    given = []
    plain = GramRows.take_matrix
    monkeypatch.setattr(GramRows, "take_matrix", lambda *words: given.append(1) or plain(*words))
    for split in folds:
        found = run.fold_path(samples, task, split, GRID, 1e-6)
        assert len(given) == 1 and given.pop()
        assert beside == (run._shared[1]._room._bytes.size == 0)
        with monkeypatch.context() as alone:
            alone.setattr(shared, "may_share", lambda *words: False)
            alone.setattr(run, "_shared", ())
            other = run.fold_path(samples, task, split, GRID, 1e-6)
        assert not given
        np.testing.assert_allclose(found.products, other.products, atol=1e-3)
        assert [row["status"] for row in found.rows + other.rows] == 8 * ["certified"]
        lines = zip(found.held_out.lines, other.held_out.lines, strict=True)
        assert all(one.errors == two.errors for one, two in lines)


@pytest.mark.parametrize("options", [{"scale": "standard"}, {"gamma": "scale"}, {"kernel": "linear"}])
def test_folds_that_differ_share_nothing(monkeypatch, options):
    samples, task = task_of(**{**options, "gamma": options.get("gamma", 0.3 if "kernel" not in options else None)})
    monkeypatch.setattr(GramRows, "take_matrix", None)
    assert run.fold_path(samples, task, draw_folds(120, 3, 1, 0)[0], GRID, 1e-3).rows


def test_a_limit_of_memory_or_many_rows_share_nothing(monkeypatch):
    monkeypatch.setattr(shared, "free_memory", lambda: 32 * 1000**2)
    assert shared.may_share(1000, 1) and not shared.may_share(1001, 1) and not shared.may_share(1000, 2)
    monkeypatch.setattr(shared, "free_memory", lambda: 1 << 60)
    assert shared.may_share(shared.MOST, 1) and not shared.may_share(shared.MOST + 1, 1)
