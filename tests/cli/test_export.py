"""export: LIBLINEAR's own predict decides as screenpath does; JSON and NPZ hold the same weights."""

import json

import numpy as np
import pytest

from tests.cli.conftest import clouds, libsvm_text
from tests.cli.test_predict import file_coefficients, three_clouds

liblinearutil = pytest.importorskip("liblinear.liblinearutil", reason="needs liblinear-official (extra: test)")


def both(call, run, data, step, model_file, tmp_path):
    """Return labels (or values) and linear forms of LIBLINEAR and of screenpath."""
    y, rows = liblinearutil.svm_read_problem(str(data))
    model = liblinearutil.load_model(str(model_file))
    theirs, _, forms = liblinearutil.predict(y, rows, model, "-q")
    found = call("predict", run, data, "--step", step, "--decision")
    if found.code == 2:  # a regression
        ours = np.array(call("predict", run, data, "--step", step).out.split()[1:], dtype=float)
        return theirs, np.array(forms)[:, 0], ours, ours
    lines = [line.split(",") for line in found.out.splitlines()[1:]]
    labels = [line[0] for line in lines]
    values = np.array([[float(v) for v in line[1:]] for line in lines])
    return theirs, np.array(forms)[:, : values.shape[1]], labels, values


@pytest.mark.parametrize(
    "model, options",
    [
        ("svm", ("--c", 1, "--bias", 1, "--scale", "standard")), ("svm", ("--c", 1)), ("l1svm", ("--grid", 3)),
        ("sparse-svm", ("--betas", 2, "--alphas", 2, "--bias", 2)),
        ("lad", ("--c", 1, "--bias", 1, "--scale", "maxabs")), ("quantile", ("--c", 1, "--tau", 0.7)),
        ("svr", ("--c", 1, "--epsilon", 0.1)),
    ],
)  # fmt: skip
def test_liblinear_predicts_the_same(call, data, tmp_path, model, options):
    X, y = clouds(seed=9)
    new = tmp_path / "new.libsvm"
    new.write_text(libsvm_text(X, y) + "1 2:0.5 8:3\n")  # 8 is no feature of the run
    run = tmp_path / "run"
    assert call(model, data, *options, "--out", run).code == 0
    step = len((run / "steps.csv").read_text().splitlines()) - 2
    assert call("export", run, "--step", step, "--to", "liblinear", "-o", "m.model").code == 0
    theirs, forms, labels, values = both(call, run, new, step, tmp_path / "m.model", tmp_path)
    np.testing.assert_allclose(forms.ravel(), values.ravel(), rtol=1e-9, atol=1e-9)
    assert np.any(values != values.ravel()[0])
    if model in ("svm", "l1svm", "sparse-svm"):
        assert [f"{label:g}" for label in theirs] == labels


def test_liblinear_with_several_classes_and_with_the_rest(call, tmp_path):
    data = tmp_path / "three.libsvm"
    data.write_text(libsvm_text(*three_clouds()))
    assert call("sparse-svm", data, "--betas", 2, "--alphas", 3, "--bias", 1, "--out", "run").code == 0
    assert call("export", "run", "--step", 5, "--to", "liblinear", "-o", "m.model").code == 0
    theirs, forms, labels, values = both(call, "run", data, 5, tmp_path / "m.model", tmp_path)
    np.testing.assert_allclose(forms, values, rtol=1e-9, atol=1e-9)
    assert [f"{label:g}" for label in theirs] == labels and set(labels) == {"2", "5", "7"}

    assert call("svm", data, "--positive", 5, "--c", 1, "--out", "rest").code == 0
    found = call("export", "rest", "--step", 0, "--to", "liblinear", "-o", "r.model")
    assert found.code == 0 and "labels other than --positive" in found.err and "wrote " in found.err
    theirs, forms, labels, values = both(call, "rest", data, 0, tmp_path / "r.model", tmp_path)
    assert [{"5": 5.0, "rest": -1.0}[label] for label in labels] == theirs


@pytest.mark.parametrize("scale", ["maxabs", "l2"])
def test_json_and_npz_hold_the_weights(call, data, tmp_path, scale):
    assert call("svm", data, "--c-list", "0.1,1", "--scale", scale, "--bias", 1, "--out", "run").code == 0
    w, b = file_coefficients(tmp_path / "run", 1, 5)
    for kind in ("json", "npz"):
        assert call("export", "run", "--step", 1, "--to", kind, "-o", f"m.{kind}", "--quiet").err == ""
    content = json.loads((tmp_path / "m.json").read_text())
    assert content["weights"] == [{"intercept": b, "features": [1, 2, 3, 4, 5], "values": w.tolist()}]
    assert content["parameters"] == {"C": 1.0} and content["labels"] == {"+1": 2.0, "-1": 1.0}
    assert content["rows"] == ("l2" if scale == "l2" else "as they are")
    with np.load(tmp_path / "m.npz") as stored:
        assert stored["weights"].tolist() == [w.tolist()] and stored["intercepts"].tolist() == [b]
        assert stored["labels"].tolist() == ["1", "2"]
        about = json.loads(str(stored["description"]))
    assert about == {name: value for name, value in content.items() if name != "weights"}


def test_what_liblinear_cannot_hold(call, data, tmp_path):
    assert call("svm", data, "--c", 1, "--scale", "l2", "--out", "run").code == 0
    found = call("export", "run", "--step", 0, "--to", "liblinear", "-o", "m.model")
    assert found.code == 2 and "--scale l2" in found.err
    halves = tmp_path / "halves.libsvm"
    halves.write_text(libsvm_text(*clouds(labels=(1.0, 2.0))).replace("\n1 ", "\n1.5 ").replace("1 ", "1.5 ", 1))
    assert call("svm", halves, "--c", 1, "--out", "half").code == 0
    found = call("export", "half", "--step", 0, "--to", "liblinear", "-o", "m.model")
    assert found.code == 2 and "1.5" in found.err and not (tmp_path / "m.model").exists()


def test_other_models_and_no_folder(call, tmp_path):
    assert "not a run folder" in call("export", tmp_path, "--step", 0, "--to", "json", "-o", "-").err
    record = {"schema_version": 1, "model": "other", "status": "complete", "data": {"n_features": 1}, "options": {}}
    record |= {"preparation": {"scale": None}, "parameters": ["C"]}
    record["columns"] = ["step", "C", "status", "primal", "nnz_w"]
    (tmp_path / "run.json").write_text(json.dumps(record))
    found = call("show", tmp_path)
    assert found.code == 1 and "there is no preparation.shift" in found.err
    record["preparation"]["shift"] = None
    (tmp_path / "run.json").write_text(json.dumps(record))
    (tmp_path / "steps.csv").write_text("step,C,status,primal,nnz_w\n0,1.0,certified,1.0,1\n")
    found = call("export", tmp_path, "--step", 0, "--to", "json", "-o", "-")
    assert found.code == 1 and "model 'other'" in found.err
