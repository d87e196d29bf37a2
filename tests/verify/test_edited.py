"""Run folders of which a single part was edited: the certificate is as it was, what stands beside it is not."""

import hashlib
import json
import math

import numpy as np
import pytest

from screenpath.errors import ScreenpathError
from screenpath.verify import check, verify_certificate
from screenpath.verify.file import NAME, read_certificate
from tests import plain
from tests.cli.conftest import clouds, libsvm_text


@pytest.fixture
def data(tmp_path):
    (tmp_path / "d").write_text(libsvm_text(*clouds(n=60)))
    return tmp_path / "d"


@pytest.fixture
def run(data, tmp_path):
    plain.run("svm", data, certificate=True, class_weight="balanced", grid=5, out=tmp_path / "r")
    return tmp_path / "r"


def seal(folder, *changed):
    record = json.loads((folder / "run.json").read_text())
    for name in changed:
        data = (folder / name).read_bytes()
        record["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    record.pop("sha256", None)
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    (folder / "run.json").write_text(json.dumps({**record, "sha256": hashlib.sha256(text.encode()).hexdigest()}))


def test_each_file_is_the_one_that_was_written(run):
    assert verify_certificate(run).holds
    lines = (run / "steps.csv").read_text().splitlines()
    for name in ("dual", "rel_gap", "gap_target", "n_R"):
        row, place = lines[2].split(","), lines[0].split(",").index(name)
        row[place] = "7"
        (run / "steps.csv").write_text("\n".join([*lines[:2], ",".join(row), *lines[3:], ""]))
        faults = verify_certificate(run).faults
        assert [step for step, _ in faults] == [None] and "steps.csv" in faults[0][1], name


@pytest.mark.parametrize("part, entry", [("options", "class_weight"), ("totals", "certified"), ("data", "nnz")])
def test_the_record_is_the_one_that_was_written(run, part, entry):
    record = json.loads((run / "run.json").read_text())
    assert entry in record[part]
    record[part][entry] = [] if entry == "class_weight" else 3
    (run / "run.json").write_text(json.dumps(record))
    faults = verify_certificate(run).faults
    assert len(faults) == 1 and faults[0][1].startswith("run.json is not what")
    del record["sha256"]  # its version says that there has to be one
    (run / "run.json").write_text(json.dumps(record))
    assert len(verify_certificate(run).faults) == 1


def test_coefficients_are_of_steps_that_there_are_and_each_once(run):
    lines = (run / "coefficients.csv").read_text().splitlines()
    step, feature, _ = lines[3].split(",")
    for new, word in ((f"{step},{feature},123", "more than one coefficient"), ("99,1,5", "step 99"), ("-1,1,5", "-1")):
        (run / "coefficients.csv").write_text("\n".join([*lines[:3], new, *lines[3:], ""]))
        seal(run)
        assert verify_certificate(run).faults[0][1].startswith("coefficients.csv")
        seal(run, "coefficients.csv")
        ((_, fault),) = verify_certificate(run).faults
        assert word in fault
    (run / "coefficients.csv").write_text("\n".join([*lines, ""]))
    seal(run, "coefficients.csv")
    assert verify_certificate(run).holds


def test_rows_of_packed_coefficients_are_those_of_the_steps(data, tmp_path):
    r = tmp_path / "r"
    plain.run("svm", data, certificate=True, coefficients="npz", grid=5, out=r)
    assert verify_certificate(r).holds
    with np.load(r / "coefficients.npz") as stored:
        arrays = dict(stored)
    more = {"indptr": np.append(arrays["indptr"], arrays["indptr"][-1])}
    np.savez(r / "coefficients.npz", **{**arrays, **more})
    seal(r, "coefficients.npz")
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


@pytest.mark.parametrize("model", ["svm", "l1svm", "sparse-svm"])
def test_claims_are_no_wider_than_the_tolerance(data, tmp_path, model):
    """An error of the primal value, or a gap, that covers all there is says nothing."""
    sizes = {"betas": 2, "alphas": 3} if model == "sparse-svm" else {"grid": 4}
    plain.run(model, data, certificate=True, out=tmp_path / "r", **sizes)
    header, steps = read_certificate(tmp_path / "r" / NAME)
    assert check(header, steps, data).holds
    true = steps[2]["primal"]
    for change in (
        {"primal": 123.0, "primal_error": 1e300},
        {"primal": true * (1.0 + 1e-4), "primal_error": true},
        {"primal": true * (1.0 - 1e-4), "primal_error": true},
        {"primal_error": math.inf},
        {"primal_error": math.nan},
        {"primal": math.nan},
        {"gap": math.inf},
        {"gap": math.nan},
        {"gap": 1.001 * header["tol"] * true},
    ):
        found = check(header, [*steps[:2], {**steps[2], **change}, *steps[3:]], data)
        assert {step for step, _ in found.faults} == {2}, change


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
