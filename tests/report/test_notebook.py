"""What notebooks show of paths in memory and in folders."""

import base64
import re

import numpy as np
import pytest

import screenpath
from screenpath.errors import ResourceError, UsageError
from screenpath.report import figures
from screenpath.report.notebook import run_of
from screenpath.report.series import feature_paths
from tests.cli.conftest import clouds

X, Y = clouds(60, 4)
PATHS = {
    "svm": lambda: screenpath.svm_path(X, Y, grid=[0.01, 0.1, 1.0, 10.0], scale="standard", bias=1.0),
    "lad": lambda: screenpath.lad_path(X, Y, grid=4), "l1svm": lambda: screenpath.l1_svm_path(X, Y, grid=4),
    "kernel": lambda: screenpath.kernel_svm_path(X, Y, grid=[0.1, 1.0, 2.0, 4.0]),
    "classes": lambda: screenpath.sparse_svm_path(X, np.arange(60) % 3, betas=2, alphas=2),
}  # fmt: skip


def svg_of(html):
    (found,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    return base64.b64decode(found).decode()


@pytest.mark.parametrize("name", PATHS)
def test_a_path_in_memory(name):
    path = PATHS[name]()
    html = path._repr_html_()
    assert "<th>certified</th><td>4 of 4 steps</td>" in html and "worst relative gap" in html
    assert "<svg" in svg_of(html) and not re.search(r'(?:href|src)="(?!data:|#)', html)
    for kind in ("rejection", "gap", "time", *(["coefficients"] if name != "kernel" else [])):
        picture = path.plot(kind)
        assert picture.title.endswith(kind) and picture.figure.axes
        if name == "svm":
            assert "<svg" in svg_of(picture._repr_html_())
    with pytest.raises(UsageError, match="no picture of the kind 'pie'"):
        path.plot("pie")
    if name == "kernel":
        with pytest.raises(UsageError, match="'coefficients'"):
            path.plot("coefficients")


def test_the_picture_is_that_of_the_folder(tmp_path):
    path = PATHS["svm"]()
    path.save(tmp_path / "run")
    stored = screenpath.load_run(tmp_path / "run")
    assert path.plot("rejection").svg() == stored.plot("rejection").svg()
    one, other = (feature_paths(run_of(some))[0] for some in (path, stored))
    assert np.array_equal(one.features, other.features)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-12)
    assert "<td>4 of 4 steps</td>" in stored._repr_html_()
    path.plot("gap").save(tmp_path / "gap.png")
    assert (tmp_path / "gap.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="exists already"):
        path.plot("gap").save(tmp_path / "gap.png")


def test_without_matplotlib_there_is_still_the_certificate(monkeypatch):
    def missing():
        raise ResourceError("pictures need matplotlib, which is not installed")

    path = PATHS["lad"]()
    monkeypatch.setattr(figures, "need_matplotlib", missing)
    html = path._repr_html_()
    assert "4 of 4 steps" in html and "need matplotlib" in html


def test_a_path_that_was_cut_short():
    path = screenpath.svm_path(X, Y, grid=[0.1, 1.0], time_limit=1e-9)
    assert "<td>0 of 2 steps</td>" in path._repr_html_()
