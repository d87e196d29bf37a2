"""Dual variables of a step: they make up the weights, and what is marked is proven."""

import numpy as np
import pytest

import screenpath
from screenpath.errors import DataError, RunFolderError, UsageError
from tests.cli.conftest import clouds, libsvm_text

MODELS = {
    "svm": {}, "weighted": {"class_weight": ("1=2",)}, "lad": {}, "quantile": {"tau": 0.8}, "svr": {"epsilon": 0.3},
    "kernel": {"kernel": "rbf"},
}  # fmt: skip


def computed(tmp_path, name, **options):
    data = tmp_path / "clouds.libsvm"
    X, y = clouds(80, 4, seed=2)
    if name in ("lad", "quantile", "svr"):
        y = X @ [1.0, -0.5, 0.2, 0.0] + 0.3 * np.random.default_rng(0).normal(size=80)
        data.write_text("".join(libsvm_text(x[None], [0.0]).replace("0 ", f"{t!r} ", 1)
                                for x, t in zip(X, y.tolist(), strict=True)))  # fmt: skip
    else:
        data.write_text(libsvm_text(X, y))
    model = name if name in ("lad", "quantile", "svr") else "svm"
    known = {"c_list": [0.05, 0.5], "scale": "standard", "bias": 1.0, "tol": 1e-8, "quiet": True, **MODELS[name]}
    return screenpath.run(model, str(data), out=str(tmp_path / "run"), **{**known, **options}), X, y


@pytest.mark.parametrize("certificate", [False, True], ids=["again", "stored"])
@pytest.mark.parametrize("name", MODELS)
def test_the_rows_make_up_the_solution(tmp_path, name, certificate):
    path, X, y = computed(tmp_path, name, certificate=certificate)
    found = path.duals(C=0.5)
    assert found.source == ("certificate.bin" if certificate else "solved again")
    np.testing.assert_array_equal(found.labels, y)
    if name == "kernel":
        np.testing.assert_allclose(found.values, path.coef(C=0.5), atol=1e-3)
    else:
        scale, shift = (np.array(path.run.record["preparation"][key]) for key in ("scale", "shift"))
        weights = found.values @ ((X - shift) / scale) / scale
        np.testing.assert_allclose(weights, path.coef(C=0.5), atol=1e-3)
    step = path[path.position(C=0.5)]
    if name != "svr":
        counts = [int((found.sides == side).sum()) for side in "REL"]
        assert np.abs(np.subtract(counts, [step.n_R, step.n_E, step.n_L])).max() <= (0 if certificate else 2)
    assert found.certified.sum() > 30
    assert not found.certified[found.sides == "E"].any()
    if name in ("svm", "svr"):
        np.testing.assert_array_equal(found.values[found.sides == "R"], 0.0)
        assert set(found.support) == set(np.flatnonzero(found.sides != "R"))


def test_marked_rows_are_on_their_side_in_an_accurate_solution(tmp_path):
    rough, *_ = computed(tmp_path, "svm", tol=1e-2, scale="none")
    marked = rough.duals(C=0.5)
    accurate, *_ = computed(tmp_path, "svm", tol=1e-12, scale="none", force=True)
    exact = accurate.duals(C=0.5)
    assert 0 < marked.certified.sum() < 80
    np.testing.assert_array_equal(marked.sides[marked.certified], exact.sides[marked.certified])


def test_where_there_are_none(tmp_path):
    X, y = clouds(60, 4)
    data = tmp_path / "two"
    data.write_text(libsvm_text(X, y))
    run = screenpath.run("l1svm", str(data), grid=3, out=str(tmp_path / "l1"), quiet=True)
    with pytest.raises(UsageError, match="not for l1svm"):
        run.duals(1)
    (tmp_path / "three").write_text(libsvm_text(X, np.arange(60) % 3))
    rest = screenpath.run("svm", str(tmp_path / "three"), c=1.0, one_vs_rest=True, out=str(tmp_path / "o"), quiet=True)
    with pytest.raises(UsageError, match="more than two labels"):
        rest.duals(0)
    screenpath.run("svm", (X, y), c=1.0, out=str(tmp_path / "a"), quiet=True)
    with pytest.raises(DataError, match="arrays"):
        screenpath.load_run(tmp_path / "a").duals(0)


def test_other_data_are_refused(tmp_path):
    path, X, y = computed(tmp_path, "svm")
    data = tmp_path / "clouds.libsvm"
    kept = data.read_text()
    data.write_text(libsvm_text(X + 1.0, y))
    with pytest.raises(DataError, match="not the training data"):
        path.duals(0)
    data.unlink()
    with pytest.raises(DataError, match="rows of the training data"):
        path.duals(0)
    (tmp_path / "elsewhere").write_text(kept)
    moved = screenpath.load_run(path.folder, tmp_path / "elsewhere")
    assert moved.duals(0).values.size == 80


def test_weights_that_have_changed_are_refused(tmp_path):
    weights = tmp_path / "weights"
    weights.write_text("1\n" * 80)
    path, *_ = computed(tmp_path, "svm", weights=str(weights))
    assert path.duals(0).values.size == 80
    weights.write_text("1\n" * 79 + "2\n")
    with pytest.raises(DataError, match="not those of the run"):
        path.duals(0)
    weights.unlink()
    with pytest.raises(DataError, match="are not there"):
        path.duals(0)


def test_rows_of_a_sparse_model(tmp_path):
    """Their sum, soft-thresholded, is the solution; and what is marked is where an accurate solution has it."""
    X, y = clouds(80, 6, seed=4)
    (tmp_path / "two").write_text(libsvm_text(X, y))
    grid = {"alpha": [0.5, 0.05], "beta": [0.05], "scale": "standard", "quiet": True}
    runs = [
        screenpath.run("sparse-svm", tmp_path / "two", tol=tol, out=tmp_path / f"{tol}", **grid) for tol in (1e-3, 1e-9)
    ]
    rough, exact = (run.duals(1) for run in runs)
    scale, shift = (np.array(runs[1].run.record["preparation"][key]) for key in ("scale", "shift"))
    u = exact.values @ ((X - shift) / scale)
    weights = np.sign(u) * np.maximum(abs(u) - 0.05, 0.0) / 0.05 / scale
    np.testing.assert_allclose(weights, runs[1].coef(1), atol=1e-3)
    assert 0 < rough.certified.sum() <= exact.certified.sum()
    np.testing.assert_array_equal(rough.sides[rough.certified], exact.sides[rough.certified])
    assert [int((exact.sides == side).sum()) for side in "REL"] == [
        getattr(runs[1][1], name) for name in ("n_R", "n_E", "n_L")
    ]


def test_a_step_that_cannot_be_certified_again(tmp_path):
    path, *_ = computed(tmp_path, "svm", solver="cd", max_epochs=1, tol=1e-12, scale="none")
    with pytest.raises(RunFolderError, match="could not be certified again"):
        path.duals(1)


def test_a_short_word_for_it(tmp_path):
    path, *_ = computed(tmp_path, "svm")
    found = path.duals(0)
    assert (
        repr(found)
        == f"<Duals: 80 rows, {found.support.size} with a part in w, {found.certified.sum()} sides certified>"
    )
    assert repr(screenpath.show_run(path, 0)) == "<RunSummary: svm, step 0 (C = 0.05)>"
