"""Files with a huge index and few values: nothing has an entry for every feature, and every number is that of the
file whose features are numbered without gaps."""

import json
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import screenpath
from screenpath.data.files.libsvm import read_libsvm
from screenpath.numbers.csr import ORDINARY, is_wide, on_columns
from screenpath.store.open import open_run
from tests.cli.conftest import call, without_times  # noqa: F401 (a fixture)
from tests.run_folders import reseal

NUMBERS = np.array([1, 2, 5, 1000, 50_000_000, 100_000_000])  # of the features that occur
VECTOR = 8 * int(NUMBERS[-1])  # bytes of one number a feature


def texts(n: int = 24, seed: int = 0) -> tuple[str, str, str]:
    """Return a wide file, the same with features 1 to 6, and a wide one that also has features between these."""
    rng, lines = np.random.default_rng(seed), ([], [], [])
    for i in range(n):
        stored = np.flatnonzero(rng.random(NUMBERS.size) < 0.7)
        values = np.round(rng.normal(size=stored.size) + (i % 2), 3).tolist()
        wide = [f"{NUMBERS[j]}:{v}" for j, v in zip(stored, values, strict=True)]
        more = [*(cell for cell in wide if cell[:2] in ("1:", "2:")), "3:7", "4:-1"]
        more += [cell for cell in wide if cell[:2] not in ("1:", "2:")] + ["100000001:3"]
        narrow = [f"{j + 1}:{v}" for j, v in zip(stored, values, strict=True)]
        for file, cells in zip(lines, (wide, narrow, more), strict=True):
            file.append(" ".join([str(i % 2), *cells]))
    return tuple("\n".join(file) + "\n" for file in lines)


@pytest.fixture
def files(tmp_path, call):  # noqa: F811 (the current folder is tmp_path)
    for name, text in zip(("wide", "narrow", "unseen"), texts(), strict=True):
        (tmp_path / name).write_text(text)
    return tmp_path


MODELS = {
    "svm": ("svm", "--grid", "4", "--bias", "1", "--certificate"),
    "svm standard": ("svm", "--grid", "4", "--scale", "standard", "--storage", "dense", "--certificate"),
    "svm npz": ("svm", "--grid", "4", "--scale", "maxabs", "--storage", "sparse", "--coefficients", "npz"),
    "svm l2": ("svm", "--grid", "4", "--scale", "l2", "--certificate"), "lad": ("lad", "--grid", "4", "--certificate"),
    "svr": ("svr", "--epsilon", "0.1", "--grid", "4", "--certificate"),
    "l1svm": ("l1svm", "--grid", "4", "--scale", "maxabs", "--certificate"),
    "sparse-svm": ("sparse-svm", "--betas", "2", "--alphas", "3", "--scale", "maxabs", "--certificate"),
    "kernel": ("svm", "--kernel", "rbf", "--gamma", "0.5", "--scale", "maxabs", "--grid", "4", "--certificate"),
    "cv": ("cv", "svm", "--grid", "4", "--folds", "3"),
}  # fmt: skip


def words(command, data, *more) -> tuple:
    """Return a command with its data behind the model's name."""
    place = 2 if command[0] == "cv" else 1
    return (*command[:place], data, *command[place:], "--quiet", *more)


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_those_of_the_file_without_gaps(call, files, name):  # noqa: F811
    for data in ("wide", "narrow"):
        assert call(*words(MODELS[name], data, "--test", data, "-o", f"run-{data}")).code == 0
    steps = [without_times(files / f"run-{data}" / "steps.csv") for data in ("wide", "narrow")]
    assert steps[0] == steps[1]
    wide, narrow = open_run("run-wide"), open_run("run-narrow")
    assert (wide.matrix != narrow.matrix).nnz == 0 and wide.n_features == NUMBERS[-1]
    assert wide.kernel or (wide.numbers.tolist() == NUMBERS.tolist() and wide.n_columns == 6)
    for data in ("wide", "unseen"):  # features that the training data lacks are ignored
        found = call("predict", "run-wide", data, "--step", "2")
        assert (found.code, found.out) == (0, call("predict", "run-narrow", "narrow", "--step", "2").out)
    if "--certificate" in MODELS[name]:
        found = call("verify", "run-wide")
        assert (found.code, found.err) == (0, "")
        assert found.out.split(":")[1] == call("verify", "run-narrow").out.split(":")[1]


def test_nothing_has_an_entry_for_every_feature(call, files):  # noqa: F811
    """Memory of the whole command, and of those that read its run; the kernels are there from the first time."""
    for round in range(2):
        for name in ("svm", "l1svm", "sparse-svm", "svm npz", "cv"):
            if round:
                tracemalloc.start()
            assert call(*words(MODELS[name], "wide", "--test", "unseen", "-o", "run", "--force")).code == 0
            for reader in (
                ("predict", "run", "unseen", "--step", "1"), ("export", "run", "--step", "1", "--to", "npz"),
                ("export", "run", "--step", "1", "--to", "json", "-o", "-"), ("plot", "run", "--terminal"),
                ("plot", "run", "--terminal", "--kind", "coefficients"),
                *([("verify", "run")] if "--certificate" in MODELS[name] else []),
            ):  # fmt: skip
                more = ("-o", "model.npz", "--force") if "npz" in reader else ()
                assert call(*reader, *more).code == 0
            if round:
                _, peak = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                assert peak < VECTOR / 10, name


