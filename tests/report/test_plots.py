"""Pictures: every kind of every run, and that they show the run's numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest

from screenpath.report import series
from screenpath.report.figures import to_bytes
from tests.report.conftest import COMMANDS, write_cv
from tests.width import WIDE

pytest.importorskip("matplotlib", reason="pictures need matplotlib")
from screenpath.report.plots import draw


def texts(figure) -> list:
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text)]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_kind_of_every_run(runs, name):
    for kind in series.available(runs[name]):
        figure = draw(runs[name], kind)
        assert figure.axes
        if WIDE or name in ("path", "one", "grid"):  # they have all kinds; to render them takes longest
            png = to_bytes(figure, "png")
            assert png.startswith(b"\x89PNG") and len(png) > 5000


def test_the_same_run_gives_the_same_bytes(runs):
    first, second = (to_bytes(draw(runs["path"], "rejection"), "svg") for _ in range(2))
    assert first == second and b"<svg" in first


def test_areas_are_stacked_to_the_rejection_ratio(runs):
    axes = draw(runs["path"], "rejection").axes[0]
    tops = [area.get_paths()[0].vertices[:, 1].max() for area in axes.collections]
    found = series.rejection(runs["path"])
    assert tops == pytest.approx([found.R.max(), (found.R + found.L).max()])


def test_the_largest_coefficients_are_named(runs):
    figure = draw(runs["path"], "coefficients")
    assert {f"feature {j}" for j in range(1, 6)} <= set(texts(figure))
    lines = [line for line in figure.axes[0].lines if line.get_color() == "#0072B2"]
    assert np.allclose(lines[0].get_ydata(), series.feature_paths(runs["path"])[0].values[:, 0])


def test_a_leader_ends_at_its_name_and_crosses_no_other(runs, monkeypatch):
    """Four of the five lines end at 0, so that their names are far above and below."""
    from matplotlib.text import Text

    (path,) = series.feature_paths(runs["path"])
    ends_at_zero = replace(path, values=np.tile([9.0, 0.0, 0.0, 0.0, 0.0], (12, 1)))
    monkeypatch.setattr(series, "feature_paths", lambda _: [ends_at_zero])
    figure = draw(runs["path"], "coefficients")
    figure.canvas.draw()
    names = [text for text in figure.axes[0].texts if text.get_text().startswith("feature")]
    for name in names:
        leader = name.arrow_patch.get_transform().transform_path(name.arrow_patch.get_path())
        assert leader.vertices[:, 0].max() <= Text.get_window_extent(name).x0 + 1.0
    assert len(names) == 5


def test_coefficients_of_a_kernel_run_belong_to_samples(runs):
    words = texts(draw(runs["kernel"], "coefficients"))
    assert "svm: coefficients of 120 samples" in words and any(word.startswith("sample ") for word in words)


def test_names_do_not_overlap(runs):
    from matplotlib.text import Text

    figure = draw(runs["path"], "coefficients")
    figure.canvas.draw()
    names = [t for t in figure.axes[0].texts if t.get_text().startswith("feature")]
    boxes = sorted((Text.get_window_extent(t) for t in names), key=lambda box: box.y0)
    assert all(low.y0 + 0.7 * low.height <= high.y0 for low, high in zip(boxes, boxes[1:], strict=False))


def test_heat_maps_hold_the_table(runs):
    axes = draw(runs["grid"], "grid").axes[0]
    mesh = axes.collections[0]
    assert np.allclose(np.asarray(mesh.get_array()).ravel(), series.column(runs["grid"], "scaling_ratio"))


def test_the_largest_beta_is_on_top_of_any_number_of_heat_maps(runs, tmp_path):
    validated, _ = write_cv(runs["grid"], tmp_path / "cv", certified=False)
    validated.record["columns"] = [*validated.record["columns"], "cv_accuracy", "cv_accuracy_se"]
    for row in validated.steps:
        row.update(cv_accuracy=0.5, cv_accuracy_se=0.1)
    figures = draw(runs["grid"], "grid"), draw(validated, "grid"), draw(validated, "cv")
    betas = series.grid(validated).rows
    assert betas[0] == max(betas)
    maps = [[axes for axes in figure.axes if axes.get_title()] for figure in figures]
    assert [len(panels) for panels in maps] == [3, 4, 2]
    assert all(axes.yaxis_inverted() for panels in maps for axes in panels)


def test_steps_without_certificate_are_told_apart(runs):
    run = runs["path"]
    before = run.steps[4]["status"]
    run.steps[4]["status"] = "budget"
    try:
        labels = texts(draw(run, "gap"))
    finally:
        run.steps[4]["status"] = before
    assert "not certified: 1" in labels and "certified: 11" in labels


def test_cross_validation(runs, tmp_path):
    run, mean = write_cv(runs["path"], tmp_path / "cv")
    figure = draw(run, "cv")
    words = texts(figure)
    assert any(word.startswith("best: step 3 (C = ") for word in words)
    assert any(word.startswith("one standard error: step ") for word in words)
    assert any("at most 0.02 better anywhere" in word for word in words)
    best = next(c for c in figure.axes[0].collections if c.get_label().startswith("best"))
    assert best.get_offsets().tolist() == [[run.steps[3]["C"], mean[3]]]


@pytest.mark.parametrize("name", ["path", "grid"])
def test_a_step_that_is_both_choices_shows_both_marks(runs, tmp_path, name):
    """The diamond stands around the star, which it would hide."""
    run, _ = write_cv(runs[name], tmp_path / "cv", certified=False)
    file = run.path / "cv.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "one_se": record["best"]}))
    marks = [c for c in draw(run, "cv").axes[0].collections if c.get_label().startswith(("best", "one"))]
    star, diamond = marks
    assert star.get_offsets().tolist() == diamond.get_offsets().tolist()
    assert len(star.get_facecolor()) and not len(diamond.get_facecolor())
    assert 0.5 * np.sqrt(star.get_sizes()[0]) < 0.5 * np.sqrt(diamond.get_sizes()[0])


def test_cross_validation_over_two_parameters_and_many_points(runs, tmp_path):
    run, mean = write_cv(runs["grid"], tmp_path / "grid", certified=False)
    heat = draw(run, "cv").axes[0].collections[0]
    assert np.allclose(np.asarray(heat.get_array()).ravel(), mean)
    run, mean = write_cv(runs["many"], tmp_path / "many")
    line = next(line for line in draw(run, "cv").axes[0].lines if line.get_label() == "mean")
    assert np.allclose(line.get_ydata(), mean)
