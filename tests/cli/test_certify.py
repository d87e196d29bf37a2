"""certify: files of other programs, a table for a folder of them, estimators, and errors in words."""

import io
import json
import pickle
import re
import sys

import numpy as np
import pytest

import screenpath
from screenpath.inputs.foreign import of_estimator, read_foreign
from tests.cli.conftest import clouds, libsvm_text, read_csv
from tests.width import wide

X, Y = clouds(60, 3, 1)
X, Y = np.round(X, 3), np.where(np.max(Y) == Y, 1.0, -1.0)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text(libsvm_text(X, Y))
    return "data"


def hinge(w, b, C=1.0, bias=None):
    """Return the objective of an SVM."""
    loss = C * np.maximum(0.0, 1.0 - Y * (X @ w + b)).sum()
    return 0.5 * (w @ w) + loss + (0.0 if bias is None else 0.5 * (b / bias) ** 2)


@pytest.mark.parametrize("options, flags", [
    (("-s", "3", "-B", "1"), ()), (("-s", "3", "-B", "-1"), ()), (("-s", "3", "-B", "4"), ()),
    (("-s", "1", "-B", "1"), ("sparse-svm",)), (("-s", "5", "-B", "1"), ("sparse-svm",)),
    (("-s", "13", "-p", "0.1"), ("svr", "--epsilon", "0.1")),
])  # fmt: skip
def test_what_liblinear_writes(options, flags, data, call):
    """Its own predict has the decisions of the weights that are read."""
    lib = pytest.importorskip("liblinear.liblinearutil", reason="needs liblinear-official (extra: test)")
    y, rows = lib.svm_read_problem(data)
    lib.save_model("m.model", model := lib.train(y, rows, " ".join([*options, "-c", "1", "-q", "-e", "1e-6"])))
    given = read_foreign("m.model")
    _, _, forms = lib.predict(y, rows, model, "-q")
    labels = None if "13" in options else {"+1": 1.0, "-1": -1.0}
    w, b, sign = given.row(labels)
    np.testing.assert_allclose(sign * (X @ w + b), np.ravel(forms), rtol=1e-9, atol=1e-9)
    name, *more = flags or ("svm",)
    done = call("certify", name, data, "--weights", "m.model", "--c", 1, *more, "--format", "json")
    found = json.loads(done.out)
    assert done.code == 0 and 0.0 <= found["rel_gap"] < 1e-3
    if name == "svm":
        bias = given.told.get("bias")
        assert found["value"] == pytest.approx(hinge(w, b, bias=bias), rel=1e-12)


def test_the_formats_agree(data, call):
    """What export writes of a step is read back: the same gap, whichever the format."""
    assert call("svm", data, "--c", 0.5, "--intercept", "free", "--tol", 0.01, "-o", "run", "-q").code == 0
    assert call("export", "run", "--to", "json", "-o", "m.json").code == 0
    assert call("export", "run", "--to", "liblinear", "-o", "m.model").code == 0
    weights, b = screenpath.load_run("run").coef(), screenpath.load_run("run").intercept()
    lines = [f"{j},{v!r}\n" for j, v in enumerate([b, *weights.tolist()])]
    with open("m.csv", "w") as file:
        file.write("feature,value\n" + "".join(lines))
    names = ["m.csv", "m.json", "m.model", "run/coefficients.csv"]
    if pytest.importorskip("onnx", reason="needs onnx (extra: onnx)"):
        assert call("export", "run", "-o", "m.onnx").code == 0
        names.append("m.onnx")
    words = ("--c", 0.5, "--intercept", "free", "--format", "json")
    found = [json.loads(call("certify", "svm", data, "--weights", name, *words).out) for name in names]
    assert len({one["value"] for one in found}) == len({one["rel_gap"] for one in found}) == 1
    assert found[0]["value"] == pytest.approx(hinge(weights, b, 0.5), rel=1e-12)
    assert 0.0 < found[0]["rel_gap"] <= 0.01


def test_onnx_of_other_makers(data, call):
    """A LinearClassifier has two rows and floats of 32 bits; scaled rows are refused."""
    onnx = pytest.importorskip("onnx", reason="needs onnx (extra: onnx)")
    made, kinds = onnx.helper, onnx.TensorProto
    w = np.array([0.1, -0.2, 0.3])
    node = made.make_node(
        "LinearClassifier", ["X"], ["label", "scores"], domain="ai.onnx.ml", classlabels_ints=[-1, 1],
        coefficients=[*(-w), *w], intercepts=[-0.5, 0.5],
    )  # fmt: skip
    ends = [made.make_tensor_value_info("X", kinds.FLOAT, [None, 3])], [
        made.make_tensor_value_info("scores", kinds.FLOAT, [None, 2])
    ]
    onnx.save(made.make_model(made.make_graph([node], "m", *ends)), "m.onnx")
    words = ("certify", "svm", data, "--weights", "m.onnx", "--c", 1, "--bias", 1)
    found = json.loads(call(*words, "--format", "json").out)
    rounded = np.float32(w).astype(float)
    assert found["value"] == pytest.approx(hinge(rounded, 0.5, bias=1.0), rel=1e-12)
    scaler = made.make_node("Div", ["X", "s"], ["Z"])
    node.input[0] = "Z"
    scale = onnx.numpy_helper.from_array(np.float32([2.0]), "s")
    onnx.save(made.make_model(made.make_graph([scaler, node], "m", *ends, [scale])), "m.onnx")
    done = call(*words)
    assert done.code == 1 and "no linear model of the rows as they are" in done.err


