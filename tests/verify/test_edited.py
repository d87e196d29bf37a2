"""Run folders of which a single part was edited: the certificate is as it was, what stands beside it is not."""

import json

import numpy as np
import pytest

from screenpath import load_run
from screenpath.errors import ScreenpathError
from screenpath.verify import verify_certificate
from tests import plain
from tests.cli.conftest import clouds, libsvm_text
from tests.run_folders import seal


@pytest.fixture
def data(tmp_path):
    (tmp_path / "d").write_text(libsvm_text(*clouds(n=60)))
    return tmp_path / "d"


@pytest.fixture
def run(data, tmp_path):
    plain.run("svm", data, certificate=True, class_weight="balanced", grid=5, out=tmp_path / "r")
    return tmp_path / "r"


def test_rows_of_packed_coefficients_are_those_of_the_steps(data, tmp_path):
    r = tmp_path / "r"
    plain.run("svm", data, certificate=True, coefficients="npz", grid=5, out=r)
    assert verify_certificate(r).holds
    with np.load(r / "coefficients.npz") as stored:
        arrays = dict(stored)
    more = {"indptr": np.append(arrays["indptr"], arrays["indptr"][-1])}
    np.savez(r / "coefficients.npz", **{**arrays, **more})
    seal(r)
    (fault,) = verify_certificate(r).faults
    assert "step 5" in fault[1]


def test_records_without_hashes_are_read(run):
    record = json.loads((run / "run.json").read_text())
    for name in ("files", "sha256"):
        del record[name]
    (run / "run.json").write_text(json.dumps({**record, "schema_version": 1}))
    assert verify_certificate(run).holds


@pytest.mark.parametrize("files", [7, {"steps.csv": 3}, {"..": {"sha256": ""}}, {"steps.csv": {}}])
def test_a_list_of_files_that_is_none_is_one_error(run, files):
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, "files": files}))
    with pytest.raises(ScreenpathError, match="is damaged"):
        verify_certificate(run)


@pytest.mark.parametrize(
    ("part", "name", "value", "read"),
    [("options", "class_weight", 3, verify_certificate), ("data", "feature_names", [], load_run)],
)
def test_an_entry_of_the_wrong_kind_or_size_is_one_error(run, part, name, value, read):
    record = json.loads((run / "run.json").read_text())
    seal(run, {**record, part: {**record[part], name: value}})
    with pytest.raises(ScreenpathError, match="is damaged"):
        read(run)


def test_the_worst_place_between_steps(run, data, tmp_path):
    """Any C is as bad where the gap is rounding alone; elsewhere another place, or another gap, is refused."""
    plain.run("quantile", data, certificate=True, tau=0.3, grid=5, scale="standard", out=tmp_path / "q")
    assert verify_certificate(tmp_path / "q").faults == []
    whole = json.loads((run / "run.json").read_text())
    assert whole["between"]["worst_rel_gap"] > 1e-6 and verify_certificate(run).holds
    for name, value in (("C", 0.01), ("C", 1.01 * whole["between"]["C"]), ("C", 20.0), ("worst_rel_gap", 1e-7)):
        (run / "run.json").write_text(json.dumps({**whole, "between": {**whole["between"], name: value}}))
        seal(run)
        assert f"another {name} of the gap between steps" in verify_certificate(run).faults[0][1]


def test_a_gap_between_steps_that_is_rounding_alone(data, tmp_path):
    """The run counts more for it than the checker, whose own numbers need less."""
    far = "".join(f"{1e4 + k % 3} 1:{k % 5 + 300}\n" for k in range(40))
    (tmp_path / "far").write_text(far)
    options = {"certificate": True, "scale": "l2", "c_list": [8e-6, 0.05, 0.1], "bias": 1.0}
    plain.run("lad", tmp_path / "far", out=tmp_path / "f", **options)
    record = json.loads((tmp_path / "f" / "run.json").read_text())
    assert verify_certificate(tmp_path / "f").faults == [] and record["between"]["worst_rel_gap"] > 1e-11
    record["between"]["worst_rel_gap"] *= 3.0
    seal(tmp_path / "f", record)
    assert "another worst_rel_gap" in verify_certificate(tmp_path / "f").faults[0][1]
    (tmp_path / "apart").write_text("1 1:1e6 2:3e5\n2 1:-1e6 2:2e5\n")  # one w at every C
    plain.run("svm", tmp_path / "apart", certificate=True, c_list=[1e-5, 30.0], tol=1e-12, out=tmp_path / "a")
    assert verify_certificate(tmp_path / "a").faults == []