def test_numbers_of_the_file_are_in_all_that_is_written(call, files):  # noqa: F811
    assert call(*words(MODELS["svm"], "wide", "-o", "run")).code == 0
    lines = (files / "run" / "coefficients.csv").read_text().splitlines()[1:]
    assert {int(line.split(",")[1]) for line in lines} == {0, *NUMBERS.tolist()}
    record = json.loads((files / "run" / "run.json").read_text())
    assert record["preparation"]["features"] == NUMBERS.tolist() and record["data"]["n_features"] == NUMBERS[-1]
    model = json.loads(call("export", "run", "--step", "3", "--to", "json", "-o", "-").out)
    assert model["weights"][0]["features"] == NUMBERS.tolist() and model["n_features"] == NUMBERS[-1]
    assert call("export", "run", "--step", "3", "--to", "npz", "-o", "m.npz").code == 0
    with np.load("m.npz") as stored:
        assert stored["features"].tolist() == NUMBERS.tolist() and stored["weights"].shape == (1, 6)
    picture = call("plot", "run", "--terminal", "--kind", "coefficients").out
    assert "100000000" in picture and "50000000" in picture
    assert call("report", "run", "-o", "run.html").code == 0


def test_a_model_of_liblinear_has_a_line_for_every_feature(call, tmp_path):  # noqa: F811
    last = ORDINARY + 200
    (tmp_path / "d").write_text(f"1 1:1 {last}:2\n-1 3:1\n")
    assert call("svm", "d", "--grid", "2", "--quiet", "-o", "run", "--bias", "1").code == 0
    assert open_run("run").n_columns == 3
    (tmp_path / "more").write_text(f"0 {last + 5}:1\n")
    assert call("export", "run", "--step", "1", "--to", "liblinear", "-o", "model").code == 0
    head, _, body = (tmp_path / "model").read_text().partition("w\n")
    rows, weights = body.splitlines(), open_run("run").coefficients(open_run("run").steps[1])
    assert f"nr_feature {last}" in head and len(rows) == last + 1
    assert [float(rows[j]) for j in (0, 2, last - 1, last)] == [*weights[0][0], *weights[1]]
    assert {rows[j] for j in range(3, last - 1)} == {"0.0 "}


@pytest.mark.parametrize("kind", ["liblinear", "sklearn"])
def test_formats_with_a_place_for_every_feature_are_refused_where_these_are_too_many(call, tmp_path, kind):  # noqa: F811
    """They would have taken 17 GB, or as many lines."""
    (tmp_path / "d").write_text(f"1 1:1 {2**31 - 2}:2\n-1 3:1\n")
    assert call("svm", "d", "--grid", "2", "--quiet", "-o", "run").code == 0
    found = call("export", "run", "--step", "1", "--to", kind, "-o", "model")
    assert found.code == 2 and "features up to 2,147,483,646" in found.err and "--to json" in found.err
    assert not (tmp_path / "model").exists()
    for scale, code in (("none", 0), ("maxabs", 2)):  # of a kernel, scales alone are of every feature
        assert call("svm", "d", "--grid", "2", "--kernel", "linear", "--scale", scale, "-q", "-o", scale).code == 0
        found = call("export", scale, "--step", "1", "--to", "sklearn", "-o", f"{scale}.model")
        assert found.code == code and ("--to onnx" in found.err) == (code == 2)


def test_shards_of_a_wide_file(call, files):  # noqa: F811
    assert call("convert", "wide", "shards", "--quiet").code == 0
    for data in ("wide", "shards"):
        assert call(*words(MODELS["svm npz"], data, "-o", f"run-{data}")).code == 0
    matrices = [open_run(f"run-{data}").matrix for data in ("wide", "shards")]
    assert (matrices[0] != matrices[1]).nnz == 0 and matrices[0].shape == (4, 7)
    for folder in ("run-wide", "run-shards"):
        assert (
            call("predict", folder, "shards", "--step", "1").out == call("predict", folder, "wide", "--step", "1").out
        )


def test_a_stopped_run_goes_on(call, files, monkeypatch):  # noqa: F811
    from screenpath.store.folder import RunFolder

    command = words(MODELS["svm"], "wide")
    assert call(*command, "-o", "whole").code == 0
    monkeypatch.setattr(RunFolder, "due", lambda folder: True)
    add = RunFolder.add

    def stopping(folder, row, coefficients=None):
        if row["step"] == 2:
            raise OSError(28, "No space left on device")
        add(folder, row, coefficients)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "add", stopping)
        assert call(*command, "-o", "stopped").code == 1
    assert call(*command, "-o", "stopped", "--resume").code == 0
    for name in ("coefficients.csv", "certificate.bin"):
        assert (files / "stopped" / name).read_bytes() == (files / "whole" / name).read_bytes()