@pytest.mark.parametrize("words", [("--kernel", "rbf"), ("--kernel", "linear"), ("--scale", "l2")])
@pytest.mark.parametrize("form", ["json", "onnx"])
def test_support_vectors_are_no_weights(data, call, words, form):
    """The first product of such a graph is with the support vectors; weights for rows of norm 1 are not for others."""
    if form == "onnx":
        pytest.importorskip("onnx", reason="needs onnx (extra: onnx)")
    assert call("svm", data, "--c", 1, *words, "-o", "run", "-q").code == 0
    assert call("export", "run", "-o", f"m.{form}").code == 0
    done = call("certify", "svm", data, "--weights", f"m.{form}", "--c", 1, "--intercept", "free")
    assert (done.code, done.out) == (1, "") and "no linear model of the rows as they are" in done.err


def test_a_network_is_no_linear_model(data, call):
    onnx = pytest.importorskip("onnx", reason="needs onnx (extra: onnx)")
    made, kinds = onnx.helper, onnx.TensorProto
    nodes = [made.make_node(*node) for node in (("MatMul", ["X", "A"], ["H"]), ("MatMul", ["H", "B"], ["Y"]))]
    ends = ([made.make_tensor_value_info(name, kinds.FLOAT, [None, k])] for name, k in (("X", 3), ("Y", 1)))
    arrays = {"A": np.ones((3, 1), np.float32), "B": np.ones((1, 1), np.float32)}
    parts = [onnx.numpy_helper.from_array(values, name) for name, values in arrays.items()]
    onnx.save(made.make_model(made.make_graph(nodes, "m", *ends, parts)), "m.onnx")
    done = call("certify", "svm", data, "--weights", "m.onnx", "--c", 1)
    assert done.code == 1 and "no linear model of the rows as they are" in done.err


def test_weights_of_pairs_are_refused_by_name(call, tmp_path):
    (tmp_path / "m.json").write_text(json.dumps({"weights": [{"pair": "1/2", "intercept": 0.0}] * 3}))
    done = call("certify", "svm", "m.json", "--weights", "m.json", "--c", 1)
    assert done.code == 1 and "for each pair of labels" in done.err


def test_libsvm_with_the_linear_kernel(data, call):
    text = "svm_type c_svc\nkernel_type {}\nnr_class 2\ntotal_sv 2\nrho 0.25\nlabel {}\nnr_sv 1 1\nSV\n"
    rows = "0.5 1:1 3:2 \n-0.5 1:-1 2:3 \n"
    for label, sign in (("1 -1", 1.0), ("-1 1", -1.0)):
        with open("m.model", "w") as file:
            file.write(text.format("linear", label) + rows)
        found = json.loads(call("certify", "svm", data, "--weights", "m.model", "--c", 1, "--format", "json").out)
        assert found["value"] == pytest.approx(hinge(sign * np.array([1.0, -1.5, 1.0]), -0.25 * sign), rel=1e-12)
    with open("m.model", "w") as file:
        file.write(text.format("rbf\ngamma 0.5", "1 -1") + rows)
    done = call("certify", "svm", data, "--weights", "m.model", "--c", 1)
    assert done.code == 1 and "the support vector in line 1 is no row of the data" in done.err


def written(model, rows, labels, kernel: str) -> str:
    """Return a fitted SVC as LIBSVM writes it: support vectors to 8 digits."""
    sign = 1.0 if labels == "1 -1" else -1.0  # LIBSVM's first label is the one it has seen first
    duals, rho = sign * model.dual_coef_[0], -sign * float(model.intercept_[0])
    lines = ["svm_type c_svc", *kernel.split(";"), "nr_class 2", f"total_sv {duals.size}", f"rho {rho:.17g}"]
    lines += [f"label {labels}", f"nr_sv {int((duals > 0).sum())} {int((duals < 0).sum())}", "SV"]
    for k in (*np.flatnonzero(duals > 0), *np.flatnonzero(duals < 0)):
        cells = " ".join(f"{j}:{v:.8g}" for j, v in enumerate(rows[model.support_[k]], 1) if v)
        lines.append(f"{duals[k]:.17g} {cells} ")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("labels", ["1 -1", "-1 1"])
