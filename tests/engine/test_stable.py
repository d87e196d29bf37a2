"""Labels proven on intervals of C: against accurate optima at many C within them."""

from dataclasses import replace

import numpy as np
import pytest

import screenpath
from screenpath import load_run, write_libsvm
from screenpath.engine import stable as module
from screenpath.engine.stable import StableLabels
from screenpath.errors import UsageError
from screenpath.numbers import sparse as sp
from screenpath.problem.between_levers import LeversBetween
from tests.width import WIDE, wide

NONE = {"intercept": "none"}
FREE = {"intercept": "free"}
HOW = (NONE, {"bias": 1.0}, {"bias": 3.0, "scale": "standard"}, {**NONE, "scale": "maxabs"}, {**NONE, "scale": "l2"},
       FREE, {**FREE, "scale": "standard"}, {**FREE, "scale": "l2"})  # fmt: skip


def path_of(folder, seed: int, classes: int = 2, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 4)) * [1.0, 3.0, 0.3, 1.0] + [0.0, 2.0, 0.0, 1.0]
    y = np.where(X[:, 0] + 0.5 * (X[:, 1] - 2.0) + rng.normal(size=80) > 0.0, 1.0, -1.0)
    if classes > 2:
        y = np.digitize(X[:, 0] + 0.5 * (X[:, 1] - 2.0) + 0.5 * rng.normal(size=80), [-1.0, 0.5]) + 4.0
        options = {**options, "one_vs_rest": True}
    write_libsvm(folder / "data", X, y)
    screenpath.run("svm", str(folder / "data"), out=str(folder / "run"), force=True, quiet=True, **options)
    new = X.mean(axis=0) + rng.normal(size=(60, 4)) * X.std(axis=0)
    return load_run(folder / "run"), X, y, new


def contradicted(found, path, X, y, new, **options) -> tuple[int, int]:
    """Return how many claims were compared, and how many of them an accurate optimum contradicts."""
    grid = np.exp(np.random.default_rng(1).uniform(np.log(found.low), np.log(found.high), wide(60, 400)))
    classes = np.unique(y)[::-1]
    signs = [np.where(y == one, 1.0, -1.0) for one in (classes if classes.size > 2 else classes[:1])]
    several = [screenpath.svm_path(X, one, grid=np.unique(grid), tol=1e-11, **options) for one in signs]
    accurate = several[0]
    forms = np.array([[one.decision_function(new, step=k) for one in several] for k in range(len(accurate))])
    labels = classes[forms.argmax(axis=1) if classes.size > 2 else (forms[:, 0] <= 0.0).astype(int)]
    claims = wrong = 0
    for k, intervals in enumerate(found.intervals):
        for label, low, high in intervals:
            inside = (accurate.grid >= low) & (accurate.grid <= high)
            claims += int(inside.sum())
            wrong += int((labels[inside, k] != float(label)).sum())
    return claims, wrong


@pytest.mark.parametrize("how", HOW, ids=str)
def test_no_optimum_contradicts_a_proven_label(tmp_path, how):
    claims = 0
    for seed in range(wide(1, 6)):
        for tol, steps in ((1e-2, 4), (1e-6, 8), (1e-9, 20)):
            path, X, y, new = path_of(tmp_path, seed, tol=tol, grid=steps, **how)
            found = StableLabels(path, sp.csr_array(new))
            compared, wrong = contradicted(found, path, X, y, new, **how)
            assert wrong == 0, (seed, tol)
            claims += compared
        assert found.shares.mean() > 0.7 and (found.shares <= 1.0 + 1e-12).all()
        for row in found.intervals:
            assert all(a[2] < b[1] for a, b in zip(row, row[1:], strict=False))
    assert claims > (100_000 if WIDE else 3_000)


@pytest.mark.parametrize("how", [HOW[1], HOW[4], *HOW[5:]], ids=str)
def test_no_optimum_contradicts_a_proven_label_of_several(tmp_path, how, monkeypatch):
    for tol, steps in ((1e-2, 6), (1e-8, 30)):
        monkeypatch.setattr(module, "TOL", tol)
        path, X, y, new = path_of(tmp_path, 0, classes=3, tol=tol, grid=steps, **how)
        found = path.stable(new)
        compared, wrong = contradicted(found, path, X, y, new, **how)
        assert wrong == 0 and compared > 500, (tol, compared)
    assert found.shares.mean() > 0.7 and {label for row in found.intervals for label, *_ in row} == {"4", "5", "6"}
    assert any(len({label for label, *_ in row}) == 2 for row in found.intervals)  # which changes along the path