def test_gamma_counts_all_features(call, files):  # noqa: F811
    for command in (("svm", "wide"), ("cv", "svm", "wide", "--folds", "2")):
        options = ("--kernel", "rbf", "--gamma", "1e8/d", "--grid", "2", "--quiet", "--force", "-o", "run")
        assert call(*command, *options).code == 0
        assert json.loads((files / "run" / "run.json").read_text())["kernel"]["gamma"] == 1.0


@pytest.mark.parametrize("features", [[], [1, 2], [1, 2, 5, 5, 9, 10], [5, 2, 1, 6, 7, 8], [1, 2, 3, 4, 5, 10**9], "x"])
def test_crafted_numbers_of_features(call, files, features):  # noqa: F811
    assert call(*words(MODELS["svm"], "wide", "-o", "run")).code == 0
    reseal(files / "run", lambda record: record["preparation"].update(features=features))
    found = call("predict", "run", "wide", "--step", "1")
    assert found.code == 1 and found.err.startswith("error: ") and "damaged" in found.err


def test_ordinary_data_is_as_it_was(call, files):  # noqa: F811
    data = read_libsvm(files / "narrow")
    assert data.narrowed() is data and data.columns is None and data.width == data.d == 6
    assert not is_wide(ORDINARY, 0) and not is_wide(ORDINARY + 400, 100) and is_wide(ORDINARY + 401, 100)
    assert call(*words(MODELS["svm"], "narrow", "-o", "run")).code == 0
    assert "features" not in json.loads((files / "run" / "run.json").read_text())["preparation"]


def test_narrowed_data_has_the_same_fingerprint(files):
    data = read_libsvm(files / "wide")
    narrow = data.narrowed()
    assert narrow.X.shape == (24, 6) and narrow.width == data.d == NUMBERS[-1]
    assert narrow.fingerprint() == data.fingerprint() != read_libsvm(files / "narrow").fingerprint()
    assert (narrow.X != read_libsvm(files / "narrow").X).nnz == 0
    empty = read_libsvm(files / "wide", n_features=10**9)
    empty = type(empty)(sp.csr_array((3, 10**9)), np.ones(3), "nothing").narrowed()
    assert empty.X.shape == (3, 1) and empty.X.nnz == 0


def test_columns_that_rows_lack_are_left_out():
    X = sp.csr_array(np.array([[1.0, 0.0, 2.0, 3.0], [0.0, 0.0, 4.0, 0.0], [0.0, 5.0, 0.0, 6.0]]))
    for columns in ([0, 3], [1], [0, 1, 2, 3], [2, 7]):
        expected = np.hstack([X.toarray(), np.zeros((3, 4))])[:, columns]
        assert np.array_equal(on_columns(X, np.array(columns)).toarray(), expected)


def test_python_functions(files):
    wide, narrow = read_libsvm(files / "wide"), read_libsvm(files / "narrow")
    columns, few = NUMBERS - 1, {"grid": 3, "bias": 1.0}
    given = (
        (screenpath.svm_path, few), (screenpath.l1_svm_path, {"grid": 3}),
        (screenpath.sparse_svm_path, {"betas": 2, "alphas": 2}),
    )  # fmt: skip
    for function, options in given:
        paths = [function(data.X, data.y, **options) for data in (wide, narrow)]
        found, expected = (path.coefficients for path in paths)
        assert found.shape == (len(paths[1].steps), NUMBERS[-1]) and isinstance(found, sp.csr_array)
        assert np.array_equal(found[:, columns].toarray(), expected) and found.nnz <= expected.size
        assert np.array_equal(paths[0].intercepts, paths[1].intercepts)
        assert paths[0].preparation.columns.tolist() == columns.tolist()
    several = [screenpath.sparse_svm_path(d.X, np.arange(24) % 3, betas=1, alphas=2) for d in (wide, narrow)]
    for found, expected in zip(several[0].coefficients, several[1].coefficients, strict=True):
        assert found.shape == (3, NUMBERS[-1]) and np.array_equal(found[:, columns].toarray(), expected)
    kernels = [screenpath.kernel_svm_path(d.X, d.y, grid=2, gamma=0.5) for d in (wide, narrow)]
    unseen = read_libsvm(files / "unseen").X
    assert np.array_equal(kernels[0].decision_function(unseen), kernels[1].decision_function(narrow.X))


def test_stored_paths(files):
    """What is read from a run folder has the features of the file, whatever it is that has the weights."""
    columns, wide = NUMBERS - 1, read_libsvm(files / "wide")
    several = screenpath.sparse_svm_path(wide.X, np.arange(24) % 3, betas=1, alphas=2)
    kernel = screenpath.kernel_svm_path(wide.X, wide.y, grid=2, gamma=0.5)
    for path, name in ((several, "several"), (kernel, "kernel")):
        path.save(files / name)
    stored = screenpath.load_run(files / "several").coefficients
    for found, expected in zip(stored, several.coefficients, strict=True):
        assert found.shape == (3, NUMBERS[-1])
        assert np.array_equal(found[:, columns].toarray(), expected[:, columns].toarray())
    assert np.array_equal(screenpath.load_run(files / "kernel").coefficients, kernel.dual_coefficients)