@pytest.mark.parametrize("kind", ["rbf", "poly"])
def test_libsvm_with_a_kernel(tmp_path, call, monkeypatch, kind, labels):
    """The file of LIBSVM is as near the optimum as the estimator that it was written from, although it rounds."""
    svm = pytest.importorskip("sklearn.svm", reason="scikit-learn is not installed")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(60, 3))
    rows[:, 1] = np.where(rng.random(60) < 0.3, 0.0, rows[:, 1])
    rows[50:] = rows[:10]  # rows that the data repeat
    y = np.where(np.sin(3.0 * rows[:, 0]) + rows[:, 2] + 0.5 * rng.normal(size=60) > 0.0, 1, -1)
    (tmp_path / "two").write_text(libsvm_text(rows, y))
    model = svm.SVC(kernel=kind, C=2.0, gamma=0.7, degree=2, coef0=1.0, tol=1e-4).fit(rows, y)
    whole = screenpath.certify(model, rows, y)
    head = {"rbf": "kernel_type rbf;gamma 0.7", "poly": "kernel_type polynomial;degree 2;gamma 0.7;coef0 1"}[kind]
    text = written(model, rows, labels, head)
    (tmp_path / "m.model").write_text(text)
    words = ("certify", "svm", "two", "--weights", "m.model", "--c", 2, "--format", "json")
    found = json.loads(call(*words).out)
    assert 0.0 < found["rel_gap"] == pytest.approx(whole.rel_gap, rel=1e-6)
    assert found["value"] == pytest.approx(whole.value, rel=1e-12)
    for old, new in (("rbf", "sigmoid"), ("polynomial", "precomputed"), ("nr_class 2", "nr_class 3")):
        (tmp_path / "m.model").write_text(text.replace(old, new))
        assert old not in text or call(*words).code == 1
    (tmp_path / "m.model").write_text(text.replace("\nSV\n", "\nSV\n0.5 1:0.123 \n"))
    assert "line 1 is no row of the data" in call(*words).err


def test_what_is_exported_for_libsvm_is_certified(call, data):
    assert call("svm", data, "--kernel", "rbf", "--gamma", 0.5, "--c", 2, "-o", "run").code == 0
    assert call("export", "run", "--step", 0, "--to", "libsvm", "-o", "m.model").code == 0
    found = json.loads(call("certify", "svm", data, "--weights", "m.model", "--c", 2, "--format", "json").out)
    assert found["rel_gap"] <= 1e-6


def test_a_model_whose_dual_variables_sum_to_0_but_for_rounding_is_written(call, data, tmp_path):
    assert call("svm", data, "--kernel", "rbf", "--gamma", 0.5, "--c", 2, "-o", "run").code == 0
    assert call("export", "run", "--step", 0, "--to", "libsvm", "-o", "m.model").code == 0
    head, _, rows = (tmp_path / "m.model").read_text().partition("SV\n")
    first, _, rest = rows.partition(" ")
    (tmp_path / "m.model").write_text(f"{head}SV\n{float(first) * (1.0 - 2.0**-44)!r} {rest}")
    assert call("certify", "svm", data, "--weights", "m.model", "--c", 2, "-o", "proof").code == 0
    assert call("verify", "proof").code == 0


@pytest.mark.parametrize(("kind", "other"), [(("--bias", 3), ("--bias", 2)), (("--intercept", "none"), ())])
def test_a_kernel_model_with_another_intercept_than_a_free_one(call, data, kind, other):
    assert call("svm", data, "--kernel", "rbf", "--gamma", 0.5, "--c", 2, *kind, "-o", "run").code == 0
    assert call("export", "run", "--step", 0, "--to", "libsvm", "-o", "m.model").code == 0
    words = ("certify", "svm", data, "--weights", "m.model", "--c", 2, "--format", "json")
    found = json.loads(call(*words, *kind).out)
    best = float(read_csv("run/steps.csv")[0]["dual"])
    assert found["rel_gap"] <= 1e-6 and best - 1e-9 <= found["lowest"] <= found["value"] <= best * (1.0 + 2e-6)
    assert call(*words, *kind, "-o", "proof").code == 0 and call("verify", "proof").code == 0
    if other:
        refused = call(*words, *other)
        assert refused.code == 2 and "another intercept" in refused.err and "--intercept free" in refused.err


