"""A run in words: the numbers of its files, within the width of a narrow terminal, in plain characters."""

import numpy as np
import pytest

import screenpath
from screenpath.report.page import page
from screenpath.report.show import WIDTH, default_step, summary_of, wilson
from screenpath.store.open import open_run
from tests.cli.conftest import clouds, libsvm_text
from tests.report.conftest import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_kind_of_run_fits_a_narrow_terminal(runs, name):
    text = str(summary_of(runs[name], details=True))
    lines = text.splitlines()
    assert max(map(len, lines)) <= WIDTH and text.isascii() and text.endswith("\n")
    titles = ["scores", "step", f"{runs[name].unit}s", "intercept", "certificate", "fitted", "dual variables"]
    assert [line for line in lines[1:] if not line.startswith(" ")] == titles
    assert text.startswith(str(summary_of(runs[name]))) and "dual variables" not in str(summary_of(runs[name]))
    row = runs[name].steps[-1]
    assert f"R {row['n_R']:,} at the lower bound" in text


def test_features_are_ordered_by_their_scaled_size(runs):
    run = runs["path"]
    found = summary_of(run, "5", top=3)
    weights, _ = run.coefficients(run.steps[5])
    scale = np.array(run.record["preparation"]["scale"])
    order = np.argsort(-abs(weights[0] * scale))[:3]
    assert [f.number for f in found.features] == (order + 1).tolist()
    np.testing.assert_allclose([f.scaled for f in found.features], (weights[0] * scale)[order])
    np.testing.assert_allclose([f.weight for f in found.features], weights[0][order])
    assert "standard deviation" in str(found) and "enters at" not in str(found)


def test_a_weight_that_is_0_to_the_accuracy_of_the_solve_is_none(runs, monkeypatch):
    """Sizes compare after scaling; coefficients stay as they are."""
    run = runs["path"]
    scale = np.array(run.record["preparation"]["scale"])
    weights = np.array([[2.0, -1e-8, 3e-6, 0.0, 1e-9]]) / scale
    monkeypatch.setattr(type(run), "coefficients", lambda *_: (weights, np.zeros(1)))
    found = summary_of(run, "5")
    assert ([f.number for f in found.features], found.nonzero, found.negligible) == ([1, 3], 2, 2)
    assert "2 of 5 have a weight\n  2 more are 0 to the accuracy of the solve\n" in str(found)
    assert "2 of 2 with a weight, at step 11" in (text := page(run)) and "2 more are 0 to the accuracy of" in text


def test_features_of_sparse_models_enter_somewhere(runs):
    run = runs["features"]
    found = summary_of(run, "7")
    for feature in found.features:
        entered = feature.entered["step"]
        at = [run.coefficients(row)[0][0][feature.number - 1] for row in run.steps]
        assert at[entered] != 0.0 and not np.any(at[:entered])
    assert {feature.entered["step"] for feature in found.features} != {0}
    assert "enters at" in str(found)


def test_several_classes_and_kernels(runs):
    several = summary_of(runs["classes"])
    assert len(several.intercepts) == 3
    assert {feature.label for feature in several.features} <= {0.0, 1.0, 2.0}
    kernel = summary_of(runs["kernel"], top=4)
    assert kernel.intercepts == [] and "samples" in str(kernel).splitlines()
    assert kernel.nonzero == runs["kernel"].steps[-1]["nnz_w"]
    (said,) = [line for line in str(kernel).splitlines() if line.startswith("  kernel ")]
    assert "rows of its matrix kept" in str(kernel) and "seconds" not in said and "intercept none" not in str(kernel)


def test_the_step_that_is_shown(runs):
    assert default_step(runs["path"]) == "11"
    assert summary_of(runs["path"]).step["step"] == 11
    assert summary_of(runs["path"], "2").step["step"] == 2


def test_wilson_interval():
    low, high = wilson(0.5, 100)
    assert low == pytest.approx(0.4038, abs=1e-4) and high == pytest.approx(0.5962, abs=1e-4)
    assert wilson(1.0, 20)[0] == pytest.approx(0.8389, abs=1e-4) and wilson(1.0, 20)[1] == 1.0


def test_support_vectors_are_counted_where_there_are_any(runs):
    row = runs["path"].steps[-1]
    assert f"support vectors: {row['n_E'] + row['n_L']:,}\n" in str(summary_of(runs["path"]))
    assert f"support vectors: {runs['kernel'].steps[-1]['nnz_w']:,}\n" in str(summary_of(runs["kernel"]))
    run = runs["several"]  # a row may be a support vector of each label
    count = np.count_nonzero(run.coefficients(run.steps[-1])[0].any(axis=0))
    assert count < run.steps[-1]["nnz_w"] and f"support vectors: {count:,}\n" in str(summary_of(run))
    assert "support vectors" not in str(summary_of(runs["regression"]))
    page = str(summary_of(runs["regression"]))
    assert "asked: relative gap of at most 1e-06" in page
    worst = runs["regression"].record["between"]["worst_rel_gap"]
    assert 0.0 < worst < 1.0 and f": relative gap of at most {worst:.1e}, interpolated" in " ".join(page.split())


def test_the_kind_of_intercept_is_said(tmp_path):
    (tmp_path / "two").write_text(libsvm_text(*clouds(40, 3)))
    common = {"c": 1.0, "scale": "standard", "quiet": True}

    def said(name, **more):
        return str(screenpath.show_run(screenpath.run("svm", tmp_path / "two", out=tmp_path / name, **common, **more)))

    none = said("none", intercept="none")
    assert "intercept none, rule" in none and "it only undoes the centring" in none
    assert "intercept penalised (bias 2), rule" in said("penalised", bias=2.0)
    python, shell = said("none", intercept="none", force=True), str(summary_of(open_run(tmp_path / "none")))
    assert "(`intercept=free`, or `bias=B`, adds one)" in " ".join(python.split()) and " --" not in python
    assert "(--intercept free, or --bias B, adds one)" in " ".join(shell.split()) and "`" not in shell
    free = said("free")
    assert "intercept free, rule" in free and "centring" not in free


def test_a_run_without_coefficients(tmp_path):
    (tmp_path / "two").write_text(libsvm_text(*clouds(40, 3)))
    run = screenpath.run("svm", tmp_path / "two", c=1.0, coefficients="none", out=tmp_path / "r", quiet=True)
    text = str(screenpath.show_run(run))
    assert "not known: the run folder has no coefficients" in text and "certified on the full data" in text
