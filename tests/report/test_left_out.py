"""Pictures of leave-one-out: what they show is what the commands of these names say."""

from __future__ import annotations

import numpy as np
import pytest

import screenpath
from screenpath.errors import UsageError
from screenpath.report.page import page
from screenpath.report.plots import draw
from tests.cli.conftest import clouds, libsvm_text


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("left")
    X, y = clouds(60, 3, seed=2, labels=(1.0, -1.0))
    (folder / "data").write_text(libsvm_text(X, y))
    options = {"grid": 12, "cmin": 0.02, "cmax": 5.0, "bias": 1.0, "quiet": True}
    return screenpath.run("svm", str(folder / "data"), out=str(folder / "run"), **options)


def regression(path, **options):
    folder = path.folder.parent
    return screenpath.run("lad", str(folder / "data"), out=str(folder / "lad"), quiet=True, force=True, **options)


def test_the_curve_of_a_classifier_is_that_of_every_c(path):
    found, axes = path.loo_every_c(), draw(path.run, "loo").axes[0]
    line = next(line for line in axes.get_lines() if line.get_label() == "in training")
    np.testing.assert_array_equal(line.get_xdata(), found.C)
    np.testing.assert_array_equal(line.get_ydata(), found.trained)
    band, least = axes.patches
    np.testing.assert_array_equal(band.get_data().values, found.curve[:, 3])
    np.testing.assert_array_equal(band.get_data().baseline, found.curve[:, 2])
    np.testing.assert_array_equal(least.get_data().edges[:-1], found.curve[:, 0])


def test_a_regression_has_its_score_at_one_step_and_bounds_of_it_at_every_c(path):
    found = regression(path, c_list=[0.1])
    left, own = draw(found.run, "loo").axes[0].get_lines()
    assert left.get_ydata() == pytest.approx([found.loo(0).scores["mae"]])
    assert own.get_ydata() == pytest.approx([found.loo(0).training["mae"]])
    found = regression(path, c_list=np.geomspace(0.1, 1.0, 6).tolist())
    axes = draw(found.run, "loo").axes[0]
    np.testing.assert_array_equal(axes.patches[0].get_data().values, found.loo_every_c().curve[:, 3])
    assert axes.get_lines()[-1].get_ydata() == pytest.approx([found.loo(k).training["mae"] for k in range(6)])
    assert axes.get_ylabel() == "mae"


def test_influence_shows_the_change_of_each_row_that_has_a_part(path):
    found, axes = path.loo(11), draw(path.run, "influence").axes[0]
    points = np.concatenate([one.get_offsets() for one in axes.collections])
    there = found.distance > 0.0
    own = found.solution.forms[:60]
    assert len(points) == np.count_nonzero(there) < 60
    np.testing.assert_allclose(np.sort(points[:, 1]), np.sort((found.values - own)[there]))
    names = [one.get_text() for one in axes.texts]
    assert names == [str(row + 1) for row in np.argsort(-found.distance, kind="stable")[:6]]
    assert len(draw(regression(path, c_list=[0.3]).run, "influence").axes[0].collections) == 1


def test_a_page_has_them_where_asked_for_and_other_paths_are_refused(path, tmp_path):
    assert "with each row left out" not in page(path.run)
    screenpath.report_run(path, tmp_path / "page.html", loo=True)
    text = (tmp_path / "page.html").read_text()
    assert text.count("with each row left out") > 0 and text.count("large where the weights move far") > 0
    X, y = clouds(40, 3)
    with pytest.raises(UsageError, match="needs a run folder"):
        screenpath.svm_path(X, np.where(y > 1.0, 1.0, -1.0), grid=3).plot("loo")
    sparse = screenpath.run("l1svm", (X, y), grid=3, out=tmp_path / "sparse", quiet=True)
    with pytest.raises(UsageError, match="not for l1svm"):
        sparse.plot("influence")
