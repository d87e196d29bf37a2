"""Kernels that are given: LIBSVM's files of values, matrices, functions; what is refused where values are all."""

import json
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score

import screenpath
from screenpath.errors import DataError, UsageError
from screenpath.rows.given_kernel import GivenBlocks, ridge_of
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.sklearn import SVMClassifier, SVMClassifierCV, SVMRegressor
from tests.cli.conftest import ROOT, read_csv

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 3))
Y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.3 * RNG.normal(size=60) > 1.0, 1.0, -1.0)
NEW = RNG.normal(size=(9, 3))
GRID = ("--grid", 3, "--tol", "1e-8", "--quiet")


def kernel(A, B):
    return rbf_kernel(A, B, gamma=0.5)


def written(name: str, values, y, numbered=True) -> None:
    lines = []
    for i, (row, target) in enumerate(zip(values.tolist(), y, strict=True), 1):
        cells = [f"0:{i}"] * numbered + [f"{j}:{value!r}" for j, value in enumerate(row, 1)]
        lines.append(f"{target:g} {' '.join(cells)}\n")
    Path(name).write_text("".join(lines))


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written("values", kernel(X, X), Y)
    written("new", kernel(NEW, X), np.ones(9))
    written("rows", X, Y, False)
    written("new rows", NEW, np.ones(9), False)


@pytest.mark.parametrize("intercept", [("--intercept", "free"), ("--bias", "2")])
def test_a_file_of_values_is_the_kernel_of_the_rows(call, intercept):
    assert call("svm", "values", "--kernel", "precomputed", *intercept, *GRID, "--test", "new", "-o", "a").code == 0
    assert call("svm", "rows", "--kernel", "rbf", "--gamma", 0.5, *intercept, *GRID, "-o", "b").code == 0
    for one, other in zip(read_csv("a/steps.csv"), read_csv("b/steps.csv"), strict=True):
        assert one["status"] == "certified"
        assert float(one["primal"]) == pytest.approx(float(other["primal"]), rel=1e-7)
    a, b = (
        [float(line.split(",")[-1]) for line in call("predict", run, new, "--step", 2, "--decision").out.split()[1:]]
        for run, new in (("a", "new"), ("b", "new rows"))
    )
    np.testing.assert_allclose(a, b, atol=2e-3)
    used = {int(row["sample"]) for row in read_csv("a/coefficients.csv") if row["step"] == "2"}
    lines = Path("new").read_text().splitlines()
    kept = [" ".join(c for c in line.split() if ":" not in c or int(c.split(":")[0]) in used | {0}) for line in lines]
    Path("few").write_text("\n".join(kept) + "\n")
    assert len(used) < 60 and Path("few").stat().st_size < Path("new").stat().st_size
    found = call("predict", "a", "few", "--step", 2, "--decision").out
    assert [float(line.split(",")[-1]) for line in found.split()[1:]] == pytest.approx(a)
    left = [call("loo", run, "--step", 2, "-o", f"{run}.csv").code for run in ("a", "b")]
    assert left == [0, 0]
    same = [one["predicted"] == two["predicted"] for one, two in zip(read_csv("a.csv"), read_csv("b.csv"), strict=True)]
    assert all(same)


def test_folds_take_the_values_of_their_training_rows(call):
    words = ("--grid", 4, "--folds", 4, "--quiet")
    assert call("cv", "svm", "values", "--kernel", "precomputed", *words, "-o", "a").code == 0
    assert call("cv", "svm", "rows", "--kernel", "rbf", "--gamma", 0.5, *words, "-o", "b").code == 0
    a, b = (json.loads(Path(run, "cv.json").read_text())["best"] for run in ("a", "b"))
    assert a["mean"] == b["mean"] > 0.8 and a["step"] == b["step"]
    given = SVMClassifierCV(grid=[0.1, 10.0], kernel="precomputed", cv=4).fit(kernel(X, X), Y)
    plain = SVMClassifierCV(grid=[0.1, 10.0], kernel="rbf", gamma=0.5, cv=4).fit(X, Y)
    called = SVMClassifierCV(grid=[0.1, 10.0], kernel=kernel, cv=4).fit(X, Y)
    scores = cross_val_score(SVMClassifier(kernel="precomputed"), kernel(X, X), Y, cv=3)
    np.testing.assert_array_equal(scores, cross_val_score(SVMClassifier(kernel="rbf", gamma=0.5), X, Y, cv=3))
    assert given.best_score_ == plain.best_score_ == called.best_score_ and given.C_ == plain.C_ == called.C_