@pytest.mark.parametrize("how", [{"bias": 1.0}, FREE], ids=str)
def test_balls_of_several_labels_may_not_be_smaller(tmp_path, how, monkeypatch):
    path, X, y, new = path_of(tmp_path, 0, classes=3, tol=1e-2, grid=4, **how)
    monkeypatch.setattr(module, "TOL", 1e-2)
    assert contradicted(path.stable(new), path, X, y, new, **how)[1] == 0
    for kind in (LeversBetween, module.Balls):
        own = kind.of

        def wrong(*given, own=own):
            right = own(*given)
            small = 1e-8 * np.array(right.squares)
            return right._replace(squares=small) if isinstance(right, tuple) else replace(right, squares=small)

        monkeypatch.setattr(kind, "of", wrong)
    assert contradicted(path.stable(new), path, X, y, new, **how)[1] > 0


def test_without_the_radius_of_the_ball_labels_would_be_wrong(tmp_path, monkeypatch):
    path, X, y, new = path_of(tmp_path, 0, tol=1e-2, grid=4, bias=1.0)
    right = module.open_shares
    monkeypatch.setattr(module, "open_shares", lambda p0, p1, norms, *squares: right(p0, p1, 0.0 * norms, *squares))
    assert contradicted(StableLabels(path, sp.csr_array(new)), path, X, y, new, bias=1.0)[1] > 0


def test_the_column_of_predict(call, tmp_path, monkeypatch):
    path, X, y, new = path_of(tmp_path, 3, grid=30, bias=1.0, tol=1e-9)
    write_libsvm(tmp_path / "new", new, np.ones(60))
    found = call("predict", path.folder, tmp_path / "new", "--step", "C=0.5", "--stable", "--no-labels")
    assert found.code == 0 and "labels are proven for " in found.err
    lines = found.out.split("\n")
    assert lines[0] == "label,stable"
    intervals = StableLabels(path, sp.csr_array(new))
    assert [line.split(",")[1] for line in lines[1:61]] == intervals.texts()
    monkeypatch.setattr(module, "ROWS", 7)
    assert path.stable(new).intervals == intervals.intervals
    assert repr(path.stable(new)).startswith("<StableLabels: ") and repr(intervals)[15:-1] in found.err
    last = call("predict", path.folder, tmp_path / "new", "--stable", "--no-labels")
    assert last.out == call("predict", path.folder, tmp_path / "new", "--step", 29, "--stable", "--no-labels").out
    whole = [text for text in intervals.texts() if text.endswith(" 0.01..10")]
    assert f"{len(whole)} of 60 rows have one proven label" in found.err and len(whole) > 30
    flips = [one for one in intervals.intervals if len({label for label, *_ in one}) == 2]
    assert flips  # a label that changes along the path is proven on both sides of the change


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        ("svm", {"c": 1.0, "intercept": "none"}, "has one step"),
        ("svm", {"grid": 3, "kernel": "rbf"}, "`stable` is for svm without a kernel"),
        ("lad", {"grid": 3}, "lad is a regression: it has no labels to prove"),
        ("l1svm", {"grid": 3}, "`stable` is for svm without a kernel"),
    ],
)
def test_other_runs_are_refused(tmp_path, model, options, words):
    write_libsvm(tmp_path / "data", np.random.default_rng(0).normal(size=(30, 2)), np.tile([1.0, -1.0], 15))
    screenpath.run(model, str(tmp_path / "data"), out=str(tmp_path / "run"), quiet=True, **options)
    with pytest.raises(UsageError, match=words):
        StableLabels(load_run(tmp_path / "run"), sp.csr_array(np.ones((2, 2))))


def test_with_a_free_intercept_neither_ball_nor_levers_may_be_smaller(tmp_path, monkeypatch):
    path, X, y, new = path_of(tmp_path, 0, tol=1e-2, grid=4)
    monkeypatch.setattr(module, "TOL", 1e-2)
    own = LeversBetween.of
    assert contradicted(StableLabels(path, sp.csr_array(new)), path, X, y, new)[1] == 0
    for part, change in (("squares", 1e-6), ("taus", 2.0)):

        def wrong(*given, part=part, change=change):
            right = own(*given)
            return replace(right, **{part: change * np.array(getattr(right, part))})

        monkeypatch.setattr(LeversBetween, "of", wrong)
        assert contradicted(StableLabels(path, sp.csr_array(new)), path, X, y, new)[1] > 0, part


def test_a_free_intercept_reads_the_training_data(tmp_path, call):
    path, X, y, new = path_of(tmp_path, 3, grid=12, tol=1e-9)
    write_libsvm(tmp_path / "new", new, np.ones(60))
    how = "predict", path.folder, tmp_path / "new", "--stable", "--no-labels"
    found = call(*how)
    assert found.code == 0 and "labels are proven for " in found.err
    (tmp_path / "data").rename(tmp_path / "moved")
    assert call(*how).code == 1
    assert call(*how, "--training", tmp_path / "moved").out == found.out
    own = load_run(path.folder, training=tmp_path / "moved").stable(new)
    assert own.texts() == [line.split(",")[1] for line in found.out.split("\n")[1:61]]