@pytest.mark.parametrize("model", ["svr", "lad", "quantile"])
def test_kernel_regressions_go_to_libsvm_and_back(call, tmp_path, monkeypatch, model):
    svm = pytest.importorskip("sklearn.svm", reason="scikit-learn is not installed")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(50, 3))
    y = np.sin(2.0 * rows[:, 0]) + 0.1 * rng.normal(size=50)
    (tmp_path / "targets").write_text(libsvm_text(rows, y))
    own = ("--epsilon", 0.2) if model == "svr" else ()
    assert call(model, "targets", "--kernel", "rbf", "--gamma", 0.5, "--c", 2, *own, "-o", "run").code == 0
    assert call("export", "run", "--step", 0, "--to", "libsvm", "-o", "m.model").code == 0
    words = ("certify", model, "targets", "--weights", "m.model", "--c", 2, *own, "--format", "json")
    done = call(*words)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["rel_gap"] <= 1e-6 and found["change"] < 0.1
    text = (tmp_path / "m.model").read_text()
    (tmp_path / "m.model").write_text(re.sub(r"rho (\S+)", lambda found: f"rho {float(found[1]) + 1.0!r}", text))
    assert json.loads(call(*words).out)["rel_gap"] > 1e-3
    if model == "svr":
        fitted = svm.SVR(C=2.0, gamma=0.5, epsilon=0.2, tol=1e-6).fit(rows, y)
        assert screenpath.certify(fitted, rows, y).rel_gap < 1e-4
        assert screenpath.certify(fitted, rows, y + 0.1).rel_gap > 1e-4


def test_a_folder_is_a_table(data, call, tmp_path):
    """The smallest gap stands first; what cannot be certified is named, and the exit code says so."""
    (tmp_path / "models").mkdir()
    for name, w in (("far", [1.0, 2.0, 3.0]), ("zero", [0.0, 0.0, 0.0]), ("near", [0.5, 0.5, 0.2])):
        (tmp_path / "models" / f"{name}.json").write_text(json.dumps({"weights": w}))
    words = ("certify", "svm", data, "--weights", "models", "--c", 1)
    done = call(*words)
    gaps = [float(line.split()[2]) for line in done.out.splitlines()[1:]]
    assert done.code == 0 and len(gaps) == 3 and gaps == sorted(gaps)
    assert call(*words, "--within", 0.999999).code == 0 and call(*words, "--within", gaps[1]).code == 3
    single = [json.loads(call(*words[:4], f"models/{name}.json", *words[5:], "--format", "json").out)["rel_gap"]
              for name in ("far", "zero", "near")]  # fmt: skip
    assert [f"{one:.3g}" for one in sorted(single)] == [f"{one:.3g}" for one in gaps]
    assert [one["rel_gap"] for one in json.loads(call(*words, "--format", "json").out)] == [
        single[0], single[2], single[1],
    ]  # fmt: skip
    (tmp_path / "models" / "bad").write_text("no model")
    done = call(*words)
    assert done.code == 1 and "bad holds no model that can be read" in done.err and len(done.out.splitlines()) == 4
    assert call("svm", data, "--c", 1, "-o", "a run", "-q").code == 0
    done = call(*words[:4], "a run", "--c", 1)
    assert done.code == 2 and not done.out and "screenpath export 'a run' --step K -o model.json" in done.err
    assert call("export", "a run", "--step", 0, "-o", "model.json").code == 0
    assert call(*words[:4], "model.json", "--intercept", "free").code == 0
    done = call(*words, "-o", "proof")
    assert done.code == 2 and "--out takes the certificate of one model" in done.err


def test_data_of_standard_input(data, call, monkeypatch, tmp_path):
    """They are read once: there is a gap, and no certificate."""
    (tmp_path / "m").write_text('{"weights": [1, 2, 3]}')
    for words, code, said in (((), 0, ""), (("-o", "proof"), 2, "standard input is gone")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(libsvm_text(X, Y).encode())))
        done = call("certify", "svm", "-", "--weights", "m", "--c", 1, *words)
        assert done.code == code and said in done.err