def test_a_function_is_the_kernel_that_it_returns():
    target = X[:, 0] * X[:, 1]
    for path, y in ((screenpath.kernel_svm_path, Y), (screenpath.kernel_svr_path, target)):
        called, plain = path(X, y, kernel=kernel, grid=[0.1, 10.0]), path(X, y, gamma=0.5, grid=[0.1, 10.0])
        assert called.certified
        np.testing.assert_allclose(called.decision_function(NEW), plain.decision_function(NEW), atol=5e-3)
    with pytest.raises(UsageError, match="cannot be written"):
        called.save("folder")
    model = SVMRegressor(C=10.0, kernel=kernel).fit(X, target)
    np.testing.assert_allclose(model.predict(NEW), called.predict(NEW, C=10.0), atol=5e-3)
    for wrong, words in (
        (lambda A, B: np.tanh(2.0 * A @ B.T - 3.0), "not positive definite: its smallest eigenvalue"),
        (lambda A, B: A[:, :1] + 0.0 * B[:, 0], "not symmetric"), (lambda A, B: 1.0, "has the shape"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "no number"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=words):
            screenpath.kernel_svm_path(X, Y, kernel=wrong, grid=[1.0])
    with pytest.raises(DataError, match=r"has the shape \(60, 3\)"):  # the rows themselves
        screenpath.kernel_svm_path(X, Y, kernel="precomputed", grid=[1.0])


def test_runs_refuse_a_function_in_one_sentence():
    for run in (screenpath.run, screenpath.cross_validate):
        with pytest.raises(UsageError, match="cannot be written"):
            run("svm", (X, Y), kernel=kernel, quiet=True, out="run")
    assert not Path("run").exists()


def test_a_function_may_return_a_sparse_kernel():
    kernels = kernel, lambda A, B: csr_array(kernel(A, B))
    dense, sparse = (screenpath.kernel_svm_path(X, Y, kernel=one, grid=[1.0]) for one in kernels)
    assert np.array_equal(dense.decision_function(NEW), sparse.decision_function(NEW))


def test_rounding_in_float32_is_no_asymmetry():
    """Products of the same rows in another order, in float32; what is below the diagonal counts."""
    K = (kernel(X, X) * np.where(np.tri(60, dtype=bool), 1.0, 1.0 + 2e-7)).astype(np.float32)
    assert not np.array_equal(K, K.T)
    blocks = GivenBlocks(K, KernelFunction("precomputed"))
    whole = blocks.block(slice(None))
    assert np.array_equal(whole, whole.T) and np.array_equal(whole[5, :5], K[5, :5].astype(float))
    assert screenpath.kernel_svm_path(K, Y, kernel="precomputed", grid=[1.0]).certified
    with pytest.raises(DataError, match="not symmetric"):
        GivenBlocks(K.astype(float), KernelFunction("precomputed"))


def test_a_matrix_is_proven_positive_definite():
    """What a factor proves is true, at eigenvalues of 0 and just below."""
    Q = np.linalg.qr(RNG.normal(size=(40, 40)))[0]
    for least in (0.0, 1e-3, -1e-8):
        K = (Q * np.append(np.full(39, 1.0), least)) @ Q.T
        K = 0.5 * (K + K.T)
        ridge = ridge_of(lambda rows, columns, K=K: K[rows, columns], K.diagonal())
        assert 0.0 < ridge <= 1e-6 and np.linalg.eigvalsh(K.astype(np.longdouble).astype(float))[0] + ridge > 0.0
    with pytest.raises(DataError, match="about -0.0001"):
        K = (Q * np.append(np.full(39, 1.0), -1e-4)) @ Q.T
        ridge_of(lambda rows, columns: K[rows, columns], K.diagonal())
    blocks = GivenBlocks(kernel(X, X), KernelFunction("precomputed", constant=0.5))
    np.testing.assert_allclose(blocks.block(slice(None)), kernel(X, X) + 0.5, atol=1e-8)
    weights, rows, support = RNG.normal(size=(2, 5)), np.array([3, 8]), np.array([1, 3, 20, 21, 59])
    sums, exact = blocks.precise_sums(rows, support, weights), blocks.block(slice(None)).astype(np.longdouble)
    for w in range(2):
        wanted = exact[np.ix_(rows, support)] @ weights[w].astype(np.longdouble)
        np.testing.assert_allclose(sums[w].astype(np.longdouble).sum(axis=0), wanted, rtol=0, atol=1e-18)


def test_what_values_alone_do_not_tell_is_refused(call):
    base = ("svm", "values", "--kernel", "precomputed", "--grid", 2, "--quiet")
    assert "row 1 of the precomputed kernel has the number 0" in call("svm", "rows", *base[2:], "-o", "r").err
    assert "is not scaled" in call(*base, "--scale", "standard", "-o", "r").err
    assert "--certificate needs rows" in call(*base, "--certificate", "-o", "r").err
    assert "--keep-rows needs rows" in call(*base, "--keep-rows", "-o", "r").err
    assert "has no gamma" in call(*base, "--gamma", 1, "-o", "r").err
    assert "how large new rows are" in call("cv", *base, "--certify", "-o", "r").err
    written("tanh", np.tanh(2.0 * X @ X.T - 3.0), Y)
    done = call("svm", "tanh", *base[2:], "-o", "r")
    assert done.code == 1 and "smallest eigenvalue is about -" in done.err
    assert call(*base, "-o", "run").code == 0
    assert "given kernels" in call("verify", "run").err
    done = call("export", "run", "--step", 1, "--to", "json", "-o", "m.json")
    assert done.code == 2 and "no row of it is known" in done.err
    assert "how large new rows are" in call("predict", "run", "new", "--step", 1, "--removals").err


def test_rows_of_features_are_no_kernel_values(call):
    base = ("svm", "values", "--kernel", "precomputed", "--grid", 2, "--quiet")
    assert call(*base, "-o", "run").code == 0
    few = [f"1 1:{row[0]!r} 2:{row[1]!r}\n" for row in NEW.tolist()]
    many = ["1 " + " ".join(f"{j}:0.5" for j in range(1, len(X) + 3)) + "\n"]
    for name, lines in (("few", few), ("many", many)):
        Path(name).write_text("".join(lines))
        for done in (call("predict", "run", name, "--step", 1), call(*base, "--test", name, "-o", "other")):
            assert (done.code, done.out) == (1, "") and f"in a row, and the run {len(X)} training rows" in done.err
    Path("numbered").write_text("".join(line.replace(" ", " 0:7 ", 1) for line in few))  # zeros are left out
    assert call("predict", "run", "numbered", "--step", 1, "-q").code == 0
    np.save("new.npy", kernel(NEW, X))
    done = call(*base, "--test", "new.npy", "-o", "other")
    assert "write them to new.labels, one a line" in done.err and "--target" not in done.err


def test_a_matrix_of_numpy_is_mapped(call):
    """The same numbers as LIBSVM's file of values; where they are read, and in which type, changes nothing."""
    np.save("K.npy", kernel(X, X))
    np.save("m.npy", np.asfortranarray(kernel(X, X)))
    np.save("y.npy", Y.astype(int))
    Path("K.labels").write_text("".join(f"{one:g}\n" for one in Y))
    found = kernel(NEW, X)
    np.save("new.npy", found)
    Path("new.labels").write_text("1\n" * 9)
    words = ("--kernel", "precomputed", "--bias", 2, *GRID)
    assert call("svm", "values", *words, "--test", "new", "-o", "a").code == 0
    assert call("svm", "K.npy", *words, "--test", "new.npy", "-o", "b").code == 0
    assert call("svm", "m.npy", *words, "--target", "y.npy", "-o", "c").code == 0
    assert Path("a/steps.csv").read_text().split("\n")[1].split(",")[:6] == (
        Path("b/steps.csv").read_text().split("\n")[1].split(",")[:6]
    )
    assert Path("b/coefficients.csv").read_bytes() == Path("c/coefficients.csv").read_bytes()
    assert read_csv("a/steps.csv")[2]["test_accuracy"] == read_csv("b/steps.csv")[2]["test_accuracy"]
    used = {int(row["sample"]) - 1 for row in read_csv("b/coefficients.csv") if row["step"] == "2"}
    full = call("predict", "b", "new.npy", "--step", 2, "--decision")
    text = call("predict", "a", "new", "--step", 2, "--decision")
    same = [[float(line.split(",")[1]) for line in one.out.split()[1:]] for one in (full, text)]
    assert same[0] == pytest.approx(same[1], rel=1e-12) and full.err == text.err and "on 9 rows" in full.err
    found[:, sorted(set(range(60)) - used)] = np.nan
    np.save("few.npy", found)
    few = call("predict", "b", "few.npy", "--step", 2, "--decision")
    assert few.out == full.out and "no labels" in few.err
    appended = call("predict", "b", "new.npy", "--step", 2, "--append")
    assert appended.code == 2 and "columns of a table, new.npy is none\n  leave it out" in appended.err
    left = [call("loo", run, "--step", 2, "-o", f"{run}.csv").code for run in "abc"]
    assert left == [0, 0, 0] and Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    folds = [call("cv", "svm", data, *words, "--folds", 3, "-o", f"cv{data}").code for data in ("values", "K.npy")]
    scores = [json.loads(Path(f"cv{data}", "cv.json").read_text())["best"] for data in ("values", "K.npy")]
    assert folds == [0, 0] and scores[0] == scores[1]


def test_a_matrix_is_not_copied():
    n = 2500
    np.save("K.npy", np.eye(n, dtype=np.float32))
    mapped = np.load("K.npy", mmap_mode="r")
    tracemalloc.start()
    blocks = GivenBlocks(mapped, KernelFunction("precomputed"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.shares_memory(blocks.K, mapped) and peak < 8 * n * n  # the factor takes half of that
    assert blocks.block(slice(0, 2)).dtype == np.float64
    K = kernel(X, X) + np.triu(np.full((60, 60), 1e-12), 1)
    skew = GivenBlocks(K, KernelFunction("precomputed", constant=0.5))
    np.testing.assert_array_equal(skew.block(slice(None)), skew.block(slice(None)).T)
    few = skew.block(np.array([3, 9]), np.array([9, 2]))
    np.testing.assert_array_equal(few, skew.block(slice(None))[[3, 9]][:, [9, 2]])


@pytest.mark.parametrize(
    ("values", "labels", "words"),
    [
        (kernel(X, X)[:, :50], "1\n" * 60, "has the shape (60, 50): the kernel of the training rows is square"),
        (kernel(X, X) + 1e-3 * (np.eye(60)[:, [1]] @ np.eye(60)[[4]]), None, "of the rows 2 and 5 differ by 0.001"),
        (np.where(np.eye(60) == 1.0, np.nan, kernel(X, X)), None, "that of the rows 1 and 1 is nan"),
        (np.tanh(2.0 * X @ X.T - 3.0), None, "smallest eigenvalue is about -"),
        (kernel(X, X), "1\n" * 59, "has 59 labels, K.npy 60 rows"), (kernel(X, X), "", "has no labels"),
        (kernel(X, X).astype(int), None, "holds int64 values"), (np.array([{}]), None, "cannot be read"),
    ],
)  # fmt: skip
def test_a_matrix_that_is_no_kernel_is_refused(call, values, labels, words):
    np.save("K.npy", values, allow_pickle=True)
    if labels != "":
        Path("K.labels").write_text("".join(f"{one:g}\n" for one in Y) if labels is None else labels)
    done = call("svm", "K.npy", "--kernel", "precomputed", "--grid", 2, "--quiet", "-o", "r")
    assert done.code == 1 and words in done.err and not Path("r").exists()
    wrong = call("svm", "K.npy", "--kernel", "rbf", "--grid", 2, "--quiet", "-o", "r")
    assert wrong.code == 1 and "with --kernel precomputed" in wrong.err


def test_the_sigmoid_is_refused_with_a_way_that_works(call):
    done = call("svm", "rows", "--kernel", "sigmoid", "--quiet", "-o", "r")
    assert done.code == 2 and "not positive definite" in done.err and not Path("r").exists()
    assert "--kernel precomputed" in done.err and "is not one of" in call("svm", "rows", "--kernel", "sigmoids").err
    path = screenpath.kernel_svm_path
    for one in (lambda: path(X, Y, kernel="sigmoid"), lambda: SVMClassifier(kernel="sigmoid").fit(X, Y)):
        with pytest.raises((UsageError, ValueError), match="not positive definite"):
            one()
    page = (ROOT / "examples" / "guide" / "kernels.md").read_text()
    code, command = re.search(r"<<'END'\n(.*?)END\npython sigmoid.py\nscreenpath (.*?)\n", page, re.DOTALL).groups()
    Path("data_samples").symlink_to(ROOT / "data_samples")
    exec(code, {})
    assert call(*command.split(), "--quiet").code == 0
    assert {row["status"] for row in read_csv("runs/sigmoid/steps.csv")} == {"certified"}


@pytest.mark.parametrize("model", ["svm", "lad"])
def test_a_new_value_that_is_no_number_is_no_prediction(call, model):
    np.save("k.npy", kernel(X, X))
    np.savetxt("k.labels", Y)
    assert call(model, "k.npy", "--kernel", "precomputed", *GRID, "-o", "run").code == 0
    support = int(next(row["sample"] for row in read_csv("run/coefficients.csv") if row["sample"] != "0")) - 1
    values = kernel(NEW, X)
    values[4, support] = np.nan
    np.save("new.npy", values)
    found = call("predict", "run", "new.npy", "--step", 0, "-o", "out.csv")
    assert found.code == 1 and "row 5: " in found.err and not Path("out.csv").exists()


def test_advice_on_intervals_works(call):
    assert call("svm", "values", "--kernel", "precomputed", *GRID, "-o", "run").code == 0
    words = ("predict", "run", "new", "--step", 1, "-o", "out.csv")
    found = call(*words, "--interval", 0.9)
    assert found.code == 2 and "--interval" in found.err.splitlines()[-1]
    assert call(*words).code == 0
