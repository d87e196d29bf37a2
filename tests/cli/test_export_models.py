"""export --to onnx and --to sklearn: runtimes of these decide as predict does."""

import csv
import importlib.util
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import screenpath
from tests.cli.conftest import ROOT, clouds, libsvm_text, read_csv
from tests.cli.test_tables import csv_text, three
from tests.schemas import faults

RNG = np.random.default_rng(5)
RUNS = {
    "svm": ("svm", "two", "--c", 1, "--bias", 1, "--scale", "standard"),
    "l2": ("svm", "two", "--c", 1, "--bias", 1, "--scale", "l2"),
    "positive": ("svm", "three", "--c", 1, "--positive", "elm"),
    "free": ("svm", "two", "--c", 1, "--intercept", "free", "--scale", "maxabs"),
    "rest": ("svm", "three", "--c", 1, "--bias", 1, "--one-vs-rest"),
    "classes": ("sparse-svm", "numbers", "--betas", 2, "--alphas", 2), "l1svm": ("l1svm", "two", "--grid", 3),
    "svr": ("svr", "targets", "--c", 1, "--bias", 1),
    "laplacian": ("svm", "two", "--c", 1, "--kernel", "laplacian", "--scale", "standard"),
    "kernel svr": ("svr", "targets", "--c", 1, "--kernel", "rbf", "--scale", "standard"),
    "kernel lad": ("lad", "targets", "--c", 1, "--kernel", "poly", "--gamma", 0.1, "--coef0", 1, "--bias", 1),
    "quantile": ("quantile", "targets", "--c", 1, "--tau", 0.3), "wide": ("svm", "wide", "--c", 1, "--bias", 1),
    "rbf": ("svm", "two", "--c", 1, "--kernel", "rbf", "--scale", "standard", "--bias", 1),
    "rbf free": ("svm", "two", "--c", 1, "--kernel", "rbf", "--gamma", 0.2, "--intercept", "free"),
    "far": ("svm", "wide", "--c", 1, "--kernel", "rbf", "--gamma", 0.1, "--scale", "maxabs"),
    "poly": ("svm", "two", "--c", 1, "--kernel", "poly", "--gamma", 0.1, "--coef0", 1, "--scale", "l2"),
    "linear": ("svm", "two", "--c", 1, "--kernel", "linear", "--scale", "maxabs"),
    "recall": ("cv svm", "two", "--c-list", 1, "--bias", 1, "--folds", 3, "--threshold", "recall=0.95"),
    "rbf recall": ("cv svm", "two", "--c-list", 1, "--kernel", "rbf", "--folds", 3, "--threshold", "precision=0.9"),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the data of RUNS and the runs by their names."""
    from screenpath.cli.app import run

    place = tmp_path_factory.mktemp("models")
    X, y = clouds(60, 5)
    T, t = three()
    (place / "two").write_text(libsvm_text(X, y))
    (place / "three").write_text(csv_text(T, t))
    (place / "numbers").write_text(libsvm_text(T, np.unique(t, return_inverse=True)[1] + 1.5))
    (place / "targets").write_text(csv_text(X, X[:, 0] - 2 * X[:, 1]))
    (place / "wide").write_text("1 3:1 1999999:2\n2 3:-1 2000000:1\n1 3:2\n2 5:1\n")
    for name, (model, data, *options) in RUNS.items():
        arguments = [*model.split(), place / data, *options, "--quiet", "--out", place / f"run-{name}"]
        assert run([str(a) for a in arguments]) == 0
    return place


def new_rows(path):
    """Return rows that no run has seen, some of zeros."""
    if path.run.n_features > 10:
        rows = np.zeros((3, path.run.n_features))
        rows[:, [2, 4, path.run.n_features - 1]] = RNG.normal(size=(3, 3))
    else:
        rows = 2.0 * RNG.normal(size=(40, path.run.n_features))
        rows[0] = 0.0
    return rows


@pytest.mark.parametrize("name", RUNS)
def test_onnxruntime_decides_as_predict(folder, name, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime (extra: test)")
    path = screenpath.load_run(folder / f"run-{name}")
    file = screenpath.export_run(path, "onnx", tmp_path / "m.onnx", step=len(path) - 1)
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    X = new_rows(path)
    found = dict(zip([one.name for one in session.get_outputs()], session.run(None, {"X": X}), strict=True))
    forms = path.decision_function(X)
    values = found["value" if path.labels is None else "decision"]
    assert values.dtype == np.float64 and values.shape == forms.shape and np.unique(forms).size > 2
    np.testing.assert_allclose(values, forms, rtol=1e-6, atol=1e-6 * np.abs(forms).max())
    if path.labels is not None:
        assert found["label"].tolist() == [
            int(label) if not isinstance(label, str) and float(label).is_integer() else label
            for label in path.predict(X).tolist()
        ]


@pytest.mark.parametrize("name", RUNS)
def test_an_estimator_of_scikit_learn_decides_as_predict(folder, name, tmp_path):
    skops = pytest.importorskip("skops.io", reason="needs skops (extra: test)")
    path = screenpath.load_run(folder / f"run-{name}")
    file = screenpath.export_run(path, "sklearn", tmp_path / "m.skops", step=len(path) - 1)
    rest = {"scipy.sparse._csr.csr_array"} if name == "far" else set()  # support vectors that are kept sparse
    assert set(skops.get_untrusted_types(file=file)) == rest
    estimator = skops.load(file, trusted=list(rest))
    assert type(estimator).__module__.startswith("sklearn.")
    X = new_rows(path)
    names = path.feature_names
    if names is not None:
        X = pytest.importorskip("pandas").DataFrame(X, columns=list(names))
    if path.labels is None:
        np.testing.assert_allclose(estimator.predict(X), path.predict(X), rtol=1e-9, atol=1e-9)
        return
    np.testing.assert_allclose(estimator.decision_function(X), path.decision_function(X), rtol=1e-9, atol=1e-9)
    assert estimator.predict(X).tolist() == path.predict(X).tolist()


CLINIC = ("--target", "returned", "--id", "visit", "--drop", "seen,patient", "--one-hot", "auto", "--missing", "median")
TABLES = {
    "filled": ("clinic", *CLINIC, "--missing-indicator", "--scale", "standard", "--intercept", "free", "--c", 1),
    "numbers of gaps": ("clinic", *CLINIC, "--na", "-1", "--na", "west", "--missing-indicator", "--c", 1, "--bias", 1),
    "kernel": ("clinic", *CLINIC, "--scale", "standard", "--kernel", "rbf", "--gamma", 0.1, "--c", 1),
    "rows of length 1": ("clinic", *CLINIC, "--scale", "l2", "--c", 1),
    "whole": ("penguins", "--target", "sex", "--one-hot", "island,species", "--columns", "!bill_depth_mm", "--c", 1),
}


def raw_table(name):
    """Return the sample table of a name, with further rows: texts that no run has seen, gaps, numbers for gaps."""
    with open(ROOT / "data_samples" / f"{name}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    if name == "clinic":
        rows += [rows[0] | {"blood": "X", "smoker": "", "age": ""}, rows[1] | {"weight_kg": "-1", "site": "NA"}]
    return rows


def by_hand(model: dict, rows: list) -> np.ndarray:
    """Return the decisions of a model in JSON on the cells of a table, as the pages describe it."""
    table, found = model["table"], []
    cells, indicated = table.get("cells", {}), table.get("indicated", ())
    gaps, codes = {"", "?", "NA", *cells.get("na", ())}, [float(one) for one in cells.get("na", ()) if one != "west"]
    for row in rows:
        features = []
        for name in table["columns"]:
            gap = row[name] in gaps or (name not in table["one_hot"] and float(row[name]) in codes)
            if name in table["one_hot"]:
                features += [float(row[name] == text and not gap) for text in table["one_hot"][name]]
            else:
                features.append(model["missing"][len(features)] if gap else float(row[name]))
            features += [float(gap)] if name in indicated else []
        found.append(features)
    X, (one,) = np.array(found), model["weights"]
    if model["rows"] == "l2":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X[:, np.array(one["features"]) - 1] @ one["values"] + one["intercept"]


@pytest.mark.parametrize("name", TABLES)
def test_exports_take_the_cells_of_a_table(call, tmp_path, name):
    """ONNX, skops and JSON decide on the raw rows as predict does on the file."""
    data, *options = TABLES[name]
    rows, file = raw_table(data), ROOT / "data_samples" / f"{data}.csv"
    assert call("svm", file, *options, "-q", "-o", "r").code == 0
    with open(tmp_path / "new.csv", "w", newline="") as new:
        table = csv.DictWriter(new, rows[0])
        table.writeheader()
        table.writerows(rows)
    assert call("predict", "r", "new.csv", "--decision", "-q", "-o", "labels.csv").code == 0
    expected = read_csv(tmp_path / "labels.csv")
    decisions, labels = [float(row["decision"]) for row in expected], [row["label"] for row in expected]
    form = screenpath.load_run("r").run.form
    gaps = {"", "?", "NA"}
    cells = {
        column: [row[column] for row in rows] if column in form.one_hot
        else [float(row[column]) if row[column] not in gaps else np.nan for row in rows] for column in form.columns
    }  # fmt: skip
    if name != "kernel":
        assert call("export", "r", "--step", 0, "-o", "m.json").code == 0
        np.testing.assert_allclose(by_hand(json.loads((tmp_path / "m.json").read_text()), rows), decisions, rtol=1e-9)
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime (extra: test)")
    assert call("export", "r", "--step", 0, "-o", "m.onnx").code == 0
    session = runtime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    fed = {column: np.array(values, dtype=object if column in form.one_hot else np.float64)[:, None]
           for column, values in cells.items()}  # fmt: skip
    assert {one.name for one in session.get_inputs()} == set(form.columns)
    told, values = session.run(None, fed)
    assert told.tolist() == labels
    np.testing.assert_allclose(values, decisions, rtol=1e-6, atol=1e-6)
    found = call("export", "r", "--step", 0, "-o", "m.skops")
    if name == "numbers of gaps":
        assert found.code == 2 and "--to onnx" in found.err
        return
    skops = pytest.importorskip("skops.io", reason="needs skops (extra: test)")
    pandas = pytest.importorskip("pandas")
    types = ["numpy.dtype"] if "--missing" in options else []  # of the imputer
    assert found.code == 0 and skops.get_untrusted_types(file="m.skops") == types
    estimator = skops.load("m.skops", trusted=types)
    frame = pandas.DataFrame(rows).assign(**cells)
    frame = frame.replace({column: dict.fromkeys(gaps, np.nan) for column in form.one_hot})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of texts that are none of the training data
        assert estimator.predict(frame).tolist() == labels
        np.testing.assert_allclose(estimator.decision_function(frame), decisions, rtol=1e-9, atol=1e-9)
        assert estimator.predict(frame[frame.columns[::-1]]).tolist() == labels


def test_columns_called_as_parts_of_a_model(call, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime (extra: test)")
    for name in ("v1", "c0", "decision"):
        lines = [f"y,{name},b", "1,red,2", "2,blue,1", "1,red,3", "2,blue,0"]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
        assert call("svm", "t.csv", "--one-hot", name, "--c", 1, "-q", "-o", "r", "--force").code == 0
        found = call("export", "r", "--step", 0, "-o", "m.onnx", "--force")
        if name == "decision":
            assert found.code == 2 and "rename the column" in found.err
            continue
        told = runtime.InferenceSession("m.onnx").run(["label"], {
            name: np.array([["red"], ["blue"]], dtype=object), "b": np.array([[2.0], [1.0]])
        })  # fmt: skip
        assert told[0].tolist() == [1, 2]


@pytest.mark.parametrize("kind", ["liblinear", "libsvm", "json", "npz"])
def test_files_of_weights_carry_the_threshold(folder, kind, tmp_path):
    """The decision of each format, minus that of the model without a threshold, is the threshold."""
    path = screenpath.load_run(folder / ("run-rbf recall" if kind == "libsvm" else "run-recall"))
    threshold, X = path.table()[0]["threshold"], new_rows(path)
    file = screenpath.export_run(path, kind, tmp_path / "m", step=0)
    if kind == "libsvm":
        forms, labels = libsvm_forms(file.read_text(), X)
        assert labels == path.predict(X).tolist()
    elif kind == "liblinear":
        *w, b = [float(line) for line in file.read_text().partition("\nw\n")[2].split()]
        forms = X @ w + b
    elif kind == "json":
        found = json.loads(file.read_text())
        assert found["threshold"] == threshold
        forms = X[:, np.array(found["weights"][0]["features"]) - 1] @ found["weights"][0]["values"]
        forms += found["weights"][0]["intercept"]
    else:
        found = np.load(file)
        forms = X @ found["weights"][0] + found["intercepts"][0]
    np.testing.assert_allclose(forms, path.decision_function(X), rtol=1e-9, atol=1e-9)
    assert abs(threshold) > 1e-3
    if kind != "libsvm":
        np.testing.assert_allclose(X @ path.coef(0) + path.intercept(0) - threshold, forms, rtol=1e-9, atol=1e-9)


def libsvm_forms(text: str, X) -> tuple[np.ndarray, list]:
    """Return decision values and labels of LIBSVM's model file, read as its documentation says."""
    head, _, body = text.partition("SV\n")
    given = dict(line.split(" ", 1) for line in head.splitlines())
    degree, gamma, coef0 = int(given.get("degree", 1)), float(given.get("gamma", 1.0)), float(given.get("coef0", 0.0))
    forms = np.full(len(X), -float(given["rho"]))
    for line in body.splitlines():
        coefficient, *cells = line.split()
        vector = np.zeros(X.shape[1])
        for cell in cells:
            j, value = cell.split(":")
            vector[int(j) - 1] = float(value)
        if given["kernel_type"] == "rbf":
            values = np.exp(-gamma * ((X - vector) ** 2).sum(axis=1))
        else:
            values = (gamma * (X @ vector) + coef0) ** degree if given["kernel_type"] == "polynomial" else X @ vector
        forms += float(coefficient) * values
    if given["svm_type"] == "epsilon_svr":
        assert "label" not in given and int(given["total_sv"]) == len(body.splitlines())
        return forms, forms.tolist()
    first, second = given["label"].split()
    counts = [int(count) for count in given["nr_sv"].split()]
    signs = [float(line.split()[0]) > 0.0 for line in body.splitlines()]
    assert sum(counts) == len(signs) == int(given["total_sv"]) and all(signs[: counts[0]])
    return forms, [float(first if form > 0.0 else second) for form in forms]


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("model, intercept", [("svm", "free"), ("svm", "penalised"), ("svr", "free"), ("lad", "none")])
def test_the_model_file_of_libsvm_decides_as_predict(folder, kernel, model, intercept, tmp_path):
    options = {"gamma": 0.2, "degree": 2, "coef0": 1.0}
    own = {"rbf": ("gamma",), "poly": ("gamma", "degree", "coef0"), "linear": ()}[kernel]
    path = screenpath.run(
        model, folder / ("two" if model == "svm" else "targets"), kernel=kernel, intercept=intercept, c=1.0,
        out=tmp_path / "run",
        **{name: options[name] for name in own},
    )  # fmt: skip
    path = screenpath.load_run(tmp_path / "run")
    assert (path.intercepts[0] != 0.0) == (intercept == "free")
    X = new_rows(path)
    forms, labels = libsvm_forms(screenpath.export_run(path, "libsvm", tmp_path / "m", step=0).read_text(), X)
    np.testing.assert_allclose(forms, path.decision_function(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(labels, path.predict(X), rtol=1e-9, atol=1e-9)


def kernel_forms(kernel: dict, support, coefficients, intercept: float, Z) -> np.ndarray:
    """Return the decision values of a kernel model, by its formulas."""
    inner = Z @ support.T
    if kernel["kernel"] == "rbf":
        values = np.exp(-kernel["gamma"] * np.square(Z[:, None] - support[None]).sum(axis=2))
    elif kernel["kernel"] == "laplacian":
        values = np.exp(-kernel["gamma"] * np.abs(Z[:, None] - support[None]).sum(axis=2))
    elif kernel["kernel"] == "poly":
        values = (kernel["gamma"] * inner + kernel["coef0"]) ** kernel["degree"]
    else:
        values = inner
    return (values + kernel["constant"]) @ coefficients + intercept


@pytest.mark.parametrize("name", [name for name, words in RUNS.items() if "--kernel" in words])
@pytest.mark.parametrize("kind", ["json", "npz"])
def test_kernel_models_as_json_and_arrays_decide_as_predict(folder, name, kind, tmp_path):
    path = screenpath.load_run(folder / f"run-{name}")
    file = screenpath.export_run(path, kind, tmp_path / f"m.{kind}", step=0)
    X = new_rows(path)
    if kind == "json":
        found = json.loads(file.read_text())
        assert faults("export", found) == []
        about, kernel, intercept = found, found["kernel"], found["intercept"]
    else:
        found = dict(np.load(file))
        about = json.loads(str(found["description"]))
        kernel, intercept = about["kernel"], float(found["intercepts"][0])
    Z = X[:, np.array(found["features"]) - 1] if "features" in found else X
    Z = (Z - np.array(found.get("shift", 0.0))) / np.array(found.get("scale", 1.0))
    if about["rows"] == "l2":
        sizes = np.linalg.norm(Z, axis=1, keepdims=True)
        Z = Z / np.where(sizes > 0.0, sizes, 1.0)
    support = found["support"]
    if kind == "json":
        support = np.zeros((len(found["support"]), Z.shape[1]))
        for row, one in zip(support, found["support"], strict=True):
            row[np.array(one["columns"]) - 1] = one["values"]
    forms = kernel_forms(kernel, support, np.array(found["coefficients"]), intercept, Z)
    np.testing.assert_allclose(forms, path.decision_function(X, 0), rtol=1e-9, atol=1e-9)


def test_a_model_without_support_vectors_is_its_intercept(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data").write_text("1.5 1:1\n2.5 1:2\n3 1:4\n")
    assert call("svr", "data", "--kernel", "rbf", "--epsilon", 100, "--c", 1, "-o", "run").code == 0
    assert call("export", "run", "--step", 0, "--to", "libsvm", "-o", "m.model").code == 0
    text = Path("m.model").read_text()
    forms, _ = libsvm_forms(text, np.ones((1, 1)))
    assert "total_sv 0\n" in text and text.endswith("SV\n") and -float(text.split("rho ")[1].split()[0]) == forms[0]
    assert call("predict", "run", "data", "--step", 0).out.split()[1] == repr(float(forms[0]))
    done = call("certify", "svr", "data", "--weights", "m.model", "--epsilon", 100, "--c", 1)
    assert done.code == 0, done.err


def test_kernel_runs_and_missing_packages_are_one_clear_error(call, folder, monkeypatch):
    kernel, linear = folder / "run-rbf", folder / "run-svm"
    result = call("export", kernel, "--step", 0, "--to", "liblinear", "-o", "-")
    assert result.code == 2 and "--to onnx" in result.err
    for run, words in ((kernel, "--scale=standard"), (linear, "without a kernel")):
        result = call("export", run, "--step", 0, "--to", "libsvm", "-o", "-")
        assert result.code == 2 and words.replace("=", " ") in result.err.replace("=", " ")
    (folder / "two").rename(folder / "moved")
    try:
        assert "--training" in call("export", kernel, "--step", 0, "--to", "onnx", "-o", "a.onnx").err
        moved = ("--training", folder / "moved", "--quiet")
        assert call("export", kernel, "--step", 0, "--to", "onnx", "-o", "a.onnx", *moved).code == 0
        assert call("export", kernel, "--step", 0, "--to", "sklearn", "-o", "a.skops", *moved).code == 0
    finally:
        (folder / "moved").rename(folder / "two")
    assert call("export", linear, "--step", 0, "--to", "onnx", "-o", "b", "--training", folder / "two").code == 2
    find = importlib.util.find_spec
    for module, kind, extra in (
        ("onnx", "onnx", "onnx"), ("skops.io", "sklearn", "skops"), ("sklearn", "sklearn", "skops"),
    ):  # fmt: skip
        if module == "sklearn":  # not installed: the module of ours that asks for it has not been imported either
            monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "sklearn" else find(name))
            for name in [name for name in sys.modules if name.startswith("screenpath.sklearn")]:
                monkeypatch.delitem(sys.modules, name)
        else:
            monkeypatch.setitem(sys.modules, module, None)
        result = call("export", linear, "--step", 0, "--to", kind, "-o", "c")
        assert result.code == 1 and result.err.count("pip install") == 1 and f"screenpath[{extra}]" in result.err


def test_the_name_of_a_file_tells_its_format(call, folder, tmp_path):
    """As ``--to`` does, to the last byte; a name that tells nothing says which do."""
    for run in (folder / "run-rbf free", folder / "run-svm"):
        kernel = screenpath.load_run(run).run.kernel
        told = {".onnx": "onnx", ".skops": "sklearn", ".json": "json", ".npz": "npz", ".MODEL": "liblinear"}
        told = {".onnx": "onnx", ".skops": "sklearn", ".model": "libsvm"} if kernel else told
        needs = {"onnx": "onnx", "sklearn": "skops"}
        for suffix, kind in told.items():
            if kind in needs and importlib.util.find_spec(needs[kind]) is None:
                continue
            (tmp_path / "a").unlink(missing_ok=True)
            assert call("export", run, "--step", 0, "-o", f"m{suffix}", "--force").code == 0
            assert call("export", run, "--step", 0, "--to", kind, "-o", "a").code == 0
            assert (tmp_path / f"m{suffix}").read_bytes()[:4] == (tmp_path / "a").read_bytes()[:4]
            if kind not in ("sklearn", "npz"):  # archives hold the time
                assert (tmp_path / f"m{suffix}").read_bytes() == (tmp_path / "a").read_bytes()
        for name in ("-", "m", "m.txt"):
            found = call("export", run, "--step", 0, "-o", name)
            assert found.code == 2 and found.out == "" and not (tmp_path / name).exists()
            advice = found.err.splitlines()[1]
            assert ".onnx" in advice and advice.endswith(f"add --to {'onnx' if kernel else 'json'}")