def test_labels_and_one_class_against_the_rest(tmp_path, monkeypatch, call):
    """The sign of the weights follows the labels; of several classes --positive chooses the row."""
    monkeypatch.chdir(tmp_path)
    y = np.where(Y > 0, "yes", "no")
    for labels, sign in ((["yes", "no"], 1.0), (["no", "yes"], -1.0)):
        (tmp_path / "m.json").write_text(json.dumps({"weights": [0.4, 0.1, -0.2], "labels": labels}))
        one = screenpath.certify("m.json", X, y, model="svm", c=1.0)
        assert one.value == pytest.approx(hinge(sign * np.array([0.4, 0.1, -0.2]), 0.0), rel=1e-12)
    (tmp_path / "data").write_text(libsvm_text(X, np.where(Y > 0, 3, np.arange(60) // 2 % 2)))
    rows = "1 0.4 2\n1 0.1 2\n1 -0.2 2\n"
    head = "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 3\nlabel 0 3 1\nnr_feature 3\nbias -1\nw\n"
    (tmp_path / "m.model").write_text(head + rows)
    words = ("certify", "svm", "data", "--weights", "m.model", "--c", 1)
    found = json.loads(call(*words, "--positive", 3, "--format", "json").out)
    assert found["value"] == pytest.approx(hinge(np.array([0.4, 0.1, -0.2]), 0.0), rel=1e-12)
    done = call(*words)  # three labels
    assert done.code == 1 and "--positive LABEL" in done.err and "--one-vs" not in done.err
    done = call("certify", "sparse-svm", *words[2:4], "m.json", "--alpha", 0.1, "--beta", 0.1)
    assert done.code == 2 and "more than two labels" in done.err
    words = ("certify", "sparse-svm", "data", "--weights", "m.json", "--positive", 3, "--alpha", 0.1, "--beta", 0.02)
    (tmp_path / "m.json").write_text(json.dumps({"weights": [0.4, 0.1, -0.2]}))
    for more in ((), ("--smoothing", 0), ("--loss", "squared-hinge"), ("--intercept", "free"), ("--bias", 1)):
        found = json.loads(call(*words, *more, "--format", "json").out)
        t, w = 1.0 - Y * (X @ [0.4, 0.1, -0.2]), np.array([0.4, 0.1, -0.2])
        width = 0.0 if "--smoothing" in more else 0.5
        loss = np.where(t > 0.5, t - 0.25, np.maximum(t, 0.0) ** 2) if width else np.maximum(t, 0.0)
        loss = 0.5 * np.maximum(t, 0.0) ** 2 if "--loss" in more else loss
        value = loss.mean() + 0.05 * w @ w + 0.02 * np.abs(w).sum()
        assert found["value"] == pytest.approx(value, rel=1e-9), more
        assert found["accurate"] and 0.0 <= found["rel_gap"] <= 1.0


def test_files_with_other_bytes_are_read_or_refused(data, tmp_path):
    """No file makes anything but a result or an error in words."""
    texts = [
        b'{"weights": [1, 2, 3], "intercept": 0.5, "labels": [1, -1]}', b"feature,value\n0,0.5\n1,0.25\n3,-1e5\n",
        b"solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias 1\nw\n0.5\n0.2\n-1.5\n0.1\n",
        b"svm_type c_svc\nkernel_type linear\nnr_class 2\nrho 0.25\nlabel 1 -1\nSV\n0.5 1:1 3:2 \n-0.5 1:-1 2:3 \n",
    ]  # fmt: skip
    tokens = [b"nan", b"1e400", b"-1", b"", b"[]", b"{}", b"null", b'"x"', b"9" * 30, b"\n", b",", b":", b" ", b"\xff"]
    rng, read = np.random.default_rng(0), 0
    for _ in range(wide(400, 4000)):
        text = bytearray(texts[rng.integers(len(texts))])
        for at in rng.integers(len(text), size=rng.integers(1, 4)).tolist():
            text[at : at + int(rng.integers(3))] = tokens[rng.integers(len(tokens))]
        (tmp_path / "m").write_bytes(text)
        try:
            found = screenpath.certify("m", X, Y, model="svm", c=1.0, intercept="free", tol=1e-3)
        except screenpath.errors.ScreenpathError:
            continue
        read += 1
        assert found.gap >= 0.0 and found.value >= found.lowest
    assert read > 20


def test_weights_and_names(tmp_path, monkeypatch, call):
    """Sample weights are part of the problem; features of a table are found by name."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{a!r},{b!r},{c!r},{int(y)}\n" for (a, b, c), y in zip(X.tolist(), Y, strict=True)]
    (tmp_path / "data.csv").write_text("a,b,c,label\n" + "".join(lines))
    (tmp_path / "w.csv").write_text("feature,value\nc,-0.2\na,0.4\n")
    (tmp_path / "weights").write_text("".join(f"{1 + k % 2}\n" for k in range(60)))
    words = ("certify", "svm", "data.csv", "--weights", "w.csv", "--c", 1, "--format", "json")
    w, s = np.array([0.4, 0.0, -0.2]), 1.0 + np.arange(60) % 2
    assert json.loads(call(*words).out)["value"] == pytest.approx(hinge(w, 0.0), rel=1e-12)
    found = json.loads(call(*words, "--sample-weight", "weights", "-o", "proof").out)
    assert found["value"] == pytest.approx(0.5 * w @ w + s @ np.maximum(0.0, 1.0 - Y * (X @ w)), rel=1e-12)
    assert call("verify", "proof", "data.csv").code == 0
    (tmp_path / "w.csv").write_text("feature,value\nz,-0.2\n")
    done = call(*words)
    assert done.code == 1 and "a weight of a feature that the data lack" in done.err


@pytest.mark.parametrize("content, words, code, said", [
    ('{"weights": [1, 2, 3]}', ("svm",), 2, "add --c VALUE"),
    ('{"weights": [1, 2, 3], "intercept": 1}', ("svm", "--c", 1), 2, "tell its kind: --intercept free, or --bias B"),
    ('{"weights": [1, 2, 3, 4]}', ("svm", "--c", 1), 1, "a feature that the data lack"),
    ('{"weights": [1, 2, 3]}', ("sparse-svm",), 2, "`alpha` and `beta`"),
    ('{"weights": [1, 2, 3], "labels": [7, 8]}', ("svm", "--c", 1), 1, "has the labels 7, 8, the data 1, -1"),
    ('{"weights": ["a"]}', ("svm", "--c", 1), 1, "holds no model that can be read"),
    ('{"weights": [1, NaN, 3]}', ("svm", "--c", 1), 1, "weights that are not finite"),
    ('{"weights": [1, 1e999, 3]}', ("svm", "--c", 1), 1, "weights that are not finite"),
    ("", ("svm", "--c", 1), 1, "holds no model that can be read"),
    ("feature,value\n1,x\n", ("svm", "--c", 1), 1, "holds no model that can be read"),
    ("1 1:2\n1 1:3\n", ("svm", "--c", 1), 1, "holds no model that can be read (it lacks 'feature')"),
    ("solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias -1\nw\n1\n2\n3\n", ("svm", "--c", 1), 1,
     "L2R_LR is no problem of screenpath's"),
    ("solver_type MCSVM_CS\nw\n1\n", ("svm", "--c", 1), 1, "MCSVM_CS is no problem"),
    ("solver_type L2R_L1LOSS_SVR_DUAL\nnr_class 2\nnr_feature 3\nbias -1\nw\n1\n2\n3\n", ("svm", "--c", 1), 2,
     "is of the kind L2R_L1LOSS_SVR_DUAL, not of svm"),
    ("solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nnr_feature 4\nbias -1\nw\n1\n2\n3\n", ("svm", "--c", 1), 1,
     "another number of weights than it says"),
    ('{"weights": [100, 200, 300]}', ("svm", "--c", 1, "-o", "data/x"), 1, "data"),
])  # fmt: skip
def test_errors_are_words(content, words, code, said, data, call, tmp_path):
    (tmp_path / "m").write_text(content)
    name, *options = words
    done = call("certify", name, data, "--weights", "m", *options)
    assert done.code == code and said.replace("`alpha` and `beta`", "--alpha and --beta") in done.err, done.err
    assert "Traceback" not in done.err
    assert call("certify", "svm", data, "--weights", "nowhere", "--c", 1).code == 1


def test_labels_that_are_written_in_another_way(data, call, tmp_path):
    """The hint works when done: with the labels of the data in its line, the file is certified."""
    model = "solver_type L2R_L1LOSS_SVC_DUAL\nlabel {}\nnr_feature 3\nbias -1\nw\n{}\n{}\n{}\n"
    for labels, weights, code in (("7 8", "1", 1), ("7 8 9", "1 2 3", 1), ("1 -1", "1", 0)):
        (tmp_path / "m").write_text(model.format(labels, *[weights] * 3))
        done, told = call("certify", "svm", data, "--weights", "m", "--c", 1), ", ".join(labels.split())
        assert done.code == code and (f"m has the labels {told}, the data 1, -1\n  name the data" in done.err) == code


@pytest.mark.parametrize("name, share", [("L1R_L2LOSS_SVC", ("alpha", "beta")), ("L2R_L2LOSS_SVC", ("beta", "alpha"))])
def test_a_squared_hinge_of_alpha_and_beta_is_that_of_its_c(name, share, data, call, tmp_path):
    (tmp_path / "m").write_text(f"solver_type {name}\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias -1\nw\n1\n0.2\n-0.1\n")
    words, times = ("certify", "sparse-svm", data, "--weights", "m", "--format", "json"), 2 * 0.5 * Y.size
    one, done = json.loads(call(*words, "--c", 0.5).out), call(*words, f"--{share[0]}", 0, f"--{share[1]}", 1 / times)
    other = json.loads(done.out)
    assert times * other["value"] == pytest.approx(one["value"], rel=1e-9) and "alpha = " in other["objective"]


def test_two_penalties_or_losses_of_one_model_are_wrong_usage(data, call, tmp_path):
    head = "solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias -1\n"
    (tmp_path / "m").write_text(f"{head}w\n1\n0.2\n-0.1\n")
    (tmp_path / "own.csv").write_text("feature,value\n1,1\n2,0.2\n")
    penalty, both = ("--alpha", "0.1", "--beta", "0"), "--c tells the penalty, --alpha and --beta too\n  leave out one"
    for file, words, said in (
        ("m", ("--c", 1, *penalty), both),
        ("own.csv", ("--c", 1, *penalty), both),
        ("m", ("--c", 1, *penalty[:2]), both),
        ("m", ("--c", 1, "--loss", "hinge"), "of the kind L2R_L2LOSS_SVC, with a squared hinge\n  leave out --loss"),
    ):  # fmt: skip
        done = call("certify", "sparse-svm", data, "--weights", file, *words)
        assert done.code == 2 and said in done.err, done.err
    assert call("certify", "sparse-svm", data, "--weights", "m", "--c", 1, "--loss", "squared-hinge").code == 0
    assert "add --alpha and --beta" in call("certify", "sparse-svm", data, "--weights", "m", *penalty[:2]).err


def test_no_weights_are_told(data, call, tmp_path):
    (tmp_path / "models").mkdir()
    for words, said in (([], "no weights to certify\n"), (["--weights", "models"], "models holds no model\n")):
        done = call("certify", "svm", data, "--c", 1, *words)
        assert done.code == 2 and said in done.err and "--weights FILE" in done.err


# -- estimators -------------------------------------------------------------------------------------------------------


def estimators():
    """Yield makers of estimators, and the objective each states; only of libraries that are there."""
    svm = pytest.importorskip("sklearn.svm", reason="needs scikit-learn (extra: sklearn)")
    square = lambda w, b, C: 0.5 * (w @ w + b * b) + C * (np.maximum(0.0, 1.0 - Y * (X @ w + b)) ** 2).sum()  # noqa: E731
    one = lambda w, b, C: np.abs(w).sum() + abs(b) + C * (np.maximum(0.0, 1.0 - Y * (X @ w + b)) ** 2).sum()  # noqa: E731
    # The order that liblinear visits rows in is drawn: some orders need more than its 1,000 passes.
    how = {"random_state": 0, "max_iter": 10**6}
    yield svm.LinearSVC(C=0.5, **how), lambda w, b: square(w, b, 0.5)
    yield svm.LinearSVC(C=0.5, penalty="l1", dual=False, **how), lambda w, b: one(w, b, 0.5)
    yield svm.LinearSVC(loss="hinge", intercept_scaling=2.0, **how), lambda w, b: hinge(w, b, bias=2.0)
    yield svm.LinearSVC(loss="hinge", fit_intercept=False, **how), lambda w, b: hinge(w, b)
    yield svm.SVC(kernel="linear", C=0.5), lambda w, b: hinge(w, b, 0.5)


def test_estimators_of_scikit_learn():
    for model, value in estimators():
        model.fit(X, Y)
        one = screenpath.certify(model, X, Y)
        assert one.value == pytest.approx(value(model.coef_[0], np.ravel(model.intercept_)[0]), rel=1e-9), model
        assert 0.0 <= one.rel_gap < 0.01 and one.name == type(model).__name__, model


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_kernel_models_of_scikit_learn(kernel):
    svm = pytest.importorskip("sklearn.svm", reason="needs scikit-learn (extra: sklearn)")
    from sklearn.metrics.pairwise import pairwise_kernels

    model = svm.SVC(kernel=kernel, C=2.0, tol=0.1).fit(X, Y)
    more = {"degree": 3, "coef0": 0.0} if kernel == "poly" else {}
    K = pairwise_kernels(X, metric=kernel, gamma=model._gamma, **more)
    a = np.zeros(60)
    a[model.support_] = model.dual_coef_[0]
    value = 0.5 * a @ K @ a + 2.0 * np.maximum(0.0, 1.0 - Y * (K @ a + model.intercept_[0])).sum()
    one = screenpath.certify(model, X, Y)
    accurate = svm.SVC(kernel=kernel, C=2.0, tol=1e-9).fit(X, Y)
    b = np.zeros(60)
    b[accurate.support_] = accurate.dual_coef_[0]
    dual = np.abs(b).sum() - 0.5 * b @ K @ b
    assert one.value == pytest.approx(value, rel=1e-9) and one.gap == pytest.approx(value - dual, rel=1e-4)
    apart = np.sqrt((a - b) @ K @ (a - b))
    assert one.nearest <= apart * 1.001 + 1e-4 and apart <= one.farthest * 1.001 + 1e-4
    assert one.same + one.other + one.open == 60


def test_regressions_of_scikit_learn():
    svm = pytest.importorskip("sklearn.svm", reason="needs scikit-learn (extra: sklearn)")
    y = X @ [1.0, -2.0, 0.5] + Y
    tube = lambda w, b: np.maximum(0.0, np.abs(y - X @ w - b) - 0.2).sum()  # noqa: E731
    one, model = None, svm.SVR(kernel="linear", epsilon=0.2).fit(X, y)
    one = screenpath.certify(model, X, y)
    w, b = model.coef_[0], model.intercept_[0]
    assert one.value == pytest.approx(0.5 * w @ w + tube(w, b), rel=1e-9) and one.change < 0.1
    model = svm.LinearSVR(epsilon=0.2, C=3.0, max_iter=10**6, random_state=0).fit(X, y)
    w, b = model.coef_, float(model.intercept_[0])
    one = screenpath.certify(model, X, y)
    assert one.value == pytest.approx(0.5 * (w @ w + b * b) + 3.0 * tube(w, b), rel=1e-9)
    with pytest.raises(screenpath.errors.UsageError, match="the kernel sigmoid solves .* not positive definite"):
        of_estimator(svm.SVR(kernel="sigmoid").fit(X, y))
    linear = pytest.importorskip("sklearn.linear_model")
    with pytest.raises(screenpath.errors.UsageError, match="penalty of"):
        of_estimator(linear.QuantileRegressor().fit(X, y))


def test_rehline_and_skglm():
    rehline = pytest.importorskip("rehline", reason="needs rehline")
    model = rehline.plq_Ridge_Classifier(loss={"name": "svm"}, C=0.5).fit(X, Y)
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    assert screenpath.certify(model, X, Y).value == pytest.approx(hinge(w, b, 0.5, bias=1.0), rel=1e-9)
    skglm = pytest.importorskip("skglm", reason="needs skglm")
    model = skglm.LinearSVC(C=0.5, max_iter=2).fit(X, Y)
    assert screenpath.certify(model, X, Y).value == pytest.approx(hinge(np.ravel(model.coef_), 0.0, 0.5), rel=1e-9)


class Fitted:
    """An estimator that nobody knows."""

    coef_, intercept_ = np.array([0.4, 0.1, -0.2]), 0.5


def test_estimators_that_do_not_tell_their_problem():
    with pytest.raises(screenpath.errors.UsageError, match="does not tell its problem"):
        screenpath.certify(Fitted(), X, Y)
    with pytest.raises(screenpath.errors.UsageError, match="HuberRegressor is not covered"):
        screenpath.certify(type("HuberRegressor", (Fitted,), {})(), X, Y)
    one = screenpath.certify(Fitted(), X, Y, model="svm", c=1.0, intercept="free")
    assert one.value == pytest.approx(hinge(Fitted.coef_, 0.5), rel=1e-12)
    pair = screenpath.certify((Fitted.coef_, 0.5), X, Y, model="svm", c=1.0, intercept="free")
    assert pair.value == one.value and pickle.loads(pickle.dumps(one)).record() == one.record()
    with pytest.raises(screenpath.errors.UsageError, match="has no weights"):
        screenpath.certify(object(), X, Y, model="svm", c=1.0)
    with pytest.raises(TypeError, match="no option 'C'"):
        screenpath.certify(Fitted(), X, Y, model="svm", C=1.0)


def test_weights_of_samples_as_an_array():
    weights = 1.0 + np.arange(60) % 3
    w, b = Fitted.coef_, Fitted.intercept_
    value = 0.5 * w @ w + weights @ np.maximum(0.0, 1.0 - Y * (X @ w + b))
    for given in (weights, weights.tolist()):
        one = screenpath.certify((w, b), X, Y, model="svm", c=1.0, intercept="free", sample_weight=given)
        assert one.value == pytest.approx(value, rel=1e-12)
    rows = screenpath.certify((w[None, :], [b]), X, Y, model="svm", c=1.0, intercept="free")
    assert rows.value == pytest.approx(hinge(w, b), rel=1e-12)


def test_what_cannot_be_certified_is_said_in_words(tmp_path):
    how = {"model": "svm", "c": 1.0, "intercept": "free"}
    with pytest.raises(screenpath.errors.UsageError, match="`out` is a proof .* the data are arrays") as found:
        screenpath.certify(Fitted(), X, Y, out=tmp_path / "proof", **how)
    assert "write_libsvm(FILE, X, y)" in found.value.hint
    screenpath.write_libsvm(tmp_path / "data", X, Y)
    assert screenpath.certify(Fitted(), tmp_path / "data", out=tmp_path / "proof", **how).folder is not None
    for pair in ((Fitted.coef_,), ("abc", 0.0), (Fitted.coef_, 0.0, 1.0), (Fitted.coef_, [0.0, 1.0])):
        with pytest.raises(screenpath.errors.UsageError, match=r"a tuple is \(weights, intercept\)"):
            screenpath.certify(pair, X, Y, **how)
    svm = pytest.importorskip("sklearn.svm", reason="needs scikit-learn (extra: sklearn)")
    with pytest.raises(screenpath.errors.UsageError, match="SVC is not fitted"):
        screenpath.certify(svm.SVC(), X, Y)


def test_columns_with_gaps_and_weights(tmp_path, monkeypatch, call):
    """The options of a table make the same problem as those of a path: a column of weights, gaps filled in."""
    monkeypatch.chdir(tmp_path)
    gaps = np.where(np.arange(60) == 7, np.nan, X[:, 0])
    s, w = 1.0 + np.arange(60) % 3, np.array([0.4, 0.1, -0.2])
    cells = zip(gaps.tolist(), *X[:, 1:].T.tolist(), s.tolist(), Y.astype(int).tolist(), strict=True)
    lines = [",".join("" if v != v else repr(v) for v in row) + "\n" for row in cells]
    (tmp_path / "data.csv").write_text("a,b,c,s,label\n" + "".join(lines))
    (tmp_path / "m").write_text(json.dumps({"weights": w.tolist()}))
    words = ("certify", "svm", "data.csv", "--weights", "m", "--c", 1, "--weight-column", "s")
    assert call(*words).code == 1
    filled = np.column_stack([np.where(np.isnan(gaps), 0.0, gaps), X[:, 1:]])
    value = 0.5 * w @ w + s @ np.maximum(0.0, 1.0 - Y * (filled @ w))
    found = json.loads(call(*words, "--missing", "zero", "--format", "json").out)
    assert found["value"] == pytest.approx(value, rel=1e-12)