@pytest.mark.parametrize("scale", ["none", "maxabs", "standard", "l2"])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_gamma_that_the_data_chose(data, tmp_path, scale, storage):
    if (scale, storage) == ("standard", "sparse"):
        pytest.skip("rows that are stored sparse are not centred")
    options = {"kernel": "rbf", "certificate": True, "c_list": [1.0], "n_features": 9}
    options |= {"scale": scale, "storage": storage}
    X, y = clouds(n=60)
    X[::2, 1] = 0.0
    (tmp_path / "d").write_text(libsvm_text(X, y))
    plain.run("svm", tmp_path / "d", gamma="scale", out=tmp_path / "g", **options)
    found = verify_certificate(tmp_path / "g")
    assert found.holds and "run.json: options.gamma" in found.covered
    chosen = json.loads((tmp_path / "g" / "run.json").read_text())["kernel"]["gamma"]
    plain.run("svm", tmp_path / "d", gamma=repr(chosen * (1.0 + 1e-9)), out=tmp_path / "n", **options)
    record = json.loads((tmp_path / "n" / "run.json").read_text())
    for part in ("options", "identity"):
        record[part]["gamma"] = "scale"
    seal(tmp_path / "n", record)
    assert "another gamma" in verify_certificate(tmp_path / "n").faults[0][1]


def test_a_gamma_of_data_of_one_value(tmp_path):
    (tmp_path / "d").write_text("1 1:2 2:2\n2 1:2 2:2\n1 1:2 2:2\n")
    options = {"kernel": "rbf", "certificate": True, "c_list": [1.0], "intercept": "none"}
    plain.run("svm", tmp_path / "d", gamma="scale", out=tmp_path / "g", **options)
    assert verify_certificate(tmp_path / "g").holds


@pytest.mark.parametrize("model, options", [
    ("sparse-svr", {"smoothing": 0.5, "nonnegative": True}), ("sparse-lad", {"smoothing": 0.5, "signs": "signs"}),
    ("l1svm", {"signs": "signs", "penalty_weights": "penalties"}),
    ("l1svm", {"nonnegative": True, "penalty_weights": "penalties"}),
])  # fmt: skip
def test_objectives_of_several_additions(data, tmp_path, monkeypatch, model, options):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "signs").write_text("1\n0\n-1\n0\n1\n")
    (tmp_path / "penalties").write_text("1\n2\n1\n3\n1\n")
    grid = {"grid": 3} if model == "l1svm" else {"betas": 2, "alphas": 2}
    plain.run(model, data, certificate=True, out=tmp_path / "o", **grid, **options)
    found = verify_certificate(tmp_path / "o")
    assert found.faults == [] and "run.json: objective" in found.covered


def test_an_optimum_of_0_behind_a_kernel(tmp_path):
    (tmp_path / "d").write_text("0 1:2 2:2\n0 1:1 2:2\n0 1:3\n")
    options = {"kernel": "linear", "certificate": True, "c_list": [1.0], "bias": 2.0}
    plain.run("lad", tmp_path / "d", weights=[1.0, 0.3, 2.0], out=tmp_path / "z", **options)
    assert verify_certificate(tmp_path / "z").faults == []


def test_kept_rows_are_part_of_the_run_and_not_covered(data, tmp_path):
    options = {"kernel": "rbf", "certificate": True, "c_list": [1.0, 2.0]}
    plain.run("svm", data, keep_rows=True, out=tmp_path / "k", **options)
    found = verify_certificate(tmp_path / "k")
    assert found.holds and "rows.npz: all" in found.uncovered
    plain.run("svm", data, out=tmp_path / "n", **options)
    (tmp_path / "n" / "rows.npz").write_bytes((tmp_path / "k" / "rows.npz").read_bytes())
    ((_, fault),) = verify_certificate(tmp_path / "n").faults
    assert "there is rows.npz" in fault


def test_gaps_of_what_underflows_alone(tmp_path):
    """Each program counts a few of the smallest numbers: where w is 0 there is no other part of a gap."""
    (tmp_path / "d").write_text("1 1:2 2:2\n2 1:2 2:2\n1 1:2 2:2\n2 1:2 2:2\n")
    options = {"certificate": True, "scale": "standard", "c_list": [0.01, 0.3], "tol": 1e-9}
    plain.run("svm", tmp_path / "d", out=tmp_path / "r", **options)
    assert verify_certificate(tmp_path / "r").faults == []


@pytest.mark.parametrize("size", [1e30, 1e-30])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_rows_so_far_apart_that_their_distances_are_unsure(tmp_path, size, kernel, intercept):
    """The kernel value of a row and itself is sure all the same: claims and the balance of theta rest on it."""
    X, y = clouds(n=30)
    X[15:], y[15:] = X[:15], y[14::-1]
    (tmp_path / "d").write_text(libsvm_text(X * size, y))
    options = {"kernel": kernel, "gamma": "1" if size > 1.0 else "1e60", "intercept": intercept, "certificate": True}
    path = plain.run("svm", tmp_path / "d", c_list=[0.01, 0.1, 10.0], out=tmp_path / "r", **options)
    assert path.certified and verify_certificate(tmp_path / "r").faults == []
